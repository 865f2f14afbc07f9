//! The solver: its options, errors and reports. The bodies are generic over the backend.

#[macro_use]
#[path = "../common/systems.rs"]
mod systems;

mod limits;
mod methods;
mod null_space;
mod orders;
mod patterns;
mod stopping;
mod transposed;

use num_complex::Complex;
use residua::krylov::Outcome;
use residua::prelude::*;
use residua::scalar::Symmetry;
use residua::solver::{Builder, Device as Where, Precision, PreconditionerChoice, Reorder, SolverBackend};
use residua::{Scalar, generate};
use std::ops::ControlFlow;
use std::time::Duration;
use systems::*;

/// A grid with an uneven diagonal, whose values no narrower type represents exactly.
fn uneven(k: usize) -> Csr<f64> {
    let mut a = poisson2d(k);
    scaled(&mut a, 0.1);
    a
}

/// Other values on the same pattern, positive definite as well.
fn scaled(a: &mut Csr<f64>, factor: f64) {
    let diagonal: Vec<bool> = a.iter().map(|(i, j, _)| i == j).collect();
    for (number, (value, diagonal)) in a.values_mut().iter_mut().zip(diagonal).enumerate() {
        *value = if diagonal { 4.0 + factor * (number % 5) as f64 } else { -1.0 };
    }
}

fn noise(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f64 / 500.0 - 1.0).collect()
}

/// The matrix with its rows and columns in random order.
fn shuffled(a: &Csr<f64>) -> Csr<f64> {
    let permutation = residua::graph::Permutation::random(a.rows(), 5).unwrap();
    residua::graph::permute_symmetric(a, &permutation).unwrap()
}

fn quick() -> Builder {
    Solver::builder().tolerance(1e-10)
}

/// Returns whether x solves A x = b to the tolerance, by a plain loop.
fn solves<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], tolerance: f64) -> bool {
    norm(&true_residual(a, b, x)) <= 1.01 * tolerance * norm(b)
}

fn every_setting_solves<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = uneven(20);
    let b = noise(400, 1);
    let mut builders = vec![
        quick(),
        quick().method(Method::Cg).stagnation_window(500).right_hand_sides(10),
        quick().absolute_tolerance(1e-9 * norm(&b)),
        quick().symmetry(Symmetry::Symmetric).time_limit(Duration::from_secs(1000)),
        quick().updates(true),
    ];
    for format in ["csr", "coo", "sell", "dia", "compressed"] {
        builders.push(quick().format(format));
    }
    for preconditioner in
        ["none", "jacobi", "block-jacobi", "block-jacobi:7", "fsai", "chebyshev", "chebyshev-single:5"]
    {
        builders.push(quick().preconditioner(preconditioner.parse()?));
    }
    for precision in [Precision::Mixed, Precision::Auto] {
        builders.push(quick().precision(precision));
    }
    for reorder in [Reorder::None, Reorder::Rcm] {
        builders.push(quick().reorder(reorder));
    }
    for builder in builders {
        let mut solver = builder.build_on(backend, backend.place(csr_copy(&a)))?;
        let solution = solver.solve(&b)?;
        let report = &solution.report;
        assert!(report.outcome.is_converged(), "{builder:?}: {report:?}");
        assert!(solves(&a, &b, &solution.x, 1e-9), "{builder:?}");
        assert_eq!(solution.history.len(), report.iterations + 1, "{builder:?}");
        assert!(report.backward_error.is_some_and(|error| error < 1e-9), "{report:?}");
        assert_eq!(
            (solver.rows(), solver.nonzeros(), solver.symmetry()),
            (400, a.nonzeros(), Symmetry::Symmetric)
        );
        assert_eq!(solver.device(), backend.description());
        // The same again: nothing of a solve changes the next.
        let again = solver.solve(&b)?;
        assert!(again.x == solution.x && again.report.iterations == report.iterations, "{builder:?}");
        // The trail includes all of these decisions.
        let trail = &report.trail;
        for subject in ["device", "symmetry", "order", "format"] {
            assert!(trail.decisions.iter().any(|d| d.subject == subject), "{subject}: {trail:?}");
        }
        let stage = &trail.stages[0];
        assert_eq!((stage.outcome, stage.iterations), (Some(Outcome::Converged), report.iterations));
        assert!(
            stage.predicted_bytes > Some(0.0) && stage.predicted_seconds > Some(0.0) && stage.bytes > 0.0,
            "{stage:?}"
        );
        assert_eq!((stage.method, stage.preconditioner), (report.method, report.preconditioner));
    }
    Ok(())
}

fn a_named_order_and_a_named_format_are_taken<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = shuffled(&uneven(25));
    let b = noise(625, 2);
    let mut solver =
        quick().reorder(Reorder::Rcm).format("sell").build_on(backend, backend.place(csr_copy(&a)))?;
    let solution = solver.solve(&b)?;
    assert!(solves(&a, &b, &solution.x, 1e-10) && solution.report.format == "sell");
    let order = solution.report.trail.decisions.iter().find(|d| d.subject == "order").unwrap();
    assert!(order.chosen.contains("reverse Cuthill-McKee: bandwidth"), "{order:?}");
    assert!(solution.report.seconds.reorder > 0.0);
    Ok(())
}

fn a_starting_vector_is_used<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = uneven(20);
    let b = noise(400, 3);
    for reorder in [Reorder::None, Reorder::Rcm] {
        let mut solver = quick().reorder(reorder).build_on(backend, backend.place(csr_copy(&a)))?;
        let mut x = vec![0.0; 400];
        assert!(solver.solve_into(&b, &mut x)?.iterations > 10);
        // Starting from the solution there is nothing to do, and x is not changed.
        let before = x.clone();
        let report = solver.solve_into(&b, &mut x)?;
        assert!(report.iterations == 0 && report.outcome.is_converged() && x == before);
        // An infinite start has its own outcome, and is not changed.
        x[7] = f64::INFINITY;
        assert_eq!(solver.solve_into(&b, &mut x)?.outcome, Outcome::NotFinite);
        assert!(x[7] == f64::INFINITY && x[8] == before[8]);
        // b = 0 has one solution.
        let report = solver.solve(&vec![0.0; 400])?;
        assert!(report.x.iter().all(|x| *x == 0.0) && report.report.backward_error == Some(0.0));
    }
    Ok(())
}

fn updates_are_as_good_as_a_new_solver<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let (plain, b) = (uneven(16), noise(256, 4));
    // Binary fractions: stored in half the width until the first update.
    let narrow = poisson2d(16);
    let mut cases = Vec::new();
    for a in [&plain, &narrow] {
        cases.push((quick(), csr_copy(a)));
        cases.push((quick().updates(true), csr_copy(a)));
        cases.push((quick().reorder(Reorder::Rcm), shuffled(a)));
        cases.push((quick().reorder(Reorder::Rcm).format("jds"), shuffled(a)));
        for format in ["sell", "compressed", "dia"] {
            cases.push((quick().format(format), csr_copy(a)));
        }
        for name in ["none", "block-jacobi:4", "fsai", "chebyshev:3", "chebyshev-single:3"] {
            cases.push((quick().preconditioner(name.parse()?), csr_copy(a)));
        }
        for precision in [Precision::Mixed, Precision::Auto] {
            cases.push((quick().precision(precision), csr_copy(a)));
        }
    }
    for (builder, mut a) in cases {
        let mut solver = builder.build_on(backend, backend.place(csr_copy(&a)))?;
        for round in 0..3 {
            scaled(&mut a, 0.3 + round as f64);
            let values = a.parts().values.to_vec();
            if round == 1 {
                let there = backend.upload(values)?;
                solver.update_on(backend, &there)?;
            } else {
                solver.update(&values)?;
            }
            let solution = solver.solve(&b)?;
            assert!(solution.report.outcome.is_converged(), "{builder:?}, {round}: {:?}", solution.report);
            assert!(solves(&a, &b, &solution.x, 1e-10), "{builder:?}, round {round}");
            assert!(solution.report.seconds.update > 0.0);
        }
        assert!(solver.update(&[1.0]).is_err());
    }
    Ok(())
}

/// New values may make a matrix indefinite, and definite again.
fn an_update_may_spoil_and_mend<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let mut solver = quick().method(Method::Cg).build_on(backend, backend.place(diagonal(&[1.0, 2.0])))?;
    for (values, outcome) in [
        ([3.0, 4.0], Outcome::Converged),
        ([3.0, -4.0], Outcome::NotPositiveDefinite { iteration: 0, curvature: -4.0 }),
        ([5.0, 0.0], Outcome::NotPositiveDefinite { iteration: 0, curvature: 0.0 }),
        ([5.0, 6.0], Outcome::Converged),
    ] {
        solver.update(&values)?;
        assert_eq!(solver.solve(&[1.0, 1.0])?.report.outcome, outcome);
    }
    Ok(())
}

fn several_right_hand_sides<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    // With rows of 27 entries it is worth reading the matrix once for all right-hand sides.
    let a = generate::poisson3d_27(7, 7, 7)?;
    let n = a.rows();
    for (builder, count) in [
        (quick().right_hand_sides(6), 6),
        (quick(), 3),
        (quick().right_hand_sides(12).reorder(Reorder::Rcm), 12),
        (quick().right_hand_sides(5).precision(Precision::Mixed), 5),
    ] {
        let mut solver = builder.build_on(backend, backend.place(csr_copy(&a)))?;
        let b: Vec<f64> = (0..count).flat_map(|k| noise(n, k)).collect();
        let mut x = vec![0.0; n * count];
        let mut heard = vec![0; count];
        let reports = solver.solve_many_with(&b, &mut x, |progress| {
            heard[progress.right_hand_side] += 1;
            ControlFlow::Continue(())
        })?;
        assert_eq!(reports.len(), count);
        for (k, report) in reports.iter().enumerate() {
            let own = k * n..(k + 1) * n;
            assert!(report.outcome.is_converged(), "{builder:?}: {report:?}");
            assert!(solves(&a, &b[own.clone()], &x[own], 1e-10), "{builder:?}, {k}");
            assert_eq!(solver.history_of(k).len(), report.iterations + 1, "{builder:?}, {k}");
            assert!(heard[k] > report.iterations, "{builder:?}: {heard:?}");
        }
        // The same with vectors of the backend, starting from the solutions: nothing is left to do.
        let (there_b, mut there_x) = (backend.upload(b.clone())?, backend.upload(x.clone())?);
        let reports = solver.solve_many_on(backend, &there_b, &mut there_x)?;
        assert!(reports.iter().all(|report| report.iterations == 0 && report.outcome.is_converged()));
        assert_eq!(backend.download(&there_x)?, x);
        // Sizes that do not fit.
        assert!(
            solver.solve_many(&b[1..], &mut x).is_err() && solver.solve_many(&b[1..], &mut x[1..]).is_err()
        );
        assert!(solver.solve_many(&[], &mut [])?.is_empty());
    }
    Ok(())
}

fn a_solve_can_be_ended<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let a = uneven(40);
    let b = noise(1600, 5);
    let mut solver = quick().tolerance(0.0).build_on(backend, backend.place(csr_copy(&a)))?;
    let mut x = vec![0.0; 1600];
    // Stopped by the observer, which is called at the start and after each iteration.
    let mut heard = Vec::new();
    let report = solver.solve_with(&b, &mut x, |progress| {
        heard.push(progress.iteration);
        assert_eq!((progress.method, progress.right_hand_side), (Method::Cg, 0));
        assert!((progress.first_residual_norm / norm(&b) - 1.0).abs() < 1e-12);
        if progress.iteration >= 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    assert_eq!(report.outcome, Outcome::Interrupted);
    assert!(heard.iter().enumerate().all(|(k, &iteration)| k == iteration) && heard.len() >= 6);
    assert!(report.relative_residual < 1.0 && norm(&true_residual(&a, &b, &x)) < norm(&b));
    // The stop comes from another thread, here before the start; after that, no iterations are done.
    let canceller = solver.canceller();
    std::thread::spawn(move || canceller.cancel()).join().unwrap();
    let report = solver.solve_into(&b, &mut x)?;
    assert_eq!((report.outcome, report.iterations), (Outcome::Interrupted, 0));
    let reports =
        solver.solve_many(&[b.clone(), b.clone()].concat(), &mut [x.clone(), x.clone()].concat())?;
    assert!(reports.iter().all(|report| report.outcome == Outcome::Interrupted));
    assert!(solver.canceller().is_cancelled());
    solver.canceller().reset();
    assert_ne!(solver.solve_into(&b, &mut x)?.outcome, Outcome::Interrupted);
    // Stopped by the clock.
    let mut late = quick().time_limit(Duration::ZERO).build_on(backend, backend.place(csr_copy(&a)))?;
    let report = late.solve(&b)?.report;
    assert_eq!((report.outcome, report.iterations), (Outcome::TimeLimit, 0));
    assert_eq!(report.outcome.status(), "time_limit");
    // Stopped by the number of iterations.
    let mut short = quick().max_iterations(7).build_on(backend, backend.place(csr_copy(&a)))?;
    let report = short.solve(&b)?.report;
    assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, 7));
    Ok(())
}

/// A system that half the precision cannot solve is solved in full precision, within one report.
fn a_fault_goes_on_with_the_next_stage<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let stiff = csr(2, |i| {
        let off = (1 - i, 0.999_999_98);
        if i == 0 { vec![(0, 1.0), off] } else { vec![off, (1, 1.0)] }
    });
    let builder = Solver::builder().tolerance(1e-6).precision(Precision::Auto);
    let mut solver = builder.build_on(backend, backend.place(csr_copy(&stiff)))?;
    let b = [0.3, -0.7];
    let mut iterations = Vec::new();
    let mut x = [0.0; 2];
    let report = solver.solve_with(&b, &mut x, |progress| {
        iterations.push(progress.iteration);
        ControlFlow::Continue(())
    })?;
    assert!(report.outcome.is_converged() && solves(&stiff, &b, &x, 1e-6), "{report:?}");
    let [first, second, ..] = &report.trail.stages[..] else { panic!("two stages: {:?}", report.trail) };
    assert_eq!((first.precision, second.precision), (Precision::Mixed, Precision::Double));
    assert!(first.outcome.is_some_and(|outcome| !outcome.is_converged()), "{first:?}");
    assert_eq!(second.outcome, Some(Outcome::Converged));
    assert_eq!(
        (report.precision, report.iterations),
        (Precision::Double, first.iterations + second.iterations)
    );
    assert_eq!(solver.history().len(), report.iterations + 1);
    assert_eq!(iterations, (0..=report.iterations).collect::<Vec<_>>());
    // A stage that failed is not tried again, until there are other values.
    let again = solver.solve(&b)?.report;
    assert!(again.outcome.is_converged() && again.trail.stages[0].outcome.is_none(), "{again:?}");
    assert!(report.trail.stages[0].outcome.is_some(), "a report that was given out stays as it is");
    let mut mixed = builder.precision(Precision::Mixed).build_on(backend, backend.place(stiff))?;
    assert!(!mixed.solve(&b)?.report.outcome.is_converged());
    Ok(())
}

fn what_is_not_positive_definite<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let builder = Solver::builder().method(Method::Cg);
    let mut solver = builder.build_on(backend, backend.place(diagonal(&[1.0, -2.0])))?;
    let solution = solver.solve(&[3.0, 4.0])?;
    assert_eq!(solution.report.outcome, Outcome::NotPositiveDefinite { iteration: 0, curvature: -2.0 });
    assert_eq!((solution.report.residual_norm, solution.report.relative_residual), (5.0, 1.0));
    // A start is neither lost nor made worse, and its residual is reported.
    let mut x = [3.0, 0.0];
    let report = solver.solve_into(&[3.0, 4.0], &mut x)?;
    assert_eq!((x, report.residual_norm, report.relative_residual), ([3.0, 0.0], 4.0, 0.8));
    // A start that is a solution is accepted, whatever the matrix.
    let mut x = [3.0, -2.0];
    assert!(solver.solve_into(&[3.0, 4.0], &mut x)?.outcome.is_converged());
    Ok(())
}

fn complex_and_single<B: Device + SolverBackend>(backend: &B) -> Result<()> {
    let i = Complex::new(0.0, 1.0);
    let hermitian = csr(60, |row| {
        let mut entries = vec![(row, Complex::new(4.0, 0.0))];
        if row > 0 {
            entries.insert(0, (row - 1, i));
        }
        if row + 1 < 60 {
            entries.push((row + 1, -i));
        }
        entries
    });
    let b: Vec<_> = noise(60, 6).into_iter().zip(noise(60, 7)).map(|(re, im)| Complex::new(re, im)).collect();
    let mut solver = quick().build_on(backend, backend.place(csr_copy(&hermitian)))?;
    let solution = solver.solve(&b)?;
    assert!(solution.report.outcome.is_converged() && solves(&hermitian, &b, &solution.x, 1e-10));
    assert_eq!(solver.symmetry(), Symmetry::Hermitian);
    // In single precision there is no narrower precision: a request for it gets full precision.
    let single = tridiagonal::<f32>(300, 2.1);
    let b = vec![1.0_f32; 300];
    for precision in [Precision::Double, Precision::Mixed, Precision::Auto] {
        let builder = Solver::builder().precision(precision);
        let mut solver = builder.build_on(backend, backend.place(csr_copy(&single)))?;
        let solution = solver.solve(&b)?;
        assert!(solution.report.outcome.is_converged(), "{:?}", solution.report);
        assert!(norm(&true_residual(&single, &b, &solution.x)) <= 2e-5 * norm(&b));
        assert_eq!(solution.report.precision, Precision::Double);
    }
    Ok(())
}

on_every_backend!(
    every_setting_solves,
    a_named_order_and_a_named_format_are_taken,
    a_starting_vector_is_used,
    updates_are_as_good_as_a_new_solver,
    an_update_may_spoil_and_mend,
    several_right_hand_sides,
    a_solve_can_be_ended,
    a_fault_goes_on_with_the_next_stage,
    what_is_not_positive_definite,
    complex_and_single,
);

#[test]
fn a_matrix_is_taken_over_or_copied() {
    let a = uneven(10);
    let b = noise(100, 8);
    let borrowed = Solver::builder().build(&a).unwrap().solve(&b).unwrap();
    assert!(solves(&a, &b, &borrowed.x, 1e-8));
    let owned = Solver::builder().device(Where::Cpu).build(a).unwrap().solve(&b).unwrap();
    assert!(owned.x == borrowed.x && owned.report.device.starts_with("cpu"));
    // Such a small system is solved on the CPU, and the trail says so.
    let device = &borrowed.report.trail.decisions[0];
    assert!(device.subject == "device" && device.why.contains("too small for a GPU"), "{device:?}");
}

#[test]
fn what_makes_no_sense_is_refused_with_advice() {
    let a = || uneven(5);
    let refused = |builder: Builder, words: &str| {
        let error = builder.build(a()).expect_err(words).to_string();
        assert!(error.contains(words), "{words}: {error}");
    };
    for (tolerance, words) in [(-1.0, "at least 0"), (f64::NAN, "at least 0"), (f64::INFINITY, "at least 0")]
    {
        refused(Solver::builder().tolerance(tolerance), words);
        refused(Solver::builder().absolute_tolerance(tolerance), words);
    }
    refused(Solver::builder().format("dense"), "choose auto, ");
    refused(Solver::builder().right_hand_sides(0), "at least 1");
    refused(Solver::builder().preconditioner(PreconditionerChoice::Chebyshev(0)), "1 to 64");
    refused(Solver::builder().preconditioner(PreconditionerChoice::BlockJacobi(Some(33))), "1 to 32");
    refused(Solver::builder().device(Where::Cuda(77)), "");
    refused(Solver::builder().method(Method::Gmres).precision(Precision::Mixed), "use cg or auto");
    // Matrices that no method can solve.
    let build = |a: Csr<f64>| Solver::builder().method(Method::Cg).build(a).expect_err("refused").to_string();
    let tall = Csr::from_parts(2, 1, vec![0, 1, 1], vec![0], vec![1.0]).unwrap();
    assert!(build(tall).contains("2 x 1 is not square"));
    let unsymmetric = csr(2, |i| if i == 0 { vec![(0, 1.0), (1, 7.0)] } else { vec![(1, 1.0)] });
    assert!(build(unsymmetric).contains("entry (1, 2) is 7"));
    // Vectors with wrong lengths.
    let mut solver = Solver::builder().build(a()).unwrap();
    let mut x = [0.0; 25];
    assert!(matches!(solver.solve(&[1.0; 24]), Err(Error::Dimension { expected: 25, got: 24, .. })));
    assert!(matches!(solver.solve_into(&[1.0; 25], &mut x[1..]), Err(Error::Dimension { .. })));
    assert!(matches!(solver.update(&[1.0]), Err(Error::Dimension { .. })));
    // The solver remains usable.
    assert!(solver.solve(&[1.0; 25]).unwrap().report.outcome.is_converged());
}

#[cfg(feature = "cuda")]
#[test]
fn buffers_of_another_device_are_refused() {
    let Some(cuda) = systems::device::device() else { return };
    use residua::Backend;
    let mut solver = Solver::builder().device(Where::Cpu).build(uneven(5)).unwrap();
    let (b, mut x) = (cuda.upload(vec![1.0; 25]).unwrap(), cuda.zeros(25).unwrap());
    assert!(matches!(solver.solve_on(&cuda, &b, &mut x), Err(Error::InvalidArgument(_))));
    let mut there = Solver::builder().device(Where::Cuda(cuda.ordinal())).build(uneven(5)).unwrap();
    assert!(there.solve_on(&cuda, &b, &mut x).unwrap().outcome.is_converged());
    assert!(there.solve_on(&Host, &[1.0; 25], &mut [0.0; 25]).is_err());
    assert!(there.solve(&[1.0; 25]).unwrap().x == cuda.download(&x).unwrap());
}

#[test]
fn an_empty_system_is_solved() {
    let a = Csr::<f64>::from_parts(0, 0, vec![0], Vec::new(), Vec::new()).unwrap();
    let solution = Solver::builder().build(a).unwrap().solve(&[]).unwrap();
    assert!(solution.x.is_empty() && solution.report.outcome.is_converged());
}

#[test]
fn a_solver_goes_to_another_thread() {
    let mut solver = Solver::builder().build(uneven(5)).unwrap();
    let solve = move || solver.solve(&[1.0; 25]).unwrap().report.outcome.is_converged();
    assert!(std::thread::spawn(solve).join().unwrap());
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (a, b) = (uneven(120), noise(14_400, 9));
    let solve = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        // The format is named, because one that is chosen by measurements may differ the next time.
        let builder = Solver::builder().device(Where::Cpu).format("csr").max_iterations(40);
        pool.install(|| builder.build(&a).unwrap().solve(&b).unwrap().x)
    };
    let one = solve(1);
    assert!(solve(2) == one && solve(5) == one);
}

#[test]
fn a_solve_that_was_stopped_while_it_factorised_can_be_asked_for_again() -> Result<()> {
    use residua::work::Work;
    let a = generate::convection_diffusion([60, 60, 1], 1e-2)?;
    let b = noise(a.rows(), 3);
    let mut solver = Solver::builder().method(Method::Direct).device(Where::Cpu).build(&a)?;
    let mut x = vec![0.0; a.rows()];
    let stopped = Work::default();
    stopped.stop();
    match stopped.run(|| solver.solve_into(&b, &mut x)) {
        Ok(report) => assert_eq!(report.outcome, Outcome::Interrupted),
        Err(error) => assert!(matches!(error, Error::Stopped), "{error}"),
    }
    let report = Work::default().run(|| solver.solve_into(&b, &mut x))?;
    assert!(report.outcome.is_converged() && solves(&a, &b, &x, 1e-8), "{report:?}");
    // The same for a setup: nothing of it is left, and another one is as good as the first.
    assert!(matches!(stopped.set_up(|| Solver::builder().build(&a)), Err(Error::Stopped)));
    Ok(())
}
