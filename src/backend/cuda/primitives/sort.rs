//! Sorts and merges.

use super::{bytes_of, kernels};
use crate::backend::cuda::Cuda;
use crate::backend::cuda::policy::{self, Sort};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::{Backend, Order, Primitives};
use crate::error::{Error, Result};
use crate::scalar::{Element, Key, Offset};
use std::ops::Range;

/// Bits of a digit in `sort.cu`.
const DIGIT: u32 = 8;
/// Words in front of the look-back of the sort's workspace.
const HEADER: usize = 2064;

/// Radix sort, stable, by the given bits of the keys' ordered form.
pub(super) fn sort<K: Key, V: Element>(
    cuda: Cuda,
    keys: &mut DeviceVec<K>,
    values: Option<&mut DeviceVec<V>>,
    bits: Range<u32>,
) -> Result<()> {
    if bits.start > bits.end || bits.end > K::BITS {
        return Err(Error::InvalidArgument(format!("sorting by bits {bits:?} of keys of {} bits", K::BITS)));
    }
    let (n, first, count) = (keys.len(), bits.start, bits.end - bits.start);
    if n < 2 || count == 0 {
        return Ok(());
    }
    let (value_bytes, width) = match values {
        Some(_) => (bytes_of::<V>(), size_of::<V>()),
        None => ("0", 0),
    };
    let sort = Sort::of(n, size_of::<K>(), width > 0);
    let tiles = sort.tiles(n);
    let (look, look_bytes) = if n < 1 << 30 { ("u32", 4) } else { ("u64", 8) };
    let variant = |shape: crate::backend::cuda::launch::Shape| {
        shape.variant("VALUE_BYTES", value_bytes).variant("LOOK", look)
    };
    let pass_shape = variant(sort.pass(n, size_of::<K>(), width));
    let n64 = n as u64;
    if n <= Sort::SMALL {
        let values = values.map_or(0, |values| values.address());
        return kernels::sort_small(cuda, pass_shape, keys, keys, values, values, n64, first, count);
    }
    let passes = count.div_ceil(DIGIT);
    let mut other_keys = cuda.uninitialised::<K>(n)?;
    let mut other_values = cuda.uninitialised::<V>(if width > 0 { n } else { 0 })?;
    let (a, b) = (values.as_ref().map_or(0, |values| values.address()), other_values.address());
    let lookback = (passes as usize * tiles * 256 * look_bytes).div_ceil(8);
    let workspace = cuda.0.sort_workspace(HEADER + lookback)?;
    let histogram = variant(sort.histogram(cuda.0.chip, n));
    let words = lookback as u64;
    kernels::sort_histogram(cuda, histogram, keys, n64, first, count, passes, workspace.address, words)?;
    for pass in 0..passes {
        kernels::sort_pass(
            cuda,
            pass_shape,
            keys,
            &other_keys,
            a,
            b,
            n64,
            first,
            count,
            passes,
            pass,
            workspace.address,
        )?;
    }
    kernels::sort_finish(cuda, histogram, keys, &other_keys, a, b, n64, passes, workspace.address)?;
    drop(workspace);
    if passes % 2 == 1 {
        std::mem::swap(keys, &mut other_keys);
        if let Some(values) = values {
            std::mem::swap(values, &mut other_values);
        }
    }
    Ok(())
}

/// By the whole key. Descending is ascending with the order turned round, which keeps equal keys in place.
pub(super) fn sort_in_order<K: Key, V: Element>(
    cuda: Cuda,
    order: Order,
    keys: &mut DeviceVec<K>,
    values: Option<&mut DeviceVec<V>>,
) -> Result<()> {
    let flip = |keys: &Slice<K>| match order {
        Order::Ascending => Ok(()),
        Order::Descending => {
            let n = keys.len();
            kernels::flip(cuda, policy::elementwise(cuda.0.chip, n), keys, keys, n as u64)
        }
    };
    flip(keys)?;
    sort(cuda, keys, values, 0..K::BITS)?;
    flip(keys)
}

/// By key, and then stably by segment.
pub(super) fn segmented_sort_pairs<K: Key, V: Element, I: Offset>(
    cuda: Cuda,
    offsets: &Slice<I>,
    keys: &mut DeviceVec<K>,
    values: &mut DeviceVec<V>,
) -> Result<()> {
    let n = keys.len();
    let count = super::segment_count(offsets)?;
    let mut segments = cuda.uninitialised::<u32>(n)?;
    cuda.expand_offsets(offsets, &mut segments)?;
    let mut places = cuda.uninitialised::<u64>(n)?;
    cuda.sequence(&mut places)?;
    let mut sorted = cuda.uninitialised::<K>(n)?;
    cuda.copy(keys, &mut sorted)?;
    sort(cuda, &mut sorted, Some(&mut places), 0..K::BITS)?;
    let mut segment = cuda.uninitialised::<u32>(n)?;
    cuda.gather(&segments, &places, &mut segment)?;
    sort(cuda, &mut segment, Some(&mut places), 0..usize::BITS - count.leading_zeros())?;
    let mut moved = cuda.uninitialised::<V>(n)?;
    cuda.gather(keys, &places, &mut sorted)?;
    cuda.gather(values, &places, &mut moved)?;
    std::mem::swap(keys, &mut sorted);
    std::mem::swap(values, &mut moved);
    Ok(())
}

type Pairs<'a, K, V> = (&'a Slice<K>, Option<&'a Slice<V>>);

/// A stable sort of one behind the other.
pub(super) fn merge<K: Key, V: Element>(
    cuda: Cuda,
    order: Order,
    a: Pairs<'_, K, V>,
    b: Pairs<'_, K, V>,
    out: (&mut Slice<K>, Option<&mut Slice<V>>),
) -> Result<()> {
    fn joined<T: Element>(cuda: Cuda, a: &Slice<T>, b: &Slice<T>) -> Result<DeviceVec<T>> {
        let mut both = cuda.uninitialised(a.len() + b.len())?;
        let (first, second) = both.split_mut(a.len());
        cuda.copy(a, first)?;
        cuda.copy(b, second)?;
        Ok(both)
    }
    Error::check_dimension("length of the merged keys", a.0.len() + b.0.len(), out.0.len())?;
    let mut keys = joined(cuda, a.0, b.0)?;
    match (a.1, b.1, out.1) {
        (Some(first), Some(second), Some(out_values)) => {
            let mut values = joined(cuda, first, second)?;
            sort_in_order(cuda, order, &mut keys, Some(&mut values))?;
            cuda.copy(&values, out_values)?;
        }
        _ => sort_in_order::<K, V>(cuda, order, &mut keys, None)?,
    }
    cuda.copy(&keys, out.0)
}
