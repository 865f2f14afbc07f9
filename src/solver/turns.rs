//! Tries one stage after another until one solves the system, in the order of the stored matrix.

use super::SolverBackend;
use super::choice::{Costs, Course, Pace, Turn, When, is_left_out, refuses_factors, refuses_trial};
use super::core::Core;
use super::judging::{Judging, judge, nearest};
use super::names::Method;
use super::nullspace::norm;
use super::ready::Task;
use super::report::SolveReport;
use super::watch::Watch;
use crate::backend::PreconditionSteps;
use crate::error::{Error, Result};
use crate::krylov::{Outcome, Report};
use crate::scalar::Scalar;
use crate::work::{StopRequest, within_solve};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Joins two optional remarks.
fn with(remark: Option<String>, more: Option<String>) -> Option<String> {
    remark.into_iter().chain(more).reduce(|all, words| format!("{all}; {words}"))
}

impl<T: Scalar, B: SolverBackend> Core<T, B> {
    /// Tries the stages from `first` on, after the iterations that `done` reports.
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
        let when = self.stages.get(first).map(|stage| stage.plan.when);
        course.handed_over = when.is_some_and(When::is_handed_over);
        course.costly = when == Some(When::BeforeCostly);
        let limit = self.options.iteration_limit(self.stored.operator().columns());
        let mut from = first;
        while let Some(turn) = self.next(from, limit, &course) {
            if self.take_turn(&turn, &mut course, b, x, watch)?.is_break() {
                break;
            }
            from = turn.number + 1;
        }
        let Course { last, total, .. } = course;
        // A stage that was prepared only for its forecast is dropped.
        for stage in &mut self.stages[last + 1..] {
            stage.ready = stage.ready.take().filter(|_| stage.forecast.is_none());
        }
        self.seconds.solve += start.elapsed().as_secs_f64();
        match total {
            Some(report) => self.tell(&report, last, 1, (b, x)),
            None => Err(Error::Unsupported("a system without a method".into())),
        }
    }

    /// Returns the next stage to try.
    fn next(&self, from: usize, limit: usize, course: &Course) -> Option<Turn> {
        let is_soon = |method| is_left_out(method, self.least_seconds(method));
        course.next(from, &self.stages, limit, is_soon)
    }

    /// The minimum seconds of a factorisation for a matrix that suits `method`.
    fn least_seconds(&self, method: Method) -> f64 {
        self.narrow_band().unwrap_or_else(|| self.stored.least_seconds(method))
    }

    /// Sets up a stage. Returns false if it is refused, and records the reason.
    fn make_ready(&mut self, number: usize, course: &mut Course, request: &StopRequest) -> Result<bool> {
        let told = &mut Arc::make_mut(&mut self.trail).stages[number];
        if let Some((_, why)) = course.refused.take_if(|(other, _)| *other == number) {
            told.refused = Some(why);
            return Ok(false);
        }
        let is_last = number + 1 == self.stages.len();
        if let Some(why) = self.refuses_unseen(number) {
            Arc::make_mut(&mut self.trail).stages[number].refused = Some(why);
            return Ok(false);
        }
        let told = &mut Arc::make_mut(&mut self.trail).stages[number];
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
            // The result so far is kept, and so is the reason why no stage follows it.
            Err(error) if course.total.is_some() || !is_last => {
                told.refused = Some(error.to_string());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns why a candidate is skipped because of the expected cost of a factorisation, if it is: the cost of the
    /// candidate itself, if multigrid is next, or, on a device, the cost of a later candidate.
    fn refuses_unseen(&self, number: usize) -> Option<String> {
        let (stage, behind) = self.stages[number..].split_first()?;
        let a = self.stored.operator();
        let is_known = stage.ready.is_some() || stage.forecast.is_some() || self.narrow_band().is_some();
        if a.rows() != a.columns() || is_known {
            return None;
        }
        let guess = || self.stored.guess_of_order(&self.backend, &self.guess);
        if let Some(most) = stage.plan.flops {
            let levels_next = behind.first().is_some_and(|next| next.plan.has_levels());
            let may = levels_next && self.backend.factor_library().is_err();
            return may.then(|| refuses_factors(&guess(), most, a.rows())).flatten();
        }
        let may = <B as PreconditionSteps>::IS_DEVICE && self.guess.get().is_some();
        let most = behind.iter().find_map(|later| later.plan.flops).filter(|_| may)?;
        refuses_trial(&stage.plan, self.stored.nonzeros(), &guess(), most)
    }

    /// Solves with a stage, and records its result; returns whether the solve is over.
    fn take_turn(
        &mut self,
        turn: &Turn,
        course: &mut Course,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<ControlFlow<()>> {
        let (begun, request, number) = (Instant::now(), watch.request(), turn.number);
        let (plan, before) = (self.stages[number].plan, course.iterations());
        watch.method = plan.method;
        match self.make_ready(number, course, &request) {
            Ok(true) => {}
            Ok(false) => return Ok(ControlFlow::Continue(())),
            Err(Error::Stopped) => return self.end_early(number, course, b, x, watch),
            Err(error) => return Err(error),
        }
        let length = if plan.is_judged(turn) { norm(&self.backend, b)? } else { 0.0 };
        let goal = self.options.threshold::<T>(if length.is_finite() { length } else { 0.0 });
        let asked = self.asked();
        self.forget_verdict();
        let (least, narrow_band) = (self.least_seconds(plan.method), self.narrow_band());
        let a = self.stored.operator();
        let (stage, behind) = self.stages[number..].split_first_mut().expect("a stage of this number");
        let ready = stage.ready.as_mut().expect("a stage that was made ready");
        let costs = Costs {
            each: ready.forecast(a, 1, self.backend.ordering_price().bandwidth).1,
            least,
            known: turn.rival.and_then(|rival| behind[rival - number - 1].forecast).or(narrow_band),
            on_device: <B as PreconditionSteps>::IS_DEVICE,
            size: [a.rows(), self.stored.nonzeros()],
            incomplete: self.stored.factors_seconds(ready.bytes(a)),
        };
        let mut pace = Pace::new((&plan, &*behind), turn, goal, Some(costs), &mut self.falls);
        let left = (turn.share.is_some() || course.total.is_some()).then(|| turn.most(&plan));
        let (is_first, failed) = (course.total.is_none(), &course.failed[..]);
        let (sought, stored) = (Cell::new(None), &self.stored);
        let mut judging = Judging::new(&asked, &sought);
        let (norms, aim) = (&mut self.norms, self.aim);
        let task =
            Task { a, stored, b, x: &mut *x, norms, left, aim, request: &request, judging: &mut judging };
        let mut hear = |iteration: usize, norm: f64| {
            if let Some(next) = sought.take() {
                pace.seek(next * length);
            }
            let analyse = || match turn.rival {
                Some(rival) => {
                    let factors = &mut behind[rival - number - 1];
                    factors.seconds(&self.backend, stored, &self.options, (failed, &request))
                }
                None => Ok(f64::INFINITY),
            };
            let guess = || stored.guess_of_order(&self.backend, &self.guess);
            if !pace.goes_on((iteration, norm), guess, analyse) {
                return ControlFlow::Break(());
            }
            if iteration > 0 || is_first {
                return watch.see(0, before + iteration, norm);
            }
            ControlFlow::Continue(())
        };
        let solved = match plan.method {
            // A factorisation has long steps during which no observer is called.
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
        if report.outcome == Outcome::LeastSquares {
            let system = (&self.stored, &mut self.norms);
            self.normal = nearest(&self.backend, system, (b, x), &self.options, true)?;
            if self.normal.is_none() {
                // Nothing proves that there is no solution, so another method may find it.
                report.outcome = Outcome::Stagnated;
            }
        }
        let mut remark = ready.remark();
        if let Some(row_wise) = missed {
            remark = with(remark, Some(format!("the residual relative to each row stays at {row_wise:.1e}")));
        }
        let (outcome, words) = pace.ended(report.outcome);
        remark = with(remark, words);
        if turn.rival.is_some() {
            course.handed_over = pace.handed_over();
            course.costly = pace.is_costly();
            course.refused = turn.rival.zip(pace.refused.take());
        }
        self.falls = pace.into_memory().unwrap_or_else(|| std::mem::take(&mut self.falls));
        report.outcome = watch.reason(outcome);
        self.seconds.iterating += ready.iterating().as_secs_f64();
        self.evidence.add(ready.evidence());
        course.failed.extend(ready.failed());
        let told = &mut Arc::make_mut(&mut self.trail).stages[number];
        let creeps = turn.creeps(&plan, &report.outcome);
        told.outcome = Some(if creeps { Outcome::GivenUp } else { report.outcome });
        told.remark = remark;
        told.levels = ready.levels().to_vec();
        told.iterations = report.iterations;
        told.bytes = ready.moved(&report);
        told.seconds = begun.elapsed().as_secs_f64();
        told.relative_residual = Some(report.relative_residual);
        if course.add(turn, &plan, report) {
            return Ok(ControlFlow::Continue(()));
        }
        if matches!(report.outcome, Outcome::Converged | Outcome::LeastSquares) {
            self.first = number;
        }
        Ok(ControlFlow::Break(()))
    }

    /// Ends a solve that was stopped during the setup of a stage or during a factorisation: x is unchanged.
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
