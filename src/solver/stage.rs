//! A stage: a method with its preconditioner in a precision, one of those that a solver tries in turn.
//!
//! A method is added in three steps: a file beside `cg` that implements [`Ready`], a match arm in [`Stage::prepare`],
//! and its place in the lists of `plan`.

use super::SolverBackend;
use super::cg::Full;
use super::names::{Method, Precision, PreconditionerChoice};
use super::preconditioner::Setup;
use super::system::Stored;
use crate::error::{Error, Result};
use crate::krylov::{Report, SolveOptions};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::scalar::Scalar;
use std::ops::ControlFlow;
use std::time::Duration;

/// The solve that a stage is asked for: A x = b from x.
pub(super) struct Task<'a, T: Scalar, B: SolverBackend> {
    pub(super) a: &'a dyn LinearOperator<T, B>,
    pub(super) b: &'a B::Slice<T>,
    pub(super) x: &'a mut B::Slice<T>,
    /// The most iterations, where that is not what the options say.
    pub(super) left: Option<usize>,
}

/// A method with its preconditioner and the memory of both. It leaves no larger residual than it finds.
pub(super) trait Ready<T: Scalar, B: SolverBackend>: Send + Sync {
    /// Solves. `observer(iteration, residual norm)` sees the start, as iteration 0, and each iteration.
    fn solve(
        &mut self,
        task: Task<'_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report>;

    /// Residual norms of the last solve.
    fn history(&self) -> &[f64];

    /// How long the last solve iterated.
    fn iterating(&self) -> Duration;

    /// Takes new values of the same pattern over.
    fn update(&mut self, a: &Csr<T, B>) -> Result<()>;

    /// Bytes that an iteration with `a` moves, about.
    fn bytes(&self, a: &dyn LinearOperator<T, B>) -> f64;

    /// The preconditioner with which conjugate gradients can take several right-hand sides at once.
    fn for_several(&self) -> Option<&Setup<T, B>> {
        None
    }
}

/// What a stage is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) method: Method,
    pub(super) preconditioner: PreconditionerChoice,
    pub(super) precision: Precision,
    pub(super) why: &'static str,
    /// Iterations to be expected.
    pub(super) iterations: usize,
}

/// A stage, and what it takes once it is set up.
pub(super) struct Stage<T: Scalar, B: SolverBackend> {
    pub(super) plan: Plan,
    pub(super) ready: Option<Box<dyn Ready<T, B>>>,
}

impl<T: Scalar, B: SolverBackend> Stage<T, B> {
    /// A stage that is set up when its turn comes.
    pub(super) fn later(plan: Plan) -> Self {
        Self { plan, ready: None }
    }

    /// A stage that is set up.
    pub(super) fn new(plan: Plan, ready: impl Ready<T, B> + 'static) -> Self {
        Self { plan, ready: Some(Box::new(ready)) }
    }

    /// Sets the stage up for a matrix, unless it is.
    pub(super) fn prepare(
        &mut self,
        backend: &B,
        a: &Stored<T, B>,
        options: &SolveOptions,
    ) -> Result<&mut Box<dyn Ready<T, B>>> {
        let made: Box<dyn Ready<T, B>> = match self.ready.take() {
            Some(ready) => ready,
            None => match self.plan.method {
                Method::Cg => {
                    let name = self.plan.preconditioner;
                    let setup = match a {
                        Stored::Open(a) => Setup::new(backend, a, name)?,
                        other => Setup::new(backend, &other.to_csr(backend)?, name)?,
                    };
                    Box::new(Full::new(backend, setup, name, options))
                }
                method => return Err(not_there(method)),
            },
        };
        Ok(self.ready.insert(made))
    }
}

/// Refuses a method.
pub(super) fn not_there(method: Method) -> Error {
    Error::Unsupported(format!("method {method}: only cg is there so far"))
}
