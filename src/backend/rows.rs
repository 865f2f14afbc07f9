//! Properties of a matrix in CSR that one pass over its rows finds: symmetry, diagonals, equal rows.

use super::{Backend, CsrParts};
use crate::error::Result;
use crate::scalar::{Promote, Scalar};

/// Properties of the rows of a matrix in CSR, for the choice of a method and the setup of preconditioners. No step
/// waits for the device, and all are deterministic.
pub trait RowFacts: Backend {
    /// `inverse[i]` = 1 / a_ii for a square matrix, and `rounded[i]` the same in single precision, unless `rounded` is
    /// empty.
    ///
    /// `found` gets three rows, each `u32::MAX` if there is none: the first row whose diagonal entry is missing, not
    /// positive, not finite, not real, or has no finite reciprocal; a row whose `inverse` differs from that of row 0;
    /// and a row in which `rounded` is zero, subnormal or not finite. In rows like the first of these, `inverse[i]` is
    /// the real part of the diagonal entry, or 0 if it is missing.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn csr_inverse_diagonal<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        inverse: &mut Self::Slice<T::Real>,
        rounded: &mut Self::Slice<f32>,
        found: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Compares a square matrix with its transpose: `found` = the largest |a_ij|, |a_ij - a_ji| and |a_ij -
    /// conj(a_ji)|, three reals. An entry that is not stored is zero, and NaN is ignored.
    ///
    /// # Errors
    /// If the buffer has another length, or if the device fails.
    fn csr_symmetry<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// `same[i]` = 1 if row i of A has the same columns as row i - 1, else 0.
    ///
    /// # Errors
    /// If the length differs, or if the device fails.
    fn same_columns<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        same: &mut Self::Slice<u8>,
    ) -> Result<()>;

    /// `d[i]` = 1 / re(a_ii), or 1 / |a_ii| if the result has to be `positive`. If that entry is missing, or below
    /// [`SMALL_DIAGONAL`](super::SMALL_DIAGONAL) times the norm of row i, it is replaced by the norm, or by 1 for a row
    /// of zeros.
    ///
    /// # Errors
    /// If the length differs, or if the device fails.
    fn row_inverses<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        positive: bool,
        d: &mut Self::Slice<T::Real>,
    ) -> Result<()>;
}
