//! Sums of values that are fetched in the order in which they lie in memory (`ascend_runs.cu`, `ascending_sum.cu`).

use super::{kernels, parts};
use crate::backend::Backend;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, policy};
use crate::backend::runs::ascending::{AscendingRuns, FORMS, Form, LENGTH, SLOTS};
use crate::error::Result;
use crate::scalar::Scalar;

/// [`RunSums::ascend_runs`].
pub(super) fn plan(
    cuda: Cuda,
    values: usize,
    starts: &Slice<u32>,
    sources: &Slice<u32>,
) -> Result<Option<AscendingRuns<Cuda>>> {
    let longest = parts::longest(cuda, starts, sources.len())?;
    if longest > SLOTS - LENGTH {
        return Ok(None);
    }
    for form in FORMS {
        if let Some(map) = plan_in(cuda, form, values, (starts, longest), sources)? {
            return Ok(Some(map));
        }
    }
    Ok(None)
}

/// In this form, if each tile fits.
fn plan_in(
    cuda: Cuda,
    form: Form,
    values: usize,
    (starts, longest): (&Slice<u32>, usize),
    sources: &Slice<u32>,
) -> Result<Option<AscendingRuns<Cuda>>> {
    let (n, count, tiles) = (sources.len(), starts.len(), sources.len().div_ceil(LENGTH));
    let Some(shape) = policy::ascend_runs(cuda.0.chip, tiles) else { return Ok(None) };
    let mut map = AscendingRuns::<Cuda> {
        form,
        codes: cuda.uninitialised(tiles * form.groups * form.words)?,
        bases: cuda.uninitialised(tiles * form.groups)?,
        heads: if longest > 1 { Some(cuda.uninitialised(tiles * SLOTS / 32)?) } else { None },
        shapes: cuda.uninitialised(tiles)?,
        before: cuda.uninitialised(tiles + 1)?,
        values,
        runs: count,
        slots: LENGTH + longest,
    };
    parts::first_runs(cuda, starts, LENGTH, &mut map.before)?;
    let mut unfit = cuda.zeros::<u32>(1)?;
    kernels::ascend_codes(
        cuda,
        shape.variant("GAP_BITS", form.gap_bits),
        sources,
        n as u64,
        values as u64,
        starts,
        count as u64,
        &map.before,
        &mut map.codes,
        &mut map.bases,
        map.heads.as_deref_mut(),
        &mut map.shapes,
        &mut unfit,
    )?;
    Ok((cuda.value(&unfit)? == 0).then_some(map))
}

/// [`RunSums::sum_ascending`].
pub(super) fn sum<T: Scalar>(
    cuda: Cuda,
    x: &Slice<T>,
    map: &AscendingRuns<Cuda>,
    out: &mut Slice<T>,
) -> Result<()> {
    map.check(x.len(), out.len())?;
    let shape = policy::ascending_sum(map.shapes.len(), map.slots, size_of::<T>(), map.heads.is_some());
    let shape = shape.variant("GAP_BITS", map.form.gap_bits);
    let AscendingRuns { codes, bases, heads, shapes, before, .. } = map;
    let tiles = shapes.len() as u32;
    kernels::ascending_sum(cuda, shape, x, codes, bases, heads.as_deref(), shapes, before, tiles, out)
}
