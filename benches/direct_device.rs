//! Factorisations on a CUDA device by cuDSS: time to order, to analyse, to factorise, to solve and to update values,
//! with our order of elimination and with the library's own, to a true 1e-10 with a random x.
//!
//! `cargo bench --bench direct_device [-- CASE...]`. A case is `KxK` (5 points), `KxKxK` (7 points), `wind:K:D`
//! (convection-diffusion on K^3 points, diffusion D), `circuit:N`, `program:N` (a KKT system of N variables),
//! `stokes:K` or the name of a file. `RESIDUA_CUDSS` names the library; its own order uses all threads if
//! `libcudss_mtlayer_gomp` is in the same folder, otherwise one.

#[path = "shared/solves.rs"]
mod solves;

use residua::backend::FactorSteps;
use residua::direct::{DeviceOptions, OnDevice};
use residua::generate;
use residua::solver::{Method, Solver};
use residua::{Backend, Csr, Cuda};
use solves::{fastest, of_random_x};
use std::time::Instant;

/// The requested residual.
const TOLERANCE: f64 = 1e-10;

fn with(
    cuda: &Cuda,
    name: &str,
    a: &Csr<f64, Cuda>,
    b: &[f64],
    options: DeviceOptions,
) -> residua::Result<f64> {
    let who = match (options.dissect, options.deterministic) {
        (true, true) => "ours",
        (true, false) => "ours, any bits",
        (false, _) => "library's order",
    };
    let (b, mut x) = (cuda.upload(b.to_vec())?, cuda.zeros(b.len())?);
    cuda.synchronize()?;
    let start = Instant::now();
    let mut direct = OnDevice::planned(cuda, a, options)?;
    let told = direct.solve(&b, &mut x, TOLERANCE)?;
    cuda.synchronize()?;
    let first = start.elapsed().as_secs_f64() * 1e3;
    let (again, ()) = fastest(cuda, 2, || direct.update(a))?;
    let (solve, last) = fastest(cuda, 3, || direct.solve(&b, &mut x, TOLERANCE))?;
    let seconds = told.seconds;
    println!(
        "{name:16} {who:16} first {first:9.1} ms: order {:8.1} analysis {:8.1} factor {:8.1} solve {:7.2}; new values \
         {again:8.2} solve {solve:7.2}; {} {} steps {} + {}, {:.1e}, {:.3e} entries, {:.2e} flops, {:.2} of {:.2} GB{}",
        1e3 * seconds.order,
        1e3 * seconds.analysis,
        1e3 * seconds.factor,
        1e3 * seconds.solve,
        told.kind,
        if told.dissected { "dissected" } else { "library" },
        last.refinements,
        last.iterations,
        last.relative_residual,
        told.estimate.entries,
        told.estimate.flops.unwrap_or(0.0),
        told.estimate.bytes as f64 / 1e9,
        told.estimate.peak as f64 / 1e9,
        told.reasons.iter().map(|(kind, reason)| format!("; {kind}: {reason}")).collect::<String>(),
    );
    Ok(first)
}

fn case(cuda: &Cuda, name: &str, a: &Csr<f64>) -> residua::Result<()> {
    let b = of_random_x(a)?;
    let device = a.to_backend(cuda)?;
    println!("{name}: {} rows, {} entries", a.rows(), a.nonzeros());
    let mut options = DeviceOptions::default();
    let ours = with(cuda, name, &device, &b, options.clone())?;
    options.deterministic = false;
    with(cuda, name, &device, &b, options.clone())?;
    options.dissect = false;
    let library = with(cuda, name, &device, &b, options)?;
    println!("{name:16} the library's order takes {:.2} times as long to the first solution", library / ours);
    let (mut x, b) = (cuda.zeros(b.len())?, cuda.upload(b)?);
    for method in [Method::Direct, Method::Auto] {
        let matrix = device.copied(cuda)?;
        cuda.fill(0.0, &mut x)?;
        cuda.synchronize()?;
        let start = Instant::now();
        let mut solver = Solver::builder().method(method).build_on(cuda, matrix)?;
        let report = solver.solve_on(cuda, &b, &mut x)?;
        cuda.synchronize()?;
        println!(
            "{name:16} Solver, {method}: {:9.1} ms, {:?} by {} with {}, {} iterations, {:.1e}; {}",
            start.elapsed().as_secs_f64() * 1e3,
            report.outcome,
            report.method,
            report.preconditioner,
            report.iterations,
            report.relative_residual,
            report.trail.stages.iter().filter_map(|stage| stage.remark.as_deref()).collect::<String>(),
        );
    }
    Ok(())
}

fn main() -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    println!("{}, {}", cuda.description(), cuda.factor_library()?);
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let all = ["64x64x64", "1000x1000", "100x100x100", "circuit:200000", "wind:60:0.1", "program:100000"];
    let cases = if named.is_empty() { all.map(String::from).to_vec() } else { named };
    // The first factorisation of a process loads kernels.
    let small = generate::poisson2d(50, 50)?;
    with(&cuda, "warming up", &small.to_backend(&cuda)?, &of_random_x(&small)?, DeviceOptions::default())?;
    for name in cases {
        let words: Vec<&str> = name.split(':').collect();
        let sizes: Vec<usize> = words[0].split('x').filter_map(|size| size.parse().ok()).collect();
        let number = |at: usize, other: usize| words.get(at).and_then(|w| w.parse().ok()).unwrap_or(other);
        let a = match (words[0], &sizes[..]) {
            ("wind", _) => {
                let k = number(1, 60);
                let diffusion = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(0.1);
                generate::convection_diffusion([k, k, k], diffusion)?
            }
            ("circuit", _) => generate::circuit(number(1, 200_000), 1e3, 1)?,
            ("program", _) => {
                let n = number(1, 100_000);
                generate::quadratic_program(n, n / 2, 1e3, 1)?
            }
            ("stokes", _) => {
                let k = number(1, 16);
                generate::stokes([k, k, k], 1.0, true)?
            }
            (_, &[x, y]) => generate::poisson2d(x, y)?,
            (_, &[x, y, z]) => generate::poisson3d(x, y, z)?,
            _ if std::path::Path::new(&name).is_file() => residua::files::read_csr(&name)?,
            _ => continue,
        };
        if let Err(error) = case(&cuda, &name, &a) {
            println!("{name:16} {error}");
        }
    }
    Ok(())
}
