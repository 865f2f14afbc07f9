//! A failure does not affect later solves: after a solve that failed, was interrupted or met numbers that are not
//! finite, the next one gives the bits of a fresh solver.

use crate::random::Random;
use crate::ways::bits;
use num_complex::Complex;
use num_traits::Float;
use residua::Real;
use residua::prelude::*;
use residua::solver::{Builder, Solvable, SolveReport};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Failures of the solve before the one that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    /// A tolerance of 1e-15.
    Tolerance,
    /// One iteration is allowed.
    Limit,
    /// The observer ends it.
    Interrupted,
    /// NaN in b.
    NotFinite,
}

const TROUBLES: [Trouble; 4] = [Trouble::Tolerance, Trouble::Limit, Trouble::Interrupted, Trouble::NotFinite];

const METHODS: [Method; 7] =
    [Method::Auto, Method::Cg, Method::Minres, Method::Gmres, Method::BiCgStab, Method::Lsmr, Method::Direct];

const PRECONDITIONERS: [&str; 8] =
    ["auto", "none", "jacobi", "block-jacobi:4", "fsai", "chebyshev", "ilut", "amg"];

/// x and the reports, for one right-hand side or several.
type Told<T> = (Vec<T>, Vec<SolveReport>);

/// The matrices: definite, unsymmetric, nearly singular, singular.
fn matrix<T: Solvable>(kind: usize, random: &mut Random) -> Csr<T> {
    let n = 7;
    let mut entries = BTreeMap::new();
    let mut add = |i: usize, j: usize, value: f64| *entries.entry((i, j)).or_insert(0.0) += value;
    for i in 0..n * n {
        let neighbours = [(i % n + 1 < n).then_some(i + 1), (i / n + 1 < n).then_some(i + n)];
        for j in neighbours.into_iter().flatten() {
            let conductance = 0.5 + random.below(32) as f64 / 32.0;
            add(i, i, conductance);
            add(j, j, conductance);
            add(i, j, -conductance);
            add(j, i, if kind == 1 { -0.25 * conductance } else { -conductance });
        }
        match kind {
            0 | 1 => add(i, i, 0.1 + random.below(8) as f64 / 8.0),
            2 => add(i, i, 1e-9),
            _ => {}
        }
    }
    let mut offsets = vec![0; n * n + 1];
    entries.keys().for_each(|(i, _)| offsets[i + 1] += 1);
    (0..n * n).for_each(|i| offsets[i + 1] += offsets[i]);
    let indices = entries.keys().map(|&(_, j)| j as u32).collect();
    Csr::from_parts(n * n, n * n, offsets, indices, entries.into_values().map(T::from_f64).collect()).unwrap()
}

fn solved<T: Solvable>(solver: &mut Solver<T>, b: &[T], stop: Option<usize>) -> Result<Told<T>> {
    let mut x = vec![T::zero(); b.len()];
    let mut heard = 0;
    let observer = |_: &residua::solver::Progress| {
        heard += 1;
        if stop.is_some_and(|stop| heard >= stop) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let reports = if b.len() == solver.rows() {
        vec![solver.solve_with(b, &mut x, observer)?]
    } else {
        solver.solve_many_with(b, &mut x, observer)?
    };
    Ok((x, reports))
}

/// Tests one setting with all failures; counts the comparisons.
fn look_at<T: Solvable>(
    (method, preconditioner): (Method, &str),
    random: &mut Random,
    compared: &mut BTreeMap<Trouble, usize>,
    faults: &mut Vec<String>,
) {
    for trouble in TROUBLES {
        let (kind, count, stop) = (random.below(4), 1 + random.below(3), 1 + random.below(3));
        let a = matrix::<T>(kind, random);
        let (b, other) = (random.vector::<T>(a.rows() * count), random.vector::<T>(a.rows() * count));
        let usual = Solver::builder().method(method).preconditioner(preconditioner.parse().unwrap());
        let builder: Builder = match trouble {
            Trouble::Tolerance => usual.tolerance(1e-15),
            Trouble::Limit => usual.max_iterations(1),
            Trouble::Interrupted | Trouble::NotFinite => usual,
        };
        // Not every method supports every preconditioner and every matrix.
        let Ok(fresh) = builder.build(&a).and_then(|mut solver| solved(&mut solver, &b, None)) else {
            continue;
        };
        let mut solver = builder.build(&a).unwrap();
        let first = match trouble {
            Trouble::NotFinite => {
                let mut spoilt = other.clone();
                spoilt[random.below(other.len())] = T::from_f64(f64::NAN);
                solved(&mut solver, &spoilt, None)
            }
            Trouble::Interrupted => solved(&mut solver, &other, Some(stop)),
            Trouble::Tolerance | Trouble::Limit => solved(&mut solver, &other, None),
        };
        // After a success, the next solve may begin with the method that succeeded.
        if first.is_ok_and(|(_, reports)| reports.iter().any(|report| report.outcome.is_solved())) {
            continue;
        }
        *compared.entry(trouble).or_default() += 1;
        let setting =
            format!("{} {method} {preconditioner}, matrix {kind}, {count} at once, {trouble:?}", T::NAME);
        // Factors in doubles may be of another kind the second time, and x may round differently to single precision:
        // then only the verdict must be the same.
        let may_differ =
            matches!(method, Method::Direct | Method::Auto) && T::Real::epsilon().to_f64() > 1e-10;
        match solved(&mut solver, &b, None) {
            Err(error) => faults.push(format!("{setting}: {error}")),
            Ok(next) => {
                let outcomes =
                    |told: &Told<T>| told.1.iter().map(|report| report.outcome.status()).collect::<Vec<_>>();
                if outcomes(&fresh) != outcomes(&next) {
                    faults.push(format!("{setting}: {:?}, fresh {:?}", outcomes(&next), outcomes(&fresh)));
                } else if bits(&fresh.0) != bits(&next.0) && !may_differ {
                    faults.push(format!("{setting}: other bits"));
                }
            }
        }
    }
}

fn all_settings<T: Solvable>() {
    let (mut random, mut compared, mut faults) = (Random(5), BTreeMap::new(), Vec::new());
    for method in METHODS {
        for preconditioner in PRECONDITIONERS {
            for _ in 0..4 {
                look_at::<T>((method, preconditioner), &mut random, &mut compared, &mut faults);
            }
        }
    }
    assert!(
        TROUBLES.iter().all(|trouble| compared.get(trouble).is_some_and(|&count| count > 20)),
        "{compared:?}"
    );
    assert!(faults.is_empty(), "{} of {compared:?}:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn failures_leave_no_trace_in_double_precision() {
    all_settings::<f64>();
}

#[test]
fn failures_leave_no_trace_in_single_precision() {
    all_settings::<f32>();
}

#[test]
fn failures_leave_no_trace_with_complex_numbers() {
    all_settings::<Complex<f64>>();
}

#[test]
fn failures_leave_no_trace_with_complex_numbers_in_single_precision() {
    all_settings::<Complex<f32>>();
}
