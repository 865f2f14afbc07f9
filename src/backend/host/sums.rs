//! Divides vectors into chunks for sums. The division depends only on the length, so the bits do not depend on the
//! number of threads.

use crate::parallel::both;
use crate::parallel::{Pieces, in_team};
use crate::scalar::Scalar;
use std::ops::Add;

/// The minimum number of elements in a chunk.
const CHUNK: usize = 1 << 10;

/// The minimum number of elements for each thread. With fewer, distribution takes too long in comparison.
const AT_ONCE: usize = 1 << 15;

/// The minimum number of elements for each thread in a team, whose threads are awake.
const AT_ONCE_IN_TEAM: usize = 1 << 11;

/// The maximum number of partial sums in a reduction. They are on the stack, so that an iteration allocates nothing.
const MOST_CHUNKS: usize = 512;

/// The number of partial sums in a loop, so that additions can overlap.
pub(super) const LANES: usize = 8;

/// Returns the number of elements in a task. It depends only on the length, so sums do not depend on the number of
/// threads.
pub(super) fn chunk_size(n: usize) -> usize {
    CHUNK.max(n.div_ceil(MOST_CHUNKS).next_multiple_of(LANES))
}

/// Runs `body` on every chunk of `n` elements, only on the calling thread if there are few.
pub(super) fn for_chunks<P: Pieces>(n: usize, chunks: P, body: impl Fn(P::Item) + Sync) {
    chunks.with_min_len(least(n)).for_each(body);
}

/// Sums `term(chunk)` over chunks of [`chunk_size`], in order.
pub(super) fn sum_chunks<P: Pieces, S: Copy + Default + Send + Add<Output = S>>(
    n: usize,
    chunks: P,
    term: impl Fn(P::Item) -> S + Sync,
) -> S {
    chunks.with_min_len(least(n)).sum::<MOST_CHUNKS, S>(term)
}

/// Returns the minimum number of chunks for each thread, for `n` elements.
fn least(n: usize) -> usize {
    let elements = if in_team() { AT_ONCE_IN_TEAM } else { AT_ONCE };
    elements.div_ceil(chunk_size(n))
}

/// Returns the sum of f over both slices, with a partial sum for each lane.
pub(super) fn sum_pairs<X: Copy, Y: Copy, S: Scalar>(x: &[X], y: &[Y], f: impl Fn(X, Y) -> S) -> S {
    let mut sums = [S::default(); LANES];
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in both(xs, ys) {
        for lane in 0..LANES {
            sums[lane] += f(x[lane], y[lane]);
        }
    }
    let rest: S = x_rest.iter().zip(y_rest).map(|(&x, &y)| f(x, y)).sum();
    sums.into_iter().sum::<S>() + rest
}

/// x^H y.
pub(super) fn inner<T: Scalar>(x: &[T], y: &[T]) -> T {
    sum_pairs(x, y, |x, y| x.conj() * y)
}

/// Several sums that are computed in one pass.
#[derive(Clone, Copy)]
pub(super) struct Several<T, const N: usize>(pub(super) [T; N]);

impl<T: Scalar, const N: usize> Default for Several<T, N> {
    fn default() -> Self {
        Self([T::zero(); N])
    }
}

impl<T: Scalar, const N: usize> Add for Several<T, N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|k| self.0[k] + other.0[k]))
    }
}
