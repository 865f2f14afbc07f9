//! Cuts the targets of conversions into blocks of rows, or of positions within diagonals. Each task writes its own
//! block, so no unsafe code is needed.

use super::Host;
use crate::backend::host::memory::PARALLEL_FROM;
use crate::backend::{OffsetsRef, with_offsets};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset};

/// The number of rows in a task.
pub(super) const BLOCK: usize = 1 << 11;

/// Returns for each block of [`BLOCK`] rows its first row and its entries.
pub(super) fn split_rows<'a, O: Offset, T>(offsets: &[O], mut data: &'a mut [T]) -> Vec<Piece<'a, T>> {
    let rows = offsets.len() - 1;
    let mut pieces = Vec::with_capacity(rows.div_ceil(BLOCK));
    for first in (0..rows).step_by(BLOCK) {
        let last = (first + BLOCK).min(rows);
        let (piece, rest) = data.split_at_mut(offsets[last].to_usize() - offsets[first].to_usize());
        pieces.push((first, piece));
        data = rest;
    }
    pieces
}

/// Cuts data that are stored diagonal by diagonal into blocks of [`BLOCK`] positions: `pieces[block][k]` belongs to
/// diagonal k.
pub(super) fn split_diagonals<T>(
    mut data: &mut [T],
    lengths: impl Iterator<Item = usize>,
) -> Vec<Vec<&mut [T]>> {
    let mut pieces: Vec<Vec<&mut [T]>> = Vec::new();
    for length in lengths {
        let (diagonal, rest) = data.split_at_mut(length);
        data = rest;
        for (block, piece) in diagonal.chunks_mut(BLOCK).enumerate() {
            if block == pieces.len() {
                pieces.push(Vec::new());
            }
            pieces[block].push(piece);
        }
    }
    pieces
}

/// The first row of a block, and its entries.
pub(super) type Piece<'a, T> = (usize, &'a mut [T]);

/// The parts of all diagonals that belong to a block.
pub(super) type Pieces<'a, T> = Vec<&'a mut [T]>;

/// Writes `entry(position, k)` wherever it is not `None`.
pub(super) fn fill_diagonals<V: Element>(
    blocks: Vec<(Pieces<'_, u32>, Pieces<'_, V>)>,
    entry: impl Fn(usize, usize) -> Option<(u32, V)> + Sync + Send,
) {
    blocks.into_par_iter().enumerate().for_each(|(block, (columns, numbers))| {
        for (k, (columns, numbers)) in columns.into_iter().zip(numbers).enumerate() {
            for (p, (column, number)) in columns.iter_mut().zip(numbers).enumerate() {
                if let Some(entry) = entry(block * BLOCK + p, k) {
                    (*column, *number) = entry;
                }
            }
        }
    });
}

/// Calls `fill(row, columns of the row, values of the row)` for every row of the target.
pub(super) fn fill_rows<V: Element>(
    offsets: OffsetsRef<'_, Host>,
    indices: &mut [u32],
    values: &mut [V],
    fill: impl Fn(usize, &mut [u32], &mut [V]) + Sync + Send,
) {
    let parallel = values.len() >= PARALLEL_FROM;
    with_offsets!(offsets, offsets => {
        let rows = offsets.len() - 1;
        let pieces = split_rows(offsets, indices).into_iter().zip(split_rows(offsets, values));
        let task = |((first, columns), (_, numbers)): (Piece<'_, u32>, Piece<'_, V>)| {
            let base = offsets[first].to_usize();
            for row in first..(first + BLOCK).min(rows) {
                let range = offsets[row].to_usize() - base..offsets[row + 1].to_usize() - base;
                fill(row, &mut columns[range.clone()], &mut numbers[range]);
            }
        };
        if parallel {
            pieces.collect::<Vec<_>>().into_par_iter().for_each(task);
        } else {
            pieces.for_each(task);
        }
    });
}

/// Fills every row of the target with the entries at `source(row, k)`.
pub(super) fn gather_rows<V: Element>(
    offsets: OffsetsRef<'_, Host>,
    indices: &mut [u32],
    values: &mut [V],
    from: (&[u32], &[V]),
    source: impl Fn(usize, usize) -> usize + Sync + Send,
) {
    fill_rows(offsets, indices, values, |row, columns, numbers| {
        for (k, (column, number)) in columns.iter_mut().zip(numbers).enumerate() {
            let source = source(row, k);
            (*column, *number) = (from.0[source], from.1[source]);
        }
    });
}
