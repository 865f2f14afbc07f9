//! A stage of a distributed solver, and how it solves.

use super::Solvable;
use super::SolverBackend;
use super::choice::Candidate;
use super::iterated::RESTART;
use super::judging::Judging;
use super::names::Method;
use super::preconditioner::AnyPreconditioner;
use crate::backend::{Communicator, Space};
use crate::error::Result;
use crate::krylov::{
    self, BiConjugateGradients, Certified, ConjugateGradients, FlexibleMinimalResidual, Krylov,
    LeastSquaresResidual, MinimalResidual, Outcome, Report, SolveOptions,
};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::precondition::Identity;
use crate::scalar::Scalar;
use crate::spread::Edge;
use crate::verdict::{RowNorms, verdict};
use std::ops::ControlFlow;
use std::time::Duration;

/// A candidate with its preconditioner.
pub(super) struct Stage<T: Scalar, B: SolverBackend> {
    pub(super) plan: Candidate,
    /// None for multigrid that is set up only when it is needed.
    pub(super) setup: Option<AnyPreconditioner<T, B>>,
}

/// What stages are set up from: the block of this rank, the entries beside it, and what puts both together on the host.
pub(super) struct Sources<'a, T: Solvable, B: SolverBackend> {
    pub(super) block: Block<T, B>,
    pub(super) edge: Edge<T>,
    #[allow(clippy::type_complexity)]
    pub(super) on_host: &'a dyn Fn(&Block<T, B>, &Edge<T>) -> Result<Csr<T>>,
}

/// The source of preconditioners: the block of a rank's rows and columns, or only the diagonal if nothing else is
/// needed.
pub(super) enum Block<T: Scalar, B: SolverBackend> {
    Rows(Csr<T, B>),
    Diagonal(Result<AnyPreconditioner<T, B>>),
}

impl<T: Scalar, B: SolverBackend> AsRef<Candidate> for Stage<T, B> {
    fn as_ref(&self) -> &Candidate {
        &self.plan
    }
}

/// The solve of a stage.
pub(super) struct Task<'a, 'j, T: Solvable, B: SolverBackend, C: Communicator<B>> {
    pub(super) space: &'a Space<B, C>,
    /// A, and the norms by which its residuals are judged.
    pub(super) system: (&'a dyn LinearOperator<T, B>, &'a mut RowNorms<T, B>),
    pub(super) options: SolveOptions,
    pub(super) b: &'a B::Slice<T>,
    pub(super) x: &'a mut B::Slice<T>,
    pub(super) judging: &'a mut Judging<'j>,
}

/// The report of a stage, its residual norms, and how long it iterated.
pub(super) type Ran = (Report, Vec<f64>, Duration);

/// Called after each iteration.
pub(super) type Observer<'a> = dyn FnMut(usize, f64) -> ControlFlow<()> + 'a;

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> Task<'_, '_, T, B, C> {
    pub(super) fn run(self, stage: &Stage<T, B>, observer: &mut Observer<'_>) -> Result<Ran> {
        let (backend, n) = (self.space.backend(), self.system.0.rows());
        match stage.plan.method {
            Method::Minres => self.with(MinimalResidual::new(backend, n)?, stage, observer),
            Method::Gmres => self.with(FlexibleMinimalResidual::new(backend, n, RESTART)?, stage, observer),
            Method::BiCgStab => self.with(BiConjugateGradients::new(backend, n)?, stage, observer),
            Method::Lsmr => self.with(LeastSquaresResidual::new(backend, n, n)?, stage, observer),
            _ => self.with(ConjugateGradients::new(backend, n)?, stage, observer),
        }
    }

    fn with<M: krylov::Method<T, B, C>>(
        self,
        method: M,
        stage: &Stage<T, B>,
        observer: &mut Observer<'_>,
    ) -> Result<Ran> {
        let (a, norms) = self.system;
        let curvature = match stage.setup {
            Some(AnyPreconditioner::NotPositiveDefinite(curvature)) => Some(curvature),
            _ => None,
        };
        let options = if curvature.is_some() { self.options.max_iterations(0) } else { self.options };
        let mut krylov = Krylov::with_method(self.space.clone(), method, options)?;
        let m = stage
            .setup
            .as_ref()
            .filter(|_| curvature.is_none())
            .map_or(&Identity as _, AnyPreconditioner::get);
        let (space, b, x, judging) = (self.space, self.b, self.x, self.judging);
        let mut report = krylov.solve_judged(
            (a, m),
            b,
            x,
            observer,
            &mut |Certified { x, r, scale, relative, meets }| {
                let told = verdict(space, (a, &mut *norms), (b, x), judging.asked, Some((r, scale)))?;
                Ok(judging.hear::<T>(told, relative, meets))
            },
        )?;
        if let (Some(curvature), Outcome::IterationLimit) = (curvature, report.outcome) {
            report.outcome = Outcome::NotPositiveDefinite { iteration: 0, curvature };
        }
        let iterating = krylov.iterating();
        Ok((report, krylov.into_history(), iterating))
    }
}
