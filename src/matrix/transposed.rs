//! How each format is transposed, for the copy that a device multiplies by A^T with.

use super::{Compressed, Coo, Csr, Ell, Hybrid, Jds, Sell};
use crate::backend::{Backend, CompressedSteps, Conversions, Transposable};
use crate::error::Result;
use crate::scalar::Scalar;

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
