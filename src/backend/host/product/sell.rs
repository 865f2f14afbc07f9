//! Products of SELL-C-sigma. Each task takes consecutive slices, and computes the C sums of a slice together.

use super::ell::bounds;
use super::prefetch::{self, AHEAD};
use super::shared::SharedRows;
use super::{Scale, transposed};
use crate::backend::host::compressed::at;
use crate::backend::{Host, OffsetsRef, SellParts};
use crate::parallel::prelude::*;
use crate::scalar::{Promote, Scalar};
use std::ops::Range;

/// The number of stored entries plus positions in a task.
const TASK: usize = 1 << 15;

/// Splits the slices into ranges of about [`TASK`] entries plus positions. The split depends only on the matrix.
fn tasks(offsets: OffsetsRef<'_, Host>, height: usize) -> Vec<Range<usize>> {
    let chunks = offsets.len() - 1;
    let work = |chunk: usize| at(offsets, chunk) + chunk * height;
    let mut ranges = Vec::with_capacity(work(chunks) / TASK + 1);
    let mut start = 0;
    while start < chunks {
        let mut end = start + 1;
        while end < chunks && work(end + 1) - work(start) <= TASK {
            end += 1;
        }
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Computes the sums of a slice's rows, in the order of positions. `entries` are those of the slice, in columns of
/// `sums.len()` places.
#[inline(always)]
fn chunk_sums<V: Copy, T: Scalar>(
    sums: &mut [T],
    lengths: &[u32],
    entries: Range<usize>,
    (indices, values): (&[u32], &[V]),
    value: impl Fn(V) -> T,
    x: &[T],
) {
    let height = sums.len();
    let (low, _) = bounds(lengths);
    let low = if lengths.len() == height { low } else { 0 };
    let (mut start, end) = (entries.start, entries.end);
    let mut k = 0;
    while start < end {
        prefetch::entries(indices, values, start + AHEAD, start + AHEAD + height);
        let (j, v) = (&indices[start..start + height], &values[start..start + height]);
        if k < low {
            for lane in 0..height {
                sums[lane] += value(v[lane]) * x[j[lane] as usize];
            }
        } else {
            for lane in 0..lengths.len() {
                if k < lengths[lane] as usize {
                    sums[lane] += value(v[lane]) * x[j[lane] as usize];
                }
            }
        }
        k += 1;
        start += height;
    }
}

/// [`chunk_sums`] with the usual heights as constants, so that their sums stay in registers.
#[inline(always)]
fn sums_of<V: Copy, T: Scalar>(
    sums: &mut [T],
    lengths: &[u32],
    entries: Range<usize>,
    arrays: (&[u32], &[V]),
    value: impl Fn(V) -> T,
    x: &[T],
) {
    match sums.len() {
        4 => chunk_sums(&mut sums[..4], lengths, entries, arrays, value, x),
        8 => chunk_sums(&mut sums[..8], lengths, entries, arrays, value, x),
        16 => chunk_sums(&mut sums[..16], lengths, entries, arrays, value, x),
        32 => chunk_sums(&mut sums[..32], lengths, entries, arrays, value, x),
        _ => chunk_sums(sums, lengths, entries, arrays, value, x),
    }
}

/// y\[row\] = finish(state, row, sum of the row, y\[row\]). Returns the state of each task, in order.
pub(super) fn product<V: Promote<T>, T: Scalar, S: Default + Send>(
    a: SellParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    x: &[T],
    y: &mut [T],
    finish: impl Fn(&mut S, usize, T, T) -> T + Sync + Send + Copy,
) -> Vec<S> {
    let chunk = |chunk: usize, sums: &mut [T]| {
        let first = chunk * a.height;
        let lengths = &a.lengths[first..(first + a.height).min(a.rows)];
        let entries = at(a.offsets, chunk)..at(a.offsets, chunk + 1);
        sums.fill(T::zero());
        sums_of(sums, lengths, entries, (a.indices, a.values), value, x);
        first
    };
    let tasks = tasks(a.offsets, a.height);
    match a.order {
        None => {
            let mut rest = y;
            let mut owned = Vec::with_capacity(tasks.len());
            for chunks in tasks {
                let rows = (chunks.end * a.height).min(a.rows) - chunks.start * a.height;
                let (mine, others) = rest.split_at_mut(rows);
                owned.push((chunks, mine));
                rest = others;
            }
            owned
                .into_par_iter()
                .map(|(chunks, y): (Range<usize>, &mut [T])| {
                    let (mut state, mut sums) = (S::default(), vec![T::zero(); a.height]);
                    for (s, y) in chunks.zip(y.chunks_mut(a.height)) {
                        let first = chunk(s, &mut sums);
                        for (lane, y) in y.iter_mut().enumerate() {
                            *y = finish(&mut state, first + lane, sums[lane], *y);
                        }
                    }
                    state
                })
                .collect()
        }
        Some(order) => {
            let y = SharedRows::new(y, order);
            tasks
                .into_par_iter()
                .map(|chunks: Range<usize>| {
                    let (mut state, mut sums) = (S::default(), vec![T::zero(); a.height]);
                    for s in chunks {
                        let first = chunk(s, &mut sums);
                        for (position, &sum) in sums.iter().enumerate().take(a.rows - first) {
                            let position = first + position;
                            // SAFETY: each position belongs to one slice, and each slice to one task.
                            unsafe { y.update(position, |row, old| finish(&mut state, row, sum, old)) };
                        }
                    }
                    state
                })
                .collect()
        }
    }
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<V: Promote<T>, T: Scalar>(
    a: SellParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let blocks = transposed::blocks(a.values.len(), a.columns);
    let each = |b: usize, body: &mut dyn FnMut(usize, usize)| {
        for position in transposed::block(a.rows, blocks, b) {
            let start = at(a.offsets, position / a.height) + position % a.height;
            (0..a.lengths[position] as usize).for_each(|k| body(position, start + k * a.height));
        }
    };
    let range = |b| {
        let mut hull = transposed::Hull::new();
        each(b, &mut |_, e| hull.add(a.indices[e] as usize));
        hull.range()
    };
    let scatter = |b, sums: &mut [T], base| {
        each(b, &mut |position, e| {
            let row = a.order.map_or(position, |order| order.as_slice()[position] as usize);
            sums[a.indices[e] as usize - base] += value(a.values[e]) * x[row];
        });
    };
    transposed::collect(blocks, &range, &scatter, scale, y);
}
