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

/// Entries a chunk has at least, so that the tables of counts stay small beside them.
const CHUNK: usize = 1 << 18;

/// Chunks at most.
const CHUNKS: usize = 64;

/// Triplets to assemble.
pub(super) struct Entries<T> {
    pub is: Vec<u32>,
    pub js: Vec<u32>,
    pub values: Vec<T>,
    pub symmetry: Symmetry,
}

/// Items and the buckets they go to.
pub(super) trait Emit<T>: Sync {
    /// Calls `place(bucket, item)` for what the elements of `range` give, in order.
    fn emit(&self, range: Range<usize>, place: impl FnMut(usize, T));
}

/// Bucket and key of each entry, and of its mirror image.
pub(super) struct Keys<'a, K> {
    shape: Shape,
    half: bool,
    is: &'a [u32],
    js: &'a [u32],
    key: PhantomData<K>,
}

impl<'a, K> Keys<'a, K> {
    pub(super) fn new(shape: Shape, symmetry: Symmetry, is: &'a [u32], js: &'a [u32]) -> Self {
        Self { shape, half: symmetry != Symmetry::General, is, js, key: PhantomData }
    }
}

impl<K: Offset> Emit<K> for Keys<'_, K> {
    #[inline(always)]
    fn emit(&self, range: Range<usize>, mut place: impl FnMut(usize, K)) {
        let Shape { row_shift, column_bits, .. } = self.shape;
        let mask = (1usize << row_shift) - 1;
        let mut one = |i: u32, j: u32| {
            let (i, j) = (i as usize, j as usize);
            place(i >> row_shift, K::from_usize((i & mask) << column_bits | j));
        };
        let entries = self.is[range.clone()].iter().zip(&self.js[range]);
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

/// Bucket and value of each entry, and of its mirror image. Columns are read where a half is stored.
pub(super) struct Values<'a, T> {
    shape: Shape,
    symmetry: Symmetry,
    is: &'a [u32],
    js: &'a [u32],
    values: &'a [T],
}

impl<'a, T> Values<'a, T> {
    pub(super) fn new(
        shape: Shape,
        symmetry: Symmetry,
        is: &'a [u32],
        js: &'a [u32],
        values: &'a [T],
    ) -> Self {
        Self { shape, symmetry, is, js, values }
    }
}

impl<T: Scalar> Emit<T> for Values<'_, T> {
    #[inline(always)]
    fn emit(&self, range: Range<usize>, mut place: impl FnMut(usize, T)) {
        let shift = self.shape.row_shift;
        let entries = self.is[range.clone()].iter().zip(&self.values[range.clone()]);
        if self.symmetry == Symmetry::General {
            entries.for_each(|(&i, &value)| place(i as usize >> shift, value));
            return;
        }
        for ((&i, &value), &j) in entries.zip(&self.js[range]) {
            place(i as usize >> shift, value);
            if i != j {
                place(j as usize >> shift, self.symmetry.mirror(value));
            }
        }
    }
}

/// Items that go by one digit of their keys.
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

/// Where each chunk's items of each bucket go.
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

    /// Where each bucket starts; then the number of items.
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
