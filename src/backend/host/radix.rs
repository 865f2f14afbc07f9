//! Least-significant-digit radix sort. In each pass every chunk counts its digits, the counts give each chunk a place
//! of its own for each digit, and every chunk moves its elements there in order: stable, and the same whatever the
//! split.

use super::chunks;
use super::memory::PARALLEL_FROM;
use crate::scalar::{Key, Offset};
use rayon::prelude::*;
use std::ops::Range;

/// Bits of a digit: 256 places to write to at a time stay within the first-level cache and its address translations.
const DIGIT: u32 = 8;
const DIGITS: usize = 1 << DIGIT;

/// Fewer elements than these are sorted by comparisons.
const SMALL: usize = 192;

/// Elements a task moves in one pass, so that its count of digits is little beside it.
const CHUNK: usize = 1 << 16;

/// What travels with a key: an element, or nothing, `()`, in a sort of keys alone.
pub(super) trait Payload: Copy + Default + Send + Sync {}
impl<V: Copy + Default + Send + Sync> Payload for V {}

fn mask(bits: &Range<u32>) -> u64 {
    let width = bits.end.saturating_sub(bits.start);
    if width == 0 { 0 } else { (u64::MAX >> (64 - width.min(64))) << bits.start }
}

/// Bits in which keys differ, and whether they ascend already (in the bits of `mask`).
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

/// Starts of the digits that together cover the varying bits, lowest first.
fn digits(varying: u64) -> Vec<u32> {
    let mut starts = Vec::new();
    let mut rest = varying;
    while rest != 0 {
        let start = rest.trailing_zeros();
        starts.push(start);
        rest &= u64::MAX.checked_shl(start + DIGIT).unwrap_or(0);
    }
    starts
}

/// Sorts keys by the bits in `bits`, and `values` (of the same length) along.
pub(super) fn sort<K: Key, V: Payload>(keys: &mut Vec<K>, values: &mut Vec<V>, bits: Range<u32>) {
    let mask = mask(&bits);
    if keys.len() < 2 || mask == 0 {
        return;
    }
    let (varying, sorted) = survey(keys, mask);
    if sorted {
        return;
    }
    if keys.len() < SMALL {
        let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
        pairs.sort_by_key(|pair| pair.0.to_ordered() & mask);
        for (pair, (key, value)) in pairs.into_iter().zip(keys.iter_mut().zip(values)) {
            (*key, *value) = pair;
        }
        return;
    }
    let mut other_keys = vec![K::default(); keys.len()];
    let mut other_values = vec![V::default(); values.len()];
    for start in digits(varying) {
        // Where the mask ends inside of the digit, the bits above stay out of it.
        let width = (mask >> start) & (DIGITS as u64 - 1);
        let digit = |key: &K| ((key.to_ordered() >> start) & width) as usize;
        pass(keys, values, &mut other_keys, &mut other_values, digit);
        std::mem::swap(keys, &mut other_keys);
        std::mem::swap(values, &mut other_values);
    }
}

/// One stable pass by `digit`.
fn pass<K: Key, V: Payload>(
    keys: &[K],
    values: &[V],
    keys_out: &mut [K],
    values_out: &mut [V],
    digit: impl Fn(&K) -> usize + Sync,
) {
    let n = keys.len();
    let chunk = if n < PARALLEL_FROM { n } else { CHUNK };
    let count = |keys: &[K]| {
        let mut counts = [0usize; DIGITS];
        keys.iter().for_each(|key| counts[digit(key)] += 1);
        counts
    };
    if n <= chunk {
        let mut next = [0; DIGITS];
        let mut total = 0;
        for (next, count) in next.iter_mut().zip(count(keys)) {
            *next = total;
            total += count;
        }
        for (key, value) in keys.iter().zip(values) {
            let next = &mut next[digit(key)];
            (keys_out[*next], values_out[*next]) = (*key, *value);
            *next += 1;
        }
        return;
    }
    let counts: Vec<[usize; DIGITS]> = keys.par_chunks(chunk).map(count).collect();
    let key_places = places(&counts, keys_out);
    let value_places = places(&counts, values_out);
    let input = keys.par_chunks(chunk).zip(values.par_chunks(chunk));
    input.zip(key_places).zip(value_places).for_each(|(((keys, values), mut ks), mut vs)| {
        for (key, value) in keys.iter().zip(values) {
            let d = digit(key);
            if let (Some(k), Some(v)) = (ks[d].next(), vs[d].next()) {
                (*k, *v) = (*key, *value);
            }
        }
    });
}

/// For each chunk, the place of each digit's elements in `out`.
fn places<'a, T>(counts: &[[usize; DIGITS]], out: &'a mut [T]) -> Vec<Vec<std::slice::IterMut<'a, T>>> {
    let mut places: Vec<Vec<_>> = counts.iter().map(|_| Vec::with_capacity(DIGITS)).collect();
    let mut rest = out;
    for digit in 0..DIGITS {
        for (places, counts) in places.iter_mut().zip(counts) {
            let (part, tail) = std::mem::take(&mut rest).split_at_mut(counts[digit]);
            places.push(part.iter_mut());
            rest = tail;
        }
    }
    places
}

/// Sorts each segment by itself, ascending.
pub(super) fn sort_segments<K: Key, V: Payload, I: Offset>(offsets: &[I], keys: &mut [K], values: &mut [V]) {
    let sort = |(keys, values): (&mut [K], &mut [V])| {
        if keys.is_sorted_by_key(|key| key.to_ordered()) {
            return;
        }
        let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
        pairs.sort_by_key(|pair| pair.0.to_ordered());
        for (pair, (key, value)) in pairs.into_iter().zip(keys.iter_mut().zip(values)) {
            (*key, *value) = pair;
        }
    };
    let lengths = || offsets.windows(2).map(|w| w[1].to_usize() - w[0].to_usize());
    let segments: Vec<_> =
        chunks::split(keys, lengths()).into_iter().zip(chunks::split(values, lengths())).collect();
    segments.into_par_iter().with_min_len(64).for_each(sort);
}
