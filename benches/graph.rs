//! Orderings. `cargo bench --bench graph` times each step on shuffled meshes;
//! `cargo bench --bench graph -- table A.mtx...` prints CSV, one line a matrix, and `benches/peers/rcm.py` calls that
//! beside SciPy.

use criterion::{Criterion, Throughput};
use num_complex::Complex;
use residua::graph::{
    Adjacency, Permutation, bandwidth, bandwidth_permuted, bfs, connected_components, permute_symmetric,
    profile, profile_permuted, reverse_cuthill_mckee,
};
use residua::{Csr, generate, market};
use std::hint::black_box;
use std::time::Instant;

/// The smallest of several times, in seconds.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn table(paths: &[String]) -> residua::Result<()> {
    println!(
        "path,rows,nonzeros,symmetric,bandwidth_before,bandwidth_after,profile_before,profile_after,adjacency_s,rcm_s,permute_s"
    );
    for path in paths {
        let a: Csr<Complex<f64>> = match market::read_csr(path) {
            Ok(a) => a,
            Err(error) => {
                eprintln!("left out: {error}");
                continue;
            }
        };
        let runs = if a.nonzeros() < 1 << 21 { 7 } else { 3 };
        let p = reverse_cuthill_mckee(&a)?;
        println!(
            "{path},{},{},{},{},{},{},{},{:.9},{:.9},{:.9}",
            a.rows(),
            a.nonzeros(),
            Adjacency::new(&a)?.is_borrowed(),
            bandwidth(&a),
            bandwidth_permuted(&a, &p)?,
            profile(&a)?,
            profile_permuted(&a, &p)?,
            best(runs, || Adjacency::new(&a)),
            best(runs, || reverse_cuthill_mckee(&a)),
            best(runs, || permute_symmetric(&a, &p)),
        );
    }
    Ok(())
}

/// The matrix with its rows and columns in random order.
fn shuffled(a: &Csr<f64>) -> residua::Result<Csr<f64>> {
    let mut random = generate::Random::new(1);
    let mut order: Vec<u32> = (0..a.rows() as u32).collect();
    for k in (1..order.len()).rev() {
        order.swap(k, random.below(k as u64 + 1) as usize);
    }
    permute_symmetric(a, &Permutation::from_new_to_old(order)?)
}

fn steps(criterion: &mut Criterion) -> residua::Result<()> {
    let meshes = [
        ("5-point 600^2, shuffled", shuffled(&generate::poisson2d(600, 600)?)?),
        ("7-point 70^3, shuffled", shuffled(&generate::poisson3d(70, 70, 70)?)?),
    ];
    for (name, a) in meshes {
        let graph = Adjacency::new(&a)?;
        let p = reverse_cuthill_mckee(&a)?;
        let x: Vec<f64> = (0..a.rows()).map(|k| k as f64).collect();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(a.nonzeros() as u64)).sample_size(10);
        group.bench_function("adjacency", |b| b.iter(|| Adjacency::new(&a)));
        group.bench_function("bfs", |b| b.iter(|| bfs(&graph, 0)));
        group.bench_function("components", |b| b.iter(|| connected_components(&graph)));
        group.bench_function("reverse Cuthill-McKee", |b| b.iter(|| reverse_cuthill_mckee(&a)));
        group.bench_function("permute matrix", |b| b.iter(|| permute_symmetric(&a, &p)));
        group.bench_function("permute vector", |b| b.iter(|| p.apply(&x)));
        group.bench_function("bandwidth permuted", |b| b.iter(|| bandwidth_permuted(&a, &p)));
        group.finish();
    }
    Ok(())
}

fn main() -> residua::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match arguments.split_first() {
        Some((first, paths)) if first == "table" => table(paths),
        _ => {
            let mut criterion = Criterion::default().configure_from_args();
            steps(&mut criterion)?;
            criterion.final_summary();
            Ok(())
        }
    }
}
