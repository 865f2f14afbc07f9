//! Krylov methods and formats over 1, 2, 3 and 7 ranks.

use crate::{N, on_parts, random, ring};
use residua::backend::{Communicator, Parts, Space};
use residua::generate::{self, Random};
use residua::krylov::{
    BiConjugateGradients, ConjugateGradients, FlexibleMinimalResidual, Krylov, LeastSquaresResidual, Method,
    MinimalResidual, Outcome, Report, SolveOptions,
};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::solver::{self, PreconditionerChoice, Solver};
use residua::spread::{Spread, even_parts};
use residua::{Csr, Host, Result};
use std::ops::ControlFlow;

/// x and the reports of all ranks.
fn solve<M: Method<f64, Host, Parts>>(
    a: &Csr<f64>,
    b: &[f64],
    parts: usize,
    jacobi: bool,
    method: impl Fn(usize) -> Result<M> + Sync,
) -> (Vec<f64>, Vec<Report>) {
    let rows = even_parts(N, parts);
    let solved: Vec<(Vec<f64>, Report)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(parts)
            .into_iter()
            .map(|part| {
                let (rows, method) = (rows.clone(), &method);
                scope.spawn(move || {
                    let own = rows[Communicator::<Host>::part(&part)].clone();
                    let spread = Spread::new(&Host, part.clone(), a, &rows)?;
                    let space = Space::spread(Host, part);
                    let mut solver = Krylov::with_method(space, method(own.len())?, SolveOptions::default())?;
                    // Jacobi for the rows of this rank, made from a matrix that has only their diagonal.
                    let diagonal =
                        own.clone().map(|i| a.row(i).1[a.row(i).0.binary_search(&(i as u32)).unwrap()]);
                    let n = own.len();
                    let part = Csr::from_parts(
                        n,
                        n,
                        (0..=n).collect(),
                        (0..n as u32).collect(),
                        diagonal.collect(),
                    )?;
                    let scaled = Jacobi::new(&Host, &part)?;
                    let m: &dyn Preconditioner<f64, Host> = if jacobi { &scaled } else { &Identity };
                    let mut x = vec![0.0; n];
                    let report =
                        solver.solve(&spread, m, &b[own], &mut x, |_, _| ControlFlow::Continue(()))?;
                    Ok((x, report))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
    });
    let reports = solved.iter().map(|(_, report)| *report).collect();
    (solved.into_iter().flat_map(|(x, _)| x).collect(), reports)
}

fn same_on_all_parts<M: Method<f64, Host, Parts>>(
    name: &str,
    a: &Csr<f64>,
    method: impl Fn(usize) -> Result<M> + Sync,
) {
    let solution = random(3);
    let mut b = vec![0.0; N];
    a.product(&Host, 1.0, &solution, 0.0, &mut b).unwrap();
    for jacobi in [false, true] {
        let mut iterations = None;
        for parts in [1, 2, 3, 7] {
            let (x, reports) = solve(a, &b, parts, jacobi, &method);
            let told = |r: &Report| (r.outcome, r.iterations, r.residual_norm.to_bits());
            assert!(
                reports.iter().all(|r| told(r) == told(&reports[0])),
                "{name}, {parts} parts: {reports:?}"
            );
            assert_eq!(reports[0].outcome, Outcome::Converged, "{name}, {parts} parts: {:?}", reports[0]);
            let wrong = x.iter().zip(&solution).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(wrong < 1e-7, "{name}, {parts} parts: {wrong:e}");
            let first = *iterations.get_or_insert(reports[0].iterations);
            assert!(reports[0].iterations.abs_diff(first) <= 2, "{name}: {first} {:?}", reports[0]);
            assert_eq!(solve(a, &b, parts, jacobi, &method).0, x, "{name}, {parts} parts: other bits");
        }
    }
}

#[test]
fn conjugate_gradients() {
    same_on_all_parts("cg", &ring(-1.0, -1.0), |n| ConjugateGradients::new(&Host, n));
}

#[test]
fn minres() {
    same_on_all_parts("minres", &ring(-1.1, -1.1), |n| MinimalResidual::new(&Host, n));
}

#[test]
fn gmres() {
    // Every rank restarts after the same number of iterations.
    same_on_all_parts("gmres", &ring(-0.4, -1.1), |n| FlexibleMinimalResidual::new(&Host, n, 10));
}

#[test]
fn bicgstab() {
    same_on_all_parts("bicgstab", &ring(-0.4, -1.1), |n| BiConjugateGradients::new(&Host, n));
}

#[test]
fn lsmr() {
    same_on_all_parts("lsmr", &ring(-0.4, -1.1), |n| LeastSquaresResidual::new(&Host, n, n));
}

#[test]
fn negative_definite() {
    let a = ring(-1.0, -1.0).map(|value| -value);
    let b = random(4);
    let wishes = Solver::builder().method(solver::Method::Cg).all_parts(true).tolerance(1e-10);
    for parts in [1, 2, 3] {
        let (x, report) = on_parts(&a, &b, parts, &wishes);
        assert_eq!(report.method, solver::Method::Cg);
        assert!(format!("{:?}", report.trail.decisions).contains("the diagonal is negative"));
        let residual: f64 = (&a * &x).iter().zip(&b).map(|(ax, b)| (ax - b).powi(2)).sum::<f64>().sqrt();
        assert!(
            residual <= 1e-9 * b.iter().map(|b| b * b).sum::<f64>().sqrt(),
            "{parts} parts: {residual:e}"
        );
    }
}

/// Products with a large stencil use another format than CSR, with the same bits in each run, and close to those of
/// CSR.
#[test]
fn the_format_that_the_model_takes_gives_the_same_bits_in_each_run() {
    let a = generate::poisson2d(220, 200).unwrap();
    let mut random = Random::new(7);
    let b: Vec<f64> = (0..a.rows()).map(|_| random.unit() - 0.5).collect();
    let wishes = Solver::<f64>::builder()
        .method(solver::Method::Cg)
        .preconditioner(PreconditionerChoice::Jacobi)
        .reorder(solver::Reorder::None)
        .tolerance(1e-11);
    let (x, report) = on_parts(&a, &b, 2, &wishes);
    let format = report.trail.decisions.iter().find(|decision| decision.subject == "format").unwrap();
    assert!(format.chosen != "csr", "{}", format.why);
    let (again, _) = on_parts(&a, &b, 2, &wishes);
    assert!(x.iter().zip(&again).all(|(x, y)| x.to_bits() == y.to_bits()));
    let (plain, report) = on_parts(&a, &b, 2, &wishes.clone().format("csr"));
    assert!(report.trail.decisions.iter().any(|d| d.subject == "format" && d.chosen == "csr"));
    let largest = plain.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    assert!(x.iter().zip(&plain).all(|(x, y)| (x - y).abs() < 1e-8 * largest));
}
