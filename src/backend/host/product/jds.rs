//! Products of jagged diagonals. Each task takes consecutive positions, in strips of a few, and goes through the
//! diagonals that reach them with one sum for each row. The row order says where sums are written in y.

use super::shared::SharedRows;
use super::{Scale, prefetch, transposed};
use crate::backend::{Host, JdsParts};
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Promote, Scalar};
use std::ops::Range;

/// The number of positions in a strip. Their sums stay in registers.
const STRIP: usize = 16;

/// The number of positions in a task.
const TASK: usize = 1 << 12;

/// Entries are prefetched this many positions ahead, in every diagonal.
const AHEAD: usize = 64;

/// The number of positions that the transposed product processes together. Their part of x stays in the cache.
const BLOCK: usize = 1 << 8;

/// Returns, for each diagonal that reaches these positions, the range of its entries for them.
fn spans<O: Offset>(offsets: &[O], positions: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    offsets.windows(2).map_while(move |ends| {
        let (start, end) = (ends[0].to_usize(), ends[1].to_usize());
        (start + positions.start < end).then(|| start + positions.start..end.min(start + positions.end))
    })
}

/// y = alpha A x + beta y.
pub(super) fn product<O: Offset, V: Promote<T>, T: Scalar>(
    a: JdsParts<'_, V, Host>,
    offsets: &[O],
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let rows = y.len();
    let y = SharedRows::new(y, a.order);
    let strip = |positions: Range<usize>| {
        let mut sums = [T::zero(); STRIP];
        for span in spans(offsets, positions.clone()) {
            prefetch::entries(a.indices, a.values, span.start + AHEAD, span.end + AHEAD);
            let (indices, values) = (&a.indices[span.clone()], &a.values[span]);
            let mut add = |lane: usize| sums[lane] += value(values[lane]) * x[indices[lane] as usize];
            // Whole strips have their own loop, with a constant length.
            if values.len() == STRIP {
                (0..STRIP).for_each(add);
            } else {
                (0..values.len()).for_each(&mut add);
            }
        }
        for (lane, position) in positions.enumerate() {
            let sum = sums[lane];
            // SAFETY: each position belongs to one strip, and each strip to one task.
            unsafe { y.update(position, |_, old| scale.finish(sum, old)) };
        }
    };
    (0..rows.div_ceil(TASK)).into_par_iter().for_each(|task| {
        let end = ((task + 1) * TASK).min(rows);
        (task * TASK..end).step_by(STRIP).for_each(|first| strip(first..(first + STRIP).min(end)));
    });
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<O: Offset, V: Promote<T>, T: Scalar>(
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
    transposed::collect(blocks, &range, &scatter, scale, y);
}
