//! A solve with the factors, level by level.

use super::recorded::Vectors;
use super::schedule::Level;
use super::{Layout, kernels, launch};
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::tuning;
use crate::error::Result;
use crate::scalar::Scalar;
use std::ops::Range;

impl Layout {
    /// Returns the ranges of fronts for which a solve uses a block of threads each, with the number of threads and the
    /// maximum number of rows in a front.
    fn whole(level: &Level, count: usize) -> [(Range<usize>, u32, usize); 3] {
        let [threads, for_several, for_one] = tuning::FRONT_SOLVES;
        let more = if count == 1 { for_one } else { for_several };
        let last = level.small.len() - 1;
        let few = level.small[0].start..level.small[last].start;
        [
            (few, threads, level.rows[0]),
            (level.small[last].clone(), more, level.rows[1]),
            (level.large.clone(), more, level.rows[2]),
        ]
    }

    pub(super) fn up<T: Scalar>(
        &self,
        level: &Level,
        factors: &Slice<T>,
        vectors: &mut Vectors<T>,
    ) -> Result<()> {
        let Vectors { count, y, x, u } = vectors;
        let (cuda, fronts, children, places, steps) =
            (self.cuda, &*self.fronts, &*self.children, &*self.places, &*self.steps);
        let (n, all, many) = (self.n as u64, self.schedule.rows as u64, *count as u32);
        for (range, threads, rows) in Self::whole(level, *count) {
            let shape = Shape::new((range.len() * *count) as u32, threads).class(threads);
            launch!(cuda, fronts_up[shape.shared(room::<T>(rows))] range.start as u32, many, fronts, children,
                places, steps, factors, n, all, y, u)?;
        }
        let first = level.parted.start as u32;
        let (here, starts, blocks) = self.tiled(level.gather);
        let shape = tuning::fronts_large(blocks * *count);
        launch!(cuda, large_gather[shape] first, here, starts, many, fronts, children, places, n, all, y, u)?;
        let shape = |blocks: usize| tuning::fronts_by_parts(size_of::<T>(), blocks, *count);
        for (group, step) in level.solve_steps.iter().enumerate() {
            let group = group as u32;
            let (here, starts, blocks) = self.tiled(step.own);
            launch!(cuda, group_up[shape(blocks)] first, here, starts, group, many, fronts, steps, factors, n, y,
                x)?;
            let (here, starts, blocks) = self.tiled(step.up);
            launch!(cuda, rows_up[shape(blocks)] first, here, starts, group, many, fronts, steps, factors, n, all,
                y, u, x)?;
        }
        Ok(())
    }

    pub(super) fn down<T: Scalar>(
        &self,
        level: &Level,
        factors: &Slice<T>,
        vectors: &mut Vectors<T>,
    ) -> Result<()> {
        let Vectors { count, y, x, .. } = vectors;
        let (cuda, fronts, rows, steps) = (self.cuda, &*self.fronts, &*self.rows, &*self.steps);
        let (n, many) = (self.n as u64, *count as u32);
        for (range, threads, most) in Self::whole(level, *count) {
            let shape = Shape::new((range.len() * *count) as u32, threads).class(threads);
            launch!(cuda, fronts_down[shape.shared(room::<T>(most))] range.start as u32, many, fronts, rows, steps,
                factors, n, y, x)?;
        }
        let first = level.parted.start as u32;
        let shape = |blocks: usize| tuning::fronts_by_parts(size_of::<T>(), blocks, *count);
        let (here, starts, blocks) = self.tiled(level.rest);
        launch!(cuda, rest_down[shape(blocks)] first, here, starts, many, fronts, rows, steps, factors, n, y, x)?;
        for (group, step) in level.solve_steps.iter().enumerate().rev() {
            let group = group as u32;
            let (here, starts, blocks) = self.tiled(step.own);
            launch!(cuda, group_down[shape(blocks)] first, here, starts, group, many, fronts, steps, factors, n, y,
                x)?;
            let (here, starts, blocks) = self.tiled(step.down);
            launch!(cuda, rows_down[shape(blocks)] first, here, starts, group, many, fronts, steps, factors, n, y,
                x)?;
        }
        Ok(())
    }
}

/// Returns the number of bytes of shared memory for a vector of `rows` rows, rounded up to a power of two, because the
/// table of loaded kernels has an entry for each size.
fn room<T: Scalar>(rows: usize) -> usize {
    rows.next_power_of_two() * size_of::<T>()
}
