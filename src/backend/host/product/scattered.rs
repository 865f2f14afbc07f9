//! y = alpha M x + beta y for a matrix of small blocks whose unknowns lie anywhere. A task takes consecutive blocks.

use super::Scale;
use super::shared::SharedRows;
use crate::backend::host::sparse::Rows;
use crate::backend::{Host, MOST_OF_BLOCK, ScatteredBlocks, with_offsets};
use crate::parallel::prelude::*;
use crate::parallel::vectorised;
use crate::scalar::{Offset, Scalar, Widen};

/// Blocks of a task.
const TASK: usize = 1 << 9;

pub(in crate::backend::host) fn product<T: Scalar>(
    blocks: &ScatteredBlocks<Host>,
    (units, values): (&[T::Real], &[T::Narrow]),
    (alpha, x): (T, &[T]),
    (beta, y): (T, &mut [T]),
) {
    let (members, count) = (Rows::of(blocks.members()), blocks.count());
    let y = SharedRows::new(y, blocks.order());
    let places = blocks.places();
    let place = |block: usize| with_offsets!(places, places => places[block].to_usize());
    let of_block = |block: usize| {
        let values = &values[place(block)..place(block + 1)];
        let (positions, members) = (members.range(block), members.columns(block));
        let mut sums = [T::zero(); MOST_OF_BLOCK as usize];
        let sums = &mut sums[..members.len()];
        for (&member, column) in members.iter().zip(values.chunks_exact(members.len())) {
            let x = x[member as usize];
            sums.iter_mut().zip(column).for_each(|(sum, &value)| *sum += Widen::<T>::widen(value) * x);
        }
        let scale = Scale { alpha: T::from_real(units[block]) * alpha, beta };
        for (position, &sum) in positions.zip(&*sums) {
            // SAFETY: blocks share no position (`ScatteredBlocks`), and each block belongs to one task.
            unsafe { y.update(position, |_, old| scale.finish(sum, old)) };
        }
    };
    (0..count.div_ceil(TASK)).into_par_iter().for_each(|task| {
        vectorised(|| {
            for block in task * TASK..((task + 1) * TASK).min(count) {
                of_block(block);
            }
        });
    });
}
