//! To and from [`sprs::CsMat`].

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use sprs::CsMat;

/// Copies into CSR storage; indices become `usize`.
///
/// ```
/// use residua::Csr;
/// let a = Csr::<f64>::identity(3)?;
/// let b = sprs::CsMat::from(&a);
/// assert_eq!(Csr::try_from(&b)?, a);
/// # Ok::<(), residua::Error>(())
/// ```
impl<V: Scalar> From<&Csr<V>> for CsMat<V> {
    fn from(a: &Csr<V>) -> Self {
        let parts = a.parts();
        let offsets = (0..=a.rows()).map(|i| if i == 0 { 0 } else { a.row_end(i - 1) }).collect();
        let indices = parts.indices.iter().map(|&j| j as usize).collect();
        CsMat::new((a.rows(), a.columns()), offsets, indices, parts.values.to_vec())
    }
}

/// Copies from either storage (CSC is transposed).
///
/// # Errors
/// If an index does not fit 32 bits.
impl<V: Scalar> TryFrom<&CsMat<V>> for Csr<V> {
    type Error = Error;

    fn try_from(a: &CsMat<V>) -> Result<Self> {
        let owned;
        let a = if a.is_csr() {
            a
        } else {
            owned = a.to_csr();
            &owned
        };
        crate::matrix::triplets::check_dimensions(a.rows(), a.cols())?;
        let offsets = a.indptr().to_proper().into_owned();
        let indices = a.indices().iter().map(|&j| j as u32).collect();
        Csr::from_parts(a.rows(), a.cols(), offsets, indices, a.data().to_vec())
    }
}
