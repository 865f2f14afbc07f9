//! The transpose of a CSR matrix. Each task has a range of columns, whose entries are contiguous in the target, and
//! goes through all rows. As columns ascend, the entries of a row in the range are contiguous too. The result does not
//! depend on the number of tasks.

use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset};
use std::ops::Range;

/// A matrix with fewer entries is transposed by one task.
const PARALLEL_FROM: usize = 1 << 15;

/// The maximum number of tasks. It is small because each task reads the start and end of every row.
const MOST_TASKS: usize = 16;

/// Returns the number of tasks for this many entries.
fn tasks(entries: usize) -> usize {
    if entries < PARALLEL_FROM { 1 } else { rayon::current_num_threads().min(MOST_TASKS) }
}

/// Writes the transpose of `from` into the arrays of `to`, whose offsets are known.
pub(super) fn fill<O: Offset, P: Offset, V: Element>(
    from: (&[O], &[u32], &[V]),
    to: (&[P], &mut [u32], &mut [V]),
) {
    let (offsets, mut indices, mut values) = to;
    let mut pieces = Vec::new();
    for columns in column_ranges(offsets, tasks(from.1.len())) {
        let length = offsets[columns.end].to_usize() - offsets[columns.start].to_usize();
        let (mine, rest) = indices.split_at_mut(length);
        indices = rest;
        let (numbers, rest) = values.split_at_mut(length);
        values = rest;
        pieces.push((columns, mine, numbers));
    }
    pieces.into_par_iter().for_each(|(columns, indices, values)| {
        fill_columns(from, &offsets[columns.start..=columns.end], columns, indices, values);
    });
}

/// Returns consecutive ranges of columns with about the same number of entries.
fn column_ranges<P: Offset>(offsets: &[P], tasks: usize) -> Vec<Range<usize>> {
    let columns = offsets.len() - 1;
    let entries = offsets[columns].to_usize();
    let mut ends: Vec<usize> = (1..tasks)
        .map(|t| offsets.partition_point(|o| o.to_usize() < entries / tasks * t).min(columns))
        .collect();
    ends.push(columns);
    let mut start = 0;
    ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect()
}

fn fill_columns<O: Offset, P: Offset, V: Element>(
    (offsets, columns, numbers): (&[O], &[u32], &[V]),
    starts: &[P],
    range: Range<usize>,
    indices: &mut [u32],
    values: &mut [V],
) {
    let base = starts[0].to_usize();
    let mut next: Vec<usize> = starts[..range.len()].iter().map(|s| s.to_usize() - base).collect();
    let all = range.len() + 1 == starts.len() && range.start == 0 && indices.len() == columns.len();
    for (row, ends) in offsets.windows(2).enumerate() {
        let (start, end) = (ends[0].to_usize(), ends[1].to_usize());
        let line = &columns[start..end];
        let skip = if all { 0 } else { line.partition_point(|&j| (j as usize) < range.start) };
        for (&j, &number) in both(&line[skip..], &numbers[start + skip..end]) {
            if j as usize >= range.end {
                break;
            }
            let place = &mut next[j as usize - range.start];
            indices[*place] = row as u32;
            values[*place] = number;
            *place += 1;
        }
    }
}
