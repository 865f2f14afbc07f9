//! Incomplete factorisation on a CUDA device: time to set it up for a matrix on the device, to update its values, to
//! solve with the two triangles, and to solve a system with a random x to a true relative residual of 1e-8.
//!
//! `cargo bench --bench ilu_device [-- CASE...]`. A case is `KxK` (5 points), `KxKxK` (7 points), `wind:K:D`
//! (convection-diffusion on K^3 points, diffusion D) or the name of a Matrix Market file. With the prefix `windy:`,
//! entries above the diagonal are halved, so that the matrix is unsymmetric. The peer in the same run is
//! `benches/peers/ilu_gpu.py`.

#[path = "shared/solves.rs"]
mod solves;

use residua::generate;
use residua::krylov::{Cg, Gmres, SolveOptions};
use residua::precondition::{Ilu, Preconditioner};
use residua::solver::{Method, PreconditionerChoice, Solver};
use residua::{Backend, Csr, Cuda};
use solves::{fastest, of_random_x};
use std::ops::ControlFlow;
use std::time::Duration;

fn case(cuda: &Cuda, name: &str, a: Csr<f64>, symmetric: bool) -> residua::Result<()> {
    let n = a.rows();
    let (b, device) = (cuda.upload(of_random_x(&a)?)?, a.to_backend(cuda)?);
    let (setup, mut m) =
        fastest(cuda, 4, || if symmetric { Ilu::positive(cuda, &device) } else { Ilu::new(cuda, &device) })?;
    let (again, ()) = fastest(cuda, 4, || m.update(cuda, &device))?;
    let mut z = cuda.zeros(n)?;
    let (apply, ()) = fastest(cuda, 20, || m.apply(cuda, &b, &mut z))?;
    let mut x = cuda.zeros(n)?;
    let go_on = |_, _| ControlFlow::Continue(());
    let options = SolveOptions::default();
    let (solve, report) = if symmetric {
        let mut cg = Cg::new(cuda, n, options)?;
        fastest(cuda, 2, || {
            cuda.fill(0.0, &mut x)?;
            cg.solve(&device, &m, &b, &mut x, go_on)
        })?
    } else {
        let mut gmres = Gmres::new(cuda, n, 30, options)?;
        fastest(cuda, 2, || {
            cuda.fill(0.0, &mut x)?;
            gmres.solve(&device, &m, &b, &mut x, go_on)
        })?
    };
    println!(
        "{name} {n} rows, {} entries, levels {:?}: setup {setup:.2} ms, new values {again:.2}, both triangles {apply:.3}, \
         solve {solve:.2}, {} iterations, {:.1e}",
        a.nonzeros(),
        m.depth(),
        report.iterations,
        report.relative_residual,
    );
    drop(m);
    for preconditioner in ["auto", "jacobi"] {
        let preconditioner: PreconditionerChoice = preconditioner.parse()?;
        let builder = Solver::<f64>::builder()
            .method(Method::Auto)
            .preconditioner(preconditioner)
            .time_limit(Duration::from_secs(30));
        let (build, mut solver) = fastest(cuda, 2, || builder.clone().build_on(cuda, device.copied(cuda)?))?;
        let (solve, report) = fastest(cuda, 2, || {
            cuda.fill(0.0, &mut x)?;
            solver.solve_on(cuda, &b, &mut x)
        })?;
        println!(
            "{:12} {preconditioner:8} build {build:7.2} solve {solve:7.2} ms, {} iterations of {} with {}, {:.1e}",
            "", report.iterations, report.method, report.preconditioner, report.relative_residual
        );
    }
    Ok(())
}

/// The same matrix with its entries above the diagonal halved.
fn windy(mut a: Csr<f64>) -> residua::Result<Csr<f64>> {
    let starts = a.parts().offsets.download(&residua::Host)?;
    let columns = a.parts().indices.to_vec();
    let mut entries = columns.iter().zip(a.values_mut());
    for (i, range) in starts.windows(2).enumerate() {
        for (&column, value) in entries.by_ref().take(range[1] - range[0]) {
            if column as usize > i {
                *value *= 0.5;
            }
        }
    }
    Ok(a)
}

fn main() -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    println!("{}", cuda.description());
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let all = ["1000x1000", "100x100x100", "wind:100:0.1", "wind:200:0.1"];
    let cases = if named.is_empty() { all.map(String::from).to_vec() } else { named };
    for name in cases {
        let words: Vec<&str> = name.split(':').collect();
        let sizes: Vec<usize> = words[0].split('x').filter_map(|size| size.parse().ok()).collect();
        let a = match (&words[..], &sizes[..]) {
            (["wind", k, d], _) => {
                let k = k.parse().unwrap_or(64);
                generate::convection_diffusion([k, k, k], d.parse().unwrap_or(0.1))?
            }
            (["windy", file], _) => windy(residua::market::read_csr(file)?)?,
            (_, &[x, y]) => generate::poisson2d(x, y)?,
            (_, &[x, y, z]) => generate::poisson3d(x, y, z)?,
            _ if name.ends_with(".mtx") => residua::market::read_csr(&name)?,
            _ => continue,
        };
        case(&cuda, &name, a, !name.starts_with("wind"))?;
    }
    Ok(())
}
