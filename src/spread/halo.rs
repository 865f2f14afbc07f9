//! How rows are divided among ranks, and which entries of x each rank needs from the others.

use crate::backend::{Backend, Communicator, Host, NARROW_LIMIT, Offsets, VectorOps};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::of_stretches;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::Scalar;
use std::ops::Range;

/// Divides `n` rows evenly into contiguous ranges, one for each part.
pub fn even_parts(n: usize, parts: usize) -> Vec<Range<usize>> {
    (0..parts).map(|part| part * n / parts..(part + 1) * n / parts).collect()
}

/// Divides rows into contiguous ranges with about equally many stored entries.
pub fn balanced_parts<T: Scalar>(a: &Csr<T, Host>, parts: usize) -> Vec<Range<usize>> {
    balanced((0..a.rows()).map(|row| a.row(row).0.len()), parts)
}

/// [`balanced_parts`] from the number of entries of each row, or of each group of rows.
pub(crate) fn balanced(counts: impl Iterator<Item = usize>, parts: usize) -> Vec<Range<usize>> {
    let mut before = vec![0];
    let mut entries = 0;
    for count in counts {
        entries += count;
        before.push(entries);
    }
    let rows = before.len() - 1;
    // No rank is left without rows if there are enough.
    let mut bounds = vec![0];
    for part in 1..=parts {
        let ideal = before.partition_point(|&count| count * parts < part * entries);
        let last = bounds[part - 1];
        let most = rows.saturating_sub(parts - part);
        bounds.push(if part == parts { rows } else { ideal.max(last + 1).min(most).max(last) });
    }
    bounds.windows(2).map(|bounds| bounds[0]..bounds[1]).collect()
}

/// The halo of some rows: the columns, ascending, that are not owned by the same rank.
pub(crate) fn halo_of<T: Scalar>(a: &Csr<T, Host>, rows: &Range<usize>) -> Vec<u32> {
    halo_beyond(a, rows, rows)
}

/// The number of rows in a task.
const TASK: usize = 1 << 13;

/// The columns of some rows that are not in `own`, ascending.
pub(crate) fn halo_beyond<T: Scalar>(a: &Csr<T, Host>, rows: &Range<usize>, own: &Range<usize>) -> Vec<u32> {
    let beyond = of_stretches(rows, TASK, |rows| {
        let columns = rows.flat_map(|row| a.row(row).0);
        columns.copied().filter(|&column| !own.contains(&(column as usize))).collect::<Vec<u32>>()
    });
    let mut halo = beyond.concat();
    halo.sort_unstable();
    halo.dedup();
    halo
}

/// The entries of some rows outside of a rank's own columns.
#[derive(Debug)]
pub(crate) struct Edge<T: Scalar> {
    /// The rows that have such entries, ascending.
    pub(crate) rows: Vec<u32>,
    /// The entries, with global column indices.
    pub(crate) a: Csr<T>,
}

impl<T: Scalar> Edge<T> {
    /// The rows of a matrix with the columns that are not in `own`.
    pub(crate) fn of(a: &Csr<T>, rows: &Range<usize>, own: &Range<usize>) -> Result<Self> {
        let beyond = |&column: &u32| !own.contains(&(column as usize));
        let full = of_stretches(rows, TASK, |rows| {
            rows.filter(|&row| a.row(row).0.iter().any(&beyond)).collect::<Vec<_>>()
        });
        let full = full.concat();
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &row in &full {
            let (columns, entries) = a.row(row);
            for (&column, &value) in columns.iter().zip(entries).filter(|(column, _)| beyond(column)) {
                indices.push(column);
                values.push(value);
            }
            offsets.push(values.len());
        }
        let a = Csr::from_parts(full.len(), a.columns(), offsets, indices, values)?;
        Ok(Self { rows: full.into_iter().map(|row| (row - rows.start) as u32).collect(), a })
    }
}

/// The entries of some rows in a rank's own columns, which are numbered from 0.
pub(crate) fn own_columns<T: Scalar>(a: &Csr<T>, rows: &Range<usize>, own: &Range<usize>) -> Result<Csr<T>> {
    let ours = |&column: &u32| own.contains(&(column as usize));
    let lengths = of_stretches(rows, TASK, |rows| {
        rows.map(|row| a.row(row).0.iter().filter(|&c| ours(c)).count()).collect::<Vec<_>>()
    });
    let mut offsets = Vec::with_capacity(rows.len() + 1);
    let mut end = 0_u64;
    offsets.push(end);
    for length in lengths.iter().flatten() {
        end += *length as u64;
        offsets.push(end);
    }
    drop(lengths);
    let (mut indices, mut values) = (Host.zeros(end as usize)?, Host.zeros(end as usize)?);
    let place = |row: usize| offsets[row] as usize;
    let chunks = row_chunks(place, rows.len());
    let parts = split_rows(&chunks, place, &mut indices).into_iter();
    let parts: Vec<_> = parts.zip(split_rows(&chunks, place, &mut values)).collect();
    parts.into_par_iter().for_each(|((range, indices), (_, values))| {
        let mut places = indices.iter_mut().zip(values);
        for row in range {
            let (columns, entries) = a.row(rows.start + row);
            for ((column, value), (to, number)) in
                columns.iter().zip(entries).filter(|(column, _)| ours(column)).zip(&mut places)
            {
                (*to, *number) = (column - own.start as u32, *value);
            }
        }
    });
    let offsets = if end <= NARROW_LIMIT as u64 {
        Offsets::Lower(offsets.into_iter().map(|offset| offset as u32).collect())
    } else {
        Offsets::Wide(offsets)
    };
    Ok(Csr::from_parts_unchecked(rows.len(), own.len(), offsets, indices, values))
}

/// Exchanges which of this rank's unknowns each other rank needs; `halo` (ascending) has those that this rank needs.
pub(crate) fn asked_for<B: VectorOps, C: Communicator<B>>(
    communicator: &C,
    halo: &[u32],
    parts: &[Range<usize>],
) -> Result<Vec<Vec<u32>>> {
    let of_owner = |rows: &Range<usize>| {
        let theirs = halo.iter().filter(|&&column| rows.contains(&(column as usize)));
        theirs.flat_map(|column| column.to_le_bytes()).collect()
    };
    let wanted = communicator.deliver(parts.iter().map(of_owner).collect())?;
    let numbers = |bytes: Vec<u8>| bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    Ok(wanted.into_iter().map(numbers).collect())
}

/// The number of entries of x that each rank needs from others.
pub fn halo_sizes<T: Scalar>(a: &Csr<T, Host>, rows: &[Range<usize>]) -> Vec<usize> {
    rows.iter().map(|rows| halo_of(a, rows).len()).collect()
}
