//! Stable distribution of entries into buckets. Each chunk of the input counts its entries of every bucket. From these
//! counts follows where each chunk's entries start within each bucket, and every chunk writes its entries there in
//! order.

use super::Shape;
use crate::assemble::Symmetry;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::marker::PhantomData;
use std::ops::Range;

/// One distribution sorts by at most this many bits. A chunk then writes to at most 2^11 buckets at a time.
pub(super) const DIGIT: u32 = 11;

/// The minimum number of entries in a chunk. The tables of counts are small compared to that many entries.
const CHUNK: usize = 1 << 18;

/// The maximum number of chunks.
const CHUNKS: usize = 64;

/// A piece of the triplets: the rows, columns and values of some of them.
#[derive(Debug)]
pub(crate) struct Stretch<T> {
    pub(crate) is: Vec<u32>,
    pub(crate) js: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl<T> Stretch<T> {
    /// Removes all triplets but those numbered `kept`.
    pub(super) fn keep(&mut self, kept: Range<usize>) {
        only(&mut self.is, &kept);
        only(&mut self.js, &kept);
        only(&mut self.values, &kept);
    }
}

fn only<E>(of: &mut Vec<E>, kept: &Range<usize>) {
    of.truncate(kept.end);
    of.drain(..kept.start);
}

/// Returns the parts of the pieces that hold the triplets numbered `range`, counted through all pieces.
fn parts<T>(
    stretches: &[Stretch<T>],
    range: Range<usize>,
) -> impl Iterator<Item = (&Stretch<T>, Range<usize>)> {
    let mut end = 0;
    stretches.iter().filter_map(move |stretch| {
        let start = end;
        end += stretch.is.len();
        let part = range.start.max(start)..range.end.min(end);
        (!part.is_empty()).then(|| (stretch, part.start - start..part.end - start))
    })
}

/// A source of items, each of which goes to a bucket.
pub(super) trait Emit<T>: Sync {
    /// Calls `place(bucket, item)` in order for each item that the input's elements `range` give. An element may give
    /// none or several.
    fn emit(&self, range: Range<usize>, place: impl FnMut(usize, T));
}

/// The key of each entry, and of its mirror image if only one triangle is stored. Those in rows that are not assembled
/// are left out.
pub(super) struct Keys<'a, T, K> {
    shape: Shape,
    half: bool,
    entries: &'a [Stretch<T>],
    key: PhantomData<K>,
}

impl<'a, T, K> Keys<'a, T, K> {
    pub(super) fn new(shape: Shape, symmetry: Symmetry, entries: &'a [Stretch<T>]) -> Self {
        Self { shape, half: symmetry != Symmetry::General, entries, key: PhantomData }
    }
}

impl<T: Scalar, K: Offset> Emit<K> for Keys<'_, T, K> {
    #[inline(always)]
    fn emit(&self, range: Range<usize>, mut place: impl FnMut(usize, K)) {
        let Shape { row_shift, column_bits, .. } = self.shape;
        let mask = (1usize << row_shift) - 1;
        let mut one = |i: u32, j: u32| {
            if let Some(i) = self.shape.row(i) {
                place(i >> row_shift, K::from_usize((i & mask) << column_bits | j as usize));
            }
        };
        for (stretch, range) in parts(self.entries, range) {
            let entries = stretch.is[range.clone()].iter().zip(&stretch.js[range]);
            if self.half {
                for (&i, &j) in entries {
                    one(i, j);
                    if i != j {
                        one(j, i);
                    }
                }
            } else {
                entries.for_each(|(&i, &j)| one(i, j));
            }
        }
    }
}

/// The value of each entry and mirror image, in the order of [`Keys`]. Columns are read only if one triangle is stored.
pub(super) struct Values<'a, T> {
    shape: Shape,
    symmetry: Symmetry,
    entries: &'a [Stretch<T>],
}

impl<'a, T> Values<'a, T> {
    pub(super) fn new(shape: Shape, symmetry: Symmetry, entries: &'a [Stretch<T>]) -> Self {
        Self { shape, symmetry, entries }
    }
}

impl<T: Scalar> Emit<T> for Values<'_, T> {
    #[inline(always)]
    fn emit(&self, range: Range<usize>, mut place: impl FnMut(usize, T)) {
        let shift = self.shape.row_shift;
        let mut one = |i: u32, value: T| {
            if let Some(i) = self.shape.row(i) {
                place(i >> shift, value);
            }
        };
        for (stretch, range) in parts(self.entries, range) {
            let entries = stretch.is[range.clone()].iter().zip(&stretch.values[range.clone()]);
            if self.symmetry == Symmetry::General {
                entries.for_each(|(&i, &value)| one(i, value));
                continue;
            }
            for ((&i, &value), &j) in entries.zip(&stretch.js[range]) {
                one(i, value);
                if i != j {
                    one(j, self.symmetry.mirror(value));
                }
            }
        }
    }
}

/// Items that are partitioned by one digit of their keys.
pub(super) struct ByDigit<'a, K, T> {
    pub keys: &'a [K],
    pub items: &'a [T],
    pub shift: u32,
    pub mask: usize,
}

impl<K: Offset, T: Copy + Sync> Emit<T> for ByDigit<'_, K, T> {
    #[inline(always)]
    fn emit(&self, range: Range<usize>, mut place: impl FnMut(usize, T)) {
        for (key, &item) in self.keys[range.clone()].iter().zip(&self.items[range]) {
            place((key.to_usize() >> self.shift) & self.mask, item);
        }
    }
}

/// Where each chunk writes its items of each bucket.
pub(super) struct Plan {
    inputs: usize,
    chunk: usize,
    /// The number of items of each chunk and bucket, as `counts[chunk][bucket]`.
    counts: Vec<Vec<u32>>,
    starts: Vec<usize>,
}

impl Plan {
    /// Counts the items that `items` gives for `inputs` elements.
    pub(super) fn new<T>(inputs: usize, buckets: usize, items: &impl Emit<T>) -> Self {
        let chunk = inputs.div_ceil(CHUNKS).max(CHUNK);
        let counts: Vec<Vec<u32>> = (0..inputs.div_ceil(chunk))
            .into_par_iter()
            .map(|c| {
                let mut counts = vec![0; buckets];
                items.emit(range(inputs, chunk, c), |bucket, _| counts[bucket] += 1);
                counts
            })
            .collect();
        let mut starts = vec![0];
        let mut end = 0;
        for bucket in 0..buckets {
            end += counts.iter().map(|counts| counts[bucket] as usize).sum::<usize>();
            starts.push(end);
        }
        Self { inputs, chunk, counts, starts }
    }

    /// Returns the number of items.
    pub(super) fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Returns the start of each bucket, followed by the number of items.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Moves items to their buckets.
    pub(super) fn scatter<T: Send>(&self, out: &mut [T], items: &impl Emit<T>) {
        let mut places: Vec<Vec<_>> = self.counts.iter().map(|c| Vec::with_capacity(c.len())).collect();
        let mut rest = out;
        for bucket in 0..self.starts.len() - 1 {
            for (places, counts) in places.iter_mut().zip(&self.counts) {
                let (part, tail) = std::mem::take(&mut rest).split_at_mut(counts[bucket] as usize);
                places.push(part.iter_mut());
                rest = tail;
            }
        }
        places.into_par_iter().enumerate().for_each(|(c, mut places)| {
            items.emit(range(self.inputs, self.chunk, c), |bucket, item| {
                if let Some(place) = places[bucket].next() {
                    *place = item;
                }
            });
        });
    }
}

fn range(n: usize, chunk: usize, c: usize) -> Range<usize> {
    c * chunk..((c + 1) * chunk).min(n)
}
