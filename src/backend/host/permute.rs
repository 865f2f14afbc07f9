//! P A P^T on the CPU, with several threads and one pass over the nonzeros.

use super::product::prefetch;
use crate::backend::{CsrParts, Host};
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Element, Offset};

/// Rows of at most this many entries are sorted by insertion.
const INSERTION_UP_TO: usize = 32;

pub(super) fn gather_rows<V: Element, O: Offset>(
    a: CsrParts<'_, V, Host>,
    offsets: &[O],
    (new_to_old, old_to_new): (&[u32], &[u32]),
    new_offsets: &[O],
    indices: &mut [u32],
    values: &mut [V],
) {
    let place = |row: usize| new_offsets[row].to_usize();
    let chunks = row_chunks(place, a.rows);
    let parts = split_rows(&chunks, place, indices)
        .into_iter()
        .zip(split_rows(&chunks, place, values))
        .map(|((rows, indices), (_, values))| (rows, indices, values))
        .collect::<Vec<_>>();
    parts.into_par_iter().for_each(|(rows, mut indices, mut values)| {
        let mut scratch = Vec::new();
        let rows = &new_to_old[rows];
        for (k, old) in rows.iter().enumerate() {
            ask_ahead(a, offsets, rows, k);
            let old = *old as usize;
            let range = offsets[old].to_usize()..offsets[old + 1].to_usize();
            let (row_indices, rest) = indices.split_at_mut(range.len());
            indices = rest;
            let (row_values, rest) = values.split_at_mut(range.len());
            values = rest;
            let from = a.indices[range.clone()].iter().zip(&a.values[range]);
            let from = from.map(|(&column, &value)| (old_to_new[column as usize], value));
            if row_indices.len() <= INSERTION_UP_TO {
                insert_sorted(from, row_indices, row_values);
            } else {
                scratch.clear();
                scratch.extend(from);
                by_column(&mut scratch);
                for ((index, value), &(column, v)) in row_indices.iter_mut().zip(row_values).zip(&scratch) {
                    (*index, *value) = (column, v);
                }
            }
        }
    });
}

/// Entries are prefetched this many rows before they are used.
const AHEAD: usize = 12;

/// Prefetches the entries of a later row, and the row start of an even later one.
#[inline(always)]
fn ask_ahead<V: Element, O: Offset>(a: CsrParts<'_, V, Host>, offsets: &[O], rows: &[u32], k: usize) {
    if let Some(&far) = rows.get(k + 2 * AHEAD) {
        prefetch::line(offsets, far as usize);
    }
    if let Some(&near) = rows.get(k + AHEAD) {
        let (start, end) = (offsets[near as usize].to_usize(), offsets[near as usize + 1].to_usize());
        prefetch::entries(a.indices, a.values, start, end);
    }
}

/// Sorts a row's entries, whose columns are distinct. All callers share this function, because a sort takes long to
/// compile.
pub(crate) fn by_column<V: Element>(entries: &mut [(u32, V)]) {
    entries.sort_unstable_by_key(|&(column, _)| column);
}

fn insert_sorted<V: Element>(entries: impl Iterator<Item = (u32, V)>, indices: &mut [u32], values: &mut [V]) {
    for (k, (column, value)) in entries.enumerate() {
        let mut hole = k;
        while hole > 0 && indices[hole - 1] > column {
            indices[hole] = indices[hole - 1];
            values[hole] = values[hole - 1];
            hole -= 1;
        }
        indices[hole] = column;
        values[hole] = value;
    }
}
