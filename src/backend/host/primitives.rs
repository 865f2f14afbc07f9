//! The primitives on the host: checks lengths, and calls the file of each primitive.

use super::{Host, histogram, map, merge, radix, reduce, scan, select};
use crate::backend::{Order, Primitives, Scan};
use crate::error::{Error, Result};
use crate::scalar::{Combine, Element, Key, Number, Offset};
use std::ops::Range;

pub(super) const OUT: &str = "length of the output";

pub(super) fn same(what: &'static str, expected: usize, got: usize) -> Result<()> {
    Error::check_dimension(what, expected, got)
}

/// Checks that the offsets of `segments` segments ascend from 0 to `n`.
fn check_offsets<I: Offset>(offsets: &[I], segments: usize, n: usize) -> Result<()> {
    same("number of offsets", segments + 1, offsets.len())?;
    same("last offset", n, offsets[segments].to_usize())?;
    same("first offset", 0, offsets[0].to_usize())?;
    if !offsets.is_sorted() {
        return Err(Error::InvalidArgument("offsets do not ascend".into()));
    }
    Ok(())
}

/// Checks that the offsets of `segments` segments ascend within `0..=n`.
fn check_parts<I: Offset>(offsets: &[I], segments: usize, n: usize) -> Result<()> {
    same("number of offsets", segments + 1, offsets.len())?;
    if !offsets.is_sorted() || offsets[segments].to_usize() > n {
        return Err(Error::InvalidArgument(format!("offsets do not ascend up to at most {n}")));
    }
    Ok(())
}

fn fits(count: Option<usize>, room: usize) -> Result<usize> {
    count.ok_or(Error::Dimension { what: "room in the output", expected: room + 1, got: room })
}

impl Primitives for Host {
    fn reduce<T: Element, O: Combine<T>>(&self, op: O, x: &[T], out: &mut [T]) -> Result<()> {
        same(OUT, 1, out.len())?;
        out[0] = reduce::all(op, x);
        Ok(())
    }

    fn segmented_reduce<T: Element, I: Offset, O: Combine<T>>(
        &self,
        op: O,
        x: &[T],
        offsets: &[I],
        out: &mut [T],
    ) -> Result<()> {
        check_parts(offsets, out.len(), x.len())?;
        reduce::segments(op, x, offsets, out);
        Ok(())
    }

    fn reduce_by_key<K: Key, T: Element, O: Combine<T>>(
        &self,
        op: O,
        keys: &[K],
        values: &[T],
        keys_out: &mut [K],
        out: &mut [T],
    ) -> Result<usize> {
        same("number of values", keys.len(), values.len())?;
        same(OUT, keys.len(), keys_out.len())?;
        same(OUT, keys.len(), out.len())?;
        Ok(reduce::by_key(op, keys, values, keys_out, out))
    }

    fn exclusive_scan<I: Offset>(&self, x: &[u32], out: &mut [I]) -> Result<()> {
        if out.len() != x.len() + 1 {
            same(OUT, x.len(), out.len())?;
        }
        scan::offsets(x, out);
        Ok(())
    }

    fn scan<T: Element, O: Combine<T>>(&self, scan: Scan, op: O, x: &[T], out: &mut [T]) -> Result<()> {
        same(OUT, x.len(), out.len())?;
        scan::scan(scan, op, x, out, |_| false);
        Ok(())
    }

    fn segmented_scan<T: Element, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &[T],
        heads: &[u8],
        out: &mut [T],
    ) -> Result<()> {
        same(OUT, x.len(), out.len())?;
        same("number of head flags", x.len(), heads.len())?;
        scan::scan(scan, op, x, out, |i| heads[i] != 0);
        Ok(())
    }

    fn histogram(&self, keys: &[u32], counts: &mut [u32]) -> Result<()> {
        if keys.len() > u32::MAX as usize {
            return Err(Error::InvalidArgument(format!("histogram of {} keys: count in parts", keys.len())));
        }
        histogram::histogram(keys, counts);
        Ok(())
    }

    fn offsets_of_sorted<I: Offset>(&self, segments: &[u32], offsets: &mut [I]) -> Result<()> {
        histogram::offsets_of_sorted(segments, offsets);
        Ok(())
    }

    fn expand_offsets<I: Offset>(&self, offsets: &[I], segments: &mut [u32]) -> Result<()> {
        check_offsets(offsets, offsets.len().saturating_sub(1), segments.len())?;
        histogram::expand_offsets(offsets, segments);
        Ok(())
    }

    fn head_flags<I: Offset>(&self, offsets: &[I], heads: &mut [u8]) -> Result<()> {
        check_offsets(offsets, offsets.len().saturating_sub(1), heads.len())?;
        histogram::head_flags(offsets, heads);
        Ok(())
    }

    fn run_starts<K: Key, I: Offset>(&self, keys: &[K], starts: &mut [I]) -> Result<usize> {
        fits(select::run_starts(keys, starts), starts.len())
    }

    fn pair_starts<I: Offset>(&self, high: &[u32], low: &[u32]) -> Result<Vec<I>> {
        same("number of low parts", high.len(), low.len())?;
        select::pair_starts(high, low)
    }

    fn compact<T: Element>(&self, x: &[T], flags: &[u8], out: &mut [T]) -> Result<usize> {
        same("number of flags", x.len(), flags.len())?;
        fits(select::compact(x, flags, out), out.len())
    }

    fn partition<T: Element>(&self, x: &[T], flags: &[u8], out: &mut [T]) -> Result<usize> {
        same("number of flags", x.len(), flags.len())?;
        same(OUT, x.len(), out.len())?;
        fits(select::partition(x, flags, out), out.len())
    }

    fn unique<K: Key>(&self, x: &[K], out: &mut [K]) -> Result<usize> {
        fits(select::unique(x, out), out.len())
    }

    fn is_sorted<K: Key>(&self, keys: &[K], strictly: bool) -> Result<bool> {
        Ok(select::is_sorted(keys, strictly))
    }

    fn sort<K: Key>(&self, keys: &mut Vec<K>, bits: Range<u32>) -> Result<()> {
        let mut nothing = vec![(); keys.len()];
        radix::sort(keys, &mut nothing, bits);
        Ok(())
    }

    fn sort_pairs<K: Key, V: Element>(
        &self,
        keys: &mut Vec<K>,
        values: &mut Vec<V>,
        bits: Range<u32>,
    ) -> Result<()> {
        same("number of values", keys.len(), values.len())?;
        radix::sort(keys, values, bits);
        Ok(())
    }

    fn segmented_sort_pairs<K: Key, V: Element, I: Offset>(
        &self,
        offsets: &[I],
        keys: &mut Vec<K>,
        values: &mut Vec<V>,
    ) -> Result<()> {
        same("number of values", keys.len(), values.len())?;
        check_offsets(offsets, offsets.len().saturating_sub(1), keys.len())?;
        radix::sort_segments(offsets, keys, values);
        Ok(())
    }

    fn merge_sort<K: Key>(&self, order: Order, keys: &mut Vec<K>) -> Result<()> {
        let mut nothing = vec![(); keys.len()];
        merge::sort(order, keys, &mut nothing);
        Ok(())
    }

    fn merge_sort_pairs<K: Key, V: Element>(
        &self,
        order: Order,
        keys: &mut Vec<K>,
        values: &mut Vec<V>,
    ) -> Result<()> {
        same("number of values", keys.len(), values.len())?;
        merge::sort(order, keys, values);
        Ok(())
    }

    fn merge<K: Key>(&self, order: Order, a: &[K], b: &[K], out: &mut [K]) -> Result<()> {
        same(OUT, a.len() + b.len(), out.len())?;
        let (of_a, of_b, mut of_out) = (vec![(); a.len()], vec![(); b.len()], vec![(); out.len()]);
        merge::merge(order, (a, &of_a), (b, &of_b), (out, &mut of_out));
        Ok(())
    }

    fn merge_pairs<K: Key, V: Element>(
        &self,
        order: Order,
        a: (&[K], &[V]),
        b: (&[K], &[V]),
        out: (&mut [K], &mut [V]),
    ) -> Result<()> {
        same("number of values", a.0.len(), a.1.len())?;
        same("number of values", b.0.len(), b.1.len())?;
        same(OUT, a.0.len() + b.0.len(), out.0.len())?;
        same(OUT, out.0.len(), out.1.len())?;
        merge::merge(order, a, b, out);
        Ok(())
    }

    fn gather<T: Element, I: Offset>(&self, x: &[T], indices: &[I], out: &mut [T]) -> Result<()> {
        same(OUT, indices.len(), out.len())?;
        map::gather(x, indices, out)
    }

    fn scatter<T: Element, I: Offset>(&self, x: &[T], indices: &[I], out: &mut [T]) -> Result<()> {
        same("number of indices", x.len(), indices.len())?;
        map::scatter(x, indices, out)
    }

    fn sequence<I: Offset>(&self, out: &mut [I]) -> Result<()> {
        map::sequence(out);
        Ok(())
    }

    fn add_constant<T: Number>(&self, value: T, x: &mut [T]) -> Result<()> {
        super::chunks::fill(x, |_, x| x.iter_mut().for_each(|x| *x = x.plus(value)));
        Ok(())
    }

    fn pack(&self, high: &[u32], low: &[u32], shift: u32, out: &mut [u64]) -> Result<()> {
        same("number of low parts", high.len(), low.len())?;
        same(OUT, high.len(), out.len())?;
        map::pack(high, low, shift, out);
        Ok(())
    }

    fn mirror(&self, high: &[u32], low: &[u32], beyond: u32, out: (&mut [u32], &mut [u32])) -> Result<()> {
        same("number of low parts", high.len(), low.len())?;
        same(OUT, 2 * high.len(), out.0.len())?;
        same(OUT, 2 * high.len(), out.1.len())?;
        map::mirror(high, low, beyond, out);
        Ok(())
    }

    fn unpack(&self, packed: &[u64], shift: u32, high: &mut [u32], low: &mut [u32]) -> Result<()> {
        same(OUT, packed.len(), high.len())?;
        same(OUT, packed.len(), low.len())?;
        map::unpack(packed, shift, high, low);
        Ok(())
    }
}
