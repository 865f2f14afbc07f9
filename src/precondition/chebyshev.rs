//! A polynomial in A.

use super::spectrum::largest_eigenvalue;
use super::{Jacobi, Preconditioner};
use crate::backend::{ChebyshevStep, PreconditionSteps, VectorOps};
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::scalar::{Real, Scalar};

/// The estimate of the largest eigenvalue comes from below; this much is added.
const MARGIN: f64 = 1.1;

/// z = what k steps of Chebyshev's iteration for A z = r reach from zero, with D^-1 A, D the diagonal of A; Saad, Iterative
/// Methods for Sparse Linear Systems, 2nd ed., 12.3.2.
///
/// The iteration damps the eigenvalues of D^-1 A from a lower bound to just above the largest, which is estimated by a few
/// steps of Lanczos; all smaller ones keep their sign, so that M is positive definite where A is. An application takes k - 1
/// products and no sum over the unknowns: it trades dot products for products, not iterations for time.
pub struct Chebyshev<'a, T: Scalar, B: PreconditionSteps> {
    a: &'a dyn LinearOperator<T, B>,
    diagonal: &'a Jacobi<T, B>,
    steps: Vec<ChebyshevStep<T::Real>>,
    bounds: (f64, f64),
}

impl<T: Scalar, B: PreconditionSteps> std::fmt::Debug for Chebyshev<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chebyshev: {} steps on [{:e}, {:e}]", self.steps.len(), self.bounds.0, self.bounds.1)
    }
}

impl<'a, T: Scalar, B: PreconditionSteps> Chebyshev<'a, T, B> {
    /// `steps` steps (1 is Jacobi, scaled) with the operator `a`, whose diagonal `diagonal` holds.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] where A turns out not to be positive definite; for no steps; on different sizes; when the
    /// device fails.
    pub fn new(
        backend: &B,
        a: &'a dyn LinearOperator<T, B>,
        diagonal: &'a Jacobi<T, B>,
        steps: usize,
    ) -> Result<Self> {
        if steps == 0 {
            return Err(Error::InvalidArgument("a Chebyshev preconditioner of no steps".into()));
        }
        Error::check_dimension("rows of the diagonal", a.rows(), B::len(diagonal.inverse()))?;
        Error::check_dimension("columns of a square operator", a.rows(), a.columns())?;
        let high = MARGIN * largest_eigenvalue(backend, a, diagonal.inverse())?;
        // Eigenvalues below the interval are left to conjugate gradients: fewer with more steps.
        let low = high / (2.0 * (steps * steps) as f64).max(20.0);
        Ok(Self { a, diagonal, steps: coefficients(low, high, steps), bounds: (low, high) })
    }

    /// The interval of eigenvalues of D^-1 A that is damped.
    pub fn bounds(&self) -> (f64, f64) {
        self.bounds
    }

    fn run(&self, backend: &B, work: &mut B::Slice<T>, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let n = self.a.rows();
        let (t, rest) = B::split_mut(work, n);
        let (residual, rest) = B::split_mut(rest, n);
        let direction = B::part_mut(rest, 0..n);
        let d = self.diagonal.inverse();
        for step in &self.steps {
            if step.first {
                backend.chebyshev_step(*step, d, r, residual, direction, z)?;
            } else {
                self.a.apply(backend, direction, t)?;
                backend.chebyshev_step(*step, d, t, residual, direction, z)?;
            }
        }
        Ok(())
    }
}

/// Saad, algorithm 12.1, for eigenvalues from `low` to `high`.
fn coefficients<R: Real>(low: f64, high: f64, steps: usize) -> Vec<ChebyshevStep<R>> {
    let (theta, delta) = (0.5 * (high + low), 0.5 * (high - low));
    let sigma = theta / delta;
    let mut rho = 1.0 / sigma;
    let first = ChebyshevStep { first: true, momentum: R::zero(), step: R::from_f64(1.0 / theta) };
    let others = (1..steps).map(|_| {
        let before = rho;
        rho = 1.0 / (2.0 * sigma - before);
        ChebyshevStep {
            first: false,
            momentum: R::from_f64(rho * before),
            step: R::from_f64(2.0 * rho / delta),
        }
    });
    std::iter::once(first).chain(others).collect()
}

impl<T: Scalar, B: PreconditionSteps> Preconditioner<T, B> for Chebyshev<'_, T, B> {
    fn rows(&self) -> Option<usize> {
        Some(self.a.rows())
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let mut work = backend.zeros(self.work_len())?;
        self.run(backend, &mut work, r, z)
    }

    fn work_len(&self) -> usize {
        3 * self.a.rows()
    }

    fn apply_dot_in(
        &self,
        backend: &B,
        work: &mut B::Slice<T>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
        rz: &mut B::Slice<T>,
    ) -> Result<()>
    where
        B: VectorOps,
    {
        self.run(backend, work, r, z)?;
        backend.dot(r, z, rz)
    }

    fn bytes(&self) -> usize {
        let n = self.a.rows();
        let step = 7 * n * size_of::<T>() + n * size_of::<T::Real>();
        (self.steps.len() - 1) * (self.a.bytes() + step) + n * (4 * size_of::<T>() + size_of::<T::Real>())
    }
}
