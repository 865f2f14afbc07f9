//! Sums of runs on the device: marks, plans, sums.

use super::super::shape::bytes_of;
use super::super::slice::Slice;
use super::super::{Cuda, tuning};
use super::{ascending, kernels, staged, tiled};
use crate::backend::{
    AscendingRuns, BUCKET_TILE, Primitives, RUN_TILE, RunSums, StagedRuns, TileRuns, buckets_of, check_bounds,
};
use crate::error::{Error, Result};
use crate::scalar::{Element, Offset, Scalar, Symmetry};

impl RunSums for Cuda {
    fn mark_runs<S: Offset>(
        &self,
        starts: &Slice<S>,
        sources: &mut Slice<S>,
        before: &mut Slice<S>,
    ) -> Result<()> {
        Error::check_dimension("number of tiles", sources.len().div_ceil(RUN_TILE), before.len())?;
        let (runs, n, tiles) = (starts.len() as u64, sources.len() as u64, before.len() as u64);
        let shape = tuning::elementwise(self.0.chip, starts.len());
        let (tile, misses) = (RUN_TILE as u64, self.0.misses());
        kernels::mark_runs(*self, shape, starts, runs, sources, n, before, tiles, tile, misses)
    }

    fn follow<S: Offset>(&self, next: &Slice<S>, sources: &mut Slice<S>) -> Result<()> {
        let (n, count) = (next.len() as u64, sources.len() as u64);
        let shape = tuning::elementwise(self.0.chip, sources.len());
        kernels::follow(*self, shape, next, n, sources, count, self.0.misses())
    }

    fn gather_sum<T: Scalar, S: Offset>(
        &self,
        symmetry: Symmetry,
        x: &Slice<T>,
        sources: &Slice<S>,
        before: &Slice<S>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("number of tiles", sources.len().div_ceil(RUN_TILE), before.len())?;
        let (length, n, runs) = (x.len() as u64, sources.len() as u64, out.len() as u64);
        let (shape, misses) = (tuning::gather_sum(before.len()), self.0.misses());
        let mirrored = match symmetry {
            Symmetry::General => {
                return kernels::gather_sum(*self, shape, x, length, sources, n, before, out, runs, misses);
            }
            Symmetry::Symmetric => 1,
            Symmetry::SkewSymmetric => 2,
            Symmetry::Hermitian => 3,
        };
        kernels::gather_sum_of_half(*self, shape, mirrored, x, length, sources, n, before, out, runs, misses)
    }

    fn stages_runs(&self, sources: usize) -> bool {
        tuning::stages_runs(sources)
    }

    fn stage_runs(
        &self,
        values: usize,
        starts: &Slice<u32>,
        sources: &Slice<u32>,
    ) -> Result<Option<StagedRuns<Self>>> {
        staged::plan(*self, values, starts, sources)
    }

    fn sum_staged<T: Scalar>(&self, x: &Slice<T>, map: &StagedRuns<Self>, out: &mut Slice<T>) -> Result<()> {
        staged::sum(*self, x, map, out)
    }

    fn ascends_runs(&self, sources: usize) -> bool {
        tuning::ascends_runs(sources)
    }

    fn ascend_runs(
        &self,
        values: usize,
        starts: &Slice<u32>,
        sources: &Slice<u32>,
    ) -> Result<Option<AscendingRuns<Self>>> {
        ascending::plan(*self, values, starts, sources)
    }

    fn sum_ascending<T: Scalar>(
        &self,
        x: &Slice<T>,
        runs: &AscendingRuns<Self>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        ascending::sum(*self, x, runs, out)
    }

    fn bucket_bits(&self, n: usize) -> Option<u32> {
        tuning::bucket_bits(self.0.chip, n)
    }

    fn rank_places(
        &self,
        (high, low): (&Slice<u32>, &Slice<u32>),
        bounds: [&Slice<u32>; 3],
        bits: u32,
        out: &mut Slice<u32>,
    ) -> Result<()> {
        let (n, [first, second, third]) = (out.len(), bounds);
        Error::check_dimension("length of the high parts", n, high.len())?;
        Error::check_dimension("length of the low parts", n, low.len())?;
        check_bounds(bounds.map(|bound| bound.len()), bits)?;
        let shape = tuning::rank_places(self.0.chip, n, first.len()).variant("ITEM_BYTES", "4");
        let count = first.len() as u32;
        kernels::rank_places(*self, shape, high, low, n as u64, first, second, third, count, bits, out)
    }

    fn plan_buckets(
        &self,
        places: &mut Slice<u32>,
        bits: u32,
        slots: &mut Slice<u16>,
        runs: &mut Slice<u32>,
    ) -> Result<()> {
        let n = places.len();
        Error::check_dimension("number of slots", n, slots.len())?;
        let (buckets, length) = buckets_of(n, bits)?;
        Error::check_dimension("length of the list of runs", length, runs.len())?;
        let (tiles, shape) = (n.div_ceil(BUCKET_TILE), tuning::to_buckets(n, 4).shared(0));
        let shape = shape.variant("ITEM_BYTES", "4");
        let (mut counts, mut firsts) =
            (self.uninitialised(buckets * tiles)?, self.uninitialised(buckets * tiles)?);
        let (n, buckets, tiles, misses) = (n as u64, buckets as u32, tiles as u64, self.0.misses());
        kernels::bucket_counts(*self, shape, places, n, bits, buckets, &mut counts, tiles, misses)?;
        self.exclusive_scan(&counts, &mut firsts)?;
        kernels::bucket_slots(*self, shape, places, n, bits, buckets, &firsts, tiles, slots, runs)
    }

    fn to_buckets<T: Element>(
        &self,
        x: &Slice<T>,
        slots: &Slice<u16>,
        runs: &Slice<u32>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        let (n, tiles) = (x.len(), x.len().div_ceil(BUCKET_TILE));
        Error::check_dimension("number of slots", n, slots.len())?;
        Error::check_dimension("length of the output", n, out.len())?;
        let buckets = runs.len() / (2 * tiles.max(1));
        Error::check_dimension("length of the list of runs", 2 * buckets * tiles, runs.len())?;
        let shape = tuning::to_buckets(n, size_of::<T>()).variant("ITEM_BYTES", bytes_of::<T>());
        kernels::to_buckets(*self, shape, x, n as u64, slots, runs, buckets as u32, out)
    }

    fn tile_sizes(&self, n: usize, bytes: usize) -> Option<(usize, usize)> {
        tuning::tile_sizes(self.0.chip, n, bytes)
    }

    fn tile_runs(
        &self,
        bytes: usize,
        sizes: (usize, usize),
        pairs: (&Slice<u32>, &Slice<u32>),
        starts: &Slice<u32>,
        sources: &Slice<u32>,
    ) -> Result<Option<TileRuns<Self>>> {
        tiled::plan(*self, bytes, sizes, pairs, starts, sources)
    }

    fn sum_tiles<T: Scalar>(
        &self,
        x: &Slice<T>,
        runs: &TileRuns<Self>,
        room: &mut Slice<T>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        tiled::sum(*self, x, runs, room, out)
    }
}
