//! Compares solving for several right-hand sides together with solving for one after another: Jacobi, double precision,
//! to 1e-8 from x = 0, random right-hand sides, whole solves including start and certificates. Solves one after another
//! use the format that is fastest for them.
//!
//! `cargo bench --bench cg_several [-- cpu] [only:FORMAT] [CASE...]`. A case is `27:K` (27 points, K^3), `7:K` (7
//! points, K^3, with a coefficient per cell), `elasticity:K` (K^3 cells, as generated, whose values repeat) or
//! `elasticity-general:K` and `27` likewise with rows and columns scaled at random, so that no two values are equal.

use residua::backend::{CompressedSteps, Conversions, KrylovSteps, OffsetsRef, Products, RowFacts};
use residua::generate::{Random, elasticity3d, jumping, poisson3d_27};
use residua::krylov::{Cg, MultiCg, SolveOptions};
use residua::matrix::build as build_format;
use residua::precondition::Jacobi;
use residua::report::copy_bandwidth;
use residua::{Csr, Host, LinearOperator};
use std::ops::ControlFlow;
use std::time::Instant;

const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];
const FORMATS: [&str; 4] = ["csr", "sell", "compressed", "dia"];

/// The traits of a backend that the benchmark needs.
trait Bench: KrylovSteps + RowFacts + Products + Conversions + CompressedSteps {
    fn place(&self, a: Csr<f64>) -> residua::Result<Csr<f64, Self>>;
}

impl Bench for Host {
    fn place(&self, a: Csr<f64>) -> residua::Result<Csr<f64>> {
        Ok(a)
    }
}

#[cfg(feature = "cuda")]
impl Bench for residua::Cuda {
    fn place(&self, a: Csr<f64>) -> residua::Result<Csr<f64, Self>> {
        a.to_backend(self)
    }
}

/// S A S with a random diagonal S.
fn scaled(mut a: Csr<f64>) -> Csr<f64> {
    let mut random = Random::new(1);
    let s: Vec<f64> = (0..a.rows()).map(|_| random.between(0.5, 1.5)).collect();
    // Plain loops are faster for many entries.
    let OffsetsRef::Lower(offsets) = a.parts().offsets else { panic!("too large") };
    let (offsets, columns) = (offsets.to_vec(), a.parts().indices.to_vec());
    let values = a.values_mut();
    for row in 0..s.len() {
        for at in offsets[row] as usize..offsets[row + 1] as usize {
            values[at] *= s[row] * s[columns[at] as usize];
        }
    }
    a
}

fn matrix(name: &str) -> residua::Result<Csr<f64>> {
    let (kind, k) = name.split_once(':').unwrap_or_else(|| panic!("{name}: no such case"));
    let k: usize = k.parse().unwrap_or_else(|_| panic!("{name}: no size"));
    Ok(match kind {
        "27" => scaled(poisson3d_27(k, k, k)?),
        "7" => jumping([k; 3], 1e2, 1, 1)?,
        "elasticity" => elasticity3d(k, k, k, 0.3)?,
        "elasticity-general" => scaled(elasticity3d(k, k, k, 0.3)?),
        _ => panic!("{name}: no such case"),
    })
}

/// Seconds of the faster of two runs.
fn best<B: Bench>(backend: &B, mut run: impl FnMut() -> residua::Result<()>) -> residua::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..2 {
        backend.synchronize()?;
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Seconds, format, matrix.
type Fastest<B> = (f64, &'static str, Box<dyn LinearOperator<f64, B>>);

fn case<B: Bench>(backend: &B, copy: f64, name: &str, words: &[String]) -> residua::Result<()> {
    let most = COUNTS[COUNTS.len() - 1];
    let a = backend.place(matrix(name)?)?;
    let n = a.rows();
    println!("{name}: {n} unknowns, {} nonzeros", a.nonzeros());
    let m = Jacobi::<f64, B>::new(backend, &a)?;
    let mut random = Random::new(7);
    let b = backend.upload((0..most * n).map(|_| random.between(-1.0, 1.0)).collect())?;
    let mut x = backend.zeros(most * n)?;
    let go_on = |_, _| ControlFlow::Continue(());
    // The fastest format for one right-hand side.
    let mut cg = Cg::new(backend, n, SolveOptions::default())?;
    let only: Option<&str> = words.iter().find_map(|word| word.strip_prefix("only:"));
    let mut fastest: Option<Fastest<B>> = None;
    for format in FORMATS.into_iter().filter(|format| only.is_none_or(|only| only == *format)) {
        let stored = match build_format::<f64, B, f64>(backend, format, &a) {
            Ok(stored) => stored,
            Err(error) => {
                println!("  {format}: {error}");
                continue;
            }
        };
        let mut iterations = 0;
        let seconds = best(backend, || {
            backend.fill(0.0, B::part_mut(&mut x, 0..n))?;
            let report = cg.solve(&*stored, &m, B::part(&b, 0..n), B::part_mut(&mut x, 0..n), go_on)?;
            iterations = report.iterations;
            Ok(())
        })?;
        println!(
            "  {format}: {iterations} iterations, {:.3} ms, {:.1} us an iteration",
            seconds * 1e3,
            seconds / iterations as f64 * 1e6
        );
        if fastest.as_ref().is_none_or(|fastest| seconds < fastest.0) {
            fastest = Some((seconds, format, stored));
        }
    }
    let Some((_, format, stored)) = fastest else { return Ok(()) };
    for count in COUNTS {
        let own = |system: usize| system * n..(system + 1) * n;
        let mut alone = 0;
        let one_by_one = best(backend, || {
            backend.fill(0.0, &mut x)?;
            alone = 0;
            for system in 0..count {
                let (b, x) = (B::part(&b, own(system)), B::part_mut(&mut x, own(system)));
                alone += cg.solve(&*stored, &m, b, x, go_on)?.iterations;
            }
            Ok(())
        })?;
        let mut multi = MultiCg::new(backend, n, count, SolveOptions::default())?;
        let (mut iterations, mut most, mut bytes, mut worst) = (0, 0, 0, 0.0_f64);
        let mut iterating = 0.0;
        let together = best(backend, || {
            backend.fill(0.0, &mut x)?;
            let (b, x) = (B::part(&b, 0..count * n), B::part_mut(&mut x, 0..count * n));
            let reports = multi.solve(&a, &m, b, x, |_, _, _| ControlFlow::Continue(()))?;
            iterations = reports.iter().map(|report| report.iterations).sum();
            most = reports.iter().map(|report| report.iterations).max().unwrap_or(0);
            bytes = reports[0].bytes_per_iteration;
            worst = reports.iter().map(|report| report.relative_residual).fold(0.0, f64::max);
            assert!(reports.iter().all(|report| report.outcome.is_converged()), "{reports:?}");
            iterating = multi.iterating().as_secs_f64();
            Ok(())
        })?;
        let rate = (count * most * bytes) as f64 / iterating;
        println!(
            "  {count:2} right-hand sides: one by one ({format}) {:9.2} ms, {alone} iterations; together {:9.2} ms, {iterations}: {:.2} times; \
             {:.1} us an iteration of all, {:.2} of copy, residual {worst:.1e}",
            one_by_one * 1e3,
            together * 1e3,
            one_by_one / together,
            iterating / most as f64 * 1e6,
            rate / copy,
        );
    }
    Ok(())
}

fn run<B: Bench>(backend: &B, words: &[String]) -> residua::Result<()> {
    let copy = 1e9 * copy_bandwidth(backend, 5)?;
    println!("{}, copy {:.0} GB/s", backend.description(), copy / 1e9);
    let cases: Vec<&str> = words.iter().map(String::as_str).filter(|word| word.contains(':')).collect();
    let cases: Vec<&str> = cases.into_iter().filter(|word| !word.starts_with("only:")).collect();
    let all = ["27:128", "elasticity-general:60", "7:128", "elasticity:60"];
    let cases = if cases.is_empty() { all.to_vec() } else { cases };
    cases.iter().try_for_each(|name| case(backend, copy, name, words))
}

fn main() -> residua::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if words.iter().any(|word| word == "cpu") {
        return run(&Host, &words);
    }
    #[cfg(feature = "cuda")]
    return run(&residua::Cuda::new(0)?, &words);
    #[cfg(not(feature = "cuda"))]
    run(&Host, &words)
}
