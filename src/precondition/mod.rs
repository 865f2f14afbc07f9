//! Preconditioners: operators z = M^-1 r with M near A and cheap to invert.
//!
//! | type | M | set up by | bytes moved an iteration, beyond plain CG |
//! |---|---|---|---|
//! | [`Identity`] | I | | none |
//! | [`Jacobi`] | diagonal of A | one pass over A | 2 n reals: fused with the steps of CG, z is never stored |
//!
//! A preconditioner of your own implements [`Preconditioner::apply`]; for conjugate gradients it must be Hermitian
//! positive definite.

use crate::backend::{Backend, Inverse, VectorOps};
use crate::error::Result;
use crate::scalar::Scalar;

mod identity;
mod jacobi;

pub use identity::Identity;
pub use jacobi::Jacobi;

/// Applies z = M^-1 r.
pub trait Preconditioner<T: Scalar, B: Backend>: Send + Sync {
    /// Number of rows and columns; `None` where any will do.
    fn rows(&self) -> Option<usize>;

    /// z = M^-1 r. What `z` held is of no account.
    ///
    /// # Errors
    /// On vectors of the wrong length, or when the device fails.
    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()>;

    /// z = M^-1 r and `rz[0]` = r.z (conjugating r), in one pass where M can.
    ///
    /// # Errors
    /// As [`Preconditioner::apply`].
    fn apply_dot(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>, rz: &mut B::Slice<T>) -> Result<()>
    where
        B: VectorOps,
    {
        self.apply(backend, r, z)?;
        backend.dot(r, z, rz)
    }

    /// The form that fused steps can apply on the way, where M has one ([`Inverse::Identity`] or
    /// [`Inverse::Diagonal`]).
    fn fused(&self) -> Option<Inverse<'_, T, B>>
    where
        B: VectorOps,
    {
        None
    }

    /// Compulsory bytes of one application: what M stores, r once, z once.
    fn bytes(&self) -> usize;
}
