//! The power of two by which residuals are scaled.
//!
//! CG squares its residuals: in double precision a right-hand side of 1e-170 would square to zero, and one of 1e170 to
//! infinity. Therefore r and p are divided by a power of two near ||b||, which changes no bit of an ordinary solve.

use crate::backend::{Communicator, Space, VectorOps};
use crate::error::Result;
use crate::operator::{LinearOperator, plain_residual};
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// ||b||, and the unit: a power of two near it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units<R> {
    /// ||b||; not finite if an entry of b is not.
    pub(crate) b_norm: f64,
    /// The unit, a power of two.
    pub(crate) unit: R,
}

impl<R: Real> Units<R> {
    /// Measures `b`; `scratch` is as long as b, `square` has one element.
    pub(crate) fn of<T: Scalar<Real = R>, B: VectorOps, C: Communicator<B>>(
        space: &Space<B, C>,
        b: &B::Slice<T>,
        scratch: &mut B::Slice<T>,
        square: &mut B::Slice<R>,
    ) -> Result<Self> {
        let two = R::from_f64(2.0);
        let largest_exponent = R::max_value().to_f64().log2();
        let far = (0.7 * largest_exponent) as i32;
        let safe = Self::safe_square();
        let mut b_norm = 0.0;
        // Usually the plain norm is right; if not, b is scaled far up, then far down.
        for scale in [R::one(), Float::powi(two, far), Float::powi(two, -far)] {
            space.backend().axpby(T::from_real(scale), b, T::zero(), scratch)?;
            space.norm2_squared(scratch, square)?;
            let bb = space.backend().value(square)?;
            b_norm = bb.to_f64().sqrt() / scale.to_f64();
            if bb.is_nan() || (Float::is_finite(bb) && bb >= safe) {
                break;
            }
        }
        let limit = 0.95 * largest_exponent;
        let exponent = if b_norm > 0.0 { b_norm.log2().round().clamp(-limit, limit) } else { 0.0 };
        Ok(Self { b_norm, unit: Float::powi(two, exponent as i32) })
    }

    /// Below this norm, a recurrence holds nothing but rounding errors.
    pub(crate) fn floor(&self) -> f64 {
        R::epsilon().to_f64() * 1e-3 * self.b_norm
    }

    /// A sum of squares of at least this has lost nothing relevant to underflow.
    pub(crate) fn safe_square() -> R {
        R::min_positive_value() / (R::epsilon() * R::epsilon())
    }

    /// The factor by which b and A x are multiplied, a power of two too.
    pub(crate) fn scale(&self) -> R {
        self.unit.recip()
    }

    /// The norm, in the units of b, for a scaled squared norm.
    pub(crate) fn norm(&self, square: R) -> f64 {
        square.to_f64().sqrt() * self.unit.to_f64()
    }

    /// The norm, in the units of b, of a scaled vector; `square` has one element.
    pub(crate) fn norm_of<T: Scalar<Real = R>, B: VectorOps, C: Communicator<B>>(
        &self,
        space: &Space<B, C>,
        vector: &B::Slice<T>,
        square: &mut B::Slice<R>,
    ) -> Result<f64> {
        space.norm2_squared(vector, square)?;
        Ok(self.norm(space.backend().value(square)?))
    }

    /// Computes r = b - A x, scaled, from x alone; returns its norm in the units of b. `square` has one element.
    pub(crate) fn residual<T: Scalar<Real = R>, B: VectorOps, C: Communicator<B>>(
        &self,
        space: &Space<B, C>,
        a: &(impl LinearOperator<T, B> + ?Sized),
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        r: &mut B::Slice<T>,
        square: &mut B::Slice<R>,
    ) -> Result<f64> {
        let scale = T::from_real(self.scale());
        plain_residual(space.backend(), a, scale, b, x, r)?;
        self.norm_of(space, r, square)
    }

    /// As [`Units::residual`], and ||x|| with the same transfer; `None` if that is zero or its square out of range.
    /// `squares` has two elements.
    pub(crate) fn residual_and_length<T: Scalar<Real = R>, B: VectorOps, C: Communicator<B>>(
        &self,
        space: &Space<B, C>,
        a: &(impl LinearOperator<T, B> + ?Sized),
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        r: &mut B::Slice<T>,
        squares: &mut B::Slice<R>,
    ) -> Result<(f64, Option<f64>)> {
        let (backend, scale) = (space.backend(), T::from_real(self.scale()));
        space.norm2_squared(x, B::part_mut(squares, 1..2))?;
        plain_residual(backend, a, scale, b, x, r)?;
        space.norm2_squared(r, B::part_mut(squares, 0..1))?;
        let mut told = [R::zero(); 2];
        backend.read(squares, &mut told)?;
        let length = told[1].to_f64();
        Ok((self.norm(told[0]), (length.is_finite() && length > 0.0).then(|| length.sqrt())))
    }

    /// The scaled square of a norm in the units of b.
    pub(crate) fn square(&self, norm: f64) -> R {
        let norm = norm / self.unit.to_f64();
        R::from_f64(norm * norm)
    }
}
