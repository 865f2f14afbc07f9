//! Solvers of A^T, and solves with existing factors.

use crate::systems::*;
use crate::{noise, shuffled, uneven};
use num_complex::Complex;
use residua::prelude::*;
use residua::solver::{Reorder, RightHandSides, SolverBackend};

/// A matrix with a wind, whose transpose is another one.
fn windy(k: usize) -> Csr<f64> {
    let mut a = uneven(k);
    let wind: Vec<f64> = a.iter().map(|(i, j, v)| if j > i { v * 0.6 } else { v * 1.1 }).collect();
    a.values_mut().copy_from_slice(&wind);
    a
}

/// ||b - A^T x|| / ||b||.
fn left_by_transpose(a: &Csr<f64>, b: &[f64], x: &[f64]) -> f64 {
    let mut r = b.to_vec();
    a.iter().for_each(|(i, j, value)| r[j] -= value * x[i]);
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    norm(&r) / norm(b)
}

fn the_transposed_matrix_is_that_of_the_caller<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let plain = windy(12);
    let mut in_units = windy(12);
    // Rows in units far apart, so that they are scaled before iterations.
    let units: Vec<f64> = in_units.iter().map(|(i, _, v)| v * 10f64.powi(3 * (i % 5) as i32)).collect();
    in_units.values_mut().copy_from_slice(&units);
    let mut negative = uneven(12);
    negative.values_mut().iter_mut().for_each(|value| *value = -*value);
    let b = noise(144, 3);
    for (a, name) in [(plain, "plain"), (in_units, "in units"), (negative, "negative")] {
        for (method, reorder) in [(Method::Gmres, Reorder::Rcm), (Method::Direct, Reorder::None)] {
            if name == "in units" && method == Method::Gmres {
                // The transposed matrix has its columns in units, which GMRES with the diagonal does not solve.
                continue;
            }
            let a = if reorder == Reorder::Rcm { shuffled(&a) } else { csr_copy(&a) };
            let builder = Solver::builder()
                .tolerance(1e-11)
                .method(method)
                .reorder(reorder)
                .row_wise(name != "in units");
            let solver = builder.build_on(backend, a.to_backend(backend)?)?;
            let solution = solver.transposed()?.solve(&b)?;
            let left = left_by_transpose(&a, &b, &solution.x);
            assert!(solution.report.outcome.is_converged() && left < 1e-10, "{name} {method}: {left:.1e}");
        }
    }
    // After new values it is that of the new ones.
    let a = windy(8);
    let mut solver =
        Solver::builder().tolerance(1e-11).updates(true).build_on(backend, a.to_backend(backend)?)?;
    let new: Vec<f64> = a.parts().values.iter().map(|value| 3.0 * value).collect();
    solver.update(&new)?;
    let (b, mut a) = (noise(64, 4), a);
    a.values_mut().copy_from_slice(&new);
    let x = solver.transposed()?.solve(&b)?.x;
    assert!(left_by_transpose(&a, &b, &x) < 1e-10);
    Ok(())
}

on_every_backend! { the_transposed_matrix_is_that_of_the_caller }

#[test]
fn factors_at_hand_solve_many_columns_of_both_systems_without_a_report() {
    for (a, name) in [(windy(30), "windy"), (uneven(30), "definite")] {
        let mut solver = Solver::builder().tolerance(1e-10).method(Method::Direct).build(&a).unwrap();
        let (b, mut x) = (noise(2700, 5), vec![7.0; 2700]);
        assert!(!solver.solve_quickly(false, &b, &mut x).unwrap(), "there are no factors yet");
        assert!(solver.solve(&b[..900]).unwrap().report.outcome.is_solved());
        for transposed in [false, true] {
            assert!(solver.solve_quickly(transposed, &b, &mut x).unwrap(), "{name}");
            for (b, x) in b.chunks(900).zip(x.chunks(900)) {
                let matrix = if transposed { csr_copy(&a) } else { a.transpose(&Host).unwrap() };
                assert!(left_by_transpose(&matrix, b, x) < 1e-10, "{name} {transposed}");
            }
        }
        // Row by row, in groups of every size, each column has the bits that it has alone; zero gives zero.
        for count in [1, 2, 3, 9, 19] {
            let mut columns = noise(900 * count, 8);
            columns[900 * (count / 2)..900 * (count / 2 + 1)].fill(0.0);
            let rows: Vec<f64> = (0..900 * count).map(|k| columns[k % count * 900 + k / count]).collect();
            let (mut x, mut one) = (vec![7.0; 900 * count], vec![7.0; 900]);
            assert!(
                solver.solve_quickly(false, RightHandSides::Rows(&rows), &mut x).unwrap(),
                "{name} {count}"
            );
            for (b, x) in columns.chunks(900).zip(x.chunks(900)) {
                assert!(solver.solve_quickly(false, b, &mut one).unwrap());
                assert!(name == "definite" || one == x, "{name} {count}");
                assert!(b.iter().any(|&b| b != 0.0) || x.iter().all(|&x| x == 0.0));
            }
            let at_once = x.clone();
            assert!(solver.solve_quickly(false, &columns, &mut x).unwrap() && x == at_once);
        }
        // The quick solve returns false for a wrong length or a NaN, and leaves these to the ordinary solve.
        let mut short = vec![0.0; 5];
        assert!(!solver.solve_quickly(false, &b[..5], &mut short).unwrap());
        let mut broken = b[..900].to_vec();
        broken[3] = f64::NAN;
        assert!(!solver.solve_quickly(false, &broken, &mut x[..900]).unwrap());
        // New values leave nothing of the old factors.
        solver.update(&a.parts().values.iter().map(|value| 2.0 * value).collect::<Vec<_>>()).unwrap();
        if solver.solve_quickly(false, &b[..900], &mut x[..900]).unwrap() {
            let doubled = a.transpose(&Host).unwrap();
            let half: Vec<f64> = x[..900].iter().map(|x| 2.0 * x).collect();
            assert!(left_by_transpose(&doubled, &b[..900], &half) < 1e-10);
        }
    }
}

#[test]
fn a_solution_that_rounding_leaves_in_doubt_is_not_handed_out_quickly() {
    // The condition number is 1e13, so one product cannot show that every row has a relative residual of 1e-10.
    let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 1.0, 1.0, 1.0 + 1e-13]).unwrap();
    let mut solver = Solver::builder().tolerance(1e-10).method(Method::Direct).build(&a).unwrap();
    assert!(solver.solve(&[1.0, 2.0]).unwrap().report.outcome.is_solved());
    assert!(!solver.solve_quickly(false, &[1.0, 2.0], &mut [0.0; 2]).unwrap());
    // Complex numbers, and single precision, in which x would have to be rounded.
    let values = vec![Complex::new(1.0, 2.0), Complex::new(0.5, 0.0), Complex::new(0.0, 3.0)];
    let a = Csr::from_parts(2, 2, vec![0, 2, 3], vec![0, 1, 1], values).unwrap();
    let mut solver = Solver::builder().method(Method::Direct).build(&a).unwrap();
    let b = [Complex::new(1.0, 0.0), Complex::new(0.0, 1.0)];
    assert!(solver.solve(&b).unwrap().report.outcome.is_solved());
    let mut x = [Complex::default(); 2];
    assert!(solver.solve_quickly(true, &b, &mut x).unwrap());
    assert!((Complex::new(1.0, 2.0) * x[0] - b[0]).norm() < 1e-14);
    assert!((Complex::new(0.5, 0.0) * x[0] + Complex::new(0.0, 3.0) * x[1] - b[1]).norm() < 1e-14);
    let single = Csr::from_parts(1, 1, vec![0, 1], vec![0], vec![2.0_f32]).unwrap();
    let mut solver = Solver::builder().method(Method::Direct).build(&single).unwrap();
    assert!(solver.solve(&[1.0]).unwrap().report.outcome.is_solved());
    assert!(!solver.solve_quickly(false, &[1.0], &mut [0.0]).unwrap());
}
