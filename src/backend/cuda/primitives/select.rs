//! Selections: some of the elements are copied, in order, to the beginning of the output.

use super::{bits_of, index_for, kernels};
use crate::backend::Backend;
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, tuning};
use crate::error::{Error, Result};
use crate::scalar::{Element, Key, Offset};

/// Runs `compact.cu` in a mode. Returns the number of selected elements.
fn run<T: Element>(
    cuda: Cuda,
    mode: &'static str,
    x: Option<&Slice<T>>,
    flags: Option<&Slice<u8>>,
    out: &mut Slice<T>,
    rest: Option<&mut Slice<T>>,
    n: usize,
) -> Result<usize> {
    if n == 0 {
        return Ok(0);
    }
    let (shape, words) = tuning::compact(cuda.0.chip, mode, n, size_of::<T>());
    // If positions are selected, the index type is that of the output.
    let index = if mode == "POSITIONS" { T::NAME } else { index_for(n) };
    let shape = shape.variant("IN", bits_of::<T>()).variant("INDEX", index);
    let mut kept = cuda.zeros(1)?;
    let workspace = cuda.0.workspaces.lookback(words)?;
    kernels::compact(cuda, shape, x, flags, out, rest, n, &mut kept, workspace.address)?;
    drop(workspace);
    Ok(cuda.value(&kept)? as usize)
}

fn check<T: Element>(x: &Slice<T>, flags: &Slice<u8>, out: &Slice<T>) -> Result<()> {
    Error::check_dimension("length of the flags", x.len(), flags.len())?;
    Error::check_dimension("length of the selection", x.len(), out.len())
}

pub(super) fn compact<T: Element>(
    cuda: Cuda,
    x: &Slice<T>,
    flags: &Slice<u8>,
    out: &mut Slice<T>,
) -> Result<usize> {
    check(x, flags, out)?;
    run(cuda, "FLAGGED", Some(x), Some(flags), out, None, x.len())
}

pub(super) fn partition<T: Element>(
    cuda: Cuda,
    x: &Slice<T>,
    flags: &Slice<u8>,
    out: &mut Slice<T>,
) -> Result<usize> {
    check(x, flags, out)?;
    let mut rest = cuda.uninitialised(x.len())?;
    let kept = run(cuda, "PARTITION", Some(x), Some(flags), out, Some(&mut rest), x.len())?;
    cuda.copy(rest.part(0..x.len() - kept), out.part_mut(kept..x.len()))?;
    Ok(kept)
}

pub(super) fn unique<K: Key>(cuda: Cuda, x: &Slice<K>, out: &mut Slice<K>) -> Result<usize> {
    Error::check_dimension("length of the selection", x.len(), out.len())?;
    run(cuda, "UNIQUE", Some(x), None, out, None, x.len())
}

/// Writes the positions of nonzero flags to the beginning of `out`. Returns their number.
pub(super) fn positions<I: Offset>(cuda: Cuda, flags: &Slice<u8>, out: &mut Slice<I>) -> Result<usize> {
    run(cuda, "POSITIONS", None, Some(flags), out, None, flags.len())
}

pub(super) fn run_starts<K: Key, I: Offset>(
    cuda: Cuda,
    keys: &Slice<K>,
    starts: &mut Slice<I>,
) -> Result<usize> {
    let n = keys.len();
    let mut heads = cuda.uninitialised::<u8>(n)?;
    kernels::run_heads(cuda, tuning::elementwise(cuda.0.chip, n), keys, n, &mut heads)?;
    let runs = if starts.len() >= n {
        run(cuda, "POSITIONS", None, Some(&*heads), starts, None, n)?
    } else {
        // The caller knows that there are few runs, but the kernel does not, so it gets space for the maximum.
        let mut all = cuda.uninitialised::<I>(n)?;
        let runs = run(cuda, "POSITIONS", None, Some(&*heads), &mut all, None, n)?;
        Error::check_dimension("room for the runs' starts", runs, starts.len().min(runs))?;
        cuda.copy(all.part(0..runs), starts.part_mut(0..runs))?;
        runs
    };
    if starts.len() > runs {
        cuda.fill(I::from_usize(n), starts.part_mut(runs..runs + 1))?;
    }
    Ok(runs)
}

/// Returns the positions at which a pair differs from the previous one, and the number of pairs. The buffer has exactly
/// this length.
pub(super) fn pair_starts<I: Offset>(
    cuda: Cuda,
    high: &Slice<u32>,
    low: &Slice<u32>,
) -> Result<DeviceVec<I>> {
    let n = high.len();
    let (mut heads, mut count) = (cuda.uninitialised::<u8>(n)?, cuda.zeros(1)?);
    kernels::pair_heads(cuda, tuning::elementwise(cuda.0.chip, n), high, low, n, &mut heads, &mut count)?;
    let runs = cuda.value(&count)? as usize;
    let mut starts = cuda.uninitialised(runs + 1)?;
    run(cuda, "POSITIONS", None, Some(&*heads), &mut starts, None, n)?;
    cuda.fill(I::from_usize(n), starts.part_mut(runs..runs + 1))?;
    Ok(starts)
}
