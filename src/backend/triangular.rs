//! Triangular systems, and the incomplete factorisation from which they result.
//!
//! A row of a triangular system needs the unknowns of other rows. Its *level* is the length of the longest chain of
//! such dependences. Rows of the same level are independent and can be solved in parallel (level scheduling; Saad,
//! Iterative Methods for Sparse Linear Systems, 2nd ed., 11.6). Therefore rows are stored by level.

use super::{CsrParts, CsrPattern, OffsetsRef, Primitives};
use crate::error::Result;
use crate::scalar::Scalar;
use std::ops::Range;

/// A triangle of a matrix, without the diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left of the diagonal.
    Lower,
    /// Right of the diagonal.
    Upper,
}

impl Side {
    /// Returns the range of a row's entries in this triangle. `columns` ascend.
    pub(crate) fn places(self, row: usize, columns: &[u32]) -> Range<usize> {
        match self {
            Side::Lower => 0..columns.partition_point(|&column| (column as usize) < row),
            Side::Upper => columns.partition_point(|&column| column as usize <= row)..columns.len(),
        }
    }
}

/// A triangular matrix whose rows are stored by level. Unknowns are numbered in the stored order.
///
/// ```text
///     | 1 . . . |     levels 0 1 0 1     rows stored: 0 2 | 1 3
/// L = | 5 1 . . |     offsets 0 0 0 1 3
///     | . . 1 . |     columns 0 | 0 1                        as numbered by places in that order
///     | 7 . 8 1 |     values  5 | 7 8                        no inverses: the diagonal is 1
/// ```
#[derive(Debug)]
pub struct TriangleParts<'a, T: Scalar, B: Primitives> {
    /// For each row, the index of its right-hand side.
    pub sources: &'a B::Slice<u32>,
    /// The start of each row.
    pub offsets: OffsetsRef<'a, B>,
    /// The unknown of each entry, by its number in the stored order.
    pub columns: &'a B::Slice<u32>,
    /// The entries off the diagonal.
    pub values: &'a B::Slice<T>,
    /// The inverses of the diagonal entries; `None` for a unit diagonal.
    pub inverses: Option<&'a B::Slice<T>>,
    /// The start of each level, and the number of rows at the end.
    pub levels: &'a [u32],
}

/// The requirements on the pivots of an incomplete factorisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pivots {
    /// The factor by which the diagonal of A is multiplied before the factorisation (Manteuffel's shift).
    pub diagonal: f64,
    /// The smallest allowed magnitude of a pivot, relative to the largest entry of its row of A.
    pub smallest: f64,
    /// True if pivots must be positive, as for a Hermitian positive definite matrix.
    pub positive: bool,
}

/// Steps of incomplete factorisations and of triangular solves. All are deterministic: sums are added in the order in
/// which entries are stored, whatever the scheduling.
///
/// Every method fails if the device fails.
#[allow(clippy::missing_errors_doc)]
pub trait TriangularSteps: Primitives {
    /// `levels[i]` = the level of row i in one triangle of a square matrix: 0 without an entry there, else one more
    /// than the largest level of the rows with the numbers of its columns. `levels` has one more element, which is
    /// undefined.
    fn row_levels(
        &self,
        pattern: CsrPattern<'_, Self>,
        side: Side,
        levels: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Computes ILU(0) in place: L, whose unit diagonal is not stored, and U replace the values of A, on the pattern of
    /// A (Saad, algorithm 10.4). `inverses[i]` = 1 / u_ii. `order` has the rows by levels of the lower triangle. A
    /// pivot that does not meet the requirements is replaced by the largest magnitude in its row of A, with the pivot's
    /// sign unless it must be positive; `failed[0]` = the number of replaced pivots. Rows without a stored diagonal
    /// entry have a pivot of zero.
    fn incomplete_lu<T: Scalar>(
        &self,
        pattern: CsrPattern<'_, Self>,
        order: &Self::Slice<u32>,
        pivots: Pivots,
        values: &mut Self::Slice<T>,
        inverses: &mut Self::Slice<T>,
        failed: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[k]` = the number of entries of row `order[k]` in one triangle. `lengths` has one more element, which is
    /// set to 0.
    fn triangle_lengths(
        &self,
        pattern: CsrPattern<'_, Self>,
        side: Side,
        order: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Copies the entries of row `order[k]` in one triangle to `offsets[k]` and the following positions. Column j
    /// becomes `places[j]`.
    #[allow(clippy::too_many_arguments)]
    fn triangle_entries<T: Scalar>(
        &self,
        a: CsrParts<'_, T, Self>,
        side: Side,
        order: &Self::Slice<u32>,
        places: &Self::Slice<u32>,
        offsets: OffsetsRef<'_, Self>,
        columns: &mut Self::Slice<u32>,
        values: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Solves a triangular system: `x[k] = (r[sources[k]] - sum of values[e] x[columns[e]])
    /// inverses[k]`, for the rows in stored order. `x` has one element more than there are rows; a device uses it as a
    /// counter.
    fn triangular_solve<T: Scalar>(
        &self,
        triangle: TriangleParts<'_, T, Self>,
        r: &Self::Slice<T>,
        x: &mut Self::Slice<T>,
    ) -> Result<()>;
}
