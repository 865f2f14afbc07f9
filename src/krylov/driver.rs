//! The driver of every Krylov method, from b and x to a report: start, stopping criterion, certificate, restart.
//!
//! ```text
//! r = b - A x                                        the certificate: recomputed, never the recurrence's own
//! while ||r|| is above the threshold
//!     start the method from r, iterate until it says that it has converged or ends otherwise
//!     x = x + the sum of its steps
//!     r = b - A x
//!     if r and the recurrence's residual have drifted apart, start again from an accurate r
//! ```
//!
//! `docs/internals/numerics.md` in the repository gives the rules and their reasons.

mod certificate;

use super::cycle::{End, Iterations, Pace, Run};
use super::judge::Judge;
use super::method::{Aim, Method, System, Vectors};
use super::progress::{Best, Solve};
use super::units::Units;
use super::{Outcome, Report, SolveOptions, check_sizes};
use crate::backend::{Alone, Backend, Communicator, Mailbox, Slot, Space, VectorOps};
use crate::error::Result;
use crate::lock::lock;
use crate::operator::LinearOperator;
use crate::precondition::Preconditioner;
use crate::scalar::Scalar;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// If the residual of the recurrence has drifted from the true one by less than the threshold, the recurrence must next
/// reach (threshold - drift) times this factor.
const SAFETY: f64 = 0.9;

/// Each restart from b - A x must make the residual smaller by this factor, or the solve has stagnated.
const PROGRESS: f64 = 0.5;

/// Each restart multiplies the target of the recurrence by this factor, because rounding of x adds to the residual.
const HEADROOM: f64 = 0.1;

/// Steps of the power method for ||A||. A rough estimate is enough, since the tolerance that it is multiplied with is
/// small.
const POWER_STEPS: usize = 8;

/// A solver: a [`Method`] with its driver, and the memory of both. Keep it, and solve many times.
///
/// [`Cg`](super::Cg), [`Minres`](super::Minres), [`Gmres`](super::Gmres), [`BiCgStab`](super::BiCgStab) and
/// [`Lsmr`](super::Lsmr) are this type with the methods of the library.
#[derive(Debug)]
pub struct Krylov<T: Scalar, B: VectorOps, M: Method<T, B, C>, C: Communicator<B> = Alone> {
    pub(super) space: Space<B, C>,
    pub(super) options: SolveOptions,
    pub(super) method: M,
    mailbox: B::Mailbox<M::Word>,
    pub(super) square: B::Vec<T::Real>,
    squares: B::Vec<T::Real>,
    /// A^H r, for least-squares methods, and a work vector as long as b.
    gradient: B::Vec<T>,
    image: B::Vec<T>,
    pub(super) history: Vec<f64>,
    pub(super) iterating: Duration,
}

/// The iterations of a solve that were done before (by [`MultiCg`](super::MultiCg)); the history has their norms.
pub(super) struct Begun<'a, T: Scalar, B: VectorOps> {
    pub(super) iterations: usize,
    /// True if the observer has stopped it.
    pub(super) stopped: bool,
    /// The sum of the steps, scaled, which is still to be added to x.
    pub(super) sum: Option<&'a B::Slice<T>>,
}

/// The iterations done before, and the judge of the solution.
type Course<'a, 'j, T, B> = (Option<Begun<'a, T, B>>, Option<&'a mut Judge<'j, T, B>>);

/// ||b - A x|| for an x, and the outcome that follows from it.
#[derive(Clone, Copy)]
struct Certificate {
    residual: f64,
    /// The quantity that has to decrease: the norm of the residual, or ||A^H r|| for least-squares methods.
    measure: f64,
    /// ||x||, if it was measured.
    length: Option<f64>,
    met: Option<Outcome>,
}

impl<T: Scalar, B: VectorOps, M: Method<T, B, C>, C: Communicator<B>> Krylov<T, B, M, C> {
    /// A solver with a method of your own, on vectors of `space`.
    ///
    /// # Errors
    /// If the tolerance is negative, infinite or NaN, and if memory runs out.
    pub fn with_method(space: Space<B, C>, method: M, options: SolveOptions) -> Result<Self> {
        options.check()?;
        let shape = if method.is_least_squares() { method.shape() } else { (0, 0) };
        let (mailbox, square, squares, gradient, image) = room::<T, B, M::Word>(space.backend(), shape)?;
        Ok(Self {
            mailbox,
            square,
            squares,
            gradient,
            image,
            history: Vec::with_capacity(1 + options.iteration_limit(method.shape().1).min(10_000)),
            options,
            method,
            iterating: Duration::ZERO,
            space,
        })
    }

    /// Solves A x = b, starting from x and leaving the solution there (or what [`Outcome`] says). `observer(iteration,
    /// residual norm)` is called with the recurrence's residual at the start and after each iteration, and can stop the
    /// solve; the report's residual is the recomputed b - A x. The observer is at most [`Backend::QUEUE_DEPTH`] times
    /// [`VectorOps::RECORDED`] iterations late; with persistent iterations of a small system, twice
    /// [`KrylovSteps::PERSISTENT_ITERATIONS`].
    ///
    /// If b or the starting vector has an infinite or NaN entry, x stays as it was. b = 0 gives x = 0.
    ///
    /// # Errors
    /// If sizes do not fit, if memory runs out for the preconditioner's workspace, or if the device fails.
    ///
    /// [`Backend::QUEUE_DEPTH`]: crate::Backend::QUEUE_DEPTH
    /// [`KrylovSteps::PERSISTENT_ITERATIONS`]: crate::backend::KrylovSteps::PERSISTENT_ITERATIONS
    pub fn solve<A, P>(
        &mut self,
        a: &A,
        m: &P,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report>
    where
        A: LinearOperator<T, B> + ?Sized,
        P: Preconditioner<T, B> + ?Sized,
    {
        // Dynamic dispatch, so that the driver is not compiled for each operator.
        let observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()> = &mut observer;
        self.drive(System { a: &a, m: &m }, b, x, (None, None), observer)
    }

    /// [`Krylov::solve`] with a judge, which is called for an x that meets the tolerance. If it requires more, the
    /// method goes on; if it says that x is not the solution, the report says [`Outcome::Stagnated`].
    pub(crate) fn solve_judged(
        &mut self,
        (a, m): (&dyn LinearOperator<T, B>, &dyn Preconditioner<T, B>),
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
        judge: &mut Judge<'_, T, B>,
    ) -> Result<Report> {
        self.drive(System { a: &a, m: &m }, b, x, (None, Some(judge)), observer)
    }

    /// The method.
    pub fn method(&self) -> &M {
        &self.method
    }

    /// The stopping criterion.
    pub fn options(&self) -> &SolveOptions {
        &self.options
    }

    /// Sets other options for the next solve.
    ///
    /// # Errors
    /// If the tolerance is negative, infinite or NaN.
    pub fn set_options(&mut self, options: SolveOptions) -> Result<()> {
        options.check()?;
        self.options = options;
        Ok(())
    }

    /// Residual norms of the last solve's recurrence: at the start, then after each iteration.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// Time that the last solve spent in iterations. The rest went into the norm of b, the start and the certificates.
    pub fn iterating(&self) -> Duration {
        self.iterating
    }

    /// Takes the history out.
    pub fn into_history(self) -> Vec<f64> {
        self.history
    }

    /// The body of [`Krylov::solve`], from the start or after the iterations that were done before.
    pub(super) fn drive(
        &mut self,
        system: System<'_, T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        (begun, judge): Course<'_, '_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report> {
        let shape = self.method.shape();
        let square = !self.method.is_least_squares();
        check_sizes(shape, square, system, B::len(b), B::len(x))?;
        self.method.fit(&self.space, system)?;
        let scratch = self.method.vectors().scratch;
        let units = Units::of(&self.space, b, scratch, &mut self.square)?;
        let mut history = std::mem::take(&mut self.history);
        if begun.is_none() {
            history.clear();
        }
        self.iterating = Duration::ZERO;
        let gradient = self.options.least_squares_tolerance::<T>();
        // Summed over all ranks, so that all ranks use the same limits.
        let unknowns = self.space.len_over_all(shape.1, &mut self.square)?;
        let mut solve = Solve {
            units,
            threshold: self.options.threshold::<T>(units.b_norm),
            gradient,
            gradient_aim: HEADROOM * gradient,
            limit: self.options.iteration_limit(unknowns),
            window: self.options.window(unknowns),
            iterations: begun.as_ref().map_or(0, |begun| begun.iterations),
            best: Best::default(),
            length: None,
            history: &mut history,
            observer,
        };
        let bytes_per_iteration = self.method.bytes_per_iteration(system);
        let Self { space, method, mailbox, square, squares, gradient, image, iterating, .. } = self;
        let memory = Memory { space, method, mailbox, square, squares, gradient, image, iterating };
        let end = memory.run(system, b, x, (begun, judge), &mut solve);
        let (iterations, solution_norm) = (solve.iterations, solve.length);
        self.history = history;
        let (outcome, residual_norm, restarts) = end?;
        let relative_residual = if residual_norm == 0.0 { 0.0 } else { residual_norm / units.b_norm };
        Ok(Report {
            outcome,
            iterations,
            residual_norm,
            relative_residual,
            solution_norm,
            restarts,
            bytes_per_iteration,
        })
    }
}

/// The mailbox, `square`, `squares`, `gradient` and `image` of a solver, separate from the method so that their code is
/// compiled only once.
type Room<T, B, W> = (
    <B as Backend>::Mailbox<W>,
    <B as Backend>::Vec<<T as Scalar>::Real>,
    <B as Backend>::Vec<<T as Scalar>::Real>,
    <B as Backend>::Vec<T>,
    <B as Backend>::Vec<T>,
);

/// Allocates the driver's workspace for an operator of this shape.
fn room<T: Scalar, B: VectorOps, W: Scalar>(
    backend: &B,
    (rows, columns): (usize, usize),
) -> Result<Room<T, B, W>> {
    Ok((
        backend.mailbox(Slot::MESSAGE)?,
        backend.zeros(1)?,
        backend.zeros(2)?,
        backend.zeros(columns)?,
        backend.zeros(rows)?,
    ))
}

/// The method and the memory of a solver, without the type of the method: what follows is compiled once for each scalar
/// type and not for each method.
struct Memory<'m, T: Scalar, B: VectorOps, W: Scalar<Real = T::Real>, C: Communicator<B>> {
    space: &'m Space<B, C>,
    method: &'m mut dyn Method<T, B, C, Word = W>,
    mailbox: &'m B::Mailbox<W>,
    square: &'m mut B::Vec<T::Real>,
    squares: &'m mut B::Vec<T::Real>,
    gradient: &'m mut B::Vec<T>,
    image: &'m mut B::Vec<T>,
    iterating: &'m mut Duration,
}

impl<T: Scalar, B: VectorOps, W: Scalar<Real = T::Real>, C: Communicator<B>> Memory<'_, T, B, W, C> {
    /// Runs until the outcome is known; returns it with the certificate and the number of restarts.
    fn run(
        self,
        system: System<'_, T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        (begun, judge): Course<'_, '_, T, B>,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
    ) -> Result<(Outcome, f64, usize)> {
        if !solve.units.b_norm.is_finite() {
            return Ok((Outcome::NotFinite, f64::NAN, 0));
        }
        let Self { space, method, mailbox, square, squares, gradient, image, iterating } = self;
        let pace = Pace::new::<B>(method.bytes_behind(system), system.m.steps());
        let waits = system.a.waits() || system.m.waits() || space.communicator().waits();
        let period = method.period();
        let method = Mutex::new(method);
        // Recordings keep a reference to the method from one start to the next, so every access takes the lock.
        let iterate = |step: usize| {
            let mut method = lock(&method);
            method.iterate(space, system, step)?;
            mailbox.post(space.backend(), B::part(method.message(), 0..Slot::MESSAGE))
        };
        let iterations = Iterations::new(space.backend(), &iterate, pace, period, waits);
        let mut driver = Driver {
            space,
            system,
            method: &method,
            mailbox,
            iterations,
            square,
            squares,
            gradient,
            image,
            iterating,
            judge,
            asked: false,
            went_on: false,
            norm_of_a: None,
            last: 0.0,
        };
        let mut begun = begun;
        let sum = begun.as_ref().and_then(|begun| begun.sum);
        let mut now = driver.enter(b, x, sum, solve)?;
        let goes_on = begun.as_ref().is_some_and(|begun| !begun.stopped) && solve.iterations < solve.limit;
        let grown = |start: &f64| now.residual.is_nan() || now.residual > *start;
        if goes_on && solve.history.first().is_some_and(grown) {
            // The recurrence of the earlier iterations ended normally, but its x has a larger residual than the
            // starting vector: start again from there, as after a fault.
            (begun, solve.iterations) = (None, 0);
            solve.history.clear();
            now = driver.enter(b, x, None, solve)?;
        }
        if !now.residual.is_finite() {
            return Ok((Outcome::NotFinite, f64::NAN, 0));
        }
        if begun.is_some() {
            driver.take_over(x)?;
        }
        let stopped =
            begun.as_ref().map_or_else(|| solve.observe(now.residual).is_break(), |begun| begun.stopped);
        if let Some(outcome) = now.met.or(stopped.then_some(Outcome::Interrupted)) {
            return Ok((outcome, now.residual, 0));
        }
        if begun.is_some() {
            // As at a restart: the residual of an x near the solution loses digits by cancellation.
            driver.restart(b, x, &solve.units)?;
        } else {
            driver.begin_at_certificate()?;
        }
        driver.finish(b, x, solve, now)
    }
}

/// The references that a solve works with.
struct Driver<'d, 'm, 'j, T: Scalar, B: VectorOps, W: Scalar<Real = T::Real>, C: Communicator<B>> {
    space: &'d Space<B, C>,
    system: System<'d, T, B>,
    method: &'d Mutex<&'m mut dyn Method<T, B, C, Word = W>>,
    mailbox: &'d B::Mailbox<W>,
    iterations: Iterations<'d, B>,
    square: &'d mut B::Vec<T::Real>,
    squares: &'d mut B::Vec<T::Real>,
    gradient: &'d mut B::Vec<T>,
    image: &'d mut B::Vec<T>,
    iterating: &'d mut Duration,
    judge: Option<&'d mut Judge<'j, T, B>>,
    /// True if the judge has required a smaller residual than the threshold.
    asked: bool,
    /// True if the recurrence then continued from where it was, instead of starting from b - A x.
    went_on: bool,
    /// A lower bound of ||A||, once a least-squares method has needed it.
    norm_of_a: Option<f64>,
    /// The last residual norm of the recurrence.
    last: f64,
}

impl<T: Scalar, B: VectorOps, W: Scalar<Real = T::Real>, C: Communicator<B>> Driver<'_, '_, '_, T, B, W, C> {
    /// Starts the method again and again, each time from the current residual, until the outcome is known.
    fn finish(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
        start: Certificate,
    ) -> Result<(Outcome, f64, usize)> {
        let floor = solve.units.floor();
        let mut residual = start.residual;
        // Least-squares methods have their first certificate when the recurrence ends for the first time.
        let least_squares = lock(self.method).is_least_squares();
        let last_counts = lock(self.method).last_iterate_counts();
        let first = if least_squares { f64::INFINITY } else { start.measure };
        let (mut restarts, mut rounds, mut measure, mut before) = (0, 0, first, first);
        let (mut aim, mut resume) = (solve.threshold, false);
        loop {
            if residual <= floor {
                return Ok((Outcome::Stagnated, residual, restarts + rounds));
            }
            let end = self.recurrence(aim.max(floor), resume, solve)?;
            let reached = self.add_steps(b, x, solve)?;
            let better = match end {
                End::Final(Outcome::IterationLimit | Outcome::Interrupted) if last_counts => {
                    reached.residual.is_finite()
                }
                _ => reached.measure < measure || reached.met.is_some(),
            };
            if better {
                self.take_over(x)?;
                (residual, measure, solve.length) = (reached.residual, reached.measure, reached.length);
            }
            let met = reached.met.filter(|_| better);
            let lost = !reached.residual.is_finite()
                || match end {
                    End::Final(outcome) => {
                        matches!(outcome, Outcome::Breakdown { .. } | Outcome::Stagnated | Outcome::NotFinite)
                    }
                    End::Cycle => !better,
                    End::Met => restarts > 0 && measure > PROGRESS * before,
                };
            if met.is_none() && lost && self.fall_back()? {
                self.restart(b, x, &solve.units)?;
                (aim, resume, solve.best) = (solve.threshold, false, Best::default());
                continue;
            }
            match end {
                _ if met.is_some() => {
                    return Ok((met.unwrap_or(Outcome::Converged), residual, restarts + rounds));
                }
                _ if !reached.residual.is_finite() => {
                    return Ok((Outcome::NotFinite, residual, restarts + rounds));
                }
                End::Final(outcome) => return Ok((outcome, residual, restarts + rounds)),
                End::Cycle if better => {
                    self.begin_at_certificate()?;
                    resume = false;
                    continue;
                }
                End::Cycle | End::Met => {}
            }
            let drift = self.drift(reached.residual, &solve.units)?;
            aim = SAFETY * (solve.threshold - drift);
            resume = better && drift <= 0.5 * solve.threshold && aim > floor;
            // If continuing the recurrence was not enough, a start from b - A x may be.
            resume &= !(self.asked && self.went_on);
            if resume && lock(self.method).resume(self.space, self.aim(aim, solve))? {
                self.went_on = self.asked;
                continue;
            }
            resume = false;
            if self.asked {
                // The threshold has changed, so this is not stagnation.
                self.went_on = false;
                self.restart(b, x, &solve.units)?;
                (aim, before, solve.best) = (solve.threshold, measure, Best::default());
                rounds += 1;
                continue;
            }
            if restarts > 0 && measure > PROGRESS * before {
                return Ok((Outcome::Stagnated, residual, restarts + rounds));
            }
            self.restart(b, x, &solve.units)?;
            before = measure;
            restarts += 1;
            aim = solve.threshold * HEADROOM.powi(restarts as i32);
            solve.gradient_aim = solve.gradient * HEADROOM.powi(restarts as i32 + 1);
            solve.best = Best::default();
        }
    }

    /// Switches the method to a more careful form from the next start on. Returns whether it has one.
    fn fall_back(&mut self) -> Result<bool> {
        let falls = lock(self.method).fall_back(self.space, self.system)?;
        if falls {
            self.iterations.forget();
        }
        Ok(falls)
    }

    fn aim<F>(&self, aim: f64, solve: &Solve<'_, T, F>) -> Aim<T::Real> {
        Aim { square: solve.units.square(aim), gradient: solve.gradient_aim }
    }

    /// Sets `steps` to the starting x: the caller's plus the sum of the earlier steps. Returns its certificate.
    fn enter<F>(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        sum: Option<&B::Slice<T>>,
        solve: &mut Solve<'_, T, F>,
    ) -> Result<Certificate> {
        let backend = self.space.backend();
        if solve.units.b_norm == 0.0 {
            backend.fill(T::zero(), x)?;
        }
        {
            let mut method = lock(self.method);
            let steps = method.vectors().steps;
            backend.copy(x, steps)?;
            if let Some(sum) = sum {
                backend.axpby(T::from_real(solve.units.unit), sum, T::one(), steps)?;
            }
        }
        self.certify(b, solve, false)
    }

    /// Copies `steps` to x.
    fn take_over(&mut self, x: &mut B::Slice<T>) -> Result<()> {
        let mut method = lock(self.method);
        self.space.backend().copy(method.vectors().steps, x)
    }

    /// Restarts the recurrence from the residual that the certificate computed.
    fn begin_at_certificate(&mut self) -> Result<()> {
        let mut method = lock(self.method);
        let Vectors { residual, scratch, .. } = method.vectors();
        self.space.backend().copy(scratch, residual)
    }

    /// Runs the recurrence from the residual, or from where it stopped, until it reports ||r|| <= `aim` or ends
    /// otherwise.
    fn recurrence(
        &mut self,
        aim: f64,
        resumed: bool,
        solve: &mut Solve<'_, T, impl FnMut(usize, f64) -> ControlFlow<()>>,
    ) -> Result<End> {
        let aim = self.aim(aim, solve);
        let (space, system) = (self.space, self.system);
        if !resumed {
            lock(self.method).start(space, system, aim)?;
        }
        let start = Instant::now();
        let left = solve.limit.saturating_sub(solve.iterations);
        let cycle = lock(self.method).cycle().unwrap_or(usize::MAX);
        let none = if cycle < left { End::Cycle } else { End::Final(Outcome::IterationLimit) };
        let left = left.min(cycle);
        let mut run = Run::new();
        let mut last = self.last;
        let mut message = [W::zero(); Slot::MESSAGE];
        let units = solve.units;
        let mut take = |message: &[W]| {
            last = units.norm(message[Slot::RR.place()].re());
            run.take(solve, message);
            run.goes_on()
        };
        if !lock(self.method).at_once(space, system, left, &mut take)? {
            self.iterations.run(self.mailbox, &mut message, left, &mut take)?;
        }
        self.last = last;
        let mut method = lock(self.method);
        let done = run.done();
        let end = match run.end(none) {
            End::Final(fault @ Outcome::NotPositiveDefinite { .. }) => {
                End::Final(method.explain(space, system, fault)?)
            }
            end => end,
        };
        method.finish(space, system, done)?;
        *self.iterating += start.elapsed();
        Ok(end)
    }

    /// Adds x to `steps`, and returns the certificate of the sum. Because the steps were summed separately, x is
    /// rounded only once.
    fn add_steps<F>(
        &mut self,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        solve: &mut Solve<'_, T, F>,
    ) -> Result<Certificate> {
        {
            let mut method = lock(self.method);
            let steps = method.vectors().steps;
            self.space.backend().axpby(T::one(), x, T::from_real(solve.units.unit), steps)?;
        }
        self.certify(b, solve, true)
    }
}
