//! What one pass over the rows of a matrix in CSR tells: symmetry, diagonals, rows that are alike.

use super::{Backend, CsrParts};
use crate::error::Result;
use crate::scalar::{Scalar, Widen};

/// What the rows of a matrix in CSR tell of it, for the choice of a method and for the set-up of preconditioners.
/// Nothing here waits for the device, and everything is deterministic.
pub trait RowFacts: Backend {
    /// `inverse[i]` = 1 / a_ii for a square matrix, and `rounded[i]` the same in single precision, unless `rounded` is
    /// empty. `found[0]` becomes the first row whose diagonal entry is missing, not positive, not finite, not real, or
    /// has no finite reciprocal, and `u32::MAX` where there is none; in a bad row, `inverse[i]` is the entry's real
    /// part, 0 where it is missing. `found[1]` becomes a row whose entry of `inverse` differs from that of row 0, and
    /// `u32::MAX` where all are equal; `found[2]` a row where `rounded` is zero, subnormal or not finite, and
    /// `u32::MAX` where there is none.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn csr_inverse_diagonal<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        inverse: &mut Self::Slice<T::Real>,
        rounded: &mut Self::Slice<f32>,
        found: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// How far a square matrix is from its transpose: `found` becomes the largest |a_ij|, |a_ij - a_ji| and
    /// |a_ij - conj(a_ji)|, three reals. An entry that is not stored is zero, and NaN counts for nothing.
    ///
    /// # Errors
    /// On a buffer of another length, or when the device fails.
    fn csr_symmetry<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// `same[i]` = 1 where row i of A has the columns of row i - 1, else 0.
    ///
    /// # Errors
    /// On another length, or when the device fails.
    fn same_columns<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        same: &mut Self::Slice<u8>,
    ) -> Result<()>;

    /// `d[i]` = 1 / the real part of a_ii, or its magnitude where the result has to be `positive`. Where that entry is
    /// missing, or below [`SMALL_DIAGONAL`](super::SMALL_DIAGONAL) of the norm of row i, so that it says nothing, the
    /// norm stands for it, and 1 for a row of zeros.
    ///
    /// # Errors
    /// On another length, or when the device fails.
    fn row_inverses<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        positive: bool,
        d: &mut Self::Slice<T::Real>,
    ) -> Result<()>;
}
