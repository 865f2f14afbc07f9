//! Radix sort, and sorting segments each by itself.

use super::{down, narrow, ordered, patterns, random_offsets, sizes, small_enough, up};
use crate::random::Random;
use residua::backend::Primitives;
use residua::scalar::Key;

/// Sorts by the given bits of the keys, with the original positions, which show stability.
pub fn check_sort<K: Key, B: Primitives>(b: &B, keys: &[K], bits: std::ops::Range<u32>, what: &str) {
    let width = bits.end - bits.start;
    let digit =
        |k: K| if width == 0 { 0 } else { (k.to_ordered() >> bits.start) & (u64::MAX >> (64 - width)) };
    let positions: Vec<u32> = (0..keys.len() as u32).collect();
    let mut expected = positions.clone();
    expected.sort_by_key(|&i| digit(keys[i as usize]));
    let expected_keys: Vec<K> = expected.iter().map(|&i| keys[i as usize]).collect();
    let (mut k, mut v) = (up(b, keys), up(b, &positions));
    b.sort_pairs(&mut k, &mut v, bits.clone()).unwrap();
    assert_eq!(down(b, &v), expected, "{what}, {} keys, bits {bits:?}", keys.len());
    assert_eq!(ordered(&down(b, &k)), ordered(&expected_keys), "{what}");
    let mut k = up(b, keys);
    b.sort(&mut k, bits.clone()).unwrap();
    assert_eq!(ordered(&down(b, &k)), ordered(&expected_keys), "{what}, keys alone, bits {bits:?}");
}

fn radix_sort_type<K: Key, B: Primitives>(b: &B, n: usize, ranges: &[std::ops::Range<u32>]) {
    let mut random = Random(n as u64 + 9);
    for (pattern, keys) in patterns::<K>(&mut random, n) {
        let what = format!("{} {pattern}", K::NAME);
        check_sort(b, &keys, 0..K::BITS, &what);
        if pattern == "any" {
            ranges.iter().for_each(|bits| check_sort(b, &keys, bits.clone(), &what));
        }
    }
}

pub fn radix_sort_cases<B: Primitives>(b: &B) {
    for n in small_enough(&[0, 1, 2, 33, 191, 257, 1025, 2049, 4099, 32_769, 131_101]) {
        radix_sort_type::<u32, B>(b, n, &[3..17, 8..9, 5..5]);
        radix_sort_type::<u64, B>(b, n, &[0..46, 7..47, 60..64]);
    }
    // Large enough for buckets, some of them large themselves.
    let mut random = Random(17);
    let skewed = random.vec(small_enough(&[4099, 700_001]).pop().unwrap_or(1), |r| {
        if r.below(4) == 0 { r.next() } else { r.next() >> 24 }
    });
    check_sort(b, &skewed, 0..64, "skewed");
    check_sort(b, &skewed, 3..45, "skewed, bits between");
    let narrow: Vec<u32> = skewed.iter().map(|&k| (k >> 8) as u32 & 0x7fff_f3ff).collect();
    check_sort(b, &narrow, 0..32, "32 bits");
    for n in small_enough(&[257, 65_537]) {
        radix_sort_type::<i32, B>(b, n, &[20..29, 5..5]);
        radix_sort_type::<f32, B>(b, n, &[20..29, 5..5]);
        radix_sort_type::<f64, B>(b, n, &[50..64, 5..5]);
    }
}

pub fn segmented_sort_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 10);
        let keys = random.vec(n, |r| r.below(50) as u32);
        segmented_sort_one(b, &keys, &random_offsets(&mut random, n), "random lengths");
        segmented_sort_one(b, &keys, &[0, n], "one segment");
        // Lengths around the limits between sorting methods, with empty segments between.
        let mut offsets = vec![0];
        for length in [63, 64, 65, 0, 511, 512, 513, 0, 0, 4095, 4096, 4097, 1, 6000].into_iter().cycle() {
            let at = (offsets[offsets.len() - 1] + length).min(n);
            offsets.push(at);
            if at == n {
                break;
            }
        }
        segmented_sort_one(b, &keys, &offsets, "lengths at borders");
    }
    for n in small_enough(&[33, 257, 20_011]) {
        let mut random = Random(n as u64 + 18);
        let offsets = random_offsets(&mut random, n);
        segmented_patterns::<u64, B>(b, &mut random, &offsets);
        segmented_patterns::<f32, B>(b, &mut random, &offsets);
    }
    // Offsets that skip elements, or descend.
    let mut keys = up(b, &[3u32, 2, 1, 0]);
    for offsets in [[1u32, 2, 4], [0, 2, 3], [0, 3, 2]] {
        assert!(b.segmented_sort_pairs(&up(b, &offsets), &mut keys, &mut up(b, &[0u8; 4])).is_err());
    }
    assert_eq!(down(b, &keys), [3, 2, 1, 0]);
}

fn segmented_patterns<K: Key, B: Primitives>(b: &B, random: &mut Random, offsets: &[usize]) {
    for (pattern, keys) in patterns::<K>(random, offsets[offsets.len() - 1]) {
        segmented_sort_one(b, &keys, offsets, &format!("{} {pattern}", K::NAME));
    }
}

fn segmented_sort_one<K: Key, B: Primitives>(b: &B, keys: &[K], offsets: &[usize], what: &str) {
    let mut expected: Vec<(u64, u64)> = ordered(keys).into_iter().zip(0..).collect();
    for w in offsets.windows(2) {
        expected[w[0]..w[1]].sort_by_key(|pair| pair.0);
    }
    let positions: Vec<u64> = (0..keys.len() as u64).collect();
    let wide: Vec<u64> = offsets.iter().map(|&o| o as u64).collect();
    for wide_offsets in [false, true] {
        let (mut k, mut v) = (up(b, keys), up(b, &positions));
        if wide_offsets {
            b.segmented_sort_pairs(&up(b, &wide), &mut k, &mut v).unwrap();
        } else {
            b.segmented_sort_pairs(&up(b, &narrow(offsets)), &mut k, &mut v).unwrap();
        }
        let got: Vec<_> = ordered(&down(b, &k)).into_iter().zip(down(b, &v)).collect();
        assert!(got == expected, "{what}, {} keys", keys.len());
    }
}
