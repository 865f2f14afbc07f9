//! One test for each kind of problem, with every way to call a solver.

use crate::cases::{self, System, permuted, turned};
use crate::judge::epsilon;
use crate::ways::{Way, bits, faults};
use num_complex::Complex;
use residua::generate;
use residua::prelude::*;
use residua::solver::Solvable;

/// Tests one kind of system: unchanged, in all ways to call a solver; with complex numbers and in other orders, in the
/// two ways that differ most.
fn look_at(kind: fn(usize) -> Vec<System<f64>>) {
    let mut count = 0;
    let mut tell = |faults: Vec<String>| {
        faults.iter().for_each(|fault| println!("{fault}"));
        count += faults.len();
    };
    for variation in 0..2 {
        for system in kind(variation) {
            Way::ALL.into_iter().for_each(|way| tell(faults(&system, way)));
            for way in [Way::Auto, Way::Direct] {
                let seed = variation as u64;
                tell(faults(&turned(&system, seed), way));
                tell(faults(&permuted(&system, seed, false), way));
                tell(faults(&permuted(&system, seed, true), way));
                tell(faults(&permuted(&turned(&system, seed), seed, false), way));
            }
        }
    }
    assert_eq!(count, 0, "faults, which are printed above");
}

/// A test with the name of each kind.
macro_rules! kinds {
    ($($kind:ident),* $(,)?) => {
        $(
            #[test]
            fn $kind() {
                look_at(cases::$kind);
            }
        )*
    };
}

kinds!(
    pairs,
    pairs_in_a_network,
    a_row_that_cancels,
    leaks,
    a_leak_of_three,
    chains,
    identity_rows,
    penalties,
    two_fields,
    near_an_eigenvalue,
    a_free_body,
    tall_with_scaled_rows,
    tall_and_ill_conditioned,
    denormal_diagonals,
);

#[test]
fn defaults_are_those_of_the_type() {
    fn grids<T: Solvable>() {
        for n in [10, 20, 32, 71] {
            let grid = generate::poisson2d(n, n).unwrap();
            let entries: Vec<T> = grid.parts().values.iter().map(|&v| T::from_f64(v)).collect();
            let a = Csr::from_parts(n * n, n * n, offsets(&grid), grid.parts().indices.to_vec(), entries)
                .unwrap();
            let b = vec![T::one(); n * n];
            let (auto, direct) = (Solver::builder(), Solver::builder().method(Method::Direct));
            for builder in [auto, direct] {
                let report = builder.build(&a).unwrap().solve(&b).unwrap().report;
                assert!(report.outcome.is_solved(), "{} {n}: {report:?}", T::NAME);
                // For larger grids single precision has fewer digits than x needs.
                assert!(report.outcome.is_converged() || epsilon::<T>() > 1e-10 && n > 20, "{} {n}", T::NAME);
            }
        }
    }
    grids::<f32>();
    grids::<Complex<f32>>();
    grids::<f64>();
    grids::<Complex<f64>>();
}

fn offsets<T: Solvable>(a: &Csr<T>) -> Vec<usize> {
    std::iter::once(0)
        .chain((0..a.rows()).scan(0, |end, i| {
            *end += a.row(i).0.len();
            Some(*end)
        }))
        .collect()
}

/// The requested tolerance cannot be met, so solves with the factors fail; the next b is solved like the first all the
/// same.
#[test]
fn factors_are_kept_when_a_tolerance_is_missed() {
    let grids = [12, 20, 45, 71].map(|n| generate::poisson2d(n, n).unwrap());
    let streams = [15, 40].map(|n| generate::convection_diffusion([n, n, 1], 0.3).unwrap());
    for (a, tolerance) in grids.iter().chain(&streams).flat_map(|a| [(a, 1e-15), (a, 1e-16), (a, 1e-18)]) {
        let b: Vec<f64> = (0..a.rows()).map(|i| ((i * 7919) % 101) as f64 / 50.0 - 1.0).collect();
        let mut solver = Solver::builder().method(Method::Direct).tolerance(tolerance).build(a).unwrap();
        let first = solver.solve(&b).unwrap();
        assert!(first.report.relative_residual < 1e-11, "{:?}", first.report);
        for _ in 0..3 {
            let next = solver.solve(&b).unwrap();
            assert!(bits(&next.x) == bits(&first.x), "{tolerance:e}: {:?}", next.report);
            assert_eq!(next.report.outcome, first.report.outcome);
        }
        let several: Vec<f64> = b.iter().chain(&b).copied().collect();
        let mut x = vec![0.0; several.len()];
        let reports = solver.solve_many(&several, &mut x).unwrap();
        assert!(reports.iter().all(|report| report.relative_residual < 1e-11), "{tolerance:e}: {reports:?}");
    }
}

/// NaN and infinity are errors that name their place.
#[test]
fn what_is_not_finite_is_named() {
    let a = generate::poisson2d(9, 9).unwrap();
    let named = |error: Error, places: &[&str]| {
        let words = error.to_string();
        let missing = places.iter().find(|place| !words.contains(**place));
        assert!(missing.is_none(), "{words}: {missing:?}");
    };
    for method in [Method::Auto, Method::Cg, Method::Gmres, Method::Lsmr, Method::Direct] {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let builder = Solver::builder().method(method);
            let mut b = vec![1.0; 81];
            b[57] = bad;
            match builder.build(&a).unwrap().solve(&b) {
                Err(error) => named(error, &["57"]),
                Ok(solution) => panic!("{method} {bad}: {:?}", solution.report.outcome),
            }
            let mut broken = a.clone();
            let (columns, _) = a.row(57);
            let place = columns.iter().position(|&j| j == 66).unwrap() + offsets(&a)[57];
            broken.values_mut()[place] = bad;
            match builder.build(&broken).and_then(|mut solver| solver.solve(&[1.0; 81])) {
                Err(error) => named(error, &["57", "66"]),
                Ok(solution) => panic!("{method} {bad} in A: {:?}", solution.report.outcome),
            }
        }
    }
}
