//! What a Krylov method tells its driver: how it starts, and how it iterates.
//!
//! A method is a recurrence and nothing else. From a residual r = b - A x, it makes steps whose sum is to be added to
//! x. The [driver](super::Krylov) does what all methods have in common: it makes the first residual, records
//! iterations and replays them, hears of their norms, watches for stagnation, computes b - A x anew where a method says
//! that it has converged, and starts it again where that does not do.

use super::Outcome;
use crate::backend::{Alone, Communicator, Space, VectorOps};
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::precondition::{Preconditioner, Workspace};
use crate::scalar::Scalar;
use std::fmt::{self, Debug};

/// A, and M near it.
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
    /// The residual that the recurrence starts from, as long as b; afterwards its own, where it carries one.
    pub residual: &'a mut B::Slice<T>,
    /// Room as long as b: where a certificate computes b - A x.
    pub scratch: &'a mut B::Slice<T>,
}

impl<T: Scalar, B: VectorOps> Debug for Vectors<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vectors of {} and {}", B::len(self.steps), B::len(self.residual))
    }
}

/// When a recurrence has converged.
#[derive(Debug, Clone, Copy)]
pub struct Aim<R> {
    /// ||r||^2 is at most this.
    pub square: R,
    /// Or, for a method of least squares, ||A^H r|| is at most this times ||A|| ||r||.
    pub gradient: f64,
}

/// A Krylov method on vectors of a space. All vectors are in units of the driver's, so that their squares neither
/// overflow nor underflow.
///
/// `examples/own_method.rs` in the repository adds one.
pub trait Method<T: Scalar, B: VectorOps, C: Communicator<B> = Alone>: Debug + Send {
    /// The type of the scalars that an iteration tells: status, r.r and curvature
    /// ([`Slot`](crate::backend::Slot)).
    type Word: Scalar<Real = T::Real>;

    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Rows and columns of the operators that it was made for.
    fn shape(&self) -> (usize, usize);

    /// After how many iterations the work is the same again, addresses and all: buffers that change places make it 2.
    fn period(&self) -> usize {
        1
    }

    /// After how many iterations the method has to be started again, if at all.
    fn cycle(&self) -> Option<usize> {
        None
    }

    /// Whether the goal is the least-squares solution, where b - A x cannot be made zero.
    fn is_least_squares(&self) -> bool {
        false
    }

    /// Whether the last iterate is worth more than one with a smaller residual where the iterations run out: that of
    /// conjugate gradients has the smallest error in the A-norm.
    fn last_iterate_counts(&self) -> bool {
        false
    }

    /// Takes the memory that this system needs beyond what the method has already; called before each solve.
    ///
    /// # Errors
    /// Without memory.
    fn fit(&mut self, _space: &Space<B, C>, _system: System<'_, T, B>) -> Result<()> {
        Ok(())
    }

    /// Its vectors for the driver.
    fn vectors(&mut self) -> Vectors<'_, T, B>;

    /// Starts the recurrence from the residual, with steps that sum up to zero.
    ///
    /// # Errors
    /// When the device fails.
    fn start(&mut self, space: &Space<B, C>, system: System<'_, T, B>, aim: Aim<T::Real>) -> Result<()>;

    /// Enqueues an iteration: `step` counts from the start, or from the last multiple of the period. This is what is
    /// recorded: it may not wait for the backend, must do the same work for the same `step`, and must change nothing
    /// once the recurrence has ended.
    ///
    /// # Errors
    /// When the device fails.
    fn iterate(&mut self, space: &Space<B, C>, system: System<'_, T, B>, step: usize) -> Result<()>;

    /// The scalars that an iteration tells.
    fn message(&self) -> &B::Slice<Self::Word>;

    /// Completes the sum of the steps after `done` iterations since the start.
    ///
    /// # Errors
    /// When the device fails.
    fn finish(&mut self, _space: &Space<B, C>, _system: System<'_, T, B>, _done: usize) -> Result<()> {
        Ok(())
    }

    /// Lets a recurrence that has converged go on to a smaller aim, its steps summed up from zero again. Returns
    /// whether it can.
    ///
    /// # Errors
    /// When the device fails.
    fn resume(&mut self, _space: &Space<B, C>, _aim: Aim<T::Real>) -> Result<bool> {
        Ok(false)
    }

    /// Takes a more careful form from the next start on, where the method has one left: the last recurrence ended in a
    /// fault, or gained nothing. Returns whether it has.
    ///
    /// # Errors
    /// Without memory.
    fn fall_back(&mut self, _space: &Space<B, C>, _system: System<'_, T, B>) -> Result<bool> {
        Ok(false)
    }

    /// Whether the vector `residual` is the recurrence's residual at all times.
    fn carries_residual(&self) -> bool {
        false
    }

    /// Does the iterations by itself where it has a faster way than one after the other, at most `left`, and hands the
    /// message of each to `take`, until that returns false. Returns whether it did.
    ///
    /// # Errors
    /// When the device fails.
    fn at_once(
        &mut self,
        _space: &Space<B, C>,
        _system: System<'_, T, B>,
        _left: usize,
        _take: &mut dyn FnMut(&[Self::Word]) -> bool,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Says more of a fault than the message does, from the vectors as they are.
    ///
    /// # Errors
    /// When the device fails.
    fn explain(
        &mut self,
        _space: &Space<B, C>,
        _system: System<'_, T, B>,
        fault: Outcome,
    ) -> Result<Outcome> {
        Ok(fault)
    }

    /// Compulsory bytes of an iteration: operator, preconditioner and vectors, each as often as it must be moved.
    fn bytes_per_iteration(&self, system: System<'_, T, B>) -> usize;

    /// Bytes that an iteration moves which is queued behind the last one.
    fn bytes_behind(&self, system: System<'_, T, B>) -> usize {
        self.bytes_per_iteration(system)
    }
}

/// The memory that a preconditioner computes in.
#[derive(Debug)]
pub struct Room<T: Scalar, B: VectorOps> {
    full: B::Vec<T>,
    narrow: B::Vec<T::Narrow>,
}

impl<T: Scalar, B: VectorOps> Room<T, B> {
    /// None yet.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(backend: &B) -> Result<Self> {
        Ok(Self { full: backend.zeros(0)?, narrow: backend.zeros(0)? })
    }

    /// Takes what `m` needs.
    ///
    /// # Errors
    /// Without memory.
    pub fn fit(&mut self, backend: &B, m: &dyn Preconditioner<T, B>) -> Result<()> {
        if B::len(&*self.full) < m.work_len() {
            self.full = backend.zeros(m.work_len())?;
        }
        if B::len(&*self.narrow) < m.narrow_work_len() {
            self.narrow = backend.zeros(m.narrow_work_len())?;
        }
        Ok(())
    }

    /// The memory, for an application.
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

/// Makes `buffer` as long as asked for, where it is shorter.
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
