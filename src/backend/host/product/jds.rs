//! Jagged diagonals: each task takes consecutive positions and walks the diagonals that reach them, with one running
//! sum a row; sums go to y through the row order.

use super::shared::SharedRows;
use super::{Scale, prefetch, transposed};
use crate::backend::{Host, JdsParts};
use crate::scalar::{Offset, Scalar, Widen};
use rayon::prelude::*;
use std::ops::Range;

/// Positions walked together: their sums stay in the first cache beside the entries and x.
const BLOCK: usize = 1 << 8;

/// Blocks that one task takes at least.
const TASK: usize = 1 << 4;

/// For each diagonal that reaches the positions: where its entries for them are.
fn spans<O: Offset>(offsets: &[O], positions: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    offsets.windows(2).map_while(move |ends| {
        let (start, end) = (ends[0].to_usize(), ends[1].to_usize());
        (start + positions.start < end).then(|| start + positions.start..end.min(start + positions.end))
    })
}

/// y = alpha A x + beta y.
pub(super) fn product<O: Offset, V: Widen<T>, T: Scalar>(
    a: JdsParts<'_, V, Host>,
    offsets: &[O],
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let rows = y.len();
    let y = SharedRows::new(y, a.order);
    let run = |task: usize| {
        let positions = task * BLOCK..((task + 1) * BLOCK).min(rows);
        let mut sums = [T::zero(); BLOCK];
        let mut spans = spans(offsets, positions.clone()).peekable();
        while let Some(span) = spans.next() {
            if let Some(next) = spans.peek() {
                prefetch::entries(a.indices, a.values, next.start, next.end);
            }
            let entries = a.indices[span.clone()].iter().zip(&a.values[span]);
            for (sum, (&j, &v)) in sums.iter_mut().zip(entries) {
                *sum += value(v) * x[j as usize];
            }
        }
        for (position, sum) in positions.zip(sums) {
            // SAFETY: each position belongs to one task.
            unsafe { y.update(position, |_, old| scale.finish(sum, old)) };
        }
    };
    let tasks = rows.div_ceil(BLOCK);
    if tasks <= 1 {
        (0..tasks).for_each(run);
    } else {
        (0..tasks).into_par_iter().with_min_len(TASK).for_each(run);
    }
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<O: Offset, V: Widen<T>, T: Scalar>(
    a: JdsParts<'_, V, Host>,
    offsets: &[O],
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let blocks = transposed::blocks(a.values.len(), a.columns);
    let order = a.order.as_slice();
    let block = |b| transposed::block(a.rows, blocks, b);
    let range = |b| transposed::hull(spans(offsets, block(b)).flat_map(|s| a.indices[s].iter().copied()));
    let scatter = |b, sums: &mut [T], base| {
        let block = block(b);
        for first in block.clone().step_by(BLOCK) {
            let positions = first..(first + BLOCK).min(block.end);
            for span in spans(offsets, positions.clone()) {
                let entries = a.indices[span.clone()].iter().zip(&a.values[span]);
                for (&row, (&j, &v)) in order[positions.clone()].iter().zip(entries) {
                    sums[j as usize - base] += value(v) * x[row as usize];
                }
            }
        }
    };
    transposed::collect(blocks, range, scatter, scale, y);
}
