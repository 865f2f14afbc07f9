//! New values and then the old ones again: the report and x are those of before.

use crate::judge::judge;
use crate::random::Random;
use crate::ways::{bits, default_tolerance};
use num_complex::Complex;
use residua::prelude::*;
use residua::solver::Solvable;

/// Returns the values of `a` times `factor`, with `leak` added to the diagonal.
fn values<T: Solvable>(a: &Csr<f64>, leak: f64, factor: f64) -> Vec<T> {
    a.iter().map(|(i, j, v)| T::from_f64(if i == j { factor * v + leak } else { factor * v })).collect()
}

/// The Laplacian of a grid in which nothing is fixed.
fn free_grid(n: usize) -> Csr<f64> {
    let a = residua::generate::poisson2d(n, n).unwrap();
    let degrees: Vec<f64> = (0..a.rows()).map(|i| (a.row(i).0.len() - 1) as f64).collect();
    let entries: Vec<f64> = a.iter().map(|(i, j, v)| if i == j { degrees[i] } else { v }).collect();
    let mut free = a;
    free.values_mut().copy_from_slice(&entries);
    free
}

fn look_at<T: Solvable>(method: Method, updates: bool) {
    let grid = free_grid(12);
    let mut random = Random(11);
    let b: Vec<T> = random.vector(grid.rows());
    let (old, others) = (
        values::<T>(&grid, 0.5, 1.0),
        [values::<T>(&grid, 0.0, 1.0), values(&grid, 1e-10, 3.0), values(&grid, 7.0, 0.1)],
    );
    let with = |entries: &[T]| {
        let parts = grid.parts();
        let mut offsets = vec![0];
        (0..grid.rows()).for_each(|i| offsets.push(offsets[i] + grid.row(i).0.len()));
        Csr::from_parts(grid.rows(), grid.rows(), offsets, parts.indices.to_vec(), entries.to_vec()).unwrap()
    };
    let builder = Solver::builder().method(method).updates(updates);
    for other in &others {
        let setting = format!("{} {method}, updates: {updates}", T::NAME);
        // An update sets up the same things in both.
        let mut fresh = builder.build(with(&old)).unwrap();
        fresh.update(&old).unwrap();
        let expected = fresh.solve(&b).unwrap();
        let mut solver = builder.build(with(&old)).unwrap();
        solver.update(other).unwrap();
        solver.update(&old).unwrap();
        let back = solver.solve(&b).unwrap();
        assert_eq!(back.report.outcome, expected.report.outcome, "{setting}");
        assert!(bits(&back.x) == bits(&expected.x), "{setting}");
        // The same with a solve in between, whose verdict must be true for the values at that time.
        solver.update(other).unwrap();
        let between = solver.solve(&b).unwrap();
        let judged = judge(&with(other), &b, &between.x, &between.report, default_tolerance::<T>());
        assert!(judged.faults.is_empty(), "{setting}: {:?}", judged.faults);
        solver.update(&old).unwrap();
        let again = solver.solve(&b).unwrap();
        assert_eq!(again.report.outcome, expected.report.outcome, "{setting}, solved in between");
        let judged = judge(&with(&old), &b, &again.x, &again.report, default_tolerance::<T>());
        assert!(judged.faults.is_empty(), "{setting}, solved in between: {:?}", judged.faults);
    }
}

/// A test for each method.
macro_rules! methods {
    ($($name:ident $method:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                for updates in [false, true] {
                    look_at::<f64>(Method::$method, updates);
                    look_at::<Complex<f64>>(Method::$method, updates);
                    look_at::<f32>(Method::$method, updates);
                }
            }
        )*
    };
}

methods!(
    old_values_again_by_auto Auto,
    old_values_again_by_cg Cg,
    old_values_again_by_gmres Gmres,
    old_values_again_by_lsmr Lsmr,
    old_values_again_by_direct Direct,
);

#[test]
fn another_number_of_values_is_refused_and_leaves_the_solver_as_it_was() {
    let a = free_grid(6);
    let mut solver = Solver::builder().build(&a).unwrap();
    let b: Vec<f64> = Random(3).vector(36);
    let few = vec![1.0; a.nonzeros() - 1];
    assert!(solver.update(&few).is_err());
    solver.update(&values(&a, 1.0, 1.0)).unwrap();
    assert!(solver.solve(&b).unwrap().report.outcome.is_converged());
}
