//! Reductions of whole arrays, of segments, and of runs of equal keys.

use super::{down, fold, narrow, random_offsets, runs, sizes, up};
use crate::random::Random;
use residua::backend::Primitives;
use residua::scalar::{Combine, Element, Max, Min, Sum};

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
        let i: Vec<i32> = x.iter().map(|&x| x as i32).collect();
        assert_eq!(reduce_one(b, Sum, &i), fold(Sum, &i), "wrapping sum of {n}");
        assert_eq!(reduce_one(b, Min, &i), fold(Min, &i));
        let u: Vec<u32> = x.iter().map(|&x| x as u32).collect();
        assert_eq!(reduce_one(b, Sum, &u), fold(Sum, &u), "wrapping sum of {n}");
        assert_eq!(reduce_one(b, Max, &u), fold(Max, &u));
        let f: Vec<f32> = u.iter().map(|&u| (u % 8) as f32).collect();
        assert_eq!(reduce_one(b, Sum, &f), fold(Sum, &f), "exact sum of {n} floats");
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
        // Offsets that begin after the first element, and end before the last.
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
            // The smallest value of each run, with keys and values of any width.
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
