//! y = alpha A^T x + beta y without an index by columns. The rows are divided into a few blocks, and each block adds
//! its products to a private vector over the columns that it has. Then every element of y is the sum over the blocks,
//! in order. The number of blocks depends only on the matrix, so the sums do not depend on the number of threads.

use super::Scale;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use std::ops::Range;

/// The minimum number of entries for which an additional block pays.
const SMALLEST: usize = 1 << 15;

/// The number of elements of y in a task.
const CHUNK: usize = 1 << 12;

/// Returns the number of blocks of a matrix: private vectors should cost no more time than the matrix itself.
pub(super) fn blocks(entries: usize, columns: usize) -> usize {
    (entries / SMALLEST).min((2 * entries / columns.max(1)).max(2)).clamp(1, 32)
}

/// Returns block `b` if `0..len` is divided into `blocks` blocks.
pub(super) fn block(len: usize, blocks: usize, b: usize) -> Range<usize> {
    let at = |b: usize| (len as u128 * b as u128 / blocks as u128) as usize;
    at(b)..at(b + 1)
}

/// The smallest range that contains all columns that were added.
pub(super) struct Hull {
    first: usize,
    end: usize,
}

impl Hull {
    pub(super) fn new() -> Self {
        Self { first: usize::MAX, end: 0 }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, column: usize) {
        self.first = self.first.min(column);
        self.end = self.end.max(column + 1);
    }

    pub(super) fn range(self) -> Range<usize> {
        if self.end == 0 { 0..0 } else { self.first..self.end }
    }
}

/// The smallest range that contains all of these columns.
pub(super) fn hull(columns: impl Iterator<Item = u32>) -> Range<usize> {
    let mut hull = Hull::new();
    columns.for_each(|column| hull.add(column as usize));
    hull.range()
}

/// Adds up the products of all blocks. `range(b)` returns the range of columns in block `b`, and
/// `scatter(b, sums, base)` adds the block's products to `sums[column - base]`. Both are called once for each block, so
/// the rest is not compiled for each layout.
pub(super) fn collect<T: Scalar>(
    blocks: usize,
    range: &(dyn Fn(usize) -> Range<usize> + Sync),
    scatter: &(dyn Fn(usize, &mut [T], usize) + Sync),
    scale: Scale<T>,
    y: &mut [T],
) {
    let part = |b: usize| {
        let range = range(b);
        let mut sums = vec![T::zero(); range.len()];
        scatter(b, &mut sums, range.start);
        (range, sums)
    };
    let parts: Vec<(Range<usize>, Vec<T>)> = (0..blocks).into_par_iter().map(part).collect();
    let add_up = |(chunk, y): (usize, &mut [T])| {
        let first = chunk * CHUNK;
        let mut total = [T::zero(); CHUNK];
        for (range, sums) in &parts {
            let (start, end) = (range.start.max(first), range.end.min(first + y.len()));
            if start < end {
                let sums = &sums[start - range.start..end - range.start];
                total[start - first..end - first].iter_mut().zip(sums).for_each(|(t, &s)| *t += s);
            }
        }
        y.iter_mut().zip(total).for_each(|(y, sum)| *y = scale.finish(sum, *y));
    };
    if blocks == 1 {
        y.chunks_mut(CHUNK).enumerate().for_each(add_up);
    } else {
        y.par_chunks_mut(CHUNK).enumerate().for_each(add_up);
    }
}
