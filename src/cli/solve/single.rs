//! A polynomial preconditioner in half the precision, with the matrix that it multiplies with.

use residua::backend::{PreconditionSteps, Products};
use residua::precondition::{Chebyshev, Jacobi, Narrowed};
use residua::scalar::Widen;
use residua::{Csr, LinearOperator, Scalar, matrix};
use std::sync::Arc;

/// The polynomial of so many steps for the rounded matrix `a`, to be stored in `format`, as a solver in full precision
/// takes it.
pub(super) fn make<T: Scalar, V: Scalar + Widen<T::Narrow>, B: PreconditionSteps + Products>(
    backend: &B,
    a: Csr<V, B>,
    format: &str,
    steps: usize,
) -> residua::Result<Narrowed<Chebyshev<T::Narrow, B>>> {
    let diagonal = Arc::new(Jacobi::new(backend, &a)?);
    let operator = matrix::convert::<T::Narrow, B, V>(backend, format, a)?;
    let operator: Arc<dyn LinearOperator<T::Narrow, B>> =
        Arc::from(operator as Box<dyn LinearOperator<_, _>>);
    Narrowed::new::<T, B>(Chebyshev::new(backend, operator, diagonal, steps)?)
}
