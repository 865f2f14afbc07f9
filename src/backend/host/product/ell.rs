//! Products of ELL. Each task takes consecutive rows, in strips of a few rows, and goes through the columns of the
//! padded rectangle with one sum for each row.

use super::{Scale, prefetch, transposed};
use crate::backend::{EllParts, Host};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Promote, Scalar};

/// The number of rows in a strip: in every column, two whole cache lines of values and one of indices.
const STRIP: usize = 16;

/// The number of rows in a task.
const TASK: usize = 1 << 12;

/// Entries are prefetched this many rows ahead, in every column.
const AHEAD: usize = 64;

/// The number of rows that the transposed product processes together. Their part of x stays in the cache.
const BLOCK: usize = 1 << 8;

/// y = alpha A x + beta y.
pub(super) fn product<V: Promote<T>, T: Scalar>(
    a: EllParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    y.par_chunks_mut(TASK).enumerate().for_each(|(task, y)| {
        for (strip, y) in y.chunks_mut(STRIP).enumerate() {
            let sums = strip_sums(a, task * TASK + strip * STRIP, y.len(), value, x);
            for (lane, y) in y.iter_mut().enumerate() {
                *y = scale.finish(sums[lane], *y);
            }
        }
    });
}

/// Returns the sums of the `count` rows from `first` on, at most [`STRIP`].
#[inline(always)]
fn strip_sums<V: Element, T: Scalar>(
    a: EllParts<'_, V, Host>,
    first: usize,
    count: usize,
    value: impl Fn(V) -> T,
    x: &[T],
) -> [T; STRIP] {
    let lengths = &a.lengths[first..first + count];
    let (low, high) = bounds(lengths);
    let mut sums = [T::zero(); STRIP];
    for k in 0..high {
        let start = k * a.rows + first;
        prefetch::entries(a.indices, a.values, start + AHEAD, start + AHEAD + STRIP);
        let (indices, values) = (&a.indices[start..start + count], &a.values[start..start + count]);
        let mut add = |lane: usize| sums[lane] += value(values[lane]) * x[indices[lane] as usize];
        // Whole strips have their own loop, with a constant length and no bounds checks.
        if k < low && count == STRIP {
            (0..STRIP).for_each(add);
        } else {
            (0..count).filter(|&lane| k < lengths[lane] as usize).for_each(&mut add);
        }
    }
    sums
}

/// Returns the smallest and the largest length.
#[inline]
pub(super) fn bounds(lengths: &[u32]) -> (usize, usize) {
    let (low, high) = lengths.iter().fold((u32::MAX, 0), |(low, high), &n| (low.min(n), high.max(n)));
    (low as usize, high as usize)
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<V: Promote<T>, T: Scalar>(
    a: EllParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let blocks = transposed::blocks(a.values.len(), a.columns);
    let range = |b| {
        let rows = transposed::block(a.rows, blocks, b).filter(|&row| a.lengths[row] > 0);
        transposed::hull(
            rows.flat_map(|row| [row, row + (a.lengths[row] as usize - 1) * a.rows]).map(|e| a.indices[e]),
        )
    };
    let scatter = |b, sums: &mut [T], base| {
        let block = transposed::block(a.rows, blocks, b);
        for first in block.clone().step_by(BLOCK) {
            let rows = first..(first + BLOCK).min(block.end);
            let (_, width) = bounds(&a.lengths[rows.clone()]);
            for k in 0..width {
                for row in rows.clone().filter(|&row| k < a.lengths[row] as usize) {
                    let e = k * a.rows + row;
                    sums[a.indices[e] as usize - base] += value(a.values[e]) * x[row];
                }
            }
        }
    };
    transposed::collect(blocks, &range, &scatter, scale, y);
}
