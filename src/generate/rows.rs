//! Builds CSR row by row, in parallel, without intermediate triplets.

use crate::backend::{Backend, Host, NARROW_LIMIT, Offsets};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;

/// The number of rows in a task.
const CHUNK: usize = 1 << 12;

/// The entries of the current row.
#[derive(Default)]
pub(super) struct Row {
    entries: Vec<(u32, f64)>,
}

impl Row {
    /// Appends an entry, columns ascending.
    pub(super) fn push(&mut self, column: usize, value: f64) {
        debug_assert!(self.entries.last().is_none_or(|last| (last.0 as usize) < column));
        self.entries.push((column as u32, value));
    }

    /// Adds to an entry, in any order; [`Row::sum_duplicates`] must follow.
    pub(super) fn add(&mut self, column: usize, value: f64) {
        self.entries.push((column as u32, value));
    }

    /// Sorts by column and sums entries of one column, in the order in which they were added.
    pub(super) fn sum_duplicates(&mut self) {
        self.entries.sort_by_key(|entry| entry.0);
        self.entries.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }
}

/// Builds a matrix row by row: `fill(i, row)` writes row `i` to the empty `row`. Each row is computed twice (once to
/// count), so that only the finished matrix needs memory.
pub(super) fn by_rows(
    rows: usize,
    columns: usize,
    fill: impl Fn(usize, &mut Row) + Sync,
) -> Result<Csr<f64>> {
    check_size(rows, columns)?;
    let mut offsets = Host.zeros::<u64>(rows + 1)?;
    offsets[1..].par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, counts)| {
        let mut row = Row::default();
        for (i, count) in counts.iter_mut().enumerate() {
            row.entries.clear();
            fill(chunk * CHUNK + i, &mut row);
            *count = row.entries.len() as u64;
        }
    });
    for i in 0..rows {
        offsets[i + 1] += offsets[i];
    }
    let nonzeros = offsets[rows] as usize;
    let mut indices = Host.zeros::<u32>(nonzeros)?;
    let mut values = Host.zeros::<f64>(nonzeros)?;

    let mut tasks = Vec::with_capacity(rows.div_ceil(CHUNK));
    let (mut indices_rest, mut values_rest) = (&mut indices[..], &mut values[..]);
    for start in (0..rows).step_by(CHUNK) {
        let end = (start + CHUNK).min(rows);
        let len = (offsets[end] - offsets[start]) as usize;
        let (indices_here, values_here);
        (indices_here, indices_rest) = indices_rest.split_at_mut(len);
        (values_here, values_rest) = values_rest.split_at_mut(len);
        tasks.push((start..end, indices_here, values_here));
    }
    tasks.into_par_iter().for_each(|(range, indices, values)| {
        let mut row = Row::default();
        let mut places = indices.iter_mut().zip(values);
        for i in range {
            row.entries.clear();
            fill(i, &mut row);
            for &(column, value) in &row.entries {
                if let Some((index, slot)) = places.next() {
                    (*index, *slot) = (column, value);
                }
            }
        }
    });
    Ok(Csr::from_parts_unchecked(rows, columns, narrow(offsets)?, indices, values))
}

/// Builds a matrix from sorted, distinct keys `row << 32 | column` and their values.
pub(super) fn by_keys(rows: usize, columns: usize, keys: &[u64], values: Vec<f64>) -> Result<Csr<f64>> {
    let mut offsets = Host.zeros::<u64>(rows + 1)?;
    for &key in keys {
        offsets[(key >> 32) as usize + 1] += 1;
    }
    for i in 0..rows {
        offsets[i + 1] += offsets[i];
    }
    let mut indices = Host.zeros::<u32>(keys.len())?;
    indices.par_iter_mut().zip(keys).for_each(|(index, &key)| *index = key as u32);
    Ok(Csr::from_parts_unchecked(rows, columns, narrow(offsets)?, indices, values))
}

/// Builds a matrix from entries in any order, each a key `row << 32 | column` and a value. Entries at the same position
/// are added up in their order.
pub(super) fn by_entries(rows: usize, columns: usize, mut entries: Vec<(u64, f64)>) -> Result<Csr<f64>> {
    check_size(rows, columns)?;
    rayon::slice::ParallelSliceMut::par_sort_by_key(&mut entries[..], |entry| entry.0);
    entries.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    let (keys, values): (Vec<u64>, Vec<f64>) = entries.into_iter().unzip();
    by_keys(rows, columns, &keys, values)
}

/// Converts row offsets to 32 bits if they fit.
pub(super) fn narrow(offsets: Vec<u64>) -> Result<Offsets<Host>> {
    Ok(if offsets.last().is_none_or(|&last| last <= NARROW_LIMIT as u64) {
        let mut narrow = Host.zeros::<u32>(offsets.len())?;
        narrow.par_iter_mut().zip(&offsets).for_each(|(narrow, &offset)| *narrow = offset as u32);
        Offsets::Lower(narrow)
    } else {
        Offsets::Wide(offsets)
    })
}

/// The product of grid sizes, or an error if it does not fit 32-bit indices.
pub(super) fn unknowns(factors: &[usize]) -> Result<usize> {
    let product = factors.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    match product {
        Some(n) if n <= 1 << 32 => Ok(n),
        _ => {
            let sizes: Vec<String> = factors.iter().map(usize::to_string).collect();
            Err(Error::InvalidArgument(format!(
                "{} unknowns are more than 2^32: choose a smaller size",
                sizes.join(" x ")
            )))
        }
    }
}

fn check_size(rows: usize, columns: usize) -> Result<()> {
    unknowns(&[rows])?;
    unknowns(&[columns])?;
    Ok(())
}
