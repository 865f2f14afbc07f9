//! A polynomial in A.

use super::spectrum::largest_eigenvalue;
use super::{Jacobi, Preconditioner, Workspace};
use crate::backend::{ChebyshevStep, Communicator, PreconditionSteps, RowFacts, Space};
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::scalar::{Real, Scalar};
use std::sync::Arc;

/// The estimate of the largest eigenvalue comes from below; this much is added.
const MARGIN: f64 = 1.1;

/// z = what k steps of Chebyshev's iteration for A z = r reach from zero, with D^-1 A, D the diagonal of A; Saad,
/// Iterative Methods for Sparse Linear Systems, 2nd ed., 12.3.2.
///
/// ```text
/// z_1 = step_1 D^-1 r
/// z_j+1 = keep_j z_j + momentum_j z_j-1 + step_j D^-1 (r - A z_j)
/// ```
///
/// The iteration damps the eigenvalues of D^-1 A from a lower bound to just above the largest, which is estimated by a
/// few steps of Lanczos; all smaller ones keep their sign, so that M is positive definite where A is. An application
/// takes k - 1 products and no sum over the unknowns: it trades dot products for products, not iterations for time.
/// About a sixth more products are needed than without. Where the vectors are most of what is moved, and an operator
/// does the step on the way of its product ([`LinearOperator::chebyshev_product`]), a step still moves a third of what
/// an iteration of conjugate gradients does, and in half the precision ([`Narrowed`](super::Narrowed)) a sixth.
///
/// The operator and its diagonal are shared: whoever multiplies with A keeps the same [`Arc`].
pub struct Chebyshev<T: Scalar, B: PreconditionSteps + RowFacts> {
    a: Arc<dyn LinearOperator<T, B>>,
    diagonal: Arc<Jacobi<T, B>>,
    /// Whether the reciprocals of the diagonal differ, so that they are read.
    uneven: bool,
    steps: Vec<Coefficients<T::Real>>,
    bounds: (f64, f64),
}

/// As in [`ChebyshevStep`].
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
    /// `steps` steps (1 is Jacobi, scaled) with the operator `a`, whose diagonal `diagonal` holds.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] where A turns out not to be positive definite; for no steps; on different sizes; when
    /// the device fails.
    pub fn new(
        backend: &B,
        a: Arc<dyn LinearOperator<T, B>>,
        diagonal: Arc<Jacobi<T, B>>,
        steps: usize,
    ) -> Result<Self> {
        Self::on_space(&Space::new(backend.clone()), a, diagonal, steps)
    }

    /// As [`Chebyshev::new`] for an operator on vectors of a space, which may be spread.
    ///
    /// # Errors
    /// As [`Chebyshev::new`], and where another part fails.
    pub fn on_space<C: Communicator<B>>(
        space: &Space<B, C>,
        a: Arc<dyn LinearOperator<T, B>>,
        diagonal: Arc<Jacobi<T, B>>,
        steps: usize,
    ) -> Result<Self> {
        check(&*a, &diagonal, steps)?;
        let backend = space.backend();
        let high = MARGIN * largest_eigenvalue(space, &*a, diagonal.inverse())?;
        // Eigenvalues below the interval are left to conjugate gradients: fewer with more steps.
        let low = high / (2.0 * (steps * steps) as f64).max(20.0);
        Self::with_bounds(backend, a, diagonal, steps, (low, high))
    }

    /// As [`Chebyshev::new`], with the interval of eigenvalues of D^-1 A that is to be damped. M is positive definite
    /// only where the largest is not far above the interval.
    ///
    /// # Errors
    /// As [`Chebyshev::new`], and for bounds that are not 0 < low < high.
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
            return Err(Error::InvalidArgument(format!("a Chebyshev interval from {low:e} to {high:e}")));
        }
        let (mut uneven, mut factor) = (true, 1.0);
        if diagonal.is_even() && a.rows() > 0 {
            let all = backend.value(B::part(diagonal.inverse(), 0..1))?;
            (uneven, factor) = (false, all.to_f64());
        }
        Ok(Self { a, diagonal, uneven, steps: coefficients(low, high, steps, factor), bounds })
    }

    /// The reciprocals of the diagonal, where they differ.
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
        return Err(Error::InvalidArgument("a Chebyshev preconditioner of no steps".into()));
    }
    Error::check_dimension("rows of the diagonal", a.rows(), B::len(diagonal.inverse()))?;
    Error::check_dimension("columns of a square operator", a.rows(), a.columns())
}

/// Saad, algorithm 12.1, for eigenvalues from `low` to `high`, his direction being the last change of z; `factor` is
/// what D^-1 is multiplied by.
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
        // Before z_1 there is zero.
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
        // Two vectors take turns, so that the last step ends in z.
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
        // A step in one pass with its product: the matrix, z, r, and the vector before z in and out.
        let step = self.a.bytes() + 2 * vector + d;
        2 * vector + d + (self.steps.len() - 1) * step
    }
}
