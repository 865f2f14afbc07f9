//! The interface between a Krylov method and its driver.
//!
//! A method is a recurrence and nothing else. From a residual r = b - A x, it makes steps whose sum is to be added to
//! x. The [driver](super::Krylov) does what all methods have in common: it computes the first residual, records and
//! replays iterations, reads their residual norms, watches for stagnation, recomputes b - A x when a method reports
//! convergence, and restarts the method if that residual is too large.

use super::Outcome;
use crate::backend::{Alone, Communicator, Space, VectorOps};
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::precondition::{Preconditioner, Workspace};
use crate::scalar::Scalar;
use std::fmt::{self, Debug};

/// The operator A with its preconditioner M.
pub struct System<'a, T: Scalar, B: VectorOps> {
    /// The operator.
    pub a: &'a dyn LinearOperator<T, B>,
    /// Its preconditioner.
    pub m: &'a dyn Preconditioner<T, B>,
}

impl<T: Scalar, B: VectorOps> Clone for System<'_, T, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Scalar, B: VectorOps> Copy for System<'_, T, B> {}

impl<T: Scalar, B: VectorOps> Debug for System<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "System of {} x {}", self.a.rows(), self.a.columns())
    }
}

/// Vectors of a method that its driver reads and writes between iterations.
pub struct Vectors<'a, T: Scalar, B: VectorOps> {
    /// The sum of the steps, as long as x.
    pub steps: &'a mut B::Slice<T>,
    /// The residual that the recurrence starts from, as long as b; afterwards the recurrence's own residual, if it
    /// keeps one.
    pub residual: &'a mut B::Slice<T>,
    /// A work vector as long as b, in which certificates compute b - A x.
    pub scratch: &'a mut B::Slice<T>,
}

impl<T: Scalar, B: VectorOps> Debug for Vectors<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vectors of {} and {}", B::len(self.steps), B::len(self.residual))
    }
}

/// The stopping criterion of a recurrence.
#[derive(Debug, Clone, Copy)]
pub struct Aim<R> {
    /// ||r||^2 is at most this.
    pub square: R,
    /// For least-squares methods: ||A^H r|| is at most this times ||A|| ||r||.
    pub gradient: f64,
}

/// A Krylov method on vectors of a space. The driver scales all vectors such that their squares neither overflow nor
/// underflow.
///
/// `examples/own_method.rs` in the repository adds one.
pub trait Method<T: Scalar, B: VectorOps, C: Communicator<B> = Alone>: Debug + Send {
    /// The type of the scalars in a message: status, r.r and curvature ([`Slot`](crate::backend::Slot)).
    type Word: Scalar<Real = T::Real>;

    /// The name of the method in reports.
    fn name(&self) -> &'static str;

    /// Rows and columns of the operators that the method was built for.
    fn shape(&self) -> (usize, usize);

    /// The work, including its addresses, is the same again after this many iterations: 2 if two buffers change places.
    fn period(&self) -> usize {
        1
    }

    /// The method has to be restarted after this many iterations, if at all.
    fn cycle(&self) -> Option<usize> {
        None
    }

    /// Returns whether the goal is the least-squares solution if b - A x cannot be made zero.
    fn is_least_squares(&self) -> bool {
        false
    }

    /// Returns whether the last iterate is better than one with a smaller residual when the iterations run out: that of
    /// conjugate gradients has the smallest error in the A-norm.
    fn last_iterate_counts(&self) -> bool {
        false
    }

    /// Allocates the memory that this system needs, as far as the method does not have it yet. Called before each
    /// solve.
    ///
    /// # Errors
    /// If memory runs out.
    fn fit(&mut self, _space: &Space<B, C>, _system: System<'_, T, B>) -> Result<()> {
        Ok(())
    }

    /// The method's vectors, for the driver.
    fn vectors(&mut self) -> Vectors<'_, T, B>;

    /// Starts the recurrence from the residual, with a sum of steps of zero.
    ///
    /// # Errors
    /// If the device fails.
    fn start(&mut self, space: &Space<B, C>, system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()>;

    /// Enqueues an iteration: `step` counts from the start, or from the last multiple of the period. Iterations are
    /// recorded: the function may not wait for the backend, must do the same work for the same `step`, and must change
    /// nothing once the recurrence has ended.
    ///
    /// # Errors
    /// If the device fails.
    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, step: usize) -> Result<()>;

    /// The scalars that an iteration sends to the host.
    fn message(&self) -> &B::Slice<Self::Word>;

    /// Completes the sum of the steps after `done` iterations since the start.
    ///
    /// # Errors
    /// If the device fails.
    fn finish(&mut self, _space: &Space<B, C>, _system: System<'_, T, B>, _done: usize) -> Result<()> {
        Ok(())
    }

    /// Lets a recurrence that has converged continue to a smaller aim, with the sum of its steps at zero again. Returns
    /// whether it can.
    ///
    /// # Errors
    /// If the device fails.
    fn resume(&mut self, _space: &Space<B, C>, _aim: Aim<T::Real>) -> Result<bool> {
        Ok(false)
    }

    /// Switches to a more careful form of the method from the next start on, after a fault or a cycle without progress.
    /// Returns whether there is one.
    ///
    /// # Errors
    /// If memory runs out.
    fn fall_back(&mut self, _space: &Space<B, C>, _system: System<'_, T, B>) -> Result<bool> {
        Ok(false)
    }

    /// Returns whether the vector `residual` always is the recurrence's residual.
    fn carries_residual(&self) -> bool {
        false
    }

    /// Does at most `left` iterations in a faster way than one by one, if the method has one. Hands the message of each
    /// to `take`, until that returns false. Returns whether it did.
    ///
    /// # Errors
    /// If the device fails.
    fn at_once(
        &mut self,
        _space: &Space<B, C>,
        _system: System<'_, T, B>,
        _left: usize,
        _take: &mut dyn FnMut(&[Self::Word]) -> bool,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Adds details to a fault that the message does not have, from the vectors as they are.
    ///
    /// # Errors
    /// If the device fails.
    fn explain(
        &mut self,
        _space: &Space<B, C>,
        _system: System<'_, T, B>,
        fault: Outcome,
    ) -> Result<Outcome> {
        Ok(fault)
    }

    /// Compulsory bytes of an iteration: operator, preconditioner and vectors, each counted as often as it must be
    /// moved.
    fn bytes_per_iteration(&self, system: System<'_, T, B>) -> usize;

    /// Bytes that an iteration still moves if it was queued after the last one.
    fn bytes_behind(&self, system: System<'_, T, B>) -> usize {
        self.bytes_per_iteration(system)
    }
}

/// The workspace of a preconditioner.
#[derive(Debug)]
pub struct Room<T: Scalar, B: VectorOps> {
    full: B::Vec<T>,
    narrow: B::Vec<T::Lower>,
}

impl<T: Scalar, B: VectorOps> Room<T, B> {
    /// An empty workspace.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(backend: &B) -> Result<Self> {
        Ok(Self { full: backend.zeros(0)?, narrow: backend.zeros(0)? })
    }

    /// Allocates what `m` needs.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn fit(&mut self, backend: &B, m: &dyn Preconditioner<T, B>) -> Result<()> {
        if B::len(&*self.full) < m.work_len() {
            self.full = backend.zeros(m.work_len())?;
        }
        if B::len(&*self.narrow) < m.narrow_work_len() {
            self.narrow = backend.zeros(m.narrow_work_len())?;
        }
        Ok(())
    }

    /// Borrows the workspace for an application of the preconditioner.
    pub fn workspace(&mut self) -> Workspace<'_, T, B> {
        Workspace { full: &mut self.full, narrow: &mut self.narrow }
    }

    /// z = M^-1 r.
    ///
    /// # Errors
    /// As [`Preconditioner::apply`].
    pub fn apply(
        &mut self,
        backend: &B,
        m: &dyn Preconditioner<T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        m.apply_in(backend, self.workspace(), r, z)
    }
}

/// Makes `buffer` at least `len` long.
pub(super) fn lengthen<T: Scalar, B: VectorOps>(
    backend: &B,
    buffer: &mut B::Vec<T>,
    length: usize,
) -> Result<()> {
    if B::len(&**buffer) < length {
        *buffer = backend.zeros(length)?;
    }
    Ok(())
}
