//! Moving elements: gather, scatter, sums of gathered elements, keys of two halves.

use super::{down, narrow, random_offsets, sizes, up};
use crate::random::Random;
use residua::backend::{Primitives, RUN_TILE};
use residua::scalar::Symmetry;

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
        // One run over all tiles, too.
        let single = if n > 0 { vec![0, n] } else { vec![0] };
        let general = [(Symmetry::General, single), (Symmetry::General, offsets.clone())];
        let halves = [(Symmetry::Symmetric, offsets.clone()), (Symmetry::SkewSymmetric, offsets)];
        for (symmetry, offsets) in general.into_iter().chain(halves) {
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
            let runs = offsets.len() - 1;
            let x = up(b, &x);
            let check = |out: &B::Vec<f64>, width: u32| {
                let got: Vec<u64> = down(b, out).into_iter().map(f64::to_bits).collect();
                assert_eq!(got, expected, "{symmetry:?} {n}, sources of {width} bits");
            };
            let mut out = b.zeros::<f64>(runs).unwrap();
            let starts = up(b, &narrow(&offsets[..runs]));
            let (mut marked, mut before) = (up(b, &sources), b.zeros(n.div_ceil(RUN_TILE)).unwrap());
            b.mark_runs(&starts, &mut marked, &mut before).unwrap();
            b.gather_sum(symmetry, &x, &marked, &before, &mut out).unwrap();
            check(&out, 32);
            let mut out = b.zeros::<f64>(runs).unwrap();
            let wide = |from: Vec<usize>| up(b, &from.into_iter().map(|i| i as u64).collect::<Vec<_>>());
            let starts = wide(offsets[..runs].to_vec());
            let mut marked = wide(sources.iter().map(|&s| s as usize).collect());
            let mut before = b.zeros(n.div_ceil(RUN_TILE)).unwrap();
            b.mark_runs(&starts, &mut marked, &mut before).unwrap();
            b.gather_sum(symmetry, &x, &marked, &before, &mut out).unwrap();
            check(&out, 64);
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
