//! Triangular systems, and the incomplete factorisation that they come from.
//!
//! A row of a triangular system needs the unknowns of other rows. Its *level* is the length of the longest chain of
//! such needs: rows of one level need nothing of each other, so that they can be solved side by side (Saad, Iterative
//! Methods for Sparse Linear Systems, 2nd ed., 11.6). Rows are therefore stored by levels.

use super::{CsrParts, CsrPattern, OffsetsRef, Primitives};
use crate::error::Result;
use crate::scalar::Scalar;
use std::ops::Range;

/// Which part of a matrix, without the diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left of the diagonal.
    Lower,
    /// Right of the diagonal.
    Upper,
}

impl Side {
    /// The places of a row's entries on this side; `columns` ascend.
    pub(crate) fn places(self, row: usize, columns: &[u32]) -> Range<usize> {
        match self {
            Side::Lower => 0..columns.partition_point(|&column| (column as usize) < row),
            Side::Upper => columns.partition_point(|&column| column as usize <= row)..columns.len(),
        }
    }
}

/// A triangular matrix whose rows are stored by levels; unknowns are numbered as rows are stored.
///
/// ```text
///     | 1 . . . |     levels 0 1 0 1     rows stored: 0 2 | 1 3
/// L = | 5 1 . . |     offsets 0 0 0 1 3
///     | . . 1 . |     columns 0 | 0 1                        as numbered by places in that order
///     | 7 . 8 1 |     values  5 | 7 8                        no inverses: the diagonal is 1
/// ```
#[derive(Debug)]
pub struct TriangleParts<'a, T: Scalar, B: Primitives> {
    /// The element of the right-hand side that belongs to each row.
    pub sources: &'a B::Slice<u32>,
    /// Where each row starts.
    pub offsets: OffsetsRef<'a, B>,
    /// The unknown that each entry belongs to.
    pub columns: &'a B::Slice<u32>,
    /// The entries off the diagonal.
    pub values: &'a B::Slice<T>,
    /// The inverses of the diagonal; none where it is 1.
    pub inverses: Option<&'a B::Slice<T>>,
    /// Where each level starts, and the number of rows behind the last one.
    pub levels: &'a [u32],
}

/// Pivots of an incomplete factorisation: what is asked of them, and what is done where one fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pivots {
    /// What the diagonal of A is multiplied by before the factorisation (Manteuffel's shift).
    pub diagonal: f64,
    /// The smallest magnitude of a pivot, relative to the largest entry of its row of A.
    pub smallest: f64,
    /// Whether pivots have to be positive, as those of a Hermitian positive definite matrix are.
    pub positive: bool,
}

/// Steps of incomplete factorisations and of triangular solves. All of them are deterministic: sums are added in the
/// order in which entries are stored, whatever runs when.
///
/// Every method fails when the device fails.
#[allow(clippy::missing_errors_doc)]
pub trait TriangularSteps: Primitives {
    /// `levels[i]` = the level of row i of the part of a square matrix on one side: 0 without an entry there, else one
    /// more than the largest level among its entries. `levels` has one element more, of no account.
    fn row_levels(
        &self,
        pattern: CsrPattern<'_, Self>,
        side: Side,
        levels: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// ILU(0) where the values lie: those of A become those of L, whose unit diagonal is not stored, and U, on the
    /// pattern of A (Saad, algorithm 10.4). `inverses[i]` = 1 / u_ii. `order` lists the rows by levels of the lower
    /// side. A pivot that fails is replaced by the largest magnitude of its row of A, with the pivot's sign where it
    /// may have one, and `failed[0]` becomes the number of these. Rows without a stored diagonal entry have a pivot of
    /// zero.
    fn incomplete_lu<T: Scalar>(
        &self,
        pattern: CsrPattern<'_, Self>,
        order: &Self::Slice<u32>,
        pivots: Pivots,
        values: &mut Self::Slice<T>,
        inverses: &mut Self::Slice<T>,
        failed: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[k]` = entries of row `order[k]` on one side. `lengths` has one element more, which becomes 0.
    fn triangle_lengths(
        &self,
        pattern: CsrPattern<'_, Self>,
        side: Side,
        order: &Self::Slice<u32>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The entries on one side of row `order[k]`, from `offsets[k]` on, with `places` of their columns.
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

    /// Solves a triangular system: `x[k] = (r[sources[k]] - sum of values[e] x[columns[e]]) inverses[k]`, rows in the
    /// order in which they are stored. `x` has one element more than there are rows, in which a device counts.
    fn triangular_solve<T: Scalar>(
        &self,
        triangle: TriangleParts<'_, T, Self>,
        r: &Self::Slice<T>,
        x: &mut Self::Slice<T>,
    ) -> Result<()>;
}
