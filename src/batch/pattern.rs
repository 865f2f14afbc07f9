//! Which entries of the systems are stored.

use crate::backend::{Backend, BatchEntries, BatchParts};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::ops::Range;

/// Compressed rows, on the host and in the memory of the backend.
#[derive(Debug)]
struct Compressed<B: Backend> {
    offsets: Vec<u64>,
    columns: Vec<u32>,
    offsets_there: B::Vec<u64>,
    columns_there: B::Vec<u32>,
}

#[derive(Debug)]
enum Kind<B: Backend> {
    Dense,
    /// One pattern for all systems.
    All(Compressed<B>),
    /// Systems with patterns of their own, and where each begins in the rows of all.
    Each {
        starts: Vec<u64>,
        starts_there: B::Vec<u64>,
        rows: Compressed<B>,
    },
}

/// The pattern of all systems.
#[derive(Debug)]
pub(super) struct Pattern<B: Backend> {
    systems: usize,
    /// Rows of the largest system.
    size: usize,
    /// Entries of the longest row.
    longest: usize,
    kind: Kind<B>,
}

fn invalid(what: String) -> Error {
    Error::InvalidMatrix(what)
}

/// Returns an error unless these rows are those of a square matrix.
fn check(offsets: &[u64], columns: &[u32], rows: Range<usize>) -> Result<()> {
    let size = rows.len();
    for row in rows.clone() {
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        let own = (start <= end).then(|| columns.get(start..end)).flatten();
        let own = own.ok_or_else(|| invalid(format!("offsets of row {row} (from 0) that lead nowhere")))?;
        if own.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(invalid(format!("columns of row {row} (from 0) that do not ascend")));
        }
        if own.last().is_some_and(|&last| last as usize >= size) {
            return Err(invalid(format!("row {row} (from 0) names a column beyond the last of {size}")));
        }
    }
    Ok(())
}

impl<B: Backend> Compressed<B> {
    fn new(backend: &B, offsets: Vec<u64>, columns: Vec<u32>) -> Result<Self> {
        if offsets.first() != Some(&0) || offsets.last() != Some(&(columns.len() as u64)) {
            return Err(invalid(format!(
                "the row offsets must begin at 0 and end at {}, the number of column indices",
                columns.len()
            )));
        }
        let (offsets_there, columns_there) =
            (backend.upload(offsets.clone())?, backend.upload(columns.clone())?);
        Ok(Self { offsets, columns, offsets_there, columns_there })
    }

    /// Entries of the longest row.
    fn longest(&self) -> usize {
        self.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }
}

impl<B: Backend> Pattern<B> {
    pub(super) fn dense(systems: usize, size: usize) -> Result<Self> {
        let fits = size <= u32::MAX as usize
            && size.checked_mul(size).and_then(|n| n.checked_mul(systems)).is_some();
        if !fits {
            return Err(Error::InvalidArgument(format!("{systems} dense matrices of {size} rows")));
        }
        Ok(Self { systems, size, longest: size, kind: Kind::Dense })
    }

    pub(super) fn of_all(backend: &B, systems: usize, offsets: Vec<u64>, columns: Vec<u32>) -> Result<Self> {
        let rows = Compressed::new(backend, offsets, columns)?;
        let size = rows.offsets.len() - 1;
        check(&rows.offsets, &rows.columns, 0..size)?;
        Ok(Self { systems, size, longest: rows.longest(), kind: Kind::All(rows) })
    }

    pub(super) fn of_each(
        backend: &B,
        starts: Vec<u64>,
        offsets: Vec<u64>,
        columns: Vec<u32>,
    ) -> Result<Self> {
        let rows = Compressed::new(backend, offsets, columns)?;
        let all = rows.offsets.len() - 1;
        if starts.first() != Some(&0) || starts.last() != Some(&(all as u64)) || !starts.is_sorted() {
            return Err(invalid("starts of systems that do not lead from 0 to the number of rows".into()));
        }
        let mut size = 0;
        for pair in starts.windows(2) {
            check(&rows.offsets, &rows.columns, pair[0] as usize..pair[1] as usize)?;
            size = size.max((pair[1] - pair[0]) as usize);
        }
        let starts_there = backend.upload(starts.clone())?;
        let longest = rows.longest();
        Ok(Self { systems: starts.len() - 1, size, longest, kind: Kind::Each { starts, starts_there, rows } })
    }

    pub(super) fn systems(&self) -> usize {
        self.systems
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn rows(&self) -> usize {
        match &self.kind {
            Kind::Each { rows, .. } => rows.offsets.len() - 1,
            _ => self.systems * self.size,
        }
    }

    pub(super) fn entries(&self) -> usize {
        match &self.kind {
            Kind::Dense => self.systems * self.size * self.size,
            Kind::All(rows) => self.systems * rows.columns.len(),
            Kind::Each { rows, .. } => rows.columns.len(),
        }
    }

    pub(super) fn is_dense(&self) -> bool {
        matches!(self.kind, Kind::Dense)
    }

    /// The rows of the pattern that all systems have, if they have one.
    pub(super) fn of_one(&self) -> Option<(&[u64], &[u32])> {
        match &self.kind {
            Kind::All(rows) => Some((&rows.offsets, &rows.columns)),
            _ => None,
        }
    }

    /// Calls f(offsets from 0, columns) for the pattern of all systems, or for that of each; None if they are dense.
    pub(super) fn each_pattern<R>(&self, mut f: impl FnMut(&[u64], &[u32]) -> R) -> Option<Vec<R>> {
        match &self.kind {
            Kind::Dense => None,
            Kind::All(rows) => Some(vec![f(&rows.offsets, &rows.columns)]),
            Kind::Each { starts, rows, .. } => {
                let of_each = starts.windows(2).map(|pair| {
                    let offsets = &rows.offsets[pair[0] as usize..=pair[1] as usize];
                    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
                    let own: Vec<u64> = offsets.iter().map(|offset| offset - first).collect();
                    f(&own, &rows.columns[first as usize..last as usize])
                });
                Some(of_each.collect())
            }
        }
    }

    /// The systems with these values, for a backend.
    pub(super) fn parts<'a, T: Scalar>(&'a self, values: &'a B::Slice<T>) -> BatchParts<'a, T, B> {
        let entries = |rows: &'a Compressed<B>| BatchEntries::Compressed {
            offsets: &*rows.offsets_there,
            columns: &*rows.columns_there,
            values,
        };
        let (starts, entries_each, entries) = match &self.kind {
            Kind::Dense => (None, self.size * self.size, BatchEntries::Dense(values)),
            Kind::All(rows) => (None, rows.columns.len(), entries(rows)),
            Kind::Each { starts_there, rows, .. } => (Some(&**starts_there), 0, entries(rows)),
        };
        BatchParts {
            systems: self.systems,
            size: self.size,
            entries_each,
            longest: self.longest,
            starts,
            entries,
        }
    }

    /// The range of the rows of one system in all rows.
    pub(super) fn rows_of(&self, system: usize) -> Range<usize> {
        match &self.kind {
            Kind::Each { starts, .. } => starts[system] as usize..starts[system + 1] as usize,
            _ => system * self.size..(system + 1) * self.size,
        }
    }

    /// The range of the values of one system in all values.
    pub(super) fn values_of(&self, system: usize) -> Range<usize> {
        match &self.kind {
            Kind::Each { rows, .. } => {
                let own = self.rows_of(system);
                rows.offsets[own.start] as usize..rows.offsets[own.end] as usize
            }
            Kind::All(rows) => system * rows.columns.len()..(system + 1) * rows.columns.len(),
            Kind::Dense => system * self.size * self.size..(system + 1) * self.size * self.size,
        }
    }

    /// The matrix of one system. Zeros of a dense system are not stored.
    pub(super) fn matrix<T: Scalar>(&self, system: usize, values: &[T]) -> Result<Csr<T>> {
        let n = self.rows_of(system).len();
        let (mut offsets, mut columns, mut kept) = (vec![0], Vec::new(), Vec::new());
        let (rows, own) = match &self.kind {
            Kind::Dense => {
                for row in values.chunks_exact(n.max(1)) {
                    let stored = row.iter().enumerate().filter(|(_, value)| **value != T::default());
                    for (column, &value) in stored {
                        columns.push(column as u32);
                        kept.push(value);
                    }
                    offsets.push(columns.len());
                }
                return Csr::from_parts(n, n, offsets, columns, kept);
            }
            Kind::All(rows) => (rows, 0..n),
            Kind::Each { rows, .. } => (rows, self.rows_of(system)),
        };
        let first = rows.offsets[own.start];
        offsets.extend(rows.offsets[own.start + 1..=own.end].iter().map(|offset| (offset - first) as usize));
        let columns = rows.columns[first as usize..rows.offsets[own.end] as usize].to_vec();
        Csr::from_parts(n, n, offsets, columns, values.to_vec())
    }
}
