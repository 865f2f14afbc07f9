//! ELL: each task takes consecutive rows and walks the columns of the padded rectangle, so that it reads each of them
//! forward, with one running sum a row.

use super::{Scale, prefetch, transposed};
use crate::backend::{EllParts, Host};
use crate::scalar::{Scalar, Widen};
use rayon::prelude::*;

/// Rows walked together: their sums stay in the first cache beside the entries and x.
const BLOCK: usize = 1 << 8;

/// Blocks that one task takes at least.
const TASK: usize = 1 << 4;

/// y = alpha A x + beta y.
pub(super) fn product<V: Widen<T>, T: Scalar>(
    a: EllParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let run = |(task, y): (usize, &mut [T])| {
        let first = task * BLOCK;
        let lengths = &a.lengths[first..first + y.len()];
        let (low, high) = bounds(lengths);
        let mut sums = [T::zero(); BLOCK];
        for k in 0..high {
            let start = k * a.rows + first;
            let indices = &a.indices[start..start + y.len()];
            let entries = indices.iter().zip(&a.values[start..start + y.len()]);
            // The next column's entries of the same rows.
            prefetch::entries(a.indices, a.values, start + a.rows, start + a.rows + y.len());
            if k < low {
                for (sum, (&j, &v)) in sums.iter_mut().zip(entries) {
                    *sum += value(v) * x[j as usize];
                }
            } else {
                for ((sum, &length), (&j, &v)) in sums.iter_mut().zip(lengths).zip(entries) {
                    if k < length as usize {
                        *sum += value(v) * x[j as usize];
                    }
                }
            }
        }
        for (y, sum) in y.iter_mut().zip(sums) {
            *y = scale.finish(sum, *y);
        }
    };
    if y.len() <= BLOCK {
        run((0, y));
    } else {
        y.par_chunks_mut(BLOCK).enumerate().with_min_len(TASK).for_each(run);
    }
}

/// The least and the greatest length.
pub(super) fn bounds(lengths: &[u32]) -> (usize, usize) {
    let (low, high) = lengths.iter().fold((u32::MAX, 0), |(low, high), &n| (low.min(n), high.max(n)));
    (low as usize, high as usize)
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<V: Widen<T>, T: Scalar>(
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
        // Tiles of rows, as the plain product has them: the tile's part of x stays in the cache.
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
    transposed::collect(blocks, range, scatter, scale, y);
}
