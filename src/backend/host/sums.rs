//! How vectors are cut for sums: by their length alone, so that the bits do not depend on the number of threads.

use super::memory::PARALLEL_FROM;
use crate::parallel::{Pieces, prelude::*};
use std::ops::Add;

/// Elements that one task takes at least.
const CHUNK: usize = 1 << 13;

/// Chunks that a thread takes at least: they are over so soon that handing them out one by one would show.
const AT_ONCE: usize = 4;

/// Most partial sums of a reduction: they live on the stack, so that an iteration allocates nothing.
const MOST_CHUNKS: usize = 512;

/// Running sums in a loop, so that additions do not wait for each other.
pub(super) const LANES: usize = 8;

/// Elements a task: a function of the length alone, so that sums do not depend on the number of threads.
pub(super) fn chunk_size(n: usize) -> usize {
    CHUNK.max(n.div_ceil(MOST_CHUNKS).next_multiple_of(LANES))
}

/// Runs `body` on every chunk; on the calling thread alone where the `n` elements are too few to share.
pub(super) fn for_chunks<P: Pieces>(n: usize, chunks: P, body: impl Fn(P::Item) + Sync) {
    let least = if n < PARALLEL_FROM { usize::MAX } else { AT_ONCE };
    chunks.with_min_len(least).for_each(body);
}

/// Sums `term(chunk)` over chunks of [`chunk_size`], in order.
pub(super) fn sum_chunks<P: Pieces, S: Copy + Default + Send + Add<Output = S>>(
    n: usize,
    chunks: P,
    term: impl Fn(P::Item) -> S + Sync,
) -> S {
    let mut partial = [S::default(); MOST_CHUNKS];
    let partial = &mut partial[..n.div_ceil(chunk_size(n))];
    for_chunks(n, partial.par_iter_mut().zip(chunks), |(sum, chunk)| *sum = term(chunk));
    partial.iter().fold(S::default(), |sum, &part| sum + part)
}
