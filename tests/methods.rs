//! The Krylov methods on small systems with known answers, and on the matrices of the test collection (skipped, and
//! said so, where that is not there).

#[path = "common/collection.rs"]
mod collection;

use num_complex::Complex;
use residua::generate::Random;
use residua::krylov::{BiCgStab, Cg, Gmres, Lsmr, Minres, Outcome, Report, SolveOptions};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::scalar::Scalar;
use residua::{Csr, Host};
use std::ops::ControlFlow;

type Watch = fn(usize, f64) -> ControlFlow<()>;
const WATCH: Watch = |_, _| ControlFlow::Continue(());

fn dense<T: Scalar>(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> T) -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..rows {
        for j in 0..columns {
            let value = entry(i, j);
            if value != T::zero() {
                indices.push(j as u32);
                values.push(value);
            }
        }
        offsets.push(values.len());
    }
    Csr::from_parts(rows, columns, offsets, indices, values).unwrap()
}

fn product<T: Scalar>(a: &Csr<T>, x: &[T]) -> Vec<T> {
    let mut y = vec![T::zero(); a.rows()];
    a.product(&Host, T::one(), x, T::zero(), &mut y).unwrap();
    y
}

fn norm<T: Scalar<Real = f64>>(x: &[T]) -> f64 {
    x.iter().map(|x| x.abs2()).sum::<f64>().sqrt()
}

fn residual<T: Scalar<Real = f64>>(a: &Csr<T>, b: &[T], x: &[T]) -> Vec<T> {
    product(a, x).iter().zip(b).map(|(y, b)| *b - *y).collect()
}

/// A second difference in one dimension, shifted so that it is indefinite.
fn shifted(n: usize, shift: f64) -> Csr<f64> {
    dense(n, n, |i, j| match i.abs_diff(j) {
        0 => 2.0 - shift,
        1 => -1.0,
        _ => 0.0,
    })
}

fn convection(n: usize) -> Csr<f64> {
    dense(n, n, |i, j| match (i as isize) - (j as isize) {
        0 => 3.0,
        1 => -2.0,
        -1 => -0.5,
        _ => 0.0,
    })
}

fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.unit() - 0.5).collect()
}

fn check(what: &str, a: &Csr<f64>, b: &[f64], x: &[f64], report: &Report) {
    assert_eq!(report.outcome, Outcome::Converged, "{what}: {report:?}");
    let r = norm(&residual(a, b, x)) / norm(b);
    assert!(r <= 1.000_001e-8, "{what}: {r:e} {report:?}");
}

fn with_all(what: &str, a: &Csr<f64>, m: &dyn Preconditioner<f64, Host>, hermitian: bool) {
    let n = a.rows();
    let b = product(a, &random(n, 7));
    let options = || SolveOptions::default();
    if hermitian {
        let mut x = vec![0.0; n];
        let report = Minres::new(&Host, n, options()).unwrap().solve(a, m, &b, &mut x, WATCH).unwrap();
        check(&format!("{what}, minres"), a, &b, &x, &report);
    }
    let mut x = vec![0.0; n];
    let report = Gmres::new(&Host, n, 30, options()).unwrap().solve(a, m, &b, &mut x, WATCH).unwrap();
    check(&format!("{what}, gmres"), a, &b, &x, &report);
    let mut x = vec![0.0; n];
    let report = BiCgStab::new(&Host, n, options()).unwrap().solve(a, m, &b, &mut x, WATCH).unwrap();
    check(&format!("{what}, bicgstab"), a, &b, &x, &report);
    let mut x = vec![0.0; n];
    let report = Lsmr::new(&Host, n, n, options()).unwrap().solve(a, m, &b, &mut x, WATCH).unwrap();
    check(&format!("{what}, lsmr"), a, &b, &x, &report);
}

#[test]
fn every_method_solves_what_it_is_for() {
    for n in [1, 2, 3, 10, 57] {
        with_all(&format!("definite {n}"), &shifted(n, 0.0), &Identity, true);
        with_all(&format!("unsymmetric {n}"), &convection(n), &Identity, false);
    }
    let a = shifted(57, 0.3);
    let b = product(&a, &random(57, 3));
    let mut x = vec![0.0; 57];
    let mut minres = Minres::new(&Host, 57, SolveOptions::default()).unwrap();
    let report = minres.solve(&a, &Identity, &b, &mut x, WATCH).unwrap();
    check("indefinite", &a, &b, &x, &report);
    let mut cg = Cg::new(&Host, 57, SolveOptions::default()).unwrap();
    let report = cg.solve(&a, &Identity, &b, &mut vec![0.0; 57], WATCH).unwrap();
    assert!(matches!(report.outcome, Outcome::NotPositiveDefinite { .. }), "{report:?}");
}

#[test]
fn preconditioners_go_with_every_method() {
    let n = 80;
    let a = dense(n, n, |i, j| match i.abs_diff(j) {
        0 => 3.0 * (1.0 + i as f64).powi(2),
        1 => -(1.0 + i.min(j) as f64),
        _ => 0.0,
    });
    let jacobi = Jacobi::new(&Host, &a).unwrap();
    with_all("graded", &a, &jacobi, true);
    let (b, mut x) = (product(&a, &random(n, 1)), vec![0.0; n]);
    let mut minres = Minres::new(&Host, n, SolveOptions::default()).unwrap();
    let with = minres.solve(&a, &jacobi, &b, &mut x, WATCH).unwrap().iterations;
    x.fill(0.0);
    let without = minres.solve(&a, &Identity, &b, &mut x, WATCH).unwrap().iterations;
    assert!(2 * with < without, "{with} {without}");
}

#[test]
fn complex_systems_are_solved() {
    let n = 40;
    let c = Complex::new;
    let hermitian = dense(n, n, |i, j| match (i as isize) - (j as isize) {
        0 => c(if i % 3 == 0 { -2.0 } else { 3.0 }, 0.0),
        1 => c(0.5, 0.7),
        -1 => c(0.5, -0.7),
        _ => c(0.0, 0.0),
    });
    let general = dense(n, n, |i, j| match (i as isize) - (j as isize) {
        0 => c(4.0, 1.0),
        1 => c(0.5, 0.7),
        -2 => c(-1.0, 0.3),
        _ => c(0.0, 0.0),
    });
    let solution: Vec<_> = random(n, 5).iter().zip(random(n, 6)).map(|(&re, im)| c(re, im)).collect();
    let check =
        |what: &str, a: &Csr<Complex<f64>>, b: &[Complex<f64>], x: &[Complex<f64>], report: Report| {
            assert_eq!(report.outcome, Outcome::Converged, "{what}: {report:?}");
            assert!(norm(&residual(a, b, x)) <= 1.000_001e-8 * norm(b), "{what}: {report:?}");
        };
    let b = product(&hermitian, &solution);
    let mut x = vec![c(0.0, 0.0); n];
    let mut minres = Minres::new(&Host, n, SolveOptions::default()).unwrap();
    let report = minres.solve(&hermitian, &Identity, &b, &mut x, WATCH).unwrap();
    check("minres", &hermitian, &b, &x, report);
    let b = product(&general, &solution);
    x.fill(c(0.0, 0.0));
    let report = Gmres::new(&Host, n, 10, SolveOptions::default())
        .unwrap()
        .solve(&general, &Identity, &b, &mut x, WATCH);
    check("gmres", &general, &b, &x, report.unwrap());
    x.fill(c(0.0, 0.0));
    let report = BiCgStab::new(&Host, n, SolveOptions::default())
        .unwrap()
        .solve(&general, &Identity, &b, &mut x, WATCH);
    check("bicgstab", &general, &b, &x, report.unwrap());
    x.fill(c(0.0, 0.0));
    let report = Lsmr::new(&Host, n, n, SolveOptions::default())
        .unwrap()
        .solve(&general, &Identity, &b, &mut x, WATCH);
    check("lsmr", &general, &b, &x, report.unwrap());
}

#[test]
fn least_squares_solutions_are_called_by_their_name() {
    // Overdetermined and inconsistent.
    let a =
        dense(30, 12, |i, j| if (i + 2 * j) % 5 == 0 { 1.0 + j as f64 } else { 0.1 * ((i * j) % 7) as f64 });
    let b = random(30, 2);
    let mut x = vec![0.0; 12];
    let report = Lsmr::new(&Host, 30, 12, SolveOptions::default())
        .unwrap()
        .solve(&a, &Identity, &b, &mut x, WATCH)
        .unwrap();
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report:?}");
    let r = residual(&a, &b, &x);
    let mut gradient = vec![0.0; 12];
    a.product_op(&Host, residua::backend::Op::Transpose, 1.0, &r, 0.0, &mut gradient).unwrap();
    assert!(norm(&gradient) <= 1e-8 * norm(&r), "{:e}", norm(&gradient));
    // Underdetermined: the solution of least norm lies in the range of A^T.
    let a = dense(2, 3, |i, j| [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]][i][j]);
    let mut x = vec![0.0; 3];
    let report = Lsmr::new(&Host, 2, 3, SolveOptions::default())
        .unwrap()
        .solve(&a, &Identity, &[1.0, 2.0], &mut x, WATCH)
        .unwrap();
    assert_eq!(report.outcome, Outcome::Converged);
    assert!(x.iter().zip([0.0, 1.0, 1.0]).all(|(x, y): (&f64, f64)| (x - y).abs() < 1e-7), "{x:?}");
    // A singular system that is consistent: constants are in the null space.
    let n = 20;
    let a = dense(n, n, |i, j| match i.abs_diff(j) {
        0 => {
            if i == 0 || i == n - 1 {
                1.0
            } else {
                2.0
            }
        }
        1 => -1.0,
        _ => 0.0,
    });
    let b = product(&a, &random(n, 9));
    let mut x = vec![0.0; n];
    let report = Minres::new(&Host, n, SolveOptions::default())
        .unwrap()
        .solve(&a, &Identity, &b, &mut x, WATCH)
        .unwrap();
    check("singular, minres", &a, &b, &x, &report);
}

#[test]
fn sizes_and_options_are_checked() {
    assert!(Gmres::<f64, Host>::new(&Host, 3, 0, SolveOptions::default()).is_err());
    let a = shifted(3, 0.0);
    let mut lsmr = Lsmr::new(&Host, 4, 3, SolveOptions::default()).unwrap();
    assert!(lsmr.solve(&a, &Identity, &[1.0; 4], &mut [0.0; 3], WATCH).is_err());
    let mut minres = Minres::new(&Host, 3, SolveOptions::default()).unwrap();
    let mut x = vec![5.0; 3];
    let report = minres.solve(&a, &Identity, &[0.0; 3], &mut x, WATCH).unwrap();
    assert!(report.outcome.is_converged() && x == [0.0; 3]);
    let report = minres.solve(&a, &Identity, &[f64::NAN, 0.0, 0.0], &mut x, WATCH).unwrap();
    assert_eq!(report.outcome, Outcome::NotFinite);
}
