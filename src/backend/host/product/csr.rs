//! CSR: each task takes consecutive rows with about the same number of nonzeros.

use super::prefetch::{self, AHEAD};
use super::{Scale, transposed};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset, Scalar, Widen};
use std::ops::Range;

/// Nonzeros plus rows that one task takes. Fixed, so that fused sums do not depend on the number of threads.
const TASK: usize = 1 << 16;

/// A row longer than this is summed in pieces of this length, by several threads.
const LONG: usize = 1 << 16;

/// Splits the rows into ranges of about [`TASK`] nonzeros plus rows each: a function of the matrix alone.
fn row_ranges<O: Offset>(offsets: &[O]) -> Vec<Range<usize>> {
    let rows = offsets.len() - 1;
    let work = |row: usize| offsets[row].to_usize() + row;
    let tasks = work(rows).div_ceil(TASK).max(1);
    let mut ranges: Vec<Range<usize>> = Vec::with_capacity(tasks);
    let mut start = 0;
    for task in 1..tasks {
        // The first row that ends beyond the target; a row longer than a task goes to the task in which it starts.
        // Offsets are far apart in memory, so the search guesses from the range before, and bisects if that fails.
        let (mut low, mut high) = (start, rows);
        let length = ranges.last().map_or(rows / tasks, Range::len).max(1);
        let mut guess = start + length;
        for step in 0.. {
            if low >= high {
                break;
            }
            let row = if step < 8 { guess.clamp(low, high - 1) } else { low + (high - low) / 2 };
            let end = work(row + 1);
            let rows_off = end.abs_diff(task * TASK) * length / TASK;
            if end > task * TASK {
                (high, guess) = (row, row.saturating_sub(rows_off.max(1)));
            } else {
                (low, guess) = (row + 1, row + 1 + rows_off);
            }
        }
        let end = low.max(start + 1).min(rows);
        ranges.push(start..end);
        start = end;
    }
    ranges.push(start..rows);
    ranges
}

/// The sum of a row's products: four running sums, so that additions do not wait for each other.
#[inline(always)]
fn row_sum<V: Copy, T: Scalar>(indices: &[u32], values: &[V], value: impl Fn(V) -> T, x: &[T]) -> T {
    let (index_chunks, index_rest) = indices.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    let rest =
        index_rest.iter().zip(value_rest).fold(T::default(), |sum, (&j, &v)| sum + value(v) * x[j as usize]);
    let mut sums = [T::default(); 4];
    for (j, v) in index_chunks.iter().zip(value_chunks) {
        for lane in 0..4 {
            sums[lane] += value(v[lane]) * x[j[lane] as usize];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

#[cold]
#[inline(never)]
fn long_row_sum<V: Element, T: Scalar>(
    indices: &[u32],
    values: &[V],
    value: impl Fn(V) -> T + Sync,
    x: &[T],
) -> T {
    let pieces = indices.par_chunks(LONG).zip(values.par_chunks(LONG));
    pieces.map(|(j, v)| row_sum(j, v, &value, x)).collect().into_iter().sum()
}

/// The sum of a row of any length.
pub(super) fn row_total<V: Element, T: Scalar>(
    indices: &[u32],
    values: &[V],
    value: impl Fn(V) -> T + Sync,
    x: &[T],
) -> T {
    if indices.len() > LONG {
        long_row_sum(indices, values, value, x)
    } else {
        row_sum(indices, values, value, x)
    }
}

/// Calls `body(row, sum of the row, element of y)` for consecutive rows.
#[inline(always)]
fn row_sums<O: Offset, V: Element, T: Scalar>(
    (offsets, indices, values): (&[O], &[u32], &[V]),
    rows: Range<usize>,
    value: impl Fn(V) -> T + Sync + Copy,
    x: &[T],
    y: &mut [T],
    mut body: impl FnMut(usize, T, &mut T),
) {
    let mut start = offsets[rows.start].to_usize();
    let ends = &offsets[rows.start + 1..=rows.end];
    for ((row, end), y) in rows.zip(ends).zip(y) {
        let end = end.to_usize();
        prefetch::entries(indices, values, start + AHEAD, end + AHEAD);
        let (columns, numbers) = (&indices[start..end], &values[start..end]);
        let sum = if end - start > LONG {
            long_row_sum(columns, numbers, value, x)
        } else {
            row_sum(columns, numbers, value, x)
        };
        body(row, sum, y);
        start = end;
    }
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
    let arrays = (offsets, indices, values);
    // The usual case apart: two multiplications a row less.
    if scale.alpha == T::one() && scale.beta == T::zero() {
        for_ranges(offsets, y, |rows, y| row_sums(arrays, rows, value, x, y, |_, sum, y| *y = sum));
    } else {
        for_ranges(offsets, y, |rows, y| {
            row_sums(arrays, rows, value, x, y, |_, sum, y| *y = scale.finish(sum, *y));
        });
    }
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
        row_sums((offsets, indices, values), rows, V::widen, x, y, |row, sum, y| {
            *y = sum;
            dot += x[row].conj() * sum;
        });
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
    transposed::collect(blocks, &range, &scatter, scale, y);
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
    tasks.into_par_iter().map(|(rows, y)| body(rows, y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain statement of [`row_ranges`].
    fn one_by_one(offsets: &[u32]) -> Vec<Range<usize>> {
        let rows = offsets.len() - 1;
        let tasks = (offsets[rows] as usize + rows).div_ceil(TASK).max(1);
        let (mut start, mut ranges) = (0, Vec::new());
        for task in 1..=tasks {
            let mut end = start;
            while end < rows && (task == tasks || offsets[end + 1] as usize + end < task * TASK) {
                end += 1;
            }
            let end = if task == tasks { rows } else { end.max(start + 1).min(rows) };
            ranges.push(start..end);
            start = end;
        }
        ranges
    }

    #[test]
    fn guessed_ranges_are_those_of_a_plain_search() {
        type Shape = (usize, fn(usize) -> u32);
        let shapes: [Shape; 6] = [
            (60_000, |_| 7),
            (40_000, |i| (i % 50) as u32),
            (3_000, |i| if i == 1_500 { 900_000 } else { 3 }),
            (200_000, |i| if i % 1_000 == 0 { 2_000 } else { 0 }),
            (50, |i| if i % 7 == 0 { 150_000 } else { 0 }),
            (0, |_| 0),
        ];
        for (rows, length) in shapes {
            let mut offsets = vec![0];
            offsets.extend((0..rows).scan(0, |total, i| {
                *total += length(i);
                Some(*total)
            }));
            assert_eq!(row_ranges(&offsets), one_by_one(&offsets), "{rows} rows");
        }
    }
}
