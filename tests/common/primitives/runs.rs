//! Sums of runs of sources, for each form of plan.

use super::{down, narrow, random_offsets, sizes, small_enough, up};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::{BUCKET_TILE, MOST_BUCKETS, RUN_TILE, RunSums, buckets_of};
use residua::scalar::{Element, Scalar, Symmetry};

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

/// The starts of runs of at most `longest` sources, among `n` sources.
fn starts_of(n: usize, longest: usize, random: &mut Random) -> Vec<u32> {
    let mut starts = vec![0];
    while starts[starts.len() - 1] < n {
        starts.push(starts[starts.len() - 1] + 1 + random.below(longest));
    }
    starts.retain(|&start| start < n);
    narrow(&starts)
}

/// The starts of runs, their marked sources, and the number of runs before each tile.
fn marked<B: RunSums>(b: &B, starts: &[u32], sources: &[u32]) -> (B::Vec<u32>, B::Vec<u32>, B::Vec<u32>) {
    let (starts, mut marked) = (up(b, starts), up(b, sources));
    let mut before = b.zeros(sources.len().div_ceil(RUN_TILE)).unwrap();
    b.mark_runs(&starts, &mut marked, &mut before).unwrap();
    (starts, marked, before)
}

/// Sums of runs with ascending sources have the bits of sums of marked sources, and unsuitable sources are not planned.
pub fn ascending_cases<B: RunSums>(b: &B) {
    fn sums<T: Scalar, B: RunSums>(b: &B, values: usize, starts: &[u32], sources: &[u32], suits: bool) {
        let (up_starts, marked, before) = marked(b, starts, sources);
        let planned = b.ascend_runs(values, &up_starts, &marked).unwrap();
        // Not every backend has this form.
        assert!(planned.is_none() || suits, "{} sources of {values}", sources.len());
        let Some(planned) = planned else { return };
        let x = up(b, &Random(values as u64).vec(values + 1, |r| T::from_f64(r.next() as f64 / 3.0)));
        let (mut right, mut out) = (b.zeros(starts.len()).unwrap(), b.zeros(starts.len() + 1).unwrap());
        // With an offset of one element, nothing is aligned.
        for shift in [0, 1] {
            let x = B::part(&*x, shift..shift + values);
            b.gather_sum(Symmetry::General, x, &marked, &before, &mut right).unwrap();
            let own = shift..shift + starts.len();
            b.sum_ascending(x, &planned, B::part_mut(&mut *out, own.clone())).unwrap();
            let name = format!("{} sources of {values} {}", sources.len(), T::NAME);
            assert!(down::<T, B>(b, &right) == down(b, &out)[own], "{name} from {shift} on");
        }
        assert!(b.sum_ascending(&x, &planned, &mut right).is_err(), "another length");
        assert!(b.sum_ascending(B::part(&*x, 0..values), &planned, &mut out).is_err(), "more runs");
    }
    for n in small_enough(&[0, 1, 31, 257, 7937, 9001, 40_009]) {
        let mut random = Random(n as u64 + 23);
        // Groups of 20 places in windows of 500, read across.
        let across = |k: usize| k / 500 * 500 + k % 25 * 20 + k % 500 / 25;
        // Unchanged; with half of them far after the others; and in threes with gaps of 63, which take the other form
        // of codes.
        let places: [&dyn Fn(usize) -> usize; 3] =
            [&|p| p, &|p| if 2 * p > n { p + 600_000 } else { p }, &|p| p / 3 * 66 + p % 3];
        for (place, longest) in places.into_iter().flat_map(|place| [1, 3, 256].map(|most| (place, most))) {
            let sources: Vec<u32> = (0..n).map(|k| place(across(k)) as u32).collect();
            let values = place(n.next_multiple_of(500));
            let starts = starts_of(n, longest, &mut random);
            sums::<f64, B>(b, values, &starts, &sources, true);
            sums::<f32, B>(b, values, &starts, &sources, true);
            sums::<Complex<f32>, B>(b, values, &starts, &sources, true);
            sums::<Complex<f64>, B>(b, values, &starts, &sources, true);
        }
        let sources: Vec<u32> = (0..n).map(|k| across(k) as u32).collect();
        let values = n.next_multiple_of(500);
        if n > 9000 {
            let starts = starts_of(n, 2, &mut random);
            sums::<f64, B>(b, values - 500, &starts, &sources, false);
            sums::<f64, B>(b, values, &[0, 300], &sources, false);
            let apart: Vec<u32> = (0..n as u32).map(|k| k * 97 % n as u32 * 700).collect();
            sums::<f64, B>(b, 700 * n, &starts, &apart, false);
        }
    }
}

/// Sums of staged runs have the bits of sums of marked sources, and unsuitable sources are not staged.
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

/// Sums of values in tiles have the bits of sums of marked sources, also for values of another size than planned; plans
/// that do not fit are not made.
pub fn tiled_cases<B: RunSums>(b: &B) {
    fn sums<T: Scalar, B: RunSums>(
        b: &B,
        n: usize,
        owners: &[u32],
        plan: (usize, (usize, usize)),
        suits: bool,
    ) {
        let width = 50;
        let part = |of: fn(u32, u32) -> u32| {
            up(b, &owners.iter().map(|&owner| of(owner, width)).collect::<Vec<_>>())
        };
        let (high, low) = (part(|owner, width| owner / width), part(|owner, width| owner % width));
        let mut sources: Vec<u32> = (0..n as u32).collect();
        sources.sort_by_key(|&i| owners[i as usize]);
        let new = |k: usize| k == 0 || owners[sources[k] as usize] != owners[sources[k - 1] as usize];
        let starts = narrow(&(0..n).filter(|&k| new(k)).collect::<Vec<_>>());
        let (up_starts, marked, before) = marked(b, &starts, &sources);
        let planned = b.tile_runs(plan.0, plan.1, (&high, &low), &up_starts, &marked).unwrap();
        // Not every backend has this form.
        assert!(planned.is_none() || suits, "{n} values {plan:?}");
        let Some(planned) = planned else { return };
        let x = up(b, &Random(n as u64).vec(n + 1, |r| T::from_f64(r.next() as f64 / 3.0)));
        let mut room = b.zeros(planned.room()).unwrap();
        // With an offset of one element, nothing is aligned.
        for shift in [0, 1] {
            let x = B::part(&*x, shift..shift + n);
            let (mut right, mut out) = (b.zeros(starts.len()).unwrap(), b.zeros(starts.len()).unwrap());
            b.gather_sum(Symmetry::General, x, &marked, &before, &mut right).unwrap();
            b.sum_tiles(x, &planned, &mut room, &mut out).unwrap();
            assert!(
                down::<T, B>(b, &right) == down(b, &out),
                "{n} values {} {plan:?} from {shift} on",
                T::NAME
            );
        }
        let mut out = b.zeros(starts.len()).unwrap();
        assert!(b.sum_tiles(&x, &planned, &mut room, &mut out).is_err(), "another length");
        let mut less = b.zeros(planned.room() - 1).unwrap();
        assert!(b.sum_tiles(B::part(&*x, 0..n), &planned, &mut less, &mut out).is_err(), "less room");
    }
    for n in small_enough(&[1, 31, 257, 1025, 9001, 100_003]) {
        let mut random = Random(n as u64 + 19);
        for longest in [1, 2, 9] {
            let (mut owners, mut owner) = (Vec::new(), 0);
            while owners.len() < n {
                owners.extend(std::iter::repeat_n(owner, 1 + random.below(longest)));
                owner += 1 + random.below(3) as u32;
            }
            owners.truncate(n);
            for i in (1..n).rev() {
                owners.swap(i, random.below(i + 1));
            }
            for sizes in [(64, 48), (8192, 1000), (1000, 3001)] {
                sums::<f64, B>(b, n, &owners, (8, sizes), true);
                sums::<f32, B>(b, n, &owners, (4, sizes), true);
            }
            sums::<Complex<f64>, B>(b, n, &owners, (16, (1000, 3001)), true);
            sums::<Complex<f32>, B>(b, n, &owners, (8, (1000, 3001)), true);
            sums::<f32, B>(b, n, &owners, (8, (1000, 3001)), true);
            sums::<f64, B>(b, n, &owners, (4, (1000, 3001)), true);
        }
        // Sums that start in one bucket and fill several.
        let few: Vec<u32> = (0..n).map(|i| (i * 7 % 5) as u32).collect();
        sums::<f64, B>(b, n, &few, (8, (256, 100)), true);
        sums::<f64, B>(b, n, &few, (8, (255, 100)), false);
        sums::<f64, B>(b, n, &few, (2, (256, 100)), false);
    }
}

/// Elements are moved to the buckets of their places, tile by tile, each to a place of its own.
pub fn bucket_cases<B: RunSums>(b: &B) {
    fn moved<T: Element + PartialEq, B: RunSums>(
        b: &B,
        (slots, runs): (&B::Vec<u16>, &B::Vec<u32>),
        near: &[u32],
        item: impl Fn(u32) -> T,
    ) {
        let n = near.len();
        // With one more element in front, nothing is aligned.
        let x = up(b, &(0..=n as u32).map(&item).collect::<Vec<_>>());
        for shift in [0, 1] {
            let mut out = b.zeros(n).unwrap();
            b.to_buckets(B::part(&*x, shift..n + shift), slots, runs, &mut out).unwrap();
            let out = down(b, &out);
            let right = near.iter().enumerate().all(|(i, &at)| out[at as usize] == item((i + shift) as u32));
            assert!(right, "{n} elements of {} bytes from {shift} on", size_of::<T>());
        }
    }
    let whole = BUCKET_TILE;
    for (n, bits) in [(0, 3), (1, 0), (33, 4), (9001, 6), (2 * whole, 14), (2 * whole + 5, 7), (100_003, 31)]
    {
        let mut random = Random(n as u64 + 16);
        let mut places: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            places.swap(i, random.below(i + 1));
        }
        let (_, length) = buckets_of(n, bits).unwrap();
        let (mut slots, mut runs) = (b.zeros(n).unwrap(), b.zeros(length).unwrap());
        let mut planned = up(b, &places);
        b.plan_buckets(&mut planned, bits, &mut slots, &mut runs).unwrap();
        let near = down(b, &planned);
        let mut taken = vec![false; n];
        for (i, (&place, &near)) in places.iter().zip(&near).enumerate() {
            assert_eq!(place >> bits, near >> bits, "bucket of {i} of {n}");
            assert!(!std::mem::replace(&mut taken[near as usize], true), "{i} of {n}: place {near} is taken");
        }
        let plan = (&slots, &runs);
        moved(b, plan, &near, |i| i);
        moved(b, plan, &near, |i| u64::from(i) << 32 | 7);
        moved(b, plan, &near, |i| Complex::new(f64::from(i), 0.5));
    }
    ranks(b);
    assert!(buckets_of(MOST_BUCKETS + 1, 0).is_err() && buckets_of(MOST_BUCKETS, 0).is_ok());
    assert!(buckets_of(5, 32).is_err());
    // A place beyond the last bucket.
    let (mut slots, mut runs) = (b.zeros(5).unwrap(), b.zeros(10).unwrap());
    let planned = b.plan_buckets(&mut up(b, &[0, 1, 2, 3, 16]), 4, &mut slots, &mut runs);
    assert!(planned.and_then(|()| b.synchronize()).is_err());
    assert!(b.to_buckets(&up(b, &[1.0; 4]), &slots, &runs, &mut b.zeros(5).unwrap()).is_err());
}

/// Pairs are assigned to the bucket of their place in a stable sort, and marked sources keep their marks.
fn ranks<B: RunSums>(b: &B) {
    for (n, bits) in
        small_enough(&[0, 1, 33, 1025, 9001, 100_003]).into_iter().flat_map(|n| [(n, 0), (n, 5), (n, 10)])
    {
        let buckets = n.saturating_sub(1) >> bits;
        if buckets >= MOST_BUCKETS {
            continue;
        }
        let mut random = Random(n as u64 + 18);
        let high = random.vec(n, |r| r.below(7) as u32);
        let low = random.vec(n, |r| r.below(50) as u32);
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&i| (high[i as usize], low[i as usize]));
        let starts: Vec<u32> = (1..=buckets).map(|bucket| order[bucket << bits]).collect();
        let of = |part: &[u32]| up(b, &starts.iter().map(|&i| part[i as usize]).collect::<Vec<_>>());
        let (h, l, bounds) = (up(b, &high), up(b, &low), (of(&high), of(&low), up(b, &starts)));
        let mut ranks = b.zeros(n).unwrap();
        b.rank_places((&h, &l), [&*bounds.0, &*bounds.1, &*bounds.2], bits, &mut ranks).unwrap();
        let mut expected = vec![0; n];
        for (place, &i) in order.iter().enumerate() {
            expected[i as usize] = (place >> bits << bits) as u32;
        }
        assert_eq!(down(b, &ranks), expected, "{n} in buckets of 2^{bits}");
        let marked: Vec<u32> = order.iter().map(|&i| i | (i % 3 / 2) << 31).collect();
        let mut sources = up(b, &marked);
        b.follow(&ranks, &mut sources).unwrap();
        let at = |&source: &u32| expected[(source & !(1 << 31)) as usize] | source >> 31 << 31;
        assert_eq!(
            down(b, &sources),
            marked.iter().map(at).collect::<Vec<_>>(),
            "{n} in buckets of 2^{bits}"
        );
    }
    let outside = b.follow(&up(b, &[0_u32, 1]), &mut up(b, &[1_u32 << 31, 2]));
    assert!(outside.and_then(|()| b.synchronize()).is_err());
}
