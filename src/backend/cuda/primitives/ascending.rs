//! Sums of values that are fetched in the order of their addresses (`ascend_runs.cu`, `ascending_sum.cu`).

use super::{kernels, parts};
use crate::backend::Backend;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::runs::ascending::{AscendingRuns, FORMS, LENGTH, SLOTS};
use crate::error::Result;
use crate::scalar::Scalar;

/// The result of `ascend_codes` if a tile's codes do not fit in one encoding; another one may fit.
const NO_ROOM: u32 = 1;

/// [`RunSums::ascend_runs`], with the first encoding in which each tile fits.
pub(super) fn plan(
    cuda: Cuda,
    values: usize,
    starts: &Slice<u32>,
    sources: &Slice<u32>,
) -> Result<Option<AscendingRuns<Cuda>>> {
    let (n, runs, tiles) = (sources.len(), starts.len(), sources.len().div_ceil(LENGTH));
    let Some(shape) = tuning::ascend_runs(cuda.0.chip, tiles) else { return Ok(None) };
    let longest = parts::longest(cuda, starts, n)?;
    if longest > SLOTS - LENGTH {
        return Ok(None);
    }
    let mut before = cuda.uninitialised(tiles + 1)?;
    parts::first_runs(cuda, starts, LENGTH, &mut before)?;
    let mut heads = if longest > 1 { Some(cuda.uninitialised(tiles * SLOTS / 32)?) } else { None };
    let mut shapes = cuda.uninitialised(tiles)?;
    for form in FORMS {
        let mut codes = cuda.uninitialised(tiles * form.groups * form.words)?;
        let mut bases = cuda.uninitialised(tiles * form.groups)?;
        let mut unfit = cuda.zeros::<u32>(1)?;
        kernels::ascend_codes(
            cuda,
            shape.variant("GAP_BITS", form.gap_bits),
            sources,
            n as u64,
            values as u64,
            starts,
            runs as u64,
            &before,
            &mut codes,
            &mut bases,
            heads.as_deref_mut(),
            &mut shapes,
            &mut unfit,
        )?;
        match cuda.value(&unfit)? {
            0 => {
                let slots = LENGTH + longest;
                let map = AscendingRuns { form, codes, bases, heads, shapes, before, values, runs, slots };
                return Ok(Some(map));
            }
            NO_ROOM => {}
            _ => break,
        }
    }
    Ok(None)
}

/// [`RunSums::sum_ascending`].
pub(super) fn sum<T: Scalar>(
    cuda: Cuda,
    x: &Slice<T>,
    map: &AscendingRuns<Cuda>,
    out: &mut Slice<T>,
) -> Result<()> {
    map.check(x.len(), out.len())?;
    let shape = tuning::ascending_sum(map.shapes.len(), map.slots, size_of::<T>(), map.heads.is_some());
    let shape = shape.variant("GAP_BITS", map.form.gap_bits);
    let AscendingRuns { codes, bases, heads, shapes, before, .. } = map;
    let tiles = shapes.len() as u32;
    kernels::ascending_sum(cuda, shape, x, codes, bases, heads.as_deref(), shapes, before, tiles, out)
}
