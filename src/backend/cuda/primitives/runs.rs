//! Sums of runs on the device: marking runs, planning and summing.

use super::super::slice::Slice;
use super::super::{Cuda, tuning};
use super::{kernels, staged};
use crate::backend::{RUN_TILE, RunSums, StagedRuns};
use crate::error::{Error, Result};
use crate::scalar::{Offset, Scalar, Symmetry};

impl RunSums for Cuda {
    fn mark_runs<S: Offset>(
        &self,
        starts: &Slice<S>,
        sources: &mut Slice<S>,
        before: &mut Slice<S>,
    ) -> Result<()> {
        Error::check_dimension("number of tiles", sources.len().div_ceil(RUN_TILE), before.len())?;
        let (runs, n, tiles) = (starts.len(), sources.len(), before.len() as u64);
        let shape = tuning::elementwise(self.0.chip, starts.len());
        let (tile, misses) = (RUN_TILE as u64, self.0.misses());
        kernels::mark_runs(*self, shape, starts, runs, sources, n, before, tiles, tile, misses)
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
        let (length, n, runs) = (x.len(), sources.len(), out.len());
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
}
