//! A time loop of 1,000 solves on the host and on a GPU if there is one. The pattern never changes, so memory is
//! allocated once, and each step brings new values and a new right-hand side.
//!
//! Heat flows through a plate whose conductivity changes with time. A step of the implicit Euler method solves (I + dt
//! L(t)) u' = u, starting from u.

use residua::generate::poisson2d;
use residua::solver::SolverBackend;
use residua::{Csr, Host, Solver};
use std::time::Instant;

const SIDE: usize = 64;
const STEPS: usize = 1000;

fn time_loop<B: SolverBackend>(backend: &B, l: &Csr<f64>) -> residua::Result<Vec<f64>> {
    let n = l.rows();
    // I + dt c(t) L in every step: the same pattern with other values. A simulation would compute them on its device.
    let values = |time: f64| -> Vec<f64> {
        let factor = 0.1 * (1.5 + (6.0 * time).sin());
        let parts = l.parts().values;
        parts.iter().map(|&v| factor * v + if v > 0.0 { 1.0 } else { 0.0 }).collect()
    };
    let builder = Solver::builder().tolerance(1e-10).updates(true);
    let mut solver = builder.build_on(backend, l.to_backend(backend)?)?;
    let mut new = backend.upload(values(0.0))?;
    let mut old = backend.zeros(n)?;
    let mut u = backend.upload((0..n).map(|i| if i < n / 4 { 1.0 } else { 0.0 }).collect())?;

    let (mut iterations, mut worst) = (0, 0.0_f64);
    let (mut first, start) = (0.0, Instant::now());
    for step in 1..=STEPS {
        backend.write(&values(step as f64 / STEPS as f64), &mut new)?;
        solver.update_on(backend, &new)?;
        backend.copy(&u, &mut old)?;
        let report = solver.solve_on(backend, &old, &mut u)?;
        assert!(report.outcome.is_converged(), "step {step}: {}", report.outcome);
        iterations += report.iterations;
        worst = worst.max(report.relative_residual);
        if step == 1 {
            first = start.elapsed().as_secs_f64();
        }
    }
    let rest = (start.elapsed().as_secs_f64() - first) / (STEPS - 1) as f64;
    println!(
        "{}: first solve {:.1} us, each of the others {:.1} us, {:.1} iterations each, largest residual {worst:.1e}",
        backend.description(),
        first * 1e6,
        rest * 1e6,
        iterations as f64 / STEPS as f64
    );
    backend.download(&u)
}

fn main() -> residua::Result<()> {
    let l = poisson2d(SIDE, SIDE)?;
    let here = time_loop(&Host, &l)?;
    #[cfg(feature = "cuda")]
    match residua::Cuda::new(0) {
        Ok(cuda) => {
            let there = time_loop(&cuda, &l)?;
            let apart = here.iter().zip(&there).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart < 1e-8, "host and device are {apart:e} apart");
        }
        Err(reason) => println!("no GPU: {reason}"),
    }
    assert!(here.iter().all(|u| (0.0..=1.0).contains(u)));
    Ok(())
}
