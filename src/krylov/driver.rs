//! From b and x to a report: start, stopping, certificate, restart.

use super::units::Units;
use super::{Cg, Outcome, Report, check_sizes};
use crate::backend::{CgSlot, Inverse, KrylovSteps};
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::precondition::Preconditioner;
use crate::scalar::{Real, Scalar};
use num_traits::Float;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The recurrence is asked for a residual of (threshold - drift) times this, where its residual has drifted from the
/// true one by less than the threshold.
const SAFETY: f64 = 0.9;

/// A restart from b - A x must make the residual smaller by this factor, or the solve has stagnated.
const PROGRESS: f64 = 0.5;

/// Each restart asks the recurrence for this much less than the threshold: rounding x adds to what it reaches.
const HEADROOM: f64 = 0.1;

/// The state of one solve.
pub(super) struct Solve<'a, T: Scalar, F> {
    pub(super) units: Units<T::Real>,
    /// ||b - A x|| must come down to this.
    pub(super) threshold: f64,
    pub(super) limit: usize,
    pub(super) window: usize,
    pub(super) iterations: usize,
    pub(super) history: &'a mut Vec<f64>,
    pub(super) observer: F,
}

/// What was done of a solve before, of which the history has the norms.
pub(super) struct Begun<'a, T: Scalar, B: KrylovSteps> {
    pub(super) iterations: usize,
    /// Whether the observer has stopped it.
    pub(super) stopped: bool,
    /// The sum of the steps in units, to be added to x.
    pub(super) sum: Option<&'a B::Slice<T>>,
}

/// Why a run of iterations ended.
pub(super) enum End {
    /// The recurrence says that it has converged.
    Met,
    /// Nothing more can be had.
    Final(Outcome),
}

impl<T: Scalar, B: KrylovSteps> Cg<T, B> {
    /// The body of [`Cg::solve`], from the start or from where another has come to.
    pub(super) fn drive<A, M>(
        &mut self,
        a: &A,
        m: &M,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        begun: Option<Begun<'_, T, B>>,
        observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let n = B::len(&*self.work.r);
        check_sizes(n, (a.rows(), a.columns()), m.rows(), B::len(b), B::len(x))?;
        if m.fused().is_none() && B::len(&*self.work.z) != n {
            self.work.z = self.backend.zeros(n)?;
        }
        if B::len(&*self.work.work) < m.work_len() {
            self.work.work = self.backend.zeros(m.work_len())?;
        }
        if B::len(&*self.work.narrow) < m.narrow_work_len() {
            self.work.narrow = self.backend.zeros(m.narrow_work_len())?;
        }
        let units = Units::of::<T, B>(&self.backend, b, &mut self.work.q, &mut self.work.square)?;
        let mut history = std::mem::take(&mut self.history);
        if begun.is_none() {
            history.clear();
        }
        self.iterating = Duration::ZERO;
        let mut solve = Solve {
            units,
            threshold: self.options.threshold::<T>(units.b_norm),
            limit: self.options.iteration_limit(n),
            window: self.options.window(n),
            iterations: begun.as_ref().map_or(0, |begun| begun.iterations),
            history: &mut history,
            observer,
        };
        let end = self.run(a, m, b, x, begun, &mut solve);
        let iterations = solve.iterations;
        self.history = history;
        let (outcome, residual_norm, restarts) = end?;
        let relative_residual = if residual_norm == 0.0 { 0.0 } else { residual_norm / units.b_norm };
        let bytes_per_iteration = self.bytes_per_iteration(a, m);
        Ok(Report { outcome, iterations, residual_norm, relative_residual, restarts, bytes_per_iteration })
    }

    /// Runs until the end is known; returns it with ||b - A x|| and the number of restarts.
    fn run<A, M>(
        &mut self,
        a: &A,
        m: &M,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        begun: Option<Begun<'_, T, B>>,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
    ) -> Result<(Outcome, f64, usize)>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        if !solve.units.b_norm.is_finite() {
            return Ok((Outcome::NotFinite, f64::NAN, 0));
        }
        let mut begun = begun;
        let sum = begun.as_ref().and_then(|begun| begun.sum);
        let mut residual = self.enter(a, b, x, sum, &solve.units)?;
        let goes_on = begun.as_ref().is_some_and(|begun| !begun.stopped) && solve.iterations < solve.limit;
        if goes_on && solve.history.first().is_some_and(|&start| residual.is_nan() || residual > start) {
            // Its recurrence ended well and led away all the same: from where it started, as after a fault.
            (begun, solve.iterations) = (None, 0);
            solve.history.clear();
            residual = self.enter(a, b, x, None, &solve.units)?;
        }
        if !residual.is_finite() {
            return Ok((Outcome::NotFinite, f64::NAN, 0));
        }
        if begun.is_some() {
            self.backend.copy(&self.work.x, x)?;
        }
        let stopped =
            begun.as_ref().map_or_else(|| solve.observe(residual).is_break(), |begun| begun.stopped);
        if stopped {
            let met = residual <= solve.threshold;
            return Ok((if met { Outcome::Converged } else { Outcome::Interrupted }, residual, 0));
        }
        if residual > solve.threshold && begun.is_some() {
            // As at a restart: what others have left cancels.
            self.restart(a, b, x, &solve.units)?;
        } else {
            self.backend.copy(&self.work.q, &mut self.work.r)?;
        }
        let floor = floor::<T>(&solve.units);
        let mut restarts = 0;
        let mut before = residual;
        let mut aim = solve.threshold;
        let mut resume = false;
        while residual > solve.threshold {
            if residual <= floor {
                return Ok((Outcome::Stagnated, residual, restarts));
            }
            let end = self.recurrence(a, m, aim.max(floor), resume, solve)?;
            let reached = self.add_steps(a, b, x, &solve.units)?;
            let better = match end {
                End::Final(Outcome::IterationLimit | Outcome::Interrupted) => reached.is_finite(),
                End::Met | End::Final(_) => reached < residual,
            };
            if better {
                self.backend.copy(&self.work.x, x)?;
                residual = reached;
            }
            match end {
                _ if residual <= solve.threshold => break,
                _ if !reached.is_finite() => return Ok((Outcome::NotFinite, residual, restarts)),
                End::Final(outcome) => return Ok((outcome, residual, restarts)),
                End::Met => {}
            }
            let drift = self.drift(&solve.units)?;
            aim = SAFETY * (solve.threshold - drift);
            resume = better && drift <= 0.5 * solve.threshold && aim > floor;
            if resume {
                continue;
            }
            if restarts > 0 && residual > PROGRESS * before {
                return Ok((Outcome::Stagnated, residual, restarts));
            }
            self.restart(a, b, x, &solve.units)?;
            before = residual;
            restarts += 1;
            aim = solve.threshold * HEADROOM.powi(restarts as i32);
        }
        Ok((Outcome::Converged, residual, restarts))
    }

    /// The x to start from, in `work.x`: the caller's and the sum of the steps that others have done. Returns its
    /// certificate.
    fn enter<A>(
        &mut self,
        a: &A,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        sum: Option<&B::Slice<T>>,
        units: &Units<T::Real>,
    ) -> Result<f64>
    where
        A: LinearOperator<T, B> + ?Sized,
    {
        if units.b_norm == 0.0 {
            self.backend.fill(T::zero(), x)?;
        }
        self.backend.copy(x, &mut self.work.x)?;
        if let Some(sum) = sum {
            self.backend.axpby(T::from_real(units.unit), sum, T::one(), &mut self.work.x)?;
        }
        self.certify(a, b, units)
    }

    /// Steps from r = b - A x, or from where the recurrence stopped, until it says ||r|| <= `aim` or ends otherwise.
    /// Their sum is `work.x`.
    fn recurrence<A, M>(
        &mut self,
        a: &A,
        m: &M,
        aim: f64,
        resume: bool,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
    ) -> Result<End>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let square = solve.units.square(aim);
        self.backend.fill(T::zero(), &mut self.work.x)?;
        if resume {
            self.work.resume(&self.backend, square)?;
        } else {
            self.work.start(&self.backend, m, &CgSlot::to_start(square))?;
        }
        let start = Instant::now();
        let end = self.cycle(a, m, solve)?;
        self.iterating += start.elapsed();
        Ok(end)
    }

    /// `work.x` = x + the steps, and its certificate. The steps were summed on their own: adding the sum rounds x once.
    fn add_steps<A>(&mut self, a: &A, b: &B::Slice<T>, x: &B::Slice<T>, units: &Units<T::Real>) -> Result<f64>
    where
        A: LinearOperator<T, B> + ?Sized,
    {
        self.backend.axpby(T::one(), x, T::from_real(units.unit), &mut self.work.x)?;
        self.certify(a, b, units)
    }

    /// The certificate: q = b - A x for the x in `work`, in units. Returns its norm.
    pub(super) fn certify<A>(&mut self, a: &A, b: &B::Slice<T>, units: &Units<T::Real>) -> Result<f64>
    where
        A: LinearOperator<T, B> + ?Sized,
    {
        let work = &mut self.work;
        units.residual(&self.backend, a, b, &work.x, &mut work.q, &mut work.square)
    }

    /// How far the recurrence's residual has drifted from the certified one: ||q - r||.
    fn drift(&mut self, units: &Units<T::Real>) -> Result<f64> {
        let work = &mut self.work;
        self.backend.axpby(-T::one(), &work.r, T::one(), &mut work.q)?;
        units.norm_of(&self.backend, &work.q, &mut work.square)
    }

    /// r = b - A x in units, in more than working precision where the operator can: what the recurrence starts from
    /// again.
    fn restart<A>(&mut self, a: &A, b: &B::Slice<T>, x: &B::Slice<T>, units: &Units<T::Real>) -> Result<()>
    where
        A: LinearOperator<T, B> + ?Sized,
    {
        a.accurate_residual(&self.backend, T::from_real(units.scale()), b, x, &mut self.work.r)
    }

    /// What one iteration must move at least, see the table in `cg`.
    pub(super) fn bytes_per_iteration<A, M>(&self, a: &A, m: &M) -> usize
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let n = B::len(&*self.work.r);
        let vector = n * size_of::<T>();
        let preconditioner = m.fused().map_or(m.bytes() + 2 * vector, |inverse| inverse_bytes(inverse, n));
        a.bytes() + 8 * vector + preconditioner
    }
}

/// Below this norm, a recurrence holds nothing but rounding errors.
pub(super) fn floor<T: Scalar>(units: &Units<T::Real>) -> f64 {
    <T::Real as Float>::epsilon().to_f64() * 1e-3 * units.b_norm
}

/// What an iteration reads of an inverse that its steps apply on the way.
pub(super) fn inverse_bytes<T: Scalar, B: KrylovSteps>(inverse: Inverse<'_, T, B>, n: usize) -> usize {
    match inverse {
        Inverse::Identity => 0,
        Inverse::Rounded(_) => 2 * n * size_of::<f32>(),
        Inverse::Diagonal(_) | Inverse::General(_) => 2 * n * size_of::<T::Real>(),
    }
}

impl<T: Scalar, F: FnMut(usize, f64) -> ControlFlow<()>> Solve<'_, T, F> {
    pub(super) fn observe(&mut self, norm: f64) -> ControlFlow<()> {
        self.history.push(norm);
        (self.observer)(self.iterations, norm)
    }
}
