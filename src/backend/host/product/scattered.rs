//! y = alpha M x + beta y for a matrix of small blocks whose unknowns need not be consecutive. A task takes consecutive
//! blocks.

use super::Scale;
use super::prefetch;
use super::shared::SharedRows;
use crate::backend::host::sparse::Rows;
use crate::backend::{Host, MOST_OF_BLOCK, OffsetsRef, ScatteredBlocks, with_offsets};
use crate::parallel::prelude::*;
use crate::parallel::vectorised;
use crate::scalar::{Offset, Promote, Scalar};

/// The number of blocks in a task.
const TASK: usize = 1 << 9;

/// x and y are prefetched this many members ahead, because each scattered unknown has its own cache line.
const AHEAD: usize = 32;

pub(in crate::backend::host) fn product<T: Scalar>(
    blocks: &ScatteredBlocks<Host>,
    (units, values): (&[T::Real], &[T::Lower]),
    (alpha, x): (T, &[T]),
    (beta, y): (T, &mut [T]),
) {
    let y = SharedRows::new(y, blocks.order());
    let (members, places) = (Rows::of(blocks.members()), blocks.places());
    let product = Product { members, places, units, values, alpha, x, beta, y };
    let count = blocks.count();
    (0..count.div_ceil(TASK)).into_par_iter().for_each(|task| {
        let blocks = task * TASK..((task + 1) * TASK).min(count);
        vectorised(|| {
            for block in blocks.clone() {
                // SAFETY: each block belongs to one task.
                unsafe { product.of_block(block) };
            }
        });
    });
}

/// A product whose rows are written at scattered positions of y.
struct Product<'a, T: Scalar> {
    members: Rows<'a>,
    places: OffsetsRef<'a, Host>,
    units: &'a [T::Real],
    values: &'a [T::Lower],
    alpha: T,
    x: &'a [T],
    beta: T,
    y: SharedRows<'a, T>,
}

impl<T: Scalar> Product<'_, T> {
    /// # Safety
    /// No two threads may call this with the same block at the same time.
    #[inline(always)]
    unsafe fn of_block(&self, block: usize) {
        let Self { members, units, alpha, x, beta, y, .. } = self;
        let positions = members.range(block);
        for ahead in positions.clone().map(|position| position + AHEAD) {
            if let Some(&member) = members.indices.get(ahead) {
                prefetch::line(x, member as usize);
                y.prefetch(ahead);
            }
        }
        let places =
            with_offsets!(self.places, places => places[block].to_usize()..places[block + 1].to_usize());
        let sums = of_size(&members.indices[positions.clone()], &self.values[places], x);
        let scale = Scale { alpha: T::from_real(units[block]) * *alpha, beta: *beta };
        for (position, &sum) in positions.zip(&sums) {
            // SAFETY: blocks share no position (`ScatteredBlocks`), and this block belongs to this thread alone.
            unsafe { y.update(position, |_, old| scale.finish(sum, old)) };
        }
    }
}

/// Returns the product of a block with x, from a loop of constant length.
#[inline(always)]
fn of_size<T: Scalar>(members: &[u32], values: &[T::Lower], x: &[T]) -> [T; MOST_OF_BLOCK as usize] {
    match members.len() {
        1 => sums::<T, 1>(members, values, x),
        2 => sums::<T, 2>(members, values, x),
        3 => sums::<T, 3>(members, values, x),
        4 => sums::<T, 4>(members, values, x),
        5 => sums::<T, 5>(members, values, x),
        6 => sums::<T, 6>(members, values, x),
        7 => sums::<T, 7>(members, values, x),
        8 => sums::<T, 8>(members, values, x),
        9 => sums::<T, 9>(members, values, x),
        10 => sums::<T, 10>(members, values, x),
        11 => sums::<T, 11>(members, values, x),
        _ => sums::<T, { MOST_OF_BLOCK as usize }>(members, values, x),
    }
}

#[inline(always)]
fn sums<T: Scalar, const SIZE: usize>(
    members: &[u32],
    values: &[T::Lower],
    x: &[T],
) -> [T; MOST_OF_BLOCK as usize] {
    let mut sums = [T::zero(); SIZE];
    for (&member, column) in members.iter().zip(values.as_chunks::<SIZE>().0) {
        let x = x[member as usize];
        for (sum, &value) in sums.iter_mut().zip(column) {
            *sum += Promote::<T>::widen(value) * x;
        }
    }
    std::array::from_fn(|i| sums.get(i).copied().unwrap_or(T::zero()))
}
