//! Claims beside the outcome: condition numbers of singular matrices, "no x solves the system" for systems that have a
//! solution, and "symmetric" for matrices in uneven units.

use crate::random::Random;
use num_complex::Complex;
use residua::krylov::Outcome;
use residua::look::Transposed;
use residua::prelude::*;
use residua::solver::Solvable;
use residua::{Csr, Host, Scalar};

/// A condition number of a singular matrix that is at least this says that no digit can be trusted.
const HOPELESS: f64 = 1e15;

fn csr<T: Scalar>(rows: &[Vec<T>]) -> Csr<T> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        for (j, &value) in (0..).zip(row).filter(|(_, value)| **value != T::default()) {
            columns.push(j);
            values.push(value);
        }
        offsets.push(values.len());
    }
    Csr::from_parts(rows.len(), rows.first().map_or(0, Vec::len), offsets, columns, values).unwrap()
}

fn product<T: Scalar>(rows: &[Vec<T>], x: &[T]) -> Vec<T> {
    rows.iter().map(|row| row.iter().zip(x).fold(T::default(), |sum, (&a, &x)| sum + a * x)).collect()
}

/// An integer between -4 and 4, or a Gaussian one.
fn integer<T: Scalar>(random: &mut Random) -> T {
    let mut part = || random.below(9) as f64 - 4.0;
    let (re, im) = (part(), part());
    T::from_parts(re, if T::COMPLEX { im } else { 0.0 }).unwrap()
}

/// B^T B for B with fewer rows than columns, small numbers without rounding; symmetric and singular.
fn deficient<T: Scalar>(random: &mut Random, n: usize) -> Vec<Vec<T>> {
    let rank = n - 1 - random.below(n.min(3));
    let b: Vec<Vec<T>> = (0..rank).map(|_| random.vec(n, integer)).collect();
    let entry = |i: usize, j: usize| b.iter().fold(T::default(), |sum, row| sum + row[i] * row[j]);
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

/// A path of an odd number of points with zeros on the diagonal: singular, and no pivot of one row is there.
fn path(n: usize) -> Vec<Vec<f64>> {
    (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i.abs_diff(j) == 1))).collect()).collect()
}

/// [[D, c, c], [c^T, 0, 0], [c^T, 0, 0]]: a constraint that is stated twice.
fn constraint_twice(random: &mut Random, n: usize) -> Vec<Vec<f64>> {
    let weights: Vec<(f64, f64)> =
        random.vec(n, |random| (1.0 + random.below(3) as f64, 1.0 + random.below(2) as f64));
    let entry = |i: usize, j: usize| match (i < n, j < n) {
        (true, true) if i == j => weights[i].0,
        (true, false) => weights[i].1,
        (false, true) => weights[j].1,
        _ => 0.0,
    };
    (0..n + 2).map(|i| (0..n + 2).map(|j| entry(i, j)).collect()).collect()
}

/// Solves a system of a singular matrix that has a solution, and checks the claims about its condition.
fn look_at_singular<T: Solvable>(name: &str, rows: &[Vec<T>], random: &mut Random) {
    let (a, x) = (csr(rows), random.vec(rows.len(), integer::<T>));
    let b = product(rows, &x);
    for method in [Method::Auto, Method::Direct] {
        let mut solver = Solver::builder().method(method).condition(true).build(&a).unwrap();
        let report = solver.solve(&b).unwrap().report;
        let what = format!("{name} by {method}: {report:?}");
        assert!(report.condition.is_none_or(|condition| condition >= HOPELESS), "{what}");
        assert!(report.digits.is_none_or(|digits| digits < 1.0), "{what}");
        if report.outcome.is_converged() && report.method == Method::Direct {
            let known = report.singularity.is_some() || report.condition.is_some();
            assert!(known || b.iter().all(|b| *b == T::default()), "nothing says that A is singular: {what}");
        }
    }
}

#[test]
fn singular_matrices_get_no_condition_number_of_another_matrix() {
    let mut random = Random(83);
    for n in [3, 5, 9, 21, 45] {
        look_at_singular("path", &path(n), &mut random);
        let twice = constraint_twice(&mut random, n);
        look_at_singular("constraint twice", &twice, &mut random);
    }
    let mut with_zeros = path(8);
    for at in [0, 2] {
        (0..8).for_each(|k| (with_zeros[at][k], with_zeros[k][at]) = (0.0, 0.0));
    }
    look_at_singular("rows of zeros", &with_zeros, &mut random);
    for n in [2, 3, 4, 6, 9, 14, 25] {
        for _ in 0..4 {
            look_at_singular("deficient", &deficient::<f64>(&mut random, n), &mut random);
            look_at_singular("complex symmetric", &deficient::<Complex<f64>>(&mut random, n), &mut random);
        }
    }
}

#[test]
fn a_singular_matrix_is_not_called_ill_conditioned_if_nothing_was_proved() {
    let mut random = Random(89);
    for n in [3, 6, 10, 14, 20] {
        for _ in 0..6 {
            let rows = deficient::<Complex<f64>>(&mut random, n);
            let b = random.vec(n, integer);
            let report = residua::solve(&csr(&rows), &b).unwrap().report;
            // b is in the range of a random singular matrix by chance alone, or if it is tiny.
            let allowed =
                matches!(report.outcome, Outcome::LeastSquares | Outcome::Singular | Outcome::Converged);
            assert!(allowed, "{n}: {report:?}");
        }
    }
}

#[test]
fn a_system_that_has_a_solution_is_not_said_to_have_none() {
    let mut random = Random(97);
    for trial in 0..60 {
        let (m, n) = (2 + random.below(12), 3 + random.below(20));
        let decades = [0, 20, 40, 80][trial % 4];
        let mut scales = |count: usize| {
            random.vec(count, |random| 2_f64.powi(random.below(2 * decades + 1) as i32 - decades as i32))
        };
        let (of_rows, of_columns) = (scales(m), scales(n));
        let integers: Vec<Vec<f64>> = (0..m).map(|_| random.vec(n, integer)).collect();
        // b is exact: sums of small integers in the units of the rows.
        let whole = random.vec(n, integer::<f64>);
        let b: Vec<f64> = product(&integers, &whole).iter().zip(&of_rows).map(|(b, r)| b * r).collect();
        let scaled =
            |(row, r): (&Vec<f64>, &f64)| row.iter().zip(&of_columns).map(|(a, c)| a * r * c).collect();
        let rows: Vec<Vec<f64>> = integers.iter().zip(&of_rows).map(scaled).collect();
        let report = residua::solve(&csr(&rows), &b).unwrap().report;
        assert!(report.outcome != Outcome::LeastSquares, "{m} x {n}, {decades}: {report:?}");
    }
    // [[1, 1e12, 0], [0, 1e-3, 1]] x = (1, 1)
    let rows = [vec![1.0, 1e12, 0.0], vec![0.0, 1e-3, 1.0]];
    let report = residua::solve(&csr(&rows), &[1.0, 1.0]).unwrap().report;
    assert!(report.outcome.is_converged(), "{report:?}");
}

#[test]
fn asymmetry_in_rows_of_small_units_is_seen() {
    let rows = [vec![8192.0, -4096.0, -4096.0], vec![0.0, 2.7e11, -1.4e11], vec![0.0, 0.0, 2.4e24]];
    let found = Transposed::of(&Host, &csr(&rows)).unwrap();
    assert!(!found.is_symmetric() && !found.is_hermitian(), "{found:?}");
    let rounded = [vec![2.0, -1.0], vec![-1.0 - 1e-15, 2e6]];
    assert!(Transposed::of(&Host, &csr(&rounded)).unwrap().is_symmetric());
}
