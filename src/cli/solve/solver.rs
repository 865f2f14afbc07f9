//! The solver that a system needs, and what goes on where a choice of our own fails.

use super::method::{Stored, System};
use super::preconditioner::Setup;
use super::several::Several;
use residua::backend::{PreconditionSteps, Products};
use residua::krylov::{Cg, Outcome, Refinement, Report, SolveOptions};
use residua::{LinearOperator, Scalar};
use std::ops::ControlFlow;
use std::time::Duration;

/// The memory of the solver that a system needs.
pub(super) enum Solver<T: Scalar, B: PreconditionSteps> {
    Full(Box<Full<T, B>>),
    Several(Box<Several<T, B>>),
    Mixed(Box<Refinement<T, B>>),
    Either(Box<Either<T, B>>),
}

/// Conjugate gradients, and what went on where a preconditioner of our own choice failed.
pub(super) struct Full<T: Scalar, B: PreconditionSteps> {
    cg: Cg<T, B>,
    options: SolveOptions,
    past: Past,
}

impl<T: Scalar, B: PreconditionSteps + Products> Full<T, B> {
    fn solve(
        &mut self,
        backend: &B,
        Stored { operator, preconditioner, .. }: &Stored<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> residua::Result<Report> {
        let (cg, a) = (&mut self.cg, &**operator);
        let report = cg.solve(a, preconditioner.get(), b, x, &mut observer)?;
        self.past = Past { history: self.cg.history().to_vec(), iterating: self.cg.iterating() };
        match preconditioner.rescue() {
            Some(rescue) if is_fault(&report.outcome) => {
                go_on(backend, (a, rescue), &self.options, (report, &mut self.past), b, x, observer)
            }
            _ => Ok(report),
        }
    }
}

/// Refinement, and what went on in full precision.
pub(super) struct Either<T: Scalar, B: PreconditionSteps> {
    refinement: Refinement<T, B>,
    options: SolveOptions,
    past: Past,
}

impl<T: Scalar, B: PreconditionSteps + Products> Either<T, B> {
    fn solve(
        &mut self,
        backend: &B,
        a: &dyn LinearOperator<T, B>,
        (low, rescue): (&Stored<T::Narrow, B>, &Setup<T, B>),
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> residua::Result<Report> {
        let (refinement, operator) = (&mut self.refinement, &*low.operator);
        let report = refinement.solve(a, operator, low.preconditioner.get(), b, x, &mut observer)?;
        self.past =
            Past { history: self.refinement.history().to_vec(), iterating: self.refinement.iterating() };
        // Whatever ended it lies in half the precision, as far as can be told.
        if !is_fault(&report.outcome) {
            return Ok(report);
        }
        go_on(backend, (a, rescue), &self.options, (report, &mut self.past), b, x, observer)
    }
}

/// What is told of a solve's iterations.
#[derive(Default)]
pub(super) struct Past {
    history: Vec<f64>,
    iterating: Duration,
}

/// Whether a solve ended in something that another preconditioner, or more precision, may not meet.
fn is_fault(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Converged | Outcome::Interrupted | Outcome::IterationLimit)
}

/// Goes on from x in full precision, with a preconditioner that promises less.
fn go_on<T: Scalar, B: PreconditionSteps + Products>(
    backend: &B,
    (a, m): (&dyn LinearOperator<T, B>, &Setup<T, B>),
    options: &SolveOptions,
    (first, past): (Report, &mut Past),
    b: &B::Slice<T>,
    x: &mut B::Slice<T>,
    mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
) -> residua::Result<Report> {
    let n = a.rows();
    let left = options.iteration_limit(n).saturating_sub(first.iterations);
    let mut cg = Cg::new(backend, n, options.clone().max_iterations(left))?;
    let mut report = cg.solve(a, m.get(), b, x, |iteration, norm| match iteration {
        0 => ControlFlow::Continue(()),
        _ => observer(first.iterations + iteration, norm),
    })?;
    past.history.extend(cg.history().iter().skip(1));
    past.iterating += cg.iterating();
    report.iterations += first.iterations;
    report.restarts += first.restarts;
    Ok(report)
}

impl<T: Scalar, B: PreconditionSteps + Products> Solver<T, B> {
    pub(super) fn new(backend: &B, system: &System<T, B>, options: SolveOptions) -> residua::Result<Self> {
        let n = system.rows();
        if let Some(several) = Several::new(backend, system, &options)? {
            return Ok(Solver::Several(Box::new(several)));
        }
        match system {
            System::Full(_) => Ok(Solver::Full(Box::new(Full {
                cg: Cg::new(backend, n, options.clone())?,
                options,
                past: Past::default(),
            }))),
            System::Mixed(..) => Refinement::new(backend, n, options).map(|r| Solver::Mixed(Box::new(r))),
            System::Either(..) => Ok(Solver::Either(Box::new(Either {
                refinement: Refinement::new(backend, n, options.clone())?,
                options,
                past: Past::default(),
            }))),
        }
    }

    pub(super) fn solve(
        &mut self,
        backend: &B,
        system: &System<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> residua::Result<Report> {
        if let Some(curvature) = system.bad_diagonal() {
            let outcome = Outcome::NotPositiveDefinite { iteration: 0, curvature };
            return Ok(Report::not_started(outcome, &backend.download(b)?));
        }
        match (self, system) {
            (Solver::Full(full), System::Full(stored)) => full.solve(backend, stored, b, x, observer),
            (Solver::Mixed(refinement), System::Mixed(a, Stored { operator, preconditioner, .. })) => {
                refinement.solve(&**a, &**operator, preconditioner.get(), b, x, observer)
            }
            (Solver::Either(either), System::Either(a, low, rescue)) => {
                either.solve(backend, &**a, (low, &**rescue), b, x, observer)
            }
            _ => unreachable!("a solver is made for its system"),
        }
    }

    pub(super) fn history(&self) -> &[f64] {
        match self {
            Solver::Full(full) => &full.past.history,
            Solver::Several(_) => unreachable!("each of several has a history of its own"),
            Solver::Mixed(refinement) => refinement.history(),
            Solver::Either(either) => &either.past.history,
        }
    }

    /// How long the last solve iterated.
    pub(super) fn iterating(&self) -> Duration {
        match self {
            Solver::Full(full) => full.past.iterating,
            Solver::Several(several) => several.cg.iterating(),
            Solver::Mixed(refinement) => refinement.iterating(),
            Solver::Either(either) => either.past.iterating,
        }
    }
}
