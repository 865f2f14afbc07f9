//! The backend's primitives, compared with CUB. If the variable RESIDUA_CUB names the program built from
//! `benches/peers/cub_figures.cu` by nvcc, this program runs it. Both generate the same inputs.

use rayon::prelude::*;
use residua::backend::{Backend, Order, Primitives, Scan, VectorOps};
use residua::scalar::{Element, Sum};
use residua::{Cuda, Result};
use std::collections::BTreeMap;
use std::time::Duration;

const RUNS: usize = 9;
const BINS: usize = 1 << 20;

/// Pseudorandom bits (splitmix64), the same as in `cub_figures.cu`.
fn hash(i: usize) -> u64 {
    let mut z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn make<T: Element>(
    b: &Cuda,
    n: usize,
    item: impl Fn(usize) -> T + Sync + Send,
) -> Result<<Cuda as Backend>::Vec<T>> {
    b.upload((0..n).into_par_iter().map(item).collect())
}

/// CUB's milliseconds by name; empty if the program is missing.
fn cub() -> BTreeMap<String, f64> {
    let Some(program) = std::env::var_os("RESIDUA_CUB") else { return BTreeMap::new() };
    match std::process::Command::new(&program).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| {
                let (name, time) = line.rsplit_once(' ')?;
                Some((name.to_string(), time.parse().ok()?))
            })
            .collect(),
        Err(error) => {
            println!("{}: {error}", program.display());
            BTreeMap::new()
        }
    }
}

struct Table {
    b: Cuda,
    copy: f64,
    peer: BTreeMap<String, f64>,
}

impl Table {
    /// Times `run` after `prepare` and prints a row with the bandwidth, if `bytes` that it must move are given, or else
    /// elements per second.
    fn row(
        &self,
        name: &str,
        n: usize,
        bytes: Option<usize>,
        mut prepare: impl FnMut() -> Result<()>,
        mut run: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..RUNS + 2 {
            prepare()?;
            times.push(self.b.time(&mut run)?);
        }
        times.drain(..2);
        times.sort();
        let ms = times[RUNS / 2].as_secs_f64() * 1e3;
        let peer = self.peer.get(name).map_or("| |".to_string(), |cub| format!("{cub:.4} | {:.2}", cub / ms));
        let rate = bytes.map_or(format!("{:.2} G/s |", n as f64 / ms / 1e6), |bytes| {
            let speed = bytes as f64 / ms / 1e6;
            format!("{speed:.0} GB/s | {:.2}", speed / self.copy)
        });
        println!("| {name} | 2^{} | {ms:.4} | {peer} | {rate} |", n.ilog2());
        Ok(())
    }

    fn sort<K: residua::scalar::Key>(
        &self,
        name: &str,
        n: usize,
        bits: u32,
        with_values: bool,
        item: impl Fn(usize) -> K + Sync + Send,
    ) -> Result<()> {
        let b = &self.b;
        let original = make(b, n, item)?;
        let mut keys = b.zeros::<K>(n)?;
        let mut values = make(b, if with_values { n } else { 0 }, |i| i as u32)?;
        let keys = std::cell::RefCell::new(&mut keys);
        self.row(
            name,
            n,
            None,
            || b.copy(&original, *keys.borrow_mut()),
            || match with_values {
                true => b.sort_pairs(*keys.borrow_mut(), &mut values, 0..bits),
                false => b.sort(*keys.borrow_mut(), 0..bits),
            },
        )
    }
}

pub fn table(b: &Cuda, copy: f64) -> Result<()> {
    let peer = cub();
    println!(
        "\n| what | elements | ours ms | CUB ms | CUB / ours | rate | of copy |\n|---|---|---|---|---|---|---|"
    );
    let table = Table { b: *b, copy, peer };
    sums(&table)?;
    scans(&table)?;
    selections(&table)?;
    histograms(&table)?;
    sorts(&table)
}

fn nothing() -> Result<()> {
    Ok(())
}

fn sums(table: &Table) -> Result<()> {
    let (b, n) = (&table.b, 1 << 28);
    let x = make(b, n, |i| (hash(i) & 0xff) as f64)?;
    let mut out = b.zeros::<f64>(1)?;
    table.row("sum f64", n, Some(8 * n), nothing, || b.reduce(Sum, &x, &mut out))?;
    table.row("dot f64", n, Some(16 * n), nothing, || b.dot(&x, Cuda::part(&x, 0..n), &mut out))?;
    let y = make(b, n, |i| (hash(i) & 0xff) as f64)?;
    table.row("dot f64, two arrays", n, Some(16 * n), nothing, || b.dot(&x, &y, &mut out))
}

fn scans(table: &Table) -> Result<()> {
    let b = &table.b;
    for n in [1_usize << 29, 1 << 20] {
        let x = make(b, n, |i| hash(i) as u32 & 0x3f)?;
        let mut out = b.zeros::<u32>(n)?;
        let run = || b.scan(Scan::Exclusive, Sum, &x, &mut out);
        table.row(&format!("exclusive scan u32 2^{}", n.ilog2()), n, Some(8 * n), nothing, run)?;
    }
    for n in [1_usize << 28, 1 << 20] {
        let x = make(b, n, |i| hash(i) & 0x3f)?;
        let mut out = b.zeros::<u64>(n)?;
        let run = || b.scan(Scan::Exclusive, Sum, &x, &mut out);
        table.row(&format!("exclusive scan u64 2^{}", n.ilog2()), n, Some(16 * n), nothing, run)?;
    }
    let n = 1 << 27;
    for length in [1, 4, 64] {
        let keys = make(b, n, |i| (i / length) as u64)?;
        let values = make(b, n, |i| (hash(i) & 0xff) as f64)?;
        let (mut keys_out, mut out) = (b.zeros::<u64>(n)?, b.zeros::<f64>(n)?);
        let name = format!("reduce by key u64 + f64, runs of {length}");
        table.row(&name, n, Some(16 * (n + n / length)), nothing, || {
            b.reduce_by_key(Sum, &keys, &values, &mut keys_out, &mut out).map(|_| ())
        })?;
    }
    let x = make(b, n, |i| (hash(i) & 0xff) as f64)?;
    for mean in [4, 27, 1000] {
        let count = n / mean;
        let offsets = make(b, count + 1, |s| if s == count { n as u32 } else { (s * mean) as u32 })?;
        let mut out = b.zeros::<f64>(count)?;
        let run = || b.segmented_reduce(Sum, &x, &offsets, &mut out);
        table.row(&format!("segmented sum f64, mean {mean}"), n, Some(8 * n + 12 * count), nothing, run)?;
    }
    Ok(())
}

fn selections(table: &Table) -> Result<()> {
    let (b, n) = (&table.b, 1 << 28);
    let x = make(b, n, |i| (i / 4) as u32)?;
    let flags = make(b, n, |i| hash(i) as u8 & 1)?;
    let mut out = b.zeros::<u32>(n)?;
    table.row("unique u32, runs of 4", n, Some(5 * n), nothing, || b.unique(&x, &mut out).map(|_| ()))?;
    let run = || b.compact(&x, &flags, &mut out).map(|_| ());
    table.row("compact u32, half kept", n, Some(7 * n), nothing, run)
}

fn histograms(table: &Table) -> Result<()> {
    let (b, n) = (&table.b, 1 << 28);
    let mut counts = b.zeros::<u32>(BINS)?;
    for (name, power) in [("uniform", 1), ("power law", 4)] {
        let keys = make(b, n, move |i| {
            let u = (hash(i) >> 11) as f64 / (1_u64 << 53) as f64;
            (BINS as f64 * u.powi(power)) as u32
        })?;
        let run = || b.histogram(&keys, &mut counts);
        table.row(&format!("histogram 2^20 bins, {name}"), n, Some(4 * n), nothing, run)?;
    }
    Ok(())
}

fn sorts(table: &Table) -> Result<()> {
    for n in [1_usize << 28, 1 << 20, 1 << 16] {
        let power = n.ilog2();
        table.sort(&format!("sort u32 2^{power}"), n, 32, false, |i| hash(i) as u32)?;
        table.sort(&format!("sort u32 + u32 2^{power}"), n, 32, true, |i| hash(i) as u32)?;
    }
    for n in [1_usize << 27, 1 << 20, 1 << 16] {
        let power = n.ilog2();
        table.sort(&format!("sort u64 2^{power}"), n, 64, false, hash)?;
        for bits in [64, 46, 40] {
            let name = format!("sort u64 + u32 2^{power}, {bits} bits");
            table.sort(&name, n, bits, true, move |i| hash(i) >> (64 - bits))?;
        }
    }
    let (b, n) = (&table.b, 1 << 27);
    let original = make(b, n, hash)?;
    let mut keys = b.zeros::<u64>(n)?;
    let mut values = make(b, n, |i| i as u32)?;
    let keys = std::cell::RefCell::new(&mut keys);
    table.row(
        "merge sort u64 + u32",
        n,
        None,
        || b.copy(&original, *keys.borrow_mut()),
        || b.merge_sort_pairs(Order::Ascending, *keys.borrow_mut(), &mut values),
    )?;
    drop(original);
    let n = 1 << 26;
    let original = make(b, n, |i| hash(i) as u32)?;
    let mut keys = b.zeros::<u32>(n)?;
    let mut values = make(b, n, |i| i as f64)?;
    let keys = std::cell::RefCell::new(&mut keys);
    for mean in [7, 27, 1000] {
        let count = n / mean;
        let offsets = make(b, count + 1, |s| if s == count { n as u32 } else { (s * mean) as u32 })?;
        let name = format!("segmented sort u32 + f64, mean {mean}");
        table.row(
            &name,
            n,
            None,
            || b.copy(&original, *keys.borrow_mut()),
            || b.segmented_sort_pairs(&offsets, *keys.borrow_mut(), &mut values),
        )?;
    }
    Ok(())
}
