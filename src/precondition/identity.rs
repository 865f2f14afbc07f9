//! No preconditioner.

use super::Preconditioner;
use crate::backend::{Backend, Inverse, VectorOps};
use crate::error::Result;
use crate::scalar::Scalar;

/// M = I.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Identity;

impl<T: Scalar, B: Backend> Preconditioner<T, B> for Identity {
    fn rows(&self) -> Option<usize> {
        None
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        backend.copy(r, z)
    }

    fn fused(&self) -> Option<Inverse<'_, T, B>>
    where
        B: VectorOps,
    {
        Some(Inverse::Identity)
    }

    fn bytes(&self) -> usize {
        0
    }
}
