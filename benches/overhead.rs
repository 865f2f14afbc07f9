//! The overhead of `Solver` compared with the conjugate gradients that it runs: both warm, with the same matrix, format
//! and preconditioner, alternating; printed is the median of the ratios of times. On the CPU, and on a CUDA device if
//! there is one.
//!
//! `cargo bench --bench overhead [-- K...]`: 5 points on K x K, 100 by default.

use residua::generate::{Random, poisson2d};
use residua::krylov::{Cg, SolveOptions};
use residua::precondition::Jacobi;
use residua::solver::{Method, PreconditionerChoice, Reorder, SolverBackend};
use residua::{Csr, Host, Solver};
use std::ops::ControlFlow;
use std::time::Instant;

const TURNS: usize = 200;

fn seconds(work: impl FnOnce() -> residua::Result<()>) -> residua::Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn case<B: SolverBackend>(backend: &B, a: &Csr<f64>) -> residua::Result<()> {
    let n = a.rows();
    let mut random = Random::new(1);
    let solution: Vec<f64> = (0..n).map(|_| random.unit() - 0.5).collect();
    let b = backend.upload(a * &solution)?;
    let mut x = backend.zeros(n)?;
    let place = || a.to_backend(backend);
    let (bare_a, options) = (place()?, SolveOptions::default().tolerance(1e-8));
    let jacobi = Jacobi::new(backend, &bare_a)?;
    let mut cg = Cg::new(backend, n, options)?;
    let builder = Solver::<f64>::builder().tolerance(1e-8).method(Method::Cg).format("csr");
    let builder = builder.preconditioner(PreconditionerChoice::Jacobi).reorder(Reorder::None);
    let mut solver = builder.build_on(backend, place()?)?;
    let (mut ratios, mut times, mut iterations) = (Vec::new(), Vec::new(), [0, 0]);
    for turn in 0..TURNS + 5 {
        backend.fill(0.0, &mut x)?;
        backend.synchronize()?;
        let bare = seconds(|| {
            let report = cg.solve(&bare_a, &jacobi, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
            iterations[0] = report.iterations;
            backend.synchronize()
        })?;
        backend.fill(0.0, &mut x)?;
        backend.synchronize()?;
        let whole = seconds(|| {
            iterations[1] = solver.solve_on(backend, &b, &mut x)?.iterations;
            backend.synchronize()
        })?;
        if turn >= 5 {
            ratios.push(whole / bare);
            times.push(bare);
        }
    }
    println!(
        "{}: {n} unknowns, iterations {iterations:?}, bare {:.1} us, Solver {:+.2} %",
        backend.description(),
        1e6 * median(times),
        100.0 * (median(ratios) - 1.0)
    );
    Ok(())
}

fn main() -> residua::Result<()> {
    let named: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    for k in if named.is_empty() { vec![100] } else { named } {
        let a = poisson2d(k, k)?;
        case(&Host, &a)?;
        #[cfg(feature = "cuda")]
        match residua::Cuda::new(0) {
            Ok(cuda) => case(&cuda, &a)?,
            Err(error) => println!("no device: {error}"),
        }
    }
    Ok(())
}
