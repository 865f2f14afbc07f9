//! Peak memory of assembly, and of reading with assembly: `cargo bench --bench memory [-- FILE.mtx ...]`.
//!
//! Each case runs in a process of its own and prints the peak of resident memory (VmHWM, Linux only) and the size of
//! the finished matrix. Without files, triplets are generated; `RESIDUA_BENCH_TRIPLETS` is their number (20 million).

use residua::assemble::{Assembler, Symmetry};
use residua::market::{self, ReadOptions};
use residua::{Csr, Host, Triplets};
use std::process::Command;

const CASES: [&str; 4] = ["random", "by-column", "half-random", "half-by-column"];

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if arguments.first().is_some_and(|a| a == "one") {
        return one(&arguments[1]);
    }
    if arguments.is_empty() {
        arguments = CASES.map(String::from).into();
    }
    let this = std::env::current_exe().expect("this program's path");
    for case in arguments {
        let status = Command::new(&this).args(["one", &case]).status().expect("a child process");
        assert!(status.success(), "{case} failed");
    }
}

fn one(case: &str) {
    let n = std::env::var("RESIDUA_BENCH_TRIPLETS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000_000);
    let a = match case {
        "random" => assemble(made(n, true, false), Symmetry::General),
        "by-column" => assemble(made(n, false, false), Symmetry::General),
        "half-random" => assemble(made(n / 2, true, true), Symmetry::Symmetric),
        "half-by-column" => assemble(made(n / 2, false, true), Symmetry::Symmetric),
        path => {
            let (header, triplets, _) =
                market::read_triplets(path, &ReadOptions::default()).expect("a matrix").into_parts();
            println!("{case}: peak {:.0} MiB once read", peak());
            assemble(triplets, header.symmetry())
        }
    };
    let (peak, csr) = (peak(), a.storage_bytes() as f64 / f64::from(1 << 20));
    let (rows, nonzeros) = (a.rows(), a.nonzeros());
    println!(
        "{case}: {rows} rows, {nonzeros} nonzeros, CSR {csr:.0} MiB, peak {peak:.0} MiB, {:.2} times",
        peak / csr
    );
}

/// The peak of resident memory so far, in MiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0.0f64) / 1024.0
}

fn assemble(triplets: Triplets<f64>, symmetry: Symmetry) -> Csr<f64> {
    Assembler::default().symmetry(symmetry).to_csr(&Host, triplets).expect("assembled")
}

/// `n` positions, twenty per column, in arrays without spare capacity: column by column, or scattered if `random`.
fn made(n: usize, random: bool, half: bool) -> Triplets<f64> {
    let rows = n / 20;
    // Multiples of the golden ratio modulo 1, scaled to 0..n: neighbours are far apart, and few repeat.
    let place = |k: usize| {
        let k = if random {
            ((k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as u128 * n as u128) >> 64
        } else {
            k as u128
        };
        let (column, step) = ((k as usize / 20).min(rows - 1), k as usize % 20);
        let row = if half {
            (column + step * step * 7).min(rows - 1)
        } else {
            (column * 13 + step * step * 7) % rows
        };
        (row as u32, column as u32)
    };
    let is = (0..n).map(|k| place(k).0).collect();
    let js = (0..n).map(|k| place(k).1).collect();
    let values = (0..n).map(|k| k as f64).collect();
    Triplets::from_parts(rows, rows, is, js, values).expect("indices within the matrix")
}
