//! The matrix of the next level: R A P.

use crate::backend::{CoarseningSteps, Conversions};
use crate::error::Result;
use crate::matrix::{Csr, multiply, multiply_within};
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

/// The transfer to the next level, and the matrix there.
type Next<T, B> = (Transfer<T, B>, Csr<T, B>);

/// P, R (P^H unless another is given), and R A P.
pub(super) fn galerkin<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    (p, r): (Csr<T, B>, Option<Csr<T, B>>),
) -> Result<Next<T, B>> {
    galerkin_within(backend, a, (p, r), usize::MAX).map(|built| built.expect("a level of any size"))
}

/// [`galerkin`] if R A P has at most `most` entries, else `None`.
pub(super) fn galerkin_within<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    (p, r): (Csr<T, B>, Option<Csr<T, B>>),
    most: usize,
) -> Result<Option<Next<T, B>>> {
    let r = r.map_or_else(|| conjugate_transpose(backend, &p), Ok)?;
    let coarse = multiply_within(backend, &r, &multiply(backend, a, &p)?, most)?;
    Ok(coarse.map(|coarse| ((p, r), coarse)))
}
