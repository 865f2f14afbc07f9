//! Sums of values that are staged in shared memory in whole pieces (`stage_runs.cu`, `staged_sum.cu`).

use super::kernels;
use super::parts::{first_runs, longest};
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::runs::staged;
use crate::backend::runs::staged::MOST_PIECES;
use crate::backend::{Backend, StagedRuns};
use crate::error::Result;
use crate::scalar::Scalar;

/// See [`RunSums::stage_runs`].
pub(super) fn plan(
    cuda: Cuda,
    values: usize,
    starts: &Slice<u32>,
    sources: &Slice<u32>,
) -> Result<Option<StagedRuns<Cuda>>> {
    let (n, count) = (sources.len(), starts.len());
    let Some((length, parts)) = staged::parts(n, longest(cuda, starts, n)?) else { return Ok(None) };
    let mut map = StagedRuns::room(&cuda, values, count, count == n, parts)?;
    first_runs(cuda, starts, length, &mut map.before)?;
    let (mut most, shape) = (cuda.zeros::<u32>(1)?, tuning::stage_runs(parts));
    kernels::stage_codes(
        cuda,
        shape,
        sources,
        n,
        values as u64,
        starts,
        count,
        &map.before,
        &mut map.codes,
        &mut map.pieces,
        &mut map.counts,
        &mut most,
    )?;
    map.most = cuda.value(&most)? as usize;
    Ok((map.most <= MOST_PIECES).then_some(map))
}

/// See [`RunSums::sum_staged`].
pub(super) fn sum<T: Scalar>(
    cuda: Cuda,
    x: &Slice<T>,
    map: &StagedRuns<Cuda>,
    out: &mut Slice<T>,
) -> Result<()> {
    map.check(x.len(), out.len())?;
    let shape = tuning::sum_staged(map.counts.len(), map.most, size_of::<T>());
    let shape = shape.variant("SINGLE", if map.single { "1" } else { "0" });
    let StagedRuns { codes, pieces, counts, before, .. } = map;
    kernels::staged_sum(cuda, shape, x, x.len(), codes, pieces, counts, before, out)
}
