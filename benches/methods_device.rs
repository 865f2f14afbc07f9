//! The Krylov methods on a CUDA device: the time per iteration in the format that `choose` selects. Solves have so many
//! iterations that start and certificate are negligible.
//!
//! `cargo bench --bench methods_device [-- CASE...]`. A case is `KxKxK` (7 points), `KxK` (5 points) or `27:K` (27
//! points, K^3). The peer is `benches/peers/methods_cupy.py`.

use residua::generate::{Random, poisson2d, poisson3d, poisson3d_27};
use residua::krylov::{BiCgStab, Cg, Gmres, Krylov, Method, Minres, SolveOptions};
use residua::matrix::{self, ChoiceOptions};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::report::copy_bandwidth;
use residua::{Backend, Csr, Cuda, LinearOperator};
use std::ops::ControlFlow;
use std::time::Instant;

/// Prints the time of the fastest of a few solves with `iterations` iterations each.
fn measure<M: Method<f64, Cuda>>(
    cuda: &Cuda,
    copy: f64,
    mut solver: Krylov<f64, Cuda, M>,
    (a, m): (&dyn LinearOperator<f64, Cuda>, &dyn Preconditioner<f64, Cuda>),
    b: &[f64],
    what: &str,
) -> residua::Result<()> {
    let b = cuda.upload(b.to_vec())?;
    let mut x = cuda.zeros(a.columns())?;
    let mut best = f64::INFINITY;
    let mut last = None;
    let begin = Instant::now();
    // The first solve waits for kernels to be compiled.
    let mut turns = 0;
    while turns < 3 || begin.elapsed().as_secs_f64() < 0.5 {
        turns += 1;
        cuda.fill(0.0, &mut x)?;
        cuda.synchronize()?;
        let start = Instant::now();
        let report = solver.solve(a, m, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
        best = best.min(start.elapsed().as_secs_f64() / report.iterations.max(1) as f64);
        last = Some(report);
    }
    let report = last.expect("at least one solve");
    println!(
        "  {what:20} {:5} iterations {:9.2} us/iteration {:5.2} of copy  {} {:.1e}",
        report.iterations,
        best * 1e6,
        report.bytes_per_iteration as f64 / best / (1e9 * copy),
        report.outcome,
        report.relative_residual
    );
    Ok(())
}

fn case(cuda: &Cuda, copy: f64, name: &str, a: Csr<f64>) -> residua::Result<()> {
    let n = a.rows();
    let mut random = Random::new(1);
    let solution: Vec<f64> = (0..n).map(|_| random.unit() - 0.5).collect();
    let mut b = vec![0.0; n];
    a.product(&residua::Host, 1.0, &solution, 0.0, &mut b)?;
    let device = a.to_backend(cuda)?;
    let jacobi = Jacobi::new(cuda, &device)?;
    let small = cuda_is_small(n);
    let chosen = if small {
        None
    } else {
        Some(
            matrix::choose::<f64, f64, Cuda>(
                cuda,
                device.copied(cuda)?,
                &ChoiceOptions::default().products(1000),
            )?
            .into_parts()
            .0,
        )
    };
    let a: &dyn LinearOperator<f64, Cuda> = match &chosen {
        Some(chosen) => chosen,
        None => &device,
    };
    println!("{name}, {n} unknowns, {}", chosen.as_ref().map_or("csr", |c| c.format()));
    // All iterations are done, because the tolerance is zero and no residual is.
    let limit = if small { 240 } else { 120 };
    let options = || SolveOptions::default().tolerance(0.0).max_iterations(limit);
    measure(cuda, copy, Cg::new(cuda, n, options())?, (a, &Identity), &b, "cg")?;
    measure(cuda, copy, Minres::new(cuda, n, options())?, (a, &Identity), &b, "minres")?;
    measure(cuda, copy, Minres::new(cuda, n, options())?, (a, &jacobi), &b, "minres, jacobi")?;
    measure(cuda, copy, Gmres::new(cuda, n, 30, options())?, (a, &Identity), &b, "gmres(30)")?;
    measure(cuda, copy, BiCgStab::new(cuda, n, options())?, (a, &Identity), &b, "bicgstab")
}

/// Returns whether conjugate gradients keep their vectors in on-chip memory.
fn cuda_is_small(n: usize) -> bool {
    n <= 300_000
}

fn main() -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    let copy = copy_bandwidth(&cuda, 5)?;
    println!("{}: copy {:.2} TB/s", cuda.description(), copy / 1e3);
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let all = ["256x256x256", "4096x4096", "27:160", "512x512", "64x64x64", "100x100"];
    let cases = if named.is_empty() { all.map(String::from).to_vec() } else { named };
    for name in cases {
        let sizes: Vec<usize> =
            name.trim_start_matches("27:").split('x').filter_map(|size| size.parse().ok()).collect();
        let a = match sizes[..] {
            [k] => poisson3d_27(k, k, k)?,
            [x, y] => poisson2d(x, y)?,
            [x, y, z] => poisson3d(x, y, z)?,
            _ => continue,
        };
        case(&cuda, copy, &name, a)?;
    }
    Ok(())
}
