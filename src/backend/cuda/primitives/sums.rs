//! Reductions and scans.

use super::{bits_of, index_for, kernels, select};
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, Primitives, Scan};
use crate::error::{Error, Result};
use crate::scalar::{Combine, Element, Key, Offset};

/// Returns the operation's name in `reduce.cu`, and in `combine.cuh`.
fn names<T: Element, O: Combine<T>>(_op: O) -> (&'static str, &'static str) {
    match O::NAME {
        "sum" => ("SUM", "op_sum"),
        "min" => ("MIN", "op_min"),
        _ => ("MAX", "op_max"),
    }
}

pub(super) fn reduce<T: Element, O: Combine<T>>(
    cuda: Cuda,
    op: O,
    x: &Slice<T>,
    out: &mut Slice<T>,
) -> Result<()> {
    Error::check_dimension("length of the result", 1, out.len())?;
    let shape = tuning::reduce(cuda.0.chip, x.len(), size_of::<T>())
        .variant("OP", names(op).0)
        .variant("ACC", T::NAME)
        .variant("OUT", T::NAME);
    kernels::reduce(cuda, shape, x, 0, x.len(), out, cuda.0.workspaces.reduce_workspace())
}

pub(super) fn segmented_reduce<T: Element, I: Offset, O: Combine<T>>(
    cuda: Cuda,
    op: O,
    x: &Slice<T>,
    offsets: &Slice<I>,
    out: &mut Slice<T>,
) -> Result<()> {
    Error::check_dimension("number of segments", super::segment_count(offsets.len())?, out.len())?;
    segmented(cuda, "REDUCE", op, x, offsets, out)
}

/// Runs `segmented.cu` in one of its modes.
fn segmented<T: Element, I: Offset, O: Combine<T>>(
    cuda: Cuda,
    mode: &'static str,
    op: O,
    x: &Slice<T>,
    offsets: &Slice<I>,
    out: &mut Slice<T>,
) -> Result<()> {
    let (n, segments) = (x.len(), super::segment_count(offsets.len())?);
    if n + segments == 0 {
        return Ok(());
    }
    let (words, scratch, partition, tiles) =
        tuning::segmented(cuda.0.chip, n, segments, size_of::<T>(), size_of::<I>() > 4);
    let variant = |shape: Shape| shape.variant("OP", names(op).1).variant("MODE", mode);
    let mut starts = cuda.uninitialised::<u64>(scratch)?;
    let count = segments;
    kernels::segment_partition::<T, I>(cuda, variant(partition), offsets, count, n, &mut starts)?;
    let workspace = cuda.0.workspaces.lookback(words)?;
    kernels::segmented(cuda, variant(tiles), x, offsets, out, count, n, &starts, workspace.address)
}

pub(super) fn reduce_by_key<K: Key, T: Element, O: Combine<T>>(
    cuda: Cuda,
    op: O,
    keys: &Slice<K>,
    values: &Slice<T>,
    keys_out: &mut Slice<K>,
    out: &mut Slice<T>,
) -> Result<usize> {
    let n = keys.len();
    Error::check_dimension("length of the values", n, values.len())?;
    Error::check_dimension("length of the keys' output", n, keys_out.len())?;
    Error::check_dimension("length of the values' output", n, out.len())?;
    if n == 0 {
        return Ok(0);
    }
    if size_of::<T>() >= 4 && size_of::<K>() >= 4 {
        let (shape, words) = tuning::reduce_by_key(cuda.0.chip, n, size_of::<K>(), size_of::<T>());
        let shape = shape.variant("KEY", bits_of::<K>()).variant("INDEX", index_for(n));
        let shape = shape.variant("OP", names(op).1);
        let mut runs = cuda.zeros(1)?;
        let workspace = cuda.0.workspaces.lookback(words)?;
        let address = workspace.address;
        kernels::reduce_by_key(cuda, shape, keys, values, keys_out, out, n, &mut runs, address)?;
        drop(workspace);
        return Ok(cuda.value(&runs)? as usize);
    }
    let mut starts = cuda.uninitialised::<u64>(n + 1)?;
    let runs = select::run_starts(cuda, keys, &mut starts)?;
    segmented_reduce(cuda, op, values, starts.part(0..runs + 1), out.part_mut(0..runs))?;
    cuda.gather(keys, starts.part(0..runs), keys_out.part_mut(0..runs))?;
    Ok(runs)
}

/// Computes for each element the sum of all elements before it, or up to it, in one pass. Also writes the total at the
/// end if there is space for it.
fn prefix_sum<T: Element, S: Element>(
    cuda: Cuda,
    scan: Scan,
    x: &Slice<T>,
    out: &mut Slice<S>,
) -> Result<()> {
    let (n, outputs) = (x.len(), out.len());
    if outputs == 0 {
        return Ok(());
    }
    if S::NAME == T::NAME
        && outputs == n
        && (x.address() | out.address()).is_multiple_of(16)
        && let Some((shape, words)) = tuning::scan_bulk(cuda.0.chip, n, size_of::<T>())
    {
        let shape = shape.variant("INCLUSIVE", if scan == Scan::Inclusive { "1" } else { "0" });
        let workspace = cuda.0.workspaces.lookback(words)?;
        return kernels::scan_bulk(cuda, shape, x, out.address(), n, workspace.address);
    }
    let (shape, words) = tuning::scan(cuda.0.chip, outputs, size_of::<T>(), size_of::<S>());
    let inclusive = if scan == Scan::Inclusive { "1" } else { "0" };
    let shape = shape.variant("ACC", S::NAME).variant("INCLUSIVE", inclusive);
    let workspace = cuda.0.workspaces.lookback(words)?;
    kernels::scan(cuda, shape, x, out, n, outputs as u64, workspace.address)
}

/// Computes for each element the sum of the elements before it. Also writes the total at the end if there is space for
/// it.
pub(in crate::backend::cuda) fn exclusive_scan<T: Offset, I: Offset>(
    cuda: Cuda,
    x: &Slice<T>,
    out: &mut Slice<I>,
) -> Result<()> {
    let n = x.len();
    if out.len() != n + 1 {
        Error::check_dimension("length of the offsets", n, out.len())?;
    }
    prefix_sum(cuda, Scan::Exclusive, x, out)
}

pub(super) fn scan<T: Element, O: Combine<T>>(
    cuda: Cuda,
    scan: Scan,
    op: O,
    x: &Slice<T>,
    out: &mut Slice<T>,
) -> Result<()> {
    Error::check_dimension("length of the scan", x.len(), out.len())?;
    if O::NAME == "sum" && size_of::<T>() >= 4 {
        prefix_sum(cuda, scan, x, out)
    } else {
        segmented_scan(cuda, scan, op, x, None, out)
    }
}

pub(super) fn segmented_scan<T: Element, O: Combine<T>>(
    cuda: Cuda,
    scan: Scan,
    op: O,
    x: &Slice<T>,
    heads: Option<&Slice<u8>>,
    out: &mut Slice<T>,
) -> Result<()> {
    let n = x.len();
    Error::check_dimension("length of the scan", n, out.len())?;
    if n == 0 {
        return Ok(());
    }
    let (shape, words) = tuning::scan_any(cuda.0.chip, n, size_of::<T>());
    let inclusive = if scan == Scan::Inclusive { "1" } else { "0" };
    let shape =
        shape.variant("OP", names(op).1).variant("INDEX", index_for(n)).variant("INCLUSIVE", inclusive);
    let workspace = cuda.0.workspaces.lookback(words)?;
    kernels::scan_any(cuda, shape, x, heads, out, n, workspace.address)
}

/// [`segmented_scan`] with the segments' offsets instead of heads.
pub(super) fn scan_segments<T: Element, I: Offset, O: Combine<T>>(
    cuda: Cuda,
    scan: Scan,
    op: O,
    x: &Slice<T>,
    offsets: &Slice<I>,
    out: &mut Slice<T>,
) -> Result<()> {
    Error::check_dimension("length of the scan", x.len(), out.len())?;
    segmented(cuda, if scan == Scan::Inclusive { "SCAN" } else { "SCAN_EXCLUSIVE" }, op, x, offsets, out)
}
