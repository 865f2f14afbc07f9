//! Sums of floats that are rounded at every step: two runs give the same bits, although no order of summation is
//! specified.

use super::{down, narrow, random_offsets, runs, sizes, up};
use crate::random::Random;
use residua::backend::{Primitives, Scan};
use residua::scalar::Sum;

pub fn same_bits_cases<B: Primitives>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 19);
        let x = random.vec(n, |r| (r.next() as f64 - 9e18) / 3.0);
        let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let offsets = narrow(&random_offsets(&mut random, n));
        let keys = runs(&mut random, n, 40);
        let run = || {
            let (x, single, offsets) = (up(b, &x), up(b, &single), up(b, &offsets));
            let mut sum = b.zeros::<f64>(1).unwrap();
            b.reduce(Sum, &x, &mut sum).unwrap();
            let mut short = b.zeros::<f32>(1).unwrap();
            b.reduce(Sum, &single, &mut short).unwrap();
            let mut scans = [b.zeros::<f64>(n).unwrap(), b.zeros::<f64>(n).unwrap()];
            b.scan(Scan::Inclusive, Sum, &x, &mut scans[0]).unwrap();
            b.scan_segments(Scan::Exclusive, Sum, &x, &offsets, &mut scans[1]).unwrap();
            let mut scan = b.zeros::<f32>(n).unwrap();
            b.scan(Scan::Exclusive, Sum, &single, &mut scan).unwrap();
            let mut segments = b.zeros::<f64>(B::len(&offsets) - 1).unwrap();
            b.segmented_reduce(Sum, &x, &offsets, &mut segments).unwrap();
            let (mut keys_out, mut by_key) = (b.zeros(n).unwrap(), b.zeros::<f64>(n).unwrap());
            b.reduce_by_key(Sum, &up(b, &keys), &x, &mut keys_out, &mut by_key).unwrap();
            let doubles =
                [down(b, &sum), down(b, &scans[0]), down(b, &scans[1]), down(b, &segments), down(b, &by_key)];
            let singles = [down(b, &short), down(b, &scan)];
            let bits: Vec<u64> = doubles.concat().into_iter().map(f64::to_bits).collect();
            (bits, singles.concat().into_iter().map(f32::to_bits).collect::<Vec<u32>>())
        };
        let first = run();
        for _ in 0..3 {
            assert!(run() == first, "{n}");
        }
    }
}
