//! Measures the speeds of this machine for a table of prices of its own.

use crate::backend::Host;
use crate::direct::{Direct, DirectOptions};
use crate::error::Result;
use crate::generate::poisson3d;
use crate::matrix::Csr;
use crate::prices::machine::{Machine, Speeds};
use crate::report::copy_bandwidth;
use crate::solver::{Method, Reorder, Solver, SolverBackend};
use std::time::Instant;

/// Points of a side of the grid that is factorised, on the CPU and on a GPU: about a tenth of a second each.
const SIDES: [usize; 2] = [30, 64];

/// Runs of each measurement, of which the fastest counts.
const RUNS: usize = 5;

/// Steps on a vector of this length, which is short for any device.
const STEPS: usize = 2000;
const SHORT: usize = 1000;

/// The speeds of this machine. It takes a few seconds, in which nothing else should run.
///
/// # Errors
/// If memory runs out, or the device fails.
pub(crate) fn measured() -> Result<Machine> {
    let cpu = speeds(&Host, SIDES[0])?;
    let threads = rayon::current_num_threads();
    #[cfg(feature = "cuda")]
    let gpu = match crate::Cuda::new(0) {
        Ok(cuda) => Some((speeds(&cuda, SIDES[1])?, crate::backend::Backend::description(&cuda))),
        Err(_) => None,
    };
    #[cfg(not(feature = "cuda"))]
    let gpu: Option<(Speeds, String)> = None;
    let with = gpu.as_ref().map_or(String::new(), |(_, device)| format!(", {device}"));
    let name = format!("measured with residua {} on {threads} threads{with}", env!("CARGO_PKG_VERSION"));
    Ok(Machine { name, cpu, gpu: gpu.map(|(speeds, _)| speeds) })
}

fn speeds<B: SolverBackend>(backend: &B, side: usize) -> Result<Speeds> {
    let copies = 1e9 * copy_bandwidth(backend, RUNS)?;
    let (mut launch, mut factors) = (f64::INFINITY, f64::INFINITY);
    let (vector, mut square) = (backend.zeros::<f64>(SHORT)?, backend.zeros::<f64>(1)?);
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..STEPS {
            backend.norm2_squared(&vector, &mut square)?;
        }
        backend.synchronize()?;
        launch = f64::min(launch, start.elapsed().as_secs_f64() / STEPS as f64);
    }
    let a: Csr<f64> = poisson3d(side, side, side)?;
    let flops = Direct::analyse(&a, &DirectOptions::default())?.flops;
    let (n, here) = (a.rows(), a.copied(&Host)?.into_backend(backend)?);
    let values = here.copied(backend)?;
    let mut solver = Solver::builder()
        .method(Method::Direct)
        .reorder(Reorder::None)
        .condition(false)
        .updates(true)
        .build_on(backend, here)?;
    let (b, mut x) = (backend.upload(vec![1.0; n])?, backend.zeros(n)?);
    // The first solve finds the order, and loads what the device needs.
    let _ = solver.solve_on(backend, &b, &mut x)?;
    for _ in 0..RUNS {
        backend.fill(0.0, &mut x)?;
        let start = Instant::now();
        solver.update_on(backend, values.parts().values)?;
        let _ = solver.solve_on(backend, &b, &mut x)?;
        backend.synchronize()?;
        factors = f64::min(factors, start.elapsed().as_secs_f64());
    }
    Ok(Speeds { copies, launch, multiplications: flops / factors })
}
