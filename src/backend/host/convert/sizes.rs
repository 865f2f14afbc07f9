//! Sizes that conversions need: row lengths, orders by length, offsets of slices.

use crate::backend::host::memory::PARALLEL_FROM;
use crate::backend::{Host, OffsetsRef, with_offsets};
use crate::parallel::prelude::*;
use crate::scalar::Offset;

pub(super) fn row_lengths(offsets: OffsetsRef<'_, Host>, skip: usize, most: usize, lengths: &mut [u32]) {
    with_offsets!(offsets, offsets => {
        lengths.par_iter_mut().with_min_len(PARALLEL_FROM).enumerate().for_each(|(row, n)| {
            let all = offsets[row + 1].to_usize() - offsets[row].to_usize();
            *n = all.saturating_sub(skip).min(most) as u32;
        });
    });
}

/// Sorts each window by comparisons in the cache, because windows are small: a radix sort of (window, length) over all
/// rows would be slower.
pub(super) fn longest_first(lengths: &[u32], window: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..lengths.len() as u64).map(|row| row as u32).collect();
    let sort = |w: &mut [u32]| w.sort_by_key(|&row| std::cmp::Reverse(lengths[row as usize]));
    order.par_chunks_mut(window).with_min_len((1 << 12) / window + 1).for_each(sort);
    order
}

/// Computes the offsets of slices. Returns the last one, even if `I` can't represent it.
pub(super) fn chunk_offsets<I: Offset>(lengths: &[u32], height: usize, offsets: &mut [I]) -> usize {
    let mut end = 0;
    offsets[0] = I::from_usize(0);
    for (section, offset) in lengths.chunks(height).zip(&mut offsets[1..]) {
        end += section.iter().copied().max().unwrap_or(0) as usize * height;
        *offset = I::from_usize(end.min(I::MAX));
    }
    end
}

/// A binary search for each diagonal suffices, because row lengths descend in this order.
pub(super) fn jagged_reach(lengths: &[u32], order: &[u32], reach: &mut [u32]) {
    let each = reach.par_iter_mut().with_min_len(PARALLEL_FROM).enumerate();
    each.for_each(|(k, reach)| {
        *reach = order.partition_point(|&row| lengths[row as usize] as usize > k) as u32;
    });
}

/// Diagonal k has an entry for each of the first `diagonals[k + 1] - diagonals[k]` positions.
pub(super) fn jagged_lengths<I: Offset>(order: &[u32], diagonals: &[I], lengths: &mut [u32]) {
    let mut reached = order.len();
    for k in 0..diagonals.len() {
        let reach =
            if k + 1 < diagonals.len() { diagonals[k + 1].to_usize() - diagonals[k].to_usize() } else { 0 };
        order[reach..reached].iter().for_each(|&row| lengths[row as usize] = k as u32);
        reached = reach;
    }
}
