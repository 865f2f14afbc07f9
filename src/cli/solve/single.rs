//! A polynomial preconditioner in half the precision, with the matrix that it multiplies with.

use residua::backend::{PreconditionSteps, Products};
use residua::precondition::{Chebyshev, Jacobi, Narrowed};
use residua::scalar::Widen;
use residua::{Csr, LinearOperator, Scalar, matrix};

/// A matrix in half the precision, its diagonal, and the polynomial's interval.
pub(super) struct Single<T: Scalar, B: PreconditionSteps + Products> {
    operator: Box<dyn LinearOperator<T::Narrow, B>>,
    diagonal: Jacobi<T::Narrow, B>,
    steps: usize,
    bounds: (f64, f64),
}

impl<T: Scalar, B: PreconditionSteps + Products> Single<T, B> {
    /// For the rounded matrix `a`, to be stored in `format`.
    pub(super) fn new<V: Scalar + Widen<T::Narrow>>(
        backend: &B,
        a: Csr<V, B>,
        format: &str,
        steps: usize,
    ) -> residua::Result<Self> {
        let diagonal = Jacobi::new(backend, &a)?;
        let operator = matrix::convert::<T::Narrow, B, V>(backend, format, a)?;
        let bounds = Chebyshev::new(backend, &*operator, &diagonal, steps)?.bounds();
        Ok(Self { operator, diagonal, steps, bounds })
    }

    /// As a solver in full precision takes it.
    pub(super) fn preconditioner(
        &self,
        backend: &B,
    ) -> residua::Result<Narrowed<Chebyshev<'_, T::Narrow, B>>> {
        let Self { operator, diagonal, steps, bounds } = self;
        Narrowed::new::<T, B>(Chebyshev::with_bounds(backend, &**operator, diagonal, *steps, *bounds)?)
    }
}
