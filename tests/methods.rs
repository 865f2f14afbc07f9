//! The Krylov methods on small systems with known answers, on every backend.

#[macro_use]
#[path = "common/systems.rs"]
mod systems;

use num_complex::Complex;
use residua::generate::Random;
use residua::krylov::{BiCgStab, Cg, Gmres, Lsmr, Minres, Outcome, Report, SolveOptions};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Csr, Host, Result, Scalar};
use std::ops::ControlFlow;
use systems::*;

/// The methods for square systems, and least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    Minres,
    Gmres(usize),
    BiCgStab,
    Lsmr,
}
use Method::{BiCgStab as Stab, Gmres as Restarted, Lsmr as Least, Minres as Minimal};

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

/// Entries between -1/2 and 1/2.
fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.unit() - 0.5).collect()
}

/// A second difference in one dimension, shifted: indefinite if the shift is between its eigenvalues.
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

/// The diagonal of a matrix whose rows differ in size by orders of magnitude, and its neighbours.
fn graded(n: usize) -> Csr<f64> {
    dense(n, n, |i, j| match i.abs_diff(j) {
        0 => 3.0 * (1.0 + i as f64).powi(2),
        1 => -(1.0 + i.min(j) as f64),
        _ => 0.0,
    })
}

/// x and the report of a method, from zero.
fn solve<T: Scalar, B: Device>(
    backend: &B,
    method: Method,
    a: &Csr<T>,
    m: &dyn Preconditioner<T, B>,
    b: &[T],
) -> Result<(Vec<T>, Report)> {
    let watch = |_: usize, _: f64| ControlFlow::Continue(());
    let ((rows, columns), options) = ((a.rows(), a.columns()), SolveOptions::default());
    let device = a.to_backend(backend)?;
    let b = backend.upload(b.to_vec())?;
    let mut x = backend.zeros(columns)?;
    let report = match method {
        Minimal => Minres::new(backend, rows, options)?.solve(&device, m, &b, &mut x, watch)?,
        Restarted(m_) => Gmres::new(backend, rows, m_, options)?.solve(&device, m, &b, &mut x, watch)?,
        Stab => BiCgStab::new(backend, rows, options)?.solve(&device, m, &b, &mut x, watch)?,
        Least => Lsmr::new(backend, rows, columns, options)?.solve(&device, m, &b, &mut x, watch)?,
    };
    Ok((backend.download(&x)?, report))
}

/// Solves for a random solution, and checks the residual here.
fn check<T: Scalar<Real = f64>, B: Device>(
    backend: &B,
    method: Method,
    a: &Csr<T>,
    m: &dyn Preconditioner<T, B>,
    b: &[T],
) -> Result<usize> {
    let (x, report) = solve(backend, method, a, m, b)?;
    assert_eq!(report.outcome, Outcome::Converged, "{method:?}, {} unknowns: {report:?}", a.rows());
    let r = norm(&residual(a, b, &x)) / norm(b);
    assert!(r <= 1.000_001e-8, "{method:?}: {r:e} {report:?}");
    Ok(report.iterations)
}

fn every_method_solves_what_it_is_for<B: Device>(backend: &B) -> Result<()> {
    for n in [1, 2, 3, 10, 57, 300] {
        let definite = shifted(n, 0.0);
        let b = product(&definite, &random(n, 7));
        for method in [Minimal, Restarted(30), Stab, Least] {
            check(backend, method, &definite, &Identity, &b)?;
        }
        let unsymmetric = convection(n);
        let b = product(&unsymmetric, &random(n, 8));
        for method in [Restarted(30), Restarted(7), Stab, Least] {
            check(backend, method, &unsymmetric, &Identity, &b)?;
        }
    }
    Ok(())
}

fn indefinite_systems_are_for_minres<B: Device>(backend: &B) -> Result<()> {
    let a = shifted(57, 0.3);
    let b = product(&a, &random(57, 3));
    check(backend, Minimal, &a, &Identity, &b)?;
    let device = a.to_backend(backend)?;
    let (b, mut x) = (backend.upload(b)?, backend.zeros(57)?);
    let mut cg = Cg::new(backend, 57, SolveOptions::default())?;
    let report = cg.solve(&device, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    assert!(matches!(report.outcome, Outcome::NotPositiveDefinite { .. }), "{report:?}");
    Ok(())
}

fn preconditioners_go_with_every_method<B: Device>(backend: &B) -> Result<()> {
    let n = 80;
    let a = graded(n);
    let b = product(&a, &random(n, 1));
    let jacobi = Jacobi::new(backend, &a.to_backend(backend)?)?;
    for method in [Minimal, Restarted(30), Stab, Least] {
        let with = check(backend, method, &a, &jacobi, &b)?;
        let (_, without) = solve(backend, method, &a, &Identity, &b)?;
        assert!(with < without.iterations, "{method:?}: {with} {without:?}");
    }
    Ok(())
}

fn complex_systems_are_solved<B: Device>(backend: &B) -> Result<()> {
    let (n, c) = (40, Complex::new);
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
    check(backend, Minimal, &hermitian, &Identity, &product(&hermitian, &solution))?;
    for method in [Restarted(10), Stab, Least] {
        check(backend, method, &general, &Identity, &product(&general, &solution))?;
    }
    Ok(())
}

/// Each method meets the default tolerance of single precision.
fn single_precision<B: Device>(backend: &B) -> Result<()> {
    let a = dense(50, 50, |i, j| match (i as isize) - (j as isize) {
        0 => 3.0_f32,
        1 | -1 => -1.0,
        _ => 0.0,
    });
    let b: Vec<f32> = random(50, 4).iter().map(|&x| x as f32).collect();
    for method in [Minimal, Restarted(10), Stab, Least] {
        let (_, report) = solve(backend, method, &a, &Identity, &b)?;
        assert!(report.outcome.is_converged() && report.relative_residual <= 1e-5, "{method:?}: {report:?}");
    }
    Ok(())
}

fn least_squares_solutions_are_called_by_their_name<B: Device>(backend: &B) -> Result<()> {
    // Overdetermined and inconsistent.
    let entry = |i: usize, j: usize| {
        if (i + 2 * j).is_multiple_of(5) { 1.0 + j as f64 } else { 0.1 * ((i * j) % 7) as f64 }
    };
    let a = dense(30, 12, entry);
    let b = random(30, 2);
    let (x, report) = solve(backend, Least, &a, &Identity, &b)?;
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report:?}");
    let r = residual(&a, &b, &x);
    let gradient = product(&a.transpose(&Host)?, &r);
    let bound = 1e-10 * norm(a.parts().values) * norm(&r);
    assert!(norm(&gradient) <= bound, "{:e} {bound:e}", norm(&gradient));
    // Underdetermined: the solution of least norm is in the range of A^T.
    let a = dense(2, 3, |i, j| [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]][i][j]);
    let (x, report) = solve(backend, Least, &a, &Identity, &[1.0, 2.0])?;
    assert_eq!(report.outcome, Outcome::Converged);
    assert!(x.iter().zip([0.0, 1.0, 1.0]).all(|(x, y): (&f64, f64)| (x - y).abs() < 1e-7), "{x:?}");
    // b with no part in the range of A: zero is the least-squares solution.
    let a = dense(2, 1, |i, _| if i == 0 { 1.0 } else { 0.0 });
    let (x, report) = solve(backend, Least, &a, &Identity, &[0.0, 1.0])?;
    assert_eq!((report.outcome, x), (Outcome::LeastSquares, vec![0.0]));
    Ok(())
}

/// Constants are in the null space, and b is in the range.
fn singular_and_consistent_systems<B: Device>(backend: &B) -> Result<()> {
    let n = 20;
    let a = dense(n, n, |i, j| match i.abs_diff(j) {
        0 if i == 0 || i == n - 1 => 1.0,
        0 => 2.0,
        1 => -1.0,
        _ => 0.0,
    });
    let b = product(&a, &random(n, 9));
    check(backend, Minimal, &a, &Identity, &b)?;
    check(backend, Least, &a, &Identity, &b)?;
    Ok(())
}

fn sizes_and_options_are_checked<B: Device>(backend: &B) -> Result<()> {
    assert!(Gmres::<f64, B>::new(backend, 3, 0, SolveOptions::default()).is_err());
    assert!(Minres::<f64, B>::new(backend, 3, SolveOptions::default().tolerance(-1.0)).is_err());
    let (x, report) = solve(backend, Minimal, &shifted(3, 0.0), &Identity, &[0.0; 3])?;
    assert!(report.outcome.is_converged() && x == [0.0; 3]);
    for method in [Minimal, Restarted(2), Stab, Least] {
        let (_, report) = solve(backend, method, &shifted(3, 0.0), &Identity, &[f64::NAN, 0.0, 0.0])?;
        assert_eq!(report.outcome, Outcome::NotFinite, "{method:?}");
    }
    let device = shifted(3, 0.0).to_backend(backend)?;
    let (b, mut x) = (backend.zeros(4)?, backend.zeros(3)?);
    let mut lsmr = Lsmr::<f64, B>::new(backend, 4, 3, SolveOptions::default())?;
    assert!(lsmr.solve(&device, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(())).is_err());
    Ok(())
}

on_every_backend! {
    every_method_solves_what_it_is_for,
    indefinite_systems_are_for_minres,
    preconditioners_go_with_every_method,
    complex_systems_are_solved,
    single_precision,
    least_squares_solutions_are_called_by_their_name,
    singular_and_consistent_systems,
    sizes_and_options_are_checked,
}
