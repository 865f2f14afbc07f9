//! A run of iterations, from a started recurrence to its end, and what the caller hears of each.
//!
//! The backend runs ahead: iterations, or bursts of them, are queued before the messages of earlier ones are read.
//! Those after the last change nothing.

use super::Cg;
use super::driver::{End, Solve};
use super::report::Outcome;
use super::units::Units;
use crate::backend::{CgBurst, CgSlot, CgStatus, KrylovSteps, Mailbox, Replay};
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::precondition::Preconditioner;
use crate::scalar::{Element, Real, Scalar};
use num_traits::{Float, Zero};
use std::ops::ControlFlow;

/// A residual that has grown past its start by eps to this power: the exact one is bounded by sqrt(cond(A)) times its
/// start, so A is singular to working precision and the iteration diverges.
const DIVERGENCE: f64 = -0.75;

/// Bursts that are queued at a time.
const BURSTS_AHEAD: usize = 2;

/// An iteration with a preconditioner of steps of its own, or with several vectors, that moves more bytes than this
/// takes so long that one behind it keeps the backend busy. Those that are queued behind the last one change nothing,
/// but their preconditioner and their product are applied.
const LONG: usize = 256 << 20;
const LONG_AHEAD: usize = 2;

/// What bursts tell: the messages of one in the backend's memory, on their way, and here.
#[derive(Debug)]
pub(super) struct Bursts<T: Scalar, B: KrylovSteps> {
    device: B::Vec<T::Real>,
    mailbox: B::Mailbox<T::Real>,
    host: Vec<T::Real>,
}

impl<T: Scalar, B: KrylovSteps> Bursts<T, B> {
    /// Room for the messages of a burst, where the backend knows bursts.
    pub(super) fn new(backend: &B) -> Result<Option<Self>> {
        let len = B::CG_BURST * CgSlot::MESSAGE;
        if len == 0 {
            return Ok(None);
        }
        let (device, mailbox) = (backend.zeros(len)?, backend.mailbox(len)?);
        Ok(Some(Self { device, mailbox, host: vec![T::Real::zero(); len] }))
    }
}

impl<T: Scalar, B: KrylovSteps> Cg<T, B> {
    /// Iterates until the recurrence ends, or the options or the observer end it.
    pub(super) fn cycle<A, M>(
        &mut self,
        a: &A,
        m: &M,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
    ) -> Result<End>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let end = match self.bursts(a, m, solve)? {
            Some(end) => end,
            None => self.replays(a, m, solve)?,
        };
        if let End::Final(Outcome::NotPositiveDefinite { iteration, curvature }) = end {
            // p.Ap / p.p: the state's p is still the one that was tried.
            self.backend.norm2_squared(&self.work.p, &mut self.work.square)?;
            let pp = self.backend.value(&self.work.square)?;
            let safe = Units::<T::Real>::safe_square();
            let plain = curvature.abs() >= safe.to_f64() && Float::is_finite(pp) && pp >= safe;
            let curvature = if plain { Some(curvature / pp.to_f64()) } else { self.curvature_of_unit(a)? };
            return Ok(End::Final(match curvature {
                Some(curvature) => Outcome::NotPositiveDefinite { iteration, curvature },
                None => Outcome::Breakdown { iteration },
            }));
        }
        Ok(end)
    }

    /// p.Ap / p.p where one of them is so close to the ends of the type's range that it says nothing: from p in units
    /// near its norm. None where p.Ap is positive then. r and q are lost.
    fn curvature_of_unit<A>(&mut self, a: &A) -> Result<Option<f64>>
    where
        A: LinearOperator<T, B> + ?Sized,
    {
        let (backend, work) = (&self.backend, &mut self.work);
        let units = Units::of::<T, B>(backend, &work.p, &mut work.q, &mut work.square)?;
        backend.axpby(T::from_real(units.scale()), &work.p, T::zero(), &mut work.r)?;
        a.apply_dot(backend, &work.r, &mut work.q, &mut work.pq)?;
        backend.norm2_squared(&work.r, &mut work.square)?;
        let curvature = backend.value(&work.pq)?.re().to_f64() / backend.value(&work.square)?.to_f64();
        let length = Units::of::<T, B>(backend, &work.q, &mut work.r, &mut work.square)?.b_norm;
        let rounding = T::Real::epsilon().to_f64() * length;
        Ok((curvature <= rounding).then_some(curvature))
    }

    /// Recorded iterations.
    fn replays<A, M>(
        &mut self,
        a: &A,
        m: &M,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
    ) -> Result<End>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let left = solve.limit.saturating_sub(solve.iterations);
        let bytes = if m.fused().is_none() { self.bytes_per_iteration(a, m) } else { 0 };
        let pace = Pace::new::<B>(left, bytes);
        let (backend, work, mailbox) = (&self.backend, &mut self.work, &self.mailbox);
        let mut message = [T::Real::zero(); CgSlot::MESSAGE];
        let mut run = Run::new();
        let iterate = || {
            work.iterate(backend, a, m)?;
            mailbox.post(backend, B::part(&work.state, 0..CgSlot::MESSAGE))
        };
        replays::<_, B>(backend, mailbox, &mut message, pace, iterate, |message| {
            run.take(solve, message);
            run.goes_on()
        })?;
        Ok(run.end())
    }

    /// Burst after burst, where operator and preconditioner allow it.
    fn bursts<A, M>(
        &mut self,
        a: &A,
        m: &M,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
    ) -> Result<Option<End>>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let (Some(bursts), Some(inverse)) = (&mut self.bursts, m.fused()) else { return Ok(None) };
        let (backend, work) = (&self.backend, &mut self.work);
        let mut run = Run::new();
        let (mut queued, mut counts) = (0, [0; BURSTS_AHEAD]);
        loop {
            while run.goes_on() && queued < BURSTS_AHEAD {
                let ahead: usize = counts[..queued].iter().sum();
                let count = B::CG_BURST.min(solve.limit.saturating_sub(solve.iterations + ahead));
                if count == 0 {
                    break;
                }
                let (r, p, x, q) = (&mut *work.r, &mut *work.p, &mut *work.x, &mut *work.q);
                let (state, messages) = (&mut *work.state, &mut *bursts.device);
                if !a.cg_burst(backend, CgBurst { inverse, count, r, p, x, q, state, messages })? {
                    return Ok(None);
                }
                bursts.mailbox.post(backend, &bursts.device)?;
                counts[queued] = count;
                queued += 1;
            }
            if queued == 0 {
                return Ok(Some(run.end()));
            }
            bursts.mailbox.next(backend, true, &mut bursts.host)?;
            let count = counts[0];
            counts.rotate_left(1);
            queued -= 1;
            for message in bursts.host.chunks_exact(CgSlot::MESSAGE).take(count) {
                run.take(solve, message);
            }
        }
    }
}

/// How far iterations run ahead of what is heard of them.
pub(super) struct Pace {
    /// The most iterations.
    left: usize,
    /// Iterations of a recording.
    recorded: usize,
    /// Recordings that are queued at a time.
    ahead: usize,
}

impl Pace {
    /// For at most `left` iterations of which each, behind the last one too, moves `bytes` beyond what stands still by
    /// itself.
    pub(super) fn new<B: KrylovSteps>(left: usize, bytes: usize) -> Self {
        if bytes > LONG {
            return Self { left, recorded: 1, ahead: LONG_AHEAD.min(B::QUEUE_DEPTH) };
        }
        Self { left, recorded: B::CG_RECORDED, ahead: B::QUEUE_DEPTH }
    }
}

/// Replays recorded iterations, several to a recording while the limit allows it, then one by one, until `take` says of
/// a message that it wants no more or none are left. `iterate` enqueues one and posts its message.
pub(super) fn replays<R: Element, B: KrylovSteps>(
    backend: &B,
    mailbox: &B::Mailbox<R>,
    message: &mut [R],
    Pace { left, recorded, ahead }: Pace,
    mut iterate: impl FnMut() -> Result<()> + Send,
    mut take: impl FnMut(&[R]) -> bool,
) -> Result<()> {
    let (mut done, mut goes_on) = (0, true);
    for length in [recorded, 1] {
        if !goes_on || done + length > left {
            continue;
        }
        let mut iterations = backend.record(|| (0..length).try_for_each(|_| iterate()))?;
        let mut queued = 0;
        loop {
            while goes_on && queued + length <= ahead * length && done + queued + length <= left {
                iterations.replay()?;
                queued += length;
            }
            if queued == 0 {
                break;
            }
            mailbox.next(backend, true, message)?;
            queued -= 1;
            done += 1;
            goes_on &= take(message);
        }
    }
    Ok(())
}

/// What the messages so far have come to.
pub(super) struct Run {
    best: Best,
    end: Option<End>,
    /// Whether the recurrence has ended: later messages repeat its last.
    over: bool,
}

/// The smallest residual of a run, and how many iterations ago it was.
#[derive(Clone, Copy)]
struct Best {
    norm: f64,
    age: usize,
}

impl Run {
    pub(super) fn new() -> Self {
        Self { best: Best { norm: f64::INFINITY, age: 0 }, end: None, over: false }
    }

    pub(super) fn goes_on(&self) -> bool {
        self.end.is_none()
    }

    pub(super) fn end(self) -> End {
        self.end.unwrap_or(End::Final(Outcome::IterationLimit))
    }

    /// Takes an iteration's message in.
    pub(super) fn take<T: Scalar>(
        &mut self,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
        message: &[T::Real],
    ) {
        if self.over {
            return;
        }
        let status = CgStatus::from_real(message[CgSlot::STATUS]);
        self.over = status != CgStatus::Running;
        let verdict = self.judge(solve, status, message);
        self.end = self.end.take().or(verdict);
    }

    /// Tells whether the iteration was the last.
    fn judge<T: Scalar>(
        &mut self,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
        status: CgStatus,
        message: &[T::Real],
    ) -> Option<End> {
        let iteration = solve.iterations + 1;
        if !matches!(status, CgStatus::Running | CgStatus::Converged) {
            let curvature = message[CgSlot::CURVATURE].to_f64();
            return Some(End::Final(match status {
                CgStatus::NotPositiveDefinite => Outcome::NotPositiveDefinite { iteration, curvature },
                CgStatus::NotFinite => Outcome::NotFinite,
                _ => Outcome::Breakdown { iteration },
            }));
        }
        let norm = solve.units.norm(message[CgSlot::RR]);
        solve.iterations = iteration;
        let best = &mut self.best;
        *best = if norm < best.norm { Best { norm, age: 0 } } else { Best { age: best.age + 1, ..*best } };
        let stop = solve.observe(norm).is_break();
        let diverged = <T::Real as Float>::epsilon().to_f64().powf(DIVERGENCE) * solve.history[0];
        if status == CgStatus::Converged {
            Some(End::Met)
        } else if stop {
            Some(End::Final(Outcome::Interrupted))
        } else {
            (best.age >= solve.window || norm > diverged).then_some(End::Final(Outcome::Stagnated))
        }
    }
}
