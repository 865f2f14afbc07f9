//! Checks of the diagonal, in the memory of the backend.

use crate::backend::RowFacts;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// Returns whether all diagonal entries are stored, real, positive and finite, and have finite reciprocals.
pub(crate) fn has_positive_diagonal<T: Scalar, B: RowFacts>(backend: &B, a: &Csr<T, B>) -> Result<bool> {
    Ok(first_without_inverse(backend, a)?.is_none())
}

/// The first row whose diagonal entry is not stored, real, positive and finite with a finite reciprocal.
pub(crate) fn first_without_inverse<T: Scalar, B: RowFacts>(
    backend: &B,
    a: &Csr<T, B>,
) -> Result<Option<usize>> {
    if a.rows() == 0 {
        return Ok(None);
    }
    let (mut inverse, mut rounded) = (backend.buffer(a.rows())?, backend.buffer(0)?);
    let mut found = backend.zeros(3)?;
    backend.csr_inverse_diagonal::<T, T>(a.parts(), &mut inverse, &mut rounded, &mut found)?;
    let row = backend.download(&*found)?[0];
    Ok((row != u32::MAX).then_some(row as usize))
}
