//! Sorting and summing buckets within the cache.

use super::Shape;
use super::partition::{ByDigit, DIGIT, Plan};
use crate::assemble::sorting::significant_bits;
use crate::backend::{Backend, Host};
use crate::error::Result;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::hint::select_unpredictable;
use std::ops::Range;

/// The number of entries that a bucket is meant to have. Its keys, entry numbers and values take 40 bytes per entry,
/// second buffers included, and a bucket of this size fits the second-level cache.
pub(super) const TARGET: usize = 1 << 14;

/// Buckets of more entries than this are distributed once more.
const LARGE: usize = 1 << 16;

/// Buckets of fewer entries than this are sorted by comparisons, larger ones by radix sort.
const SMALL: usize = 256;

/// A range of entries in the arrays of keys and values. Their keys agree in all bits from bit `bits` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub start: usize,
    len: usize,
    /// The number of low key bits that differ between entries of the bucket.
    bits: u32,
    /// The smallest key that the bucket could hold.
    first_key: usize,
    /// The row that a key of zero stands for.
    row: usize,
}

impl Bucket {
    fn entries(&self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// Returns the rows that end in this bucket. A long row may be split into several buckets; it counts only for the
    /// last of them.
    fn rows(&self, shape: Shape) -> Range<usize> {
        let row = |key: u128| (self.row + (key >> shape.column_bits) as usize).min(shape.rows);
        row(self.first_key as u128)..row(self.first_key as u128 + (1 << self.bits))
    }

    /// Returns whether the keys ascend already.
    fn sorted(&self, shape: Shape) -> bool {
        self.bits <= shape.low || self.len < 2
    }
}

/// Returns the buckets that start at `starts`, and splits those of more than [`LARGE`] entries by further digits of
/// their keys.
pub(super) fn split<T: Scalar, K: Offset>(
    shape: Shape,
    starts: &[usize],
    keys: &mut [K],
    values: &mut [T],
) -> Result<Vec<Bucket>> {
    let mut buckets = Vec::with_capacity(starts.len());
    for (b, w) in starts.windows(2).enumerate() {
        let bucket = Bucket {
            start: w[0],
            len: w[1] - w[0],
            bits: shape.key_bits(),
            first_key: 0,
            row: b << shape.row_shift,
        };
        split_one(shape, bucket, keys, values, &mut buckets)?;
    }
    Ok(buckets)
}

fn split_one<T: Scalar, K: Offset>(
    shape: Shape,
    bucket: Bucket,
    keys: &mut [K],
    values: &mut [T],
    buckets: &mut Vec<Bucket>,
) -> Result<()> {
    if bucket.len <= LARGE || bucket.sorted(shape) {
        buckets.push(bucket);
        return Ok(());
    }
    let digit = significant_bits(bucket.len.div_ceil(TARGET)).min(DIGIT).min(bucket.bits - shape.low);
    let bits = bucket.bits - digit;
    let (k, v) = (&mut keys[bucket.entries()], &mut values[bucket.entries()]);
    let mask = (1 << digit) - 1;
    let plan = Plan::new(k.len(), 1 << digit, &ByDigit { keys: k, items: k, shift: bits, mask });
    if !plan.starts().windows(2).any(|w| w[1] - w[0] == bucket.len) {
        let mut moved = Host.zeros::<T>(v.len())?;
        plan.scatter(&mut moved, &ByDigit { keys: k, items: v, shift: bits, mask });
        Host.copy(&moved, v)?;
        drop(moved);
        let mut moved = Host.zeros::<K>(k.len())?;
        plan.scatter(&mut moved, &ByDigit { keys: k, items: k, shift: bits, mask });
        Host.copy(&moved, k)?;
    }
    for (d, w) in plan.starts().windows(2).enumerate() {
        let part = Bucket {
            start: bucket.start + w[0],
            len: w[1] - w[0],
            bits,
            first_key: bucket.first_key + (d << bits),
            row: bucket.row,
        };
        split_one(shape, part, keys, values, buckets)?;
    }
    Ok(())
}

/// Sorts every bucket and adds entries at the same place. The columns and the sums are written to the start of the
/// bucket's range. `ends[row]` is set to the number of sums from the bucket's start to the row's end, or to zero for an
/// empty row. Returns the number of sums of each bucket.
pub(super) fn sum_all<T: Scalar, K: Offset, O: Offset>(
    shape: Shape,
    buckets: &[Bucket],
    keys: &mut [K],
    values: &mut [T],
    ends: &mut [O],
) -> Vec<usize> {
    let mut tasks = Vec::with_capacity(buckets.len());
    let (mut keys, mut values, mut ends) = (keys, values, ends);
    for bucket in buckets {
        let (k, v, e);
        (k, keys) = keys.split_at_mut(bucket.len);
        (v, values) = values.split_at_mut(bucket.len);
        (e, ends) = ends.split_at_mut(bucket.rows(shape).len());
        tasks.push((bucket, k, v, e));
    }
    // The buckets of a group are handled by one task and share its scratch memory.
    let group = tasks.len().div_ceil(64);
    let mut counts = vec![0; tasks.len()];
    tasks.par_chunks_mut(group.max(1)).zip(counts.par_chunks_mut(group.max(1))).for_each(
        |(tasks, counts)| {
            let (mut narrow, mut wide) = (Scratch::<u64, T>::default(), Scratch::<u128, T>::default());
            for ((bucket, keys, values, ends), count) in tasks.iter_mut().zip(counts) {
                let first_row = bucket.first_key >> shape.column_bits;
                let into = Sums { column_bits: shape.column_bits, first_row, keys, values, ends };
                *count = if bucket.sorted(shape) {
                    into.sum_in_place()
                } else if bucket.bits + significant_bits(bucket.len) <= 64 {
                    narrow.sort_and_sum(shape.low..bucket.bits, into)
                } else {
                    wide.sort_and_sum(shape.low..bucket.bits, into)
                };
            }
        },
    );
    counts
}

/// Turns the row ends that [`sum_all`] counted from each bucket's start into row offsets of the matrix.
pub(super) fn finish_offsets<O: Offset>(shape: Shape, buckets: &[Bucket], counts: &[usize], ends: &mut [O]) {
    let mut tasks = Vec::with_capacity(buckets.len());
    let (mut base, mut rest) = (0, ends);
    for (bucket, &count) in both(buckets, counts) {
        let ends;
        (ends, rest) = rest.split_at_mut(bucket.rows(shape).len());
        tasks.push((base, ends));
        base += count;
    }
    tasks.into_par_iter().with_min_len(16).for_each(|(base, ends)| {
        let mut end = 0;
        for e in ends {
            end = end.max(e.to_usize());
            *e = O::from_usize(base + end);
        }
    });
}

/// The arrays of a bucket, which the sums overwrite.
struct Sums<'a, K, T, O> {
    column_bits: u32,
    /// The row number, as it appears in keys, of the first element of `ends`.
    first_row: usize,
    keys: &'a mut [K],
    values: &'a mut [T],
    /// Empty if the bucket is a part of a row that ends in a later bucket.
    ends: &'a mut [O],
}

impl<K: Offset, T: Scalar, O: Offset> Sums<'_, K, T, O> {
    /// Writes `sum` as the sum number `last` of the bucket. It may be written again once further terms are added.
    #[inline(always)]
    fn put(&mut self, last: usize, key: usize, sum: T) {
        self.keys[last] = K::from_usize(key & ((1 << self.column_bits) - 1));
        self.values[last] = sum;
        if let Some(end) = self.ends.get_mut((key >> self.column_bits) - self.first_row) {
            *end = O::from_usize(last + 1);
        }
    }

    /// Adds consecutive entries with equal keys, each sum from the first entry to the last. Returns the number of sums.
    #[inline(always)]
    fn sum(mut self, n: usize, entry: impl Fn(&Self, usize) -> (usize, T)) -> usize {
        if n == 0 {
            return 0;
        }
        let (mut key, mut sum) = entry(&self, 0);
        let mut last = 0;
        self.put(last, key, sum);
        for k in 1..n {
            // There is no branch on whether the key is new, because it could not be predicted.
            let (next, value) = entry(&self, k);
            let more = sum + value;
            sum = select_unpredictable(next == key, more, value);
            last += usize::from(next != key);
            key = next;
            self.put(last, key, sum);
        }
        last + 1
    }

    /// Sums a bucket whose keys ascend already. This works in place because the position written never passes the
    /// position read.
    fn sum_in_place(self) -> usize {
        let n = self.keys.len();
        self.sum(n, |it, k| (it.keys[k].to_usize(), it.values[k]))
    }
}

/// An integer that has a key in its high bits and the number of the entry in its low bits. All such integers are
/// distinct, and those of equal keys ascend in the order of the entries, so that sorting them is stable.
trait Packed: Copy + Default + Ord {
    fn pack(key: usize, shift: u32, number: usize) -> Self;
    fn key(self, shift: u32) -> usize;
    fn number(self, shift: u32) -> usize;
}

macro_rules! packed {
    ($($t:ty),*) => {$(
        impl Packed for $t {
            #[inline(always)]
            fn pack(key: usize, shift: u32, number: usize) -> $t { (key as $t) << shift | number as $t }
            #[inline(always)]
            fn key(self, shift: u32) -> usize { (self >> shift) as usize }
            #[inline(always)]
            fn number(self, shift: u32) -> usize { (self & ((1 << shift) - 1)) as usize }
        }
    )*};
}
packed!(u64, u128);

/// The memory that a task reuses for all buckets that it sorts.
#[derive(Default)]
struct Scratch<P, T> {
    packed: Vec<P>,
    other: Vec<P>,
    values: Vec<T>,
}

impl<P: Packed, T: Scalar> Scratch<P, T> {
    /// Sorts the bucket by the bits `bits` of its keys and sums it. Returns the number of sums.
    fn sort_and_sum<K: Offset, O: Offset>(&mut self, bits: Range<u32>, into: Sums<'_, K, T, O>) -> usize {
        let n = into.keys.len();
        let shift = significant_bits(n);
        self.values.clear();
        self.values.extend_from_slice(into.values);
        if n < SMALL {
            self.packed.clear();
            let keys = into.keys.iter().enumerate();
            self.packed.extend(keys.map(|(number, key)| P::pack(key.to_usize(), shift, number)));
            self.packed.sort_unstable();
        } else {
            self.radix_sort(bits, shift, into.keys);
        }
        let (packed, values) = (&self.packed, &self.values);
        into.sum(n, |_, k| (packed[k].key(shift), values[packed[k].number(shift)]))
    }

    /// Sorts by digits of at most [`WIDEST`] bits, the least significant one first. All digits have the same width.
    fn radix_sort<K: Offset>(&mut self, bits: Range<u32>, shift: u32, keys: &[K]) {
        let n = keys.len();
        let passes = (bits.end - bits.start).div_ceil(WIDEST);
        let width = (bits.end - bits.start).div_ceil(passes);
        let digits = 1usize << width;
        let mut counts = vec![0u32; digits * passes as usize];
        for key in keys {
            let mut rest = key.to_usize() >> bits.start;
            for counts in counts.chunks_exact_mut(digits) {
                counts[rest & (digits - 1)] += 1;
                rest >>= width;
            }
        }
        self.packed.resize(n, P::default());
        self.other.resize(n, P::default());
        for (pass, counts) in counts.chunks_exact_mut(digits).enumerate() {
            let mut end = 0;
            for count in &mut *counts {
                (*count, end) = (end, end + *count);
            }
            let low = bits.start + pass as u32 * width;
            let mut put = |to: &mut [P], key: usize, packed: P| {
                let next = &mut counts[(key >> low) & (digits - 1)];
                to[*next as usize] = packed;
                *next += 1;
            };
            if pass == 0 {
                for (number, key) in keys.iter().enumerate() {
                    let key = key.to_usize();
                    put(&mut self.packed, key, P::pack(key, shift, number));
                }
            } else {
                for &packed in &self.packed {
                    put(&mut self.other, packed.key(shift), packed);
                }
                std::mem::swap(&mut self.packed, &mut self.other);
            }
        }
    }
}

/// The maximum number of bits in a digit when a bucket within the cache is sorted.
const WIDEST: u32 = 10;
