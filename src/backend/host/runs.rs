//! Sums of runs on the host. This file checks lengths; the loops are in `map` and `staged`.

use super::primitives::same;
use super::{Host, map, staged};
use crate::backend::{RUN_TILE, RunSums, StagedRuns};
use crate::error::{Error, Result};
use crate::scalar::{Offset, Scalar, Symmetry};

impl RunSums for Host {
    fn mark_runs<S: Offset>(&self, starts: &[S], sources: &mut [S], before: &mut [S]) -> Result<()> {
        same("number of tiles", sources.len().div_ceil(RUN_TILE), before.len())?;
        map::mark_runs(starts, sources, before)
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
}
