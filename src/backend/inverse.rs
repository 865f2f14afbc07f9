//! The preconditioner of a fused step.

use super::VectorOps;
use crate::scalar::Scalar;

/// How fused steps get a preconditioner M.
pub enum Inverse<'a, T: Scalar, B: VectorOps> {
    /// M = I: z = r.
    Identity,
    /// M^-1 is this diagonal. z = d .* r is never stored.
    Diagonal(&'a B::Slice<T::Real>),
    /// M^-1 is this diagonal, stored in single precision.
    Rounded(&'a B::Slice<f32>),
    /// Any other preconditioner: z = M^-1 r, which was computed before.
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
