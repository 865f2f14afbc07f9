//! The forecasts of a dry run: each candidate that iterates goes half of the way to the tolerance, and the rest is
//! extrapolated from the slope and the time of these iterations.
//!
//! A forecast from prices alone is a lower bound, because nobody knows in advance how many iterations a matrix takes.
//! Half of the digits tell it within a factor of two for all 44 systems of `benches/choice`, seeds 31 and 47, that were
//! solved by iterations with the diagonal or with incomplete factors; three digits of eight do so for every second one
//! with the diagonal (2026-11-28). A dry run reads a clock, a solve never does.

use super::SolverBackend;
use super::choice::{When, iterations_left, take};
use super::core::Core;
use super::judging::Judging;
use super::names::Method;
use super::nullspace::norm;
use super::ready::Task;
use super::report::StageReport;
use crate::error::{Error, Result};
use crate::krylov::Outcome;
use crate::report::seconds;
use crate::scalar::Scalar;
use crate::work::{StopRequest, within_solve};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A trial may take as long as the least forecast so far, since the setup of multigrid alone takes half of its time,
/// but no less and no more than these seconds.
const LEAST: f64 = 0.1;
const MOST: f64 = 2.0;

/// Solves are expected to take between this fraction of their forecast and its inverse.
const RANGE: f64 = 0.5;

/// The lowest and the highest seconds that are expected if the forecast is this.
pub(crate) fn range_around(forecast: f64) -> [f64; 2] {
    [RANGE * forecast, forecast / RANGE]
}

/// What a trial has told about a candidate.
#[derive(Debug, Clone, Default)]
struct Told {
    /// Iterations of the whole solve, the bytes that they move, and its seconds with the setup.
    forecast: Option<(usize, f64, f64)>,
    /// Why there is no forecast.
    remark: Option<String>,
    /// Why it can't be set up, or is of no use.
    refused: Option<String>,
    is_indefinite: bool,
}

impl Told {
    fn write(self, stage: &mut StageReport) {
        stage.predicted_iterations = self.forecast.map_or(stage.predicted_iterations, |(number, ..)| number);
        stage.predicted_bytes = self.forecast.map(|(_, bytes, _)| bytes);
        stage.predicted_seconds = self.forecast.map(|(.., seconds)| seconds);
        stage.predicted_range = stage.predicted_seconds.map(range_around);
        (stage.remark, stage.refused) = (self.remark, self.refused);
    }
}

impl<T: Scalar, B: SolverBackend> Core<T, B> {
    /// Writes forecasts of the candidates that iterate into the trail. A factorisation is forecast to take `factors`
    /// seconds, which are infinite if there is none.
    pub(super) fn probe(&mut self, b: &B::Slice<T>, factors: f64) -> Result<()> {
        self.begin();
        let (mut least, mut is_indefinite, mut known) = (factors, false, Vec::new());
        for number in 0..self.stages.len() {
            let plan = self.stages[number].plan;
            let same = known.iter().find(|(what, _)| *what == plan.what()).map(|(_, told)| told);
            let told: Told = match (plan.method, plan.when) {
                (Method::Direct, _) => continue,
                (_, When::Definite) if is_indefinite => {
                    Told { refused: Some("A is not positive definite".into()), ..Told::default() }
                }
                (_, When::Indefinite) if !is_indefinite => Told::default(),
                // Its iterations serve where nothing else does.
                (Method::Lsmr, _) if least.is_finite() => Told::default(),
                _ => match same {
                    Some(told) => Told::clone(told),
                    None => self.trial(number, b, least.clamp(LEAST, MOST))?,
                },
            };
            is_indefinite |= told.is_indefinite;
            if let Some((.., seconds)) = told.forecast {
                least = least.min(seconds);
            }
            known.push((plan.what(), told.clone()));
            told.write(&mut Arc::make_mut(&mut self.trail).stages[number]);
        }
        Ok(())
    }

    /// Iterates from zero with a candidate until half of the digits are there, for at most `most` seconds.
    fn trial(&mut self, number: usize, b: &B::Slice<T>, most: f64) -> Result<Told> {
        let begun = Instant::now();
        let request =
            StopRequest { deadline: begun.checked_add(Duration::from_secs_f64(most)), cancelled: None };
        let is_late = || request.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let stage = &mut self.stages[number];
        let before = if stage.ready.is_some() { self.seconds.setup } else { 0.0 };
        let late = |what: String| Told { remark: Some(what), ..Told::default() };
        let ready = match stage.prepare(&self.backend, &self.stored, &self.options, (&[], &request)) {
            Ok(ready) => ready,
            Err(Error::Stopped) => return Ok(late(format!("its setup takes longer than {}", seconds(most)))),
            Err(error) => return Ok(Told { refused: Some(error.to_string()), ..Told::default() }),
        };
        let length = norm(&self.backend, b)?;
        let aim = self.options.threshold_of_one::<T>().sqrt();
        let asked = self.options.clone().tolerance(aim).absolute_tolerance(0.0);
        let goal = self.options.threshold::<T>(if length.is_finite() { length } else { 0.0 });
        let (a, sought, mut best) = (self.stored.operator(), Cell::new(None), Vec::new());
        let mut x = self.backend.zeros(a.columns())?;
        let task = Task {
            a,
            stored: &self.stored,
            b,
            x: &mut x,
            norms: &mut self.norms,
            left: None,
            aim: Some(aim),
            request: &request,
            judging: &mut Judging::new(&asked, &sought),
        };
        let mut hear = |_: usize, norm: f64| {
            take(&mut best, norm);
            if is_late() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let solved = within_solve(&request, || ready.solve(task, &mut hear));
        let spent = begun.elapsed().as_secs_f64();
        let done = best.len().saturating_sub(1);
        let told = match solved.map(|report| report.outcome) {
            Ok(Outcome::NotPositiveDefinite { .. }) => Told {
                refused: Some("A is not positive definite".into()),
                is_indefinite: true,
                ..Told::default()
            },
            Ok(Outcome::Converged) => {
                let left = iterations_left(&best, goal);
                let iterations = done as f64 + left;
                let each = ready.iterating().as_secs_f64() / done.max(1) as f64;
                let forecast =
                    (iterations.ceil() as usize, iterations * ready.bytes(a), before + spent + left * each);
                Told { forecast: Some(forecast), ..Told::default() }
            }
            Ok(Outcome::Interrupted) | Err(Error::Stopped) => {
                late(format!("{done} iterations in {} do not come half of the way", seconds(spent)))
            }
            Ok(outcome) => late(format!("{outcome} after {done} iterations")),
            Err(error) => return Err(error),
        };
        if before == 0.0 {
            // The next candidate may need the memory.
            self.stages[number].ready = None;
        }
        Ok(told)
    }
}
