//! Sums of runs on the host: checks of lengths, then one file each.

use super::primitives::{OUT, same};
use super::{Host, buckets, map, staged};
use crate::backend::{BUCKET_TILE, RUN_TILE, RunSums, StagedRuns, buckets_of, check_bounds};
use crate::error::{Error, Result};
use crate::scalar::{Element, Offset, Scalar, Symmetry};

impl RunSums for Host {
    fn mark_runs<S: Offset>(&self, starts: &[S], sources: &mut [S], before: &mut [S]) -> Result<()> {
        same("number of tiles", sources.len().div_ceil(RUN_TILE), before.len())?;
        map::mark_runs(starts, sources, before)
    }

    fn follow<S: Offset>(&self, next: &[S], sources: &mut [S]) -> Result<()> {
        map::follow(next, sources)
    }

    fn gather_sum<T: Scalar, S: Offset>(
        &self,
        symmetry: Symmetry,
        x: &[T],
        sources: &[S],
        before: &[S],
        out: &mut [T],
    ) -> Result<()> {
        same("number of tiles", sources.len().div_ceil(RUN_TILE), before.len())?;
        if !before.is_sorted() || before.last().is_some_and(|last| last.to_usize() > out.len()) {
            return Err(Error::InvalidArgument("runs before tiles do not ascend".into()));
        }
        map::gather_sum(symmetry, x, sources, before, out)
    }

    fn stage_runs(&self, values: usize, starts: &[u32], sources: &[u32]) -> Result<Option<StagedRuns<Self>>> {
        staged::stage(values, starts, sources)
    }

    fn sum_staged<T: Scalar>(&self, x: &[T], runs: &StagedRuns<Self>, out: &mut [T]) -> Result<()> {
        runs.check(x.len(), out.len())?;
        staged::sum(x, runs, out);
        Ok(())
    }

    fn rank_places(
        &self,
        (high, low): (&[u32], &[u32]),
        bounds: [&[u32]; 3],
        bits: u32,
        out: &mut [u32],
    ) -> Result<()> {
        same("length of the high parts", out.len(), high.len())?;
        same("length of the low parts", out.len(), low.len())?;
        check_bounds(bounds.map(<[u32]>::len), bits)?;
        buckets::rank((high, low), bounds, bits, out);
        Ok(())
    }

    fn plan_buckets(&self, places: &mut [u32], bits: u32, slots: &mut [u16], runs: &mut [u32]) -> Result<()> {
        same("number of slots", places.len(), slots.len())?;
        let (buckets, length) = buckets_of(places.len(), bits)?;
        same("length of the list of runs", length, runs.len())?;
        buckets::plan(places, (bits, buckets), slots, runs)
    }

    fn to_buckets<T: Element>(&self, x: &[T], slots: &[u16], runs: &[u32], out: &mut [T]) -> Result<()> {
        same("number of slots", x.len(), slots.len())?;
        same(OUT, x.len(), out.len())?;
        let tiles = x.len().div_ceil(BUCKET_TILE);
        let buckets = runs.len() / (2 * tiles.max(1));
        same("length of the list of runs", 2 * buckets * tiles, runs.len())?;
        buckets::fill(x, slots, buckets, runs, out);
        Ok(())
    }
}
