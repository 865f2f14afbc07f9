//! Distributing entries into buckets, stably: every chunk of the input counts its buckets, the counts give each chunk
//! a place of its own in each bucket, and every chunk moves its entries there in order.

use super::Shape;
use crate::assemble::Symmetry;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::marker::PhantomData;
use std::ops::Range;

/// Bits that one distribution looks at: 2^11 places to write to at a time.
pub(super) const DIGIT: u32 = 11;

/// The fewest entries of a chunk, so that tables of counts stay small in comparison.
const CHUNK: usize = 1 << 18;

/// Chunks at most.
const CHUNKS: usize = 64;

/// Some triplets: their rows, columns and values.
#[derive(Debug)]
pub(crate) struct Stretch<T> {
    pub(crate) is: Vec<u32>,
    pub(crate) js: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl<T> Stretch<T> {
    /// Leaves these alone.
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

/// The parts of stretches that have the triplets of these numbers, where one stretch follows the other.
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

/// Items and the buckets they go to.
pub(super) trait Emit<T>: Sync {
    /// Calls `place(bucket, item)` for what the elements of `range` give, in order.
    fn emit(&self, range: Range<usize>, place: impl FnMut(usize, T));
}

/// Bucket and key of each entry, and of its mirror image, where these lie in rows of the shape.
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

/// Bucket and value of each entry, and of its mirror image, as [`Keys`] has them. Columns are read where a half is
/// stored.
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

/// The target positions of each chunk's items of each bucket.
pub(super) struct Plan {
    inputs: usize,
    chunk: usize,
    /// Number of items, by chunk, then bucket.
    counts: Vec<Vec<u32>>,
    starts: Vec<usize>,
}

impl Plan {
    /// Counts what `items` gives of `inputs` elements.
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

    /// Number of items.
    pub(super) fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The start of each bucket, then the number of items.
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
