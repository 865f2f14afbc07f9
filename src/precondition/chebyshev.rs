//! Chebyshev: a polynomial in A as a preconditioner.

use super::spectrum::largest_eigenvalue;
use super::{Jacobi, Preconditioner, Workspace};
use crate::backend::{ChebyshevStep, Communicator, PreconditionSteps, RowFacts, Space};
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::scalar::{Real, Scalar};
use std::sync::Arc;

/// The estimate of the largest eigenvalue is a lower bound, and is multiplied by this.
const MARGIN: f64 = 1.1;

/// M^-1 r is the result of k steps of Chebyshev's iteration for A z = r from z = 0, with D^-1 A, where D is the
/// diagonal of A; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 12.3.2.
///
/// ```text
/// z_1 = step_1 D^-1 r
/// z_j+1 = keep_j z_j + momentum_j z_j-1 + step_j D^-1 (r - A z_j)
/// ```
///
/// The iteration damps the eigenvalues of D^-1 A from a lower bound to just above the largest, which is estimated by a
/// few steps of Lanczos; all smaller ones keep their sign, so that M is positive definite if A is. An application takes
/// k - 1 products and no inner products. A solve needs about a sixth more products than without this preconditioner,
/// but far fewer inner products. If an operator fuses the step with its product ([`LinearOperator::chebyshev_product`])
/// and its matrix takes few bytes, a step moves a third of the bytes of an iteration of conjugate gradients, and a
/// sixth in half the precision ([`Narrowed`](super::Narrowed)).
///
/// The operator and its diagonal are shared with the solver, which multiplies with A too.
pub struct Chebyshev<T: Scalar, B: PreconditionSteps + RowFacts> {
    a: Arc<dyn LinearOperator<T, B>>,
    diagonal: Arc<Jacobi<T, B>>,
    /// True if the reciprocals of the diagonal are not all equal, so that they must be read.
    uneven: bool,
    steps: Vec<Coefficients<T::Real>>,
    bounds: (f64, f64),
}

/// The coefficients of a [`ChebyshevStep`].
#[derive(Clone, Copy)]
struct Coefficients<R> {
    keep: R,
    momentum: R,
    step: R,
}

impl<T: Scalar, B: PreconditionSteps + RowFacts> std::fmt::Debug for Chebyshev<T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chebyshev: {} steps on [{:e}, {:e}]", self.steps.len(), self.bounds.0, self.bounds.1)
    }
}

impl<T: Scalar, B: PreconditionSteps + RowFacts> Chebyshev<T, B> {
    /// A preconditioner of `steps` steps (one step is a scaled Jacobi) with the operator `a`; `diagonal` holds its
    /// diagonal.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if A turns out not to be positive definite; if `steps` is zero, if sizes differ, or if
    /// the device fails.
    pub fn new(
        backend: &B,
        a: Arc<dyn LinearOperator<T, B>>,
        diagonal: Arc<Jacobi<T, B>>,
        steps: usize,
    ) -> Result<Self> {
        Self::on_space(&Space::new(backend.clone()), a, diagonal, steps)
    }

    /// [`Chebyshev::new`] for an operator on vectors of a space, which may be distributed.
    ///
    /// # Errors
    /// As [`Chebyshev::new`], and if another rank fails.
    pub fn on_space<C: Communicator<B>>(
        space: &Space<B, C>,
        a: Arc<dyn LinearOperator<T, B>>,
        diagonal: Arc<Jacobi<T, B>>,
        steps: usize,
    ) -> Result<Self> {
        check(&*a, &diagonal, steps)?;
        let backend = space.backend();
        let high = MARGIN * largest_eigenvalue(space, &*a, diagonal.inverse())?;
        // Eigenvalues below the interval are left to conjugate gradients. With more steps the interval reaches further
        // down.
        let low = high / (2.0 * (steps * steps) as f64).max(20.0);
        Self::with_bounds(backend, a, diagonal, steps, (low, high))
    }

    /// [`Chebyshev::new`] with a given interval of eigenvalues of D^-1 A to damp. M is positive definite only if the
    /// largest eigenvalue is not far above the interval.
    ///
    /// # Errors
    /// As [`Chebyshev::new`], and if not 0 < low < high.
    pub fn with_bounds(
        backend: &B,
        a: Arc<dyn LinearOperator<T, B>>,
        diagonal: Arc<Jacobi<T, B>>,
        steps: usize,
        bounds: (f64, f64),
    ) -> Result<Self> {
        check(&*a, &diagonal, steps)?;
        let (low, high) = bounds;
        if !(low > 0.0 && low < high && high.is_finite()) {
            return Err(Error::InvalidArgument(format!(
                "invalid Chebyshev interval: from {low:e} to {high:e}"
            )));
        }
        let (mut uneven, mut factor) = (true, 1.0);
        if diagonal.is_even() && a.rows() > 0 {
            let all = backend.value(B::part(diagonal.inverse(), 0..1))?;
            (uneven, factor) = (false, all.to_f64());
        }
        Ok(Self { a, diagonal, uneven, steps: coefficients(low, high, steps, factor), bounds })
    }

    /// The reciprocals of the diagonal, unless they are all equal.
    fn inverse(&self) -> Option<&B::Slice<T::Real>> {
        self.uneven.then(|| self.diagonal.inverse())
    }

    /// The interval of eigenvalues of D^-1 A that is damped.
    pub fn bounds(&self) -> (f64, f64) {
        self.bounds
    }
}

fn check<T: Scalar, B: PreconditionSteps + RowFacts>(
    a: &dyn LinearOperator<T, B>,
    diagonal: &Jacobi<T, B>,
    steps: usize,
) -> Result<()> {
    if steps == 0 {
        return Err(Error::InvalidArgument("a Chebyshev preconditioner needs at least 1 step".into()));
    }
    Error::check_dimension("rows of the diagonal", a.rows(), B::len(diagonal.inverse()))?;
    Error::check_dimension("columns of a square operator", a.rows(), a.columns())
}

/// The coefficients by Saad, algorithm 12.1, for eigenvalues from `low` to `high`. His direction is the last change of
/// z. D^-1 is multiplied by `factor`.
fn coefficients<R: Real>(low: f64, high: f64, steps: usize, factor: f64) -> Vec<Coefficients<R>> {
    let (theta, delta) = (0.5 * (high + low), 0.5 * (high - low));
    let sigma = theta / delta;
    let mut rho = 1.0 / sigma;
    let by = |keep: f64, momentum: f64, step: f64| Coefficients {
        keep: R::from_f64(keep),
        momentum: R::from_f64(momentum),
        step: R::from_f64(step * factor),
    };
    let others = (1..steps).map(|number| {
        let before = rho;
        rho = 1.0 / (2.0 * sigma - before);
        // The iterate before z_1 is zero.
        let momentum = if number == 1 { 0.0 } else { -rho * before };
        by(1.0 + rho * before, momentum, 2.0 * rho / delta)
    });
    std::iter::once(by(0.0, 0.0, 1.0 / theta)).chain(others).collect()
}

impl<T: Scalar, B: PreconditionSteps + RowFacts> Preconditioner<T, B> for Chebyshev<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(self.a.rows())
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let (mut full, mut narrow) = (backend.zeros(self.work_len())?, backend.zeros(0)?);
        self.apply_in(backend, Workspace { full: &mut full, narrow: &mut narrow }, r, z)
    }

    fn work_len(&self) -> usize {
        2 * self.a.rows()
    }

    fn apply_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        let n = self.a.rows();
        let (other, rest) = B::split_mut(work.full, n);
        let t = B::part_mut(rest, 0..n);
        // Two vectors alternate such that the last step writes to z.
        let (mut last, mut now) = if self.steps.len() % 2 == 1 { (z, other) } else { (other, z) };
        for (number, &Coefficients { keep, momentum, step }) in self.steps.iter().enumerate() {
            let d = self.inverse();
            let by = ChebyshevStep { keep, momentum, step, d, r, last: &mut *last };
            if number == 0 {
                backend.chebyshev_step(by, None)?;
            } else {
                let fused = self.a.chebyshev_product().map(|a| a.chebyshev_step(backend, by, now));
                if !fused.unwrap_or(Ok(false))? {
                    self.a.apply(backend, now, t)?;
                    let by = ChebyshevStep { keep, momentum, step, d, r, last: &mut *last };
                    backend.chebyshev_step(by, Some((now, t)))?;
                }
            }
            std::mem::swap(&mut last, &mut now);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let (n, vector) = (self.a.rows(), self.a.rows() * size_of::<T>());
        let d = if self.uneven { n * size_of::<T::Real>() } else { 0 };
        // A step, fused with its product, moves the matrix, the two latest iterates, r and the diagonal.
        let step = self.a.bytes() + 2 * vector + d;
        2 * vector + d + (self.steps.len() - 1) * step
    }
}
