//! The parallel primitives on the device. Each method chooses a launch; the kernels are in `kernels/`.

mod histogram;
mod kernels;
mod merge;
mod parts;
mod runs;
mod segmented_sort;
mod select;
mod sort;
mod staged;
mod sums;

pub(super) use histogram::histogram_of_neighbours;
pub(super) use sums::exclusive_scan;

use super::shape::{Shape, bytes_of};
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, tuning};
use crate::backend::{Backend, OffsetsRef, Order, Primitives, Scan};
use crate::error::{Error, Result};
use crate::scalar::{Combine, Element, Key, Number, Offset};
use std::ops::Range;

/// Returns the unsigned type with the same number of bytes, for kernels that only move or compare bits.
const fn bits_of<T: Element>() -> &'static str {
    match size_of::<T>() {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "c64",
    }
}

/// Returns the number of bits that numbers up to `largest` need.
pub(super) fn bits_to(largest: usize) -> u32 {
    usize::BITS - largest.leading_zeros()
}

/// Returns the smallest type that can index this many elements.
const fn index_for(n: usize) -> &'static str {
    if n as u64 >> 32 == 0 { "u32" } else { "u64" }
}

impl Cuda {
    /// Launches a kernel that divides the `n` elements of all segments into tiles of equal size. `launch` gets its
    /// shape, and the segment in which each tile starts.
    pub(super) fn by_tiles(
        self,
        offsets: OffsetsRef<'_, Self>,
        n: usize,
        launch: impl FnOnce(Shape, &Slice<u64>) -> Result<()>,
    ) -> Result<()> {
        match self.tile_starts(offsets, n)? {
            Some((shape, starts)) => launch(shape, &starts),
            None => Ok(()),
        }
    }

    /// Returns the segment in which each tile starts, or `None` if there are no elements.
    fn tile_starts(self, offsets: OffsetsRef<'_, Self>, n: usize) -> Result<Option<(Shape, DeviceVec<u64>)>> {
        let count = segment_count(offsets.len())?;
        if n == 0 {
            return Ok(None);
        }
        let (shape, tiles, find) = tuning::by_tiles(n);
        let mut starts = self.uninitialised(tiles + 1)?;
        kernels::tile_starts(self, find, offsets, count, n, &mut starts, tiles as u64)?;
        Ok(Some((shape, starts)))
    }
}

impl Primitives for Cuda {
    fn reduce<T: Element, O: Combine<T>>(&self, op: O, x: &Slice<T>, out: &mut Slice<T>) -> Result<()> {
        sums::reduce(*self, op, x, out)
    }

    fn segmented_reduce<T: Element, I: Offset, O: Combine<T>>(
        &self,
        op: O,
        x: &Slice<T>,
        offsets: &Slice<I>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        sums::segmented_reduce(*self, op, x, offsets, out)
    }

    fn reduce_by_key<K: Key, T: Element, O: Combine<T>>(
        &self,
        op: O,
        keys: &Slice<K>,
        values: &Slice<T>,
        keys_out: &mut Slice<K>,
        out: &mut Slice<T>,
    ) -> Result<usize> {
        sums::reduce_by_key(*self, op, keys, values, keys_out, out)
    }

    fn exclusive_scan<I: Offset>(&self, x: &Slice<u32>, out: &mut Slice<I>) -> Result<()> {
        sums::exclusive_scan(*self, x, out)
    }

    fn scan<T: Element, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Slice<T>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        sums::scan(*self, scan, op, x, out)
    }

    fn segmented_scan<T: Element, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Slice<T>,
        heads: &Slice<u8>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("length of the heads", x.len(), heads.len())?;
        sums::segmented_scan(*self, scan, op, x, Some(heads), out)
    }

    fn scan_segments<T: Element, I: Offset, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Slice<T>,
        offsets: &Slice<I>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        sums::scan_segments(*self, scan, op, x, offsets, out)
    }

    fn histogram(&self, keys: &Slice<u32>, counts: &mut Slice<u32>) -> Result<()> {
        histogram::histogram(*self, keys, counts)
    }

    fn offsets_of_sorted<I: Offset>(&self, segments: &Slice<u32>, offsets: &mut Slice<I>) -> Result<()> {
        let (count, n) = (segment_count(offsets.len())?, segments.len());
        if n < count {
            let shape = tuning::elementwise(self.0.chip, count + 1);
            return kernels::offsets_by_search(*self, shape, segments, n, offsets, count);
        }
        let shape = tuning::elementwise(self.0.chip, n + 1);
        kernels::offsets_of_sorted(*self, shape, segments, n, offsets, count)
    }

    fn expand_offsets<I: Offset>(&self, offsets: &Slice<I>, segments: &mut Slice<u32>) -> Result<()> {
        self.by_tiles(OffsetsRef::of(offsets), segments.len(), |shape, starts| {
            kernels::expand_offsets(*self, shape, offsets, segments.len(), starts, segments)
        })
    }

    fn head_flags<I: Offset>(&self, offsets: &Slice<I>, heads: &mut Slice<u8>) -> Result<()> {
        let (count, n) = (segment_count(offsets.len())?, heads.len());
        self.fill(0, heads)?;
        kernels::head_flags(*self, tuning::elementwise(self.0.chip, count), offsets, count, heads, n)
    }

    fn run_starts<K: Key, I: Offset>(&self, keys: &Slice<K>, starts: &mut Slice<I>) -> Result<usize> {
        select::run_starts(*self, keys, starts)
    }

    fn pair_starts<I: Offset>(&self, high: &Slice<u32>, low: &Slice<u32>) -> Result<DeviceVec<I>> {
        Error::check_dimension("length of the low parts", high.len(), low.len())?;
        select::pair_starts(*self, high, low)
    }

    fn compact<T: Element>(&self, x: &Slice<T>, flags: &Slice<u8>, out: &mut Slice<T>) -> Result<usize> {
        select::compact(*self, x, flags, out)
    }

    fn partition<T: Element>(&self, x: &Slice<T>, flags: &Slice<u8>, out: &mut Slice<T>) -> Result<usize> {
        select::partition(*self, x, flags, out)
    }

    fn unique<K: Key>(&self, x: &Slice<K>, out: &mut Slice<K>) -> Result<usize> {
        select::unique(*self, x, out)
    }

    fn is_sorted<K: Key>(&self, keys: &Slice<K>, strictly: bool) -> Result<bool> {
        let mut wrong = self.zeros(1)?;
        let shape = tuning::elementwise(self.0.chip, keys.len());
        kernels::is_sorted(*self, shape, keys, keys.len(), u32::from(strictly), &mut wrong)?;
        Ok(self.value(&wrong)? == 0)
    }

    fn sort<K: Key>(&self, keys: &mut DeviceVec<K>, bits: Range<u32>) -> Result<()> {
        sort::sort::<K, u8>(*self, keys, None, bits)
    }

    fn sort_pairs<K: Key, V: Element>(
        &self,
        keys: &mut DeviceVec<K>,
        values: &mut DeviceVec<V>,
        bits: Range<u32>,
    ) -> Result<()> {
        Error::check_dimension("length of the values", keys.len(), values.len())?;
        sort::sort(*self, keys, Some(values), bits)
    }

    fn segmented_sort_pairs<K: Key, V: Element, I: Offset>(
        &self,
        offsets: &Slice<I>,
        keys: &mut DeviceVec<K>,
        values: &mut DeviceVec<V>,
    ) -> Result<()> {
        Error::check_dimension("length of the values", keys.len(), values.len())?;
        segmented_sort::sort_pairs(*self, offsets, keys, values)
    }

    fn merge_sort<K: Key>(&self, order: Order, keys: &mut DeviceVec<K>) -> Result<()> {
        merge::sort::<K, u8>(*self, order, keys, None)
    }

    fn merge_sort_pairs<K: Key, V: Element>(
        &self,
        order: Order,
        keys: &mut DeviceVec<K>,
        values: &mut DeviceVec<V>,
    ) -> Result<()> {
        Error::check_dimension("length of the values", keys.len(), values.len())?;
        merge::sort(*self, order, keys, Some(values))
    }

    fn merge<K: Key>(&self, order: Order, a: &Slice<K>, b: &Slice<K>, out: &mut Slice<K>) -> Result<()> {
        merge::merge::<K, u8>(*self, order, (a, None), (b, None), (out, None))
    }

    fn merge_pairs<K: Key, V: Element>(
        &self,
        order: Order,
        a: (&Slice<K>, &Slice<V>),
        b: (&Slice<K>, &Slice<V>),
        out: (&mut Slice<K>, &mut Slice<V>),
    ) -> Result<()> {
        Error::check_dimension("length of the first values", a.0.len(), a.1.len())?;
        Error::check_dimension("length of the second values", b.0.len(), b.1.len())?;
        Error::check_dimension("length of the merged values", out.0.len(), out.1.len())?;
        merge::merge(*self, order, (a.0, Some(a.1)), (b.0, Some(b.1)), (out.0, Some(out.1)))
    }

    fn gather<T: Element, I: Offset>(
        &self,
        x: &Slice<T>,
        indices: &Slice<I>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("length of the gathered elements", indices.len(), out.len())?;
        let shape = tuning::gather(out.len()).variant("ITEM_BYTES", bytes_of::<T>());
        kernels::gather(*self, shape, x, x.len(), indices, out, out.len(), self.0.misses())
    }

    fn scatter<T: Element, I: Offset>(
        &self,
        x: &Slice<T>,
        indices: &Slice<I>,
        out: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("length of the indices", x.len(), indices.len())?;
        let shape = tuning::gather(x.len()).variant("ITEM_BYTES", bytes_of::<T>());
        kernels::scatter(*self, shape, x, x.len(), indices, out, out.len(), self.0.misses())
    }

    fn sequence<I: Offset>(&self, out: &mut Slice<I>) -> Result<()> {
        let n = out.len();
        kernels::sequence(*self, tuning::elementwise(self.0.chip, n), out, n)
    }

    fn add_constant<T: Number>(&self, value: T, x: &mut Slice<T>) -> Result<()> {
        let n = x.len();
        kernels::add_constant(*self, tuning::elementwise(self.0.chip, n), value, x, n)
    }

    fn pack(&self, high: &Slice<u32>, low: &Slice<u32>, shift: u32, out: &mut Slice<u64>) -> Result<()> {
        let n = check_packed(high.len(), low.len(), shift)?;
        Error::check_dimension("length of the packed keys", n, out.len())?;
        kernels::pack(*self, tuning::elementwise(self.0.chip, n), high, low, shift, out, n)
    }

    fn mirror(
        &self,
        high: &Slice<u32>,
        low: &Slice<u32>,
        beyond: u32,
        out: (&mut Slice<u32>, &mut Slice<u32>),
    ) -> Result<()> {
        let n = check_packed(high.len(), low.len(), 0)?;
        Error::check_dimension("length of the mirrored row numbers", 2 * n, out.0.len())?;
        Error::check_dimension("length of the mirrored column numbers", 2 * n, out.1.len())?;
        let shape = tuning::elementwise(self.0.chip, n);
        kernels::mirror(*self, shape, high, low, beyond, out.0, out.1, n)
    }

    fn unpack(
        &self,
        packed: &Slice<u64>,
        shift: u32,
        high: &mut Slice<u32>,
        low: &mut Slice<u32>,
    ) -> Result<()> {
        let n = check_packed(high.len(), low.len(), shift)?;
        Error::check_dimension("length of the packed keys", n, packed.len())?;
        kernels::unpack(*self, tuning::elementwise(self.0.chip, n), packed, shift, high, low, n)
    }
}

/// Returns the number of segments, one less than that of their offsets.
fn segment_count(offsets: usize) -> Result<usize> {
    offsets.checked_sub(1).ok_or(Error::Dimension { what: "number of offsets", expected: 1, got: 0 })
}

fn check_packed(high: usize, low: usize, shift: u32) -> Result<usize> {
    Error::check_dimension("length of the low halves", high, low)?;
    if shift > 32 {
        return Err(Error::InvalidArgument(format!("a shift of {shift} bits: 32 at most")));
    }
    Ok(high)
}
