//! The transposed copy with which a device multiplies by A^T.

use super::{Compressed, Coo, Csr, Ell, Hybrid, Jds, Sell};
use crate::backend::{Backend, CompressedSteps, Conversions, Op, Products, Transposable};
use crate::error::Result;
use crate::scalar::Scalar;
use std::sync::OnceLock;

impl<V: Scalar, B: Backend> Transposable<B> for Csr<V, B> {
    type Copy = Self;

    fn transposed(&self, backend: &B) -> Result<Self>
    where
        B: Conversions,
    {
        self.transpose(backend)
    }
}

impl<V: Scalar, B: CompressedSteps> Transposable<B> for Compressed<V, B> {
    type Copy = Self;

    fn transposed(&self, backend: &B) -> Result<Self>
    where
        B: Conversions,
    {
        Compressed::from_csr(backend, &self.to_csr(backend)?.transpose(backend)?)
    }
}

/// Implements the transpose as a copy in CSR, which can hold every matrix. The matrix's own format might need too much
/// padding for the transpose.
macro_rules! by_csr {
    ($($name:ident),*) => {$(
        impl<V: Scalar, B: Backend> Transposable<B> for $name<V, B> {
            type Copy = Csr<V, B>;

            fn transposed(&self, backend: &B) -> Result<Csr<V, B>>
            where
                B: Conversions,
            {
                self.to_csr(backend)?.transpose(backend)
            }
        }
    )*};
}
by_csr!(Coo, Ell, Hybrid, Jds, Sell);

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
