//! Solves of a distributed solver: stage after stage until one solves, on all ranks or on one alone.

use super::choice::{Candidate, Course, Pace, is_fault};
use super::judging::Judging;
use super::names::Precision;
use super::parted::Task;
use super::preconditioner::AnyPreconditioner;
use super::report::{SolveReport, blank};
use super::single_rank;
use super::spread::SpreadSolver;
use super::watch::{Canceller, Progress, Watch};
use super::{Solvable, SolverBackend};
use crate::backend::Communicator;
use crate::error::{Error, Result};
use crate::krylov::{Outcome, Report};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::prices::order::OrderGuess;
use crate::scalar::Real;
use crate::verdict::{Verdict, verdict};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> SpreadSolver<T, B, C> {
    /// Solves A x = b from x: both are this rank's entries ([`SpreadSolver::own_part`]).
    ///
    /// # Errors
    /// If a vector has another length, if memory runs out, and if another rank has failed.
    pub fn solve_into(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<SolveReport> {
        self.solve_with(b, x, |_| ControlFlow::Continue(()))
    }

    /// [`SpreadSolver::solve_into`] with an observer of each iteration. If the observer of any rank asks to stop, the
    /// solve ends on all ranks, at most an iteration later.
    ///
    /// # Errors
    /// As [`SpreadSolver::solve_into`].
    pub fn solve_with(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        if self.lone.is_some() {
            return self.solve_alone(b, x, observer);
        }
        if !self.negated {
            return self.solve_spread(b, x, observer);
        }
        self.space.backend().scale_in_place(-T::one(), x)?;
        let report = self.solve_spread(b, x, observer);
        self.space.backend().scale_in_place(-T::one(), x)?;
        report
    }

    /// Solves with the stored matrix, A or -A, on all ranks.
    fn solve_spread(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        let (start, canceller) = (Instant::now(), Canceller::default());
        let limit = self.options.iteration_limit(self.columns());
        self.history.clear();
        self.seconds.iterating = 0.0;
        let clock = self.time_limit;
        let mut late = false;
        let mut watch = Watch::new(Some(&mut observer), &canceller, None);
        let (mut course, mut from) = (Course::new(0, None), 0);
        let mut judged = None;
        // Distributed solves have no factorisation that could come first.
        while let Some(turn) = course.next(from, &self.stages, limit, |_| false) {
            let (begun, number, before) = (Instant::now(), turn.number, course.iterations());
            from = number + 1;
            if let Some(why) = self.prepare(number)? {
                self.trail.stages[number].refused = Some(why);
                continue;
            }
            let stage = &self.stages[number];
            let plan = stage.plan;
            watch.method = plan.method;
            let communicator = self.space.communicator();
            let (mut broken, is_first) = (None, course.total.is_none());
            let length = if plan.is_judged(&turn) { self.length(b)? } else { 0.0 };
            let goal = self.options.threshold::<T>(if length.is_finite() { length } else { 0.0 });
            let mut pace = Pace::new((&plan, &[] as &[Candidate]), &turn, goal, None, &mut Vec::new());
            let sought = Cell::new(None);
            let mut observe = |iteration: usize, norm: f64| {
                if let Some(next) = sought.take() {
                    pace.seek(next * length);
                }
                // Norms are the same on all ranks, so all give up together.
                let no_order = || OrderGuess::new([0, 0], 0.0, || 0.0);
                if !pace.goes_on((iteration, norm), no_order, || Ok(f64::INFINITY)) {
                    return ControlFlow::Break(());
                }
                let mut stop = false;
                if iteration > 0 || is_first {
                    stop = watch.see(0, before + iteration, norm).is_break();
                }
                let over = clock.is_some_and(|clock| start.elapsed() >= clock);
                match communicator.agree(stop || over) {
                    Ok(true) => {
                        late = !stop && clock.is_some();
                        ControlFlow::Break(())
                    }
                    Ok(false) => ControlFlow::Continue(()),
                    Err(error) => {
                        broken = Some(error);
                        ControlFlow::Break(())
                    }
                }
            };
            let Some(operator) = &self.operator else { break };
            let Some(norms) = &mut self.norms else { break };
            let mut judging = Judging::new(&self.options, &sought);
            let options = self.options.clone().max_iterations(turn.most(&plan));
            let system = (&**operator as &dyn LinearOperator<T, B>, &mut *norms);
            let task = Task { space: &self.space, system, options, b, x: &mut *x, judging: &mut judging };
            let (mut report, history, iterating) = task.run(stage, &mut observe)?;
            judged = judging.last;
            if judging.is_open(&report.outcome) {
                judged = Some(verdict(&self.space, (&**operator, norms), (b, x), &self.options, None)?);
            }
            report.outcome = match judged {
                Some(judged) if judged.met => Outcome::Converged,
                Some(_) if report.outcome == Outcome::Converged => Outcome::Stagnated,
                _ => report.outcome,
            };
            if let Some(error) = broken {
                return Err(error);
            }
            let (outcome, words) = pace.ended(report.outcome);
            report.outcome = outcome;
            if late && report.outcome == Outcome::Interrupted {
                report.outcome = Outcome::TimeLimit;
            }
            let skipped = usize::from(!self.history.is_empty());
            self.history.extend(history.iter().skip(skipped));
            self.seconds.iterating += iterating.as_secs_f64();
            let creeps = turn.creeps(&plan, &report.outcome);
            let told = &mut self.trail.stages[number];
            told.outcome = Some(if creeps { Outcome::GivenUp } else { report.outcome });
            told.iterations = report.iterations;
            told.bytes = report.iterations as f64 * report.bytes_per_iteration as f64;
            told.seconds = begun.elapsed().as_secs_f64();
            told.relative_residual = Some(report.relative_residual);
            told.remark = words;
            if let Some(AnyPreconditioner::Levels(levels)) = &self.stages[number].setup {
                told.remark = Some(levels.told.clone()).filter(|told| !told.is_empty());
                told.levels = levels.facts.clone();
            }
            if !course.add(&turn, &plan, report) {
                break;
            }
        }
        self.seconds.solve = start.elapsed().as_secs_f64();
        let Course { last, total, .. } = course;
        let report = total.ok_or_else(|| Error::Unsupported("a system without a method".into()))?;
        let Some((operator, norms)) = self.operator.as_ref().zip(self.norms.as_mut()) else {
            return Err(Error::Unsupported("a system without an operator".into()));
        };
        let judged = match judged {
            Some(judged) => judged,
            None => verdict(&self.space, (&**operator, norms), (b, x), &self.options, None)?,
        };
        self.tell(&report, last, &judged)
    }

    /// ||b||.
    fn length(&self, b: &B::Slice<T>) -> Result<f64> {
        let backend = self.space.backend();
        let mut square = backend.zeros::<T::Real>(1)?;
        backend.norm2_squared(b, &mut square)?;
        self.space.communicator().all_sum(backend, &mut square)?;
        Ok(backend.value(&square)?.to_f64().sqrt())
    }

    /// Rank 0 solves, and sends its report to the others.
    fn solve_alone(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        let solver = self.lone.as_mut().and_then(|lone| lone.0.as_mut());
        let Some(solver) = solver else {
            let words = self.space.communicator().gather(Vec::new())?.swap_remove(0);
            let blank = blank(&self.device, &self.trail, Csr::<T>::NAME, T::NAME);
            return single_rank::heard(&words, blank);
        };
        let report = solver.solve_on_with(self.space.backend(), b, x, &mut observer);
        self.space.communicator().gather(single_rank::told(&report))?;
        let report = report?;
        self.history = solver.history().to_vec();
        // Decisions made before there was a solver come first.
        let mut trail = self.trail.clone();
        trail.decisions.extend(report.trail.decisions.iter().cloned());
        trail.stages = report.trail.stages.clone();
        Ok(SolveReport { trail: Arc::new(trail), ..report })
    }

    /// Makes the report of a solve, with the outcome that the check of x gives.
    fn tell(&self, report: &Report, stage: usize, judged: &Verdict) -> Result<SolveReport> {
        // A distributed solve has no proof that a square matrix is singular.
        let outcome = match report.outcome {
            said if judged.met && (is_fault(&said) || said.is_solved()) => Outcome::Converged,
            Outcome::Converged | Outcome::LeastSquares => Outcome::Stagnated,
            other => other,
        };
        Ok(SolveReport {
            outcome,
            method: self.stages[stage].plan.method,
            preconditioner: self.trail.stages[stage].preconditioner,
            precision: Precision::Double,
            iterations: report.iterations,
            restarts: report.restarts,
            residual_norm: judged.residual,
            relative_residual: judged.relative(),
            row_wise_residual: judged.row_wise(),
            backward_error: self.norms.as_ref().and_then(|norms| judged.backward_error(norms.frobenius)),
            bytes_per_iteration: report.bytes_per_iteration,
            seconds: self.seconds,
            ..blank(&self.device, &self.trail, Csr::<T>::NAME, T::NAME)
        })
    }
}
