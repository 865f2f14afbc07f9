//! Splits the input of a primitive into tasks. The split depends only on the length, so the results have the same bits
//! for any number of threads.

use super::memory::PARALLEL_FROM;
use crate::parallel::prelude::*;
use std::ops::Range;

/// The number of elements in a task of a streaming primitive (scan, select, map): input and output fit the second-level
/// cache.
pub(super) const CHUNK: usize = 1 << 14;

/// Returns the number of chunks of a buffer of `n` elements: one if distributing them would cost more than it gains.
pub(super) fn count(n: usize) -> usize {
    if n < PARALLEL_FROM { 1 } else { n.div_ceil(CHUNK) }
}

/// Returns the range of the c-th chunk's elements.
pub(super) fn range(n: usize, c: usize) -> Range<usize> {
    if n < PARALLEL_FROM { 0..n } else { c * CHUNK..((c + 1) * CHUNK).min(n) }
}

/// Returns the results of `task` for all chunks, in order.
pub(super) fn map<R: Send>(n: usize, task: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    (0..count(n)).into_par_iter().map(|c| task(range(n, c))).collect()
}

/// Splits a slice into consecutive parts of the given lengths, without the elements after them.
pub(super) fn split<T>(mut slice: &mut [T], lengths: impl IntoIterator<Item = usize>) -> Vec<&mut [T]> {
    let mut parts = Vec::new();
    for length in lengths {
        let (part, rest) = std::mem::take(&mut slice).split_at_mut(length);
        slice = rest;
        parts.push(part);
    }
    parts
}

/// Calls `task` to fill each chunk of `out`, with the chunk's range.
pub(super) fn fill<T: Send>(out: &mut [T], task: impl Fn(Range<usize>, &mut [T]) + Sync) {
    let n = out.len();
    if n < PARALLEL_FROM {
        task(0..n, out);
    } else {
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(c, out)| task(range(n, c), out));
    }
}
