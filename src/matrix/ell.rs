//! ELLPACK (ELL).

use super::Csr;
use super::kept::Kept;
use super::lengths::{RowLengths, lengths_of, longest_of, scanned};
use super::product::product_op;
use super::storage::{Storage, sizes};
use crate::backend::{Backend, Conversions, EllParts, Host};
use crate::error::Result;
use crate::scalar::Scalar;

/// A matrix in ELL: all rows padded to one width, stored column by column ([`EllParts`] draws it).
pub struct Ell<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    width: usize,
    nonzeros: usize,
    lengths: B::Vec<u32>,
    indices: B::Vec<u32>,
    values: B::Vec<V>,
    transposed: Kept<Csr<V, B>>,
}

impl<V: Scalar, B: Backend> Ell<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "ell";

    sizes! { |a|
        rows: a.rows,
        columns: a.columns,
        nonzeros: a.nonzeros,
        storage_bytes: a.rows * 4 + a.rows * a.width * (4 + size_of::<V>()),
        padding: a.rows * a.width - a.nonzeros,
    }

    /// Entries of each padded row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> EllParts<'_, V, B> {
        EllParts {
            rows: self.rows,
            columns: self.columns,
            width: self.width,
            lengths: &self.lengths,
            indices: &self.indices,
            values: &self.values,
        }
    }

    product_op!(ell; transposed);

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        Self::storage_of(lengths.rows(), lengths.nonzeros(), lengths.longest(), value)
    }

    fn storage_of(rows: usize, nonzeros: usize, width: usize, value: usize) -> Storage {
        let about = format!("{rows} rows padded to the longest one's {width}");
        let entries = rows as u128 * width as u128;
        Storage::new(nonzeros, entries, 4 + value, 4 * rows as u128, &about)
    }
}

impl<V: Scalar, B: Conversions> Ell<V, B> {
    /// Converts from CSR.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) if padding would take more than twice the nonzeros; if memory runs
    /// out, or if the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let lengths = lengths_of(backend, a)?;
        let width = longest_of(backend, &lengths)? as usize;
        Self::storage_of(a.rows(), a.nonzeros(), width, size_of::<V>()).check(Self::NAME)?;
        Self::with_width(backend, a, width, a.nonzeros(), lengths)
    }

    /// The first `width` entries of every row, `nonzeros` in all; `lengths` has the number of entries of each row.
    pub(super) fn with_width(
        backend: &B,
        a: &Csr<V, B>,
        width: usize,
        nonzeros: usize,
        lengths: B::Vec<u32>,
    ) -> Result<Self> {
        let mut indices = backend.buffer(width * a.rows())?;
        let mut values = backend.buffer(width * a.rows())?;
        backend.csr_to_ell(a.parts(), width, &mut indices, &mut values)?;
        Ok(Self {
            rows: a.rows(),
            columns: a.columns(),
            width,
            nonzeros,
            lengths,
            indices,
            values,
            transposed: Kept::default(),
        })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let offsets = scanned(backend, &self.lengths, self.nonzeros)?;
        let mut indices = backend.buffer(self.nonzeros)?;
        let mut values = backend.buffer(self.nonzeros)?;
        backend.ell_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }
}
