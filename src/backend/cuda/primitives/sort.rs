//! Radix sorts.

use super::kernels;
use crate::backend::cuda::Cuda;
use crate::backend::cuda::shape::bytes_of;
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::tuning::Sort;
use crate::error::{Error, Result};
use crate::scalar::{Element, Key};
use std::ops::Range;

/// The number of bits of a digit in `sort.cu`.
const DIGIT: u32 = 8;
/// The number of words in the workspace before the look-back.
const HEADER: usize = 2064;

/// Two buffers of keys, and two of values (or null). A sort alternates between the two.
pub(super) struct Pair<'a, K> {
    pub(super) keys: (&'a Slice<K>, &'a Slice<K>),
    pub(super) values: (u64, u64),
    pub(super) value_bytes: (&'static str, usize),
}

/// Sorts stably by these bits of the keys' ordered form (radix sort).
pub(super) fn sort<K: Key, V: Element>(
    cuda: Cuda,
    keys: &mut DeviceVec<K>,
    mut values: Option<&mut DeviceVec<V>>,
    bits: Range<u32>,
) -> Result<()> {
    if bits.start > bits.end || bits.end > K::BITS {
        return Err(Error::InvalidArgument(format!("sorting by bits {bits:?} of keys of {} bits", K::BITS)));
    }
    let n = keys.len();
    if n < 2 || bits.is_empty() {
        return Ok(());
    }
    let value_bytes = if values.is_some() { (bytes_of::<V>(), size_of::<V>()) } else { ("0", 0) };
    let from = values.as_ref().map_or(0, |values| values.address());
    let sort = Sort::of(cuda.0.chip, n, size_of::<K>(), value_bytes.1);
    if sort.one_block() {
        let (first, count) = (bits.start, bits.end - bits.start);
        let shape = sort.pass().variant("VALUE_BYTES", value_bytes.0).variant("LOOK", "u32");
        return kernels::sort_small(cuda, shape, keys, keys, from, from, n, first, count);
    }
    let mut other_keys = cuda.uninitialised::<K>(n)?;
    let mut other_values = cuda.uninitialised::<V>(if value_bytes.1 > 0 { n } else { 0 })?;
    let to = if value_bytes.1 > 0 { other_values.address() } else { 0 };
    let in_second = passes(cuda, &Pair { keys: (keys, &other_keys), values: (from, to), value_bytes }, bits)?;
    if in_second {
        std::mem::swap(keys, &mut other_keys);
        if let Some(values) = &mut values {
            std::mem::swap(*values, &mut other_values);
        }
    }
    Ok(())
}

/// Runs the passes of a sort, starting from the first buffers. Returns true if the result is in the second ones. A
/// single pass does not write to the first buffers ([`passes_for`]).
pub(super) fn passes<K: Key>(cuda: Cuda, pair: &Pair<'_, K>, bits: Range<u32>) -> Result<bool> {
    let (a, b) = pair.keys;
    let (from, to) = pair.values;
    let n = a.len();
    let sort = Sort::of(cuda.0.chip, n, size_of::<K>(), pair.value_bytes.1);
    let (look, look_bytes) = if n < 1 << 30 { ("u32", 4) } else { ("u64", 8) };
    let variant = |shape: crate::backend::cuda::shape::Shape| {
        shape.variant("VALUE_BYTES", pair.value_bytes.0).variant("LOOK", look)
    };
    let (first, count, passes) = (bits.start, bits.end - bits.start, passes_for(&bits));
    let lookback = (passes as usize * sort.tiles() * 256 * look_bytes).div_ceil(8);
    let workspace = cuda.0.workspaces.sort_workspace(HEADER + lookback)?;
    let (at, words) = (workspace.address, lookback as u64);
    let (histogram, shape) = (variant(sort.histogram()), variant(sort.pass()));
    kernels::sort_histogram(cuda, histogram, a, n, first, count, passes, at, words)?;
    for pass in 0..passes {
        kernels::sort_pass(cuda, shape, a, b, from, to, n, first, count, passes, pass, at)?;
    }
    kernels::sort_finish(cuda, histogram, a, b, from, to, n, passes, at)?;
    Ok(passes % 2 == 1)
}

/// Returns the number of passes of a sort by these bits.
pub(super) fn passes_for(bits: &Range<u32>) -> u32 {
    (bits.end - bits.start).div_ceil(DIGIT)
}
