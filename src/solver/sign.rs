//! The sign of a matrix: Laplacians are assembled with a negative diagonal as often as with a positive one.

use super::SolverBackend;
use crate::error::Result;
use crate::look::has_positive_diagonal;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use num_traits::Zero;
use std::ops::Range;

/// The reason why -A is stored.
pub(super) const NEGATED: &str = "the diagonal is negative: -A (-x) = b is solved";

/// Returns whether all diagonal entries of some rows of a matrix are negative.
pub(super) fn has_negative_diagonal<T: Scalar>(a: &Csr<T>, mut rows: Range<usize>) -> bool {
    rows.all(|i| a.get(i, i).is_some_and(|entry| entry.re() < T::Real::zero()))
}

/// Replaces A by -A if the whole diagonal of a Hermitian A is negative, so that conjugate gradients and multigrid also
/// solve negative definite systems. Returns whether it did.
pub(super) fn with_positive_diagonal<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &mut Csr<T, B>,
) -> Result<bool> {
    if a.rows() == 0 || a.rows() != a.columns() {
        return Ok(false);
    }
    // The first row nearly always shows that nothing needs to be done.
    let first = a.window(backend, 0..1)?;
    if first.get(0, 0).is_none_or(|entry| entry.re() >= T::Real::zero()) {
        return Ok(false);
    }
    backend.scale_in_place(-T::one(), a.values_mut())?;
    let negated = has_positive_diagonal(backend, a)?;
    if !negated {
        backend.scale_in_place(-T::one(), a.values_mut())?;
    }
    Ok(negated)
}
