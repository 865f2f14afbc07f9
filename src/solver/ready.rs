//! What a stage does once it is set up: solve, take new values, tell its history.

use super::SolverBackend;
use super::judging::Judging;
use super::preconditioner::AnyPreconditioner;
use super::report::Evidence;
use super::system::Stored;
use crate::direct::{Kind, RightHandSides};
use crate::error::Result;
use crate::krylov::{Report, SolveOptions};
use crate::matrix::Csr;
use crate::multigrid::LevelFacts;
use crate::operator::LinearOperator;
use crate::scalar::Scalar;
use crate::verdict::RowNorms;
use crate::work::StopRequest;
use std::ops::ControlFlow;
use std::time::Duration;

/// The solve that a stage has to do: A x = b from x.
pub(super) struct Task<'a, 'j, T: Scalar, B: SolverBackend> {
    pub(super) a: &'a dyn LinearOperator<T, B>,
    /// The same matrix, as it is stored.
    pub(super) stored: &'a Stored<T, B>,
    pub(super) b: &'a B::Slice<T>,
    pub(super) x: &'a mut B::Slice<T>,
    /// The norms by which residuals are judged.
    pub(super) norms: &'a mut RowNorms<T, B>,
    /// The maximum number of iterations, if it differs from that of the options.
    pub(super) left: Option<usize>,
    /// The relative tolerance, if it differs from the options.
    pub(super) aim: Option<f64>,
    /// The stop request, for work that does not call the observer.
    pub(super) request: &'a StopRequest,
    /// Decides whether the x of a Krylov method is the solution.
    pub(super) judging: &'a mut Judging<'j>,
}

impl<T: Scalar, B: SolverBackend> Task<'_, '_, T, B> {
    /// The options of a solver, changed by those of this task.
    pub(super) fn options(&self, options: &SolveOptions) -> SolveOptions {
        let mut options = options.clone();
        if let Some(left) = self.left {
            options = options.max_iterations(left);
        }
        if let Some(aim) = self.aim {
            options = options.tolerance(aim).absolute_tolerance(0.0);
        }
        options
    }
}

/// A method with its preconditioner and the memory of both, prepared for a matrix. It never leaves a larger residual
/// than it finds.
pub(super) trait Ready<T: Scalar, B: SolverBackend>: Send {
    /// Solves. `observer(iteration, residual norm)` is called at the start, as iteration 0, and after each iteration.
    fn solve(
        &mut self,
        task: Task<'_, '_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report>;

    /// Residual norms of the last solve.
    fn history(&self) -> &[f64];

    /// Time that the last solve spent in iterations.
    fn iterating(&self) -> Duration;

    /// Takes new values of the same pattern.
    fn update(&mut self, a: &Csr<T, B>) -> Result<()>;

    /// Approximate bytes that an iteration with `a` moves.
    fn bytes(&self, a: &dyn LinearOperator<T, B>) -> f64;

    /// The expected bytes and seconds of these iterations, at `bandwidth` bytes per second.
    fn forecast(&self, a: &dyn LinearOperator<T, B>, iterations: usize, bandwidth: f64) -> (f64, f64) {
        let bytes = iterations as f64 * self.bytes(a);
        (bytes, bytes / bandwidth)
    }

    /// The minimum number of bytes that the last solve moved, or the bytes of the factors.
    fn moved(&self, report: &Report) -> f64 {
        report.iterations as f64 * report.bytes_per_iteration as f64
    }

    /// The trail's remark about the last solve, in addition to its outcome.
    fn remark(&self) -> Option<String> {
        None
    }

    /// The levels of multigrid, if it is the preconditioner.
    fn levels(&self) -> &[LevelFacts] {
        &[]
    }

    /// Kinds of factorisation that failed, and that would fail even with more memory and time.
    fn failed(&self) -> Vec<Kind> {
        Vec::new()
    }

    /// The facts about A that the last solve has found.
    fn evidence(&self) -> Evidence {
        Evidence::default()
    }

    /// Solves A x = b, or A^T x = b, with existing factors, for right-hand sides stored one after another. Returns
    /// false if there are none, or if one product with A does not show that each x is accurate enough; x must then not
    /// be used.
    fn solve_quickly(
        &mut self,
        _transposed: bool,
        _b: RightHandSides<'_, T>,
        _x: &mut [T],
        _norms: &RowNorms<T, B>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// The preconditioner with which conjugate gradients can solve for several right-hand sides together.
    fn for_several(&self) -> Option<&AnyPreconditioner<T, B>> {
        None
    }
}
