//! Bands of rows, swept in the order of columns.

use super::Csr;
use super::lengths::{RowLengths, scanned};
use super::sparse::product_op;
use super::storage::Storage;
use super::transposed::Kept;
use crate::backend::{Backend, Conversions, Host, NARROW_LIMIT, SweptArrays, SweptParts, swept_refusal};
use crate::error::Result;
use crate::scalar::Scalar;

/// A matrix cut into bands of rows, as many as have their sums in the fastest memory, whose entries lie in the order of
/// columns ([`SweptParts`] draws it).
///
/// It suits columns all over the matrix, where each nonzero asks the second-level cache of a GPU for a sector of x:
/// those that lie in one sector are asked for once a band. An entry takes the bytes of CSR: 32 bits number its row
/// within the band and its column; no padding. Entries come in steps in which no row occurs twice, so that threads add
/// up rows without atomic operations: a row of n entries takes n steps, and rows of more than 4096 are refused.
///
/// Source of entries that are numbered by half of the bits each way within a block: Buluc, Fineman, Frigo, Gilbert and
/// Leiserson, "Parallel sparse matrix-vector and matrix-transpose-vector multiplication using compressed sparse blocks"
/// (SPAA 2009).
pub struct Swept<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    height: usize,
    lengths: B::Vec<u32>,
    sweep: SweptArrays<V, B>,
    transposed: Kept<Csr<V, B>>,
}

impl<V: Scalar, B: Backend> Swept<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "swept";

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows of a band.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Steps of all bands.
    pub fn steps(&self) -> usize {
        B::len(&*self.sweep.bases)
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> SweptParts<'_, V, B> {
        SweptParts {
            rows: self.rows,
            columns: self.columns,
            height: self.height,
            firsts: &self.sweep.firsts,
            starts: &self.sweep.starts,
            bases: &self.sweep.bases,
            places: &self.sweep.places,
            values: &self.sweep.values,
        }
    }

    /// Number of stored entries.
    pub fn nonzeros(&self) -> usize {
        B::len(&*self.sweep.values)
    }

    /// Bytes of all arrays.
    pub fn storage_bytes(&self) -> usize {
        let bands = B::len(&*self.sweep.firsts) + self.rows;
        self.nonzeros() * (4 + size_of::<V>()) + self.steps() * STEP_BYTES + 8 + bands * 4
    }

    /// Entries stored beyond the nonzeros: none.
    pub fn padding(&self) -> usize {
        0
    }

    product_op!(swept; transposed);

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        Self::storage_of(lengths.rows(), lengths.nonzeros(), lengths.longest(), value)
    }

    /// At most a step an entry, and a band a row.
    fn storage_of(rows: usize, nonzeros: usize, longest: usize, value: usize) -> Storage {
        let index = 8 * rows as u128 + 12;
        let most = Storage::at_most(nonzeros, nonzeros as u128, 4 + value + STEP_BYTES, index);
        let many = || format!("{nonzeros} nonzeros, more than 32 bits number");
        let refused = (nonzeros > NARROW_LIMIT).then(many).or_else(|| swept_refusal(longest));
        Storage { refused, ..most }
    }
}

/// Where a step starts, and its base.
const STEP_BYTES: usize = 12;

impl<V: Scalar, B: Conversions> Swept<V, B> {
    /// Converts.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) where a row has more than 4096 entries, or the matrix 2^32; on too
    /// little memory, or when the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());
        // The backend tells the longest row.
        Self::storage_of(rows, nonzeros, 0, size_of::<V>()).check(Self::NAME)?;
        let (height, mut lengths) = (backend.band_height::<V>(rows), backend.buffer(rows)?);
        let sweep = backend.csr_to_swept(a.parts(), height, &mut lengths)?;
        Ok(Self { rows, columns, height, lengths, sweep, transposed: Kept::default() })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// On too little memory, or when the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let offsets = scanned(backend, &self.lengths, self.nonzeros())?;
        let mut indices = backend.buffer(self.nonzeros())?;
        let mut values = backend.buffer(self.nonzeros())?;
        backend.swept_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }
}
