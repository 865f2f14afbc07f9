//! The observer of a running solve, and how a solve is stopped.

use super::names::Method;
use super::report::{Seconds, SolveReport};
use crate::krylov::Outcome;
use crate::work::StopRequest;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The progress of a solve.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The right-hand side, counted from 0.
    pub right_hand_side: usize,
    /// The method that iterates.
    pub method: Method,
    /// Iterations so far, including those of earlier methods; 0 at the start.
    pub iteration: usize,
    /// The residual norm of the method's own recurrence.
    pub residual_norm: f64,
    /// The residual norm at the start: ||b|| if x started from zero.
    pub first_residual_norm: f64,
    /// Time since the start of the solve.
    pub elapsed: Duration,
}

/// Stops a solver from another thread. Cheap to clone.
///
/// A cancelled solver ends the current solve with [`Outcome::Interrupted`], and each later one at its start, until
/// [`Canceller::reset`]: a request that comes between two solves is not lost.
#[derive(Debug, Clone, Default)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// Asks the solver to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Withdraws the request.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns whether the solver was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The caller's observer.
pub(super) type Observer<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Monitors a solve: the caller's observer, the stop request, and the clock.
pub struct Watch<'a> {
    observer: Option<&'a mut Observer<'a>>,
    canceller: &'a Canceller,
    start: Instant,
    limit: Option<Duration>,
    late: bool,
    /// The residual norm at which each of the current right-hand sides started.
    first: [f64; Watch::MOST],
    pub(super) method: Method,
    /// The number of the first of the right-hand sides that are solved together.
    pub(super) offset: usize,
    /// Whether nothing is solved, but forecast: the seconds that a factorisation is forecast to take.
    pub(super) probing: Option<f64>,
}

impl<'a> Watch<'a> {
    /// The maximum number of right-hand sides that are solved together.
    pub(super) const MOST: usize = 32;

    pub(super) fn new(
        observer: Option<&'a mut Observer<'a>>,
        canceller: &'a Canceller,
        limit: Option<Duration>,
    ) -> Self {
        Self {
            observer,
            canceller,
            start: Instant::now(),
            limit,
            late: false,
            first: [0.0; Self::MOST],
            method: Method::Auto,
            offset: 0,
            probing: None,
        }
    }

    /// Records an iteration of one of the current right-hand sides.
    pub(super) fn see(&mut self, place: usize, iteration: usize, residual_norm: f64) -> ControlFlow<()> {
        if iteration == 0 {
            self.first[place] = residual_norm;
        }
        let cancelled = self.canceller.is_cancelled();
        // Without an observer and a time limit the clock is not read: for a small system that would take a hundredth of
        // the time of an iteration.
        if self.observer.is_none() && self.limit.is_none() && !cancelled {
            return ControlFlow::Continue(());
        }
        self.tell(place, iteration, residual_norm, cancelled)
    }

    /// Calls the observer, and checks the limit and stop requests.
    fn tell(
        &mut self,
        place: usize,
        iteration: usize,
        residual_norm: f64,
        cancelled: bool,
    ) -> ControlFlow<()> {
        let elapsed = self.start.elapsed();
        let progress = Progress {
            right_hand_side: self.offset + place,
            method: self.method,
            iteration,
            residual_norm,
            first_residual_norm: self.first[place],
            elapsed,
        };
        let wish = self.observer.as_mut().map_or(ControlFlow::Continue(()), |observer| observer(&progress));
        self.late = self.limit.is_some_and(|limit| elapsed >= limit);
        if wish.is_break() || self.late || cancelled {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Returns the report with the time of the whole solve, which includes copying vectors to the device and back,
    /// renumbering them, and computing norms.
    pub(super) fn timed(&self, report: SolveReport) -> SolveReport {
        let solve = self.start.elapsed().as_secs_f64();
        SolveReport { seconds: Seconds { solve, ..report.seconds }, ..report }
    }

    /// The stop request for setups and factorisations, which don't call the observer.
    pub(super) fn request(&self) -> StopRequest {
        let Canceller(flag) = self.canceller;
        // If the solver holds the only handle, no one else can cancel it.
        let cancelled =
            (Arc::strong_count(flag) > 1 || self.canceller.is_cancelled()).then(|| Arc::clone(flag));
        StopRequest { deadline: self.limit.and_then(|limit| self.start.checked_add(limit)), cancelled }
    }

    /// The outcome of a setup that was ended early.
    pub(super) fn stopped(&mut self) -> Outcome {
        self.late = self.limit.is_some_and(|limit| self.start.elapsed() >= limit);
        self.reason(Outcome::Interrupted)
    }

    /// Returns the outcome, or the reason why the solve ended early.
    pub(super) fn reason(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Interrupted if self.late => Outcome::TimeLimit,
            other => other,
        }
    }
}
