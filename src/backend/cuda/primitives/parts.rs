//! Divides a list of runs into parts, the first step of planning their sums.

use super::kernels;
use crate::backend::Backend;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::error::Result;

/// Returns the number of entries in the longest run.
pub(super) fn longest(cuda: Cuda, starts: &Slice<u32>, sources: usize) -> Result<usize> {
    let (mut longest, shape) = (cuda.zeros::<u32>(1)?, tuning::per_run(cuda.0.chip, starts.len()));
    kernels::longest_run(cuda, shape, starts, starts.len(), sources, &mut longest)?;
    Ok(cuda.value(&longest)? as usize)
}

/// Writes the first run of each part, and the number of runs at the end. A run belongs to the part of `length` sources
/// in which it starts.
pub(super) fn first_runs(
    cuda: Cuda,
    starts: &Slice<u32>,
    length: usize,
    before: &mut Slice<u32>,
) -> Result<()> {
    let parts = before.len() - 1;
    kernels::part_runs(
        cuda,
        tuning::per_run(cuda.0.chip, parts + 1),
        starts,
        starts.len(),
        length,
        before,
        parts as u64,
    )
}
