//! Facts about a matrix in CSR from one pass over its rows: symmetry, diagonals, equal rows.

use super::{Backend, CsrParts};
use crate::error::Result;
use crate::scalar::{Scalar, Widen};

/// Facts about the rows of a matrix in CSR, for the choice of a method and the setup of preconditioners. No step waits
/// for the device, and all are deterministic.
pub trait RowFacts: Backend {
    /// `inverse[i]` = 1 / a_ii for a square matrix, and `rounded[i]` the same in single precision, unless `rounded` is
    /// empty. `found[0]` = the first row whose diagonal entry is missing, not positive, not finite, not real, or has no
    /// finite reciprocal, or `u32::MAX` if there is none; in such a row, `inverse[i]` is the entry's real part, or 0 if
    /// it is missing. `found[1]` = a row whose entry of `inverse` differs from that of row 0, or `u32::MAX` if all are
    /// equal; `found[2]` = a row in which `rounded` is zero, subnormal or not finite, or `u32::MAX` if there is none.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn csr_inverse_diagonal<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        inverse: &mut Self::Slice<T::Real>,
        rounded: &mut Self::Slice<f32>,
        found: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The distance of a square matrix from its transpose: `found` = the largest |a_ij|, |a_ij - a_ji| and
    /// |a_ij - conj(a_ji)|, three reals. An entry that is not stored is zero, and NaN is ignored.
    ///
    /// # Errors
    /// If the buffer has another length, or if the device fails.
    fn csr_symmetry<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// `same[i]` = 1 if row i of A has the columns of row i - 1, else 0.
    ///
    /// # Errors
    /// If the length differs, or if the device fails.
    fn same_columns<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        same: &mut Self::Slice<u8>,
    ) -> Result<()>;

    /// `d[i]` = 1 / the real part of a_ii, or 1 / its magnitude if the result has to be `positive`. If that entry is
    /// missing, or below [`SMALL_DIAGONAL`](super::SMALL_DIAGONAL) times the norm of row i, the norm replaces it, or 1
    /// for a row of zeros.
    ///
    /// # Errors
    /// If the length differs, or if the device fails.
    fn row_inverses<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        positive: bool,
        d: &mut Self::Slice<T::Real>,
    ) -> Result<()>;
}
