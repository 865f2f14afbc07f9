//! Coordinates.

use super::Csr;
use super::kept::Kept;
use super::lengths::{RowLengths, scanned};
use super::product::product_op;
use super::storage::{Storage, sizes};
use crate::backend::copied;
use crate::backend::{Backend, Conversions, CooParts, Host, Offsets, with_offsets};
use crate::error::Result;
use crate::scalar::Scalar;

/// A matrix in coordinates, sorted by row, then column ([`CooParts`] draws it).
pub struct Coo<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    row_indices: B::Vec<u32>,
    column_indices: B::Vec<u32>,
    values: B::Vec<V>,
    transposed: Kept<Csr<V, B>>,
}

impl<V: Scalar, B: Backend> Coo<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "coo";

    sizes! { |a|
        rows: a.rows,
        columns: a.columns,
        nonzeros: B::len(&*a.values),
        storage_bytes: B::len(&*a.values) * (8 + size_of::<V>()),
        padding: 0,
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> CooParts<'_, V, B> {
        CooParts {
            rows: self.rows,
            columns: self.columns,
            row_indices: &self.row_indices,
            column_indices: &self.column_indices,
            values: &self.values,
        }
    }

    product_op!(coo; transposed);

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let nonzeros = lengths.nonzeros();
        Storage::new(nonzeros, nonzeros as u128, 8 + value, 0, "coo")
    }
}

impl<V: Scalar, B: Conversions> Coo<V, B> {
    /// Converts from CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Self::from_tails(backend, a, 0, a.nonzeros())
    }

    /// The entries of each row from its `skip`-th on, `total` in all.
    pub(super) fn from_tails(backend: &B, a: &Csr<V, B>, skip: usize, total: usize) -> Result<Self> {
        let parts = a.parts();
        let mut row_indices = backend.buffer(total)?;
        let (column_indices, values);
        if total == a.nonzeros() {
            with_offsets!(parts.offsets, o => backend.expand_offsets(o, &mut row_indices)?);
            column_indices = copied(backend, parts.indices)?;
            values = copied(backend, parts.values)?;
        } else {
            let (mut tail_columns, mut tail_values) = (backend.buffer(total)?, backend.buffer(total)?);
            if total > 0 {
                let mut tails = backend.buffer(a.rows())?;
                backend.row_lengths(parts.offsets, skip, usize::MAX, &mut tails)?;
                let offsets = scanned(backend, &tails, total)?;
                drop(tails);
                let to = (&mut *row_indices, &mut *tail_columns, &mut *tail_values);
                backend.csr_tails(parts, skip, offsets.as_ref(), to)?;
            }
            (column_indices, values) = (tail_columns, tail_values);
        }
        Ok(Self {
            rows: a.rows(),
            columns: a.columns(),
            row_indices,
            column_indices,
            values,
            transposed: Kept::default(),
        })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let offsets = self.row_offsets(backend)?;
        let indices = copied(backend, &self.column_indices)?;
        let values = copied(backend, &self.values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }

    /// The start of each row, and the end.
    pub(super) fn row_offsets(&self, backend: &B) -> Result<Offsets<B>> {
        let mut offsets = Offsets::zeros(backend, self.rows + 1, self.nonzeros())?;
        match &mut offsets {
            Offsets::Lower(o) => backend.offsets_of_sorted(&self.row_indices, o)?,
            Offsets::Wide(o) => backend.offsets_of_sorted(&self.row_indices, o)?,
        }
        Ok(offsets)
    }
}
