//! What a factorisation may take, and what is not tried twice.

use super::*;
use residua::solver::StageReport;

fn factorisations(report: &residua::solver::SolveReport) -> Vec<&StageReport> {
    report.trail.stages.iter().filter(|stage| stage.method == Method::Direct).collect()
}

#[test]
fn a_factorisation_that_takes_longer_than_is_left_is_not_begun() {
    let a = uneven(150);
    let limited = Solver::builder().time_limit(Duration::from_micros(500));
    let refused = limited.clone().method(Method::Direct).build_on(&Host, csr_copy(&a)).unwrap();
    let error = { refused }.solve(&noise(a.rows(), 1)).unwrap_err().to_string();
    assert!(error.contains("are needed") && error.contains("left"), "{error}");
    // Where the method is not named, something else has the time that is left.
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

/// Ones above the diagonal: structurally singular, whose least-squares solution LU leaves as good a residual as, without
/// showing that nothing is nearer.
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
