//! Iterative refinement: conjugate gradients in half the precision, residuals in full.
//!
//! ```text
//! repeat   r = b - A x                    in full precision; stop when it meets the tolerance
//!          solve A' d = r roughly         A', r and d in half the precision, by conjugate gradients
//!          x = x + d
//! ```
//!
//! N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., chapter 12. An inner iteration moves half the
//! bytes of a plain one; each repetition costs a product and a few vector operations, and discards the last Krylov
//! space. It converges if half the precision can solve the system at all (a condition number well below 1e7 for single
//! precision); if not, it reports [`Outcome::Stagnated`], and full precision may still converge.

use super::judge::{Certified, Judge, Judgement};
use super::method::System;
use super::units::Units;
use super::{Cg, Outcome, Report, SolveOptions, check_sizes};
use crate::backend::{KrylovSteps, PreconditionSteps, Space};
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::precondition::{Identity, Preconditioner};
use crate::scalar::{Real, Scalar};
use num_traits::{Float, Zero};
use std::ops::ControlFlow;
use std::time::Duration;

/// The relative tolerance of the inner solve.
const INNER: f64 = 1e-4;

/// Each repetition must make the residual smaller by this factor, or the solve has stagnated.
const PROGRESS: f64 = 0.5;

/// Iterative refinement for n unknowns with values of type `T`, and an inner solver with `T::Lower`. Keep it, and
/// solve many times.
pub struct Refinement<T: Scalar, B: KrylovSteps + PreconditionSteps> {
    space: Space<B>,
    options: SolveOptions,
    inner: Cg<T::Lower, B>,
    r: B::Vec<T>,
    best: B::Vec<T>,
    right: B::Vec<T::Lower>,
    step: B::Vec<T::Lower>,
    square: B::Vec<T::Real>,
    history: Vec<f64>,
    iterating: Duration,
}

impl<T: Scalar, B: KrylovSteps + PreconditionSteps> std::fmt::Debug for Refinement<T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Refinement of {} unknowns on {}", B::len(&*self.r), self.space.backend().description())
    }
}

impl<T: Scalar, B: KrylovSteps + PreconditionSteps> Refinement<T, B> {
    /// A solver for `n` unknowns: 2 n scalars, and 6 n in half the precision.
    ///
    /// # Errors
    /// As [`Cg::new`].
    pub fn new(backend: &B, n: usize, options: SolveOptions) -> Result<Self> {
        Ok(Self {
            inner: Cg::new(backend, n, options.clone())?,
            r: backend.zeros(n)?,
            best: backend.zeros(n)?,
            right: backend.zeros(n)?,
            step: backend.zeros(n)?,
            square: backend.zeros(1)?,
            space: Space::new(backend.clone()),
            options,
            history: Vec::new(),
            iterating: Duration::ZERO,
        })
    }

    /// Solves A x = b from x. `low` is A, and `m` its preconditioner, in half the precision. Everything else is as for
    /// [`Cg::solve`]; the report counts inner iterations, and the bytes of one of them.
    ///
    /// # Errors
    /// As [`Cg::solve`].
    pub fn solve<A, L, M>(
        &mut self,
        a: &A,
        low: &L,
        m: &M,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report>
    where
        A: LinearOperator<T, B> + ?Sized,
        L: LinearOperator<T::Lower, B> + ?Sized,
        M: Preconditioner<T::Lower, B> + ?Sized,
    {
        self.solve_judged((a, low, m), b, x, observer, &mut |_| Ok(Judgement::Met))
    }

    /// [`Refinement::solve`] with a judge, as [`Krylov::solve_judged`](super::Krylov::solve_judged).
    pub(crate) fn solve_judged<A, L, M>(
        &mut self,
        (a, low, m): (&A, &L, &M),
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
        judge: &mut Judge<'_, T, B>,
    ) -> Result<Report>
    where
        A: LinearOperator<T, B> + ?Sized,
        L: LinearOperator<T::Lower, B> + ?Sized,
        M: Preconditioner<T::Lower, B> + ?Sized,
    {
        let n = B::len(&*self.r);
        check_sizes((n, n), true, System { a: &a, m: &Identity }, B::len(b), B::len(x))?;
        Error::check_dimension("rows of the preconditioner", n, m.rows().unwrap_or(n))?;
        Error::check_dimension("rows of the operator in half the precision", n, low.rows())?;
        let units = Units::of(&self.space, b, &mut self.r, &mut self.square)?;
        let mut threshold = self.options.threshold::<T>(units.b_norm);
        let limit = self.options.iteration_limit(n);
        self.history.clear();
        self.iterating = Duration::ZERO;
        let mut report = Report {
            outcome: Outcome::NotFinite,
            iterations: 0,
            residual_norm: f64::NAN,
            relative_residual: f64::NAN,
            solution_norm: None,
            restarts: 0,
            bytes_per_iteration: 0,
        };
        if !units.b_norm.is_finite() {
            return Ok(report);
        }
        if units.b_norm == 0.0 {
            self.space.backend().fill(T::zero(), x)?;
        }
        let mut residual = units.residual(&self.space, a, b, x, &mut self.r, &mut self.square)?;
        if !residual.is_finite() {
            return Ok(report);
        }
        self.history.push(residual);
        let mut stopped = observer(0, residual).is_break();
        report.outcome = loop {
            if residual <= threshold {
                let relative = if residual == 0.0 { 0.0 } else { residual / units.b_norm };
                let scale = units.scale().to_f64();
                match judge(Certified { x: &*x, r: &self.r, scale, relative, meets: true })? {
                    Judgement::Met => break Outcome::Converged,
                    Judgement::Missed => break Outcome::Stagnated,
                    Judgement::More(relative) => threshold = relative * units.b_norm,
                }
            }
            if stopped {
                break Outcome::Interrupted;
            }
            if report.iterations >= limit {
                break Outcome::IterationLimit;
            }
            let left = limit - report.iterations;
            let tolerance = (0.5 * threshold / residual).max(INNER);
            let options = self.options.clone().tolerance(tolerance).max_iterations(left);
            let done = report.iterations;
            // A device that runs ahead may finish the inner solve before the observer stops it.
            let inner = self.correct(low, m, x, residual, &units, options, |iteration, norm| {
                let wish = observer(done + iteration, norm);
                stopped |= wish.is_break();
                wish
            })?;
            report.iterations += inner.iterations;
            report.bytes_per_iteration = inner.bytes_per_iteration;
            let reached = units.residual(&self.space, a, b, x, &mut self.r, &mut self.square)?;
            let before = residual;
            if reached < residual {
                residual = reached;
            } else {
                self.space.backend().copy(&self.best, x)?;
            }
            let spent = inner.outcome == Outcome::IterationLimit;
            if !stopped && !spent && residual > threshold && residual > PROGRESS * before {
                break Outcome::Stagnated;
            }
            report.restarts += 1;
        };
        report.restarts = report.restarts.saturating_sub(1);
        report.residual_norm = residual;
        report.relative_residual = if residual == 0.0 { 0.0 } else { residual / units.b_norm };
        Ok(report)
    }

    /// Residual norms of the last solve: at the start, then after each inner iteration.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// The time that the inner iterations of the last solve took.
    pub fn iterating(&self) -> Duration {
        self.iterating
    }

    /// x += d, where A' d = r is solved with `options`, and `best` keeps the previous x. `residual` is the norm of r.
    /// `told` is called after each inner iteration with the residual norm in the units of b.
    #[allow(clippy::too_many_arguments)] // called once, split off from `solve`
    fn correct<L, M>(
        &mut self,
        low: &L,
        m: &M,
        x: &mut B::Slice<T>,
        residual: f64,
        units: &Units<T::Real>,
        options: SolveOptions,
        mut told: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report>
    where
        L: LinearOperator<T::Lower, B> + ?Sized,
        M: Preconditioner<T::Lower, B> + ?Sized,
    {
        // A power of two: scaling with it does not round.
        let exponent = (residual / units.unit.to_f64()).log2().round();
        let scale = <T::Real as Float>::powi(T::Real::from_f64(2.0), -exponent as i32);
        let unit = units.unit / scale;
        self.space.backend().narrow::<T>(scale, &self.r, &mut self.right)?;
        self.space.backend().fill(T::Lower::zero(), &mut self.step)?;
        self.inner.options = options;
        let history = &mut self.history;
        let report = self.inner.solve(low, m, &self.right, &mut self.step, |iteration, norm| {
            if iteration == 0 {
                return ControlFlow::Continue(());
            }
            let norm = norm * unit.to_f64();
            history.push(norm);
            told(iteration, norm)
        })?;
        self.iterating += self.inner.iterating();
        self.space.backend().copy(x, &mut self.best)?;
        self.space.backend().add_narrow::<T>(unit, &self.step, x)?;
        Ok(report)
    }
}
