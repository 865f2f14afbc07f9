//! Stage after stage until one solves the system, in the order of the matrix.

use super::SolverBackend;
use super::budgets::SHARE;
use super::group::Group;
use super::names::{Method, PreconditionerChoice};
use super::plan::{Notes, System};
use super::race::{Call, Race, is_left_out};
use super::report::{Seconds, SolveReport, StageReport, Trail, Verdict};
use super::stage::{Plan, Stage, Task};
use super::system::Stored;
use super::trial::Trial;
use super::watch::Watch;
use crate::direct::Kind;
use crate::error::{Error, Result};
use crate::krylov::{Outcome, Report, SolveOptions};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};
use std::ops::ControlFlow;
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
    norm: Norm<T, B>,
    /// What the stage that came last tells.
    verdict: Verdict,
    pub(super) seconds: Seconds,
    device: Arc<str>,
    pub(super) trail: Arc<Trail>,
    pub(super) history: Vec<f64>,
    /// Memory of a race's residual norms, kept so that one solve after the other allocates none.
    falls: Vec<f64>,
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
    fn measure(&mut self, backend: &B, x: &B::Slice<T>) -> Result<Option<f64>> {
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

/// What is said of a stage, and more.
fn with(remark: Option<String>, more: Option<String>) -> Option<String> {
    remark.into_iter().chain(more).reduce(|all, words| format!("{all}; {words}"))
}

/// Iterations, and the factorisation for which they are given up.
struct Rivals<'a, T: Scalar, B: SolverBackend> {
    race: Race,
    factors: &'a mut Stage<T, B>,
    /// Why there is no factorisation.
    refused: Option<String>,
    given_up: bool,
}

/// What a stage is made ready with.
type Means<'a, T, B> = (&'a B, &'a Stored<T, B>, &'a SolveOptions, (&'a [Kind], Option<Instant>));

impl<T: Scalar, B: SolverBackend> Rivals<'_, T, B> {
    /// Whether the iterations are given up with this one.
    fn give_up<'m>(&mut self, norm: f64, means: impl FnOnce() -> Means<'m, T, B>) -> bool
    where
        T: 'm,
        B: 'm,
    {
        self.race.see(norm);
        let mut call = self.race.call();
        if call == Call::Analyse {
            let (backend, a, options, limits) = means();
            let forecast = self.factors.seconds(backend, a, options, limits);
            self.race.learn(forecast.as_ref().copied().unwrap_or(f64::INFINITY));
            self.refused = forecast.err();
            call = self.race.call();
        }
        self.given_up = call == Call::GiveUp;
        self.given_up
    }
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
        self.stages.iter_mut().filter_map(|stage| stage.ready.as_mut()).try_for_each(|ready| ready.update(a))
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

    /// Tries the stages from `first` on, after what `done` tells of.
    pub(super) fn go_on(
        &mut self,
        first: usize,
        done: Option<Report>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        let start = Instant::now();
        let limit = self.options.iteration_limit(self.stored.operator().columns());
        let bandwidth = self.backend.ordering_price().bandwidth;
        let (mut last, mut total) = (first, done);
        let (mut failed, deadline) = (Vec::new(), watch.deadline());
        // Why the stage of a number was refused before its turn; methods that have had so many iterations.
        let (mut refused, mut had, mut indefinite) = (None, Vec::new(), false);
        for number in first..self.stages.len() {
            let begun = Instant::now();
            let before = total.map_or(0, |report| report.iterations);
            let is_last = number + 1 == self.stages.len();
            let (stage, behind) = self.stages[number..].split_first_mut().expect("a stage of this number");
            let plan = stage.plan;
            watch.method = plan.method;
            // Multigrid is for the matrices of conjugate gradients, which have told that this is none.
            let is_of_levels =
                |plan: &Plan| matches!(plan.preconditioner, PreconditionerChoice::Multigrid(_));
            indefinite |=
                total.is_some_and(|report| matches!(report.outcome, Outcome::NotPositiveDefinite { .. }));
            if indefinite && is_of_levels(&plan)
                || plan.indefinite && !indefinite
                || plan.race && is_left_out(plan.method, self.stored.least_seconds(plan.method))
            {
                continue;
            }
            let has_a_turn =
                |next: &Plan| !(next.indefinite && !indefinite || indefinite && is_of_levels(next));
            let comes_next = behind.iter().position(|stage| has_a_turn(&stage.plan));
            let is_direct = |stage: &Stage<T, B>| stage.plan.method == Method::Direct;
            // Of two factorisations in turn the second one may take more: it does what the first would.
            if is_direct(stage) && comes_next.is_some_and(|next| is_direct(&behind[next])) {
                continue;
            }
            let left = limit.saturating_sub(before);
            let share = plan.share.map(|share| (share * left as f64).ceil() as usize).filter(|_| !is_last);
            let what = (plan.method, plan.preconditioner, plan.precision);
            if had.iter().any(|&(other, iterations)| other == what && share.is_some_and(|s| s <= iterations))
            {
                continue;
            }
            let told = &mut Arc::make_mut(&mut self.trail).stages[number];
            if let Some((_, why)) = refused.take_if(|(other, _)| *other == number) {
                told.refused = Some(why);
                continue;
            }
            let ready = match stage.prepare(&self.backend, &self.stored, &self.options, (&failed, deadline)) {
                Ok(ready) => ready,
                // What was reached before stays, and so does the reason why nothing comes behind it.
                Err(error) if total.is_some() || !is_last => {
                    told.refused = Some(error.to_string());
                    continue;
                }
                Err(error) => return Err(error),
            };
            if told.predicted_bytes == 0.0 {
                (told.predicted_bytes, told.predicted_seconds) =
                    ready.forecast(self.stored.operator(), plan.iterations, bandwidth);
            }
            let a = self.stored.operator();
            // The factorisation whose turn comes next, where iterations are given up if that is faster.
            let next = comes_next.filter(|&next| plan.race && is_direct(&behind[next]));
            let second = next.and_then(|next| {
                let behind = behind.iter().enumerate().skip(next + 1);
                behind
                    .clone()
                    .find(|(_, stage)| has_a_turn(&stage.plan))
                    .filter(|(_, stage)| is_direct(stage))
            });
            let next = second.map(|(second, _)| second).or(next);
            let mut rivals = match next {
                Some(next) => {
                    let length = self.norm.measure(&self.backend, b)?.unwrap_or(0.0);
                    let goal = self.options.threshold::<T>(length);
                    let least = self.stored.least_seconds(plan.method);
                    let each = ready.forecast(a, 1, bandwidth).1;
                    let known = behind[next].forecast;
                    let (most, memory) = (share.unwrap_or(left), std::mem::take(&mut self.falls));
                    let race = Race::new((plan.method, each), (least, known), goal, most, memory);
                    Some(Rivals { race, factors: &mut behind[next], refused: None, given_up: false })
                }
                None => None,
            };
            // Iterations of a race end where it says so.
            let left = match share {
                Some(_) if rivals.is_some() => Some((SHARE * left as f64).ceil() as usize),
                Some(share) => Some(share),
                None => total.map(|_| left),
            };
            let task = Task { a, b, x: &mut *x, left, deadline };
            let mut trial = match (plan.preconditioner, share) {
                (PreconditionerChoice::Multigrid(_), share) => Trial::of_levels(share.is_some()),
                (PreconditionerChoice::Ilut(_), Some(most)) => {
                    let length = self.norm.measure(&self.backend, b)?.unwrap_or(0.0);
                    Trial::of_factors(self.options.threshold::<T>(length), most)
                }
                _ => Trial::None,
            };
            let mut report = ready.solve(task, &mut |iteration, norm| {
                if trial.is_futile(iteration, norm) {
                    return ControlFlow::Break(());
                }
                let limits = (&failed[..], deadline);
                if rivals.as_mut().is_some_and(|rivals| {
                    rivals.give_up(norm, || (&self.backend, &self.stored, &self.options, limits))
                }) {
                    return ControlFlow::Break(());
                }
                if iteration > 0 || total.is_none() {
                    return watch.see(0, before + iteration, norm);
                }
                ControlFlow::Continue(())
            })?;
            let skipped = usize::from(!self.history.is_empty());
            self.history.extend(ready.history().iter().skip(skipped));
            self.seconds.iterating += ready.iterating().as_secs_f64();
            let mut remark = ready.remark();
            if let Some(rivals) = rivals {
                if rivals.given_up && report.outcome == Outcome::Interrupted {
                    // It creeps, as what has had its share of the iterations does.
                    report.outcome = Outcome::IterationLimit;
                    let words = rivals.race.words();
                    remark = with(remark, words);
                }
                refused = next.zip(rivals.refused).map(|(next, why)| (number + 1 + next, why));
                self.falls = rivals.race.best;
            }
            self.verdict = ready.verdict();
            failed.extend(ready.failed());
            if trial.was_futile() && report.outcome == Outcome::Interrupted {
                let words = trial.words();
                report.outcome = if words.is_some() { Outcome::IterationLimit } else { Outcome::Stagnated };
                remark = with(remark, words);
            }
            report.outcome = watch.reason(report.outcome);
            told.outcome = Some(report.outcome);
            told.remark = remark;
            had.push((what, report.iterations));
            told.iterations = report.iterations;
            told.bytes = ready.moved(&report);
            told.seconds = begun.elapsed().as_secs_f64();
            told.relative_residual = Some(report.relative_residual);
            let earlier = total.map_or((0, 0), |report| (report.iterations, report.restarts));
            report.iterations += earlier.0;
            report.restarts += earlier.1;
            (last, total) = (number, Some(report));
            let creeps = report.outcome == Outcome::IterationLimit && plan.share.is_some() && !is_last;
            if !is_fault(&report.outcome) && !creeps {
                if report.outcome.is_solved() {
                    self.first = number;
                }
                break;
            }
        }
        // What was made ready for its forecast alone need not be kept.
        for stage in &mut self.stages[last + 1..] {
            stage.ready = stage.ready.take().filter(|_| stage.forecast.is_none());
        }
        self.seconds.solve += start.elapsed().as_secs_f64();
        // What came behind a factorisation that found A singular, and did no better, does not make it regular.
        let fell_short = |outcome: &Outcome| {
            matches!(outcome, Outcome::Stagnated | Outcome::IterationLimit | Outcome::Breakdown { .. })
        };
        if let Some(report) = total.as_mut().filter(|report| fell_short(&report.outcome))
            && self.trail.stages.iter().any(|stage| stage.outcome == Some(Outcome::Singular))
        {
            report.outcome = Outcome::Singular;
        }
        match total {
            Some(report) => self.tell(&report, last, 1, x),
            None => Err(Error::Unsupported("a system without a method".into())),
        }
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
