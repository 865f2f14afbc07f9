//! The methods that are possible for a matrix.

use super::{Definiteness, Kind, Look, Triangle};
use crate::report::count;
use serde::Serialize;

/// How well a method suits a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fit {
    /// Made for such matrices.
    Suits,
    /// Possible, but others are cheaper or safer.
    Possible,
    /// It would fail, or compute something else than requested.
    Impossible,
}

/// How well a method suits, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MethodFit {
    /// `cg`, `minres`, `gmres`, `lsmr`, `cholesky`, `ldlt`, `lu` or `qr`.
    pub method: &'static str,
    /// How well the method suits the matrix.
    pub fit: Fit,
    /// Why, as the end of a sentence.
    pub reason: String,
}

impl Look {
    /// All methods, the most suitable first and the impossible ones last. Properties that only a trial shows, such as
    /// fast convergence, are not considered.
    pub fn methods(&self) -> Vec<MethodFit> {
        let mut methods: Vec<MethodFit> = [
            self.cg(),
            self.minres(),
            self.gmres(),
            self.lsmr(),
            self.cholesky(),
            self.ldlt(),
            self.lu(),
            self.qr(),
        ]
        .into();
        if let Some(reason) = self.hopeless() {
            for method in &mut methods {
                (method.fit, method.reason) = (Fit::Impossible, reason.clone());
            }
        }
        methods.sort_by_key(|method| method.fit as u8);
        methods
    }

    /// The first iterative method that suits, or else one that is possible; `None` if there is none.
    pub fn iterative_method(&self) -> Option<MethodFit> {
        let iterative = ["cg", "minres", "gmres", "lsmr"];
        let mut methods = self.methods().into_iter();
        methods.find(|method| iterative.contains(&method.method) && method.fit != Fit::Impossible)
    }

    /// The reason why no method can solve with the matrix, if there is one.
    fn hopeless(&self) -> Option<String> {
        if self.rows == 0 || self.columns == 0 {
            Some("there is nothing to solve".into())
        } else if !self.is_finite() {
            let bad = count(self.facts.non_finite as u64);
            Some(format!("{bad} of the entries are infinite or not a number"))
        } else if self.facts.largest == 0.0 {
            Some("all entries are zero".into())
        } else {
            None
        }
    }

    fn not_hermitian(&self) -> Option<String> {
        let name = if self.complex { "Hermitian" } else { "symmetric" };
        match self.kind {
            kind if kind.is_hermitian() => None,
            Kind::Rectangular => Some("it needs a square matrix".into()),
            Kind::SkewSymmetric => Some(format!("it needs a {name} matrix, and this one is skew-symmetric")),
            Kind::ComplexSymmetric => {
                Some("it needs a Hermitian matrix, and this one is symmetric without conjugation".into())
            }
            _ => Some(format!("it needs a {name} matrix")),
        }
    }

    fn cg(&self) -> MethodFit {
        let (fit, reason) = match (self.not_hermitian(), self.definiteness) {
            (Some(reason), _) => (Fit::Impossible, reason),
            (_, Definiteness::Positive) => (Fit::Suits, "the matrix is positive definite".into()),
            (_, Definiteness::PositiveOrZero) => {
                (Fit::Suits, "no eigenvalue is negative; if one is zero, A x = b must have a solution".into())
            }
            (_, Definiteness::PerhapsPositive) => (
                Fit::Suits,
                "the diagonal is positive, so all eigenvalues may be positive; cg reports if one is not"
                    .into(),
            ),
            (_, Definiteness::Negative | Definiteness::PerhapsNegative) => {
                (Fit::Possible, "solve -A x = -b: the diagonal is negative, so all eigenvalues may be".into())
            }
            _ => (Fit::Impossible, self.why_indefinite()),
        };
        MethodFit { method: "cg", fit, reason }
    }

    fn minres(&self) -> MethodFit {
        let (fit, reason) = match (self.not_hermitian(), self.definiteness) {
            (Some(reason), _) => (Fit::Impossible, reason),
            (_, Definiteness::Indefinite) => (Fit::Suits, "eigenvalues may have either sign".into()),
            _ => {
                (Fit::Possible, "the matrix need not be definite; conjugate gradients take less work".into())
            }
        };
        MethodFit { method: "minres", fit, reason }
    }

    fn gmres(&self) -> MethodFit {
        let (fit, reason) = if !self.is_square() {
            (Fit::Impossible, "it needs a square matrix".into())
        } else if self.kind.is_hermitian() {
            (
                Fit::Possible,
                "it works, but minres or cg take less memory and time for a Hermitian matrix".into(),
            )
        } else if self.is_structurally_singular() {
            (
                Fit::Possible,
                "the matrix is structurally singular: it works only if A x = b has a solution".into(),
            )
        } else if self.row_dominant() || self.column_dominant() {
            (Fit::Suits, "the matrix is diagonally dominant: any preconditioner helps".into())
        } else {
            (Fit::Suits, "it works for any square matrix, with a preconditioner".into())
        };
        MethodFit { method: "gmres", fit, reason }
    }

    fn lsmr(&self) -> MethodFit {
        let (fit, reason) = if !self.is_square() {
            (Fit::Suits, "least squares, or the solution of least norm".into())
        } else if self.is_structurally_singular() {
            (Fit::Suits, "least squares: the matrix is singular, so most b have no solution".into())
        } else {
            (
                Fit::Possible,
                "it works for any matrix, but slowly: iterations grow with the condition number squared"
                    .into(),
            )
        };
        MethodFit { method: "lsmr", fit, reason }
    }

    fn cholesky(&self) -> MethodFit {
        let (fit, reason) = match (self.not_hermitian(), self.definiteness) {
            (Some(reason), _) => (Fit::Impossible, reason),
            (_, Definiteness::Positive) => (Fit::Suits, "the matrix is positive definite".into()),
            _ if self.has_constant_null_vector() || self.is_structurally_singular() => {
                (Fit::Impossible, "the matrix is singular".into())
            }
            (_, Definiteness::PerhapsPositive | Definiteness::PositiveOrZero) => (
                Fit::Suits,
                "the matrix may be positive definite; the factorisation fails if it is not".into(),
            ),
            (_, Definiteness::Negative | Definiteness::PerhapsNegative) => {
                (Fit::Possible, "factorise -A instead, since the diagonal is negative".into())
            }
            _ => (Fit::Impossible, self.why_indefinite()),
        };
        MethodFit { method: "cholesky", fit, reason }
    }

    fn ldlt(&self) -> MethodFit {
        let symmetric = self.kind.is_hermitian() || self.kind == Kind::ComplexSymmetric;
        let (fit, reason) = if !symmetric {
            let reason =
                if self.is_square() { "it needs a symmetric matrix" } else { "it needs a square matrix" };
            (Fit::Impossible, reason.to_string())
        } else if self.has_constant_null_vector() || self.is_structurally_singular() {
            (Fit::Possible, "the matrix is singular: factorise a shifted one, as a preconditioner".into())
        } else if self.definiteness == Definiteness::Positive {
            (Fit::Possible, "Cholesky's factorisation is cheaper".into())
        } else {
            (Fit::Suits, "it takes half the work and memory of L U".into())
        };
        MethodFit { method: "ldlt", fit, reason }
    }

    fn lu(&self) -> MethodFit {
        let blocks = self.structure.square_blocks;
        let (fit, reason) = if !self.is_square() {
            (Fit::Impossible, "it needs a square matrix".into())
        } else if self.is_structurally_singular() {
            (Fit::Impossible, "the matrix is structurally singular".into())
        } else if self.has_constant_null_vector() {
            (Fit::Impossible, "the matrix is singular: constants are mapped to zero".into())
        } else if self.structure.triangle != Triangle::None {
            (Fit::Suits, "the matrix is triangular: one substitution solves".into())
        } else if self.kind.is_hermitian() || self.kind == Kind::ComplexSymmetric {
            (Fit::Possible, "it takes twice the work of a symmetric factorisation".into())
        } else if blocks > 1 {
            (Fit::Suits, format!("block by block: the matrix has {} diagonal blocks", count(blocks as u64)))
        } else {
            (Fit::Suits, "it works for any matrix that is not singular, and says so if it is".into())
        };
        MethodFit { method: "lu", fit, reason }
    }

    fn qr(&self) -> MethodFit {
        let (fit, reason) = if !self.is_square() {
            (Fit::Suits, "least squares, if the factors fit into memory".into())
        } else if self.is_structurally_singular() || self.has_constant_null_vector() {
            (Fit::Suits, "with column pivoting, for a least-squares solution with a singular matrix".into())
        } else {
            (Fit::Possible, "it has more fill than L U, but no problems with small pivots".into())
        };
        MethodFit { method: "qr", fit, reason }
    }

    pub(super) fn why_indefinite(&self) -> String {
        let facts = &self.facts;
        if facts.diagonal_negative > 0 && facts.diagonal_positive > 0 {
            let [positive, negative] = [facts.diagonal_positive, facts.diagonal_negative];
            let (positive, negative) = (count(positive as u64), count(negative as u64));
            format!("the matrix is indefinite: {positive} diagonal entries are positive, {negative} negative")
        } else if facts.negative_minors == 0 {
            "the matrix is indefinite: the sum of its entries and its diagonal have opposite signs".into()
        } else if facts.diagonal_zero > 0 {
            let zero = count(facts.diagonal_zero as u64);
            format!("the matrix is indefinite: {zero} diagonal entries are zero in rows with nonzeros")
        } else {
            let minors = count(facts.negative_minors as u64);
            format!("the matrix is indefinite: a_ij^2 > a_ii a_jj for {minors} pairs i, j")
        }
    }

    pub(super) fn row_dominant(&self) -> bool {
        self.is_square() && self.facts.dominant_rows == self.rows
    }

    pub(super) fn column_dominant(&self) -> bool {
        self.is_square() && self.by_column.dominant == self.columns
    }
}
