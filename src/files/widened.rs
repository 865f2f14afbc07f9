//! Converts block rows and diagonals to rows of entries.

use super::lines::{Lines, end};
use crate::backend::{Backend, Host, Offsets, OffsetsRef, offsets_of};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

/// Rows of one task for a matrix of diagonals: few enough that its data stays in the cache.
const ROWS: usize = 1 << 12;

fn at(offsets: OffsetsRef<'_, Host>, line: usize) -> usize {
    match offsets {
        OffsetsRef::Lower(offsets) => offsets[line] as usize,
        OffsetsRef::Wide(offsets) => offsets[line] as usize,
    }
}

/// The entries of blocks of `high` x `wide`. `place` returns the index of a value from the index of its block and its
/// row and column in the block. Within a row the order is that of the blocks.
pub(super) fn out_of_blocks<T: Scalar>(
    blocks: Lines<T>,
    [high, wide]: [usize; 2],
    place: impl Fn(usize, usize, usize) -> usize + Sync,
) -> Result<Lines<T>> {
    let Lines { offsets, indices: of_blocks, values: given, ascending } = blocks;
    let blocks = offsets.as_ref();
    let (rows, total) = ((blocks.len() - 1) * high, end(blocks) * high * wide);
    let start = |row: usize| {
        let (line, r) = (row / high, row % high);
        let first = at(blocks, line);
        // There is no line after the last row.
        let here = if r == 0 { 0 } else { at(blocks, line + 1) - first };
        (first * high + r * here) * wide
    };
    fn fill<O: Offset>(offsets: &mut [O], start: impl Fn(usize) -> usize + Sync) {
        offsets.par_iter_mut().enumerate().with_min_len(ROWS).for_each(|(row, offset)| {
            *offset = O::from_usize(start(row));
        });
    }
    let mut of_rows = Offsets::zeros(&Host, rows + 1, total)?;
    match &mut of_rows {
        Offsets::Lower(offsets) => fill(offsets, start),
        Offsets::Wide(offsets) => fill(offsets, start),
    }
    let (mut indices, mut values) = (Host.zeros::<u32>(total)?, Host.zeros::<T>(total)?);
    let chunks = row_chunks(start, rows);
    let parts = split_rows(&chunks, start, &mut indices).into_par_iter();
    parts.zip(split_rows(&chunks, start, &mut values)).for_each(|((rows, indices), (_, values))| {
        let mut to = indices.iter_mut().zip(values);
        for row in rows {
            let (line, r) = (row / high, row % high);
            for block in at(blocks, line)..at(blocks, line + 1) {
                for (c, (index, value)) in (0..wide).zip(to.by_ref()) {
                    *index = (of_blocks[block] as usize * wide + c) as u32;
                    *value = given[place(block, r, c)];
                }
            }
        }
    });
    Ok(Lines { offsets: of_rows, indices, values, ascending })
}

/// The nonzero entries of diagonals. Entry j of a diagonal is in column j, if there is such a column, and in row j
/// minus the distance of the diagonal.
pub(super) fn diagonals<T: Scalar>(
    (rows, columns): (u64, u64),
    distances: &[i64],
    length: u64,
    value: impl Fn(usize, usize) -> T + Sync,
) -> Result<Lines<T>> {
    let length = length.min(columns) as i64;
    // Diagonals by ascending distance, so that each row is sorted by column; equal distances keep their order.
    let mut order: Vec<usize> = (0..distances.len()).collect();
    order.sort_by_key(|&d| distances[d]);
    let ascending = order.windows(2).all(|w| distances[w[0]] < distances[w[1]]);
    // The rows of a task in which a diagonal has entries.
    let within = |task: &Range<usize>, d: usize| {
        let row = |column: i64| column.saturating_sub(distances[d]).clamp(task.start as i64, task.end as i64);
        (row(0) as usize..row(length) as usize, distances[d])
    };
    let rows = rows as usize;
    let tasks: Vec<Range<usize>> =
        (0..rows.div_ceil(ROWS)).map(|k| k * ROWS..((k + 1) * ROWS).min(rows)).collect();
    // There is one more length than rows; the scan puts the total there.
    let mut lengths = Host.zeros::<u32>(rows + 1)?;
    tasks.par_iter().zip(lengths[..rows].par_chunks_mut(ROWS)).for_each(|(task, lengths)| {
        for &d in &order {
            let (own, distance) = within(task, d);
            for row in own {
                let entry = value(d, (row as i64 + distance) as usize);
                lengths[row - task.start] += u32::from(!entry.is_zero());
            }
        }
    });
    let (offsets, total) = offsets_of(&Host, &lengths)?;
    drop(lengths);
    let (mut indices, mut values) = (Host.zeros::<u32>(total)?, Host.zeros::<T>(total)?);
    let start = |row: usize| at(offsets.as_ref(), row);
    let parts = split_rows(&tasks, start, &mut indices).into_par_iter();
    parts.zip(split_rows(&tasks, start, &mut values)).for_each(|((task, indices), (_, values))| {
        let first = start(task.start);
        let mut next: Vec<usize> = task.clone().map(|row| start(row) - first).collect();
        for &d in &order {
            let (own, distance) = within(&task, d);
            for row in own {
                let column = (row as i64 + distance) as usize;
                let entry = value(d, column);
                if !entry.is_zero() {
                    let place = &mut next[row - task.start];
                    (indices[*place], values[*place]) = (column as u32, entry);
                    *place += 1;
                }
            }
        }
    });
    Ok(Lines { offsets, indices, values, ascending })
}
