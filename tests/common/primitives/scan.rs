//! Scans of whole arrays, and of segments.

use super::{down, narrow, random_offsets, sizes, up};
use crate::random::Random;
use residua::backend::{Primitives, Scan};
use residua::scalar::{Combine, Element, Max, Min, Sum};

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
