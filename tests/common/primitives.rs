//! What every backend's primitives must do, beside a sequential twin of each: `all_cases` runs everything.

use residua::backend::{Order, Primitives, Scan};
use residua::scalar::{Combine, Element, Key, Max, Min, Sum, Symmetry};

/// Sizes around the borders of warps, tiles and chunks, and primes. `RESIDUA_TEST_SIZES=0,1,31,4099` takes others: under
/// a sanitizer every kernel is a hundred times slower.
fn sizes() -> Vec<usize> {
    match std::env::var("RESIDUA_TEST_SIZES") {
        Ok(text) => text.split(',').map(|n| n.trim().parse().expect("RESIDUA_TEST_SIZES")).collect(),
        Err(_) => vec![0, 1, 2, 31, 33, 191, 257, 2049, 4097, 4099, 16384, 32769, 49152, 100_003],
    }
}

/// Those of `sizes` that are asked for.
fn small_enough(sizes: &[usize]) -> Vec<usize> {
    let largest = self::sizes().into_iter().max().unwrap_or(0);
    let unlimited = std::env::var_os("RESIDUA_TEST_SIZES").is_none();
    sizes.iter().copied().filter(|&n| unlimited || n <= largest).collect()
}

/// A reproducible sequence (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub fn vec<T>(&mut self, n: usize, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..n).map(|_| item(self)).collect()
    }
}

/// Everything.
pub fn all_cases<B: Primitives>(b: &B) {
    reduce_cases(b);
    segmented_reduce_cases(b);
    reduce_by_key_cases(b);
    scan_cases(b);
    segmented_scan_cases(b);
    histogram_cases(b);
    offsets_cases(b);
    select_cases(b);
    radix_sort_cases(b);
    segmented_sort_cases(b);
    merge_cases(b);
    merge_sort_cases(b);
    gather_scatter_cases(b);
    gather_sum_cases(b);
    pack_cases(b);
    refusals(b);
}

fn up<T: Element, B: Primitives>(b: &B, x: &[T]) -> B::Vec<T> {
    b.upload(x.to_vec()).unwrap()
}

fn down<T: Element, B: Primitives>(b: &B, x: &B::Slice<T>) -> Vec<T> {
    b.download(x).unwrap()
}

/// Keys compared as bits, so that NaN and the sign of zero count.
fn ordered<K: Key>(keys: &[K]) -> Vec<u64> {
    keys.iter().map(|k| k.to_ordered()).collect()
}

fn fold<T: Element, O: Combine<T>>(_op: O, x: &[T]) -> T {
    x.iter().fold(O::identity(), |a, &b| O::combine(a, b))
}

/// Ascending offsets of random, often empty segments that cover `n` elements.
fn random_offsets(random: &mut Random, n: usize) -> Vec<usize> {
    let mut offsets = vec![0];
    let mut at = 0;
    while at < n {
        let longest = if random.below(50) == 0 { 5000 } else { 7 };
        at = (at + random.below(longest)).min(n);
        offsets.push(at);
    }
    offsets.push(n);
    offsets
}

fn narrow(x: &[usize]) -> Vec<u32> {
    x.iter().map(|&x| x as u32).collect()
}

fn reduce_one<T: Element, O: Combine<T>, B: Primitives>(b: &B, op: O, x: &[T]) -> T {
    let mut out = b.zeros(1).unwrap();
    b.reduce(op, &up(b, x), &mut out).unwrap();
    down(b, &out)[0]
}

pub fn reduce_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64);
        let x = random.vec(n, |r| r.next());
        assert_eq!(reduce_one(b, Sum, &x), fold(Sum, &x), "sum of {n}");
        assert_eq!(reduce_one(b, Min, &x), fold(Min, &x), "min of {n}");
        assert_eq!(reduce_one(b, Max, &x), fold(Max, &x), "max of {n}");
        let y: Vec<f64> = x.iter().map(|&x| f64::from_bits(x)).collect();
        assert_eq!(reduce_one(b, Min, &y).to_bits(), fold(Min, &y).to_bits(), "min of {n} floats");
        assert_eq!(reduce_one(b, Max, &y).to_bits(), fold(Max, &y).to_bits(), "max of {n} floats");
        let z = random.vec(n, |r| r.below(2001) as f64 / 64.0 - 15.0);
        assert_eq!(reduce_one(b, Sum, &z), fold(Sum, &z), "exact sum of {n} floats");
        assert_eq!(reduce_one(b, Sum, &z).to_bits(), reduce_one(b, Sum, &z).to_bits());
        let i: Vec<i32> = x.iter().map(|&x| x as i32).collect();
        assert_eq!(reduce_one(b, Sum, &i), fold(Sum, &i), "wrapping sum of {n}");
        assert_eq!(reduce_one(b, Min, &i), fold(Min, &i));
    }
}

pub fn segmented_reduce_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 1);
        let x = random.vec(n, |r| r.next() as i64);
        let offsets = random_offsets(&mut random, n);
        let expected: Vec<i64> = offsets.windows(2).map(|w| fold(Sum, &x[w[0]..w[1]])).collect();
        let mut out = b.zeros(offsets.len() - 1).unwrap();
        b.segmented_reduce(Sum, &up(b, &x), &up(b, &narrow(&offsets)), &mut out).unwrap();
        assert_eq!(down(b, &out), expected, "{n}");
        let largest: Vec<i64> = offsets.windows(2).map(|w| fold(Max, &x[w[0]..w[1]])).collect();
        let wide: Vec<u64> = offsets.iter().map(|&o| o as u64).collect();
        b.segmented_reduce(Max, &up(b, &x), &up(b, &wide), &mut out).unwrap();
        assert_eq!(down(b, &out), largest, "{n}");
        // Offsets that begin later than the elements, and end earlier.
        if offsets.len() > 5 {
            let some = &offsets[2..offsets.len() - 1];
            let mut out = b.zeros(some.len() - 1).unwrap();
            b.segmented_reduce(Max, &up(b, &x), &up(b, &narrow(some)), &mut out).unwrap();
            assert_eq!(down(b, &out), largest[2..2 + some.len() - 1], "{n}");
        }
        // Bytes, and floats whose sums are exact.
        let bytes: Vec<u8> = x.iter().map(|&x| x as u8).collect();
        let smallest: Vec<u8> = offsets.windows(2).map(|w| fold(Min, &bytes[w[0]..w[1]])).collect();
        let mut out = b.zeros(offsets.len() - 1).unwrap();
        b.segmented_reduce(Min, &up(b, &bytes), &up(b, &wide), &mut out).unwrap();
        assert_eq!(down(b, &out), smallest, "{n}");
        let floats: Vec<f64> = bytes.iter().map(|&x| f64::from(x)).collect();
        let sums: Vec<f64> = offsets.windows(2).map(|w| fold(Sum, &floats[w[0]..w[1]])).collect();
        let mut out = b.zeros(offsets.len() - 1).unwrap();
        b.segmented_reduce(Sum, &up(b, &floats), &up(b, &wide), &mut out).unwrap();
        assert_eq!(down(b, &out), sums, "{n}");
    }
}

/// Keys in runs of about `length`.
fn runs(random: &mut Random, n: usize, length: usize) -> Vec<u64> {
    let mut key = 0;
    random.vec(n, |r| {
        key += u64::from(r.below(length) == 0);
        key * 1_000_000_007
    })
}

pub fn reduce_by_key_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        for length in [1, 4, 1000, usize::MAX] {
            let mut random = Random(n as u64 + 2);
            let keys = runs(&mut random, n, length);
            let values = random.vec(n, |r| r.below(1000) as f64 - 300.0);
            let mut expected: Vec<(u64, f64)> = Vec::new();
            for (&key, &value) in keys.iter().zip(&values) {
                match expected.last_mut().filter(|last| last.0 == key) {
                    Some(last) => last.1 += value,
                    None => expected.push((key, value)),
                }
            }
            let (mut keys_out, mut sums) = (b.zeros(n).unwrap(), b.zeros(n).unwrap());
            let found =
                b.reduce_by_key(Sum, &up(b, &keys), &up(b, &values), &mut keys_out, &mut sums).unwrap();
            assert_eq!(found, expected.len(), "{n} keys in runs of {length}");
            let got: Vec<_> = down(b, &keys_out).into_iter().zip(down(b, &sums)).take(found).collect();
            assert_eq!(got, expected, "{n} keys in runs of {length}");
            // The smallest of each run, by keys and values of any width.
            let (few, small): (Vec<u32>, Vec<i32>) =
                keys.iter().zip(&values).map(|(&k, &v)| ((k / 1_000_000_007) as u32, v as i32)).unzip();
            let mut smallest: Vec<(u32, i32)> = Vec::new();
            for (&key, &value) in few.iter().zip(&small) {
                match smallest.last_mut().filter(|last| last.0 == key) {
                    Some(last) => last.1 = last.1.min(value),
                    None => smallest.push((key, value)),
                }
            }
            let (mut keys_out, mut out) = (b.zeros(n).unwrap(), b.zeros(n).unwrap());
            let found = b.reduce_by_key(Min, &up(b, &few), &up(b, &small), &mut keys_out, &mut out).unwrap();
            let got: Vec<_> = down(b, &keys_out).into_iter().zip(down(b, &out)).take(found).collect();
            assert_eq!(got, smallest, "{n} keys in runs of {length}");
        }
    }
}

fn scan_twin<T: Element, O: Combine<T>>(kind: Scan, _op: O, x: &[T], head: impl Fn(usize) -> bool) -> Vec<T> {
    let mut sum = O::identity();
    (0..x.len())
        .map(|i| {
            if head(i) {
                sum = O::identity();
            }
            let before = sum;
            sum = O::combine(sum, x[i]);
            if kind == Scan::Inclusive { sum } else { before }
        })
        .collect()
}

pub fn scan_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 3);
        let x = random.vec(n, |r| r.next());
        let mut out = b.zeros(n).unwrap();
        for kind in [Scan::Inclusive, Scan::Exclusive] {
            b.scan(kind, Sum, &up(b, &x), &mut out).unwrap();
            assert_eq!(down(b, &out), scan_twin(kind, Sum, &x, |_| false), "{kind:?} sum of {n}");
            b.scan(kind, Max, &up(b, &x), &mut out).unwrap();
            assert_eq!(down(b, &out), scan_twin(kind, Max, &x, |_| false), "{kind:?} max of {n}");
        }
        let counts = random.vec(n, |r| r.below(1 << 14) as u32);
        let mut total = 0;
        let mut expected: Vec<u64> = Vec::new();
        for &count in &counts {
            expected.push(total);
            total += u64::from(count);
        }
        let mut offsets = b.zeros::<u64>(n).unwrap();
        b.exclusive_scan(&up(b, &counts), &mut offsets).unwrap();
        assert_eq!(down(b, &offsets), expected, "{n}");
        expected.push(total);
        let mut offsets = b.zeros::<u32>(n + 1).unwrap();
        b.exclusive_scan(&up(b, &counts), &mut offsets).unwrap();
        let expected: Vec<u32> = expected.iter().map(|&o| o as u32).collect();
        assert_eq!(down(b, &offsets), expected, "{n} and a total");
    }
    // Totals beyond 32 bits.
    let counts = vec![u32::MAX; 40_000];
    let mut offsets = b.zeros::<u64>(counts.len() + 1).unwrap();
    b.exclusive_scan(&up(b, &counts), &mut offsets).unwrap();
    assert_eq!(down(b, &offsets)[40_000], 40_000 * u64::from(u32::MAX));
}

pub fn segmented_scan_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 4);
        let x = random.vec(n, |r| r.next() as u32);
        let offsets = random_offsets(&mut random, n);
        let mut heads = b.zeros::<u8>(n).unwrap();
        b.head_flags(&up(b, &narrow(&offsets)), &mut heads).unwrap();
        let flags = down(b, &heads);
        for (i, &flag) in flags.iter().enumerate() {
            assert_eq!(flag != 0, offsets.binary_search(&i).is_ok(), "head {i} of {n}");
        }
        let mut out = b.zeros(n).unwrap();
        for kind in [Scan::Inclusive, Scan::Exclusive] {
            b.segmented_scan(kind, Sum, &up(b, &x), &heads, &mut out).unwrap();
            assert_eq!(down(b, &out), scan_twin(kind, Sum, &x, |i| flags[i] != 0), "{kind:?} {n}");
            b.scan_segments(kind, Max, &up(b, &x), &up(b, &narrow(&offsets)), &mut out).unwrap();
            assert_eq!(
                down(b, &out),
                scan_twin(kind, Max, &x, |i| flags[i] != 0),
                "{kind:?} {n}, by offsets"
            );
            b.segmented_scan(kind, Min, &up(b, &x), &heads, &mut out).unwrap();
            assert_eq!(down(b, &out), scan_twin(kind, Min, &x, |i| flags[i] != 0), "{kind:?} {n}");
        }
        // One segment from end to end, and one for every element.
        b.segmented_scan(Scan::Inclusive, Sum, &up(b, &x), &up(b, &vec![0; n]), &mut out).unwrap();
        assert_eq!(down(b, &out), scan_twin(Scan::Inclusive, Sum, &x, |_| false));
        b.segmented_scan(Scan::Inclusive, Sum, &up(b, &x), &up(b, &vec![1; n]), &mut out).unwrap();
        assert_eq!(down(b, &out), x);
    }
}

pub fn histogram_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        for bins in [1, 10, 4099] {
            let mut random = Random(n as u64 + 5);
            // A power law, so that one bin gets most; and keys out of range, which do not count.
            let keys = random.vec(n, |r| {
                let limit = 1 + r.below(bins + 2);
                r.below(limit) as u32
            });
            let mut expected = vec![0u32; bins];
            keys.iter().filter(|&&k| (k as usize) < bins).for_each(|&k| expected[k as usize] += 1);
            let mut counts = up(b, &vec![77; bins]);
            b.histogram(&up(b, &keys), &mut counts).unwrap();
            assert_eq!(down(b, &counts), expected, "{n} keys, {bins} bins");
        }
    }
}

pub fn offsets_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 6);
        let offsets = narrow(&random_offsets(&mut random, n));
        let mut segments = Vec::new();
        for (s, w) in offsets.windows(2).enumerate() {
            segments.extend((w[0]..w[1]).map(|_| s as u32));
        }
        let mut expanded = b.zeros::<u32>(n).unwrap();
        b.expand_offsets(&up(b, &offsets), &mut expanded).unwrap();
        assert_eq!(down(b, &expanded), segments, "{n}");
        let mut back = b.zeros::<u32>(offsets.len()).unwrap();
        b.offsets_of_sorted(&expanded, &mut back).unwrap();
        assert_eq!(down(b, &back), offsets, "{n}");
        let mut wide = b.zeros::<u64>(offsets.len()).unwrap();
        b.offsets_of_sorted(&expanded, &mut wide).unwrap();
        assert!(down(b, &wide).iter().zip(&offsets).all(|(&w, &o)| w == u64::from(o)));
    }
}

pub fn select_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        for kept in [0, 1, 50, 100] {
            let mut random = Random(n as u64 + 7);
            let x = random.vec(n, |r| r.next() as f32);
            let flags = random.vec(n, |r| 3 * u8::from(r.below(100) < kept));
            let pick = |wanted: bool| -> Vec<f32> {
                x.iter().zip(&flags).filter(|(_, f)| (**f != 0) == wanted).map(|(&x, _)| x).collect()
            };
            let mut expected = pick(true);
            let mut out = b.zeros(n).unwrap();
            let count = b.compact(&up(b, &x), &up(b, &flags), &mut out).unwrap();
            assert_eq!(down(b, B::part(&*out, 0..count)), expected, "{kept}% of {n}");
            let count = b.partition(&up(b, &x), &up(b, &flags), &mut out).unwrap();
            assert_eq!(count, expected.len(), "{kept}% of {n}");
            expected.extend(pick(false));
            assert_eq!(down(b, &out), expected, "{kept}% of {n}");
        }
        for length in [1, 5, usize::MAX] {
            let mut random = Random(n as u64 + 8);
            let keys = runs(&mut random, n, length);
            let mut expected = keys.clone();
            expected.dedup();
            let mut out = b.zeros(n).unwrap();
            let count = b.unique(&up(b, &keys), &mut out).unwrap();
            assert_eq!(down(b, B::part(&*out, 0..count)), expected, "{n} in runs of {length}");
            let mut starts = b.zeros::<u32>(n + 1).unwrap();
            assert_eq!(b.run_starts(&up(b, &keys), &mut starts).unwrap(), count);
            let starts = down(b, B::part(&*starts, 0..count + 1));
            assert_eq!(starts[count] as usize, n);
            assert!((0..count).all(|r| keys[starts[r] as usize] == expected[r]));
            assert!((1..count).all(|r| keys[starts[r] as usize - 1] == expected[r - 1]));
            assert!(b.is_sorted(&up(b, &keys), false).unwrap());
            assert_eq!(b.is_sorted(&up(b, &keys), true).unwrap(), expected.len() == n);
        }
    }
    // Zero of either sign, and NaN, are keys of their own.
    let floats = [0.0, -0.0, -0.0, f64::NAN, f64::NAN, 1.0];
    let mut out = b.zeros(6).unwrap();
    assert_eq!(b.unique(&up(b, &floats), &mut out).unwrap(), 4);
    // One element out of order, at a border between chunks.
    let mut keys: Vec<u32> = (0..40_000).collect();
    keys[16_384] = 7;
    assert!(!b.is_sorted(&up(b, &keys), false).unwrap());
}

/// Sorted by the given bits of the keys, with the positions that they came from: stability shows in them.
fn check_sort<K: Key, B: Primitives>(b: &B, keys: &[K], bits: std::ops::Range<u32>, what: &str) {
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
    let mask = u64::MAX >> (64 - K::BITS);
    let any = random.vec(n, |r| K::from_ordered(r.next() & mask));
    for bits in ranges {
        check_sort(b, &any, bits.clone(), K::NAME);
    }
    let mut sorted = any.clone();
    sorted.sort_by_key(|k| k.to_ordered());
    check_sort(b, &sorted, 0..K::BITS, "sorted");
    sorted.reverse();
    check_sort(b, &sorted, 0..K::BITS, "reversed");
    check_sort(b, &vec![K::default(); n], 0..K::BITS, "all equal");
    let few = random.vec(n, |r| K::from_ordered(r.next() & mask & 0x0600_0005));
    check_sort(b, &few, 0..K::BITS, "few varying bits");
}

pub fn radix_sort_cases<B: Primitives>(b: &B) {
    for n in small_enough(&[0, 1, 2, 33, 191, 257, 1025, 2049, 4099, 32_769, 131_101]) {
        radix_sort_type::<u32, B>(b, n, &[0..32, 3..17, 8..9, 5..5]);
        radix_sort_type::<u64, B>(b, n, &[0..64, 0..46, 7..47, 60..64]);
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
        radix_sort_type::<i32, B>(b, n, &[0..32, 20..29]);
        radix_sort_type::<f32, B>(b, n, &[0..32, 20..29]);
        radix_sort_type::<f64, B>(b, n, &[0..64, 50..64]);
    }
    let special = [1.0, f64::NAN, -0.0, 0.0, f64::NEG_INFINITY, -f64::NAN, f64::INFINITY, 5e-324, -1.0];
    check_sort(b, &special, 0..64, "special values");
}

pub fn segmented_sort_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 10);
        let keys = random.vec(n, |r| r.below(50) as u32);
        segmented_sort_one(b, &keys, &random_offsets(&mut random, n), "random lengths");
        segmented_sort_one(b, &keys, &[0, n], "one segment");
        // Lengths around the borders between ways to sort, with empty segments between.
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
}

fn segmented_sort_one<B: Primitives>(b: &B, keys: &[u32], offsets: &[usize], what: &str) {
    let mut expected: Vec<(u32, u64)> = keys.iter().copied().zip(0..).collect();
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
        let got: Vec<_> = down(b, &k).into_iter().zip(down(b, &v)).collect();
        assert!(got == expected, "{what}, {} keys", keys.len());
    }
}

fn sort_by_order<K: Key>(order: Order, pairs: &mut [(K, u32)]) {
    match order {
        Order::Ascending => pairs.sort_by_key(|p| p.0.to_ordered()),
        Order::Descending => pairs.sort_by_key(|p| std::cmp::Reverse(p.0.to_ordered())),
    }
}

pub fn merge_cases<B: Primitives>(b: &B) {
    for (n, m) in [(0, 0), (1, 0), (0, 1), (33, 1), (4099, 4099), (40_000, 3), (5, 60_000), (50_021, 49_999)]
    {
        for (order, distinct) in
            [(Order::Ascending, 7), (Order::Descending, 7), (Order::Ascending, usize::MAX)]
        {
            let mut random = Random((n + m) as u64 + 11);
            let mut input = |length: usize, first: u32| {
                let mut pairs: Vec<(u64, u32)> =
                    (first..).take(length).map(|i| (random.below(distinct) as u64, i)).collect();
                sort_by_order(order, &mut pairs);
                pairs
            };
            let (a, c) = (input(n, 0), input(m, n as u32));
            let mut expected = [a.clone(), c.clone()].concat();
            sort_by_order(order, &mut expected);
            let split = |pairs: &[(u64, u32)]| -> (Vec<u64>, Vec<u32>) { pairs.iter().copied().unzip() };
            let ((a, av), (c, cv)) = (split(&a), split(&c));
            let (expected_keys, expected_values) = split(&expected);
            let (mut out, mut values) = (b.zeros(n + m).unwrap(), b.zeros(n + m).unwrap());
            b.merge(order, &up(b, &a), &up(b, &c), &mut out).unwrap();
            assert_eq!(down(b, &out), expected_keys, "{order:?} {n} + {m}");
            let (a, av, c, cv) = (up(b, &a), up(b, &av), up(b, &c), up(b, &cv));
            b.merge_pairs(order, (&*a, &*av), (&*c, &*cv), (&mut *out, &mut *values)).unwrap();
            assert_eq!(down(b, &out), expected_keys, "{order:?} {n} + {m}");
            assert_eq!(down(b, &values), expected_values, "{order:?} {n} + {m}");
        }
    }
}

pub fn merge_sort_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        for order in [Order::Ascending, Order::Descending] {
            let mut random = Random(n as u64 + 12);
            let keys = random.vec(n, |r| f64::from_bits(r.next() & 0xfff0_0000_0000_0003));
            let mut expected: Vec<(f64, u32)> = keys.iter().copied().zip(0..).collect();
            sort_by_order(order, &mut expected);
            let (expected, positions): (Vec<f64>, Vec<u32>) = expected.into_iter().unzip();
            let mut k = up(b, &keys);
            b.merge_sort(order, &mut k).unwrap();
            assert_eq!(ordered(&down(b, &k)), ordered(&expected), "{order:?} {n}");
            let (mut k, mut v) = (up(b, &keys), up(b, &(0..n as u32).collect::<Vec<_>>()));
            b.merge_sort_pairs(order, &mut k, &mut v).unwrap();
            assert_eq!(ordered(&down(b, &k)), ordered(&expected), "{order:?} {n}");
            assert_eq!(down(b, &v), positions, "{order:?} {n}");
        }
    }
}

pub fn gather_scatter_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 13);
        let mut permutation: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            permutation.swap(i, random.below(i + 1));
        }
        let x = random.vec(n, |r| r.next());
        let expected: Vec<u64> = permutation.iter().map(|&p| x[p as usize]).collect();
        let (x, p) = (up(b, &x), up(b, &permutation));
        let mut gathered = b.zeros(n).unwrap();
        b.gather(&x, &p, &mut gathered).unwrap();
        assert_eq!(down(b, &gathered), expected);
        let mut back = b.zeros(n).unwrap();
        b.scatter(&gathered, &p, &mut back).unwrap();
        assert_eq!(down(b, &back), down(b, &x));
        let mut sequence = b.zeros::<u32>(n).unwrap();
        b.sequence(&mut sequence).unwrap();
        assert!(down(b, &sequence).into_iter().eq(0..n as u32));
        b.add_constant(5, &mut sequence).unwrap();
        assert!(down(b, &sequence).into_iter().eq(5..n as u32 + 5));
    }
    // Scattering a few leaves the others alone.
    let mut out = up(b, &[9u8; 10]);
    b.scatter(&up(b, &[1u8, 2]), &up(b, &[7u64, 3]), &mut out).unwrap();
    assert_eq!(down(b, &out), [9, 9, 9, 2, 9, 9, 9, 1, 9, 9]);
}

pub fn gather_sum_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 14);
        let mut offsets = random_offsets(&mut random, n);
        offsets.dedup();
        let x = random.vec(n, |r| r.next() as f64 / 3.0);
        for symmetry in [Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            let half = symmetry != Symmetry::General;
            let sources = random.vec(n, |r| r.below(if half { 2 * n } else { n }) as u32);
            let value = |s: u32| match (symmetry, s % 2) {
                (Symmetry::General, _) => x[s as usize],
                (Symmetry::SkewSymmetric, 1) => -x[s as usize / 2],
                _ => x[s as usize / 2],
            };
            let expected: Vec<u64> = offsets
                .windows(2)
                .map(|w| {
                    let rest = sources[w[0] + 1..w[1]].iter();
                    rest.fold(value(sources[w[0]]), |sum, &s| sum + value(s)).to_bits()
                })
                .collect();
            let mut out = b.zeros::<f64>(offsets.len() - 1).unwrap();
            let (x, sources, offsets) = (up(b, &x), up(b, &sources), up(b, &narrow(&offsets)));
            b.gather_sum(symmetry, &x, &sources, &offsets, &mut out).unwrap();
            let got: Vec<u64> = down(b, &out).into_iter().map(f64::to_bits).collect();
            assert_eq!(got, expected, "{symmetry:?} {n}");
        }
    }
}

pub fn pack_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        for shift in [0, 5, 20, 32] {
            let mut random = Random(n as u64 + 15);
            let mask = (1u64 << shift) - 1;
            let high = random.vec(n, |r| (r.next() & mask) as u32);
            let mut low = random.vec(n, |r| (r.next() & mask) as u32);
            low.iter_mut().zip(&high).step_by(3).for_each(|(l, &h)| *l = h);
            let pack = |h: u32, l: u32| u64::from(h) << shift | u64::from(l);
            let expected: Vec<u64> = high.iter().zip(&low).map(|(&h, &l)| pack(h, l)).collect();
            let (h, l) = (up(b, &high), up(b, &low));
            let mut packed = b.zeros(n).unwrap();
            b.pack(&h, &l, shift, &mut packed).unwrap();
            assert_eq!(down(b, &packed), expected, "{n}, shift {shift}");
            let (mut h2, mut l2) = (b.zeros(n).unwrap(), b.zeros(n).unwrap());
            b.unpack(&packed, shift, &mut h2, &mut l2).unwrap();
            assert_eq!((down(b, &h2), down(b, &l2)), (high.clone(), low.clone()), "{n}, shift {shift}");
            let mut mirrored = b.zeros(2 * n).unwrap();
            b.pack_mirrored(&h, &l, shift, &mut mirrored).unwrap();
            let above = if shift == 32 { u64::MAX } else { 1 << (2 * shift) };
            for (i, pair) in down(b, &mirrored).chunks(2).enumerate() {
                let mirror = if high[i] == low[i] { above } else { pack(low[i], high[i]) };
                assert_eq!(pair, [expected[i], mirror], "{i} of {n}, shift {shift}");
            }
        }
    }
}

/// Lengths that do not fit are refused, and so are indices out of range.
pub fn refusals<B: Primitives>(b: &B) {
    let three = up(b, &[1u32, 2, 3]);
    let mut two = b.zeros::<u32>(2).unwrap();
    assert!(b.scan(Scan::Inclusive, Sum, &three, &mut two).is_err());
    assert!(b.exclusive_scan(&three, &mut two).is_err());
    assert!(b.reduce(Sum, &three, &mut two).is_err());
    assert!(b.merge(Order::Ascending, &three, &three, &mut two).is_err());
    assert!(b.pack(&three, &two, 4, &mut b.zeros(3).unwrap()).is_err());
    let refused = b.gather(&two, &three, &mut b.zeros(3).unwrap()).and_then(|()| b.synchronize());
    assert!(refused.is_err(), "an index out of range");
}
