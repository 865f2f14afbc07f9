//! Compressed sparse rows, the hub of all formats.

use crate::backend::{Backend, CsrParts, Host, NARROW_LIMIT, Offsets, Products, VectorOps};
use crate::error::{Error, Result};
use crate::operator::LinearOperator;
use crate::scalar::{Scalar, Widen};

/// A matrix in compressed sparse rows ([`CsrParts`] draws it), values of type `V` in the memory of backend `B`.
///
/// Every row's columns ascend strictly: constructors check it once, and nothing can change it later. Products compute
/// in any type to which `V` widens.
#[derive(Debug)]
pub struct Csr<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    offsets: Offsets<B>,
    indices: B::Vec<u32>,
    values: B::Vec<V>,
}

impl<V: Scalar> Csr<V, Host> {
    /// From the three arrays of CSR, indices from zero.
    ///
    /// # Errors
    /// Unless there are `rows + 1` offsets that ascend from 0 to the number of values, and each row's columns ascend
    /// strictly below `columns`; the message names the first row that does not.
    pub fn from_parts(
        rows: usize,
        columns: usize,
        offsets: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<V>,
    ) -> Result<Self> {
        Error::check_dimension("number of row offsets", rows + 1, offsets.len())?;
        Error::check_dimension("number of values", indices.len(), values.len())?;
        Error::check_dimension("first row offset", 0, offsets[0])?;
        Error::check_dimension("last row offset", values.len(), offsets[rows])?;
        for row in 0..rows {
            let (start, end) = (offsets[row], offsets[row + 1]);
            if start > end || end > values.len() {
                return Err(Error::InvalidMatrix(format!("row {row} spans offsets {start} to {end}")));
            }
            let line = &indices[start..end];
            if let Some(w) = line.windows(2).find(|w| w[0] >= w[1]) {
                return Err(Error::InvalidMatrix(format!(
                    "row {row}: column {} comes after column {}",
                    w[1], w[0]
                )));
            }
            if let Some(&last) = line.last().filter(|&&last| last as usize >= columns) {
                return Err(Error::InvalidMatrix(format!(
                    "row {row}: column {last} of a matrix with {columns} columns"
                )));
            }
        }
        let offsets = if values.len() <= NARROW_LIMIT {
            Offsets::Narrow(offsets.into_iter().map(|o| o as u32).collect())
        } else {
            Offsets::Wide(offsets.into_iter().map(|o| o as u64).collect())
        };
        Ok(Self { rows, columns, offsets, indices, values })
    }
}

impl<V: Scalar, B: Backend> Csr<V, B> {
    /// From arrays that are known to keep CSR's promises, already in the backend's memory.
    #[allow(dead_code)]
    pub(crate) fn from_parts_unchecked(
        rows: usize,
        columns: usize,
        offsets: Offsets<B>,
        indices: B::Vec<u32>,
        values: B::Vec<V>,
    ) -> Self {
        debug_assert_eq!(offsets.as_ref().len(), rows + 1);
        debug_assert_eq!(B::len(&*indices), B::len(&*values));
        Self { rows, columns, offsets, indices, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries (explicit zeros count).
    pub fn nonzeros(&self) -> usize {
        B::len(&*self.values)
    }

    /// Bytes of the three arrays.
    pub fn storage_bytes(&self) -> usize {
        self.offsets.as_ref().bytes() + self.nonzeros() * (size_of::<u32>() + size_of::<V>())
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> CsrParts<'_, V, B> {
        CsrParts {
            rows: self.rows,
            columns: self.columns,
            offsets: self.offsets.as_ref(),
            indices: &self.indices,
            values: &self.values,
        }
    }

    /// The values, in the order of the structure: a time loop writes new ones here.
    pub fn values_mut(&mut self) -> &mut B::Slice<V> {
        &mut self.values
    }

    /// y = alpha A x + beta y. Where `beta` is zero, y is not read.
    ///
    /// # Errors
    /// On vectors of the wrong length, or when the device fails.
    pub fn product<T: Scalar>(
        &self,
        backend: &B,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>
    where
        V: Widen<T>,
        B: Products,
    {
        Error::check_dimension("length of x", self.columns, B::len(x))?;
        Error::check_dimension("length of y", self.rows, B::len(y))?;
        backend.csr(self.parts(), alpha, x, beta, y)
    }
}

impl<V: Scalar + Widen<T>, T: Scalar, B: Products> LinearOperator<T, B> for Csr<V, B> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
        self.product(backend, T::one(), x, T::zero(), y)
    }

    fn apply_dot(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>, xy: &mut B::Slice<T>) -> Result<()>
    where
        B: VectorOps,
    {
        Error::check_dimension("length of x", self.columns, B::len(x))?;
        Error::check_dimension("length of y", self.rows, B::len(y))?;
        Error::check_dimension("columns of a square matrix", self.rows, self.columns)?;
        backend.csr_dot(self.parts(), x, y, xy)
    }

    fn bytes(&self) -> usize {
        self.storage_bytes() + (self.rows + self.columns) * size_of::<T>()
    }
}
