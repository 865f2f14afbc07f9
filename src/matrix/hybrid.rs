//! Hybrid ELL + COO.

use super::kept::Kept;
use super::lengths::{RowLengths, counts_of, scanned};
use super::product::check_vectors;
use super::storage::{Storage, sizes};
use super::{Coo, Csr, Ell};
use crate::backend::{Backend, Conversions, Gemv, Host, NARROW_LIMIT, Offsets, Op, Products};
use crate::error::Result;
use crate::scalar::{Promote, Scalar};

/// A matrix whose rows keep their first entries in ELL and the rest in coordinates.
///
/// The width of the ELL part is the largest that at least a third of the rows reach: a column filled by fewer rows
/// costs more as padding than its entries cost as coordinates (Bell and Garland, "Implementing sparse matrix-vector
/// multiplication on throughput-oriented processors", SC 2009, section 4; PMPP section 14.5). They also require 4096
/// rows, the number of threads of their chip; this is omitted here.
///
/// ```text
/// width    2            all four rows have one entry, three of four have two
/// ELL      columns 0 2 1 0 | 2 * 2 3     values 1 8 4 2 | 7 * 3 1
/// COO      nothing here: rows longer than the width go on in it
/// ```
pub struct Hybrid<V: Scalar, B: Backend = Host> {
    head: Ell<V, B>,
    tail: Coo<V, B>,
    transposed: Kept<Csr<V, B>>,
}

impl<V: Scalar, B: Backend> Hybrid<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "hybrid";

    sizes! { |a|
        rows: a.head.rows(),
        columns: a.head.columns(),
        nonzeros: a.head.nonzeros() + a.tail.nonzeros(),
        storage_bytes: a.head.storage_bytes() + a.tail.storage_bytes(),
        padding: a.head.padding(),
    }

    /// The ELL part: the first entries of every row.
    pub fn head(&self) -> &Ell<V, B> {
        &self.head
    }

    /// The COO part: the remaining entries.
    pub fn tail(&self) -> &Coo<V, B> {
        &self.tail
    }

    /// The width of the ELL part, by the rule above: `counts[n]` rows have n entries.
    fn width(counts: &[usize], rows: usize) -> usize {
        let mut reach = 0;
        for width in (1..counts.len()).rev() {
            reach += counts[width];
            if 3 * reach >= rows {
                return width;
            }
        }
        0
    }

    /// y = alpha op(A) x + beta y. If `beta` is zero, y is not read. On a device the first product with the transpose
    /// makes a transposed copy in CSR, which is kept.
    ///
    /// # Errors
    /// If a vector has the wrong length, if the backend has no kernel, if memory runs out for a copy, or if the device
    /// fails.
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
        if let Some(copy) = self.transposed.of(self, backend, op)? {
            return backend.csr(copy.parts(), Gemv { op: op.transposed(), alpha, x, beta, y });
        }
        backend.ell(self.head.parts(), Gemv { op, alpha, x, beta, y })?;
        if B::len(self.tail.parts().values) == 0 {
            return Ok(());
        }
        backend.coo(self.tail.parts(), Gemv { op, alpha, x, beta: T::one(), y })
    }

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let counts = lengths.counts();
        let width = Self::width(&counts, lengths.rows());
        Self::storage_of(lengths.rows(), lengths.nonzeros(), width, Self::head_entries(&counts, width), value)
    }

    fn storage_of(rows: usize, nonzeros: usize, width: usize, head: usize, value: usize) -> Storage {
        let tail = (nonzeros - head) as u128;
        let entries = rows as u128 * width as u128 + tail;
        let index = 4 * rows as u128 + 4 * tail;
        Storage::new(nonzeros, entries, 4 + value, index, &format!("an ELL part of width {width}"))
    }

    /// Entries of the ELL part, padding not counted.
    fn head_entries(counts: &[usize], width: usize) -> usize {
        counts.iter().enumerate().map(|(n, &rows)| n.min(width) * rows).sum()
    }
}

impl<V: Scalar, B: Conversions> Hybrid<V, B> {
    /// Converts from CSR.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) if padding would take more than twice the nonzeros (the rule keeps it
    /// below that); if memory runs out, or if the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        // A third of the rows reach the width, so it is at most three times the mean: longer rows need not be counted
        // separately.
        let most = a.nonzeros().min(3 * a.nonzeros() / a.rows().max(1));
        let mut lengths = backend.buffer(a.rows())?;
        backend.row_lengths(a.parts().offsets, 0, most, &mut lengths)?;
        let counts = counts_of(backend, &lengths, most)?;
        let width = Self::width(&counts, a.rows());
        let head = Self::head_entries(&counts, width);
        Self::storage_of(a.rows(), a.nonzeros(), width, head, size_of::<V>()).check(Self::NAME)?;
        let tail = Coo::from_tails(backend, a, width, a.nonzeros() - head)?;
        backend.row_lengths(a.parts().offsets, 0, width, &mut lengths)?;
        Ok(Self {
            head: Ell::with_width(backend, a, width, head, lengths)?,
            tail,
            transposed: Kept::default(),
        })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let nonzeros = self.nonzeros();
        let tails = self.tail.row_offsets(backend)?;
        let tails = tails.as_ref();
        let heads = scanned(backend, self.head.parts().lengths, self.head.nonzeros())?;
        let offsets = if nonzeros <= NARROW_LIMIT {
            let mut offsets = backend.buffer(self.rows() + 1)?;
            backend.join_offsets(heads.as_ref(), tails, &mut offsets)?;
            Offsets::Lower(offsets)
        } else {
            let mut offsets = backend.buffer(self.rows() + 1)?;
            backend.join_offsets(heads.as_ref(), tails, &mut offsets)?;
            Offsets::Wide(offsets)
        };
        // Freed before the entries are allocated.
        drop(heads);
        let mut indices = backend.buffer(nonzeros)?;
        let mut values = backend.buffer(nonzeros)?;
        let (head, tail) = (self.head.parts(), self.tail.parts());
        backend.join_rows(head, tail, tails, offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows(), self.columns(), offsets, indices, values))
    }
}
