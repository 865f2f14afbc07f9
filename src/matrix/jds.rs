//! Jagged diagonals (JDS).

use super::Csr;
use super::kept::Kept;
use super::lengths::{RowLengths, lengths_of, longest_of, scanned};
use super::product::product_op;
use super::storage::{Storage, offset_bytes, sizes};
use crate::backend::{Backend, Conversions, Host, JdsParts, Offsets, RowOrder};
use crate::error::Result;
use crate::scalar::Scalar;

/// A matrix in jagged diagonals: rows from longest to shortest, stored column by column without padding ([`JdsParts`]
/// draws it). Products write y in the original order of rows, so the operator is the same as in CSR.
pub struct Jds<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    order: RowOrder<B>,
    offsets: Offsets<B>,
    indices: B::Vec<u32>,
    values: B::Vec<V>,
    transposed: Kept<Csr<V, B>>,
}

impl<V: Scalar, B: Backend> Jds<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "jds";

    sizes! { |a|
        rows: a.rows,
        columns: a.columns,
        nonzeros: B::len(&*a.values),
        storage_bytes: a.offsets.as_ref().bytes() + a.rows * 4 + B::len(&*a.values) * (4 + size_of::<V>()),
        padding: 0,
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> JdsParts<'_, V, B> {
        JdsParts {
            rows: self.rows,
            columns: self.columns,
            order: self.order.as_ref(),
            offsets: self.offsets.as_ref(),
            indices: &self.indices,
            values: &self.values,
        }
    }

    product_op!(jds; transposed);

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let nonzeros = lengths.nonzeros() as u128;
        let index = offset_bytes(lengths.longest() + 1, nonzeros) + 4 * lengths.rows() as u128;
        Storage::new(lengths.nonzeros(), nonzeros, 4 + value, index, "jds")
    }
}

impl<V: Scalar, B: Conversions> Jds<V, B> {
    /// Converts from CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let lengths = lengths_of(backend, a)?;
        let longest = longest_of(backend, &lengths)?;
        let order = RowOrder::new(backend.longest_first(&lengths, a.rows().max(1), longest)?);
        // Diagonal k has as many entries as there are rows with more than k entries.
        let mut reach = backend.buffer(longest as usize)?;
        backend.jagged_reach(&lengths, order.as_ref(), &mut reach)?;
        let offsets = scanned(backend, &reach, a.nonzeros())?;
        drop((lengths, reach));
        let mut indices = backend.buffer(a.nonzeros())?;
        let mut values = backend.buffer(a.nonzeros())?;
        backend.csr_to_jds(a.parts(), order.as_ref(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Self {
            rows: a.rows(),
            columns: a.columns(),
            order,
            offsets,
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
        let nonzeros = B::len(&*self.values);
        let mut lengths = backend.buffer(self.rows)?;
        backend.jagged_lengths(self.order.as_ref(), self.offsets.as_ref(), &mut lengths)?;
        let offsets = scanned(backend, &lengths, nonzeros)?;
        drop(lengths);
        let mut indices = backend.buffer(nonzeros)?;
        let mut values = backend.buffer(nonzeros)?;
        backend.jds_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }
}
