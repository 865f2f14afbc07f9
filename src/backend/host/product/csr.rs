//! CSR: each task takes consecutive rows with about the same number of nonzeros.

use super::{Scale, transposed};
use crate::scalar::{Offset, Scalar, Widen};
use rayon::prelude::*;
use std::ops::Range;

/// Nonzeros plus rows that one task takes. Fixed, so that fused sums do not depend on the number of threads.
const TASK: usize = 1 << 15;

/// Splits the rows into ranges of about [`TASK`] nonzeros plus rows each: a function of the matrix alone.
fn row_ranges<O: Offset>(offsets: &[O]) -> Vec<Range<usize>> {
    let rows = offsets.len() - 1;
    let work = |row: usize| offsets[row].to_usize() + row;
    let tasks = work(rows).div_ceil(TASK).max(1);
    let mut start = 0;
    let mut ranges = Vec::with_capacity(tasks);
    for task in 1..=tasks {
        let target = task * TASK;
        let mut end = start;
        let mut high = rows;
        while end < high {
            let middle = end + (high - end) / 2;
            if work(middle + 1) <= target { end = middle + 1 } else { high = middle }
        }
        // A row longer than a task goes to the task in which it starts.
        let end = if task == tasks { rows } else { end.max((start + 1).min(rows)) };
        ranges.push(start..end);
        start = end;
    }
    ranges
}

#[inline(always)]
fn row_sum<V: Copy, T: Scalar>(indices: &[u32], values: &[V], value: impl Fn(V) -> T, x: &[T]) -> T {
    indices.iter().zip(values).fold(T::default(), |sum, (&j, &v)| sum + value(v) * x[j as usize])
}

/// y = alpha A x + beta y.
pub(super) fn product<O: Offset, V: Widen<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    for_ranges(offsets, y, |rows, y| {
        for (row, y) in rows.zip(y) {
            let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
            *y = scale.finish(row_sum(&indices[range.clone()], &values[range], value, x), *y);
        }
    });
}

/// y = A x; returns x.y, conjugating x.
pub(super) fn product_dot<O: Offset, V: Widen<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    x: &[T],
    y: &mut [T],
) -> T {
    for_ranges(offsets, y, |rows, y| {
        let mut dot = T::default();
        for (row, y) in rows.zip(y) {
            let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
            *y = row_sum(&indices[range.clone()], &values[range], V::widen, x);
            dot += x[row].conj() * *y;
        }
        dot
    })
    .into_iter()
    .sum()
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<O: Offset, V: Widen<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let blocks = transposed::blocks(values.len(), y.len());
    // Rows whose entries start in the block's share of the nonzeros.
    let rows = |b| {
        let share = transposed::block(values.len(), blocks, b);
        let at = |e: usize| offsets[..x.len()].partition_point(|o| o.to_usize() < e);
        at(share.start)..if b + 1 == blocks { x.len() } else { at(share.end) }
    };
    let range = |b| {
        let ends = rows(b).map(|row| (offsets[row].to_usize(), offsets[row + 1].to_usize()));
        transposed::hull(ends.filter(|(s, e)| s < e).flat_map(|(s, e)| [indices[s], indices[e - 1]]))
    };
    let scatter = |b, sums: &mut [T], base| {
        for row in rows(b) {
            let line = offsets[row].to_usize()..offsets[row + 1].to_usize();
            for (&j, &v) in indices[line.clone()].iter().zip(&values[line]) {
                sums[j as usize - base] += value(v) * x[row];
            }
        }
    };
    transposed::collect(blocks, range, scatter, scale, y);
}

fn for_ranges<O: Offset, T: Scalar, R: Send>(
    offsets: &[O],
    mut y: &mut [T],
    body: impl Fn(Range<usize>, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let mut tasks = Vec::new();
    for rows in row_ranges(offsets) {
        let (mine, rest) = y.split_at_mut(rows.len());
        tasks.push((rows, mine));
        y = rest;
    }
    if tasks.len() == 1 {
        tasks.into_iter().map(|(rows, y)| body(rows, y)).collect()
    } else {
        tasks.into_par_iter().map(|(rows, y)| body(rows, y)).collect()
    }
}
