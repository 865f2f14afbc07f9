//! Counting and choosing: histograms, offsets and segments, compact, partition, unique.

use super::{down, narrow, random_offsets, runs, sizes, up};
use crate::random::Random;
use residua::backend::Primitives;

pub fn histogram_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        for bins in [1, 10, 4099] {
            let mut random = Random(n as u64 + 5);
            // A power law, so that one bin gets most keys; and keys out of range, which are not counted.
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
            // The same runs, as pairs that differ in either part or in both.
            let (high, low): (Vec<u32>, Vec<u32>) = keys
                .iter()
                .map(|key| key / 1_000_000_007)
                .map(|key| ((key >> 1) as u32, (key & 1) as u32))
                .unzip();
            let of_pairs = b.pair_starts::<u32>(&up(b, &high), &up(b, &low)).unwrap();
            assert_eq!(down(b, &of_pairs), starts, "{n} pairs in runs of {length}");
            let of_pairs = b.pair_starts::<u64>(&up(b, &high), &up(b, &low)).unwrap();
            assert!(down(b, &of_pairs).iter().zip(&starts).all(|(&w, &s)| w == u64::from(s)));
            assert!(b.is_sorted(&up(b, &keys), false).unwrap());
            assert_eq!(b.is_sorted(&up(b, &keys), true).unwrap(), expected.len() == n);
        }
    }
    // Zero of either sign, and NaN, are different keys.
    let floats = [0.0, -0.0, -0.0, f64::NAN, f64::NAN, 1.0];
    let mut out = b.zeros(6).unwrap();
    assert_eq!(b.unique(&up(b, &floats), &mut out).unwrap(), 4);
    // One element out of order, at a border between chunks.
    let mut keys: Vec<u32> = (0..40_000).collect();
    keys[16_384] = 7;
    assert!(!b.is_sorted(&up(b, &keys), false).unwrap());
}
