//! Triplets in the memory of a backend.

use crate::backend::{Backend, Host, RunSums};
use crate::error::{Error, Result};
use crate::matrix::Triplets;
use crate::scalar::{Max, Scalar, Symmetry};

/// [`Triplets`] in the memory of a backend: read from a file and copied there, or written by the caller's own kernels.
/// Indices start from zero and are inside of the matrix.
#[derive(Debug)]
pub struct ResidentTriplets<T: Scalar, B: Backend> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) row_indices: B::Vec<u32>,
    pub(super) column_indices: B::Vec<u32>,
    pub(super) values: B::Vec<T>,
    /// The symmetry that the diagonal was checked for.
    pub(super) checked: Symmetry,
}

impl<T: Scalar, B: Backend> ResidentTriplets<T, B> {
    /// Takes the output of a parser, which has checked the indices and the diagonal.
    pub(crate) fn from_parsed(
        (rows, columns): (usize, usize),
        checked: Symmetry,
        row_indices: B::Vec<u32>,
        column_indices: B::Vec<u32>,
        values: B::Vec<T>,
    ) -> Result<Self> {
        Triplets::<T>::new(rows, columns)?;
        Ok(Self { rows, columns, row_indices, column_indices, values, checked })
    }

    /// Uploads triplets. On the host they are moved; for a device they are copied, and each host array is freed right
    /// after.
    ///
    /// # Errors
    /// If memory is insufficient, or the device fails.
    pub fn upload(backend: &B, triplets: Triplets<T>) -> Result<Self> {
        let (rows, columns) = (triplets.rows(), triplets.columns());
        let (is, js, values) = triplets.into_parts();
        Ok(Self {
            rows,
            columns,
            row_indices: backend.upload(is)?,
            column_indices: backend.upload(js)?,
            values: backend.upload(values)?,
            checked: Symmetry::General,
        })
    }

    /// From three buffers of equal length.
    ///
    /// # Errors
    /// If lengths differ, a dimension is above 2^32, an index is outside of the matrix, or the device fails.
    pub fn from_parts(
        backend: &B,
        rows: usize,
        columns: usize,
        row_indices: B::Vec<u32>,
        column_indices: B::Vec<u32>,
        values: B::Vec<T>,
    ) -> Result<Self>
    where
        B: RunSums,
    {
        Triplets::<T>::new(rows, columns)?;
        let n = B::len(&*row_indices);
        Error::check_dimension("number of column indices", n, B::len(&*column_indices))?;
        Error::check_dimension("number of values", n, B::len(&*values))?;
        let mut largest = backend.buffer(1)?;
        for (what, indices, limit) in [("row", &row_indices, rows), ("column", &column_indices, columns)] {
            backend.reduce(Max, indices, &mut largest)?;
            let index = backend.value(&largest)?;
            if n > 0 && index as usize >= limit {
                return Err(Error::InvalidMatrix(format!(
                    "a triplet has {what} {index}, but there are {limit} {what}s"
                )));
            }
        }
        let checked = Symmetry::General;
        Ok(Self { rows, columns, row_indices, column_indices, values, checked })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of entries, including duplicates.
    pub fn len(&self) -> usize {
        B::len(&*self.values)
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row indices, column indices and values.
    #[allow(clippy::type_complexity)]
    pub fn parts(&self) -> (&B::Slice<u32>, &B::Slice<u32>, &B::Slice<T>) {
        (&self.row_indices, &self.column_indices, &self.values)
    }

    /// A copy on the host.
    ///
    /// # Errors
    /// If the device fails.
    pub fn to_host(&self, backend: &B) -> Result<Triplets<T>> {
        let (is, js, values) = self.parts();
        let (is, js, values) = (backend.download(is)?, backend.download(js)?, backend.download(values)?);
        Triplets::from_parts(self.rows, self.columns, is, js, values)
    }
}

impl<T: Scalar> From<Triplets<T>> for ResidentTriplets<T, Host> {
    fn from(triplets: Triplets<T>) -> Self {
        let (rows, columns) = (triplets.rows(), triplets.columns());
        let (row_indices, column_indices, values) = triplets.into_parts();
        Self { rows, columns, row_indices, column_indices, values, checked: Symmetry::General }
    }
}
