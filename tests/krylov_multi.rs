//! Several right-hand sides at once: each gives the same result as alone, whatever the others do. The bodies are
//! generic over the backend.

#[macro_use]
#[path = "common/systems.rs"]
mod systems;

use num_complex::Complex;
use residua::backend::Products;
use residua::krylov::{Cg, FixedPatternCg, MultiCg, Outcome, Report, SolveOptions};
use residua::operator::FunctionOperator;
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Csr, Error, Host, LinearOperator, Result, Scalar};
use std::mem::discriminant;
use std::ops::ControlFlow;
use systems::*;

/// A grid whose diagonal is uneven, so that Jacobi is more than a scalar factor.
fn grid(k: usize) -> Csr<f64> {
    let mut a = poisson2d(k);
    let diagonal: Vec<usize> =
        a.iter().enumerate().filter(|(_, (i, j, _))| i == j).map(|(place, _)| place).collect();
    diagonal.iter().enumerate().for_each(|(i, &place)| a.values_mut()[place] = 4.0 + (i % 5) as f64);
    a
}

fn noise(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f64 / 500.0 - 1.0).collect()
}

/// Right-hand sides and starting vectors, one after another.
#[derive(Clone, Default)]
struct Columns<T> {
    b: Vec<T>,
    x: Vec<T>,
}

impl<T: Scalar> Columns<T> {
    fn add(&mut self, b: Vec<T>, x: Vec<T>) {
        self.b.extend(b);
        self.x.extend(x);
    }
}

struct Together<T> {
    x: Vec<T>,
    reports: Vec<Report>,
    histories: Vec<Vec<f64>>,
}

fn preconditioner<T: Scalar, B: Device>(
    backend: &B,
    a: &Csr<T, B>,
    jacobi: bool,
) -> Result<Box<dyn Preconditioner<T, B>>> {
    Ok(if jacobi { Box::new(Jacobi::new(backend, a)?) } else { Box::new(Identity) })
}

/// Solves on the backend with a solver for `systems`.
fn together<T: Scalar, B: Device>(
    backend: &B,
    a: &Csr<T>,
    jacobi: bool,
    columns: &Columns<T>,
    systems: usize,
    options: SolveOptions,
) -> Result<Together<T>> {
    let a = backend.place(csr_copy(a));
    let m = preconditioner(backend, &a, jacobi)?;
    let (b, mut x) = (backend.upload(columns.b.clone())?, backend.upload(columns.x.clone())?);
    let mut cg = MultiCg::new(backend, a.rows(), systems, options)?;
    let reports = cg.solve(&a, &*m, &b, &mut x, |_, _, _| ControlFlow::Continue(()))?.to_vec();
    let histories = (0..reports.len()).map(|system| cg.history(system).to_vec()).collect();
    Ok(Together { x: backend.download(&x)?, reports, histories })
}

/// Solves all together, and each alone, and compares.
fn compare<T: Scalar, B: Device>(
    backend: &B,
    what: &str,
    a: &Csr<T>,
    jacobi: bool,
    columns: &Columns<T>,
    systems: usize,
    options: SolveOptions,
) -> Result<Together<T>> {
    let n = a.rows();
    let all = together(backend, a, jacobi, columns, systems, options.clone())?;
    assert_eq!(all.reports.len(), columns.b.len() / n, "{what}");
    for (system, report) in all.reports.iter().enumerate() {
        let what = format!("{what}, system {system}");
        let own = system * n..(system + 1) * n;
        let (b, x) = (&columns.b[own.clone()], &all.x[own.clone()]);
        let alone = run(backend, a, jacobi, b, columns.x[own].to_vec(), options.clone())?;
        let expected = &alone.report;
        assert_eq!(
            discriminant(&report.outcome),
            discriminant(&expected.outcome),
            "{what}: {report:?} for {expected:?}"
        );
        assert!(
            report.iterations.abs_diff(expected.iterations) <= 1 + expected.iterations / 50,
            "{what}: {report:?} for {expected:?}"
        );
        let history = &all.histories[system];
        assert!(
            history.len() == alone.history.len() || report.iterations != expected.iterations,
            "{what}: {} norms for {}",
            history.len(),
            alone.history.len()
        );
        for (there, here) in history.iter().zip(&alone.history).take(6) {
            assert!(
                (there - here).abs() <= 1e-4 * here + 1e-12 * history[0],
                "{what}: {there:e} for {here:e}"
            );
        }
        assert_eq!(report.residual_norm.is_nan(), expected.residual_norm.is_nan(), "{what}");
        if report.residual_norm.is_finite() {
            let residual = norm(&true_residual(a, b, x));
            assert!(
                (residual - report.residual_norm).abs() <= 0.01 * residual + 1e-12 * norm(b),
                "{what}: {report:?} but {residual:e}"
            );
        }
        if report.outcome.is_converged() {
            let error: Vec<T> = x.iter().zip(&alone.x).map(|(&x, &y)| x - y).collect();
            assert!(norm(&error) <= 1e-5 * norm(&alone.x), "{what}: {:e}", norm(&error));
        }
    }
    Ok(all)
}

/// Systems that end at different times, and some that are solved at the start, by their numbers.
fn mixed(a: &Csr<f64>, count: usize) -> Columns<f64> {
    let n = a.rows();
    let mut columns = Columns::default();
    for system in 0..count {
        match system % 8 {
            1 => columns.add(vec![0.0; n], noise(n, system)), // b = 0
            2 => columns.add(times_ones(a), vec![1.0; n]),    // x0 exact
            3 => {
                let mut b = noise(n, system);
                b[n / 2] = f64::NAN;
                columns.add(b, vec![0.0; n]);
            }
            4 => {
                // Almost solved.
                columns
                    .add(times_ones(a), (0..n).map(|i| 1.0 + if i == n / 3 { 1e-6 } else { 0.0 }).collect());
            }
            5 => {
                let mut x = noise(n, system);
                x[0] = f64::INFINITY;
                columns.add(noise(n, 3), x);
            }
            6 => columns.add(noise(n, system).iter().map(|b| b * 1e-170).collect(), vec![0.0; n]),
            7 => columns.add(noise(n, system).iter().map(|b| b * 1e150).collect(), vec![0.0; n]),
            _ => columns.add(noise(n, system), noise(n, system + 1)),
        }
    }
    columns
}

fn each_as_alone<B: Device>(backend: &B) -> Result<()> {
    for side in [1, 2, 23] {
        let a = grid(side);
        for count in [1, 2, 3, 8, 17, 32] {
            for jacobi in [false, true] {
                let what = format!("{side}^2, {count} systems, jacobi {jacobi}");
                let all = compare(backend, &what, &a, jacobi, &mixed(&a, count), count, defaults())?;
                let finite = |number: usize| !matches!(number % 8, 3 | 5);
                for (number, report) in all.reports.iter().enumerate() {
                    assert_eq!(report.outcome.is_converged(), finite(number), "{what} {number} {report:?}");
                }
            }
        }
    }
    Ok(())
}

/// Larger than a block or a chunk, ragged, and fewer systems than there is room for.
fn large_and_ragged<B: Device>(backend: &B) -> Result<()> {
    let n = 20_011;
    let a = csr(n, |i| {
        let mut row = vec![(i, 3.0 + (i % 9) as f64)];
        if i >= 173 {
            row.insert(0, (i - 173, -1.0));
        }
        if i + 173 < n {
            row.push((i + 173, -1.0));
        }
        row
    });
    for (count, room) in [(8, 8), (3, 3), (5, 8), (2, 31)] {
        let mut columns = Columns::default();
        (0..count).for_each(|system| columns.add(noise(n, system), vec![0.0; n]));
        let what = format!("{count} of {room}");
        let all = compare(backend, &what, &a, true, &columns, room, defaults())?;
        assert!(all.reports.iter().all(|report| report.outcome.is_converged()));
        // The same bits each time.
        let again = together(backend, &a, true, &columns, room, defaults())?;
        assert!(all.x == again.x && all.histories == again.histories, "{what}");
    }
    // A row that is much longer than the others, so that rows are divided.
    let arrow = csr(3000, |i| match i {
        0 => (0..3000).map(|j| (j, if j == 0 { 4000.0 } else { -1.0 })).collect(),
        i => vec![(0, -1.0), (i, 2.0 + (i % 3) as f64)],
    });
    let mut columns = Columns::default();
    (0..6).for_each(|system| columns.add(noise(3000, system), vec![0.0; 3000]));
    compare(backend, "arrow", &arrow, true, &columns, 6, defaults())?;
    Ok(())
}

fn not_positive_definite<B: Device>(backend: &B) -> Result<()> {
    // Some right-hand sides meet the negative eigenvalue, others never.
    let mut entries = vec![2.0; 40];
    entries[7] = -1.0;
    (0..40).for_each(|i| entries[i] *= 1.0 + (i % 4) as f64);
    let a = diagonal(&entries);
    let mut columns = Columns::default();
    for system in 0..5 {
        let mut b = noise(40, system);
        if system % 2 == 0 {
            b[7] = 0.0;
        }
        columns.add(b, vec![0.0; 40]);
    }
    let all = compare(backend, "indefinite", &a, false, &columns, 5, defaults())?;
    for (system, report) in all.reports.iter().enumerate() {
        assert_eq!(report.outcome.is_converged(), system % 2 == 0, "{system}: {report:?}");
    }
    let negative = diagonal(&[-2.0; 6]);
    let mut columns = Columns::default();
    (0..3).for_each(|system| columns.add(noise(6, system), vec![0.0; 6]));
    let all = compare(backend, "negative", &negative, false, &columns, 3, defaults())?;
    for report in all.reports {
        let Outcome::NotPositiveDefinite { iteration: 1, curvature } = report.outcome else {
            panic!("{report:?}")
        };
        assert!((curvature + 2.0).abs() < 1e-12, "{curvature}");
    }
    Ok(())
}

fn limits_and_unattainable_tolerances<B: Device>(backend: &B) -> Result<()> {
    let a = grid(31);
    let mut columns = Columns::default();
    (0..4).for_each(|system| columns.add(noise(961, system), vec![0.0; 961]));
    columns.add(times_ones(&a), vec![1.0; 961]);
    for limit in [0, 1, 3, 7, 20] {
        let options = defaults().max_iterations(limit);
        let all = compare(backend, &format!("limit {limit}"), &a, true, &columns, 5, options)?;
        for report in &all.reports[..4] {
            assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, limit));
        }
        assert_eq!(all.histories[0].len(), limit + 1);
        assert_eq!((all.reports[4].outcome, all.reports[4].iterations), (Outcome::Converged, 0));
    }
    for tolerance in [1e-13, 1e-18, 0.0] {
        let all = together(backend, &a, true, &columns, 5, defaults().tolerance(tolerance))?;
        for report in &all.reports[..4] {
            assert_eq!(report.outcome.is_converged(), tolerance == 1e-13, "{report:?}");
            assert!(report.relative_residual < 1e-13, "{report:?}");
        }
    }
    Ok(())
}

fn an_observer_stops_all<B: Device>(backend: &B) -> Result<()> {
    // Hundreds of iterations: more than a backend queues ahead.
    let host = tridiagonal::<f64>(961, 2.0);
    let a = backend.place(csr_copy(&host));
    let m = Jacobi::new(backend, &a)?;
    for (at, by) in [(0, 0), (0, 2), (9, 1)] {
        let b: Vec<f64> = (0..4).flat_map(|system| noise(961, system)).collect();
        let (b, mut x) = (backend.upload(b)?, backend.zeros(4 * 961)?);
        let mut cg = MultiCg::new(backend, 961, 4, defaults())?;
        let mut seen = Vec::new();
        let reports = cg.solve(&a, &m, &b, &mut x, |system, iteration, _| {
            seen.push((system, iteration));
            if (iteration, system) == (at, by) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let reports = reports.to_vec();
        assert_eq!(reports.len(), 4);
        for (system, report) in reports.iter().enumerate() {
            assert_eq!(report.outcome, Outcome::Interrupted, "{at} {by}");
            let late = report.iterations.checked_sub(at);
            assert!(late.is_some_and(|late| late <= B::QUEUE_DEPTH * B::RECORDED) || at == 0, "{report:?}");
            // The last norm in the history is that of x.
            let Some(told) = cg.history(system).last() else { continue };
            assert!((told - report.residual_norm).abs() <= 1e-6 * told, "{report:?} but {told:e}");
            assert_eq!(cg.history(system).len(), report.iterations + 1);
        }
        assert!(seen.contains(&(by, at)));
        // The next solve is complete.
        let reports = cg.solve(&a, &m, &b, &mut x, |_, _, _| ControlFlow::Continue(()))?;
        assert!(reports.iter().all(|report| report.outcome.is_converged()));
    }
    Ok(())
}

fn complex_and_single<B: Device>(backend: &B) -> Result<()> {
    // Hermitian: a path with phases.
    let n = 301;
    let turn = Complex::new(0.6, 0.8);
    let a = csr(n, |i| {
        let mut row = vec![(i, Complex::new(2.5 + (i % 3) as f64, 0.0))];
        if i > 0 {
            row.insert(0, (i - 1, -turn.conj()));
        }
        if i + 1 < n {
            row.push((i + 1, -turn));
        }
        row
    });
    for count in [2, 3, 8] {
        let mut columns = Columns::default();
        for system in 0..count {
            let (re, im) = (noise(n, system), noise(n, system + 100));
            columns.add(
                re.iter().zip(im).map(|(&re, im)| Complex::new(re, im)).collect(),
                vec![Complex::default(); n],
            );
        }
        for jacobi in [false, true] {
            let all = compare(backend, "hermitian", &a, jacobi, &columns, count, defaults())?;
            assert!(all.reports.iter().all(|report| report.outcome.is_converged()));
        }
        let low = a.map(|v| Complex::new(v.re as f32, v.im as f32));
        let narrow =
            |v: &Vec<Complex<f64>>| v.iter().map(|v| Complex::new(v.re as f32, v.im as f32)).collect();
        let columns = Columns { b: narrow(&columns.b), x: narrow(&columns.x) };
        let all = together(backend, &low, true, &columns, count, defaults())?;
        assert!(all.reports.iter().all(|report| report.outcome.is_converged()), "{:?}", all.reports);
    }
    let a = grid(20).map(|v| v as f32);
    for count in [2, 4, 7] {
        let mut columns = Columns::<f32>::default();
        for system in 0..count {
            columns.add(noise(400, system).iter().map(|&v| v as f32).collect(), vec![0.0; 400]);
        }
        let all = together(backend, &a, true, &columns, count, defaults())?;
        assert!(all.reports.iter().all(|report| report.outcome.is_converged()), "{:?}", all.reports);
    }
    Ok(())
}

/// An operator that takes one vector at a time, and a preconditioner that can't be fused.
fn what_goes_one_by_one<B: Device>(backend: &B) -> Result<()> {
    struct Unfused<T: Scalar, B: residua::backend::KrylovSteps>(Jacobi<T, B>);
    impl<T: Scalar, B: residua::backend::KrylovSteps + residua::backend::RowFacts> Preconditioner<T, B>
        for Unfused<T, B>
    {
        fn rows(&self) -> Option<usize> {
            Preconditioner::<T, B>::rows(&self.0)
        }
        fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
            self.0.apply(backend, r, z)
        }
        fn bytes(&self) -> usize {
            Preconditioner::<T, B>::bytes(&self.0)
        }
    }
    let a = backend.place(grid(12));
    let n = a.rows();
    let b: Vec<f64> = (0..3).flat_map(|system| noise(n, system)).collect();
    let b = backend.upload(b)?;
    let single = FunctionOperator::<f64, B, _>::new(n, n, |backend: &B, x, y| {
        LinearOperator::<f64, B>::apply(&a, backend, x, y)
    });
    let (fused, unfused) = (Jacobi::new(backend, &a)?, Unfused(Jacobi::new(backend, &a)?));
    type Way<'a, B> = (&'a dyn LinearOperator<f64, B>, &'a dyn Preconditioner<f64, B>);
    let ways: [Way<'_, B>; 2] = [(&single, &fused), (&a, &unfused)];
    for (a, m) in ways {
        let mut x = backend.zeros(3 * n)?;
        let mut multi = MultiCg::new(backend, n, 3, defaults())?;
        let reports = multi.solve(a, m, &b, &mut x, |_, _, _| ControlFlow::Continue(()))?.to_vec();
        let mut cg = Cg::new(backend, n, defaults())?;
        for (system, report) in reports.iter().enumerate() {
            let own = system * n..(system + 1) * n;
            let mut alone = backend.zeros(n)?;
            let expected =
                cg.solve(a, m, B::part(&b, own.clone()), &mut alone, |_, _| ControlFlow::Continue(()))?;
            assert_eq!(*report, expected);
            assert_eq!(multi.history(system), cg.history());
            assert_eq!(backend.download(B::part(&x, own))?, backend.download(&alone)?);
        }
    }
    Ok(())
}

fn sizes<B: Device>(backend: &B) -> Result<()> {
    for systems in [0, 33] {
        let refused = MultiCg::<f64, B>::new(backend, 10, systems, defaults());
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{systems}");
    }
    let a = backend.place(diagonal(&[1.0, 2.0, 3.0]));
    let mut cg = MultiCg::new(backend, 3, 2, defaults())?;
    for (b, x, good) in
        [(6, 6, true), (3, 3, true), (0, 0, true), (9, 9, false), (6, 3, false), (5, 5, false)]
    {
        let (b, mut x) = (backend.upload(vec![1.0; b])?, backend.zeros(x)?);
        let solved = cg.solve(&a, &Identity, &b, &mut x, |_, _, _| ControlFlow::Continue(()));
        assert_eq!(solved.is_ok(), good);
    }
    let empty = backend.place(diagonal(&[]));
    let mut cg = MultiCg::new(backend, 0, 2, defaults())?;
    let (b, mut x) = (backend.zeros(0)?, backend.zeros(0)?);
    assert!(cg.solve(&empty, &Identity, &b, &mut x, |_, _, _| ControlFlow::Continue(()))?.is_empty());
    Ok(())
}

fn warm<B: Device + Products>(backend: &B) -> Result<()> {
    let host = grid(17);
    let n = host.rows();
    let b: Vec<f64> = (0..7).flat_map(|system| noise(n, system)).collect();
    let device_b = backend.upload(b.clone())?;
    let mut several =
        FixedPatternCg::setup_for_several(backend, backend.place(csr_copy(&host)), 3, defaults())?;
    let mut x = backend.zeros(7 * n)?;
    let mut told = Vec::new();
    several.solve_each(&device_b, &mut x, |number, report| {
        told.push(number);
        assert!(report.outcome.is_converged());
        ControlFlow::Continue(())
    })?;
    assert_eq!(told, [0, 1, 2, 3, 4, 5, 6]);
    assert!(!several.history().is_empty());
    let x = backend.download(&x)?;
    for (b, x) in b.chunks(n).zip(x.chunks(n)) {
        assert!(norm(&true_residual(&host, b, x)) <= 1.01e-8 * norm(b));
    }
    // One right-hand side alone, and a callback that ends the solve.
    let mut x = backend.zeros(n)?;
    assert!(several.solve(B::part(&device_b, 0..n), &mut x)?.outcome.is_converged());
    let mut heard = 0;
    let mut x = backend.zeros(7 * n)?;
    several.solve_each(&device_b, &mut x, |_, _| {
        heard += 1;
        if heard == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    assert_eq!(heard, 4);
    Ok(())
}

/// Together, an iteration reads the matrix once.
fn bytes<B: Device>(backend: &B) -> Result<()> {
    let a = grid(20);
    let mut columns = Columns::default();
    (0..4).for_each(|system| columns.add(noise(400, system), vec![0.0; 400]));
    let all = together(backend, &a, true, &columns, 4, defaults())?;
    let alone = run(backend, &a, true, &columns.b[..400], vec![0.0; 400], defaults())?.report;
    let matrix = a.storage_bytes() + 2 * 4 * 400;
    assert_eq!(alone.bytes_per_iteration, matrix + 10 * 8 * 400);
    for report in all.reports {
        assert_eq!(report.bytes_per_iteration, matrix / 4 + 10 * 8 * 400);
    }
    Ok(())
}

on_every_backend!(
    each_as_alone,
    large_and_ragged,
    not_positive_definite,
    limits_and_unattainable_tolerances,
    an_observer_stops_all,
    complex_and_single,
    what_goes_one_by_one,
    sizes,
    warm,
    bytes,
);

#[test]
fn the_number_of_threads_changes_no_bit() {
    let a = grid(120);
    let n = a.rows();
    let mut columns = Columns::default();
    (0..3).for_each(|system| columns.add(noise(n, system), vec![0.0; n]));
    let solve = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| together(&Host, &a, true, &columns, 3, defaults().max_iterations(30)).unwrap().x)
    };
    let one = solve(1);
    assert!(solve(2) == one && solve(5) == one);
}
