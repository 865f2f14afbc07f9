//! A stop requested during a setup, an ordering or a factorisation: it takes effect soon, x is not changed, and the
//! next solve gives the bits of a fresh solver.

use super::*;
use std::time::Instant;

/// Maximum time until a requested stop: a third of a second on an idle machine, but other tests run at the same time.
const SOON: Duration = Duration::from_secs(2);

/// Systems with different setups, each of which takes about a second for orders, matchings and factors.
fn systems() -> Vec<(&'static str, Builder, Csr<f64>)> {
    let direct = || Solver::builder().device(Where::Cpu).method(Method::Direct);
    let auto = || Solver::builder().device(Where::Cpu);
    let without_factor = || auto().memory_limit(1000);
    vec![
        ("cholesky", direct(), generate::poisson3d(24, 24, 24).unwrap()),
        ("lu in fronts", direct(), generate::convection_diffusion([18, 18, 18], 0.1).unwrap()),
        ("blocks or columns", direct(), generate::circuit(8000, 1e6, 1).unwrap()),
        ("ldlt in fronts", direct(), generate::quadratic_program(3000, 1000, 1e6, 1).unwrap()),
        (
            "incomplete factors with fill",
            without_factor(),
            generate::quadratic_program(6000, 2000, 1e6, 1).unwrap(),
        ),
        (
            "the solver's own choice",
            auto(),
            shuffled(&generate::convection_diffusion([90, 90, 1], 0.5).unwrap()),
        ),
    ]
}

#[test]
fn a_cancelled_setup_or_factorisation_leaves_no_trace() {
    for (name, builder, a) in systems() {
        let b = noise(a.rows(), 3);
        let start = Instant::now();
        let fresh = builder.build(&a).unwrap().solve(&b).unwrap();
        let whole = start.elapsed();
        let mut solver = builder.build(&a).unwrap();
        let mut x = vec![0.0; a.columns()];
        // At once, and at times distributed over the setup.
        for part in [0, 1, 3, 6] {
            let canceller = solver.canceller();
            let asked = std::thread::spawn(move || {
                std::thread::sleep(whole * part / 10);
                canceller.cancel();
                Instant::now()
            });
            if part == 0 {
                while !solver.canceller().is_cancelled() {
                    std::thread::yield_now();
                }
            }
            x.fill(0.0);
            let report = solver.solve_into(&b, &mut x).unwrap();
            let done = Instant::now();
            let asked = asked.join().unwrap();
            assert!(done.saturating_duration_since(asked) < SOON, "{name}: {:?}", done - asked);
            let told = (report.outcome, report.relative_residual);
            assert!(
                report.outcome == Outcome::Interrupted || part > 0 && report.outcome == Outcome::Converged,
                "{name}: {report:?}"
            );
            // The reported residual is that of this x.
            let residual = norm(&true_residual(&a, &b, &x)) / norm(&b);
            // The reported residual is exact, while this one is rounded: circuits have a large x.
            let zeros = vec![0.0; b.len()];
            let sizes =
                true_residual(&a.map(f64::abs), &zeros, &x.iter().map(|x| x.abs()).collect::<Vec<_>>());
            let rounding = 16.0 * f64::EPSILON * norm(&sizes) / norm(&b);
            let apart = (residual - told.1).abs();
            assert!(apart <= 1e-6 * residual.max(1e-6) + rounding, "{name}: {told:?}, {residual}");
            solver.canceller().reset();
            if report.outcome != Outcome::Interrupted {
                // It finished before the stop.
                solver = builder.build(&a).unwrap();
            }
        }
        let next = solver.solve(&b).unwrap();
        assert_eq!(next.x, fresh.x, "{name}");
        assert_eq!(next.report.outcome, fresh.report.outcome, "{name}");
    }
}

#[test]
fn a_time_limit_ends_setups_and_factorisations() {
    for (name, builder, a) in systems() {
        let b = noise(a.rows(), 3);
        let limit = Duration::from_millis(20);
        let mut solver = builder.time_limit(limit).build(&a).unwrap();
        let start = Instant::now();
        // A method that is forecast to take longer is not started; if it was named, that is an error.
        let Ok(solution) = solver.solve(&b) else { continue };
        assert!(start.elapsed() < limit + SOON, "{name}: {:?}", start.elapsed());
        assert_eq!(solution.report.outcome, Outcome::TimeLimit, "{name}: {:?}", solution.report);
        let residual = norm(&true_residual(&a, &b, &solution.x)) / norm(&b);
        assert!(
            (residual - solution.report.relative_residual).abs() <= 1e-6,
            "{name}: {:?}",
            solution.report
        );
    }
}
