//! Structural analysis of a matrix: one pass over its entries, and the methods that follow from it.
//!
//! ```
//! use residua::{generate, look::{Definiteness, Kind, Look}};
//!
//! let look = Look::of(&generate::poisson2d(20, 30)?)?;
//! assert_eq!((look.kind, look.definiteness), (Kind::Symmetric, Definiteness::Positive));
//! assert_eq!(look.methods()[0].method, "cg");
//! println!("{}", look.words().join("\n"));
//! # Ok::<(), residua::Error>(())
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `structure` | components, structural rank, block triangular form, triangles |
//! | `columns` | counts by columns, dense rows and columns |
//! | `blocks` | the number of unknowns per point |
//! | `methods` | which methods are possible, which are not, and why |
//! | `diagonal` | checks of the diagonal, in the backend's memory |
//! | `transposed` | distance to the transpose, in the backend's memory |
//! | `words` | the results as sentences |
//!
//! [`Facts`] holds what follows from single rows and from pairs a_ij, a_ji.

use crate::error::Result;
use crate::matrix::Csr;
use crate::prepare::Pattern;
use crate::report::Facts;
use crate::scalar::Scalar;
use serde::Serialize;

mod blocks;
mod columns;
mod diagonal;
mod methods;
mod structure;
#[cfg(test)]
mod tests;
mod transposed;
mod words;

pub use columns::Columns;
pub(crate) use diagonal::{first_without_inverse, has_positive_diagonal};
pub use methods::{Fit, MethodFit};
pub use structure::{Structure, Triangle};
pub(crate) use transposed::Defects;
pub use transposed::Transposed;

/// The symmetry of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Rows and columns differ in number.
    Rectangular,
    /// Real and equal to its transpose; also complex if all imaginary parts are zero.
    Symmetric,
    /// Complex and equal to its conjugate transpose.
    Hermitian,
    /// Complex and equal to its transpose, not to its conjugate transpose.
    ComplexSymmetric,
    /// Equal to its negative transpose.
    SkewSymmetric,
    /// The pattern is symmetric, the values are not.
    SymmetricPattern,
    /// None of these.
    Unsymmetric,
}

impl Kind {
    /// Returns whether the matrix equals its conjugate transpose: symmetric and real, or Hermitian.
    pub fn is_hermitian(self) -> bool {
        matches!(self, Kind::Symmetric | Kind::Hermitian)
    }
}

/// The signs of the eigenvalues as far as they are certain without computing any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Definiteness {
    /// All positive: Hermitian, weakly diagonally dominant with a positive diagonal, and a strictly dominant row in
    /// each component (Varga, "Matrix Iterative Analysis", theorem 1.21).
    Positive,
    /// All negative, for the same reason.
    Negative,
    /// None negative. As for [`Definiteness::Positive`] but without a strictly dominant row in each component: the
    /// matrix may be singular.
    PositiveOrZero,
    /// Hermitian with eigenvalues of both signs, as shown by diagonal entries, principal minors of order 2, or the sum
    /// of all entries.
    Indefinite,
    /// Hermitian with a positive diagonal: may be positive definite.
    PerhapsPositive,
    /// Hermitian with a negative diagonal: may be negative definite.
    PerhapsNegative,
    /// Not Hermitian, or not finite, or without an entry.
    Unknown,
}

/// The results of the analysis. Rows, columns and unknowns are numbered from 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Look {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Stored entries.
    pub nonzeros: usize,
    /// True if the type of the entries has an imaginary part.
    pub complex: bool,
    /// The symmetry of A, up to the rounding of files.
    pub kind: Kind,
    /// True if the symmetry is exact, without rounding.
    pub exact: bool,
    /// The certain signs of the eigenvalues.
    pub definiteness: Definiteness,
    /// True if A has the signs of an M-matrix: real, with a positive diagonal and no positive entry off it.
    pub m_matrix_signs: bool,
    /// Unknowns per point, 1 to 6: A consists of square blocks of this size that are nearly full.
    pub block_size: usize,
    /// Counts by rows, and properties of pairs of entries.
    pub facts: Facts,
    /// Counts by columns.
    pub by_column: Columns,
    /// The structure of the graph.
    pub structure: Structure,
}

impl Look {
    /// Analyses a matrix on the host in O(entries), except for binary searches in rows and, if the diagonal is not
    /// full, a matching ([`maximum_matching`](crate::prepare::maximum_matching)).
    ///
    /// # Errors
    /// If there are 2^32 - 1 rows or columns or more, or if memory runs out.
    pub fn of<T: Scalar>(a: &Csr<T>) -> Result<Self> {
        let facts = Facts::of(a);
        let pattern = Pattern::nonzero(a)?;
        let structure = Structure::of(&pattern, &facts, &|row| columns::is_strict(a, row))?;
        let stored = if facts.explicit_zeros == 0 { pattern } else { Pattern::stored(a)? };
        let kind = kind(a.rows() == a.columns(), &facts);
        let mirrored = !matches!(kind, Kind::Rectangular | Kind::SymmetricPattern | Kind::Unsymmetric);
        Ok(Self {
            rows: a.rows(),
            columns: a.columns(),
            nonzeros: a.nonzeros(),
            complex: T::COMPLEX,
            kind,
            exact: match kind {
                Kind::Hermitian => facts.hermitian_defect == 0.0,
                Kind::SkewSymmetric => facts.skew_defect == 0.0,
                _ => facts.asymmetry == 0.0,
            },
            definiteness: definiteness(kind, a.rows(), &facts, &structure),
            m_matrix_signs: a.rows() == a.columns()
                && facts.diagonal_positive == a.rows()
                && facts.diagonal_complex + facts.not_negative + facts.non_finite == 0,
            block_size: blocks::natural_size(&stored),
            by_column: Columns::of(a, &facts, mirrored),
            structure,
            facts,
        })
    }

    /// Returns whether there are as many rows as columns.
    pub fn is_square(&self) -> bool {
        self.rows == self.columns
    }

    /// Returns whether every entry is finite.
    pub fn is_finite(&self) -> bool {
        self.facts.non_finite == 0
    }

    /// Returns whether A is singular for any values on its pattern, or not square.
    pub fn is_structurally_singular(&self) -> bool {
        self.structure.rank < self.rows.max(self.columns)
    }

    /// Returns whether A maps constant vectors to zero, up to rounding, as the Laplacian of a graph or a problem with
    /// Neumann conditions on the whole boundary. Then each component has such a null vector.
    pub fn has_constant_null_vector(&self) -> bool {
        self.nonzeros > 0 && self.is_finite() && self.facts.zero_sum_rows == self.rows
    }

    /// Decades between the largest and the smallest of the rows' largest magnitudes.
    pub fn row_decades(&self) -> f64 {
        decades(self.facts.largest, self.facts.smallest_row)
    }

    /// Decades between the largest and the smallest of the columns' largest magnitudes.
    pub fn column_decades(&self) -> f64 {
        decades(self.facts.largest, self.by_column.smallest_column)
    }

    /// Decades between the largest and the smallest nonzero magnitude.
    pub fn entry_decades(&self) -> f64 {
        decades(self.facts.largest, self.facts.smallest)
    }
}

fn decades(largest: f64, smallest: f64) -> f64 {
    if largest > 0.0 && smallest.is_finite() { largest.log10() - smallest.log10() } else { 0.0 }
}

fn kind(square: bool, facts: &Facts) -> Kind {
    if !square {
        Kind::Rectangular
    } else if facts.is_hermitian() {
        if facts.is_symmetric() { Kind::Symmetric } else { Kind::Hermitian }
    } else if facts.is_symmetric() {
        Kind::ComplexSymmetric
    } else if facts.is_skew_symmetric() {
        Kind::SkewSymmetric
    } else if facts.pattern_symmetric {
        Kind::SymmetricPattern
    } else {
        Kind::Unsymmetric
    }
}

fn definiteness(kind: Kind, rows: usize, facts: &Facts, structure: &Structure) -> Definiteness {
    if !kind.is_hermitian() || facts.non_finite > 0 || facts.largest == 0.0 {
        return Definiteness::Unknown;
    }
    let (positive, negative) = (facts.diagonal_positive, facts.diagonal_negative);
    let dominant = facts.dominant_rows == rows;
    if positive > 0 && negative > 0 || facts.negative_minors > 0 || sum_has_other_sign(facts) {
        Definiteness::Indefinite
    } else if positive == rows {
        match (dominant, structure.strict_in_each_component) {
            (true, true) => Definiteness::Positive,
            (true, false) => Definiteness::PositiveOrZero,
            (false, _) => Definiteness::PerhapsPositive,
        }
    } else if negative == rows {
        if dominant && structure.strict_in_each_component {
            Definiteness::Negative
        } else {
            Definiteness::PerhapsNegative
        }
    } else if negative == 0 {
        // A row without a diagonal entry has no others either: otherwise a minor of order 2 would be negative.
        if dominant { Definiteness::PositiveOrZero } else { Definiteness::PerhapsPositive }
    } else {
        Definiteness::PerhapsNegative
    }
}

/// Returns whether 1^T A 1 has the opposite sign to the diagonal entries, which all have one sign or are zero.
pub(super) fn sum_has_other_sign(facts: &Facts) -> bool {
    let sign = if facts.diagonal_negative > 0 { -1.0 } else { 1.0 };
    sign * facts.entry_sum < -1e-10 * facts.magnitude_sum
}
