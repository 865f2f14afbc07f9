//! Checks of the diagonal, in the memory of the backend.

use crate::backend::RowFacts;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// Returns whether all diagonal entries are stored, real, positive and finite, and have finite reciprocals.
pub(crate) fn has_positive_diagonal<T: Scalar, B: RowFacts>(backend: &B, a: &Csr<T, B>) -> Result<bool> {
    let (mut inverse, mut rounded) = (backend.buffer(a.rows())?, backend.buffer(0)?);
    let mut found = backend.zeros(3)?;
    backend.csr_inverse_diagonal::<T, T>(a.parts(), &mut inverse, &mut rounded, &mut found)?;
    Ok(backend.download(&*found)?[0] == u32::MAX)
}
