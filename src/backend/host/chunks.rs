//! How a primitive's input is split into tasks. It depends only on the length, so that results are the same bits for
//! any number of threads.

use super::memory::PARALLEL_FROM;
use crate::parallel::prelude::*;
use std::ops::Range;

/// Elements of one task of a streaming primitive (scan, select, map): input and output fit the second-level cache.
pub(super) const CHUNK: usize = 1 << 14;

/// Number of chunks of a buffer of `n` elements: one if distribution would cost more than it gains.
pub(super) fn count(n: usize) -> usize {
    if n < PARALLEL_FROM { 1 } else { n.div_ceil(CHUNK) }
}

/// The c-th chunk's elements.
pub(super) fn range(n: usize, c: usize) -> Range<usize> {
    if n < PARALLEL_FROM { 0..n } else { c * CHUNK..((c + 1) * CHUNK).min(n) }
}

/// The result of `task` for every chunk, in order.
pub(super) fn map<R: Send>(n: usize, task: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    (0..count(n)).into_par_iter().map(|c| task(range(n, c))).collect()
}

/// Splits a slice into consecutive parts of the given lengths; the rest is left out.
pub(super) fn split<T>(mut slice: &mut [T], lengths: impl IntoIterator<Item = usize>) -> Vec<&mut [T]> {
    let mut parts = Vec::new();
    for length in lengths {
        let (part, rest) = std::mem::take(&mut slice).split_at_mut(length);
        slice = rest;
        parts.push(part);
    }
    parts
}

/// Calls `task` for chunks of `out` with their ranges, to fill them.
pub(super) fn fill<T: Send>(out: &mut [T], task: impl Fn(Range<usize>, &mut [T]) + Sync) {
    let n = out.len();
    if n < PARALLEL_FROM {
        task(0..n, out);
    } else {
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(c, out)| task(range(n, c), out));
    }
}
