//! Sums of runs of sources, for each form of plan.

use super::{down, narrow, random_offsets, sizes, small_enough, up};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::{RUN_TILE, RunSums};
use residua::scalar::{Scalar, Symmetry};

pub fn gather_sum_cases<B: RunSums>(b: &B) {
    for n in sizes() {
        let mut random = Random(n as u64 + 14);
        let mut offsets = random_offsets(&mut random, n);
        offsets.dedup();
        let x = random.vec(n, |r| r.next() as f64 / 3.0);
        // Also with one run over all tiles.
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
            let (_, marked, before) = marked(b, &narrow(&offsets[..runs]), &sources);
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

/// A run that starts beyond the sources is an error, and nothing is written for it.
pub fn mark_refusals<B: RunSums>(b: &B) {
    let (mut sources, mut before) = (up(b, &[7_u32, 8, 9]), b.zeros(1).unwrap());
    let all = b.mark_runs(&up(b, &[0_u32, 3]), B::part_mut(&mut sources, 0..2), &mut before);
    assert!(all.and_then(|()| b.synchronize()).is_err());
    assert_eq!(down(b, B::part(&sources, 2..3)), [9]);
    assert!(b.mark_runs(&up(b, &[0_u32]), &mut sources, &mut b.zeros(2).unwrap()).is_err());
}

/// Returns the starts of runs, the sources with the highest bit set where a run begins, and the number of runs that
/// begin before each tile of sources.
fn marked<B: RunSums>(b: &B, starts: &[u32], sources: &[u32]) -> (B::Vec<u32>, B::Vec<u32>, B::Vec<u32>) {
    let (starts, mut marked) = (up(b, starts), up(b, sources));
    let mut before = b.zeros(sources.len().div_ceil(RUN_TILE)).unwrap();
    b.mark_runs(&starts, &mut marked, &mut before).unwrap();
    (starts, marked, before)
}

/// Sums of staged runs have the same bits as sums of marked runs; unsuitable runs are not staged.
pub fn staged_cases<B: RunSums>(b: &B) {
    fn sums<T: Scalar, B: RunSums>(b: &B, values: usize, starts: &[u32], sources: &[u32], suits: bool) {
        let (up_starts, marked, before) = marked(b, starts, sources);
        let staged = b.stage_runs(values, &up_starts, &marked).unwrap();
        assert_eq!(staged.is_some(), suits, "{} sources of {values}", sources.len());
        let Some(staged) = staged else { return };
        let random = Random(values as u64).vec(values + 1, |r| T::from_f64(r.next() as f64 / 3.0));
        let x = up(b, &random);
        // With an offset of one element, nothing is aligned.
        for shift in [0, 1] {
            let x = B::part(&*x, shift..shift + values);
            let (mut right, mut out) = (b.zeros(starts.len()).unwrap(), b.zeros(starts.len()).unwrap());
            b.gather_sum(Symmetry::General, x, &marked, &before, &mut right).unwrap();
            b.sum_staged(x, &staged, &mut out).unwrap();
            assert!(
                down::<T, B>(b, &right) == down(b, &out),
                "{} sources of {values} {}",
                sources.len(),
                T::NAME
            );
        }
        assert!(b.sum_staged(&x, &staged, &mut b.zeros(starts.len()).unwrap()).is_err(), "another length");
        let mut more = b.zeros(starts.len() + 1).unwrap();
        assert!(b.sum_staged(B::part(&*x, 0..values), &staged, &mut more).is_err(), "more runs");
    }
    let of_lengths = |n: usize, lengths: &mut dyn FnMut() -> usize| {
        let mut starts = vec![0];
        while starts[starts.len() - 1] < n {
            starts.push(starts[starts.len() - 1] + lengths());
        }
        starts.retain(|&start| start < n);
        narrow(&starts)
    };
    for n in small_enough(&[0, 1, 31, 257, 1025, 4099, 9001, 100_003]) {
        let mut random = Random(n as u64 + 17);
        // Sources from a moving window: every eighth is anywhere in it, the others follow the previous one.
        let values = n + 40;
        let mut last = 0;
        let sources: Vec<u32> = (0..n)
            .map(|k| {
                last = if k % 8 == 0 { k / 2 + random.below(n - k / 2 + 40).min(700) } else { last + 1 };
                last.min(values - 1) as u32
            })
            .collect();
        for longest in [1, 8, 64] {
            let starts = of_lengths(n, &mut || 1 + random.below(longest));
            sums::<f64, B>(b, values, &starts, &sources, true);
            if longest < 64 {
                sums::<f32, B>(b, values, &starts, &sources, true);
                sums::<Complex<f32>, B>(b, values, &starts, &sources, true);
                sums::<Complex<f64>, B>(b, values, &starts, &sources, true);
            }
        }
        let eights = of_lengths(n, &mut || 8);
        if n > 1 {
            sums::<f64, B>(b, last.min(values - 1).min(sources[0] as usize), &eights, &sources, false);
        }
        if n > 1000 {
            sums::<f64, B>(b, values, &[0], &sources, false);
            let apart: Vec<u32> = (0..n as u32).map(|k| k * 97 % (n as u32 / 2)).collect();
            sums::<f64, B>(b, values, &eights, &apart, n < 2000);
        }
    }
}
