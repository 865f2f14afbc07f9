//! Solvers in every way that they can run, preconditioners, and several streams.

use crate::precondition::{
    applied, block_case, close, dominant, fsai_case, natural_block_cases, poisson, row_inverse_cases, vector,
};
use crate::primitives as cases;
use crate::systems::{Device, Stepwise, poisson2d};
use crate::{graph, systems};
use num_complex::Complex;
use residua::assemble::to_csr;
use residua::generate::{self, RowLengths};
use residua::graph::{Adjacency, cuthill_mckee_order};
use residua::krylov::{Cg, Minres, MultiCg, Outcome, Refinement, SolveOptions};
use residua::look::Transposed;
use residua::matrix::Sell;
use residua::precondition::{Chebyshev, Identity, Jacobi, Narrowed, Preconditioner};
use residua::scalar::Promote;
use residua::solver::SolverBackend;
use residua::{Backend, Csr, Cuda, Error, Host, LinearOperator, Scalar, Triplets};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Iterations of each solve, which end in the middle of a launch of persistent iterations.
const ITERATIONS: usize = 3;

/// A diagonal that is not constant, so that Jacobi is more than a scalar factor.
fn uneven(k: usize) -> Csr<f64> {
    let mut a = poisson2d(k);
    let offsets: Vec<usize> = a.iter().enumerate().filter(|(_, (i, j, _))| i == j).map(|(k, _)| k).collect();
    offsets.iter().enumerate().for_each(|(i, &k)| a.values_mut()[k] = 4.0 + (i % 3) as f64);
    a
}

/// Norms of residuals.
fn history<T: Scalar, B: Device>(
    b: &B,
    a: &dyn LinearOperator<T, B>,
    m: &dyn Preconditioner<T, B>,
    iterations: usize,
) -> Vec<f64> {
    let n = a.rows();
    let right = (0..n).map(|i| T::from_f64(((i * 7919) % 1009) as f64 / 500.0 - 1.0)).collect();
    let (right, mut x) = (b.upload(right).unwrap(), b.zeros(n).unwrap());
    let options = SolveOptions::default().tolerance(1e-12).max_iterations(iterations);
    let mut cg = Cg::new(b, n, options).unwrap();
    let report = cg.solve(a, m, &right, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
    assert!(matches!(report.outcome, Outcome::IterationLimit | Outcome::Converged), "{report:?}");
    cg.into_history()
}

/// The residual norms of MINRES without a preconditioner.
fn history_of_minres<T: Scalar, B: Device>(
    b: &B,
    a: &dyn LinearOperator<T, B>,
    iterations: usize,
) -> Vec<f64> {
    let n = a.rows();
    let right = (0..n).map(|i| T::from_f64(((i * 7919) % 1009) as f64 / 500.0 - 1.0)).collect();
    let (right, mut x) = (b.upload(right).unwrap(), b.zeros(n).unwrap());
    let options = SolveOptions::default().tolerance(1e-12).max_iterations(iterations);
    let mut minres = Minres::new(b, n, options).unwrap();
    let _ = minres.solve(a, &Identity, &right, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
    minres.into_history()
}

fn alike(what: &str, there: &[f64], here: &[f64]) {
    assert_eq!(there.len(), here.len(), "{what}");
    for (there, here) in there.iter().zip(here) {
        assert!((there - here).abs() <= 1e-4 * here + 1e-12, "{what}: {there:e} for {here:e}");
    }
}

/// Iterations on the device compared with the host's: launched one by one, persistent, and persistent with a streamed
/// matrix.
fn every_way<V: Scalar + Promote<T>, T: Scalar>(b: &Cuda, what: &str, host: &Csr<V>) {
    let a = b.place(systems::csr_copy(host));
    let (jacobi, on_host) = (Jacobi::new(b, &a).unwrap(), Jacobi::new(&Host, host).unwrap());
    let here = history_of_minres::<T, _>(&Host, host, ITERATIONS);
    alike(what, &history_of_minres::<T, _>(b, &a, ITERATIONS), &here);
    for diagonal in [true, false] {
        let there: &dyn Preconditioner<T, Cuda> = if diagonal { &jacobi } else { &Identity };
        let here: &dyn Preconditioner<T, Host> = if diagonal { &on_host } else { &Identity };
        let here = history::<T, _>(&Host, host, here, ITERATIONS);
        alike(what, &history::<T, _>(b, &Stepwise(&a), there, ITERATIONS), &here);
        alike(what, &history::<T, _>(b, &a, there, ITERATIONS), &here);
        // Only if SELL can store this matrix in spite of padding.
        match Sell::with_chunks(b, &a, 32, 1) {
            Ok(sell) => alike(what, &history::<T, _>(b, &sell, there, ITERATIONS), &here),
            Err(error) => assert!(matches!(error, Error::Refused { .. }), "{error}"),
        }
    }
}

pub fn steps(b: &Cuda) {
    let a = uneven(30);
    let device = b.place(systems::csr_copy(&a));
    assert!(Transposed::of(b, &device).unwrap().is_symmetric());
    let lower = generate::random(700, 700, RowLengths::Constant(4), 1).unwrap();
    let (here, there) = (Transposed::of(&Host, &lower).unwrap(), Transposed::of(b, &b.place(lower)).unwrap());
    assert!(!here.is_symmetric());
    assert_eq!(here, there);
    let (x, right) = (vector::<f64>(900), vec![0.25; 900]);
    let (mut here, mut there) = (vec![0.0; 900], b.zeros(900).unwrap());
    a.accurate_residual(&Host, 2.0, &right, &x, &mut here).unwrap();
    let (x, right) = (b.upload(x).unwrap(), b.upload(right).unwrap());
    device.accurate_residual(b, 2.0, &right, &x, &mut there).unwrap();
    close(&b.download(&there).unwrap(), &here, 1e-14);
    let here = history::<f64, _>(&Host, &a, &Identity, ITERATIONS);
    alike("csr", &history::<f64, _>(b, &Stepwise(&device), &Identity, ITERATIONS), &here);
    for format in residua::matrix::formats::<f64, Cuda, f64>() {
        match format.build(b, &device) {
            Ok(stored) => {
                alike(format.name(), &history::<f64, _>(b, &*stored, &Identity, ITERATIONS), &here);
            }
            Err(error) => assert!(matches!(error, Error::Refused { .. }), "{error}"),
        }
    }
}

/// Several systems at once compared with the host's, with rows of similar and of very different lengths.
pub fn several(b: &Cuda) {
    fn histories<T: Scalar, B: Device>(b: &B, a: &Csr<T, B>, jacobi: bool, systems: usize) -> Vec<Vec<f64>> {
        let n = a.rows();
        let right = (0..n * systems).map(|i| T::from_f64(((i * 7919) % 1009) as f64 / 500.0 - 1.0)).collect();
        let (right, mut x) = (b.upload(right).unwrap(), b.zeros(n * systems).unwrap());
        let options = SolveOptions::default().tolerance(1e-12).max_iterations(ITERATIONS);
        let mut cg = MultiCg::new(b, n, systems, options).unwrap();
        let diagonal = Jacobi::new(b, a).unwrap();
        let m: &dyn Preconditioner<T, B> = if jacobi { &diagonal } else { &Identity };
        cg.solve(a, m, &right, &mut x, |_, _, _| ControlFlow::Continue(())).unwrap();
        (0..systems).map(|system| cg.history(system).to_vec()).collect()
    }
    fn beside<T: Scalar>(b: &Cuda, host: &Csr<T>, systems: usize, jacobi: bool) {
        let there = histories(b, &b.place(systems::csr_copy(host)), jacobi, systems);
        let here = histories(&Host, host, jacobi, systems);
        for (there, here) in there.iter().zip(&here) {
            alike(&format!("{systems} of {} unknowns", host.rows()), there, here);
        }
    }
    for (side, systems) in [(1, 2), (13, 3), (31, 8), (9, 32)] {
        [false, true].into_iter().for_each(|jacobi| beside(b, &uneven(side), systems, jacobi));
    }
    beside(b, &uneven(13).map(|v| v as f32), 4, true);
    beside(b, &uneven(13).map(|v| Complex::new(v, 0.0)), 3, true);
    beside(b, &uneven(13).map(|v| Complex::new(v as f32, 0.0)), 2, false);
    let arrow = systems::csr(700, |i| match i {
        0 => (0..700).map(|j| (j, if j == 0 { 900.0 } else { -1.0 })).collect(),
        i => vec![(0, -1.0), (i, 2.0 + (i % 3) as f64)],
    });
    beside(b, &arrow, 6, true);
}

/// Persistent iterations of a system that one block solves.
pub fn persistent(b: &Cuda) {
    for k in [1, 3, 20] {
        every_way::<f64, f64>(b, &format!("{k}^2 points"), &uneven(k));
    }
}

/// Clusters of both sizes; only one way and one solve each, because shared memory is large.
pub fn clusters(b: &Cuda) {
    for k in [55, 78] {
        println!("{k}^2 points");
        let host = uneven(k);
        let a = b.place(systems::csr_copy(&host));
        let (there, here) = (Jacobi::new(b, &a).unwrap(), Jacobi::new(&Host, &host).unwrap());
        let here = history::<f64, _>(&Host, &host, &here, ITERATIONS);
        alike("clusters", &history::<f64, _>(b, &a, &there, ITERATIONS), &here);
        let here = history_of_minres::<f64, _>(&Host, &host, ITERATIONS);
        alike("clusters, minres", &history_of_minres::<f64, _>(b, &a, ITERATIONS), &here);
    }
}

pub fn types(b: &Cuda) {
    let a = uneven(13);
    every_way::<f32, f64>(b, "f32 in f64", &a.map(|v| v as f32));
    every_way::<Complex<f32>, Complex<f32>>(b, "c32", &a.map(|v| Complex::new(v as f32, 0.0)));
}

/// All blocks of the chip synchronise through memory.
pub fn whole_chip(b: &Cuda) {
    every_way::<f64, f64>(b, "200^2 points", &uneven(200));
}

pub fn preconditioners(b: &Cuda) {
    let a = dominant::<f64>(97, 60, 0.0);
    block_case(b, &a, &[1, 32, 5, 2, 2, 30, 25]);
    block_case(b, &dominant::<Complex<f64>>(40, 20, 1.0), &[32, 8]);
    block_case::<f64, Cuda>(b, &vec![], &[]);
    natural_block_cases(b);
    row_inverse_cases(b);
    fsai_case(b, &dominant::<f64>(60, 8, 0.0));
    fsai_case(b, &dominant::<f64>(50, 80, 0.0));
    fsai_case(b, &dominant::<Complex<f64>>(30, 8, 1.0));
    fsai_case(b, &vec![vec![4.0_f64]]);

    fn chebyshev<B: SolverBackend>(b: &B, a: &Csr<f64>) -> Vec<f64> {
        let a = Arc::new(a.to_backend(b).unwrap());
        let diagonal = Arc::new(Jacobi::new(b, &a).unwrap());
        let m = Chebyshev::new(b, a.clone(), diagonal, 4).unwrap();
        let n = a.rows();
        let mut z = applied(b, &m, &vector(n));
        let low = a.to_rounded(b).unwrap();
        let diagonal = Arc::new(Jacobi::new(b, &low).unwrap());
        // A product that includes the step, if the backend has it.
        for format in ["compressed", "dia", "csr"] {
            let stored = residua::matrix::build::<f32, B, f32>(b, format, &low).unwrap();
            let m = Chebyshev::new(b, Arc::new(stored), diagonal.clone(), 4).unwrap();
            z.extend(applied(b, &Narrowed::new::<f64, B>(m).unwrap(), &vector::<f64>(n)));
        }
        z
    }
    // A grid, and one whose last line is incomplete.
    let grid = poisson(20);
    let ends = |k: &(usize, usize, f64)| k.0 < 390 && k.1 < 390;
    let mut cut = Triplets::new(400, 400).unwrap();
    grid.iter().filter(ends).for_each(|(i, j, v)| cut.push(i, j, v).unwrap());
    (390..400).for_each(|i| cut.push(i, i, 4.0).unwrap());
    let cut = to_csr(&Host, cut).unwrap();
    // From a million entries on, rows are streamed.
    let streamed = poisson(460);
    for a in [&grid, &cut, &streamed] {
        close(&chebyshev(b, a), &chebyshev(&Host, a), 1e-4);
    }

    let host = poisson(8);
    let a = host.to_backend(b).unwrap();
    let low = a.to_rounded(b).unwrap();
    let m = Jacobi::new(b, &low).unwrap();
    let mut solver = Refinement::new(b, 64, SolveOptions::default().tolerance(1e-12)).unwrap();
    let mut right = vec![0.0; 64];
    host.product(&Host, 1.0, &vector::<f64>(64), 0.0, &mut right).unwrap();
    let (right, mut x) = (b.upload(right).unwrap(), b.zeros(64).unwrap());
    let report = solver.solve(&a, &low, &m, &right, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.outcome, Outcome::Converged);
    close(&b.download(&x).unwrap(), &vector(64), 1e-9);
}

/// Operations of different kinds at once, with memory that is passed between streams.
pub fn streams(b: &Cuda) {
    let a = b.place(uneven(60));
    let grid = graph::graph(600, graph::grid_edges(30, 20));
    let expected = cuthill_mckee_order(&Host, Adjacency::new(&grid).unwrap().parts()).unwrap();
    let alone = history::<f64, _>(b, &a, &Identity, ITERATIONS);
    b.side_by_side(3, |thread, b| {
        for turn in 0..3 {
            match (thread + turn) % 3 {
                0 => assert!(history::<f64, _>(b, &a, &Identity, ITERATIONS) == alone),
                1 => {
                    let there = grid.to_backend(b)?;
                    let order = cuthill_mckee_order(b, Adjacency::on(b, &there)?.parts())?;
                    assert!(b.download(&*order)? == *expected);
                }
                _ => cases::with_sizes(&[4099], || cases::scan_cases(b)),
            }
        }
        Ok(())
    })
    .unwrap();
}
