//! Factorisations on a CUDA device: time to order, to analyse, to factorise, to update values, and to solve to a true
//! residual of 1e-10 with a random x. They use our own fronts, the host, and cuDSS if it is installed; cuDSS is run
//! with our ordering and with its own.
//!
//! `cargo bench --bench direct_device [-- [--ours] CASE...]`; with `--ours`, our fronts alone. A case is `KxK` (5
//! points), `KxKxK` (7 points), `wind:K:D` (convection-diffusion on K^3 points, diffusion D), `circuit:N`, `program:N`
//! (a KKT system of N variables), `stokes:K`, `mesh:K` (convection-diffusion on triangles, about K^2 points),
//! `helmholtz:K` (complex) or the name of a file. `RESIDUA_CUDSS` names the library of cuDSS; its own ordering uses all
//! threads if `libcudss_mtlayer_gomp` is in the same folder, otherwise one.

#[path = "shared/solves.rs"]
mod solves;

use num_complex::Complex;
use residua::backend::FactorSteps;
use residua::direct::{DeviceOptions, Direct, DirectOptions, Factorable, OnDevice};
use residua::generate;
use residua::{Backend, Csr, Cuda};
use solves::{fastest, of_random_x};
use std::time::Instant;

/// The requested relative residual.
const TOLERANCE: f64 = 1e-10;

fn on_host<T: Factorable>(cuda: &Cuda, name: &str, a: &Csr<T>) -> residua::Result<f64> {
    let b = of_random_x(a)?;
    let mut x = vec![T::default(); b.len()];
    let start = Instant::now();
    let mut direct = Direct::new(a, DirectOptions::default().condition(false))?;
    let told = direct.solve(&b, &mut x, TOLERANCE)?;
    let first = start.elapsed().as_secs_f64() * 1e3;
    let (again, ()) = fastest(cuda, 2, || direct.update(a))?;
    let (solve, _) = fastest(cuda, 3, || direct.solve(&b, &mut x, TOLERANCE))?;
    println!(
        "{name:16} {:16} first {first:9.1} ms; new values {again:8.2} solve {solve:7.2}; {} steps {} + {}, {:.1e}, {:.2} GB",
        "host",
        told.kind,
        told.refinements,
        told.iterations,
        told.relative_residual,
        told.factor_bytes as f64 / 1e9,
    );
    Ok(first)
}

fn with<T: Factorable>(
    cuda: &Cuda,
    name: &str,
    a: &Csr<T, Cuda>,
    b: &[T],
    options: DeviceOptions,
) -> residua::Result<f64> {
    let who = match (options.library, options.dissect, options.deterministic) {
        (false, ..) => "our fronts",
        (_, true, true) => "library",
        (_, true, false) => "library, any bits",
        (_, false, _) => "library's order",
    };
    let (b, mut x) = (cuda.upload(b.to_vec())?, cuda.zeros(b.len())?);
    cuda.synchronize()?;
    let start = Instant::now();
    let mut direct = OnDevice::planned(cuda, a, options)?;
    let told = direct.solve(&b, &mut x, TOLERANCE)?;
    cuda.synchronize()?;
    let first = start.elapsed().as_secs_f64() * 1e3;
    let (again, ()) = fastest(cuda, 3, || direct.update(a))?;
    let (solve, last) = fastest(cuda, 3, || direct.solve(&b, &mut x, TOLERANCE))?;
    let seconds = told.seconds;
    println!(
        "{name:16} {who:16} first {first:9.1} ms: order {:8.1} analysis {:8.1} factor {:8.1} solve {:7.2}; new values \
         {again:8.2} solve {solve:7.2}; {} steps {} + {}, {:.1e}, {:.3e} entries, {:.2e} flops, {:.2} of {:.2} GB{}",
        1e3 * seconds.order,
        1e3 * seconds.analysis,
        1e3 * seconds.factor,
        1e3 * seconds.solve,
        told.kind,
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

fn case<T: Factorable>(cuda: &Cuda, name: &str, a: &Csr<T>) -> residua::Result<()> {
    let b = of_random_x(a)?;
    let device = a.to_backend(cuda)?;
    println!("{name}: {} rows, {} entries", a.rows(), a.nonzeros());
    let mut options = DeviceOptions::default();
    options.library = false;
    if std::env::args().any(|word| word == "--ours") {
        return with(cuda, name, &device, &b, options).map(drop);
    }
    let host = on_host(cuda, name, a)?;
    let ours = with(cuda, name, &device, &b, options.clone())?;
    println!("{name:16} the host takes {:.2} times as long to the first solution as our fronts", host / ours);
    if cuda.factor_library().is_err() {
        return Ok(());
    }
    options.library = true;
    let library = with(cuda, name, &device, &b, options.clone())?;
    options.deterministic = false;
    with(cuda, name, &device, &b, options.clone())?;
    options.dissect = false;
    with(cuda, name, &device, &b, options)?;
    println!(
        "{name:16} the library takes {:.2} times as long to the first solution as our fronts",
        library / ours
    );
    Ok(())
}

fn main() -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    let library = cuda.factor_library().unwrap_or_else(|_| "no library for factorisations".into());
    println!("{}, {library}", cuda.description());
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let all = [
        "1000x1000",
        "64x64x64",
        "mesh:450",
        "helmholtz:500",
        "stokes:300",
        "circuit:200000",
        "program:100000",
    ];
    let cases = if named.is_empty() { all.map(String::from).to_vec() } else { named };
    // The first factorisation of a process loads kernels.
    for name in ["16x16x16", "helmholtz:40"].into_iter().chain(cases.iter().map(String::as_str)) {
        let words: Vec<&str> = name.split(':').collect();
        let sizes: Vec<usize> = words[0].split('x').filter_map(|size| size.parse().ok()).collect();
        let number = |at: usize, other: usize| words.get(at).and_then(|w| w.parse().ok()).unwrap_or(other);
        let a = match (words[0], &sizes[..]) {
            ("wind", _) => {
                let k = number(1, 60);
                let diffusion = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(0.1);
                generate::convection_diffusion([k, k, k], diffusion)
            }
            ("circuit", _) => generate::circuit(number(1, 200_000), 1e3, 1),
            ("program", _) => {
                let n = number(1, 100_000);
                generate::quadratic_program(n, n / 2, 1e3, 1)
            }
            ("mesh", _) => generate::mesh([number(1, 450), number(1, 450), 0], 1.0, 1.0, 1),
            ("stokes", _) => generate::stokes([number(1, 300), number(1, 300), 1], 1.0, true),
            ("helmholtz", _) => {
                let k = number(1, 500);
                let waves = generate::helmholtz_absorbing([k, k, 1], 10.0);
                waves.and_then(|a: Csr<Complex<f64>>| case(&cuda, name, &a)).err().into_iter().for_each(
                    |error| {
                        println!("{name:16} {error}");
                    },
                );
                continue;
            }
            (_, &[x, y]) => generate::poisson2d(x, y),
            (_, &[x, y, z]) => generate::poisson3d(x, y, z),
            _ if std::path::Path::new(name).is_file() => residua::files::read_csr(name),
            _ => continue,
        };
        if let Err(error) = a.and_then(|a| case(&cuda, name, &a)) {
            println!("{name:16} {error}");
        }
    }
    Ok(())
}
