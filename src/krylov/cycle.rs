//! A run of iterations, from the start of a recurrence to its end, and the messages that they send to the host.
//!
//! The backend runs ahead: iterations are queued before the messages of earlier ones are read. Iterations queued after
//! the last one change nothing.

use super::progress::{Best, Solve};
use super::report::Outcome;
use crate::backend::{CgStatus, Mailbox, Replay, Slot, VectorOps};
use crate::error::Result;
use crate::scalar::{Element, Real, Scalar};
use num_traits::Float;
use std::ops::ControlFlow;

/// The iteration diverges if its residual exceeds the initial one by eps to this power: the exact residual is at most
/// sqrt(cond(A)) times the initial one, so A would be singular to working precision.
const DIVERGENCE: f64 = -0.75;

/// With an unfused preconditioner or several vectors, an iteration that moves more bytes than this takes so long that a
/// single queued iteration keeps the backend busy. Few are queued then, because those queued after the last one change
/// nothing but still apply the preconditioner and the matrix.
const LONG: usize = 256 << 20;
const LONG_AHEAD: usize = 2;

/// A preconditioner of more steps than this counts as long too: each step takes at least two microseconds.
const MANY_STEPS: usize = 32;

/// A recording holds several iterations only if the work of the method repeats after at most this many.
const SHORT_PERIOD: usize = 4;

/// The number of iterations that are queued before their messages are read.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Iterations in one recording.
    recorded: usize,
    /// Recordings that are queued at the same time.
    ahead: usize,
}

impl Pace {
    /// The pace for iterations that still move `bytes` after the recurrence has ended, with a preconditioner of `steps`
    /// steps.
    pub(super) fn new<B: VectorOps>(bytes: usize, steps: usize) -> Self {
        if bytes > LONG || steps > MANY_STEPS {
            return Self { recorded: 1, ahead: LONG_AHEAD.min(B::QUEUE_DEPTH) };
        }
        Self { recorded: B::RECORDED, ahead: B::QUEUE_DEPTH }
    }
}

/// Iterations that can be replayed. They are recorded at their first use, and kept when the recurrence starts again.
pub(super) struct Iterations<'r, B: VectorOps> {
    backend: &'r B,
    /// Enqueues the iteration with this number, and sends its message.
    body: &'r (dyn Fn(usize) -> Result<()> + Sync),
    pace: Pace,
    /// The work is the same again after this many iterations.
    period: usize,
    /// A recording of several iterations that starts at a multiple of the period.
    whole: Option<B::Recording<'r>>,
    /// A recording of one iteration, for each iteration of a period; empty until it is needed.
    single: Vec<Option<B::Recording<'r>>>,
    /// True if something in an iteration waits for the backend, so that nothing can be recorded.
    waits: bool,
}

impl<'r, B: VectorOps> Iterations<'r, B> {
    pub(super) fn new(
        backend: &'r B,
        body: &'r (dyn Fn(usize) -> Result<()> + Sync),
        pace: Pace,
        period: usize,
        waits: bool,
    ) -> Self {
        let recorded = match period {
            _ if waits || period > SHORT_PERIOD || pace.recorded == 1 => 1,
            period => pace.recorded.next_multiple_of(period),
        };
        let ahead = if waits { 1 } else { pace.ahead };
        let pace = Pace { recorded, ahead };
        Self { backend, body, pace, period, whole: None, single: Vec::new(), waits }
    }

    /// Drops the recordings because the method changes its work.
    pub(super) fn forget(&mut self) {
        self.whole = None;
        self.single.clear();
    }

    /// Enqueues `length` iterations from `step` on: either one, or several that begin a period.
    fn enqueue(&mut self, length: usize, step: usize) -> Result<()> {
        let body = self.body;
        if self.waits {
            return (step..step + length).try_for_each(body);
        }
        let whole = length == self.pace.recorded && length.is_multiple_of(self.period);
        if !whole && self.single.is_empty() {
            self.single.resize_with(self.period, || None);
        }
        let first = if whole { 0 } else { step % self.period };
        let recording = if whole { &mut self.whole } else { &mut self.single[first] };
        if recording.is_none() {
            let made = self.backend.record(move || (first..first + length).try_for_each(body))?;
            *recording = Some(made);
        }
        recording.as_mut().map_or(Ok(()), Replay::replay)
    }

    /// Runs iterations from the start of the recurrence, several to a recording while `left` allows it, then one by
    /// one. Ends when `take`, which receives the messages, returns false, or when none are left.
    pub(super) fn run<W: Element>(
        &mut self,
        mailbox: &B::Mailbox<W>,
        message: &mut [W],
        left: usize,
        mut take: impl FnMut(&[W]) -> bool,
    ) -> Result<()> {
        let Pace { recorded, ahead } = self.pace;
        let (mut done, mut goes_on) = (0, true);
        for length in [recorded, 1] {
            if !goes_on || done + length > left {
                continue;
            }
            let mut queued = 0;
            loop {
                while goes_on && queued + length <= ahead * length && done + queued + length <= left {
                    self.enqueue(length, done + queued)?;
                    queued += length;
                }
                if queued == 0 {
                    break;
                }
                mailbox.next(self.backend, true, message)?;
                queued -= 1;
                done += 1;
                goes_on &= take(message);
            }
        }
        Ok(())
    }
}

/// Why a run of iterations ended.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// The recurrence says that it has converged.
    Met,
    /// The method has to be started again.
    Cycle,
    /// The solve ends with this outcome.
    Final(Outcome),
}

/// The state of a run, after the messages so far.
pub(super) struct Run {
    end: Option<End>,
    /// True if the recurrence has ended: later messages only repeat the last one.
    over: bool,
    /// The number of iterations that changed the sum of the steps.
    done: usize,
}

impl Run {
    pub(super) fn new() -> Self {
        Self { end: None, over: false, done: 0 }
    }

    /// Returns whether the recurrence has not ended yet.
    pub(super) fn goes_on(&self) -> bool {
        self.end.is_none()
    }

    /// The number of iterations that changed the sum of the steps.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    /// How the run ended; `none` if the iterations ran out.
    pub(super) fn end(self, none: End) -> End {
        self.end.unwrap_or(none)
    }

    /// Processes the message of an iteration.
    pub(super) fn take<T: Scalar, W: Scalar<Real = T::Real>>(
        &mut self,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
        message: &[W],
    ) {
        if self.over {
            return;
        }
        let status = CgStatus::from_real(message[Slot::STATUS.place()].re());
        self.over = status != CgStatus::Running;
        let verdict = self.judge(solve, status, message);
        self.end = self.end.take().or(verdict);
    }

    /// Decides whether this iteration was the last.
    fn judge<T: Scalar, W: Scalar<Real = T::Real>>(
        &mut self,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
        status: CgStatus,
        message: &[W],
    ) -> Option<End> {
        let iteration = solve.iterations + 1;
        if !status.has_changed_x() {
            let curvature = message[Slot::CURVATURE.place()].re().to_f64();
            return Some(End::Final(match status {
                CgStatus::NotPositiveDefinite => Outcome::NotPositiveDefinite { iteration, curvature },
                CgStatus::NotFinite => Outcome::NotFinite,
                _ => Outcome::Breakdown { iteration },
            }));
        }
        let norm = solve.units.norm(message[Slot::RR.place()].re());
        solve.iterations = iteration;
        self.done += 1;
        let best = &mut solve.best;
        *best = if norm < best.norm { Best { norm, age: 0 } } else { Best { age: best.age + 1, ..*best } };
        let stale = best.age >= solve.window;
        let stop = solve.observe(norm).is_break();
        let diverged = <T::Real as Float>::epsilon().to_f64().powf(DIVERGENCE) * solve.history[0];
        if status != CgStatus::Running {
            Some(End::Met)
        } else if stop {
            Some(End::Final(Outcome::Interrupted))
        } else {
            (stale || norm > diverged).then_some(End::Final(Outcome::Stagnated))
        }
    }
}
