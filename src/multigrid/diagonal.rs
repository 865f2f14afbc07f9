//! Diagonal matrices, stored as vectors, and a matrix scaled by them.

use super::MultigridBackend;
use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

pub(super) fn ones<T: Scalar, B: Backend>(backend: &B, n: usize) -> Result<B::Vec<T>> {
    let mut ones = backend.buffer(n)?;
    backend.fill(T::one(), &mut ones)?;
    Ok(ones)
}

/// L A R.
pub(super) fn times<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    left: &B::Slice<T>,
    right: &B::Slice<T>,
) -> Result<Csr<T, B>> {
    let mut values = backend.buffer(a.nonzeros())?;
    backend.scaled_values(a.parts(), left, right, &mut values)?;
    Ok(a.with_values(values))
}

/// 1 / sqrt(a_ii).
pub(super) fn inverse_roots<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<B::Vec<T>> {
    let mut roots = backend.buffer(a.rows())?;
    backend.inverse_roots(a.parts(), &mut roots)?;
    Ok(roots)
}
