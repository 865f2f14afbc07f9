//! Products of CSR: each task takes consecutive rows with about the same number of nonzeros.

use super::prefetch::{self, AHEAD};
use super::{Scale, transposed};
use crate::parallel::both;
use crate::parallel::{parts, prelude::*, worth_a_thread};
use crate::scalar::{Element, Offset, Promote, Scalar};
use std::ops::Range;

/// The minimum number of nonzeros plus rows in a task.
const TASK: usize = 1 << 13;

/// The maximum number of tasks: their sums are on the stack, so that a product allocates nothing.
const MOST_TASKS: usize = 512;

/// The minimum number of nonzeros plus rows for each thread, outside of a team.
const AT_ONCE: usize = 1 << 15;

/// Up to this many nonzeros stay in a cache, so prefetching does not pay.
const NEAR: usize = 1 << 17;

/// A longer row is summed by several threads, in pieces of this length.
const LONG: usize = 1 << 16;

/// Returns the number of nonzeros plus rows before a row.
fn work<O: Offset>(offsets: &[O], row: usize) -> usize {
    offsets[row].to_usize() + row
}

/// Returns the start of part `number` if a total is divided into `count` equal parts. The count is small, so nothing
/// overflows.
fn share(number: usize, count: usize, total: usize) -> usize {
    (number as u64 * total as u64 / count as u64) as usize
}

/// Rows that are divided into tasks of about equally many nonzeros plus rows, each with its part of y. The division
/// depends only on the matrix, so fused sums do not depend on the number of threads. A task may have no rows.
struct Tasks<'a, O, T> {
    offsets: &'a [O],
    /// The number of tasks.
    count: usize,
    numbers: Range<usize>,
    rows: Range<usize>,
    y: &'a mut [T],
    /// One element per task for its sum; empty if no sums are needed.
    sums: &'a mut [T],
}

/// The work of a task: gets its rows and their part of y, and returns its sum.
type OfTask<'f, T> = &'f (dyn Fn(Range<usize>, &mut [T]) -> T + Sync);

/// Returns the number of tasks for all rows.
fn count<O: Offset>(offsets: &[O]) -> usize {
    work(offsets, offsets.len() - 1).div_ceil(TASK).clamp(1, MOST_TASKS)
}

impl<'a, O: Offset, T: Send> Tasks<'a, O, T> {
    fn new(offsets: &'a [O], y: &'a mut [T], sums: &'a mut [T]) -> Self {
        let count = count(offsets);
        Self { offsets, count, numbers: 0..count, rows: 0..offsets.len() - 1, y, sums }
    }

    /// Returns the first row of a task: the first one that ends beyond the work of all earlier tasks.
    fn first_row(&self, number: usize) -> usize {
        let rows = self.offsets.len() - 1;
        if number == self.count {
            return rows;
        }
        let total = work(self.offsets, rows);
        let target = share(number, self.count, total);
        // Each offset costs a cache miss, so the search first assumes that rows have equal lengths, and bisects if that
        // fails.
        let (mut low, mut high) = (self.rows.start, self.rows.end);
        let mut guess = share(number, self.count, rows);
        let rows_each = rows as f64 / total as f64;
        for step in 0.. {
            if low >= high {
                break;
            }
            let row = if step < 8 { guess.clamp(low, high - 1) } else { low + (high - low) / 2 };
            let end = work(self.offsets, row + 1);
            let rows_off = (end.abs_diff(target) as f64 * rows_each) as usize;
            if end > target {
                (high, guess) = (row, row.saturating_sub(rows_off.max(1)));
            } else {
                (low, guess) = (row + 1, row + 1 + rows_off);
            }
        }
        low
    }

    /// Splits into the first `middle` tasks and the others.
    fn split_at(self, middle: usize) -> (Self, Self) {
        let Self { offsets, count, ref numbers, ref rows, .. } = self;
        let (number, first) = (numbers.start + middle, self.first_row(numbers.start + middle));
        let (before, behind) =
            ((numbers.start..number, rows.start..first), (number..numbers.end, first..rows.end));
        let (y, others) = self.y.split_at_mut(first - rows.start);
        let (sums, their_sums) = self.sums.split_at_mut(middle.min(self.sums.len()));
        let part = |(numbers, rows), y, sums| Self { offsets, count, numbers, rows, y, sums };
        (part(before, y, sums), part(behind, others, their_sums))
    }

    /// Runs all tasks, one after another.
    fn run(mut self, body: OfTask<'_, T>) {
        while let Some(number) = self.numbers.next() {
            let end = if self.numbers.is_empty() { self.rows.end } else { self.first_row(number + 1) };
            let rows = self.rows.start..end;
            self.rows.start = end;
            let (mine, others) = std::mem::take(&mut self.y).split_at_mut(rows.len());
            self.y = others;
            let sum = body(rows, mine);
            if let Some(place) = self.sums.split_off_first_mut() {
                *place = sum;
            }
        }
    }
}

/// Runs `body` on all rows, divided among threads. It is compiled for each type of offsets and scalars, but not for
/// each body.
fn each_task<O: Offset, T: Send>(offsets: &[O], y: &mut [T], sums: &mut [T], body: OfTask<'_, T>) {
    let mut tasks = Tasks::new(offsets, y, sums);
    let of_a_task = work(offsets, offsets.len() - 1).div_ceil(tasks.count);
    let (count, least) = (tasks.count, worth_a_thread(AT_ONCE.div_ceil(of_a_task.max(1))));
    let parts = parts(count, least);
    if parts == 1 {
        return tasks.run(body);
    }
    let mut cut = Vec::with_capacity(parts);
    for part in (1..parts).rev() {
        let (before, last) = tasks.split_at(part * count / parts);
        cut.push(last);
        tasks = before;
    }
    cut.push(tasks);
    cut.reverse();
    cut.into_par_iter().for_each(|tasks| tasks.run(body));
}

/// Returns the sum of a row's products, with four partial sums so that additions can overlap.
#[inline(always)]
fn row_sum<V: Copy, T: Scalar>(indices: &[u32], values: &[V], value: impl Fn(V) -> T, x: &[T]) -> T {
    let (index_chunks, index_rest) = indices.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    let mut sum = T::default();
    for (j, v) in both(index_chunks, value_chunks) {
        let product = |lane: usize| value(v[lane]) * x[j[lane] as usize];
        sum += (product(0) + product(1)) + (product(2) + product(3));
    }
    for (&j, &v) in both(index_rest, value_rest) {
        sum += value(v) * x[j as usize];
    }
    sum
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

/// Returns the sum of a row of any length.
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
    let far = values.len() > NEAR;
    let mut start = offsets[rows.start].to_usize();
    let ends = &offsets[rows.start + 1..=rows.end];
    for (k, y) in y[..ends.len()].iter_mut().enumerate() {
        let (row, end) = (rows.start + k, ends[k].to_usize());
        if far {
            prefetch::entries(indices, values, start + AHEAD, end + AHEAD);
        }
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
pub(super) fn product<O: Offset, V: Promote<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let arrays = (offsets, indices, values);
    // The usual case has its own loop, which saves two multiplications per row.
    if scale.alpha == T::one() && scale.beta == T::zero() {
        each_task(offsets, y, &mut [], &|rows, y| {
            row_sums(arrays, rows, value, x, y, |_, sum, y| *y = sum);
            T::default()
        });
    } else {
        each_task(offsets, y, &mut [], &|rows, y| {
            row_sums(arrays, rows, value, x, y, |_, sum, y| *y = scale.finish(sum, *y));
            T::default()
        });
    }
}

/// y\[row\] = `then`(row, (A x)\[row\], y\[row\]).
pub(super) fn product_then<O: Offset, V: Promote<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    x: &[T],
    y: &mut [T],
    then: impl Fn(usize, T, T) -> T + Sync + Send + Copy,
) {
    each_task(offsets, y, &mut [], &|rows, y| {
        row_sums((offsets, indices, values), rows, V::widen, x, y, |row, sum, y| *y = then(row, sum, *y));
        T::default()
    });
}

/// y = A x; returns x.y, conjugating x.
pub(super) fn product_dot<O: Offset, V: Promote<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    x: &[T],
    y: &mut [T],
) -> T {
    let mut sums = [T::default(); MOST_TASKS];
    let sums = &mut sums[..count(offsets)];
    each_task(offsets, y, sums, &|rows, y| {
        let mut dot = T::default();
        row_sums((offsets, indices, values), rows, V::widen, x, y, |row, sum, y| {
            *y = sum;
            dot += x[row].conj() * sum;
        });
        dot
    });
    sums.iter().fold(T::default(), |sum, &part| sum + part)
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<O: Offset, V: Promote<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let blocks = transposed::blocks(values.len(), y.len());
    // The rows whose entries start within this block of the nonzeros.
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
            for (&j, &v) in both(&indices[line.clone()], &values[line]) {
                sums[j as usize - base] += value(v) * x[row];
            }
        }
    };
    transposed::collect(blocks, &range, &scatter, scale, y);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Returns the rows of all tasks. With `halves`, the tasks are first split into halves again and again; otherwise
    /// they are taken one by one.
    fn ranges(offsets: &[u32], halves: bool) -> Vec<Range<usize>> {
        let (mut y, ranges) = (vec![0_u8; offsets.len() - 1], Mutex::new(Vec::new()));
        let mut parts = vec![Tasks::new(offsets, &mut y, &mut [])];
        while let Some(tasks) = parts.pop() {
            let count = tasks.numbers.len();
            if halves && count > 1 {
                let middle = count / 2;
                let (before, behind) = tasks.split_at(middle);
                parts.extend([behind, before]);
            } else {
                tasks.run(&|rows, _| {
                    ranges.lock().unwrap().push(rows);
                    0
                });
            }
        }
        ranges.into_inner().unwrap()
    }

    /// A plain implementation of [`Tasks`] to compare with.
    fn one_by_one(offsets: &[u32]) -> Vec<Range<usize>> {
        let rows = offsets.len() - 1;
        let total = offsets[rows] as usize + rows;
        let tasks = total.div_ceil(TASK).clamp(1, MOST_TASKS);
        let (mut start, mut ranges) = (0, Vec::new());
        for task in 1..=tasks {
            let mut end = start;
            while end < rows && (task == tasks || offsets[end + 1] as usize + end < task * total / tasks) {
                end += 1;
            }
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
            let plain = one_by_one(&offsets);
            assert_eq!(ranges(&offsets, false), plain, "{rows} rows");
            assert_eq!(ranges(&offsets, true), plain, "{rows} rows");
        }
    }
}
