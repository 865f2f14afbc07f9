//! The host's primitives compared with Rayon's sorts: `cargo bench --bench primitives`.

#[path = "shared/timed.rs"]
mod timed;

use rayon::prelude::*;
use residua::Host;
use residua::backend::{Order, Primitives, Scan};
use residua::generate::Random;
use residua::scalar::Sum;
use std::hint::black_box;
use timed::Timed;

const N: usize = 1 << 24;

fn main() {
    let timed = Timed::new(N, "elements");
    let mut random = Random::new(1);
    let x64: Vec<u64> = std::iter::repeat_with(|| random.bits()).take(N).collect();
    let x32: Vec<u32> = x64.iter().map(|&x| x as u32).collect();
    let floats: Vec<f64> = x64.iter().map(|&x| x as f64).collect();
    let flags: Vec<u8> = x64.iter().map(|&x| (x % 2) as u8).collect();
    let runs: Vec<u64> = (0..N as u64).map(|i| i / 4).collect();
    let offsets: Vec<u32> = (0..=N as u32 / 8).map(|s| 8 * s).collect();
    let mut out64 = vec![0u64; N];
    let mut out_floats = vec![0f64; N];
    let good = "lengths that fit";

    let mut out = [0.0];
    timed.time("sum, f64", || Host.reduce(Sum, black_box(&floats), &mut out).expect(good));
    timed.time("segmented sum, f64, segments of 8", || {
        Host.segmented_reduce(Sum, &floats, &offsets, &mut out_floats[..N / 8]).expect(good);
    });
    timed.time("exclusive scan, u32 to u64", || Host.exclusive_scan(&x32, &mut out64).expect(good));
    timed.time("inclusive scan, u64", || {
        Host.scan(Scan::Inclusive, Sum, &x64, &mut out64).expect(good);
    });
    timed.time("segmented scan, f64, heads at random", || {
        Host.segmented_scan(Scan::Inclusive, Sum, &floats, &flags, &mut out_floats).expect(good);
    });
    let bins: Vec<u32> = x32.iter().map(|x| x >> 12).collect();
    let mut counts = vec![0; 1 << 20];
    timed.time("histogram, 2^20 bins", || Host.histogram(&bins, &mut counts).expect(good));
    timed.time("compact, u64, half of them", || Host.compact(&x64, &flags, &mut out64).expect(good));
    timed.time("reduce by key, u64 and f64, runs of 4", || {
        Host.reduce_by_key(Sum, &runs, &floats, &mut out64, &mut out_floats).expect(good)
    });
    let indices: Vec<u32> = x32.iter().map(|x| x % N as u32).collect();
    timed.time("gather, f64, random indices", || {
        Host.gather(&floats, &indices, &mut out_floats).expect(good);
    });
    let mut keys = x64.clone();
    keys[..N / 2].par_sort_unstable();
    keys[N / 2..].par_sort_unstable();
    let (left, right) = keys.split_at(N / 2);
    timed.time("merge, u64, two of 2^23", || {
        Host.merge(Order::Ascending, left, right, &mut out64).expect(good);
    });
    macro_rules! sorts {
        ($timed:ident: $($name:literal, $keys:expr, |$k:ident| $sort:expr;)*) => {$(
            $timed.time_of($name, || $keys, |mut $k| { $sort; $k });
        )*};
    }
    sorts! {
        timed:
        "radix sort, u32", x32.clone(), |k| Host.sort(&mut k, 0..32).expect(good);
        "par_sort_unstable of rayon, u32", x32.clone(), |k| k.par_sort_unstable();
        "radix sort, u64", x64.clone(), |k| Host.sort(&mut k, 0..64).expect(good);
        "par_sort_unstable of rayon, u64", x64.clone(), |k| k.par_sort_unstable();
        "merge sort, u64", x64.clone(), |k| Host.merge_sort(Order::Ascending, &mut k).expect(good);
        "par_sort of rayon, u64", x64.clone(), |k| k.par_sort();
        "radix sort, u64 and u32, 46 bits", (x64.clone(), x32.clone()), |k| {
            Host.sort_pairs(&mut k.0, &mut k.1, 0..46).expect(good)
        };
    }
    let timed = Timed::new(1 << 16, "elements");
    let (small64, small32) = (x64[..1 << 16].to_vec(), x32[..1 << 16].to_vec());
    sorts! {
        timed:
        "radix sort, u32, 2^16", small32.clone(), |k| Host.sort(&mut k, 0..32).expect(good);
        "par_sort_unstable of rayon, u32, 2^16", small32.clone(), |k| k.par_sort_unstable();
        "radix sort, u64 and u32, 46 bits, 2^16", (small64.clone(), small32.clone()), |k| {
            Host.sort_pairs(&mut k.0, &mut k.1, 0..46).expect(good)
        };
    }
}
