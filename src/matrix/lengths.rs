//! Row lengths, which determine the storage of the formats, the choice between them and their refusals.

use super::Csr;
use super::storage::{Storage, offset_bytes};
use crate::backend::{Backend, Conversions, NARROW_LIMIT, Offsets, OffsetsRef, Primitives};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Max, Offset, Scalar};

/// Rows of one task: a fixed number, so that sums do not depend on the number of threads.
const CHUNK: usize = 1 << 14;

/// The shape of a sparse matrix as far as its storage depends on it: the number of entries of each row, and of
/// diagonals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLengths {
    columns: usize,
    nonzeros: usize,
    diagonals: Option<usize>,
    lengths: Vec<u32>,
}

impl RowLengths {
    /// The row lengths of a matrix in CSR.
    ///
    /// # Errors
    /// If the device fails, or if one row has 2^32 entries.
    pub fn of<V: Scalar, B: Conversions>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let parts = a.parts();
        let found = backend.diagonals((a.rows(), a.columns()), parts.offsets, parts.indices, 0)?;
        Ok(Self { diagonals: Some(found.count), ..Self::without_diagonals(backend, a)? })
    }

    /// The row lengths without counting diagonals.
    pub(in crate::matrix) fn without_diagonals<V: Scalar, B: Backend>(
        backend: &B,
        a: &Csr<V, B>,
    ) -> Result<Self> {
        let lengths = match a.parts().offsets {
            OffsetsRef::Lower(offsets) => differences(&backend.download(offsets)?)?,
            OffsetsRef::Wide(offsets) => differences(&backend.download(offsets)?)?,
        };
        Ok(Self { columns: a.columns(), nonzeros: a.nonzeros(), diagonals: None, lengths })
    }

    /// The lengths of some rows of a matrix, as if there were no others. If `seen` diagonals come from fewer rows, the
    /// longest row still has entries on as many diagonals as its length.
    pub(super) fn sampled(columns: usize, seen: usize, lengths: Vec<u32>) -> Self {
        let nonzeros = lengths.iter().map(|&n| n as usize).sum();
        let mut all = Self { columns, nonzeros, diagonals: None, lengths };
        all.diagonals = Some(seen.max(all.longest()));
        all
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// The number of diagonals with an entry, if it was counted.
    pub fn diagonals(&self) -> Option<usize> {
        self.diagonals
    }

    /// Entries of each row.
    pub fn as_slice(&self) -> &[u32] {
        &self.lengths
    }

    /// Entries of the longest row.
    pub fn longest(&self) -> usize {
        self.lengths
            .par_chunks(CHUNK)
            .map(|chunk| chunk.iter().copied().max().unwrap_or(0))
            .reduce(|| 0, u32::max) as usize
    }

    /// How many rows have each length: `counts[n]` rows have `n` entries.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.longest() + 1];
        self.lengths.iter().for_each(|&n| counts[n as usize] += 1);
        counts
    }

    /// Statistics of the lengths.
    pub fn statistics(&self) -> RowStatistics {
        RowStatistics::of(self)
    }
}

fn differences<O: Offset>(offsets: &[O]) -> Result<Vec<u32>> {
    let mut lengths = vec![0; offsets.len() - 1];
    let good = lengths.par_iter_mut().enumerate().with_min_len(1 << 12).all(|(row, length)| {
        let n = u32::try_from(offsets[row + 1].to_usize() - offsets[row].to_usize());
        n.map(|n| *length = n).is_ok()
    });
    if good { Ok(lengths) } else { Err(Error::Unsupported("a row with 2^32 entries or more".into())) }
}

/// Statistics of the row lengths of a matrix.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RowStatistics {
    /// Entries of the shortest row.
    pub min: usize,
    /// Entries of the longest row.
    pub max: usize,
    /// Mean number of entries per row.
    pub mean: f64,
    /// Coefficient of variation: standard deviation divided by the mean; 0 if all rows have the same length.
    pub cv: f64,
    /// Rows without entries.
    pub empty: usize,
    /// `histogram[0]` rows are empty, `histogram[k]` have 2^(k-1) to 2^k - 1 entries.
    pub histogram: Vec<usize>,
}

impl RowStatistics {
    fn of(lengths: &RowLengths) -> Self {
        let rows = lengths.rows();
        let mean = if rows == 0 { 0.0 } else { lengths.nonzeros as f64 / rows as f64 };
        let parts: Vec<(u32, f64, Vec<usize>)> = lengths
            .lengths
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut histogram = vec![0; 33];
                chunk.iter().for_each(|n| histogram[(u32::BITS - n.leading_zeros()) as usize] += 1);
                let squares = chunk.iter().map(|&n| (f64::from(n) - mean).powi(2)).sum();
                (chunk.iter().copied().min().unwrap_or(0), squares, histogram)
            })
            .collect();
        let variance = parts.iter().map(|p| p.1).sum::<f64>() / rows.max(1) as f64;
        let mut histogram: Vec<usize> = (0..33).map(|k| parts.iter().map(|p| p.2[k]).sum()).collect();
        let used = histogram.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        histogram.truncate(used);
        Self {
            min: parts.iter().map(|p| p.0).min().unwrap_or(0) as usize,
            max: lengths.longest(),
            mean,
            cv: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
            empty: histogram.first().copied().unwrap_or(0),
            histogram,
        }
    }
}

/// Offsets of rows of these lengths, as wide as their total needs.
pub(crate) fn offsets_of<B: Backend>(
    backend: &B,
    lengths: impl ExactSizeIterator<Item = usize> + Clone,
) -> Result<Offsets<B>> {
    fn scan<O: Offset>(lengths: impl ExactSizeIterator<Item = usize>) -> Vec<O> {
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        let mut total = 0;
        offsets.push(O::from_usize(0));
        offsets.extend(lengths.map(|n| {
            total += n;
            O::from_usize(total)
        }));
        offsets
    }
    let total: usize = lengths.clone().sum();
    Ok(if total <= NARROW_LIMIT {
        Offsets::Lower(backend.upload(scan(lengths))?)
    } else {
        Offsets::Wide(backend.upload(scan(lengths))?)
    })
}

/// Entries of each row, in the backend's memory, where conversions compute sizes without a copy to the host.
pub(super) fn lengths_of<V: Scalar, B: Conversions>(backend: &B, a: &Csr<V, B>) -> Result<B::Vec<u32>> {
    if a.columns() as u64 > u64::from(u32::MAX) && a.nonzeros() > NARROW_LIMIT {
        return Err(Error::Unsupported("rows that may have 2^32 entries".into()));
    }
    let mut lengths = backend.buffer(a.rows())?;
    backend.row_lengths(a.parts().offsets, 0, usize::MAX, &mut lengths)?;
    Ok(lengths)
}

/// Entries of the longest row.
pub(super) fn longest_of<B: Primitives>(backend: &B, lengths: &B::Slice<u32>) -> Result<u32> {
    let mut longest = backend.buffer(1)?;
    backend.reduce(Max, lengths, &mut longest)?;
    backend.value(&longest)
}

/// The number of rows of each length up to the longest, as [`RowLengths::counts`].
pub(super) fn counts_of<B: Primitives>(
    backend: &B,
    lengths: &B::Slice<u32>,
    longest: usize,
) -> Result<Vec<usize>> {
    let mut counts = backend.buffer(longest + 1)?;
    backend.histogram(lengths, &mut counts)?;
    Ok(backend.download(&*counts)?.into_iter().map(Offset::to_usize).collect())
}

/// Offsets of rows of these lengths, `total` entries in all.
pub(super) fn scanned<B: Primitives>(
    backend: &B,
    lengths: &B::Slice<u32>,
    total: usize,
) -> Result<Offsets<B>> {
    let n = B::len(lengths) + 1;
    Ok(if total <= NARROW_LIMIT {
        let mut offsets = backend.buffer(n)?;
        backend.exclusive_scan(lengths, &mut offsets)?;
        Offsets::Lower(offsets)
    } else {
        let mut offsets = backend.buffer(n)?;
        backend.exclusive_scan(lengths, &mut offsets)?;
        Offsets::Wide(offsets)
    })
}

impl<V: Scalar, B: Backend> Csr<V, B> {
    /// Entries of each row.
    ///
    /// # Errors
    /// If the device fails.
    pub fn row_lengths(&self, backend: &B) -> Result<RowLengths>
    where
        B: Conversions,
    {
        RowLengths::of(backend, self)
    }

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let nonzeros = lengths.nonzeros() as u128;
        let offsets = offset_bytes(lengths.rows() + 1, nonzeros);
        Storage::new(lengths.nonzeros(), nonzeros, 4 + value, offsets, "csr")
    }
}
