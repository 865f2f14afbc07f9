//! The matrix of the next level: R A P.

use crate::backend::{CoarseningSteps, Conversions};
use crate::error::Result;
use crate::matrix::{Csr, multiply};
use crate::scalar::Scalar;

/// P^H.
pub(super) fn conjugate_transpose<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    p: &Csr<T, B>,
) -> Result<Csr<T, B>> {
    let mut r = p.transpose(backend)?;
    if T::COMPLEX {
        backend.conjugate(r.values_mut())?;
    }
    Ok(r)
}

/// Prolongation and restriction.
pub(super) type Transfer<T, B> = (Csr<T, B>, Csr<T, B>);

/// P, R (P^H unless another is given), and R A P.
pub(super) fn galerkin<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    (p, r): (Csr<T, B>, Option<Csr<T, B>>),
) -> Result<(Transfer<T, B>, Csr<T, B>)> {
    let r = r.map_or_else(|| conjugate_transpose(backend, &p), Ok)?;
    let coarse = multiply(backend, &r, &multiply(backend, a, &p)?)?;
    Ok(((p, r), coarse))
}
