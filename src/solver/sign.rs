//! The sign of a matrix: Laplacians are assembled with a negative diagonal as often as with a positive one.

use super::SolverBackend;
use crate::backend::{Communicator, Space};
use crate::error::Result;
use crate::look::{first_without_inverse, has_positive_diagonal};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};
use num_traits::Zero;

/// The reason why -A is stored.
pub(super) const NEGATED: &str = "the diagonal is negative: -A (-x) = b is solved";

/// [`with_positive_diagonal`] for the rows of several ranks, given the block of each: none is replaced unless all are.
pub(super) fn all_with_positive_diagonals<T: Scalar, B: SolverBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    own: &mut Csr<T, B>,
) -> Result<bool> {
    let negated = own.rows() == 0 || with_positive_diagonal(space.backend(), own)?;
    let all = space.count(negated)? == space.communicator().parts();
    if negated && !all {
        space.backend().scale_in_place(-T::one(), own.values_mut())?;
    }
    Ok(all)
}

/// The first diagonal entry of a block that is not positive; 0 if it is missing.
pub(super) fn first_curvature<T: Scalar, B: SolverBackend>(
    backend: &B,
    own: &Csr<T, B>,
) -> Result<Option<f64>> {
    let Some(row) = first_without_inverse(backend, own)? else { return Ok(None) };
    let entry = |a: &Csr<T>, place: usize, row: usize| {
        let (columns, values) = a.row(place);
        columns.binary_search(&(row as u32)).map_or(0.0, |k| values[k].re().to_f64())
    };
    let value = entry(&own.window(backend, row..row + 1)?, 0, row);
    if value <= 0.0 {
        return Ok(Some(value));
    }
    // A positive entry without a reciprocal hides what follows it.
    let all = own.to_host(backend)?;
    Ok((row..all.rows()).map(|row| entry(&all, row, row)).find(|&value| value <= 0.0))
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
