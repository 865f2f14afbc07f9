//! The stopping criterion of a solver.

use crate::error::{Error, Result};
use crate::scalar::{Real, Scalar};
use crate::settings::settings;
use num_traits::Float;

/// When to stop. A solve has converged if ||b - A x|| <= max(relative ||b||, absolute), in the 2-norm.
///
/// ```
/// use residua::krylov::SolveOptions;
/// let options = SolveOptions::default().tolerance(1e-10).max_iterations(500);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SolveOptions {
    relative: Option<f64>,
    absolute: f64,
    max_iterations: Option<usize>,
    stagnation_window: Option<usize>,
}

settings! { SolveOptions;
    /// Tolerance relative to ||b||. Default: 1e-8 in double precision, 1e-5 in single.
    pub fn tolerance(relative: f64) => relative = Some(relative);

    /// Absolute tolerance, in the units of b. Default: 0.
    pub fn absolute_tolerance(absolute: f64) => absolute = absolute;

    /// The maximum number of iterations. Default: 10 n for n unknowns, at least 1000 and at most 100 000.
    pub fn max_iterations(iterations: usize) => max_iterations = Some(iterations);

    /// The number of iterations without a new smallest residual after which the solve counts as stagnated. Default: 5 n
    /// for n unknowns, at least 200 and at most 10 000. A device with persistent iterations
    /// ([`PERSISTENT_ITERATIONS`](crate::backend::KrylovSteps::PERSISTENT_ITERATIONS)) notices it at the end of a
    /// launch, and one more may be queued.
    pub fn stagnation_window(iterations: usize) => stagnation_window = Some(iterations);
}

impl SolveOptions {
    /// Checks that both tolerances are finite and not negative.
    pub(crate) fn check(&self) -> Result<()> {
        for (what, tolerance) in [("relative", self.relative.unwrap_or(0.0)), ("absolute", self.absolute)] {
            if !(0.0..f64::INFINITY).contains(&tolerance) {
                return Err(Error::InvalidArgument(format!(
                    "the {what} tolerance must be a number of at least 0, not {tolerance}"
                )));
            }
        }
        Ok(())
    }

    /// The bound on ||b - A x|| for a right-hand side of this norm.
    pub(crate) fn threshold<T: Scalar>(&self, b_norm: f64) -> f64 {
        (self.threshold_of_one::<T>() * b_norm).max(self.absolute)
    }

    /// The bound on ||A^H r|| / (||A|| ||r||) below which x is called a least-squares solution: a hundredth of the
    /// relative tolerance.
    pub(crate) fn least_squares_tolerance<T: Scalar>(&self) -> f64 {
        1e-2 * self.threshold_of_one::<T>()
    }

    /// The relative tolerance.
    pub(crate) fn threshold_of_one<T: Scalar>(&self) -> f64 {
        let single = <T::Real as Float>::epsilon().to_f64() > 1e-10;
        self.relative.unwrap_or(if single { 1e-5 } else { 1e-8 })
    }

    /// The maximum number of iterations for a system of `n` unknowns.
    pub fn iteration_limit(&self, n: usize) -> usize {
        self.max_iterations.unwrap_or_else(|| n.saturating_mul(10).clamp(1000, 100_000))
    }

    pub(super) fn window(&self, n: usize) -> usize {
        self.stagnation_window.unwrap_or_else(|| n.saturating_mul(5).clamp(200, 10_000)).max(1)
    }
}
