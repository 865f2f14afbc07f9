//! The residual of the normal equations, which shows whether x is a least-squares solution.

use super::RowNorms;
use crate::backend::{Communicator, Op, Space, VectorOps};
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::scalar::Scalar;

/// ||A^H r|| / (||A|| ||r||) for r = b - A x, in twice the working precision if the operator can: once with a lower
/// bound of ||A||, by which x is judged, and once with the Frobenius norm. 0 if r is zero.
///
/// # Errors
/// If the operator has no product with its transpose, if memory runs out, or if the device or another rank fails.
pub(crate) fn normal_residual<T: Scalar, B: VectorOps, C: Communicator<B>>(
    space: &Space<B, C>,
    (a, norms): (&(impl LinearOperator<T, B> + ?Sized), &mut RowNorms<T, B>),
    b: &B::Slice<T>,
    x: &B::Slice<T>,
) -> Result<(f64, f64)> {
    let backend = space.backend();
    let (mut r, mut squares) = norms.take_room(backend, a.rows())?;
    a.accurate_residual(backend, T::one(), b, x, &mut r)?;
    let (size, _) = norms.of_residual(space, &r, &mut squares)?;
    norms.to_gradient(backend, &mut r)?;
    let mut gradient = backend.zeros(a.columns())?;
    a.product_op(backend, Op::ConjugateTranspose, T::one(), &r, T::zero(), &mut gradient)?;
    let length = norms.of_gradient(space, &gradient, &mut squares)?;
    norms.give_back(r, squares);
    if size == 0.0 || length == 0.0 {
        return Ok((0.0, 0.0));
    }
    let (rows, columns) = (a.rows() as f64, a.columns() as f64);
    let norm_of_a = norms.most.max(norms.frobenius / rows.min(columns).sqrt()).max(length / size);
    Ok((length / (norm_of_a * size), length / (norms.frobenius * size)))
}
