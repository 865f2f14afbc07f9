//! Conjugate gradients: known iteration counts, every outcome, and the same bits whichever way they are run. The bodies
//! are generic over the backend.

#[macro_use]
#[path = "common/systems.rs"]
mod systems;

use num_complex::Complex;
use residua::backend::{Inverse, KrylovSteps};
use residua::krylov::{self, Cg, MultiCg, Outcome, Report};
use residua::operator::FunctionOperator;
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Csr, Error, Host, Result, Scalar};
use std::mem::discriminant;
use std::ops::ControlFlow;
use systems::*;

fn converges_in_known_iterations<B: Device>(backend: &B) -> Result<()> {
    // Symmetric right-hand side: n / 2 distinct directions.
    let a = tridiagonal::<f64>(100, 2.0);
    let solved = run(backend, &a, false, &times_ones(&a), vec![0.0; 100], defaults())?;
    assert_eq!((solved.report.outcome, solved.report.iterations), (Outcome::Converged, 50));
    assert!(solved.x.iter().all(|x| (x - 1.0).abs() < 1e-9));
    assert_eq!(solved.history.len(), 51);
    // k distinct eigenvalues: k iterations; Jacobi inverts a diagonal at once.
    let a = diagonal(&[1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
    let b = [1.0; 7];
    assert_eq!(run(backend, &a, false, &b, vec![0.0; 7], defaults())?.report.iterations, 3);
    // Thirds, which single precision rounds, take a second step.
    assert_eq!(run(backend, &a, true, &b, vec![0.0; 7], defaults())?.report.iterations, 2);
    let halves = diagonal(&[1.0, 2.0, 4.0, 1.0, 2.0, 4.0, 1.0]);
    assert_eq!(run(backend, &halves, true, &b, vec![0.0; 7], defaults())?.report.iterations, 1);
    // 1 x 1, and no unknown at all.
    assert_eq!(run(backend, &diagonal(&[4.0]), true, &[2.0], vec![0.0], defaults())?.x, [0.5]);
    assert!(run(backend, &diagonal(&[]), false, &[], vec![], defaults())?.report.outcome.is_converged());
    Ok(())
}

fn jacobi_equals_identity_on_a_constant_diagonal<B: Device>(backend: &B) -> Result<()> {
    let a = poisson2d(40);
    let b: Vec<f64> = (0..1600).map(|i| ((i * 7919) % 1000) as f64 / 1000.0).collect();
    let plain = run(backend, &a, false, &b, vec![0.0; 1600], defaults())?;
    let jacobi = run(backend, &a, true, &b, vec![0.0; 1600], defaults())?;
    assert_eq!(plain.report.iterations, jacobi.report.iterations);
    // The diagonal is not read: not one bit differs, whatever is on it.
    assert_eq!(plain.report.bytes_per_iteration, jacobi.report.bytes_per_iteration);
    assert_eq!(plain.x, jacobi.x);
    // Another number in one row, the last, and it is.
    let mut uneven = poisson2d(40);
    *uneven.values_mut().last_mut().unwrap() = 5.0;
    let jacobi = run(backend, &uneven, true, &b, vec![0.0; 1600], defaults())?;
    assert_eq!(plain.report.bytes_per_iteration + 2 * 4 * 1600, jacobi.report.bytes_per_iteration);
    // New values are looked at anew.
    let mut a = backend.place(uneven);
    let mut m = Jacobi::new(backend, &a)?;
    assert!(matches!(Preconditioner::<f64, B>::fused(&m), Some(Inverse::Rounded(_))));
    backend.write(poisson2d(40).parts().values, a.values_mut())?;
    m.update(backend, &a)?;
    assert!(matches!(Preconditioner::<f64, B>::fused(&m), Some(Inverse::Identity)));
    Ok(())
}

/// Reciprocals that are no normal numbers of single precision are read as they are.
fn a_diagonal_beyond_single_precision<B: Device>(backend: &B) -> Result<()> {
    let b: Vec<f64> = (0..1600).map(|i| ((i * 7919) % 1000) as f64 / 1000.0).collect();
    let mut iterations = Vec::new();
    for (exponent, rounded) in [(0, true), (120, true), (130, false), (-200, false), (200, false)] {
        let scale = 2.0_f64.powi(exponent);
        let mut host = poisson2d(40);
        host.values_mut().iter_mut().for_each(|value| *value *= scale);
        *host.values_mut().last_mut().unwrap() *= 1.25;
        let solved = run(backend, &host, true, &b, vec![0.0; 1600], defaults())?;
        assert_eq!(solved.report.outcome, Outcome::Converged, "2^{exponent}");
        iterations.push(solved.report.iterations);
        let m = Jacobi::new(backend, &backend.place(host))?;
        let fused = Preconditioner::<f64, B>::fused(&m);
        assert_eq!(matches!(fused, Some(Inverse::Rounded(_))), rounded, "2^{exponent}: {fused:?}");
        assert_eq!(matches!(fused, Some(Inverse::Diagonal(_))), !rounded, "2^{exponent}: {fused:?}");
    }
    assert!(iterations.iter().all(|&n| n.abs_diff(iterations[0]) <= 1), "{iterations:?}");
    Ok(())
}

/// Jacobi hidden behind `apply` alone, and the bytes that it says to move beyond its own.
struct Stored<T: Scalar, B: KrylovSteps>(Jacobi<T, B>, usize);

impl<T: Scalar, B: KrylovSteps> Preconditioner<T, B> for Stored<T, B> {
    fn rows(&self) -> Option<usize> {
        Preconditioner::<T, B>::rows(&self.0)
    }
    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        self.0.apply(backend, r, z)
    }
    fn bytes(&self) -> usize {
        self.1 + Preconditioner::<T, B>::bytes(&self.0)
    }
}

fn fused_and_stored_preconditioner_agree<B: Device>(backend: &B) -> Result<()> {
    let n = 500;
    let a = csr(n, |i| {
        let scale = |i: usize| 1.0 + (i % 17) as f64;
        let mut row = vec![(i, 2.5 * scale(i) * scale(i))];
        if i > 0 {
            row.insert(0, (i - 1, -scale(i) * scale(i - 1)));
        }
        if i + 1 < n {
            row.push((i + 1, -scale(i) * scale(i + 1)));
        }
        row
    });
    let b: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
    let fused = run(backend, &a, true, &b, vec![0.0; n], defaults())?;
    let plain = run(backend, &a, false, &b, vec![0.0; n], defaults())?;
    assert!(
        fused.report.iterations * 3 < plain.report.iterations * 2,
        "{:?} {:?}",
        fused.report,
        plain.report
    );
    let device = backend.place(csr_copy(&a));
    let mut cg = Cg::new(backend, n, defaults())?;
    let b = backend.upload(b)?;
    let mut histories = Vec::new();
    // After iterations that take long fewer are queued ahead, which changes nothing.
    for bytes in [0, 1 << 40] {
        let mut x = backend.zeros(n)?;
        let m = Stored(Jacobi::new(backend, &device)?, bytes);
        let report = cg.solve(&device, &m, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
        assert!(report.iterations.abs_diff(fused.report.iterations) <= 1, "{report:?} {:?}", fused.report);
        assert!(report.outcome.is_converged());
        histories.push(cg.history().to_vec());
    }
    assert_eq!(histories[0], histories[1]);
    Ok(())
}

fn every_fault_has_its_outcome<B: Device>(backend: &B) -> Result<()> {
    let outcome = |a: &Csr<f64>, jacobi: bool, b: &[f64], x: &[f64]| {
        run(backend, a, jacobi, b, x.to_vec(), defaults()).map(|s| (s.report, s.x))
    };
    let a = tridiagonal::<f64>(10, 2.0);
    let ones = [1.0; 10];
    let zero = [0.0; 10];

    // b = 0: x = 0 in no iteration, whatever x held.
    for start in [[3.0; 10], [f64::NAN; 10]] {
        let (report, x) = outcome(&a, true, &zero, &start)?;
        assert_eq!((report.outcome, report.iterations, x), (Outcome::Converged, 0, zero.to_vec()));
        assert_eq!(report.relative_residual, 0.0);
    }
    // x0 exact: no iteration, and x untouched.
    let (report, x) = outcome(&a, true, &times_ones(&a), &ones)?;
    assert_eq!((report.outcome, report.iterations, x), (Outcome::Converged, 0, ones.to_vec()));

    // NaN and infinity, in b or x0: x stays as it was.
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
    // NaN in A, off the diagonal: seen at the first product with it, x untouched.
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

    // A diagonal entry that is not positive is refused by name.
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

fn singular_systems<B: Device>(backend: &B) -> Result<()> {
    let a = free_path(60);
    // Consistent: sums to zero.
    let consistent: Vec<f64> = (0..60).map(|i| f64::from(i) - 29.5).collect();
    let solved = run(backend, &a, true, &consistent, vec![0.0; 60], defaults())?;
    assert!(solved.report.outcome.is_converged(), "{:?}", solved.report);
    // Inconsistent: no x has a residual below that of the constant part, and none may be called a solution.
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
        // The same name on every backend.
        let here = run(&Host, &a, jacobi, &inconsistent, vec![0.0; 60], defaults())?;
        assert_eq!(discriminant(&solved.report.outcome), discriminant(&here.report.outcome));
    }
    Ok(())
}

/// Memory that no machine has is refused by name, and the next system is solved.
/// In units of 1e-300, p.Ap is below every number of the type before the tolerance is met: no claim about A's signs.
fn a_matrix_in_units_far_from_one_is_not_called_indefinite<B: Device>(backend: &B) -> Result<()> {
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
    // A null vector stays what it is, in whatever units.
    let report = run(backend, &diagonal(&[0.0; 50]), false, &ones, vec![0.0; 50], defaults())?.report;
    assert_eq!(report.outcome, Outcome::NotPositiveDefinite { iteration: 1, curvature: 0.0 });
    Ok(())
}

fn setup_without_memory<B: Device>(backend: &B) -> Result<()> {
    assert!(matches!(Cg::<f64, B>::new(backend, 1 << 46, defaults()), Err(Error::OutOfMemory { .. })));
    let a = tridiagonal::<f64>(10, 2.0);
    let solved = run(backend, &a, true, &times_ones(&a), vec![0.0; 10], defaults())?;
    assert!(solved.report.outcome.is_converged());
    Ok(())
}

/// A path that hardly holds on to anything, in units from 2^-12 to 2^12: recurrences say that they have converged where
/// b - A x is larger than b.
fn failed_solves_leave_no_larger_residual<B: Device>(backend: &B) -> Result<()> {
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
            let report = run_once(backend, &a, jacobi, &b, vec![0.0; 65], options)?.report;
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

fn unattainable_tolerance_stagnates<B: Device>(backend: &B) -> Result<()> {
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

/// Residual norms of conjugate gradients rise and fall. The first stretch of iterations without a smaller one that is
/// as long as the caller's patience ends the solve, and x has the better of where it came to and where it began.
fn the_stagnation_window_is_the_callers_patience<B: Device>(backend: &B) -> Result<()> {
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
        let behind = last..=last + 2 * B::CG_BURST;
        assert!(
            behind.contains(&hasty.report.iterations),
            "{window}: {behind:?}, {}",
            hasty.report.iterations
        );
        assert!(hasty.report.relative_residual <= 1.0, "{:?}", hasty.report);
    }
    Ok(())
}

fn preconditioner_that_is_not_positive_breaks_down<B: Device>(backend: &B) -> Result<()> {
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
    // The same solver goes on with the next system.
    let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    assert!(report.outcome.is_converged());
    Ok(())
}

fn observer_sees_the_history_and_can_stop<B: Device>(backend: &B) -> Result<()> {
    // Large enough that the end is far off, also for a backend that is many iterations ahead.
    let n = 260 * 260;
    let host = poisson2d(260);
    let rhs: Vec<f64> = (0..n as u32).map(|i| f64::from(i % 7)).collect();
    let a = backend.place(csr_copy(&host));
    let (b, mut x) = (backend.upload(rhs.clone())?, backend.zeros(n)?);
    let mut cg = Cg::new(backend, n, defaults())?;
    let mut seen = Vec::new();
    let report = cg.solve(&a, &Identity, &b, &mut x, |iteration, norm| {
        assert_eq!(iteration, seen.len());
        seen.push(norm);
        if iteration == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    assert_eq!(report.outcome, Outcome::Interrupted);
    assert!((5..=5 + B::QUEUE_DEPTH.max(2 * B::CG_BURST)).contains(&report.iterations));
    assert_eq!(seen, cg.history());
    // The x so far is worth keeping: starting from it ends sooner, and the history starts at its residual.
    let first = report.residual_norm;
    let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    assert!(report.outcome.is_converged());
    assert!((cg.history()[0] / first - 1.0).abs() < 1e-6);
    // Stopped before it starts.
    let report = cg.solve(&a, &Identity, &b, &mut *backend.zeros(n)?, |_, _| ControlFlow::Break(()))?;
    assert_eq!((report.outcome, report.iterations), (Outcome::Interrupted, 0));
    Ok(())
}

/// Numbers whose squares overflow or underflow, in A and b.
fn extreme_scales<B: Device>(backend: &B) -> Result<()> {
    let plain = tridiagonal::<f64>(50, 2.5);
    let rhs: Vec<f64> = (0..50).map(|i| f64::from(i % 5) - 1.0).collect();
    let expected = run(backend, &plain, true, &rhs, vec![0.0; 50], defaults())?;
    for exponent in [-900, -200, 200, 900] {
        let scale = 2f64.powi(exponent);
        let b: Vec<f64> = rhs.iter().map(|b| b * scale).collect();
        // A x = scale b, bit for bit the scaled solution.
        let solved = run(backend, &plain, true, &b, vec![0.0; 50], defaults())?;
        assert_eq!(solved.report.iterations, expected.report.iterations);
        assert!(solved.x.iter().zip(&expected.x).all(|(x, e)| *x == e * scale), "2^{exponent}");
        // scale A x = scale b.
        let mut a = tridiagonal::<f64>(50, 2.5);
        a.values_mut().iter_mut().for_each(|v| *v *= scale);
        let solved = run(backend, &a, true, &b, vec![0.0; 50], defaults())?;
        assert!(solved.report.outcome.is_converged(), "2^{exponent}: {:?}", solved.report);
        assert_eq!(solved.x, expected.x, "2^{exponent}");
    }
    Ok(())
}

fn single_precision<B: Device>(backend: &B) -> Result<()> {
    let a = tridiagonal::<f32>(200, 2.1);
    for scale in [1e-30f32, 1.0, 1e30] {
        let b: Vec<f32> = (0..200).map(|i| (i % 11) as f32 * scale).collect();
        let solved = run(backend, &a, true, &b, vec![0.0; 200], defaults())?;
        assert!(solved.report.outcome.is_converged(), "{:?}", solved.report);
        assert!(solved.report.relative_residual <= 1e-5);
    }
    Ok(())
}

/// [3, i; -i, 3] blocks along the diagonal, coupled by complex phases.
fn hermitian(n: usize) -> Csr<Complex<f64>> {
    csr(n, |i| {
        let coupling = |i: usize| Complex::from_polar(1.0, i as f64);
        let mut row = vec![(i, Complex::new(2.2, 0.0))];
        if i > 0 {
            row.insert(0, (i - 1, coupling(i - 1).conj()));
        }
        if i + 1 < n {
            row.push((i + 1, coupling(i)));
        }
        row
    })
}

fn complex_hermitian<B: Device>(backend: &B) -> Result<()> {
    let n = 300;
    let a = hermitian(n);
    let x: Vec<Complex<f64>> = (0..n).map(|i| Complex::new((i % 5) as f64, (i % 3) as f64 - 1.0)).collect();
    let mut b = vec![Complex::default(); n];
    a.product(&Host, Complex::new(1.0, 0.0), &x, Complex::default(), &mut b)?;
    let solved = run(backend, &a, true, &b, vec![Complex::default(); n], defaults())?;
    assert!(solved.report.outcome.is_converged(), "{:?}", solved.report);
    let error: Vec<_> = solved.x.iter().zip(&x).map(|(a, b)| a - b).collect();
    assert!(norm(&error) < 1e-6 * norm(&x));
    // A unitary diagonal similarity makes it the real matrix of the same spectrum: the same iterations.
    let real = csr(n, |i| {
        let mut row = vec![(i, 2.2)];
        if i > 0 {
            row.insert(0, (i - 1, 1.0));
        }
        if i + 1 < n {
            row.push((i + 1, 1.0));
        }
        row
    });
    let mut phase = Complex::new(1.0, 0.0);
    let mut b = Vec::new();
    for i in 0..n {
        b.push(phase * (1.0 + (i % 4) as f64));
        phase *= Complex::from_polar(1.0, i as f64).conj();
    }
    let moduli: Vec<f64> = b.iter().map(|b| b.norm()).collect();
    let complex = run(backend, &a, false, &b, vec![Complex::default(); n], defaults())?;
    let real = run(backend, &real, false, &moduli, vec![0.0; n], defaults())?;
    assert!(complex.report.iterations.abs_diff(real.report.iterations) <= 1);
    Ok(())
}

fn matrix_free<B: Device>(backend: &B) -> Result<()> {
    // Any closure over the backend's own operations: here A = 3 I.
    let a = FunctionOperator::<f64, B, _>::new(20, 20, |backend, x, y| backend.axpby(3.0, x, 0.0, y));
    let (b, mut x) = (backend.upload(vec![1.5; 20])?, backend.zeros(20)?);
    let mut cg = Cg::new(backend, 20, defaults())?;
    let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 1));
    assert_eq!(backend.download(&x)?, [0.5; 20]);
    // Shapes that do not fit are refused.
    let wide = FunctionOperator::<f64, B, _>::new(20, 21, |_, _, _| Ok(()));
    let refused = cg.solve(&wide, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::Dimension { expected: 20, got: 21, .. })));
    let refused = cg.solve(&a, &Identity, &b, &mut *backend.zeros(19)?, |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::Dimension { expected: 20, got: 19, .. })));
    Ok(())
}

/// The textbook, one line at a time, on plain vectors.
fn textbook(a: &Csr<f64>, b: &[f64], iterations: usize) -> Vec<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let mut x = vec![0.0; b.len()];
    let (mut r, mut p, mut q) = (b.to_vec(), b.to_vec(), b.to_vec());
    let mut rho = dot(&r, &r);
    for _ in 0..iterations {
        a.product(&Host, 1.0, &p, 0.0, &mut q).unwrap();
        let alpha = rho / dot(&p, &q);
        for i in 0..b.len() {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        let next = dot(&r, &r);
        for i in 0..b.len() {
            p[i] = r[i] + next / rho * p[i];
        }
        rho = next;
    }
    x
}

fn recorded_iteration_is_the_textbook<B: Device>(backend: &B) -> Result<()> {
    // Large enough for several chunks and threads, and no multiple of anything.
    let a = csr(70_001, |i| {
        let mut row = vec![(i, 4.0 + (i % 9) as f64)];
        if i >= 173 {
            row.insert(0, (i - 173, -1.0));
        }
        if i + 173 < 70_001 {
            row.push((i + 173, -1.0));
        }
        row
    });
    let b: Vec<f64> = (0..70_001).map(|i| ((i * 31) % 101) as f64 - 50.0).collect();
    let options = || defaults().max_iterations(12).tolerance(1e-15);
    let solved = run(backend, &a, false, &b, vec![0.0; b.len()], options())?;
    let expected = textbook(&a, &b, 12);
    let error: Vec<f64> = solved.x.iter().zip(&expected).map(|(x, e)| x - e).collect();
    assert!(norm(&error) < 1e-12 * norm(&expected), "{:e}", norm(&error));
    // The same bits each time.
    let again = run(backend, &a, false, &b, vec![0.0; b.len()], options())?;
    assert_eq!((solved.x, solved.history), (again.x, again.history));
    Ok(())
}

on_every_backend!(
    converges_in_known_iterations,
    jacobi_equals_identity_on_a_constant_diagonal,
    a_diagonal_beyond_single_precision,
    fused_and_stored_preconditioner_agree,
    every_fault_has_its_outcome,
    a_matrix_in_units_far_from_one_is_not_called_indefinite,
    setup_without_memory,
    singular_systems,
    failed_solves_leave_no_larger_residual,
    unattainable_tolerance_stagnates,
    the_stagnation_window_is_the_callers_patience,
    preconditioner_that_is_not_positive_breaks_down,
    observer_sees_the_history_and_can_stop,
    extreme_scales,
    single_precision,
    complex_hermitian,
    matrix_free,
    recorded_iteration_is_the_textbook,
);

#[test]
fn the_number_of_threads_changes_no_bit() {
    let a = poisson2d(260);
    let b: Vec<f64> = (0..260 * 260).map(|i| f64::from(i % 13)).collect();
    let solve = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let solved =
            pool.install(|| run(&Host, &a, true, &b, vec![0.0; b.len()], defaults().max_iterations(40)));
        solved.unwrap().x
    };
    let one = solve(1);
    assert!(solve(2) == one && solve(5) == one);
}

#[test]
fn a_tolerance_that_means_nothing_is_refused() {
    use residua::krylov::{MultiCg, SolveOptions};
    for nonsense in [-1.0, f64::NAN, f64::INFINITY] {
        let options = [
            SolveOptions::default().tolerance(nonsense),
            SolveOptions::default().absolute_tolerance(nonsense),
        ];
        for options in options {
            let refused = Cg::<f64, Host>::new(&Host, 5, options.clone()).err();
            assert!(matches!(refused, Some(Error::InvalidArgument(_))), "{nonsense}: {refused:?}");
            assert!(MultiCg::<f64, Host>::new(&Host, 5, 2, options).is_err());
        }
    }
    assert!(Cg::<f64, Host>::new(&Host, 5, SolveOptions::default().tolerance(0.0)).is_ok());
}

#[test]
fn the_short_way() {
    let a = poisson2d(10);
    let solution = krylov::solve(&a, &times_ones(&a)).unwrap();
    assert!(solution.report.outcome.is_converged());
    assert_eq!(solution.history.len(), solution.report.iterations + 1);
    let solution = krylov::solve(&diagonal(&[1.0, -2.0]), &[3.0, 4.0]).unwrap();
    assert_eq!(solution.report.outcome, Outcome::NotPositiveDefinite { iteration: 0, curvature: -2.0 });
    assert_eq!((solution.report.residual_norm, solution.report.relative_residual), (5.0, 1.0));
}
