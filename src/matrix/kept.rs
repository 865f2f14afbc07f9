//! The transposed copy with which a device multiplies by A^T, made at the first such product.

use crate::backend::{Op, Products, Transposable};
use crate::error::Result;
use std::sync::OnceLock;

/// The transposed copy of a matrix.
pub(super) struct Kept<C>(OnceLock<Box<C>>);

impl<C> Default for Kept<C> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<C> Kept<C> {
    /// The copy for products of `a` with `op`, made at the first one; `None` if none is needed.
    pub(super) fn of<B: Products>(
        &self,
        a: &impl Transposable<B, Copy = C>,
        backend: &B,
        op: Op,
    ) -> Result<Option<&C>> {
        if !op.transposes() {
            return Ok(None);
        }
        if self.0.get().is_none() {
            let Some(copy) = backend.transposed_copy(a) else { return Ok(None) };
            let copy = Box::new(copy?);
            return Ok(Some(self.0.get_or_init(|| copy)));
        }
        Ok(self.0.get().map(|copy| &**copy))
    }

    /// Drops the copy because the values change.
    pub(super) fn forget(&mut self) {
        self.0.take();
    }
}
