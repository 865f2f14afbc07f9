//! Compressed sparse columns.

use super::Csr;
use super::lengths::RowLengths;
use super::product::check_vectors;
use super::storage::{Storage, offset_bytes, sizes};
use crate::backend::{Backend, Conversions, CsrParts, Host, Op, Products};
use crate::error::Result;
use crate::scalar::{Promote, Scalar};

/// A matrix in compressed sparse columns: CSR of the transpose. Column `j` of the example matrix holds the nonzeros
/// `offsets[j]..offsets[j + 1]`, rows ascending:
///
/// ```text
/// offsets  0   2 3     6 7
/// rows     0 3 | 2 | 0 1 2 | 3
/// values   1 2 | 4 | 7 8 3 | 1
/// ```
pub struct Csc<V: Scalar, B: Backend = Host> {
    transpose: Csr<V, B>,
}

impl<V: Scalar, B: Backend> Csc<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "csc";

    sizes! { |a|
        rows: a.transpose.columns(),
        columns: a.transpose.rows(),
        nonzeros: a.transpose.nonzeros(),
        storage_bytes: a.transpose.storage_bytes(),
        padding: 0,
    }

    /// A matrix whose transpose is given in CSR: the arrays are the same.
    pub fn from_transpose(transpose: Csr<V, B>) -> Self {
        Self { transpose }
    }

    /// The transpose in CSR, which has the same arrays.
    pub fn into_transpose(self) -> Csr<V, B> {
        self.transpose
    }

    /// The arrays as those of the transpose: offsets of the columns, row indices, values.
    pub fn transpose_parts(&self) -> CsrParts<'_, V, B> {
        self.transpose.parts()
    }

    /// y = alpha op(A) x + beta y. If `beta` is zero, y is not read.
    ///
    /// # Errors
    /// If a vector has the wrong length, if the backend has no kernel, or if the device fails.
    pub fn product_op<T: Scalar>(
        &self,
        backend: &B,
        op: Op,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>
    where
        V: Promote<T>,
        B: Products,
    {
        check_vectors(op, (self.rows(), self.columns()), (B::len(x), B::len(y)))?;
        self.transpose.product_op(backend, op.transposed(), alpha, x, beta, y)
    }

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let nonzeros = lengths.nonzeros() as u128;
        let offsets = offset_bytes(lengths.columns() + 1, nonzeros);
        Storage::new(lengths.nonzeros(), nonzeros, 4 + value, offsets, "csc")
    }
}

impl<V: Scalar, B: Conversions> Csc<V, B> {
    /// Converts from CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Ok(Self { transpose: a.transpose(backend)? })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        self.transpose.transpose(backend)
    }
}
