//! Persistent iterations: many iterations of a solver in one launch. They are for systems that are small enough for the
//! backend's on-chip memory, where launching each step would take longer than the step itself.

use super::{Inverse, Slot, VectorOps};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// The operands of a launch of persistent conjugate gradient iterations. Each iteration is the product and the two
/// steps of [`KrylovSteps`](super::KrylovSteps), up to rounding. The launch ends after the first iteration whose status
/// is not `Running`.
#[derive(Debug)]
pub struct PersistentIterations<'a, T: Scalar, B: VectorOps> {
    /// The preconditioner: identity or diagonal.
    pub inverse: Inverse<'a, T, B>,
    /// The maximum number of iterations to do.
    pub count: usize,
    /// The residual.
    pub r: &'a mut B::Slice<T>,
    /// The direction.
    pub p: &'a mut B::Slice<T>,
    /// The solution, to which each iteration adds its step.
    pub x: &'a mut B::Slice<T>,
    /// A workspace, undefined afterwards.
    pub q: &'a mut B::Slice<T>,
    /// The state ([`CgSlot`](super::CgSlot)), as the steps update it.
    pub state: &'a mut B::Slice<T::Real>,
    /// The first [`MESSAGE`](super::CgSlot::MESSAGE) scalars of the state after each iteration, up to the last.
    pub messages: &'a mut B::Slice<T::Real>,
}

/// The operands of a launch of persistent MINRES iterations: those of [`Minres`](crate::krylov::Minres) without a
/// preconditioner, up to rounding. The launch ends after the first iteration whose status is not `Running`.
#[derive(Debug)]
pub struct PersistentMinres<'a, T: Scalar, B: VectorOps> {
    /// The maximum number of iterations to do.
    pub count: usize,
    /// The solution, to which each iteration adds its step.
    pub x: &'a mut B::Slice<T>,
    /// The Lanczos vector that the next iteration multiplies, and the one before; both are updated.
    pub v: [&'a mut B::Slice<T>; 2],
    /// The last two directions, the newer one first; both are updated.
    pub w: [&'a mut B::Slice<T>; 2],
    /// A workspace, undefined afterwards.
    pub q: &'a mut B::Slice<T>,
    /// The state of the recurrence.
    pub state: &'a mut B::Slice<T>,
    /// The first of seven scalars of the state: gamma, gamma_before, eta, the last two cosines and the last two sines.
    pub scalars: Slot,
    /// The first [`MESSAGE`](Slot::MESSAGE) scalars of the state after each iteration, up to the last.
    pub messages: &'a mut B::Slice<T>,
}

/// The operands of persistent iterations of one of the methods.
#[derive(Debug)]
pub enum Persistent<'a, T: Scalar, B: VectorOps> {
    /// Conjugate gradients.
    Cg(PersistentIterations<'a, T, B>),
    /// MINRES.
    Minres(PersistentMinres<'a, T, B>),
}

impl<T: Scalar, B: VectorOps> Persistent<'_, T, B> {
    /// Returns an error if the length of a vector is not `n`, the number of rows.
    pub(crate) fn check(&self, n: usize) -> Result<()> {
        let lengths = match self {
            Self::Cg(PersistentIterations { r, p, x, q, .. }) => [&**r, p, x, q, q, q].map(|v| B::len(v)),
            Self::Minres(PersistentMinres { x, v, w, q, .. }) => {
                [&**x, &*v[0], &*v[1], &*w[0], &*w[1], q].map(|v| B::len(v))
            }
        };
        lengths.into_iter().try_for_each(|length| Error::check_dimension("length of a vector", n, length))
    }
}

/// Data that a backend has derived from the pattern of a matrix. They are kept with the matrix, because its pattern
/// never changes.
#[derive(Default)]
pub struct Derived(OnceLock<Box<dyn Any + Send + Sync>>);

impl Derived {
    /// Returns the result of `make`, from this call or from an earlier one; `None` if an earlier call made another
    /// type.
    ///
    /// # Errors
    /// The errors of `make`. Nothing is kept then.
    pub fn get_or_make<P: Any + Send + Sync>(&self, make: impl FnOnce() -> Result<P>) -> Result<Option<&P>> {
        let made = match self.0.get() {
            Some(made) => made,
            None => {
                let made = Box::new(make()?);
                // If another thread was faster, its result is used, which is the same.
                self.0.get_or_init(|| made)
            }
        };
        Ok(made.downcast_ref())
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Derived(kept)" } else { "Derived" })
    }
}
