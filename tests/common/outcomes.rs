//! The outcomes of solves that cannot converge, and the x that they leave. The bodies are generic over the backend.

use crate::systems::*;
use residua::backend::KrylovSteps;
use residua::krylov::{Cg, MultiCg, Outcome, Report};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Csr, Error, Host, Result};
use std::mem::discriminant;
use std::ops::ControlFlow;
pub fn every_fault_has_its_outcome<B: Device>(backend: &B) -> Result<()> {
    let outcome = |a: &Csr<f64>, jacobi: bool, b: &[f64], x: &[f64]| {
        run(backend, a, jacobi, b, x.to_vec(), defaults()).map(|s| (s.report, s.x))
    };
    let a = tridiagonal::<f64>(10, 2.0);
    let ones = [1.0; 10];
    let zero = [0.0; 10];

    // b = 0 gives x = 0 without iterations, whatever x was.
    for start in [[3.0; 10], [f64::NAN; 10]] {
        let (report, x) = outcome(&a, true, &zero, &start)?;
        assert_eq!((report.outcome, report.iterations, x), (Outcome::Converged, 0, zero.to_vec()));
        assert_eq!(report.relative_residual, 0.0);
    }
    // If x0 is exact there is no iteration, and x is not changed.
    let (report, x) = outcome(&a, true, &times_ones(&a), &ones)?;
    assert_eq!((report.outcome, report.iterations, x), (Outcome::Converged, 0, ones.to_vec()));

    // NaN and infinity, in b or x0: x is not changed.
    for bad in [f64::NAN, f64::INFINITY] {
        let mut spoilt = ones;
        spoilt[3] = bad;
        let (report, x) = outcome(&a, true, &spoilt, &ones)?;
        assert_eq!((report.outcome, report.iterations, x), (Outcome::NotFinite, 0, ones.to_vec()));
        assert!(report.residual_norm.is_nan() && report.relative_residual.is_nan());
        let (report, x) = outcome(&a, false, &ones, &spoilt)?;
        assert_eq!((report.outcome, report.iterations), (Outcome::NotFinite, 0));
        assert!(x[..3] == ones[..3] && x[4..] == ones[4..]);
    }
    // NaN in A off the diagonal is noticed at the first product, and x is not changed.
    let mut broken = tridiagonal::<f64>(10, 2.0);
    broken.values_mut()[1] = f64::NAN;
    let (report, x) = outcome(&broken, false, &ones, &zero)?;
    assert_eq!((report.outcome, x), (Outcome::NotFinite, zero.to_vec()));

    // Indefinite, negative definite, zero.
    let (report, _) = outcome(&diagonal(&[1.0, -1.0, 3.0]), false, &[1.0, 2.0, 0.5], &[0.0; 3])?;
    let Outcome::NotPositiveDefinite { iteration: 1, curvature } = report.outcome else {
        panic!("{report:?}")
    };
    assert!((curvature - (1.0 - 4.0 + 0.75) / 5.25).abs() < 1e-12);
    let (report, x) = outcome(&diagonal(&[-2.0; 4]), false, &[1.0; 4], &[0.0; 4])?;
    assert_eq!(report.outcome, Outcome::NotPositiveDefinite { iteration: 1, curvature: -2.0 });
    assert_eq!((report.relative_residual, x), (1.0, vec![0.0; 4]));
    let (report, _) = outcome(&diagonal(&[0.0; 4]), false, &[1.0; 4], &[0.0; 4])?;
    assert_eq!(report.outcome, Outcome::NotPositiveDefinite { iteration: 1, curvature: 0.0 });

    // A diagonal entry that is not positive is an error that names it.
    let refused = run(backend, &diagonal(&[1.0, 2.0, -3.0, -4.0]), true, &[1.0; 4], vec![0.0; 4], defaults());
    assert!(matches!(refused, Err(Error::Diagonal { row: 2, value: -3.0 })));
    let missing = csr(3, |i| vec![((i + 1) % 3, 1.0)]);
    let refused = run(backend, &missing, true, &[1.0; 3], vec![0.0; 3], defaults());
    assert!(matches!(refused, Err(Error::Diagonal { row: 0, value: 0.0 })));
    let tiny = run(backend, &diagonal(&[1.0, 1e-310]), true, &[1.0; 2], vec![0.0; 2], defaults());
    assert!(matches!(tiny, Err(Error::Diagonal { row: 1, .. })));

    // Too few iterations; none at all.
    let b = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0];
    for limit in [0, 1, 3] {
        let solved = run(backend, &a, true, &b, vec![0.0; 10], defaults().max_iterations(limit))?;
        assert_eq!((solved.report.outcome, solved.report.iterations), (Outcome::IterationLimit, limit));
        assert_eq!(solved.history.len(), limit + 1);
    }
    Ok(())
}

/// The Laplacian of a path: constants are its null space.
fn free_path(n: usize) -> Csr<f64> {
    csr(n, |i| {
        let degree = usize::from(i > 0) + usize::from(i + 1 < n);
        let mut row = vec![(i, degree as f64)];
        if i > 0 {
            row.insert(0, (i - 1, -1.0));
        }
        if i + 1 < n {
            row.push((i + 1, -1.0));
        }
        row
    })
}

pub fn singular_systems<B: Device>(backend: &B) -> Result<()> {
    let a = free_path(60);
    // Consistent: sums to zero.
    let consistent: Vec<f64> = (0..60).map(|i| f64::from(i) - 29.5).collect();
    let solved = run(backend, &a, true, &consistent, vec![0.0; 60], defaults())?;
    assert!(solved.report.outcome.is_converged(), "{:?}", solved.report);
    // Inconsistent: no x has a residual smaller than the constant part, and none may be called a solution.
    let inconsistent: Vec<f64> = consistent.iter().map(|b| b + 1.0).collect();
    for jacobi in [false, true] {
        let solved = run(backend, &a, jacobi, &inconsistent, vec![0.0; 60], defaults())?;
        assert!(
            matches!(
                solved.report.outcome,
                Outcome::NotPositiveDefinite { .. } | Outcome::Stagnated | Outcome::Breakdown { .. }
            ),
            "{:?}",
            solved.report
        );
        assert!(solved.report.residual_norm > 7.0);
        // The outcome is the same on every backend.
        let here = run(&Host, &a, jacobi, &inconsistent, vec![0.0; 60], defaults())?;
        assert_eq!(discriminant(&solved.report.outcome), discriminant(&here.report.outcome));
    }
    Ok(())
}

/// In units of 1e-300, p.Ap underflows before the tolerance is met. This says nothing about the definiteness of A.
pub fn a_matrix_in_units_far_from_one_is_not_called_indefinite<B: Device>(backend: &B) -> Result<()> {
    let ones = vec![1.0; 50];
    for unit in [1e-300, -1e-300] {
        let mut a = tridiagonal::<f64>(50, 4.0);
        a.values_mut().iter_mut().for_each(|value| *value *= unit);
        let b = times_ones(&a);
        let report = run(backend, &a, false, &b, vec![0.0; 50], defaults())?.report;
        match report.outcome {
            Outcome::Breakdown { iteration: 2.. } if unit > 0.0 => {}
            Outcome::NotPositiveDefinite { iteration: 1, curvature } if unit < 0.0 => {
                assert!((-6.1e-300..0.0).contains(&curvature), "{curvature:e}");
            }
            other => panic!("{unit:e}: {other:?}"),
        }
    }
    // A null vector is recognised in any units.
    let report = run(backend, &diagonal(&[0.0; 50]), false, &ones, vec![0.0; 50], defaults())?.report;
    assert_eq!(report.outcome, Outcome::NotPositiveDefinite { iteration: 1, curvature: 0.0 });
    Ok(())
}

pub fn setup_without_memory<B: Device>(backend: &B) -> Result<()> {
    assert!(matches!(Cg::<f64, B>::new(backend, 1 << 46, defaults()), Err(Error::OutOfMemory { .. })));
    let a = tridiagonal::<f64>(10, 2.0);
    let solved = run(backend, &a, true, &times_ones(&a), vec![0.0; 10], defaults())?;
    assert!(solved.report.outcome.is_converged());
    Ok(())
}

/// The Laplacian of a path that is nearly singular, in units from 2^-12 to 2^12: recurrences claim convergence although
/// b - A x is larger than b.
pub fn failed_solves_leave_no_larger_residual<B: Device>(backend: &B) -> Result<()> {
    for seed in 0..30 {
        let unit = |i: usize| 2_f64.powi(((i * i * 31 + i * 7 + seed * 17) % 25) as i32 - 12);
        let path = free_path(65);
        let a = csr(65, |i| {
            let (columns, values) = path.row(i);
            let scaled = |(&j, &v): (&u32, &f64)| {
                let own = if i == j as usize { 1e-12 } else { 0.0 };
                (j as usize, (v + own) * unit(i) * unit(j as usize))
            };
            columns.iter().zip(values).map(scaled).collect()
        });
        let b: Vec<f64> = (0..65).map(|i| ((i * 7919 + seed * 31) % 101) as f64 / 50.0 - 1.0).collect();
        for jacobi in [false, true] {
            let kept = |report: &Report| {
                report.outcome == Outcome::IterationLimit || report.relative_residual <= 1.0 + 1e-9
            };
            let options = defaults().tolerance(1e-13);
            let report = solved(backend, (&a, jacobi), &b, vec![0.0; 65], options, false)?.report;
            assert!(kept(&report), "{seed}, {jacobi}: {report:?}");
            let (a, twice) = (backend.place(csr_copy(&a)), [&b[..], &b[..]].concat());
            let mut cg = MultiCg::new(backend, 65, 2, defaults().tolerance(1e-13))?;
            let (twice, mut x) = (backend.upload(twice)?, backend.zeros(130)?);
            let m = if jacobi { Some(Jacobi::new(backend, &a)?) } else { None };
            let m: &dyn Preconditioner<f64, B> = m.as_ref().map_or(&Identity, |m| m);
            for report in cg.solve(&a, m, &twice, &mut x, |_, _, _| ControlFlow::Continue(()))? {
                assert!(kept(report), "{seed}, {jacobi}, two at once: {report:?}");
            }
        }
    }
    Ok(())
}

pub fn unattainable_tolerance_stagnates<B: Device>(backend: &B) -> Result<()> {
    let a = tridiagonal::<f64>(300, 2.0);
    let b: Vec<f64> = (0..300).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for tolerance in [0.0, 1e-18] {
        let options = defaults().tolerance(tolerance);
        let solved = run(backend, &a, true, &b, vec![0.0; 300], options)?;
        assert_eq!(solved.report.outcome, Outcome::Stagnated, "{:?}", solved.report);
        assert!(solved.report.relative_residual < 1e-12, "{:?}", solved.report);
    }
    // An absolute tolerance, in the units of b.
    let options = defaults().tolerance(0.0).absolute_tolerance(1e-3);
    let solved = run(backend, &a, true, &b, vec![0.0; 300], options)?;
    assert!(solved.report.outcome.is_converged() && solved.report.residual_norm <= 1e-3);
    Ok(())
}

/// Residual norms of conjugate gradients rise and fall. The first sequence of iterations without a smaller one that is
/// as long as the stagnation window ends the solve, and x is the better of its last and first vector.
pub fn the_stagnation_window_is_the_callers_patience<B: Device>(backend: &B) -> Result<()> {
    let spread: Vec<f64> = (0..60).map(|i| 10.0_f64.powf(f64::from(i) / 10.0)).collect();
    let (a, b) = (diagonal(&spread), [1.0; 60]);
    let patient = run(backend, &a, false, &b, vec![0.0; 60], defaults())?;
    assert!(patient.report.outcome.is_converged(), "{:?}", patient.report);
    for window in [1, 3, 10] {
        let (mut best, mut since) = (f64::INFINITY, 0);
        let last = patient.history.iter().skip(1).position(|&norm| {
            since = if norm < best { 0 } else { since + 1 };
            best = best.min(norm);
            since == window
        });
        let last = last.expect("a stretch without a smaller residual") + 1;
        let hasty = run(backend, &a, false, &b, vec![0.0; 60], defaults().stagnation_window(window))?;
        assert_eq!(hasty.report.outcome, Outcome::Stagnated, "{window}");
        let behind = last..=last + 2 * B::PERSISTENT_ITERATIONS;
        assert!(
            behind.contains(&hasty.report.iterations),
            "{window}: {behind:?}, {}",
            hasty.report.iterations
        );
        assert!(hasty.report.relative_residual <= 1.0, "{:?}", hasty.report);
    }
    Ok(())
}

pub fn preconditioner_that_is_not_positive_breaks_down<B: Device>(backend: &B) -> Result<()> {
    struct Negative;
    impl<B: KrylovSteps> Preconditioner<f64, B> for Negative {
        fn rows(&self) -> Option<usize> {
            None
        }
        fn apply(&self, backend: &B, r: &B::Slice<f64>, z: &mut B::Slice<f64>) -> Result<()> {
            backend.axpby(-1.0, r, 0.0, z)
        }
        fn bytes(&self) -> usize {
            0
        }
    }
    let a = backend.place(tridiagonal::<f64>(10, 2.0));
    let (b, mut x) = (backend.upload(vec![1.0; 10])?, backend.zeros(10)?);
    let mut cg = Cg::new(backend, 10, defaults())?;
    let report = cg.solve(&a, &Negative, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    assert_eq!(report.outcome, Outcome::Breakdown { iteration: 1 });
    // The same solver can solve the next system.
    let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    assert!(report.outcome.is_converged());
    Ok(())
}
