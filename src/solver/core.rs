//! A matrix with its stages, and what is told of a solve. How they take turns is in `turns`.

use super::SolverBackend;
use super::group::Group;
use super::names::Method;
use super::plan::{Notes, System};
use super::report::{Seconds, SolveReport, StageReport, Trail, Verdict};
use super::stage::Stage;
use super::system::Stored;
use super::watch::Watch;
use crate::error::Result;
use crate::krylov::{Outcome, Report, SolveOptions};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};
use crate::work;
use std::sync::Arc;
use std::time::Instant;

/// A matrix with its stages, and what they have come to.
pub(super) struct Core<T: Scalar, B: SolverBackend> {
    pub(super) backend: B,
    pub(super) options: SolveOptions,
    pub(super) stored: Stored<T, B>,
    pub(super) stages: Vec<Stage<T, B>>,
    /// The stage to begin with: those before it ended in a fault with these values, and a later one solved.
    pub(super) first: usize,
    pub(super) group: Option<Group<T, B>>,
    pub(super) norm: Norm<T, B>,
    /// What the stage that came last tells.
    pub(super) verdict: Verdict,
    pub(super) seconds: Seconds,
    device: Arc<str>,
    pub(super) trail: Arc<Trail>,
    pub(super) history: Vec<f64>,
    /// Memory of a race's residual norms, kept so that one solve after the other allocates none.
    pub(super) falls: Vec<f64>,
    /// Those of several right-hand sides.
    histories: Vec<Vec<f64>>,
}

/// The Frobenius norm of A, and a place for what a norm is read from.
pub(super) struct Norm<T: Scalar, B: SolverBackend> {
    square: B::Vec<T::Real>,
    /// None where it is beyond the range of the type.
    value: Option<f64>,
}

impl<T: Scalar, B: SolverBackend> Norm<T, B> {
    /// From the values of the entries.
    pub(super) fn of(backend: &B, values: &B::Slice<T>) -> Result<Self> {
        let mut norm = Self { square: backend.zeros(1)?, value: None };
        norm.value = norm.measure(backend, values)?;
        Ok(norm)
    }

    /// The 2-norm of a vector, where it is within the range of the type.
    pub(super) fn measure(&mut self, backend: &B, x: &B::Slice<T>) -> Result<Option<f64>> {
        backend.norm2_squared(x, &mut self.square)?;
        let square = backend.value(&self.square)?.to_f64();
        Ok((square.is_finite() && square > 0.0).then(|| square.sqrt()))
    }
}

/// ||r|| / (||A|| ||x|| + ||b||), where the norm of A is known and all is finite.
pub(super) fn backward_error(
    report: &Report,
    norm: Option<f64>,
    length: impl FnOnce() -> Result<f64>,
) -> Result<Option<f64>> {
    let (residual, relative) = (report.residual_norm, report.relative_residual);
    if residual == 0.0 {
        return Ok(Some(0.0));
    }
    let Some(norm) = norm.filter(|_| residual.is_finite() && relative > 0.0) else { return Ok(None) };
    let error = residual / (norm * length()? + residual / relative);
    Ok(Some(error).filter(|error| error.is_finite()))
}

/// Whether a solve ended in something that another method, another preconditioner or more precision may not meet.
pub(super) fn is_fault(outcome: &Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Converged
            | Outcome::LeastSquares
            | Outcome::Interrupted
            | Outcome::IterationLimit
            | Outcome::TimeLimit
    )
}

impl<T: Scalar, B: SolverBackend> Core<T, B> {
    pub(super) fn new(
        backend: &B,
        System { stored, stages, .. }: System<T, B>,
        options: SolveOptions,
        Notes { decisions, seconds }: Notes,
        norm: Norm<T, B>,
    ) -> Self {
        let mut core = Self {
            device: backend.description().into(),
            backend: backend.clone(),
            options,
            stored,
            stages,
            first: 0,
            group: None,
            norm,
            verdict: Verdict::default(),
            seconds,
            trail: Arc::new(Trail { decisions, stages: Vec::new() }),
            history: Vec::new(),
            histories: Vec::new(),
            falls: Vec::new(),
        };
        core.announce();
        core
    }

    /// Puts another system of the same matrix in the place of this one.
    pub(super) fn replace(&mut self, System { stored, stages, .. }: System<T, B>, notes: Notes) {
        (self.stored, self.stages, self.first) = (stored, stages, 0);
        let trail = Arc::make_mut(&mut self.trail);
        trail.decisions.retain(|old| notes.decisions.iter().all(|new| new.subject != old.subject));
        trail.decisions.extend(notes.decisions);
        self.announce();
    }

    /// Lists the stages in the trail.
    fn announce(&mut self) {
        let (a, bandwidth) = (self.stored.operator(), self.backend.ordering_price().bandwidth);
        let told = self.stages.iter().map(|Stage { plan, ready, .. }| {
            let expected =
                ready.as_ref().map_or((0.0, 0.0), |ready| ready.forecast(a, plan.iterations, bandwidth));
            let what = (plan.method, plan.preconditioner, plan.precision);
            StageReport::listed(what, plan.why, (plan.iterations, expected.0, expected.1))
        });
        let told = told.collect();
        Arc::make_mut(&mut self.trail).stages = told;
    }

    pub(super) fn stored(&self) -> &Stored<T, B> {
        &self.stored
    }

    /// The matrix, where its values can be replaced.
    pub(super) fn open_mut(&mut self) -> Option<&mut Csr<T, B>> {
        match &mut self.stored {
            Stored::Open(a) => Some(a),
            _ => None,
        }
    }

    /// Sets the stages up for the values that the matrix has now.
    pub(super) fn update(&mut self) -> Result<()> {
        // Where iterations were given up for a factorisation, that begins with the new values.
        let by_factors = self.stages[self.first].plan.method == Method::Direct
            && self.stages[..self.first].iter().all(|stage| stage.plan.race);
        self.first = if by_factors { self.first } else { 0 };
        let Stored::Open(a) = &self.stored else { return Ok(()) };
        for stage in &mut self.stages {
            // What ends in an error, or was asked for its end, is not put back: it is set up anew when its turn comes.
            if let Some(mut ready) = stage.ready.take() {
                ready.update(a)?;
                work::check();
                stage.ready = Some(ready);
            }
        }
        Ok(())
    }

    /// Takes the norm of new values down, and the time since `start` as that of the update.
    pub(super) fn measure(&mut self, values: &B::Slice<T>, start: Instant) -> Result<()> {
        self.norm.value = self.norm.measure(&self.backend, values)?;
        self.seconds.update = start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Solves from x, in the order of the matrix.
    pub(super) fn solve(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        self.begin();
        self.go_on(self.first, None, b, x, watch)
    }

    pub(super) fn begin(&mut self) {
        self.history.clear();
        (self.seconds.solve, self.seconds.iterating) = (0.0, 0.0);
        self.verdict = Verdict::default();
        Arc::make_mut(&mut self.trail).stages.iter_mut().for_each(StageReport::clear);
    }

    /// The report of a solve that ended with a stage.
    pub(super) fn tell(
        &mut self,
        report: &Report,
        stage: usize,
        at_once: usize,
        x: &B::Slice<T>,
    ) -> Result<SolveReport> {
        let plan = self.stages[stage].plan;
        Ok(SolveReport {
            outcome: report.outcome,
            method: plan.method,
            preconditioner: plan.preconditioner,
            precision: plan.precision,
            iterations: report.iterations,
            restarts: report.restarts,
            residual_norm: report.residual_norm,
            relative_residual: report.relative_residual,
            backward_error: backward_error(report, self.norm.value, || {
                // Where a method has measured x, nothing waits for the device once more.
                let measured =
                    report.solution_norm.map_or_else(|| self.norm.measure(&self.backend, x), |n| Ok(Some(n)));
                Ok(measured?.unwrap_or(0.0))
            })?,
            condition: self.verdict.condition,
            digits: self.verdict.digits,
            normal_residual: self.verdict.normal_residual,
            outside_range: None,
            unmatched: self.verdict.unmatched.clone(),
            memory_needed: self.verdict.memory_needed,
            bytes_per_iteration: report.bytes_per_iteration,
            at_once,
            seconds: self.seconds,
            format: self.stored.format(),
            stored: self.stored.values(),
            device: Arc::clone(&self.device),
            trail: Arc::clone(&self.trail),
        })
    }

    pub(super) fn forget_histories(&mut self) {
        self.histories.clear();
    }

    /// Keeps the history of the last solve as that of the next of several right-hand sides.
    pub(super) fn keep_history(&mut self) {
        self.histories.push(self.history.clone());
    }

    /// Residual norms of a right-hand side of the last solve.
    pub(super) fn history(&self, right_hand_side: usize) -> &[f64] {
        match self.histories.get(right_hand_side) {
            Some(history) => history,
            None if right_hand_side == 0 => &self.history,
            None => &[],
        }
    }
}
