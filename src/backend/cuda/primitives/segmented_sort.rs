//! Sorts each segment separately. Short segments are sorted together in one launch, and longer ones by a block each.
//! Those that are too long for a block are sorted together by radix sort, by key and segment number.

use super::{kernels, select};
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, Primitives};
use crate::error::{Error, Result};
use crate::scalar::{Element, Key, Offset};

/// The longest segment for a block of the small kind. Used only to choose the kind.
const SMALL_BLOCK: usize = 1;
const LARGE_BLOCK: usize = 1 << 12;

pub(super) fn sort_pairs<K: Key, V: Element, I: Offset>(
    cuda: Cuda,
    offsets: &Slice<I>,
    keys: &mut DeviceVec<K>,
    values: &mut DeviceVec<V>,
) -> Result<()> {
    let (n, count) = (keys.len(), super::segment_count(offsets.len())?);
    if n < 2 {
        return Ok(());
    }
    let chip = cuda.0.chip;
    let variant = |shape: Shape| shape.for_values::<V>();
    let (short, find, tiles) = tuning::short_segments(n);
    let block =
        |longest, segments| tuning::merge_segments(chip, longest, segments, size_of::<K>(), size_of::<V>());
    let limits = [short, block(SMALL_BLOCK, 0).0, block(LARGE_BLOCK, 0).0];

    let mut counts = cuda.zeros::<u64>(4)?;
    let each = variant(tiles.blocks_like(tuning::elementwise(chip, count)));
    let [first, second, third] = limits.map(|limit| limit as u32);
    kernels::segment_classes::<K, I>(cuda, each, offsets, count, n, first, second, third, &mut counts)?;
    let mut longer = [0; 4];
    cuda.read(&counts, &mut longer)?;
    let [longer @ .., wrong] = longer.map(|count| count as usize);
    if wrong > 0 || count == 0 {
        return Err(Error::InvalidArgument(format!("offsets do not ascend from 0 to {n}")));
    }

    let mut sorted = cuda.uninitialised::<K>(n)?;
    let mut moved = cuda.uninitialised::<V>(n)?;
    let (from, to) = (values.address(), moved.address());
    if longer[0] < count {
        let mut starts = cuda.uninitialised::<u64>(tiles.blocks as usize + 1)?;
        let number = u64::from(tiles.blocks);
        kernels::short_tiles::<K, I>(cuda, variant(find), offsets, count, &mut starts, number)?;
        let tiles = variant(tiles);
        kernels::sort_short_segments(cuda, tiles, keys, from, offsets, &starts, &sorted, to, n)?;
    }
    for (class, longest) in [(0, SMALL_BLOCK), (1, LARGE_BLOCK)] {
        let segments = longer[class] - longer[class + 1];
        if segments == 0 {
            continue;
        }
        let mut flags = cuda.uninitialised::<u8>(count)?;
        let (low, high) = (limits[class] as u64, limits[class + 1] as u64);
        kernels::segment_flags::<K, I>(cuda, each, offsets, count, low, high, &mut flags)?;
        let mut list = cuda.uninitialised::<u32>(count)?;
        select::positions(cuda, &flags, &mut list)?;
        let shape = variant(block(longest, segments).1);
        kernels::segments::merge_sort_segments(cuda, shape, keys, &sorted, from, to, offsets, &list)?;
    }
    if longer[2] > 0 {
        let mut segment = cuda.uninitialised::<u32>(n)?;
        cuda.expand_offsets(offsets, &mut segment)?;
        let mut flags = cuda.uninitialised::<u8>(n)?;
        let each = variant(tiles.blocks_like(tuning::elementwise(chip, n)));
        kernels::element_flags::<K, I>(cuda, each, offsets, &segment, n, limits[2] as u64, &mut flags)?;
        let bits = usize::BITS - count.leading_zeros();
        if n as u64 >> 32 == 0 {
            by_number::<K, V, u32>(cuda, bits, &flags, &segment, (keys, values), (&mut sorted, &mut moved))?;
        } else {
            by_number::<K, V, u64>(cuda, bits, &flags, &segment, (keys, values), (&mut sorted, &mut moved))?;
        }
    }
    std::mem::swap(keys, &mut sorted);
    std::mem::swap(values, &mut moved);
    Ok(())
}

/// Sorts the elements with a flag by key, and then stably by the segment's number, which moves them to the places of
/// their segments.
fn by_number<K: Key, V: Element, P: Offset + Key>(
    cuda: Cuda,
    bits: u32,
    flags: &Slice<u8>,
    segment: &Slice<u32>,
    (keys, values): (&Slice<K>, &Slice<V>),
    (sorted, moved): (&mut Slice<K>, &mut Slice<V>),
) -> Result<()> {
    let mut places = cuda.uninitialised::<P>(flags.len())?;
    let count = select::positions(cuda, flags, &mut places)?;
    let places = places.part(0..count);
    let mut order = cuda.uninitialised::<P>(count)?;
    cuda.sequence(&mut order)?;
    let mut some_keys = cuda.uninitialised::<K>(count)?;
    cuda.gather(keys, places, &mut some_keys)?;
    super::sort::sort(cuda, &mut some_keys, Some(&mut order), 0..K::BITS)?;
    let (mut of_place, mut number) = (cuda.uninitialised::<u32>(count)?, cuda.uninitialised::<u32>(count)?);
    cuda.gather(segment, places, &mut of_place)?;
    cuda.gather(&of_place, &order, &mut number)?;
    super::sort::sort(cuda, &mut number, Some(&mut order), 0..bits)?;
    let mut from = cuda.uninitialised::<P>(count)?;
    cuda.gather(places, &order, &mut from)?;
    cuda.gather(keys, &from, &mut some_keys)?;
    cuda.scatter(&some_keys, places, sorted)?;
    let mut some_values = cuda.uninitialised::<V>(count)?;
    cuda.gather(values, &from, &mut some_values)?;
    cuda.scatter(&some_values, places, moved)
}
