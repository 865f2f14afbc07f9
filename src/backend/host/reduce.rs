//! Reductions of whole buffers, of segments, and of runs of equal keys.

use super::chunks;
use crate::parallel::prelude::*;
use crate::scalar::{Combine, Element, Key, Offset};

/// The number of partial results in a chunk, so that operations can overlap.
const LANES: usize = 8;

fn fold_lanes<T: Element, O: Combine<T>>(x: &[T]) -> T {
    let mut lanes = [O::identity(); LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = O::combine(*lane, x);
        }
    }
    lanes.iter().chain(rest).fold(O::identity(), |a, &b| O::combine(a, b))
}

/// Combines all elements of `x`.
pub(super) fn all<T: Element, O: Combine<T>>(_op: O, x: &[T]) -> T {
    chunks::map(x.len(), |range| fold_lanes::<T, O>(&x[range])).into_iter().fold(O::identity(), O::combine)
}

/// The number of segments in a task.
const SEGMENTS: usize = 1 << 11;

/// Calls `body(range of segments, their part of out)` for groups of segments, in parallel if there is enough work.
pub(super) fn for_segments<T: Send, R: Send>(
    work: usize,
    out: &mut [T],
    body: impl Fn(std::ops::Range<usize>, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let n = out.len();
    if work + n < super::memory::PARALLEL_FROM {
        return vec![body(0..n, out)];
    }
    let groups = out.par_chunks_mut(SEGMENTS).enumerate();
    groups.map(|(g, out)| body(g * SEGMENTS..g * SEGMENTS + out.len(), out)).collect()
}

/// Combines each segment of `x`.
pub(super) fn segments<T: Element, I: Offset, O: Combine<T>>(_op: O, x: &[T], offsets: &[I], out: &mut [T]) {
    for_segments(x.len(), out, |segments, out| {
        for (s, out) in segments.zip(out) {
            *out = fold_lanes::<T, O>(&x[offsets[s].to_usize()..offsets[s + 1].to_usize()]);
        }
    });
}

/// Combines the values of runs of equal keys, from left to right, starting with the first value. A run belongs to the
/// chunk in which it starts.
pub(super) fn by_key<K: Key, T: Element, O: Combine<T>>(
    _op: O,
    keys: &[K],
    values: &[T],
    keys_out: &mut [K],
    out: &mut [T],
) -> usize {
    let n = keys.len();
    let head = |i: usize| i == 0 || keys[i].to_ordered() != keys[i - 1].to_ordered();
    let counts = chunks::map(n, |range| range.filter(|&i| head(i)).count());
    let total = counts.iter().sum();
    let parts = chunks::split(keys_out, counts.iter().copied())
        .into_iter()
        .zip(chunks::split(out, counts.iter().copied()))
        .enumerate()
        .collect::<Vec<_>>();
    parts.into_par_iter().for_each(|(c, (keys_out, out))| {
        let range = chunks::range(n, c);
        let Some(mut i) = range.clone().find(|&i| head(i)) else { return };
        for (key_out, out) in keys_out.iter_mut().zip(out) {
            let key = keys[i];
            let mut sum = values[i];
            i += 1;
            while i < n && keys[i].to_ordered() == key.to_ordered() {
                sum = O::combine(sum, values[i]);
                i += 1;
            }
            (*key_out, *out) = (key, sum);
        }
    });
    total
}
