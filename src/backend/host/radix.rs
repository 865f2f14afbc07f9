//! Stable radix sort.
//!
//! A pass moves the elements by one digit: every chunk counts its digits, the counts give each chunk its own range for
//! each digit, and every chunk moves its elements there in order. This is stable, and gives the same result for any
//! division into chunks. A few digits take one pass each, the lowest first. Many digits would take as many passes over
//! main memory; instead, one pass by the highest digit makes buckets that fit the second-level cache, and each bucket
//! is sorted there.

use super::{chunks, memory};
use crate::parallel::prelude::*;
use crate::scalar::{Key, Offset};
use std::ops::Range;

/// The number of bits of a digit in main memory: 256 destinations at a time stay within the first-level cache and TLB.
const DIGIT: u32 = 8;

/// The number of bits of a digit within the second-level cache.
const CACHED_DIGIT: u32 = 11;

/// Fewer elements than this are sorted by comparisons.
const SMALL: usize = 192;

/// The number of elements that a task moves in one pass: so many that counting the digits takes little time in
/// comparison.
const CHUNK: usize = 1 << 16;

/// The number of elements in a bucket.
const BUCKET: usize = 1 << 13;

/// The minimum number of elements for which buckets pay.
const BUCKETS_FROM: usize = 1 << 18;

/// The payload of a key: a value, or `()` in a sort of keys only.
pub(super) trait Payload: Copy + Default + Send + Sync {}
impl<V: Copy + Default + Send + Sync> Payload for V {}

/// Keys with their payload.
struct Pairs<'a, K, V> {
    keys: &'a mut [K],
    values: &'a mut [V],
}

impl<K: Key, V: Payload> Pairs<'_, K, V> {
    fn copy_from(&mut self, other: &Pairs<'_, K, V>) {
        self.keys.copy_from_slice(other.keys);
        self.values.copy_from_slice(other.values);
    }
}

/// Returns a mask of these bits.
fn mask(bits: &Range<u32>) -> u64 {
    let width = bits.end.saturating_sub(bits.start);
    if width == 0 { 0 } else { (u64::MAX >> (64 - width.min(64))) << bits.start }
}

/// Returns the bits in which keys differ, and whether the keys ascend already. Considers only bits in `mask`.
fn survey<K: Key>(keys: &[K], mask: u64) -> (u64, bool) {
    let first = keys[0].to_ordered() & mask;
    let parts = chunks::map(keys.len(), |range| {
        let mut before = keys[range.start.saturating_sub(1)].to_ordered() & mask;
        let (mut varying, mut sorted) = (0, true);
        for key in &keys[range] {
            let key = key.to_ordered() & mask;
            varying |= key ^ first;
            sorted &= before <= key;
            before = key;
        }
        (varying, sorted)
    });
    parts.into_iter().fold((0, true), |(v, s), (varying, sorted)| (v | varying, s & sorted))
}

/// The bits of a key by which one pass sorts.
#[derive(Clone, Copy)]
struct Digit {
    start: u32,
    mask: u64,
}

impl Digit {
    #[inline(always)]
    fn of<K: Key>(self, key: K) -> usize {
        ((key.to_ordered() >> self.start) & self.mask) as usize
    }

    fn values(self) -> usize {
        self.mask as usize + 1
    }
}

/// Returns digits of at most `width` bits, lowest first, that together cover the varying bits. They may include bits
/// between varying bits, which are equal in all keys or not in `mask`.
fn digits(varying: u64, mask: u64, width: u32) -> Vec<Digit> {
    let mut digits = Vec::new();
    let mut rest = varying;
    while rest != 0 {
        let start = rest.trailing_zeros();
        digits.push(Digit { start, mask: (mask >> start) & ((1 << width) - 1) });
        rest &= u64::MAX.checked_shl(start + width).unwrap_or(0);
    }
    digits
}

/// Sorts keys by `bits`, and permutes `values`, which have the same length, in the same way.
pub(super) fn sort<K: Key, V: Payload>(keys: &mut Vec<K>, values: &mut Vec<V>, bits: Range<u32>) {
    let mask = mask(&bits);
    let n = keys.len();
    if n < 2 || mask == 0 {
        return;
    }
    let (varying, sorted) = survey(keys, mask);
    if sorted {
        return;
    }
    if n < SMALL {
        return sort_small(keys, values, mask);
    }
    let (mut spare_keys, mut spare_values) = (memory::buffer(n), memory::buffer(n));
    let mut pairs = Pairs { keys, values };
    let mut spare = Pairs { keys: &mut spare_keys, values: &mut spare_values };
    let by_digit = digits(varying, mask, DIGIT);
    if n < BUCKETS_FROM || by_digit.len() < 3 {
        sort_by_digits(&mut pairs, &mut spare, &by_digit);
    } else {
        sort_in_buckets(&mut pairs, &mut spare, varying, mask);
    }
}

fn sort_small<K: Key, V: Payload>(keys: &mut [K], values: &mut [V], mask: u64) {
    let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    pairs.sort_by_key(|pair| pair.0.to_ordered() & mask);
    for (pair, (key, value)) in pairs.into_iter().zip(keys.iter_mut().zip(values)) {
        (*key, *value) = pair;
    }
}

/// Sorts with one pass for each digit.
fn sort_by_digits<K: Key, V: Payload>(
    pairs: &mut Pairs<'_, K, V>,
    spare: &mut Pairs<'_, K, V>,
    by_digit: &[Digit],
) {
    for passes in by_digit.chunks(2) {
        distribute(pairs, spare, passes[0]);
        match passes.get(1) {
            Some(&digit) => drop(distribute(spare, pairs, digit)),
            None => pairs.copy_from(spare),
        }
    }
}

/// Sorts with one pass by the highest digit, and then each bucket separately.
fn sort_in_buckets<K: Key, V: Payload>(
    pairs: &mut Pairs<'_, K, V>,
    spare: &mut Pairs<'_, K, V>,
    varying: u64,
    mask: u64,
) {
    let end = 64 - varying.leading_zeros();
    let width = (pairs.keys.len() / BUCKET).ilog2().min(CACHED_DIGIT).min(end);
    let start = end - width;
    let sizes = distribute(pairs, spare, Digit { start, mask: (mask >> start) & ((1 << width) - 1) });
    let rest = mask & ((1u64 << start) - 1);
    let (keys, spare_keys) =
        (chunks::split(pairs.keys, sizes.clone()), chunks::split(spare.keys, sizes.clone()));
    let (values, spare_values) =
        (chunks::split(pairs.values, sizes.clone()), chunks::split(spare.values, sizes));
    let to = keys.into_iter().zip(values).map(|(keys, values)| Pairs { keys, values });
    let from = spare_keys.into_iter().zip(spare_values).map(|(keys, values)| Pairs { keys, values });
    let (large, small): (Vec<_>, Vec<_>) = to.zip(from).partition(|(to, _)| to.keys.len() >= BUCKETS_FROM);
    // Large buckets are sorted one after the other by all threads. Then each thread sorts small ones.
    for (mut to, mut from) in large {
        let (varying, _) = survey(from.keys, rest);
        sort_by_digits(&mut from, &mut to, &digits(varying, rest, DIGIT));
        to.copy_from(&from);
    }
    small.into_par_iter().with_min_len(4).for_each(|(to, from)| sort_cached(from, to, rest));
}

/// Sorts a bucket from one buffer into the other, with one thread.
fn sort_cached<'a, K: Key, V: Payload>(mut from: Pairs<'a, K, V>, mut to: Pairs<'a, K, V>, mask: u64) {
    let first = from.keys.first().map_or(0, |key| key.to_ordered());
    let varying = from.keys.iter().fold(0, |varying, key| varying | (key.to_ordered() ^ first)) & mask;
    let by_digit = digits(varying, mask, CACHED_DIGIT);
    if from.keys.len() < SMALL || by_digit.is_empty() {
        to.copy_from(&from);
        if !by_digit.is_empty() {
            sort_small(to.keys, to.values, mask);
        }
        return;
    }
    for digit in &by_digit {
        let mut next = vec![0; digit.values()];
        from.keys.iter().for_each(|&key| next[digit.of(key)] += 1);
        put(&from, &mut to, *digit, &mut next);
        std::mem::swap(&mut from, &mut to);
    }
    // `from` now refers to the buffer with the result: the output after an odd number of passes.
    if by_digit.len().is_multiple_of(2) {
        to.copy_from(&from);
    }
}

/// Moves pairs to their positions; `counts` has the next position for each digit.
fn put<K: Key, V: Payload>(
    from: &Pairs<'_, K, V>,
    to: &mut Pairs<'_, K, V>,
    digit: Digit,
    counts: &mut [usize],
) {
    let mut end = 0;
    for count in &mut *counts {
        (*count, end) = (end, end + *count);
    }
    for (key, value) in from.keys.iter().zip(&*from.values) {
        let next = &mut counts[digit.of(*key)];
        to.keys[*next] = *key;
        to.values[*next] = *value;
        *next += 1;
    }
}

/// Does one stable pass, and returns the number of elements with each digit.
fn distribute<K: Key, V: Payload>(
    from: &Pairs<'_, K, V>,
    to: &mut Pairs<'_, K, V>,
    digit: Digit,
) -> Vec<usize> {
    let n = from.keys.len();
    let count = |keys: &[K]| {
        let mut counts = vec![0usize; digit.values()];
        keys.iter().for_each(|&key| counts[digit.of(key)] += 1);
        counts
    };
    if n <= CHUNK {
        let counts = count(from.keys);
        put(from, to, digit, &mut counts.clone());
        return counts;
    }
    let counts: Vec<_> = from.keys.par_chunks(CHUNK).map(count).collect();
    let key_places = places(&counts, to.keys);
    // Without values, there are no destinations for them.
    let value_places = places(&counts, if size_of::<V>() > 0 { &mut *to.values } else { &mut [] });
    let input = from.keys.par_chunks(CHUNK).zip(from.values.par_chunks(CHUNK));
    input.zip(key_places).zip(value_places).for_each(|(((keys, values), mut ks), mut vs)| {
        for (key, value) in keys.iter().zip(values) {
            let d = digit.of(*key);
            if let Some(k) = ks[d].next() {
                *k = *key;
            }
            if size_of::<V>() > 0
                && let Some(v) = vs[d].next()
            {
                *v = *value;
            }
        }
    });
    (0..digit.values()).map(|d| counts.iter().map(|counts| counts[d]).sum()).collect()
}

/// Returns, for each chunk, the destinations in `out` for the elements with each digit; none if `out` is empty.
fn places<'a, T>(counts: &[Vec<usize>], out: &'a mut [T]) -> Vec<Vec<std::slice::IterMut<'a, T>>> {
    let mut places: Vec<Vec<_>> = counts.iter().map(|counts| Vec::with_capacity(counts.len())).collect();
    if out.is_empty() {
        return places;
    }
    let mut rest = out;
    for digit in 0..counts.first().map_or(0, Vec::len) {
        for (places, counts) in places.iter_mut().zip(counts) {
            let (part, tail) = std::mem::take(&mut rest).split_at_mut(counts[digit]);
            places.push(part.iter_mut());
            rest = tail;
        }
    }
    places
}

/// Sorts each segment separately, ascending.
pub(super) fn sort_segments<K: Key, V: Payload, I: Offset>(offsets: &[I], keys: &mut [K], values: &mut [V]) {
    let lengths = || offsets.windows(2).map(|w| w[1].to_usize() - w[0].to_usize());
    let segments: Vec<_> =
        chunks::split(keys, lengths()).into_iter().zip(chunks::split(values, lengths())).collect();
    segments.into_par_iter().with_min_len(64).for_each(|(keys, values)| {
        if !keys.is_sorted_by_key(|key| key.to_ordered()) {
            sort_small(keys, values, u64::MAX);
        }
    });
}
