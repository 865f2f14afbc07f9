//! How rows are divided among ranks, and which entries of x each rank needs from the others.

use crate::backend::{Communicator, Host, VectorOps};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::of_stretches;
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
    in_order(beyond.concat())
}

/// The numbers ascending, each once.
pub(super) fn in_order(mut numbers: Vec<u32>) -> Vec<u32> {
    if !numbers.is_sorted() {
        numbers.sort_unstable();
    }
    numbers.dedup();
    numbers
}

/// Exchanges which of this rank's unknowns each other rank needs; `halo` (ascending) has those that this rank needs.
pub(crate) fn asked_for<B: VectorOps, C: Communicator<B>>(
    communicator: &C,
    halo: &[u32],
    parts: &[Range<usize>],
) -> Result<Vec<Vec<u32>>> {
    let place = |row: usize| halo.partition_point(|&column| (column as usize) < row);
    let of_owner = |rows: &Range<usize>| {
        let theirs = &halo[place(rows.start)..place(rows.end)];
        theirs.iter().flat_map(|column| column.to_le_bytes()).collect()
    };
    let wanted = communicator.deliver(parts.iter().map(of_owner).collect())?;
    let numbers = |bytes: Vec<u8>| bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    Ok(wanted.into_iter().map(numbers).collect())
}

/// The number of entries of x that each rank needs from others.
pub fn halo_sizes<T: Scalar>(a: &Csr<T, Host>, rows: &[Range<usize>]) -> Vec<usize> {
    rows.iter().map(|rows| halo_of(a, rows).len()).collect()
}
