//! Orderings. `cargo bench --bench graph` times each step on shuffled meshes. `cargo bench --bench graph -- table
//! A.mtx...` prints CSV, one line per matrix, which `benches/peers/rcm.py` compares with SciPy. `cargo bench --bench
//! graph -- device` orders meshes on a CUDA device (`device 1000 wathen` selects those whose names contain one of
//! these) and solves with them; with `orders` instead of `device` there are no solves.

#[path = "shared/timed.rs"]
mod timed;

use num_complex::Complex;
use residua::graph::{
    Adjacency, Permutation, bandwidth, bandwidth_permuted, bfs, connected_components, permute_symmetric,
    profile, profile_permuted, reverse_cuthill_mckee, reverse_cuthill_mckee_on,
};
use residua::{Csr, Host, generate, market};
use std::hint::black_box;
use std::time::Instant;
use timed::Timed;

/// The smallest of several times, in seconds.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// If the pattern is symmetric, the ordering is told so, as the peer is.
fn order(a: &Csr<Complex<f64>>, symmetric: bool) -> residua::Result<Permutation> {
    let graph = if symmetric { Adjacency::from_symmetric(a) } else { Adjacency::new(a) };
    reverse_cuthill_mckee_on(&Host, &graph?)
}

fn table(paths: &[String]) -> residua::Result<()> {
    println!(
        "path,rows,nonzeros,symmetric,bandwidth_before,bandwidth_after,profile_before,profile_after,adjacency_s,rcm_s,permute_s"
    );
    for path in paths {
        let a: Csr<Complex<f64>> = match market::read_csr(path) {
            Ok(a) => a,
            Err(error) => {
                eprintln!("left out: {error}");
                continue;
            }
        };
        let runs = if a.nonzeros() < 1 << 21 { 7 } else { 3 };
        let p = reverse_cuthill_mckee(&a)?;
        let symmetric = Adjacency::new(&a)?.is_borrowed();
        println!(
            "{path},{},{},{},{},{},{},{},{:.9},{:.9},{:.9}",
            a.rows(),
            a.nonzeros(),
            symmetric,
            bandwidth(&a),
            bandwidth_permuted(&a, &p)?,
            profile(&a)?,
            profile_permuted(&a, &p)?,
            best(runs, || Adjacency::new(&a)),
            best(runs, || order(&a, symmetric)),
            best(runs, || permute_symmetric(&a, &p)),
        );
    }
    Ok(())
}

/// The matrix with its rows and columns in random order.
fn shuffled(a: &Csr<f64>) -> residua::Result<Csr<f64>> {
    permute_symmetric(a, &Permutation::random(a.rows(), 1)?)
}

fn steps() -> residua::Result<()> {
    let meshes = [
        ("5-point 600^2, shuffled", shuffled(&generate::poisson2d(600, 600)?)?),
        ("7-point 70^3, shuffled", shuffled(&generate::poisson3d(70, 70, 70)?)?),
    ];
    for (name, a) in meshes {
        let graph = Adjacency::new(&a)?;
        let p = reverse_cuthill_mckee(&a)?;
        let x: Vec<f64> = (0..a.rows()).map(|k| k as f64).collect();
        println!("{name}");
        let timed = Timed::new(a.nonzeros(), "nonzeros");
        timed.time("adjacency", || Adjacency::new(&a));
        timed.time("bfs", || bfs(&graph, 0));
        timed.time("components", || connected_components(&graph));
        timed.time("reverse Cuthill-McKee", || reverse_cuthill_mckee(&a));
        timed.time("permute matrix", || permute_symmetric(&a, &p));
        timed.time("permute vector", || p.apply(&x));
        timed.time("bandwidth permuted", || bandwidth_permuted(&a, &p));
    }
    Ok(())
}

/// Orders and permutes meshes on a CUDA device, and measures how that changes products and conjugate gradients.
#[cfg(feature = "cuda")]
mod on_device {
    use super::{best, generate};
    use residua::graph::{
        Adjacency, Permutation, ordering_on, permute_symmetric_on, reverse_cuthill_mckee_on,
    };
    use residua::krylov::{Cg, SolveOptions};
    use residua::precondition::Jacobi;
    use residua::{Backend, Csr, Cuda};
    use std::ops::ControlFlow;

    fn shuffled(cuda: &Cuda, a: Csr<f64, Cuda>) -> residua::Result<Csr<f64, Cuda>> {
        let p = Permutation::from_host(cuda, &Permutation::random(a.rows(), 1)?)?;
        permute_symmetric_on(cuda, &a, &p)
    }

    /// Seconds of a product, from many in a row.
    fn product(cuda: &Cuda, a: &Csr<f64, Cuda>) -> residua::Result<f64> {
        let x = cuda.upload(vec![1.0; a.columns()])?;
        let mut y = cuda.zeros(a.rows())?;
        let many = 50;
        let seconds = best(3, || {
            (0..many)
                .try_for_each(|_| a.product(cuda, 1.0, &x, 0.0, &mut y))
                .and_then(|()| cuda.synchronize())
        });
        Ok(seconds / f64::from(many))
    }

    /// Solves are stopped after this number of iterations, which is enough for the time per iteration.
    const MOST_ITERATIONS: usize = 2000;

    /// Seconds and iterations of a solve.
    fn solve(
        cuda: &Cuda,
        a: &Csr<f64, Cuda>,
        b: &<Cuda as Backend>::Slice<f64>,
    ) -> residua::Result<(f64, usize)> {
        let jacobi = Jacobi::new(cuda, a)?;
        let mut x = cuda.zeros(a.rows())?;
        let mut cg = Cg::new(cuda, a.rows(), SolveOptions::default().max_iterations(MOST_ITERATIONS))?;
        let mut iterations = 0;
        let seconds = best(2, || -> residua::Result<()> {
            cuda.fill(0.0, &mut x)?;
            iterations = cg.solve(a, &jacobi, b, &mut x, |_, _| ControlFlow::Continue(()))?.iterations;
            Ok(())
        });
        Ok((seconds, iterations))
    }

    /// Measures meshes whose names contain one of `only` (or equal it, if it ends in a dot), or all.
    pub fn table(only: &[String], solves: bool) -> residua::Result<()> {
        let cuda = &Cuda::new(0)?;
        type Mesh = (&'static str, fn() -> residua::Result<Csr<f64>>, bool);
        let meshes: [Mesh; 13] = [
            ("5-point 1000^2", || generate::poisson2d(1000, 1000), false),
            ("5-point 2000^2", || generate::poisson2d(2000, 2000), false),
            ("5-point 2000^2, shuffled", || generate::poisson2d(2000, 2000), true),
            ("wathen 600^2, shuffled", || generate::wathen(600, 600, 1), true),
            ("5-point 1000^2, shuffled", || generate::poisson2d(1000, 1000), true),
            ("5-point 3000^2, shuffled", || generate::poisson2d(3000, 3000), true),
            ("5-point 3000^2", || generate::poisson2d(3000, 3000), false),
            ("5-point 5000^2", || generate::poisson2d(5000, 5000), false),
            ("5-point 5000^2, shuffled", || generate::poisson2d(5000, 5000), true),
            ("7-point 100^3, shuffled", || generate::poisson3d(100, 100, 100), true),
            ("7-point 200^3", || generate::poisson3d(200, 200, 200), false),
            ("7-point 200^3, shuffled", || generate::poisson3d(200, 200, 200), true),
            ("27-point 100^3, shuffled", || generate::poisson3d_27(100, 100, 100), true),
        ];
        println!(
            "mesh,rows,graph_ms,rcm_ms,ordering_ms,permute_ms,bandwidth_before,bandwidth_rcm,price_in_products,\
             product_before_us,product_after_us,cg_before_ms,cg_after_ms,iterations"
        );
        for (name, build, shuffle) in meshes {
            let is_meant =
                |part: &String| part.strip_suffix('.').map_or(name.contains(&**part), |all| name == all);
            if !only.is_empty() && !only.iter().any(is_meant) {
                continue;
            }
            let a = build()?.into_backend(cuda)?;
            let a = if shuffle { shuffled(cuda, a)? } else { a };
            let graph = Adjacency::on(cuda, &a)?;
            let chosen = ordering_on(cuda, &a)?;
            let p = reverse_cuthill_mckee_on(cuda, &graph)?;
            let after = permute_symmetric_on(cuda, &a, &p)?;
            let waited = |work: &mut dyn FnMut() -> residua::Result<()>| {
                1e3 * best(3, || work().and_then(|()| cuda.synchronize()))
            };
            let graph_ms = waited(&mut || Adjacency::on(cuda, &a).map(drop));
            let rcm_ms = waited(&mut || reverse_cuthill_mckee_on(cuda, &graph).map(drop));
            let ordering_ms = waited(&mut || ordering_on(cuda, &a).map(drop));
            let permute_ms = waited(&mut || permute_symmetric_on(cuda, &a, &p).map(drop));
            let (before_us, after_us) = (1e6 * product(cuda, &a)?, 1e6 * product(cuda, &after)?);
            let b = cuda.upload((0..a.rows()).map(|i| (i % 17) as f64 - 8.0).collect())?;
            let mut moved = cuda.zeros(a.rows())?;
            p.apply_on(cuda, &b, &mut moved)?;
            let (before_cg, iterations) = if solves { solve(cuda, &a, &b)? } else { (f64::NAN, 0) };
            let after_cg = if solves { solve(cuda, &after, &moved)?.0 } else { f64::NAN };
            println!(
                "{name},{},{graph_ms:.3},{rcm_ms:.3},{ordering_ms:.3},{permute_ms:.3},{},{},{:.0},\
                 {before_us:.1},{after_us:.1},{:.2},{:.2},{iterations}",
                a.rows(),
                chosen.bandwidth_before(),
                chosen.bandwidth_rcm(),
                1e3 * (ordering_ms + permute_ms) / before_us,
                1e3 * before_cg,
                1e3 * after_cg,
            );
        }
        Ok(())
    }
}

fn main() -> residua::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match arguments.split_first() {
        Some((first, paths)) if first == "table" => table(paths),
        #[cfg(feature = "cuda")]
        Some((first, only)) if first == "device" || first == "orders" => {
            on_device::table(only, first == "device")
        }
        _ => steps(),
    }
}
