//! The vector half of a Krylov iteration, as two fused steps whose scalars never leave the backend.

use super::{CsrParts, Derived, PartDirection, PartResidual, Persistent, SellParts, VectorOps};
use crate::error::Result;
use crate::scalar::{Real, Scalar, Widen};

/// Places of the scalars in the state of a conjugate gradient iteration, a buffer of [`CgSlot::COUNT`] reals. The
/// first [`CgSlot::MESSAGE`] of them are what an iteration tells the caller.
#[derive(Debug)]
pub struct CgSlot;

impl CgSlot {
    /// A [`CgStatus`], as a number.
    pub const STATUS: usize = 0;
    /// r.r after this iteration.
    pub const RR: usize = 1;
    /// p.Ap of this iteration.
    pub const CURVATURE: usize = 2;
    /// r.z, z = M^-1 r, before this iteration.
    pub const RHO: usize = 3;
    /// The step length of this iteration; zero where the iteration changed nothing.
    pub const ALPHA: usize = 4;
    /// The iteration has converged where r.r is at most this.
    pub const THRESHOLD: usize = 5;
    /// Length of the state.
    pub const COUNT: usize = 6;
    /// Length of the message: status, r.r, curvature.
    pub const MESSAGE: usize = 3;

    /// The state of a recurrence that is to start: an iteration with p = q = 0 and p.q = 1 then leaves r, and sets p =
    /// z, rho = r.z.
    pub fn to_start<R: Real>(threshold: R) -> [R; Self::COUNT] {
        let mut state = [R::zero(); Self::COUNT];
        state[Self::RHO] = R::one();
        state[Self::THRESHOLD] = threshold;
        state
    }
}

/// What the state says of the iteration. Everything but `Running` is final: later iterations change nothing, so that
/// a caller may replay a few more before it learns of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgStatus {
    /// Goes on.
    Running = 0,
    /// r.r is at most the threshold.
    Converged = 1,
    /// p.Ap is not positive.
    NotPositiveDefinite = 2,
    /// p.Ap or r.r is infinite or NaN.
    NotFinite = 3,
    /// The step length overflows, or r.z is not positive while r is not zero.
    Breakdown = 4,
    /// A^H r is as small as was asked for beside ||A|| ||r||: x is a least-squares solution.
    LeastSquares = 5,
}

impl CgStatus {
    /// From the number in the state.
    pub fn from_real<R: Real>(value: R) -> Self {
        [Self::Running, Self::Converged, Self::NotPositiveDefinite, Self::NotFinite, Self::LeastSquares]
            .into_iter()
            .find(|status| status.to_real::<R>() == value)
            .unwrap_or(Self::Breakdown)
    }

    /// Whether the iteration that came to it has added its step to x.
    pub fn has_changed_x(self) -> bool {
        matches!(self, Self::Running | Self::Converged | Self::LeastSquares)
    }

    /// The number in the state.
    pub fn to_real<R: Real>(self) -> R {
        R::from_f64(f64::from(self as u8))
    }
}

/// What the fused steps know of a preconditioner M.
pub enum Inverse<'a, T: Scalar, B: VectorOps> {
    /// M = I: z = r.
    Identity,
    /// M^-1 is this diagonal: z = d .* r is never stored.
    Diagonal(&'a B::Slice<T::Real>),
    /// The same, held in single precision.
    Rounded(&'a B::Slice<f32>),
    /// Any other: z = M^-1 r was stored by a step of its own.
    General(&'a B::Slice<T>),
}

impl<T: Scalar, B: VectorOps> std::fmt::Debug for Inverse<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Inverse::Identity => "Identity",
            Inverse::Diagonal(_) => "Diagonal",
            Inverse::Rounded(_) => "Rounded",
            Inverse::General(_) => "General",
        })
    }
}

impl<T: Scalar, B: VectorOps> Clone for Inverse<'_, T, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Scalar, B: VectorOps> Copy for Inverse<'_, T, B> {}

/// Fused steps of the conjugate gradient iteration.
///
/// Both steps read and write scalars in `state` ([`CgSlot`]). Neither waits for the device, and both are deterministic.
///
/// Both take one system or k systems with one matrix, 2 to 32, as many as `pq` and `rz` have entries: their vectors lie
/// interleaved (entry i of system j at i * k + j), their states one behind the other; an inverse that is a diagonal is
/// the same for all. Each system has its own alpha, beta and status, and what is said below of one holds for each:
/// where one has ended, the others go on.
pub trait KrylovSteps: VectorOps {
    /// The most iterations that [`KrylovSteps::csr_persistent`] does in a call; 0 where it declines every matrix.
    const PERSISTENT_ITERATIONS: usize = 0;

    /// alpha = rho / p.q; r -= alpha q; r.r to the state, and r.z to `rz` for an identity or diagonal inverse.
    ///
    /// In this order:
    /// 1. alpha = 0 in the state; where the status is not `Running`, that is all.
    /// 2. curvature = re(`pq[0]`). Not finite: status `NotFinite`. Not positive: `NotPositiveDefinite`. rho / curvature
    ///    not finite: `Breakdown`. In these cases, that is all.
    /// 3. r and r.r change. r.r not finite: status `NotFinite`, and alpha stays 0. Else alpha is written, and the
    ///    status is `Converged` where r.r is at most the threshold.
    ///
    /// Moves 3 vectors (r, q in; r out), and the diagonal.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
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
    /// Where alpha is 0, nothing changes. Where r.z is not positive (or not finite) and the status is `Running`, the
    /// status becomes `Breakdown`; a beta that is not finite counts as 0.
    ///
    /// Moves 5 vectors (r or z, p, x in; p, x out), and the diagonal.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn cg_direction<T: Scalar>(
        &self,
        inverse: Inverse<'_, T, Self>,
        r: &Self::Slice<T>,
        rz: &Self::Slice<T>,
        p: &mut Self::Slice<T>,
        x: &mut Self::Slice<T>,
        state: &mut Self::Slice<T::Real>,
    ) -> Result<()>;

    /// [`KrylovSteps::cg_residual`] on one of several parts. p.q is that of all parts; r.r, and r.z for an identity or
    /// diagonal inverse, are left as this part's, and what follows from them is left to
    /// [`KrylovSteps::cg_part_direction`]. For one system.
    ///
    /// # Errors
    /// As [`KrylovSteps::cg_residual`], and without p.q.
    fn cg_part_residual<T: Scalar>(&self, step: PartResidual<'_, T, Self>) -> Result<()>;

    /// [`KrylovSteps::cg_direction`] on one of several parts, behind what [`KrylovSteps::cg_residual`] makes of r.r:
    /// both sums are those of all parts.
    ///
    /// # Errors
    /// As [`KrylovSteps::cg_direction`], and without the sums.
    fn cg_part_direction<T: Scalar>(&self, step: PartDirection<'_, T, Self>) -> Result<()>;

    /// Whether [`KrylovSteps::csr_persistent`] is likely to take a matrix of this size, values of type `V`: then no
    /// other format can be as fast. The provided method says no.
    fn cg_persists<V: Widen<T>, T: Scalar>(&self, _rows: usize, _nonzeros: usize) -> bool {
        false
    }

    /// Whether [`KrylovSteps::sell_persistent`] is likely to take a matrix of this size and to be the fastest way.
    /// The provided method says no.
    fn cg_streams<V: Widen<T>, T: Scalar>(&self, _rows: usize, _nonzeros: usize) -> bool {
        false
    }

    /// Enqueues several iterations at once, A in CSR, where that is faster than enqueueing their steps; `derived`
    /// belongs to the matrix. Returns whether it did: a backend declines what is too large, or of a shape that does not
    /// suit it, and then does so at each call. The provided method always declines.
    ///
    /// # Errors
    /// On different lengths, without memory, or when the device fails.
    fn csr_persistent<V: Widen<T>, T: Scalar>(
        &self,
        _a: CsrParts<'_, V, Self>,
        _derived: &Derived,
        _work: Persistent<'_, T, Self>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// As [`KrylovSteps::csr_persistent`], A in SELL-C-sigma: for systems whose vectors a backend can keep beside
    /// its processors while the matrix streams past. Only conjugate
    /// gradients have a form. The provided method always declines.
    ///
    /// # Errors
    /// As [`KrylovSteps::csr_persistent`].
    fn sell_persistent<V: Widen<T>, T: Scalar>(
        &self,
        _a: SellParts<'_, V, Self>,
        _work: Persistent<'_, T, Self>,
    ) -> Result<bool> {
        Ok(false)
    }
}
