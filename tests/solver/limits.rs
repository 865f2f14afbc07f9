//! Limits of a factorisation, and methods that are not tried twice.

use super::*;
use residua::LinearOperator;
use residua::solver::StageReport;

fn factorisations(report: &residua::solver::SolveReport) -> Vec<&StageReport> {
    report.trail.stages.iter().filter(|stage| stage.method == Method::Direct).collect()
}

#[test]
fn a_factorisation_that_takes_longer_than_is_left_is_not_begun() {
    let a = uneven(150);
    let limited = Solver::builder().time_limit(Duration::from_micros(500));
    // Half a millisecond is over during the search for an order.
    let late = limited.clone().method(Method::Direct).build_on(&Host, csr_copy(&a)).unwrap();
    let late = { late }.solve(&noise(a.rows(), 1)).unwrap();
    assert_eq!((late.report.outcome, late.report.relative_residual), (Outcome::TimeLimit, 1.0));
    assert!(late.x.iter().all(|&x| x == 0.0));
    // If the method is not named, another one gets the remaining time.
    let mut b = noise(a.rows(), 1);
    b[0] = 1.0;
    let report = limited.build_on(&Host, a).unwrap().solve(&b).unwrap().report;
    assert_eq!(report.outcome, Outcome::TimeLimit, "{report:?}");
}

#[test]
fn a_factor_has_as_much_memory_as_is_allowed() {
    let a = uneven(40);
    let direct = Solver::builder().method(Method::Direct);
    let b = noise(a.rows(), 1);
    let report =
        direct.clone().memory_limit(1000).build_on(&Host, csr_copy(&a)).unwrap().solve(&b).unwrap().report;
    assert_ne!(report.outcome, Outcome::Converged);
    let told = factorisations(&report)[0].remark.clone().unwrap();
    assert!(told.contains("too large for memory") && told.contains("1.00 kB"), "{told}");
    let report = direct.memory_limit(1 << 30).build_on(&Host, a).unwrap().solve(&b).unwrap().report;
    assert_eq!(report.outcome, Outcome::Converged);
}

#[test]
fn kinds_that_failed_are_not_tried_again() {
    let n = 900;
    let a = shift(n);
    let report = Solver::builder().build_on(&Host, a).unwrap().solve(&noise(n, 3)).unwrap().report;
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report:?}");
    let turns = factorisations(&report).iter().filter(|stage| stage.outcome.is_some()).count();
    assert_eq!(turns, 1, "{:?}", report.trail);
    assert!(report.normal_residual.is_some_and(|normal| normal < 1e-10), "{report:?}");
}

/// Ones above the diagonal: structurally singular. LU finds a residual as small as that of its least-squares solution,
/// but does not show that none is smaller.
fn shift(n: usize) -> Csr<f64> {
    let starts = (0..=n).map(|row| row.min(n - 1)).collect();
    Csr::from_parts(n, n, starts, (1..n as u32).collect(), vec![1.0; n - 1]).unwrap()
}

#[test]
fn of_a_zero_matrix_zero_is_the_least_squares_solution() {
    let a = Csr::<f64>::from_parts(5, 5, vec![0; 6], vec![], vec![]).unwrap();
    let solution = Solver::builder().build_on(&Host, a).unwrap().solve(&[1.0, -2.0, 0.0, 3.0, 1.0]).unwrap();
    assert_eq!(solution.report.outcome, Outcome::LeastSquares, "{:?}", solution.report);
    assert_eq!(solution.x, [0.0; 5]);
    assert_eq!(factorisations(&solution.report).iter().filter(|stage| stage.outcome.is_some()).count(), 1);
}

/// A chain of unknowns, for which GMRES takes hundreds of iterations and LU next to no time; and the same with random
/// couplings, whose factors fill in and for which GMRES takes 20.
fn chain(n: usize, by: f64, coupled: bool) -> Csr<f64> {
    csr(n, |i| {
        let far = (i * 7919 + 31) % n;
        let mut row = vec![(i, 1.0)];
        if i > 0 {
            row.insert(0, (i - 1, -by));
        }
        if coupled && far.abs_diff(i) > 1 {
            row.push((far, by));
            row.sort_by_key(|entry| entry.0);
        }
        row
    })
}

#[test]
fn iterations_are_given_up_for_a_factorisation_that_is_forecast_to_be_faster() {
    let (a, b) = (chain(20_000, 0.95, false), noise(20_000, 5));
    let mut solver = Solver::builder().build_on(&Host, csr_copy(&a)).unwrap();
    let first = solver.solve(&b).unwrap();
    assert_eq!((first.report.method, first.report.outcome), (Method::Direct, Outcome::Converged));
    let tried = &first.report.trail.stages[0];
    assert_eq!((tried.method, tried.outcome), (Method::Gmres, Some(Outcome::GivenUp)));
    assert!(tried.remark.as_ref().is_some_and(|words| words.contains("given up")), "{tried:?}");
    assert!((4..100).contains(&tried.iterations), "{tried:?}");
    // The factor exists now, so the next right-hand side begins with it.
    let second = solver.solve(&b).unwrap().report;
    assert_eq!((second.method, second.trail.stages[0].outcome), (Method::Direct, None));
    // The choice does not depend on a clock.
    let again = Solver::builder().build_on(&Host, a).unwrap().solve(&b).unwrap();
    assert_eq!(again.report.trail.stages[0].iterations, tried.iterations);
    assert_eq!(again.x, first.x);
}

#[test]
fn iterations_that_arrive_soon_are_not_given_up() {
    let (a, b) = (chain(4000, 0.3, true), noise(4000, 5));
    let report = Solver::builder().build_on(&Host, csr_copy(&a)).unwrap().solve(&b).unwrap().report;
    assert_eq!((report.method, report.outcome), (Method::Gmres, Outcome::Converged));
    assert!(factorisations(&report).iter().all(|stage| stage.outcome.is_none() && stage.refused.is_none()));
    // Several right-hand sides are worth a factor.
    let mut several = Solver::builder().right_hand_sides(10).build_on(&Host, a).unwrap();
    assert_eq!(several.solve(&b).unwrap().report.method, Method::Direct);
}

#[test]
fn multigrid_behind_a_factorisation_is_not_set_up() {
    let a = residua::generate::convection_diffusion([120, 120, 1], 0.1).unwrap();
    let solver = Solver::builder().build_on(&Host, a).unwrap();
    let stages = &solver.trail().stages;
    let levels = stages.iter().position(|stage| stage.preconditioner.to_string().starts_with("amg")).unwrap();
    assert!(stages[..levels].iter().any(|stage| stage.method == Method::Direct), "{stages:?}");
    // Methods with a setup have a forecast.
    assert_eq!(stages[levels].predicted_bytes, None);
    assert!(stages[0].predicted_bytes > Some(0.0));
}

#[test]
fn multigrid_at_once_on_a_long_mesh_in_random_order() {
    let a = shuffled(&generate::anisotropic2d(90, 2400, 0.5).unwrap());
    let solver = Solver::builder().build_on(&Host, a).unwrap();
    let first = &solver.trail().stages[0];
    assert_eq!(first.preconditioner.to_string(), "amg", "{first:?}");
    // The same number of unknowns, but no two are far from each other.
    let a = shuffled(&generate::poisson3d(60, 60, 60).unwrap());
    let solver = Solver::builder().reorder(Reorder::None).build_on(&Host, a).unwrap();
    assert_eq!(solver.trail().stages[0].preconditioner.to_string(), "jacobi");
}

#[test]
fn saddle_points_without_room_for_a_factor_have_incomplete_ones() {
    let a = generate::quadratic_program(6000, 2000, 1e6, 1).unwrap();
    let b = noise(a.rows(), 2);
    // In natural order, and permuted.
    for a in [shuffled(&a), a] {
        let mut solver = Solver::builder().memory_limit(1000).build_on(&Host, csr_copy(&a)).unwrap();
        let solution = solver.solve(&b).unwrap();
        let report = &solution.report;
        assert_eq!((report.method, report.outcome), (Method::Gmres, Outcome::Converged), "{report:?}");
        assert!(report.preconditioner.to_string().starts_with("ilut"), "{report:?}");
        assert!(solves(&a, &b, &solution.x, 1e-8));
        // At most one factorisation was examined, not one after another.
        assert!(factorisations(report).iter().filter(|stage| stage.refused.is_some()).count() <= 1);
    }
}

#[test]
fn what_converged_is_so_in_twice_the_precision() {
    // x is 1e8 to 1e9 times as large as b, so b - A x is dominated by rounding.
    let mut met = 0;
    for seed in 0..400 {
        let r = noise(9, seed);
        let near = 1e-9 * (1.0 + r[0].abs());
        let rows = [
            [1.0 + 0.1 * r[1], 0.7 + 0.1 * r[2], 0.3 * r[3]],
            [1.0 + 0.1 * r[1] + near, 0.7 + 0.1 * r[2], 0.3 * r[3]],
            [0.2 * r[4], 0.5 + 0.1 * r[5], 1.0 + 0.2 * r[6]],
        ];
        let values = rows.into_iter().flatten().collect();
        let a = Csr::from_parts(3, 3, vec![0, 3, 6, 9], vec![0, 1, 2, 0, 1, 2, 0, 1, 2], values).unwrap();
        let b = [r[7], -r[8], 1.0];
        let direct = Solver::builder().method(Method::Direct);
        let solution = direct.build_on(&Host, csr_copy(&a)).unwrap().solve(&b).unwrap();
        let claims = solution.report.outcome == Outcome::Converged;
        met += usize::from(claims);
        let mut r = [0.0; 3];
        assert!(LinearOperator::accurate_residual(&a, &Host, 1.0, &b, &solution.x, &mut r).unwrap());
        assert!(!claims || norm(&r) <= 1e-8 * norm(&b), "{seed}: {:?}", solution.report);
    }
    assert!((1..400).contains(&met), "{met}");
}
