//! Stages of Krylov methods in full precision.

use super::SolverBackend;
use super::forecast::of_iteration;
use super::judging::judge;
use super::names::{Method, PreconditionerChoice};
use super::preconditioner::AnyPreconditioner;
use super::ready::{Ready, Task};
use crate::error::Result;
use crate::krylov::{self, Certified, Cg, Krylov, Outcome, Report, SolveOptions};
use crate::matrix::Csr;
use crate::multigrid::LevelFacts;
use crate::operator::LinearOperator;
use crate::precondition::Identity;
use crate::prices::iterations::{WITH_INCOMPLETE, WITH_LEVELS};
use crate::scalar::Scalar;
use std::ops::ControlFlow;
use std::time::Duration;

/// Creates the solver of a Krylov method for operators of a given shape.
type Make<T, B, M> = fn(&B, (usize, usize), SolveOptions) -> Result<Krylov<T, B, M>>;

/// A Krylov method with its preconditioner.
pub(super) struct Iterated<T: Scalar, B: SolverBackend, M: krylov::Method<T, B>> {
    backend: B,
    setup: AnyPreconditioner<T, B>,
    method: Method,
    name: PreconditionerChoice,
    options: SolveOptions,
    make: Make<T, B, M>,
    /// Allocated when the stage is first used.
    krylov: Option<Krylov<T, B, M>>,
}

/// The parameters of [`Iterated::new`] that depend on the method.
pub(super) struct Parts<'a, T: Scalar, B: SolverBackend> {
    pub(super) setup: AnyPreconditioner<T, B>,
    pub(super) method: Method,
    pub(super) name: PreconditionerChoice,
    pub(super) options: &'a SolveOptions,
}

impl<T: Scalar, B: SolverBackend, M: krylov::Method<T, B>> Iterated<T, B, M> {
    pub(super) fn new(backend: &B, parts: Parts<'_, T, B>, make: Make<T, B, M>) -> Self {
        let Parts { setup, method, name, options } = parts;
        Self { backend: backend.clone(), setup, method, name, options: options.clone(), make, krylov: None }
    }
}

impl<T: Scalar, B: SolverBackend, M: krylov::Method<T, B>> Ready<T, B> for Iterated<T, B, M> {
    fn solve(
        &mut self,
        task: Task<'_, '_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report> {
        if let AnyPreconditioner::NotPositiveDefinite(curvature) = self.setup {
            return not_started(&self.backend, &self.options, curvature, task, observer);
        }
        let options = task.options(&self.options);
        let Task { a, stored, b, x, norms, judging, .. } = task;
        let krylov = match &mut self.krylov {
            Some(krylov) => {
                krylov.set_options(options)?;
                krylov
            }
            place => place.insert((self.make)(&self.backend, (a.rows(), a.columns()), options)?),
        };
        let backend = &self.backend;
        krylov.solve_judged(
            (a, self.setup.get()),
            b,
            x,
            observer,
            &mut |Certified { x, r, scale, relative, meets }| {
                let told = judge(backend, (stored, &mut *norms), (b, x), judging.asked, Some((r, scale)))?;
                Ok(judging.hear::<T>(told, relative, meets))
            },
        )
    }

    fn history(&self) -> &[f64] {
        self.krylov.as_ref().map_or(&[], |krylov| krylov.history())
    }

    fn iterating(&self) -> Duration {
        self.krylov.as_ref().map_or(Duration::ZERO, |krylov| krylov.iterating())
    }

    fn update(&mut self, a: &Csr<T, B>) -> Result<()> {
        self.setup.update(&self.backend, a, self.method, self.name)
    }

    fn bytes(&self, a: &dyn LinearOperator<T, B>) -> f64 {
        let vector = a.rows().max(a.columns()) * size_of::<T>();
        let preconditioner = match &self.setup {
            AnyPreconditioner::Identity | AnyPreconditioner::NotPositiveDefinite(_) => 0,
            AnyPreconditioner::Jacobi(_) => 2 * a.rows() * size_of::<f32>(),
            other => other.get().bytes() + 2 * vector,
        };
        // Approximate products and vectors of an iteration, from the methods' own tables; for GMRES, a basis in the
        // middle of a cycle.
        let (products, vectors) = match self.method {
            Method::Minres => (1, 13),
            Method::Gmres => (1, 2 * RESTART),
            Method::BiCgStab => (2, 16),
            Method::Lsmr => (2, 16),
            _ => (1, 8),
        };
        (products * a.bytes() + vectors * vector + products * preconditioner) as f64
    }

    fn forecast(&self, a: &dyn LinearOperator<T, B>, iterations: usize, bandwidth: f64) -> (f64, f64) {
        let (each, iterations) = (self.bytes(a), iterations as f64);
        let beside = match &self.setup {
            AnyPreconditioner::Levels(_) => WITH_LEVELS,
            AnyPreconditioner::Incomplete(_) => WITH_INCOMPLETE,
            _ => (0.0, 1.0),
        };
        (iterations * each, iterations * of_iteration::<B>(each, bandwidth, beside))
    }

    fn remark(&self) -> Option<String> {
        match &self.setup {
            AnyPreconditioner::Levels(levels) => Some(levels.told.clone()),
            AnyPreconditioner::Incomplete(factors) => Some(factors.told.clone()),
            _ => None,
        }
    }

    fn levels(&self) -> &[LevelFacts] {
        match &self.setup {
            AnyPreconditioner::Levels(levels) => &levels.facts,
            _ => &[],
        }
    }

    fn for_several(&self) -> Option<&AnyPreconditioner<T, B>> {
        (self.method == Method::Cg).then_some(&self.setup)
    }
}

/// The restart length of GMRES.
pub(super) const RESTART: usize = 30;

/// The restart length with multigrid, if both bases have at most this many scalars in all. A multigrid cycle takes
/// longer than twice as many vectors. A mesh with convection took 148 iterations with a restart after 30, and 76
/// without a restart.
const RESTART_AROUND_LEVELS: usize = 60;
const MOST_OF_BASES: usize = 1 << 28;

/// The restart length with multigrid for `n` unknowns.
pub(super) fn restart_around_levels(n: usize) -> usize {
    if n <= MOST_OF_BASES / (2 * RESTART_AROUND_LEVELS) { RESTART_AROUND_LEVELS } else { RESTART }
}

/// Certifies x as it is, because a diagonal entry has shown that A is not positive definite.
pub(super) fn not_started<T: Scalar, B: SolverBackend>(
    backend: &B,
    options: &SolveOptions,
    curvature: f64,
    Task { a, b, x, .. }: Task<'_, '_, T, B>,
    observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
) -> Result<Report> {
    let mut cg = Cg::new(backend, a.rows(), options.clone().max_iterations(0))?;
    let mut report = cg.solve(a, &Identity, b, x, observer)?;
    if report.outcome == Outcome::IterationLimit {
        report.outcome = Outcome::NotPositiveDefinite { iteration: 0, curvature };
    }
    Ok(report)
}
