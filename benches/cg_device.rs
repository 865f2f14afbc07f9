//! Conjugate gradients on a CUDA device, tolerance 1e-8, b = A * ones, from x = 0: the time of an iteration, as the whole
//! solve (start and certificate included) over its iterations, and the share of copy bandwidth.
//!
//! `cargo bench --bench cg_device [-- CASE...]`. A case is `KxKxK` (7 points), `KxK` (5 points) or `27:K` (27 points, K^3);
//! `warm:K` updates the values of 7 points, K^3, and solves again, many times. The peer is textbook CG on cuSPARSE and
//! cuBLAS in a captured graph.

use residua::generate::{poisson2d, poisson3d, poisson3d_27};
use residua::krylov::{Cg, SolveOptions};
use residua::matrix::{FORMAT_NAMES, build as build_format};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::report::copy_bandwidth;
use residua::scalar::Widen;
use residua::{Backend, Csr, Cuda, Host, LinearOperator, Scalar};
use std::ops::ControlFlow;
use std::time::Instant;

const FORMATS: [&str; 3] = ["csr", "sell", "slim"];

/// The fastest of a few solves, of a long one the first.
fn measure(
    cuda: &Cuda,
    copy: f64,
    what: &str,
    a: &(impl LinearOperator<f64, Cuda> + ?Sized),
    m: &impl Preconditioner<f64, Cuda>,
    b: &[f64],
) -> residua::Result<()> {
    let b = cuda.upload(b.to_vec())?;
    let mut x = cuda.zeros(a.rows())?;
    let mut cg = Cg::new(cuda, a.rows(), SolveOptions::default())?;
    let (mut best, mut last) = (f64::INFINITY, None);
    let begin = Instant::now();
    for turn in 0..1000 {
        cuda.fill(0.0, &mut x)?;
        cuda.synchronize()?;
        let start = Instant::now();
        let report = cg.solve(a, m, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
        best = best.min(start.elapsed().as_secs_f64());
        last = Some(report);
        let spent = begin.elapsed().as_secs_f64();
        if spent > 2.0 || turn > 0 && spent > 0.4 {
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

fn formats<V: Scalar + Widen<f64>>(
    cuda: &Cuda,
    copy: f64,
    host: &Csr<V>,
    jacobi: &Jacobi<f64, Cuda>,
    b: &[f64],
) -> residua::Result<()> {
    let a = host.to_backend(cuda)?;
    for name in FORMATS.into_iter().filter(|name| FORMAT_NAMES.contains(name)) {
        let converted = match build_format::<f64, Cuda, V>(cuda, name, &a) {
            Ok(converted) => converted,
            Err(error) => {
                println!("  {name}: {error}");
                continue;
            }
        };
        let what = format!("{name}, values {}", V::NAME);
        measure(cuda, copy, &what, &*converted, &Identity, b)?;
        measure(cuda, copy, &format!("{what}, jacobi"), &*converted, jacobi, b)?;
    }
    Ok(())
}

/// New values, and a solve, again and again, as a time loop has it.
fn warm(cuda: &Cuda, k: usize) -> residua::Result<()> {
    let host = poisson3d(k, k, k)?;
    let n = host.rows();
    let mut a = host.to_backend(cuda)?;
    let values = cuda.upload(host.parts().values.to_vec())?;
    let b = cuda.upload(vec![1.0; n])?;
    let mut x = cuda.zeros(n)?;
    let mut jacobi = Jacobi::new(cuda, &a)?;
    let mut cg = Cg::new(cuda, n, SolveOptions::default())?;
    for turn in 0..4 {
        let start = Instant::now();
        cuda.copy(&values, a.values_mut())?;
        jacobi.update(cuda, &a)?;
        cuda.synchronize()?;
        let setup = start.elapsed().as_secs_f64();
        let before = cuda.memory()?.0;
        cuda.fill(0.0, &mut x)?;
        let start = Instant::now();
        let report = cg.solve(&a, &jacobi, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
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
    if let Some(k) = name.strip_prefix("warm:").and_then(|k| k.parse().ok()) {
        return warm(cuda, k);
    }
    let a = match name.strip_prefix("27:").and_then(|k| k.parse().ok()) {
        Some(k) => poisson3d_27(k, k, k)?,
        None => {
            let size: Vec<usize> = name.split('x').filter_map(|k| k.parse().ok()).collect();
            match size[..] {
                [x, y, z] => poisson3d(x, y, z)?,
                [x, y] => poisson2d(x, y)?,
                _ => panic!("{name}: a case is KxK, KxKxK, 27:K or warm:K"),
            }
        }
    };
    let mut b = vec![0.0; a.rows()];
    a.product(&Host, 1.0, &vec![1.0; a.rows()], 0.0, &mut b)?;
    let jacobi = Jacobi::new(cuda, &a.to_backend(cuda)?)?;
    if let Some(narrow) = a.to_narrow() {
        formats(cuda, copy, &narrow, &jacobi, &b)?;
    }
    formats(cuda, copy, &a, &jacobi, &b)
}

fn main() -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    let copy = 1e9 * copy_bandwidth(&cuda, 5)?;
    println!("{}, copy {:.0} GB/s", cuda.description(), copy / 1e9);
    let cases: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let all = [
        "32x32",
        "100x100",
        "512x512",
        "64x64x64",
        "27:48",
        "100x100x100",
        "warm:100",
        "27:160",
        "256x256x256",
        "4096x4096",
    ];
    let cases = if cases.is_empty() { all.map(String::from).to_vec() } else { cases };
    cases.iter().try_for_each(|name| case(&cuda, copy, name))
}
