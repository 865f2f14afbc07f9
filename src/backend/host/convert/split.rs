//! Divides the rows of a rank into the columns that it owns and the others.

use super::blocks::fill_rows;
use crate::backend::host::memory::PARALLEL_FROM;
use crate::backend::{CsrParts, CsrPattern, Host, Offsets, OffsetsRef, with_offsets};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset};
use std::ops::Range;

/// Rows of one task.
const TASK: usize = 1 << 13;

pub(super) fn entries_beyond(
    a: CsrPattern<'_, Host>,
    rows: Range<usize>,
    own: Range<usize>,
    beyond: &mut [u32],
) {
    with_offsets!(a.offsets, offsets => {
        let tasks = beyond.par_chunks_mut(TASK).enumerate();
        tasks.for_each(|(task, beyond)| {
            for (row, count) in (rows.start + task * TASK..).zip(beyond) {
                let columns = &a.indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
                *count = columns.iter().filter(|&&column| !own.contains(&(column as usize))).count() as u32;
            }
        });
    });
}

pub(super) fn split_columns<V: Element>(
    a: CsrParts<'_, V, Host>,
    rows: Range<usize>,
    own: Range<usize>,
    before: &[u64],
    (offsets, indices, values): (&mut Offsets<Host>, &mut [u32], &mut [V]),
    (columns, numbers): (&mut [u32], &mut [V]),
) {
    with_offsets!(a.offsets, from => {
        let start = from[rows.start].to_usize() as u64;
        let own_before = |row: usize| from[rows.start + row].to_usize() as u64 - start - before[row];
        match offsets {
            Offsets::Lower(offsets) => fill_offsets(offsets, own_before),
            Offsets::Wide(offsets) => fill_offsets(offsets, own_before),
        }
        let line = |row: usize| {
            let entries = from[rows.start + row].to_usize()..from[rows.start + row + 1].to_usize();
            a.indices[entries.clone()].iter().zip(&a.values[entries])
        };
        let is_own = |column: u32| own.contains(&(column as usize));
        let first = own.start as u32;
        fill_rows(offsets.as_ref(), indices, values, |row, indices, values| {
            let ours = line(row).filter(|&(&column, _)| is_own(column));
            for ((&column, &value), (to, number)) in ours.zip(indices.iter_mut().zip(values)) {
                (*to, *number) = (column - first, value);
            }
        });
        if columns.is_empty() {
            return;
        }
        fill_rows(OffsetsRef::Wide(before), columns, numbers, |row, columns, numbers| {
            if columns.is_empty() {
                return;
            }
            let others = line(row).filter(|&(&column, _)| !is_own(column));
            for ((&column, &value), (to, number)) in others.zip(columns.iter_mut().zip(numbers)) {
                (*to, *number) = (column, value);
            }
        });
    });
}

fn fill_offsets<I: Offset>(offsets: &mut [I], own_before: impl Fn(usize) -> u64 + Sync) {
    let each = offsets.par_iter_mut().with_min_len(PARALLEL_FROM).enumerate();
    each.for_each(|(row, offset)| *offset = I::from_usize(own_before(row) as usize));
}
