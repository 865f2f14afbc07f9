//! Conjugate gradients: known iteration counts, every outcome (`common/outcomes.rs`), and the same bits in whichever
//! way they run. The bodies are generic over the backend.

#[macro_use]
#[path = "common/systems.rs"]
mod systems;
#[path = "common/outcomes.rs"]
mod outcomes;

use num_complex::Complex;
use outcomes::*;
use residua::backend::{Inverse, KrylovSteps, RowFacts};
use residua::krylov::{Cg, Outcome};
use residua::operator::FunctionOperator;
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Csr, Error, Host, Result, Scalar};
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
    // Thirds are rounded in single precision, so it takes a second iteration.
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
    // The diagonal is not read: no bit differs, whatever its values are.
    assert_eq!(plain.report.bytes_per_iteration, jacobi.report.bytes_per_iteration);
    assert_eq!(plain.x, jacobi.x);
    // With another number in one row, the last, it is read.
    let mut uneven = poisson2d(40);
    *uneven.values_mut().last_mut().unwrap() = 5.0;
    let jacobi = run(backend, &uneven, true, &b, vec![0.0; 1600], defaults())?;
    assert_eq!(plain.report.bytes_per_iteration + 2 * 4 * 1600, jacobi.report.bytes_per_iteration);
    // After an update the diagonal is examined again.
    let mut a = backend.place(uneven);
    let mut m = Jacobi::new(backend, &a)?;
    assert!(matches!(Preconditioner::<f64, B>::fused(&m), Some(Inverse::Rounded(_))));
    backend.write(poisson2d(40).parts().values, a.values_mut())?;
    m.update(backend, &a)?;
    assert!(matches!(Preconditioner::<f64, B>::fused(&m), Some(Inverse::Identity)));
    Ok(())
}

/// Reciprocals outside the normal range of single precision are read in double precision.
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

/// Jacobi with only the method `apply`, and a number of bytes that it claims to move in addition to its own.
struct Stored<T: Scalar, B: KrylovSteps + RowFacts>(Jacobi<T, B>, usize);

impl<T: Scalar, B: KrylovSteps + RowFacts> Preconditioner<T, B> for Stored<T, B> {
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
    // If iterations take long, fewer are queued ahead, which changes nothing.
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

fn observer_sees_the_history_and_can_stop<B: Device>(backend: &B) -> Result<()> {
    // Large enough that the end is far off, even for a backend that is many iterations ahead.
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
    assert!((5..=5 + B::QUEUE_DEPTH.max(2 * B::PERSISTENT_ITERATIONS)).contains(&report.iterations));
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
    // Any closure with the backend's own operations: here A = 3 I.
    let a = FunctionOperator::<f64, B, _>::new(20, 20, |backend, x, y| backend.axpby(3.0, x, 0.0, y));
    let (b, mut x) = (backend.upload(vec![1.5; 20])?, backend.zeros(20)?);
    let mut cg = Cg::new(backend, 20, defaults())?;
    let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 1));
    assert_eq!(backend.download(&x)?, [0.5; 20]);
    // Shapes that do not match are errors.
    let wide = FunctionOperator::<f64, B, _>::new(20, 21, |_, _, _| Ok(()));
    let refused = cg.solve(&wide, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::Dimension { expected: 20, got: 21, .. })));
    let refused = cg.solve(&a, &Identity, &b, &mut *backend.zeros(19)?, |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(Error::Dimension { expected: 20, got: 19, .. })));
    Ok(())
}

/// The textbook's algorithm, one line at a time, on plain vectors.
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
    let solution = residua::solve(&a, &times_ones(&a)).unwrap();
    assert!(solution.report.outcome.is_converged());
    assert_eq!(solution.history.len(), solution.report.iterations + 1);
    let solution = residua::solve(&diagonal(&[1.0, -2.0]), &[3.0, 4.0]).unwrap();
    // Conjugate gradients cannot solve it, but the next method can.
    assert_eq!((solution.report.outcome, solution.x), (Outcome::Converged, vec![3.0, -2.0]));
}
