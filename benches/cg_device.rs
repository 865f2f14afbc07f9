//! Conjugate gradients on a CUDA device, tolerance 1e-8, b = A * ones, from x = 0. Printed are the time per iteration,
//! which is the time of the whole solve (including start and certificate) divided by its iterations, and the fraction
//! of the copy bandwidth.
//!
//! `cargo bench --bench cg_device [-- CASE...]`. A case is `KxKxK` (7 points), `KxK` (5 points) or `27:K` (27 points,
//! K^3), whose values repeat; `uneven:K` (7 points, K^3, with one entry of the diagonal changed); `general:K` (7
//! points, K^3, with a coefficient per cell); `hermitian:K` (7 points, K^3, phases along x); `warm:K` (7 points, K^3)
//! updates the values and solves again, many times; `streams:K` solves 64 systems of 5 points, K^2, on one stream and
//! on several. `only:FORMAT` leaves out the other formats, `polynomial:STEPS` adds Chebyshev's polynomial in half the
//! precision. The peer is textbook CG on cuSPARSE and cuBLAS in a captured graph; for complex numbers it is
//! `benches/peers/cg_complex.cu`.

use num_complex::Complex;
use residua::generate::{jumping, poisson2d, poisson3d};
use residua::krylov::{Cg, FixedPatternCg, SolveOptions};
use residua::matrix::{FORMAT_NAMES, build as build_format, convert};
use residua::precondition::{Chebyshev, Identity, Jacobi, Narrowed, Preconditioner};
use residua::report::copy_bandwidth;
use residua::scalar::Promote;
use residua::{Backend, Csr, Cuda, LinearOperator, Scalar};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

type Vector<T> = <Cuda as Backend>::Vec<T>;

const FORMATS: [&str; 4] = ["csr", "sell", "dia", "compressed"];

/// Solves a few times, or once if that takes long, and prints the fastest time.
fn measure<T: Scalar>(
    cuda: &Cuda,
    copy: f64,
    what: &str,
    a: &(impl LinearOperator<T, Cuda> + ?Sized),
    m: &impl Preconditioner<T, Cuda>,
    b: &Vector<T>,
) -> residua::Result<()> {
    let mut x = cuda.zeros(a.rows())?;
    let mut cg = Cg::new(cuda, a.rows(), SolveOptions::default())?;
    let (mut best, mut last) = (f64::INFINITY, None);
    let begin = Instant::now();
    for turn in 0..1000 {
        cuda.fill(T::zero(), &mut x)?;
        cuda.synchronize()?;
        let start = Instant::now();
        let report = cg.solve(a, m, b, &mut x, |_, _| ControlFlow::Continue(()))?;
        best = best.min(start.elapsed().as_secs_f64());
        last = Some(report);
        let spent = begin.elapsed().as_secs_f64();
        if spent > 2.0 || turn > 0 && spent > 0.3 {
            break;
        }
    }
    let report = last.expect("at least one solve");
    let each = best / report.iterations.max(1) as f64;
    let rate = report.bytes_per_iteration as f64 / each;
    println!(
        "  {what:28} {:5} iterations {:10.3} ms {:9.2} us/iteration {:5.2} of copy, residual {:.1e} {}",
        report.iterations,
        best * 1e3,
        each * 1e6,
        rate / copy,
        report.relative_residual,
        report.outcome,
    );
    Ok(())
}

fn formats<V: Scalar<Lower: Promote<T::Lower>> + Promote<T>, T: Scalar>(
    cuda: &Cuda,
    copy: f64,
    a: &Csr<V, Cuda>,
    jacobi: &Jacobi<T, Cuda>,
    b: &Vector<T>,
) -> residua::Result<()> {
    let only: Vec<String> =
        std::env::args().filter_map(|word| word.strip_prefix("only:").map(String::from)).collect();
    let wanted =
        |name: &&str| FORMAT_NAMES.contains(name) && (only.is_empty() || only.iter().any(|o| o == name));
    for name in FORMATS.into_iter().filter(wanted) {
        let converted = match build_format::<T, Cuda, V>(cuda, name, a) {
            Ok(converted) => converted,
            Err(error) => {
                println!("  {name}: {error}");
                continue;
            }
        };
        let what = format!("{name}, values {}", V::NAME);
        measure(cuda, copy, &what, &*converted, &Identity, b)?;
        measure(cuda, copy, &format!("{what}, jacobi"), &*converted, jacobi, b)?;
        let steps: Vec<usize> = std::env::args()
            .filter_map(|word| word.strip_prefix("polynomial:").and_then(|k| k.parse().ok()))
            .collect();
        if !steps.is_empty() {
            let start = Instant::now();
            let low = a.to_rounded(cuda)?;
            let diagonal = Arc::new(Jacobi::new(cuda, &low)?);
            let low: Arc<dyn LinearOperator<T::Lower, Cuda>> =
                Arc::new(convert::<T::Lower, Cuda, V::Lower>(cuda, name, low)?);
            let bounds = Chebyshev::new(cuda, low.clone(), diagonal.clone(), 10)?.bounds();
            println!(
                "  set up, {:.3} ms: D^-1 A has eigenvalues up to {:.3}",
                start.elapsed().as_secs_f64() * 1e3,
                bounds.1 / 1.1
            );
            for steps in steps {
                let low_bound = bounds.1 / (2.0 * (steps * steps) as f64).max(20.0);
                let m = Chebyshev::with_bounds(
                    cuda,
                    low.clone(),
                    diagonal.clone(),
                    steps,
                    (low_bound, bounds.1),
                )?;
                measure(
                    cuda,
                    copy,
                    &format!("{what}, chebyshev-single:{steps}"),
                    &*converted,
                    &Narrowed::new::<T, Cuda>(m)?,
                    b,
                )?;
            }
        }
    }
    Ok(())
}

/// Measures every format, with values of half the width if that is exact.
fn compare<T: Scalar>(cuda: &Cuda, copy: f64, a: Csr<T, Cuda>) -> residua::Result<()> {
    let n = a.rows();
    let (mut ones, mut b) = (cuda.zeros(n)?, cuda.zeros(n)?);
    cuda.fill(T::one(), &mut ones)?;
    a.product(cuda, T::one(), &ones, T::zero(), &mut b)?;
    let jacobi = Jacobi::new(cuda, &a)?;
    match a.into_lower(cuda)? {
        Ok(narrow) => formats(cuda, copy, &narrow, &jacobi, &b),
        Err(a) => formats(cuda, copy, &a, &jacobi, &b),
    }
}

/// Solves 64 systems with one matrix and different right-hand sides, distributed over 1 to 16 streams.
fn streams(cuda: &Cuda, k: usize) -> residua::Result<()> {
    const SYSTEMS: usize = 64;
    let a = poisson2d(k, k)?.to_backend(cuda)?;
    let n = a.rows();
    let mut alone = 0.0;
    for count in [1, 2, 4, 8, 16] {
        let work = |cuda: &Cuda| -> residua::Result<f64> {
            let (b, mut x) = (cuda.upload((0..n).map(|i| (i % 101) as f64).collect())?, cuda.zeros(n)?);
            let mut cg = Cg::new(cuda, n, SolveOptions::default())?;
            let mut start = Instant::now();
            for turn in 0..=SYSTEMS / count {
                if turn == 1 {
                    // The first solve loads kernels and analyses the pattern.
                    start = Instant::now();
                }
                cuda.fill(0.0, &mut x)?;
                let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
                assert!(report.outcome.is_converged(), "{}", report.outcome);
            }
            cuda.synchronize()?;
            Ok(start.elapsed().as_secs_f64())
        };
        let slowest = cuda.side_by_side(count, |_, cuda| work(cuda))?.into_iter().fold(0.0, f64::max);
        let rate = SYSTEMS as f64 / slowest;
        if count == 1 {
            alone = rate;
        }
        println!("  {count:2} streams {rate:10.0} systems/s, {:.2} times one stream", rate / alone);
    }
    Ok(())
}

/// 7 points; along x the entries have a phase that depends on y, as with a magnetic field. Hermitian, and positive
/// definite because the matrix without phases is.
fn hermitian(k: usize) -> residua::Result<Csr<Complex<f64>>> {
    let real = poisson3d(k, k, k)?;
    let parts = real.parts();
    let residua::backend::OffsetsRef::Lower(offsets) = parts.offsets else { panic!("too large") };
    let mut values = Vec::with_capacity(parts.values.len());
    for row in 0..real.rows() {
        let angle = 0.1 * ((row / k) % k) as f64;
        for at in offsets[row] as usize..offsets[row + 1] as usize {
            let turn = match parts.indices[at] as i64 - row as i64 {
                1 => angle,
                -1 => -angle,
                _ => 0.0,
            };
            values.push(Complex::from_polar(1.0, turn) * parts.values[at]);
        }
    }
    Csr::from_parts(
        real.rows(),
        real.rows(),
        offsets.iter().map(|&o| o as usize).collect(),
        parts.indices.to_vec(),
        values,
    )
}

/// Updates the values and solves, many times, as in a time loop.
fn warm(cuda: &Cuda, k: usize) -> residua::Result<()> {
    let a = cuda.poisson3d::<f64>(k, k, k)?;
    let n = a.rows();
    let mut values = cuda.zeros(a.nonzeros())?;
    cuda.copy(a.parts().values, &mut values)?;
    let mut b = cuda.zeros(n)?;
    cuda.fill(1.0, &mut b)?;
    let mut x = cuda.zeros(n)?;
    let mut solver = FixedPatternCg::setup(cuda, a, SolveOptions::default())?;
    for turn in 0..4 {
        let start = Instant::now();
        solver.update(&values)?;
        cuda.synchronize()?;
        let setup = start.elapsed().as_secs_f64();
        let before = cuda.memory()?.0;
        cuda.fill(0.0, &mut x)?;
        let start = Instant::now();
        let report = solver.solve(&b, &mut x)?;
        let solve = start.elapsed().as_secs_f64();
        println!(
            "  turn {turn}: new values {:.1} us = {:.2} iterations; solve {:.3} ms, {} iterations of {:.2} us; free memory changed by {}",
            setup * 1e6,
            setup / (solve / report.iterations as f64),
            solve * 1e3,
            report.iterations,
            solve / report.iterations as f64 * 1e6,
            before.abs_diff(cuda.memory()?.0),
        );
    }
    Ok(())
}

fn case(cuda: &Cuda, copy: f64, name: &str) -> residua::Result<()> {
    println!("{name}");
    let number = |prefix: &str| name.strip_prefix(prefix).and_then(|k| k.parse::<usize>().ok());
    if let Some(k) = number("warm:") {
        return warm(cuda, k);
    }
    if let Some(k) = number("streams:") {
        return streams(cuda, k);
    }
    if let Some(k) = number("hermitian:") {
        return compare(cuda, copy, hermitian(k)?.to_backend(cuda)?);
    }
    if let Some(k) = number("uneven:") {
        let mut a = cuda.poisson3d::<f64>(k, k, k)?;
        cuda.write(&[7.0], Cuda::part_mut(a.values_mut(), 0..1))?;
        return compare(cuda, copy, a);
    }
    if let Some(k) = number("general:") {
        return compare(cuda, copy, jumping([k; 3], 1e2, 1, 1)?.to_backend(cuda)?);
    }
    if let Some(k) = number("27:") {
        return compare(cuda, copy, cuda.poisson3d_27::<f64>(k, k, k)?);
    }
    let size: Vec<usize> = name.split('x').filter_map(|k| k.parse().ok()).collect();
    match size[..] {
        [x, y, z] => compare(cuda, copy, cuda.poisson3d::<f64>(x, y, z)?),
        [x, y] => compare(cuda, copy, cuda.poisson2d::<f64>(x, y)?),
        _ => panic!("{name}: no such case"),
    }
}

fn main() -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    let copy = 1e9 * copy_bandwidth(&cuda, 5)?;
    println!("{}, copy {:.0} GB/s", cuda.description(), copy / 1e9);
    let cases: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-') && !a.starts_with("only:") && !a.starts_with("polynomial:"))
        .collect();
    let all = [
        "32x32",
        "100x100",
        "512x512",
        "64x64x64",
        "27:48",
        "100x100x100",
        "warm:100",
        "streams:32",
        "streams:100",
        "streams:300",
        "general:128",
        "hermitian:48",
        "hermitian:128",
        "27:160",
        "256x256x256",
        "4096x4096",
    ];
    let cases = if cases.is_empty() { all.map(String::from).to_vec() } else { cases };
    cases.iter().try_for_each(|name| case(&cuda, copy, name))
}
