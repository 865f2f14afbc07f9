//! What a backend multiplies: one product a storage layout, always y = alpha A x + beta y.

use super::{Backend, CsrParts};
use crate::error::Result;
use crate::scalar::{Scalar, Widen};

/// Products y = alpha A x + beta y with stored matrices. Where `beta` is zero, `y` is not read: it may hold NaN.
/// Sizes are checked by the callers in `matrix`.
pub trait Products: Backend {
    /// y = alpha A x + beta y, A in CSR.
    ///
    /// # Errors
    /// When the device fails.
    fn csr<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        alpha: T,
        x: &Self::Slice<T>,
        beta: T,
        y: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// y = A x and `xy` = x.y (conjugating x) in one pass over A, for a square A in CSR.
    ///
    /// # Errors
    /// When the device fails.
    fn csr_dot<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>;
}
