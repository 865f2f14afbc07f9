//! What a matrix is, told by one look at its entries, and which methods can solve with it.
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
//! | `columns` | what is counted by columns, dense rows and columns |
//! | `blocks` | how many unknowns belong to a point |
//! | `methods` | which methods are possible, which are not, and why |
//! | `diagonal` | whether the diagonal is positive, looked at where it lies |
//! | `transposed` | how near a matrix is to its transpose, looked at where it lies |
//! | `words` | all of it in sentences |
//!
//! [`Facts`] holds what a row and the mirror images of its entries tell.

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
pub(crate) use diagonal::has_positive_diagonal;
pub use methods::{Fit, MethodFit};
pub use structure::{Structure, Triangle};
pub use transposed::Transposed;

/// How a matrix relates to its transpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Not as many rows as columns.
    Rectangular,
    /// Real and equal to its transpose; also complex where all imaginary parts are zero.
    Symmetric,
    /// Complex and equal to its conjugate transpose.
    Hermitian,
    /// Complex and equal to its transpose, not to its conjugate transpose.
    ComplexSymmetric,
    /// Equal to its negative transpose.
    SkewSymmetric,
    /// Entries stand where the transpose has some too, with other values.
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

/// What is certain of the signs of the eigenvalues, without computing any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Definiteness {
    /// All positive: Hermitian, weakly diagonally dominant with a positive diagonal, and a strictly dominant row in
    /// each component (Varga, "Matrix Iterative Analysis", theorem 1.21).
    Positive,
    /// All negative, for the same reason.
    Negative,
    /// None negative, as for [`Definiteness::Positive`] but without strict rows: perhaps singular.
    PositiveOrZero,
    /// Hermitian, and some of either sign: diagonal entries tell, principal minors of order 2, or the sum of all
    /// entries.
    Indefinite,
    /// Hermitian with a positive diagonal: perhaps positive definite.
    PerhapsPositive,
    /// Hermitian with a negative diagonal: perhaps negative definite.
    PerhapsNegative,
    /// Not Hermitian, or not finite, or without an entry.
    Unknown,
}

/// What a matrix is. Rows, columns and unknowns count from 0.
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
    /// How A relates to its transpose, up to the rounding of files.
    pub kind: Kind,
    /// True if no rounding was involved in that.
    pub exact: bool,
    /// What is certain of the eigenvalues' signs.
    pub definiteness: Definiteness,
    /// True if A has the signs of an M-matrix: real, a positive diagonal, nothing positive off it.
    pub m_matrix_signs: bool,
    /// Unknowns of a point, 1 to 6: A consists of square blocks of this size, nearly all of them full.
    pub block_size: usize,
    /// Counts by rows, and what pairs of entries tell.
    pub facts: Facts,
    /// Counts by columns.
    pub by_column: Columns,
    /// How rows and columns hang together.
    pub structure: Structure,
}

impl Look {
    /// Looks at a matrix on the host: O(entries) but for bisections in rows and, where the diagonal is not full, a
    /// matching ([`maximum_matching`](crate::prepare::maximum_matching)).
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

    /// Returns whether every entry is a number.
    pub fn is_finite(&self) -> bool {
        self.facts.non_finite == 0
    }

    /// Returns whether no choice of values on the same places makes A regular, or it is not square.
    pub fn is_structurally_singular(&self) -> bool {
        self.structure.rank < self.rows.max(self.columns)
    }

    /// Returns whether A maps constant vectors to zero, up to rounding: a Laplacian of a graph, or Neumann conditions
    /// all around. Then each component has such a null vector.
    pub fn has_constant_null_vector(&self) -> bool {
        self.nonzeros > 0 && self.is_finite() && self.facts.zero_sum_rows == self.rows
    }

    /// Decades between the largest entries of the row where that is largest and where it is smallest.
    pub fn row_decades(&self) -> f64 {
        decades(self.facts.largest, self.facts.smallest_row)
    }

    /// The same for columns.
    pub fn column_decades(&self) -> f64 {
        decades(self.facts.largest, self.by_column.smallest_column)
    }

    /// Decades between the largest and the smallest magnitude that is not zero.
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
        // Rows without a diagonal entry have no others either, or a minor were negative.
        if dominant { Definiteness::PositiveOrZero } else { Definiteness::PerhapsPositive }
    } else {
        Definiteness::PerhapsNegative
    }
}

/// Returns whether 1^T A 1 has another sign than the diagonal entries, of which none is of either sign.
pub(super) fn sum_has_other_sign(facts: &Facts) -> bool {
    let sign = if facts.diagonal_negative > 0 { -1.0 } else { 1.0 };
    sign * facts.entry_sum < -1e-10 * facts.magnitude_sum
}
