//! The scalars of the recurrence of conjugate gradients, for one system or for each of several. They are in the state,
//! see [`CgSlot`].

use crate::backend::{CgSlot, CgStatus};
use crate::scalar::{Real, Scalar};
use num_traits::{Float, Zero};
use std::ops::Add;

/// Returns the step length alpha from p.q, or `None` if the recurrence has ended before or ends here.
pub(super) fn step_along<T: Scalar>(pq: T, state: &mut [T::Real]) -> Option<T::Real> {
    state[CgSlot::ALPHA] = T::Real::zero();
    if CgStatus::from_real(state[CgSlot::STATUS]) != CgStatus::Running {
        return None;
    }
    let curvature = pq.re();
    let alpha = state[CgSlot::RHO] / curvature;
    state[CgSlot::CURVATURE] = curvature;
    let fault = if !pq.is_finite() {
        CgStatus::NotFinite
    } else if curvature <= T::Real::zero() {
        CgStatus::NotPositiveDefinite
    } else if !Float::is_finite(alpha) {
        CgStatus::Breakdown
    } else {
        return Some(alpha);
    };
    state[CgSlot::STATUS] = fault.to_real();
    None
}

/// Records r.r after a step of length `alpha`, and ends the recurrence if it has converged.
pub(super) fn settle<R: Real>(alpha: R, rr: R, state: &mut [R]) {
    state[CgSlot::RR] = rr;
    if !Float::is_finite(rr) {
        state[CgSlot::STATUS] = CgStatus::NotFinite.to_real();
        return;
    }
    state[CgSlot::ALPHA] = alpha;
    if rr <= state[CgSlot::THRESHOLD] {
        state[CgSlot::STATUS] = CgStatus::Converged.to_real();
    }
}

/// Records r.z, and returns alpha and beta, or `None` if this iteration changes nothing.
pub(super) fn turn<T: Scalar>(rz: T, state: &mut [T::Real]) -> Option<(T, T)> {
    let alpha = state[CgSlot::ALPHA];
    if alpha == T::Real::zero() {
        return None;
    }
    let rho = rz.re();
    let positive = rho > T::Real::zero() && rz.is_finite();
    if !positive && CgStatus::from_real(state[CgSlot::STATUS]) == CgStatus::Running {
        state[CgSlot::STATUS] = CgStatus::Breakdown.to_real();
    }
    let beta = rho / state[CgSlot::RHO];
    let beta = T::from_real(if Float::is_finite(beta) { beta } else { T::Real::zero() });
    state[CgSlot::RHO] = rho;
    Some((T::from_real(alpha), beta))
}

/// Converts a single-precision number to type `R`.
pub(super) fn single<R: Real>(d: f32) -> R {
    R::from_f64(f64::from(d))
}

/// Two sums that are computed in one pass.
#[derive(Clone, Copy, Default)]
pub(super) struct Pair<R>(pub(super) R, pub(super) R);

impl<R: Real> Add for Pair<R> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1)
    }
}
