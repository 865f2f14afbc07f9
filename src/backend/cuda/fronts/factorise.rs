//! The elimination of the fronts of a level.

use super::schedule::Level;
use super::{Fronts, Numbers, kernels, launch};
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning;
use crate::error::Result;
use crate::scalar::Scalar;

impl<T: Scalar> Fronts<T> {
    /// Eliminates the own columns of all fronts of a level.
    pub(super) fn eliminate(&self, number: usize, level: &Level, numbers: &mut Numbers<T>) -> Result<()> {
        let Numbers { factors, contributions, largest, made_up } = numbers;
        let [even, odd] = contributions;
        let (below, above) = if number.is_multiple_of(2) { (odd, even) } else { (even, odd) };
        let ((preference, least), mirror, layout) = (self.pivots, self.mirror, &*self.layout);
        let (cuda, fronts, children, places, steps) =
            (layout.cuda, &*layout.fronts, &*layout.children, &*layout.places, &*layout.steps);
        for (class, range) in level.small.iter().enumerate() {
            launch!(cuda, small_fronts[tuning::fronts_small(size_of::<T>(), class, range.len())] range.start as u32,
                fronts, children, places, factors, below, above, mirror, preference, least, largest, made_up)?;
        }
        let first = level.parted.start as u32;
        let (count, starts, blocks) = layout.tiled(level.assemble);
        let shape = tuning::fronts_large;
        launch!(cuda, assemble_fronts[shape(blocks)] first, count, starts, fronts, children, places, factors, below,
            above)?;
        launch!(cuda, invert_pivots[shape(level.parted.len() + level.large.len())] first, fronts, steps, factors,
            preference, least, largest, made_up)?;
        for (number, step) in level.steps.iter().enumerate() {
            let step_number = number as u32;
            let (count, starts, blocks) = layout.tiled(step.divide);
            launch!(cuda, divide_fronts[shape(blocks)] first, count, starts, step_number, fronts, steps, factors)?;
            let (count, starts, blocks) = layout.tiled(step.update);
            launch!(cuda, update_fronts[shape(blocks)] first, count, starts, step_number, fronts, steps, factors,
                mirror, preference, least, largest, made_up)?;
        }
        let (count, starts, blocks) = layout.tiled(level.contribute);
        launch!(cuda, contribute_fronts[shape(blocks)] first, count, starts, fronts, factors, above,
            mirror)
    }

    /// Inverts the triangles of groups of blocks in all fronts that solves divide.
    pub(super) fn join(&self, factors: &mut Slice<T>) -> Result<()> {
        let layout = &*self.layout;
        let (cuda, joined, fronts, steps) = (layout.cuda, &*layout.joined, &*layout.fronts, &*layout.steps);
        let shape = tuning::fronts_large(joined.len());
        let halves = std::iter::successors(Some(1), |half| Some(2 * half));
        for half in halves.take_while(|&half| half < tuning::FRONT_GROUP as u32) {
            launch!(cuda, join_rows[shape] half, joined, fronts, steps, factors)?;
            launch!(cuda, join_columns[shape] half, joined, fronts, steps, factors)?;
        }
        Ok(())
    }
}
