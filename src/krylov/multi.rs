//! Conjugate gradients for several right-hand sides of one matrix at once.
//!
//! Each system has its own recurrence, that of [`Cg`]. All recurrences advance in step, so that the matrix is read once
//! for all. The systems are independent; one that has ended stands still until the last one has ended. Then each goes
//! through an ordinary solve from the x that it reached, which certifies b - A x with one product, continues if the
//! tolerance is not met, and determines the outcome.
//!
//! An iteration of k systems moves the matrix once and 10 k vectors of n scalars; Jacobi adds twice the diagonal, once
//! for all (n reals, or n in single precision). One by one it would be k matrices and k diagonals. Solving together is
//! therefore faster if a row of the matrix takes many bytes compared to 80 (in double precision), as with 27 or more
//! entries per row; it is not if the matrix is compressed to almost nothing. Before and after the common iterations
//! each system takes one product by itself.

use super::cg::{Work, inverse_bytes};
use super::cycle::{End, Iterations, Pace, Run};
use super::driver::Begun;
use super::method::System;
use super::progress::{Best, Solve};
use super::units::Units;
use super::{Cg, Outcome, Report, SolveOptions, check_sizes, count_systems};
use crate::backend::{CgSlot, CgStatus, KrylovSteps, Mailbox};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::operator::LinearOperator;
use crate::precondition::Preconditioner;
use crate::scalar::Scalar;
use num_traits::Zero;
use std::cell::{Cell, RefCell};
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A conjugate gradient solver for up to 32 right-hand sides of one matrix at once, with the memory it needs: keep it,
/// and solve many times.
///
/// ```
/// use residua::{Csr, Host, krylov::{MultiCg, SolveOptions}, precondition::Jacobi};
/// use std::ops::ControlFlow;
/// // | 2 -1 |
/// // |-1  3 | x = (1, 2) and (4, -2)
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, -1.0, -1.0, 3.0])?;
/// let jacobi = Jacobi::new(&Host, &a)?;
/// let mut cg = MultiCg::new(&Host, 2, 2, SolveOptions::default())?;
/// let mut x = vec![0.0; 4]; // one after another, as the right-hand sides
/// let reports = cg.solve(&a, &jacobi, &[1.0, 2.0, 4.0, -2.0], &mut x, |_, _, _| ControlFlow::Continue(()))?;
/// assert!(reports.iter().all(|report| report.outcome.is_converged()));
/// assert!(x.iter().zip([1.0, 1.0, 2.0, 0.0]).all(|(x, expected): (&f64, f64)| (x - expected).abs() < 1e-12));
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug)]
pub struct MultiCg<T: Scalar, B: KrylovSteps> {
    /// Solves each system by itself, before and after the common iterations.
    cg: Cg<T, B>,
    /// The vectors and scalars of all recurrences, side by side.
    work: Work<T, B>,
    mailbox: B::Mailbox<T::Real>,
    /// The states of all systems, on the host.
    state: Vec<T::Real>,
    histories: Vec<Vec<f64>>,
    reports: Vec<Report>,
    iterating: Duration,
}

/// One of the systems: its solve, and its run of iterations.
struct Member<'a, T: Scalar, F> {
    solve: Solve<'a, T, F>,
    run: Run,
}

impl<T: Scalar, B: KrylovSteps> MultiCg<T, B> {
    /// The maximum number of systems at once.
    pub const MOST: usize = 32;

    /// A solver for up to `systems` right-hand sides of `n` unknowns at once: 4 n scalars for each, and 4 n more.
    ///
    /// # Errors
    /// If `systems` is zero or more than [`MultiCg::MOST`], and as [`Cg::new`].
    pub fn new(backend: &B, n: usize, systems: usize, options: SolveOptions) -> Result<Self> {
        if !(1..=Self::MOST).contains(&systems) {
            let most = Self::MOST;
            return Err(Error::InvalidArgument(format!(
                "{systems} systems were given at once, but only 1 to {most} are possible"
            )));
        }
        let kept = 1 + options.iteration_limit(n).min(10_000);
        Ok(Self {
            work: Work::new(backend, n, systems)?,
            mailbox: backend.mailbox(systems * CgSlot::COUNT)?,
            state: vec![T::Real::zero(); systems * CgSlot::COUNT],
            histories: (0..systems).map(|_| Vec::with_capacity(kept)).collect(),
            reports: Vec::with_capacity(systems),
            iterating: Duration::ZERO,
            cg: Cg::new(backend, n, options)?,
        })
    }

    /// Solves A x = b for the right-hand sides that are stored one after another in `b`, up to the number that the
    /// solver is for. x, stored in the same way, holds the starting vectors and gets the solutions. Returns a report
    /// for each system, as [`Cg::solve`] does: its iterations are the common ones plus those of this system alone, and
    /// its bytes per iteration are its share of a common iteration. `observer(system, iteration, residual norm)` is
    /// called for each recurrence, and can stop all of them. Fewer systems take as long as the full number.
    ///
    /// Systems are solved one by one if the operator can't multiply several vectors ([`LinearOperator::block_bytes`])
    /// or the preconditioner can't be fused ([`Preconditioner::fused`]). A system whose recurrence ended with a fault,
    /// or with a larger residual than at its start, is solved once more from its start: its outcome is that of
    /// [`Cg::solve`], and the observer sees it again.
    ///
    /// # Errors
    /// If the length of b is not a multiple of the number of unknowns, or b has more systems than the solver is for,
    /// and as [`Cg::solve`].
    pub fn solve<A, M>(
        &mut self,
        a: &A,
        m: &M,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: impl FnMut(usize, usize, f64) -> ControlFlow<()>,
    ) -> Result<&[Report]>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let n = B::len(&*self.cg.method.work.r);
        let system = System { a: &a, m: &m };
        check_sizes((n, n), true, system, n, n)?;
        let systems = count_systems(n, B::len(b), B::len(x))?;
        if systems > self.histories.len() {
            let room = self.histories.len();
            return Err(Error::InvalidArgument(format!(
                "{systems} right-hand sides, but the solver has memory for {room}"
            )));
        }
        self.reports.clear();
        self.histories.iter_mut().for_each(Vec::clear);
        self.iterating = Duration::ZERO;
        let (observer, stop) = (RefCell::new(observer), Cell::new(false));
        let watch = |system, iteration, norm| {
            let flow = observer.borrow_mut()(system, iteration, norm);
            stop.set(stop.get() || flow.is_break());
            flow
        };
        let share = if systems > 1 { self.share_of_bytes(a, m) } else { None };
        let mut reached = vec![None; systems];
        if share.is_some() {
            self.together(a, m, b, x, &watch, &stop, &mut reached)?;
        }
        for (number, reached) in reached.into_iter().enumerate() {
            let own = range(number, n);
            let begun = match reached {
                Some(iterations) => {
                    let sum = Some(B::part(&self.work.q, own.clone()));
                    Some(Begun { iterations, stopped: stop.get(), sum })
                }
                None if stop.get() => Some(Begun { iterations: 0, stopped: true, sum: None }),
                None => None,
            };
            let history = &mut self.histories[number];
            std::mem::swap(history, &mut self.cg.history);
            let (b, x) = (B::part(b, own.clone()), B::part_mut(x, own));
            let mut observer = |iteration, norm| watch(number, iteration, norm);
            let report = self.cg.drive(system, b, x, (begun, None), &mut observer);
            self.histories[number].clone_from(&self.cg.history);
            let mut report = report?;
            self.iterating += self.cg.iterating;
            if let (Some(_), Some(share)) = (reached, share) {
                report.bytes_per_iteration = share;
            }
            self.reports.push(report);
        }
        Ok(&self.reports)
    }

    /// Residual norms of the recurrence of a system in the last solve: at the start, then after each iteration.
    ///
    /// # Panics
    /// If the solver is for fewer systems.
    pub fn history(&self, system: usize) -> &[f64] {
        &self.histories[system]
    }

    /// Time that the last solve spent iterating, all systems together.
    pub fn iterating(&self) -> Duration {
        self.iterating
    }

    /// The maximum number of systems.
    pub fn systems(&self) -> usize {
        self.histories.len()
    }

    /// The solver for one system.
    pub(super) fn alone(&mut self) -> &mut Cg<T, B> {
        &mut self.cg
    }

    pub(super) fn last_history(&self) -> &[f64] {
        self.cg.history()
    }

    /// Runs the recurrences of all systems that can take part, until each has ended. The scaled sums of their steps are
    /// left one after another in `work.q`, and `reached` gets the number of iterations of each system, or `None` for a
    /// system that has to be solved alone.
    #[allow(clippy::too_many_arguments)]
    fn together<A, M>(
        &mut self,
        a: &A,
        m: &M,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        watch: &impl Fn(usize, usize, f64) -> ControlFlow<()>,
        stop: &Cell<bool>,
        reached: &mut [Option<usize>],
    ) -> Result<()>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let Self { cg, work, mailbox, state, histories, iterating, .. } = self;
        let (n, k, backend) = (a.rows(), histories.len(), cg.space.backend().clone());
        backend.fill(T::zero(), &mut work.q)?;
        let mut members = Vec::with_capacity(reached.len());
        let histories = histories.iter_mut().take(reached.len());
        for ((system, history), state) in histories.enumerate().zip(state.chunks_exact_mut(CgSlot::COUNT)) {
            let own = range(system, n);
            let (b, x) = (B::part(b, own.clone()), B::part(x, own.clone()));
            let observer = move |iteration, norm| watch(system, iteration, norm);
            let column = B::part_mut(&mut work.q, own);
            members.push(if stop.get() { None } else { cg.join(a, b, x, column, history, observer)? });
            state.copy_from_slice(&CgSlot::to_start(T::Real::zero()));
            match members.last() {
                Some(Some(Member { solve, .. })) => {
                    state[CgSlot::THRESHOLD] = solve.units.square(solve.threshold.max(solve.units.floor()));
                }
                _ => state[CgSlot::STATUS] = CgStatus::Converged.to_real(),
            }
        }
        for state in state.chunks_exact_mut(CgSlot::COUNT).skip(reached.len()) {
            state[CgSlot::STATUS] = CgStatus::Converged.to_real();
        }
        if stop.get() || members.iter().all(Option::is_none) {
            return Ok(());
        }
        backend.interleave(k, &work.q, &mut work.r)?;
        backend.fill(T::zero(), &mut work.x)?;
        let start = Instant::now();
        work.start(&backend, m, state)?;
        let shared = Mutex::new(&mut *work);
        let iterate = |_step: usize| {
            let mut work = lock(&shared);
            work.iterate(&backend, a, m)?;
            mailbox.post(&backend, &work.state)
        };
        let pace = Pace::new::<B>(a.block_bytes(k).unwrap_or(0), m.steps());
        let waits = a.waits() || m.waits();
        let limit = cg.options.iteration_limit(n);
        Iterations::new(&backend, &iterate, pace, 1, waits).run(mailbox, state, limit, |states| {
            let each = members.iter_mut().zip(states.chunks_exact(CgSlot::COUNT));
            for (member, state) in each.filter_map(|(member, state)| Some((member.as_mut()?, state))) {
                // Iterations that were already queued when the observer stopped the solve have changed x as well.
                if member.run.goes_on() || stop.get() {
                    member.run.take(&mut member.solve, &state[..CgSlot::MESSAGE]);
                }
            }
            !stop.get() && members.iter().flatten().any(|member| member.run.goes_on())
        })?;
        backend.separate(k, &work.x, &mut work.q)?;
        *iterating = start.elapsed();
        for (member, reached) in members.into_iter().zip(reached) {
            let Some(Member { solve, run }) = member else { continue };
            let none = End::Final(Outcome::IterationLimit);
            let good = matches!(
                run.end(none),
                End::Met | End::Final(Outcome::IterationLimit | Outcome::Interrupted)
            );
            *reached = good.then_some(solve.iterations);
        }
        Ok(())
    }

    /// The share of a system in the bytes that a common iteration must move; `None` if systems are solved one by one.
    fn share_of_bytes<A, M>(&self, a: &A, m: &M) -> Option<usize>
    where
        A: LinearOperator<T, B> + ?Sized,
        M: Preconditioner<T, B> + ?Sized,
    {
        let (n, k) = (a.rows(), self.systems());
        let product = a.block_bytes(k)?;
        Some((product + inverse_bytes(m.fused()?, n)) / k + 8 * n * size_of::<T>())
    }
}

impl<T: Scalar, B: KrylovSteps> Cg<T, B> {
    /// Prepares a system for the common iterations, with its residual in `column`. Returns `None` if it needs no
    /// iterations, or if its start is not finite.
    fn join<'a, F, A>(
        &mut self,
        a: &A,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        column: &mut B::Slice<T>,
        history: &'a mut Vec<f64>,
        observer: F,
    ) -> Result<Option<Member<'a, T, F>>>
    where
        F: FnMut(usize, f64) -> ControlFlow<()>,
        A: LinearOperator<T, B> + ?Sized,
    {
        let n = a.rows();
        let (space, work) = (&self.space, &mut self.method.work);
        let units = Units::of(space, b, &mut work.q, &mut self.square)?;
        if units.b_norm == 0.0 || !units.b_norm.is_finite() {
            return Ok(None);
        }
        let residual = units.residual(space, a, b, x, &mut work.q, &mut self.square)?;
        let threshold = self.options.threshold::<T>(units.b_norm);
        if !residual.is_finite() || residual <= threshold.max(units.floor()) {
            return Ok(None);
        }
        space.backend().copy(&work.q, column)?;
        let (limit, window) = (self.options.iteration_limit(n), self.options.window(n));
        let (iterations, best, gradient, gradient_aim) = (0, Best::default(), 0.0, 0.0);
        #[rustfmt::skip]
        let mut solve = Solve {
            units, threshold, gradient, gradient_aim, limit, window, iterations, best, length: None, history, observer,
        };
        // If the observer stops the solve here, it has set its own flag.
        let _ = solve.observe(residual);
        Ok(Some(Member { solve, run: Run::new() }))
    }
}

/// The range of a system in vectors that are stored one after another.
fn range(system: usize, n: usize) -> Range<usize> {
    system * n..(system + 1) * n
}
