//! Many iterations of a solver in one call: for systems so small that a backend can keep them beside its processors,
//! where starting the steps one by one would cost more than the steps.

use super::{Inverse, VectorOps};
use crate::error::Result;
use crate::scalar::Scalar;
use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// What a launch of persistent conjugate gradient iterations works on. Each iteration is the product and the two steps
/// of [`KrylovSteps`](super::KrylovSteps), up to rounding, and the first one that is not `Running` afterwards is the
/// last.
#[derive(Debug)]
pub struct PersistentIterations<'a, T: Scalar, B: VectorOps> {
    /// The preconditioner: identity or diagonal.
    pub inverse: Inverse<'a, T, B>,
    /// The most iterations to do.
    pub count: usize,
    /// The residual.
    pub r: &'a mut B::Slice<T>,
    /// The direction.
    pub p: &'a mut B::Slice<T>,
    /// What is added to the solution.
    pub x: &'a mut B::Slice<T>,
    /// Room; what it holds afterwards is of no account.
    pub q: &'a mut B::Slice<T>,
    /// [`CgSlot`](super::CgSlot), as the steps leave it.
    pub state: &'a mut B::Slice<T::Real>,
    /// The first [`MESSAGE`](super::CgSlot::MESSAGE) of the state after each iteration, up to the last.
    pub messages: &'a mut B::Slice<T::Real>,
}

/// What a backend worked out from the pattern of a matrix, kept with the matrix: the pattern of a matrix never changes.
#[derive(Default)]
pub struct Derived(OnceLock<Box<dyn Any + Send + Sync>>);

impl Derived {
    /// What `make` made, now or at an earlier call; `None` where an earlier call made something of another type.
    ///
    /// # Errors
    /// Those of `make`; nothing is kept then.
    pub fn get_or_make<P: Any + Send + Sync>(&self, make: impl FnOnce() -> Result<P>) -> Result<Option<&P>> {
        let made = match self.0.get() {
            Some(made) => made,
            None => {
                let made = Box::new(make()?);
                // Where another thread was faster, its own is as good.
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
