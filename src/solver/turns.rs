//! Stage after stage until one solves the system, in the order of the matrix.

use super::SolverBackend;
use super::choice::race::{Call, Race, is_left_out};
use super::choice::trial::Trial;
use super::choice::{Candidate, When};
use super::core::{Core, is_fault, judge};
use super::judging::Judging;
use super::names::{Method, Precision, PreconditionerChoice};
use super::nullspace::norm;
use super::report::SolveReport;
use super::stage::{Stage, Task};
use super::system::Stored;
use super::watch::Watch;
use crate::direct::Kind;
use crate::error::{Error, Result};
use crate::krylov::{Outcome, Report, SolveOptions};
use crate::prices::budgets::{SHARE, order_seconds, seconds_of_levels};
use crate::scalar::Scalar;
use crate::work::{StopRequest, within_solve};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

const HANDED_OVER: &str = "given up: with incomplete factors fewer are left";

/// Iterations, and the factorisation for which they are given up.
struct Rivals<'a, T: Scalar, B: SolverBackend> {
    race: Race,
    factors: &'a mut Stage<T, B>,
    /// Why there is no factorisation.
    refused: Option<String>,
    /// What the race has called for last.
    call: Call,
}

/// What a stage is made ready with.
type Means<'a, T, B> = (&'a B, &'a Stored<T, B>, &'a SolveOptions, (&'a [Kind], &'a StopRequest));

impl<T: Scalar, B: SolverBackend> Rivals<'_, T, B> {
    /// Whether the iterations are given up with this one.
    fn give_up(&mut self, norm: f64, (backend, a, options, limits): Means<'_, T, B>) -> bool {
        self.race.see(norm);
        self.call = self.race.call();
        if self.call == Call::Analyse {
            let forecast = self.factors.seconds(backend, a, options, limits);
            self.race.learn(forecast.as_ref().copied().unwrap_or(f64::INFINITY));
            self.refused = forecast.err();
            self.call = self.race.call();
        }
        self.have_ended()
    }

    fn have_ended(&self) -> bool {
        matches!(self.call, Call::GiveUp | Call::HandOver)
    }

    /// Why they were given up.
    fn words(&self) -> Option<String> {
        if self.call == Call::HandOver { Some(HANDED_OVER.into()) } else { self.race.words() }
    }
}

/// A method, its preconditioner and its precision.
type What = (Method, PreconditionerChoice, Precision);

/// How far the stages of a solve have come.
struct Course {
    /// The stage that came last, and what all of them came to.
    last: usize,
    total: Option<Report>,
    /// Kinds of factorisation that have failed.
    failed: Vec<Kind>,
    /// Why the stage of a number was refused before its turn.
    refused: Option<(usize, String)>,
    /// Methods that have had so many iterations; all that there are, where they ended in a fault.
    had: Vec<(What, usize)>,
    /// Whether conjugate gradients have told that A is not positive definite.
    indefinite: bool,
    /// Whether the iterations that came last were given up for incomplete factors, in this solve or in one before.
    handed_over: bool,
}

impl Course {
    fn new(first: usize, done: Option<Report>) -> Self {
        let is_definite = |report: &Report| !matches!(report.outcome, Outcome::NotPositiveDefinite { .. });
        let indefinite = done.as_ref().is_some_and(|report| !is_definite(report));
        let (failed, had) = (Vec::new(), Vec::new());
        Self { last: first, total: done, failed, refused: None, had, indefinite, handed_over: false }
    }

    fn iterations(&self) -> usize {
        self.total.as_ref().map_or(0, |report| report.iterations)
    }

    /// Whether a stage is for a matrix like this one, as far as that is known.
    fn suits(&self, plan: &Candidate) -> bool {
        match plan.when {
            When::Always => true,
            When::Definite => !self.indefinite,
            When::Indefinite => self.indefinite,
            When::HandedOver => self.handed_over,
        }
    }

    /// Which of the stages comes next, where that is a factorisation. Of two in turn it is the second one, which may
    /// take more and does what the first would.
    fn next_factors<T: Scalar, B: SolverBackend>(&self, behind: &[Stage<T, B>]) -> Option<usize> {
        let suiting = (0..).zip(behind).filter(|(_, stage)| self.suits(&stage.plan));
        suiting.take_while(|(_, stage)| stage.plan.method == Method::Direct).map(|(number, _)| number).last()
    }

    /// Whether the same was tried with as many iterations.
    fn has_had(&self, what: What, share: Option<usize>) -> bool {
        self.had.iter().any(|&(other, iterations)| other == what && share.is_some_and(|s| s <= iterations))
    }

    /// Takes what a stage came to, and counts what came before it in.
    fn add(&mut self, number: usize, what: What, mut report: Report) -> Report {
        self.indefinite |= matches!(report.outcome, Outcome::NotPositiveDefinite { .. });
        self.had.push((what, if is_fault(&report.outcome) { usize::MAX } else { report.iterations }));
        if let Some(earlier) = &self.total {
            report.iterations += earlier.iterations;
            report.restarts += earlier.restarts;
        }
        (self.last, self.total) = (number, Some(report));
        report
    }
}

/// What is said of a stage, and more.
fn with(remark: Option<String>, more: Option<String>) -> Option<String> {
    remark.into_iter().chain(more).reduce(|all, words| format!("{all}; {words}"))
}

impl<T: Scalar, B: SolverBackend> Core<T, B> {
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
        let mut course = Course::new(first, done);
        course.handed_over = self.stages.get(first).is_some_and(|stage| stage.plan.when == When::HandedOver);
        for number in first..self.stages.len() {
            if self.is_due(number, &course) && self.take_turn(number, &mut course, b, x, watch)?.is_break() {
                break;
            }
        }
        let Course { last, total, .. } = course;
        // What was made ready for its forecast alone need not be kept.
        for stage in &mut self.stages[last + 1..] {
            stage.ready = stage.ready.take().filter(|_| stage.forecast.is_none());
        }
        self.seconds.solve += start.elapsed().as_secs_f64();
        match total {
            Some(report) => self.tell(&report, last, 1, (b, x)),
            None => Err(Error::Unsupported("a system without a method".into())),
        }
    }

    /// Whether a stage has a turn.
    fn is_due(&self, number: usize, course: &Course) -> bool {
        let (plan, behind) = (&self.stages[number].plan, &self.stages[number + 1..]);
        let comes_at_once = plan.race && is_left_out(plan.method, self.stored.least_seconds(plan.method));
        let is_outdone = plan.method == Method::Direct && course.next_factors(behind).is_some();
        course.suits(plan) && !comes_at_once && !is_outdone
    }

    /// Makes a stage ready; none where it is refused, for which its reason is told.
    fn make_ready(&mut self, number: usize, course: &mut Course, request: &StopRequest) -> Result<bool> {
        let told = &mut Arc::make_mut(&mut self.trail).stages[number];
        if let Some((_, why)) = course.refused.take_if(|(other, _)| *other == number) {
            told.refused = Some(why);
            return Ok(false);
        }
        let is_last = number + 1 == self.stages.len();
        let stage = &mut self.stages[number];
        let iterations = stage.plan.iterations;
        match stage.prepare(&self.backend, &self.stored, &self.options, (&course.failed, request)) {
            Ok(ready) => {
                if told.predicted_bytes.is_none() {
                    let bandwidth = self.backend.ordering_price().bandwidth;
                    let (bytes, seconds) = ready.forecast(self.stored.operator(), iterations, bandwidth);
                    (told.predicted_bytes, told.predicted_seconds) = (Some(bytes), Some(seconds));
                }
                Ok(true)
            }
            Err(Error::Stopped) => Err(Error::Stopped),
            // What was reached before stays, and so does the reason why nothing comes behind it.
            Err(error) if course.total.is_some() || !is_last => {
                told.refused = Some(error.to_string());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Solves with a stage, and tells what it came to; whether the solve is over with it.
    fn take_turn(
        &mut self,
        number: usize,
        course: &mut Course,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<ControlFlow<()>> {
        let (begun, request) = (Instant::now(), watch.request());
        let (plan, before) = (self.stages[number].plan, course.iterations());
        let is_last = number + 1 == self.stages.len();
        watch.method = plan.method;
        let left = self.options.iteration_limit(self.stored.operator().columns()).saturating_sub(before);
        let share = plan.share.map(|share| (share * left as f64).ceil() as usize).filter(|_| !is_last);
        let what = (plan.method, plan.preconditioner, plan.precision);
        if course.has_had(what, share) {
            return Ok(ControlFlow::Continue(()));
        }
        match self.make_ready(number, course, &request) {
            Ok(true) => {}
            Ok(false) => return Ok(ControlFlow::Continue(())),
            Err(Error::Stopped) => return self.end_early(number, course, b, x, watch),
            Err(error) => return Err(error),
        }
        // The factorisation whose turn comes next, where iterations are given up if that is faster.
        let next = course.next_factors(&self.stages[number + 1..]).filter(|_| plan.race);
        let with_levels = matches!(plan.preconditioner, PreconditionerChoice::Multigrid(_));
        let with_fill = matches!(plan.preconditioner, PreconditionerChoice::Ilut(_));
        let is_judged = next.is_some() || share.is_some() && (with_levels || with_fill || plan.may_go_on);
        let length = if is_judged { norm(&self.backend, b)? } else { 0.0 };
        let goal = self.options.threshold::<T>(if length.is_finite() { length } else { 0.0 });
        let mut trial = match share {
            Some(most) if with_levels => Trial::of_levels(plan.method, goal, most),
            Some(most) if with_fill => Trial::of_factors(goal, most),
            Some(most) if plan.may_go_on => Trial::of_budget(goal, most),
            _ => Trial::None,
        };
        let asked = self.asked();
        let a = self.stored.operator();
        let (stage, behind) = self.stages[number..].split_first_mut().expect("a stage of this number");
        let ready = stage.ready.as_mut().expect("a stage that was made ready");
        let mut rivals = next.map(|next| {
            let least = match self.stored.least_seconds(plan.method) {
                // A factorisation that is as fast has had its turn.
                least if with_levels => least.max(seconds_of_levels(self.stored.nonzeros())),
                least => least,
            };
            let each = ready.forecast(a, 1, self.backend.ordering_price().bandwidth).1;
            let (most, memory) = (share.unwrap_or(left), std::mem::take(&mut self.falls));
            let analysis = order_seconds([a.rows(), self.stored.nonzeros(), self.norms.longest()]);
            let behind_it = (least, behind[next].forecast, analysis);
            let race = Race::new((plan.method, with_levels, each), behind_it, goal, most, memory);
            let takes_over = behind[0].plan.when == When::HandedOver;
            let incomplete = takes_over.then(|| self.stored.factors_seconds(ready.bytes(a)));
            let race = race.with_factors(incomplete);
            Rivals { race, factors: &mut behind[next], refused: None, call: Call::GoOn }
        });
        // Iterations of a race end where it says so, and those that may go on where their slope does.
        let left = match share {
            Some(_) if rivals.is_some() || plan.may_go_on => Some((SHARE * left as f64).ceil() as usize),
            Some(share) => Some(share),
            None => course.total.map(|_| left),
        };
        let (is_first, failed) = (course.total.is_none(), &course.failed[..]);
        self.judged = None;
        let (sought, stored) = (Cell::new(None), &self.stored);
        let mut judging = Judging::new(&asked, &sought);
        let (norms, aim) = (&mut self.norms, self.aim);
        let task =
            Task { a, stored, b, x: &mut *x, norms, left, aim, request: &request, judging: &mut judging };
        let mut hear = |iteration: usize, norm: f64| {
            if let Some(next) = sought.take() {
                trial.seek(next * length);
                rivals.iter_mut().for_each(|rivals| rivals.race.seek(next * length));
            }
            let means = (&self.backend, stored, &self.options, (failed, &request));
            if trial.is_futile(iteration, norm)
                || rivals.as_mut().is_some_and(|rivals| rivals.give_up(norm, means))
            {
                return ControlFlow::Break(());
            }
            if iteration > 0 || is_first {
                return watch.see(0, before + iteration, norm);
            }
            ControlFlow::Continue(())
        };
        let solved = match plan.method {
            // It has long steps that no observer hears of.
            Method::Direct => within_solve(&request, || ready.solve(task, &mut hear)),
            _ => ready.solve(task, &mut hear),
        };
        if let Err(Error::Stopped) = solved {
            stage.ready = None;
            return self.end_early(number, course, b, x, watch);
        }
        let mut report = solved?;
        let skipped = usize::from(!self.history.is_empty());
        self.history.extend(ready.history().iter().skip(skipped));
        let is_open = judging.is_open(&report.outcome);
        self.judged = judging.last;
        if is_open {
            self.judged = Some(judge(&self.backend, (&self.stored, &mut self.norms), (b, x), &asked, None)?);
        }
        let missed = self.judged.filter(|judged| !judged.met).map(|judged| judged.row_wise());
        report.outcome = match self.judged {
            Some(judged) if judged.met => Outcome::Converged,
            Some(_) if report.outcome == Outcome::Converged => Outcome::Stagnated,
            _ => report.outcome,
        };
        let mut remark = ready.remark();
        if let Some(row_wise) = missed {
            remark = with(remark, Some(format!("row by row the relative residual stays at {row_wise:.1e}")));
        }
        if let Some(rivals) = rivals {
            if rivals.have_ended() && report.outcome == Outcome::Interrupted {
                // It creeps, as what has had its share of the iterations does.
                report.outcome = Outcome::IterationLimit;
                remark = with(remark, rivals.words());
            }
            course.handed_over = rivals.call == Call::HandOver;
            course.refused = next.zip(rivals.refused).map(|(next, why)| (number + 1 + next, why));
            self.falls = rivals.race.best;
        }
        if trial.was_futile() && report.outcome == Outcome::Interrupted {
            let words = trial.words();
            report.outcome = if words.is_some() { Outcome::IterationLimit } else { Outcome::Stagnated };
            remark = with(remark, words);
        }
        report.outcome = watch.reason(report.outcome);
        self.seconds.iterating += ready.iterating().as_secs_f64();
        self.evidence.add(ready.evidence());
        course.failed.extend(ready.failed());
        let told = &mut Arc::make_mut(&mut self.trail).stages[number];
        let creeps = report.outcome == Outcome::IterationLimit && plan.share.is_some() && !is_last;
        told.outcome = Some(if creeps { Outcome::GivenUp } else { report.outcome });
        told.remark = remark;
        told.levels = ready.levels().to_vec();
        told.iterations = report.iterations;
        told.bytes = ready.moved(&report);
        told.seconds = begun.elapsed().as_secs_f64();
        told.relative_residual = Some(report.relative_residual);
        let report = course.add(number, what, report);
        if is_fault(&report.outcome) || creeps {
            return Ok(ControlFlow::Continue(()));
        }
        if matches!(report.outcome, Outcome::Converged | Outcome::LeastSquares) {
            self.first = number;
        }
        Ok(ControlFlow::Break(()))
    }
    /// Ends a solve in the setup of a stage, or in a step of its factorisation: x is what it was before.
    fn end_early(
        &mut self,
        number: usize,
        course: &mut Course,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<ControlFlow<()>> {
        let outcome = watch.stopped();
        let report = match course.total.take() {
            Some(report) => Report { outcome, ..report },
            None => {
                let judged = self.judge(b, x)?;
                self.history.push(judged.residual);
                self.judged = Some(judged);
                Report::of_factor(outcome, 0, judged.residual, judged.relative())
            }
        };
        Arc::make_mut(&mut self.trail).stages[number].outcome = Some(outcome);
        (course.last, course.total) = (number, Some(report));
        Ok(ControlFlow::Break(()))
    }
}
