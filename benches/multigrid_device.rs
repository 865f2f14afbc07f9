//! Multigrid on a CUDA device: the time to set it up for a matrix on the device, and to solve with a random x to a true
//! relative residual of 1e-8, both with kernels compiled and loaded.
//!
//! `cargo bench --bench multigrid_device [-- CASE...]`. A case is `KxKxK` (7 points), `KxK` (5 points), `27:K` (27
//! points, K^3), `jumps:K` (7 points, K^3, coefficients that jump by 10^6 between blocks of 8^3), `rough:K` (7 points,
//! K^3, log-uniform coefficients of cells, with the variance of a lognormal distribution of sigma 1), `shuffled:K` (7
//! points, K^3, in random order), `general:K` (7 points, K^3, not treated as a grid), `bits:K` (7 points, K^3, in
//! random order: whether 20 setups and solves give the same bits of x), `convection:K:P` (upwind differences, K^3, at a
//! cell Peclet number of P), `units:K` (7 points, K^3, D A D with a random D over four decades), `rows:K` (likewise
//! with D A, by the method that `auto` takes), or the name of a file. For products alone (`peers/spgemm.py`) it is
//! `square:FILE` (A A) or `triple:FILE,FILE` (R A P of A and P, R = P^T).

#[path = "shared/solves.rs"]
mod solves;

use residua::generate;
use residua::graph::{self, Permutation};
use residua::krylov::{Cg, SolveOptions};
use residua::matrix::{self, ChoiceOptions};
use residua::multigrid::{Multigrid, MultigridOptions};
use residua::precondition::Preconditioner;
use residua::solver::{Builder, Method, PreconditionerChoice, SolveReport, Solver};
use residua::{Backend, Csr, Cuda};
use solves::{fastest, of_random_x};
use std::ops::ControlFlow;

fn case(cuda: &Cuda, name: &str, a: Csr<f64>, boxes: bool) -> residua::Result<()> {
    let n = a.rows();
    let b = cuda.upload(of_random_x(&a)?)?;
    let device = a.to_backend(cuda)?;
    drop(a);
    let options = MultigridOptions::default().narrow(true).boxes(boxes);
    let (setup, mut m) = fastest(cuda, 4, || Multigrid::new(cuda, &device, &options))?;
    let chosen =
        matrix::choose::<f64, f64, Cuda>(cuda, device.copied(cuda)?, &ChoiceOptions::default().products(30))?;
    let a = chosen.into_parts().0;
    let mut x = cuda.zeros(n)?;
    let mut cg = Cg::new(cuda, n, SolveOptions::default())?;
    let (solve, report) = fastest(cuda, 4, || {
        cuda.fill(0.0, &mut x)?;
        cg.solve(&*a, &m, &b, &mut x, |_, _| ControlFlow::Continue(()))
    })?;
    let memory = |m: &Multigrid<f64, Cuda>| {
        let vectors = 8 * m.work_len() + 4 * m.narrow_work_len();
        (m.storage_bytes() + vectors) as f64 / device.storage_bytes() as f64
    };
    let before = memory(&m);
    let (again, _) = fastest(cuda, 3, || m.update(cuda, &device))?;
    let (square, entries) = fastest(cuda, 3, || Ok(matrix::multiply(cuda, &device, &device)?.nonzeros()))?;
    println!("{name:12} A A {square:.2} ms, {entries} entries; new values {again:.2} ms");
    println!("{name:12} memory {before:.2} times A, {:.2} once values were new", memory(&m));
    println!(
        "{name:12} {n:9} {:5} amg: setup {setup:7.2} solve {solve:7.2} ms, {} iterations, {:.1e}, {:.2} times the entries{}",
        a.format(),
        report.iterations,
        report.relative_residual,
        m.facts().operator_complexity(),
        if m.facts().grid { ", grids" } else { "" },
    );
    drop((a, m, cg));
    // A build may order the unknowns, so the kernels for that are loaded before, like those of multigrid.
    graph::ordering_on(cuda, &device)?;
    for (preconditioner, what) in [("auto", "auto"), ("amg", "amg"), ("jacobi", "jacobi")] {
        let preconditioner: PreconditionerChoice = preconditioner.parse()?;
        let builder = Solver::<f64>::builder().method(Method::Auto).preconditioner(preconditioner);
        let ([build, first, again], report) = built_and_solved(cuda, &builder, &device, (&b, &mut x))?;
        println!(
            "{:12} {what:15} build {build:7.2} first solve {first:7.2} next {again:7.2} ms, {} iterations of {} with {}, \
             {:.1e}",
            "", report.iterations, report.method, report.preconditioner, report.relative_residual
        );
    }
    Ok(())
}

/// Milliseconds to build a solver from a given matrix, of its first solve from zero, which includes setups of later
/// methods, and of a second solve; each is the fastest of a few. Also returns the last report.
fn built_and_solved(
    cuda: &Cuda,
    builder: &Builder,
    a: &Csr<f64, Cuda>,
    (b, x): (&<Cuda as Backend>::Slice<f64>, &mut <Cuda as Backend>::Slice<f64>),
) -> residua::Result<([f64; 3], SolveReport)> {
    let (mut times, mut last) = ([f64::INFINITY; 3], None);
    for _ in 0..3 {
        drop(last.take());
        let mut a = Some(a.copied(cuda)?);
        let once = || builder.clone().build_on(cuda, a.take().expect("it is built once"));
        let (build, mut solver) = fastest(cuda, 1, once)?;
        let mut solve = |runs| {
            fastest(cuda, runs, || {
                cuda.fill(0.0, x)?;
                solver.solve_on(cuda, b, x)
            })
        };
        let ((first, _), (again, report)) = (solve(1)?, solve(2)?);
        for (least, time) in times.iter_mut().zip([build, first, again]) {
            *least = least.min(time);
        }
        last = Some((solver, report));
    }
    let (_, report) = last.expect("it was built");
    Ok((times, report))
}

/// Prints iterations and time of GMRES with geometric multigrid for upwind differences.
fn convection(cuda: &Cuda, name: &str, k: usize, peclet: f64) -> residua::Result<()> {
    let a = generate::convection_diffusion([k; 3], 1.0 / (peclet * (k as f64 + 1.0)))?;
    let builder = Solver::<f64>::builder().method(Method::Gmres).preconditioner("amg".parse()?);
    not_hermitian(cuda, name, &a, &builder)
}

/// Measures setup and solve with the given builder for a matrix that is not Hermitian.
fn not_hermitian(cuda: &Cuda, name: &str, a: &Csr<f64>, builder: &Builder) -> residua::Result<()> {
    let b = cuda.upload(of_random_x(a)?)?;
    let (device, mut x) = (a.to_backend(cuda)?, cuda.zeros(a.rows())?);
    let ([build, first, again], report) = built_and_solved(cuda, builder, &device, (&b, &mut x))?;
    println!(
        "{name:12} {} with {}: build {build:.2} first solve {first:.2} next {again:.2} ms, {} iterations, {:.1e}",
        report.method, report.preconditioner, report.iterations, report.relative_residual
    );
    Ok(())
}

/// Multiplies row i by d_i and, if `both`, column j by d_j, with d over four decades.
fn in_units(a: &Csr<f64>, both: bool) -> residua::Result<Csr<f64>> {
    // A golden-ratio sequence, which fills the decades evenly.
    let unit = |i: usize| 10.0_f64.powf(4.0 * (i as f64 * 0.618_033_988_749_895).fract() - 2.0);
    let mut scaled = a.copied(&residua::Host)?;
    let factors = a.iter().map(|(i, j, _)| unit(i) * if both { unit(j) } else { 1.0 });
    scaled.values_mut().iter_mut().zip(factors).for_each(|(value, factor)| *value *= factor);
    Ok(scaled)
}

/// Prints the time of A A, or of R A P if P is given.
fn products(cuda: &Cuda, name: &str, files: &str) -> residua::Result<()> {
    let (a, p) = files.split_once(',').map_or((files, None), |(a, p)| (a, Some(p)));
    let a = residua::files::read_csr::<f64>(a)?.into_backend(cuda)?;
    let (time, entries) = match p {
        None => fastest(cuda, 5, || Ok(matrix::multiply(cuda, &a, &a)?.nonzeros()))?,
        Some(p) => {
            let p = residua::files::read_csr::<f64>(p)?.into_backend(cuda)?;
            let r = p.transpose(cuda)?;
            fastest(cuda, 5, || Ok(matrix::TripleProduct::new(cuda, &r, &a, &p)?.product().nonzeros()))?
        }
    };
    println!("{:12} ours {time:.2} ms, {entries} entries", name.split(':').next().unwrap_or(name));
    Ok(())
}

/// Checks whether 20 setups and solves give the same bits of x.
fn bits(cuda: &Cuda, name: &str, a: &Csr<f64>) -> residua::Result<()> {
    let (n, b) = (a.rows(), cuda.upload(of_random_x(a)?)?);
    let device = a.to_backend(cuda)?;
    let options = MultigridOptions::default().narrow(true);
    let mut seen: Option<Vec<f64>> = None;
    for run in 0..20 {
        let m = Multigrid::new(cuda, &device, &options)?;
        let mut x = cuda.zeros(n)?;
        let mut cg = Cg::new(cuda, n, SolveOptions::default())?;
        let report = cg.solve(&device, &m, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
        assert!(report.outcome.is_converged(), "{}", report.outcome);
        let x = cuda.download(&x)?;
        if seen.as_ref().is_some_and(|seen| *seen != x) {
            println!("{name:12} run {run} has other bits");
            return Ok(());
        }
        seen = Some(x);
    }
    println!("{name:12} 20 setups and solves: the same bits");
    Ok(())
}

/// The same matrix with its rows and columns in random order.
fn shuffled(a: &Csr<f64>) -> residua::Result<Csr<f64>> {
    graph::permute_symmetric(a, &Permutation::random(a.rows(), 5)?)
}

fn main() -> residua::Result<()> {
    let cuda = Cuda::new(0)?;
    println!("{}", cuda.description());
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let all = ["64x64x64", "512x512", "128x128x128", "jumps:160", "27:160", "256x256x256", "4096x4096"];
    let cases = if named.is_empty() { all.map(String::from).to_vec() } else { named };
    for name in cases {
        let (kind, sizes) = name.split_once(':').unwrap_or(("", &name));
        let sizes: Vec<usize> = sizes.split('x').filter_map(|size| size.parse().ok()).collect();
        let a = match (kind, &sizes[..]) {
            ("27", &[k]) => generate::poisson3d_27(k, k, k)?,
            ("general", &[k]) => generate::poisson3d(k, k, k)?,
            ("shuffled", &[k]) => shuffled(&generate::poisson3d(k, k, k)?)?,
            ("jumps", &[k]) => generate::jumping([k, k, k], 1e6, 8, 1)?,
            ("rough", &[k]) => generate::jumping([k, k, k], 32.0, 1, 1)?,
            ("units", &[k]) => in_units(&generate::poisson3d(k, k, k)?, true)?,
            ("rows", &[k]) => {
                let a = in_units(&generate::poisson3d(k, k, k)?, false)?;
                not_hermitian(&cuda, &name, &a, &Solver::<f64>::builder())?;
                continue;
            }
            ("convection", _) => {
                let (k, peclet) =
                    name.split_once(':').and_then(|(_, rest)| rest.split_once(':')).unwrap_or(("64", "1"));
                convection(&cuda, &name, k.parse().unwrap_or(64), peclet.parse().unwrap_or(1.0))?;
                continue;
            }
            ("square" | "triple", _) => {
                products(&cuda, &name, name.split_once(':').map_or("", |(_, files)| files))?;
                continue;
            }
            ("", &[x, y]) => generate::poisson2d(x, y)?,
            ("", &[x, y, z]) => generate::poisson3d(x, y, z)?,
            ("bits", &[k]) => {
                bits(&cuda, &name, &shuffled(&generate::poisson3d(k, k, k)?)?)?;
                continue;
            }
            _ if std::path::Path::new(&name).is_file() => residua::files::read_csr(&name)?,
            _ => continue,
        };
        case(&cuda, &name, a, kind != "general")?;
    }
    Ok(())
}
