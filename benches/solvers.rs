//! Whole solves by conjugate gradients, tolerance 1e-8, b = A * ones, from x = 0.
//!
//! `cargo bench --bench solvers [-- CASE...]`; the peers are `benches/peers/cg_scipy.py` and
//! `benches/peers/cg_petsc.py`, which print the same columns for the same cases. A case is `KxKxK` (7 points) or `KxK`
//! (5 points).

use residua::generate::{poisson2d, poisson3d};
use residua::krylov::{Cg, SolveOptions};
use residua::matrix::build as build_format;
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Backend, Csr, Host, LinearOperator};
use std::ops::ControlFlow;
use std::time::Instant;

/// Prints the fastest of a few solves, since other programs use the machine too.
fn measure(
    case: &str,
    what: &str,
    a: &(impl LinearOperator<f64, Host> + ?Sized),
    m: &impl Preconditioner<f64, Host>,
    b: &[f64],
) {
    let mut cg = Cg::new(&Host, b.len(), SolveOptions::default()).expect("memory");
    let mut x = vec![0.0; b.len()];
    let mut best = f64::INFINITY;
    let mut report = None;
    let begin = Instant::now();
    for _ in 0..1000 {
        x.fill(0.0);
        let start = Instant::now();
        let solved = cg.solve(a, m, b, &mut x, |_, _| ControlFlow::Continue(())).expect("sizes fit");
        best = best.min(start.elapsed().as_secs_f64());
        report = Some(solved);
        if begin.elapsed().as_secs_f64() > 1.0 {
            break;
        }
    }
    let report = report.expect("at least one solve");
    assert!(report.outcome.is_converged(), "{report:?}");
    let each = best / report.iterations as f64;
    println!(
        "{case:12} {what:16} {:5} iterations  {:9.3} ms  {:9.2} us/iteration  {:5.1} GB/s  residual {:.1e}",
        report.iterations,
        best * 1e3,
        each * 1e6,
        report.bytes_per_iteration as f64 / each * 1e-9,
        report.relative_residual,
    );
}

fn build(case: &str) -> Csr<f64> {
    let size: Vec<usize> = case.split('x').filter_map(|k| k.parse().ok()).collect();
    match size[..] {
        [x, y, z] => poisson3d(x, y, z),
        [x, y] => poisson2d(x, y),
        _ => panic!("{case}: a case is KxK or KxKxK"),
    }
    .expect("memory")
}

fn main() {
    let cases: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let cases = if cases.is_empty() {
        ["128x128x128", "512x512", "64x64x64", "100x100"].map(String::from).to_vec()
    } else {
        cases
    };
    println!("{}", Host.description());
    for case in cases {
        let a = build(&case);
        let mut b = vec![0.0; a.rows()];
        a.product(&Host, 1.0, &vec![1.0; a.rows()], 0.0, &mut b).expect("sizes fit");
        measure(&case, "csr", &a, &Identity, &b);
        let jacobi = Jacobi::new(&Host, &a).expect("positive diagonal");
        measure(&case, "csr + jacobi", &a, &jacobi, &b);
        if let Some(narrow) = a.to_lower() {
            measure(&case, "csr, f32 values", &narrow, &Identity, &b);
            measure(&case, "the same, jacobi", &narrow, &jacobi, &b);
        }
        let sell = build_format::<f64, Host, f64>(&Host, "sell", &a).expect("memory");
        measure(&case, "sell", &*sell, &Identity, &b);
    }
}
