//! The status of an iteration, as a number in the state of its recurrence.

use crate::scalar::Real;

/// The status of the iteration. All values except `Running` are final: later iterations change nothing, so a caller may
/// replay a few more before it reads the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgStatus {
    /// The iteration continues.
    Running = 0,
    /// r.r is at most the threshold.
    Converged = 1,
    /// p.Ap is not positive.
    NotPositiveDefinite = 2,
    /// p.Ap or r.r is infinite or NaN.
    NotFinite = 3,
    /// The step length overflows, or r.z is not positive while r is not zero.
    Breakdown = 4,
    /// A^H r is small enough relative to ||A|| ||r||: x is a least-squares solution.
    LeastSquares = 5,
}

impl CgStatus {
    /// Returns the status for its number in the state.
    pub fn from_real<R: Real>(value: R) -> Self {
        [Self::Running, Self::Converged, Self::NotPositiveDefinite, Self::NotFinite, Self::LeastSquares]
            .into_iter()
            .find(|status| status.to_real::<R>() == value)
            .unwrap_or(Self::Breakdown)
    }

    /// Returns whether an iteration that ended with this status has added its step to x.
    pub fn has_changed_x(self) -> bool {
        matches!(self, Self::Running | Self::Converged | Self::LeastSquares)
    }

    /// Returns the number of the status in the state.
    pub fn to_real<R: Real>(self) -> R {
        R::from_f64(f64::from(self as u8))
    }
}
