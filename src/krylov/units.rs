//! The power of two in which residuals are held.
//!
//! CG squares its residuals: in double precision a right-hand side of 1e-170 would square to zero, and one of 1e170 to
//! infinity. So r and p are held in units of a power of two near ||b||. That changes no bit of an ordinary solve.

use crate::backend::VectorOps;
use crate::error::Result;
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// ||b|| and the unit near it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Units<R> {
    /// ||b||; not finite where an entry of b is not.
    pub b_norm: f64,
    /// The unit, a power of two.
    pub unit: R,
}

impl<R: Real> Units<R> {
    /// Measures `b`; `scratch` is as long as b, `square` has one element.
    pub fn of<T: Scalar<Real = R>, B: VectorOps>(
        backend: &B,
        b: &B::Slice<T>,
        scratch: &mut B::Slice<T>,
        square: &mut B::Slice<R>,
    ) -> Result<Self> {
        let two = R::from_f64(2.0);
        let largest_exponent = R::max_value().to_f64().log2();
        let far = (0.7 * largest_exponent) as i32;
        let safe = R::min_positive_value() / (R::epsilon() * R::epsilon());
        let mut b_norm = 0.0;
        // Most often the plain norm is fine; else b is scaled far up, then far down.
        for scale in [R::one(), Float::powi(two, far), Float::powi(two, -far)] {
            backend.axpby(T::from_real(scale), b, T::zero(), scratch)?;
            backend.norm2_squared(scratch, square)?;
            let mut bb = [R::zero()];
            backend.read(square, &mut bb)?;
            b_norm = bb[0].to_f64().sqrt() / scale.to_f64();
            if bb[0].is_nan() || (Float::is_finite(bb[0]) && bb[0] >= safe) {
                break;
            }
        }
        let limit = 0.95 * largest_exponent;
        let exponent = if b_norm > 0.0 { b_norm.log2().round().clamp(-limit, limit) } else { 0.0 };
        Ok(Self { b_norm, unit: Float::powi(two, exponent as i32) })
    }

    /// The factor by which b and A x are multiplied: a power of two too.
    pub fn scale(&self) -> R {
        self.unit.recip()
    }

    /// A squared norm in these units, as a norm in the units of b.
    pub fn norm(&self, square: R) -> f64 {
        square.to_f64().sqrt() * self.unit.to_f64()
    }

    /// The square, in these units, of a norm in the units of b.
    pub fn square(&self, norm: f64) -> R {
        let norm = norm / self.unit.to_f64();
        R::from_f64(norm * norm)
    }
}
