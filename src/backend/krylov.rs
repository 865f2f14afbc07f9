//! The vector operations of an iteration of conjugate gradients, as two fused steps. Their scalars stay in the memory
//! of the backend.

use super::{CsrParts, Derived, Inverse, PartDirection, PartResidual, Persistent, SellParts, VectorOps};
use crate::error::Result;
use crate::scalar::{Promote, Real, Scalar};

/// Positions of the scalars in the state of conjugate gradients, a buffer of [`CgSlot::COUNT`] reals. The first
/// [`CgSlot::MESSAGE`] of them are sent to the host after each iteration.
#[derive(Debug)]
pub struct CgSlot;

impl CgSlot {
    /// A [`CgStatus`](super::CgStatus), as a number.
    pub const STATUS: usize = 0;
    /// r.r at the end of this iteration.
    pub const RR: usize = 1;
    /// p.Ap of this iteration.
    pub const CURVATURE: usize = 2;
    /// r.z with z = M^-1 r, at the beginning of this iteration.
    pub const RHO: usize = 3;
    /// The step length of this iteration; zero if the iteration has changed nothing.
    pub const ALPHA: usize = 4;
    /// The iteration converges when r.r is at most this.
    pub const THRESHOLD: usize = 5;
    /// The length of the state.
    pub const COUNT: usize = 6;
    /// The length of the message: status, r.r, curvature.
    pub const MESSAGE: usize = 3;

    /// Returns the state for the start. With p = q = 0 and p.q = 1, the first iteration leaves r unchanged, and sets p
    /// = z and rho = r.z.
    pub fn to_start<R: Real>(threshold: R) -> [R; Self::COUNT] {
        let mut state = [R::zero(); Self::COUNT];
        state[Self::RHO] = R::one();
        state[Self::THRESHOLD] = threshold;
        state
    }
}

/// The fused steps of an iteration of conjugate gradients.
///
/// Both steps read and write scalars in `state` ([`CgSlot`]). Neither waits for the device, and both are deterministic.
///
/// Both take one system, or 2 to 32 systems with the same matrix; the number k is the length of `pq` and `rz`. The
/// vectors of several systems are interleaved (entry i of system j at i * k + j), and their states are stored one after
/// another. A diagonal inverse is the same for all. Each system has its own alpha, beta and status, and the following
/// holds for each: if one has ended, the others continue.
pub trait KrylovSteps: VectorOps {
    /// The maximum number of iterations in a call of [`KrylovSteps::csr_persistent`]; 0 if the backend declines every
    /// matrix.
    const PERSISTENT_ITERATIONS: usize = 0;

    /// alpha = rho / p.q and r -= alpha q. Writes r.r to the state and, for an identity or diagonal inverse, r.z to
    /// `rz`.
    ///
    /// In this order:
    /// 1. Sets alpha = 0 in the state; if the status is not `Running`, returns.
    /// 2. curvature = re(`pq[0]`). If it is not finite, sets status `NotFinite`; if not positive,
    ///    `NotPositiveDefinite`; if rho / curvature is not finite, `Breakdown`; and then returns.
    /// 3. Updates r and r.r. If r.r is not finite, sets status `NotFinite`, and alpha stays 0. Else sets alpha, and
    ///    status `Converged` if r.r is at most the threshold.
    ///
    /// Moves 3 vectors (r, q in; r out), and the diagonal.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn cg_residual<T: Scalar>(
        &self,
        inverse: Inverse<'_, T, Self>,
        pq: &Self::Slice<T>,
        q: &Self::Slice<T>,
        r: &mut Self::Slice<T>,
        rz: &mut Self::Slice<T>,
        state: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// x += alpha p; beta = r.z / rho; p = z + beta p; rho = r.z.
    ///
    /// If alpha is 0, nothing changes. If r.z is not positive (or not finite) and the status is `Running`, the status
    /// becomes `Breakdown`; a beta that is not finite counts as 0.
    ///
    /// Moves 5 vectors (r or z, p, x in; p, x out), and the diagonal.
    ///
    /// # Errors
    /// If lengths differ, or if the device fails.
    fn cg_direction<T: Scalar>(
        &self,
        inverse: Inverse<'_, T, Self>,
        r: &Self::Slice<T>,
        rz: &Self::Slice<T>,
        p: &mut Self::Slice<T>,
        x: &mut Self::Slice<T>,
        state: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// [`KrylovSteps::cg_residual`] on one of several ranks, for one system. p.q is the sum over all ranks. r.r, and
    /// r.z for an identity or diagonal inverse, are computed for this rank only, and [`KrylovSteps::cg_part_direction`]
    /// takes the decisions that need the sums over all ranks.
    ///
    /// # Errors
    /// As [`KrylovSteps::cg_residual`], and if p.q is missing.
    fn cg_part_residual<T: Scalar>(&self, step: PartResidual<'_, T, Self>) -> Result<()>;

    /// [`KrylovSteps::cg_direction`] on one of several ranks, after the decisions of [`KrylovSteps::cg_residual`] about
    /// r.r. Both sums are over all ranks.
    ///
    /// # Errors
    /// As [`KrylovSteps::cg_direction`], and if the sums are missing.
    fn cg_part_direction<T: Scalar>(&self, step: PartDirection<'_, T, Self>) -> Result<()>;

    /// Returns whether [`KrylovSteps::csr_persistent`] is likely to take a matrix of this size with values of type `V`.
    /// No other format can then be as fast. The provided method returns false.
    fn cg_persists<V: Promote<T>, T: Scalar>(&self, _rows: usize, _nonzeros: usize) -> bool {
        false
    }

    /// Returns whether [`KrylovSteps::sell_persistent`] is likely to take a matrix of this size, and to be the fastest
    /// choice. The provided method returns false.
    fn cg_streams<V: Promote<T>, T: Scalar>(&self, _rows: usize, _nonzeros: usize) -> bool {
        false
    }

    /// Enqueues several iterations in one launch, with A in CSR, if that is faster than enqueueing their steps.
    /// `derived` belongs to the matrix. Returns whether it did so: a backend declines a matrix that is too large or
    /// unsuitable, and then at every call. The provided method always declines.
    ///
    /// # Errors
    /// If lengths differ, if memory runs out, or if the device fails.
    fn csr_persistent<V: Promote<T>, T: Scalar>(
        &self,
        _a: CsrParts<'_, V, Self>,
        _derived: &Derived,
        _work: Persistent<'_, T, Self>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// As [`KrylovSteps::csr_persistent`], with A in SELL-C-sigma, for systems whose vectors fit the backend's on-chip
    /// memory while the matrix is streamed. Only conjugate gradients are supported. The provided method always
    /// declines.
    ///
    /// # Errors
    /// As [`KrylovSteps::csr_persistent`].
    fn sell_persistent<V: Promote<T>, T: Scalar>(
        &self,
        _a: SellParts<'_, V, Self>,
        _work: Persistent<'_, T, Self>,
    ) -> Result<bool> {
        Ok(false)
    }
}
