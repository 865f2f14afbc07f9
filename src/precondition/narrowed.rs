//! A preconditioner in half the precision.

use super::{Preconditioner, Workspace};
use crate::backend::{Backend, PreconditionSteps};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// z = M^-1 r with M in half the precision: r is rounded, and z is converted back. A preconditioner need not be exact,
/// and this one moves half the bytes. The outer iteration keeps its precision, and so the residual that it can reach.
///
/// Entries of r below the range of half the precision are taken as zero. [`Cg`](crate::krylov::Cg) scales r by about
/// 1 / ||b||, so that they stay far above that.
#[derive(Debug)]
pub struct Narrowed<M> {
    inner: M,
}

impl<M> Narrowed<M> {
    /// Wraps `inner`, a preconditioner in the precision below that of `T`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `inner` does not know its size, or rounds by itself.
    pub fn new<T: Scalar, B: Backend>(inner: M) -> Result<Self>
    where
        M: Preconditioner<T::Lower, B>,
    {
        if inner.rows().is_none() || inner.narrow_work_len() > 0 {
            return Err(Error::InvalidArgument(
                "this preconditioner cannot be applied in half the precision".into(),
            ));
        }
        Ok(Self { inner })
    }
}

impl<T: Scalar, B: PreconditionSteps, M: Preconditioner<T::Lower, B>> Preconditioner<T, B> for Narrowed<M> {
    fn rows(&self) -> Option<usize> {
        self.inner.rows()
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let mut full = backend.zeros(0)?;
        let mut narrow = backend.zeros(<Self as Preconditioner<T, B>>::narrow_work_len(self))?;
        self.apply_in(backend, Workspace { full: &mut full, narrow: &mut narrow }, r, z)
    }

    fn narrow_work_len(&self) -> usize {
        2 * self.inner.rows().unwrap_or(0) + self.inner.work_len()
    }

    fn apply_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        let n = B::len(r);
        let (low_r, rest) = B::split_mut(work.narrow, n);
        let (low_z, rest) = B::split_mut(rest, n);
        let (full, narrow) = B::split_mut(rest, self.inner.work_len());
        let narrow = B::part_mut(narrow, 0..0);
        backend.narrow::<T>(<T::Real as num_traits::One>::one(), r, low_r)?;
        self.inner.apply_in(backend, Workspace { full, narrow }, low_r, low_z)?;
        backend.widen::<T>(low_z, z)
    }

    fn steps(&self) -> usize {
        self.inner.steps() + 2
    }

    fn bytes(&self) -> usize {
        let n = self.inner.rows().unwrap_or(0);
        self.inner.bytes() + n * (2 * size_of::<T>() + 2 * size_of::<T::Lower>())
    }
}
