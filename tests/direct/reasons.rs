//! One case for each way in which a solve can end: the outcome's name, and the command's words for it; and one for each
//! reason why a factorisation fails.

use super::support::Folder;
use residua::Csr;
use residua::direct::{Direct, DirectOptions, DirectReport, Kind, Reason};
use residua::generate;
use residua::krylov::Outcome;
use residua::solver::{Device, Method, Solver};
use std::ops::ControlFlow;
use std::time::Duration;

const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n";
const ARRAY: &str = "%%MatrixMarket matrix array real general\n";

/// Writes A and b, solves with these options, and expects an outcome's name in the JSON and words in the report.
fn ends(a: (&str, &str), b: &str, options: &str, (status, name): (i32, &str), words: &[&str]) {
    let f = Folder::new();
    f.write("a.mtx", format!("{}{}", a.0, a.1));
    let mut line = "solve a.mtx --device cpu --json r.json".to_string();
    if !b.is_empty() {
        f.write("b.mtx", format!("{ARRAY}{b}"));
        line += " --rhs b.mtx";
    }
    line += options;
    let run = f.run(line.split(' '));
    assert_eq!(run.status, status, "{line}: {}{}", run.stdout, run.stderr);
    let json: serde_json::Value = serde_json::from_str(&f.read("r.json")).unwrap();
    assert_eq!(json["status"], name, "{line}: {}", run.stdout);
    for word in words {
        assert!(run.stdout.contains(word), "{line}, {word}: {}", run.stdout);
    }
}

/// Two equal equations.
const TWICE: (&str, &str) = (SYMMETRIC, "2 2 3\n1 1 1\n2 1 1\n2 2 1\n");

#[test]
fn converged() {
    let a = (SYMMETRIC, "2 2 3\n1 1 2\n2 1 1\n2 2 3\n");
    ends(a, "2 1\n1\n2\n", "", (0, "converged"), &["converged in", "recomputed from x"]);
}

#[test]
fn converged_with_an_error_that_is_not_small() {
    // (1, -1) is a null vector, so (2, 0) solves the system that was made for (1, 1).
    let a = (GENERAL, "2 2 4\n1 1 1\n1 2 1\n2 1 1\n2 2 1.0000000000000002\n");
    let advice = ["the matrix is ill-conditioned, or singular"];
    ends(a, "", " --rhs a-random:1 --method direct", (0, "converged"), &advice);
}

#[test]
fn least_squares_where_no_x_solves_the_system() {
    let advice = ["No x solves the system", "as small as it gets", "least-squares test"];
    ends(TWICE, "2 1\n1\n0\n", "", (4, "least_squares"), &advice);
}

#[test]
fn least_squares_of_a_structurally_singular_matrix() {
    let a = (GENERAL, "3 3 4\n1 1 1\n1 2 1\n2 1 1\n3 1 2\n");
    let advice = ["structurally singular", "row 3 is without a partner", "column 3 is without one"];
    ends(a, "3 1\n1\n1\n1\n", "", (4, "least_squares"), &advice);
}

#[test]
fn iteration_limit() {
    let a = (SYMMETRIC, "3 3 5\n1 1 2\n2 1 -1\n2 2 2\n3 2 -1\n3 3 2\n");
    let advice = ["iteration limit reached", "--max-iterations"];
    ends(a, "3 1\n1\n2\n4\n", " --method cg --max-iterations 1", (4, "max_iterations"), &advice);
}

#[test]
fn not_positive_definite_by_its_diagonal() {
    let a = (SYMMETRIC, "2 2 2\n1 1 1\n2 2 -2\n");
    let advice = ["a diagonal entry is -2", "-A, if it is negative definite"];
    ends(a, "2 1\n1\n1\n", " --method cg", (4, "not_positive_definite"), &advice);
}

#[test]
fn not_positive_definite_by_a_direction() {
    let a = (SYMMETRIC, "2 2 3\n1 1 1\n2 1 5\n2 2 1\n");
    let advice = ["a vector p has p.Ap / p.p = -", "Check its signs", "--method minres or direct"];
    ends(a, "2 1\n1\n-1\n", " --method cg", (4, "not_positive_definite"), &advice);
}

#[test]
fn breakdown() {
    // MINRES finds the smallest residual, and its Lanczos basis cannot be extended after that.
    let advice = ["breakdown at iteration 2", "the matrix is singular", "--preconditioner none"];
    ends(TWICE, "2 1\n1\n0\n", " --method minres", (4, "breakdown"), &advice);
}

#[test]
fn equations_that_contradict_each_other_a_little() {
    // By ten times the tolerance: x is the least-squares solution all the same.
    let advice = ["No x solves the system: the matrix is singular", "equations that contradict each other"];
    for options in [" --method direct", ""] {
        ends(TWICE, "2 1\n1\n1.0000002\n", options, (4, "least_squares"), &advice);
    }
}

#[test]
fn stagnated() {
    let a = (SYMMETRIC, "3 3 5\n1 1 2\n2 1 -1\n2 2 2\n3 2 -1\n3 3 2\n");
    let advice = ["the residual no longer falls", "a looser --tolerance"];
    ends(a, "3 1\n0.1\n0.7\n0.3\n", " --method cg --tolerance 0", (4, "stagnated"), &advice);
}

#[test]
fn too_large_for_memory() {
    let f = Folder::new();
    f.ok("generate circuit --size 300 -o a.mtx");
    let run = f.fails(4, "solve a.mtx --device cpu --method direct --memory-limit 1kB --json r.json");
    assert!(
        run.stdout.contains("not solved: a factorisation needs more memory than is free"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("needs at least") && run.stdout.contains("--memory-limit"), "{}", run.stdout);
    let json: serde_json::Value = serde_json::from_str(&f.read("r.json")).unwrap();
    assert!(json["memory_needed"].as_u64().unwrap() > 1000, "{json}");
    assert_eq!(json["status"], "stagnated");
}

#[test]
fn not_finite() {
    // x would be 1e400.
    let a = (GENERAL, "2 2 2\n1 1 1e-200\n2 2 1e-200\n");
    ends(
        a,
        "2 1\n1e200\n1e200\n",
        "",
        (4, "not_finite"),
        &["an infinity or NaN occurred", "scaling A and b"],
    );
}

#[test]
fn time_limit() {
    let advice = ["time limit reached", "more time (--time-limit)", "4 nonzeros\n", "none yet"];
    ends(TWICE, "2 1\n1\n1\n", " --time-limit 0", (4, "time_limit"), &advice);
}

#[test]
fn given_up_for_a_factorisation() {
    let f = Folder::new();
    f.ok("generate convection2d --size 60x60 --peclet 10 -o a.mtx");
    let run = f.ok("solve a.mtx --device cpu");
    assert!(run.stdout.contains("given up: the factorisation is forecast to take"), "{}", run.stdout);
    assert!(!run.stdout.contains("iteration limit reached"), "{}", run.stdout);
}

#[test]
fn interrupted_by_an_observer() {
    let a = generate::poisson2d(20, 20).unwrap();
    let mut solver = Solver::builder().device(Device::Cpu).method(Method::Cg).build(a).unwrap();
    let mut seen = 0;
    let mut x = vec![0.0; 400];
    let report = solver
        .solve_with(&[1.0; 400], &mut x, |_| {
            seen += 1;
            if seen > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!((report.outcome, report.outcome.status()), (Outcome::Interrupted, "interrupted"));
    assert!(report.relative_residual.is_finite());
}

/// Returns the report of a factorisation, which must fail.
fn direct(a: &Csr<f64>, b: &[f64], options: DirectOptions) -> DirectReport {
    let mut x = vec![0.0; a.columns()];
    let report = Direct::planned(a, options).unwrap().solve(b, &mut x, 1e-8).unwrap();
    assert!(!report.solved, "{report}");
    report
}

fn dense<const N: usize>(rows: [[f64; N]; N]) -> Csr<f64> {
    let (starts, columns) =
        ((0..=N).map(|row| row * N).collect(), (0..N * N).map(|k| (k % N) as u32).collect());
    Csr::from_parts(N, N, starts, columns, rows.into_iter().flatten().collect()).unwrap()
}

/// Returns the reason that a kind gave; its text must contain `words`.
fn reason(report: &DirectReport, kind: Kind, words: &str) -> Reason {
    let found =
        report.reasons.iter().find(|(other, reason)| *other == kind && reason.to_string().contains(words));
    found.unwrap_or_else(|| panic!("{kind}, {words}: {report:?}")).1.clone()
}

#[test]
fn structurally_singular() {
    let a = Csr::from_parts(2, 2, vec![0, 1, 2], vec![0, 0], vec![1.0, 2.0]).unwrap();
    let report = direct(&a, &[1.0, 1.0], DirectOptions::default().kind(Kind::Lu));
    let Reason::StructurallySingular { rank, unmatched } = reason(&report, Kind::Lu, "only 1 rows") else {
        panic!("{report:?}")
    };
    assert_eq!((rank, unmatched.columns), (1, vec![1]));
}

#[test]
fn numerically_singular() {
    let report =
        direct(&dense([[1.0, 2.0], [2.0, 4.0]]), &[1.0, 2.0000003], DirectOptions::default().kind(Kind::Lu));
    assert_eq!(reason(&report, Kind::Lu, "singular to working precision"), Reason::NumericallySingular);
}

#[test]
fn infinities_and_what_is_no_number() {
    let report = direct(&dense([[1.0, f64::NAN], [0.0, 1.0]]), &[1.0, 1.0], DirectOptions::default());
    assert_eq!(reason(&report, Kind::Auto, "infinities or NaN"), Reason::NotFinite);
    let report = direct(&dense([[1.0, 1.0], [0.0, 1.0]]), &[f64::INFINITY, 1.0], DirectOptions::default());
    assert!(report.reasons.iter().any(|(_, reason)| *reason == Reason::NotFinite), "{report:?}");
}

#[test]
fn too_large() {
    let a = generate::poisson2d(10, 10).unwrap();
    let report = direct(&a, &[1.0; 100], DirectOptions::default().kind(Kind::Cholesky).memory_limit(100));
    let found = reason(&report, Kind::Cholesky, "too large for memory");
    assert!(matches!(found, Reason::TooLarge { bytes: 101.., limit: 100 }), "{found:?}");
}

#[test]
fn too_long() {
    let a = generate::poisson2d(10, 10).unwrap();
    let report = direct(&a, &[1.0; 100], DirectOptions::default().kind(Kind::Cholesky).flop_limit(10.0));
    let found = reason(&report, Kind::Cholesky, "multiplications");
    assert!(matches!(found, Reason::TooLong { limit: 10.0, .. }), "{found:?}");
}

#[test]
fn too_late() {
    // The order is found in half a second, and the factorisation is forecast to take several.
    let a = generate::poisson3d(40, 40, 40).unwrap();
    let solver = Solver::builder().device(Device::Cpu).method(Method::Direct);
    let mut solver = solver.time_limit(Duration::from_secs(3)).build(a).unwrap();
    // A fast machine may finish before the limit.
    match solver.solve(&[1.0; 64_000]) {
        Ok(solution) => {
            let outcome = solution.report.outcome;
            assert!(matches!(outcome, Outcome::Converged | Outcome::TimeLimit), "{outcome}");
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("are needed") && error.contains("are left"), "{error}");
        }
    }
}

#[test]
fn stopped() {
    let a = generate::poisson2d(10, 10).unwrap();
    let mut x = vec![0.0; 100];
    let mut direct = Direct::planned(&a, DirectOptions::default()).unwrap();
    let report = direct.solve_while(&[1.0; 100], &mut x, 1e-8, &mut || false).unwrap();
    assert_eq!(reason(&report, Kind::Cholesky, "stopped by the caller"), Reason::Stopped);
}

#[test]
fn refused() {
    // Cholesky of a matrix that is not positive definite reports that itself.
    let report =
        direct(&dense([[1.0, 5.0], [5.0, 1.0]]), &[1.0, 1.0], DirectOptions::default().kind(Kind::Cholesky));
    assert!(matches!(reason(&report, Kind::Cholesky, ""), Reason::Refused(_)), "{report:?}");
}

#[test]
fn inconsistent() {
    let report =
        direct(&dense([[1.0, 1.0], [1.0, 1.0]]), &[1.0, 0.0], DirectOptions::default().kind(Kind::DenseQr));
    assert_eq!(reason(&report, Kind::DenseQr, "a least-squares solution"), Reason::Inconsistent);
    assert!(report.normal_residual.is_some_and(|normal| normal <= 1e-10), "{report:?}");
}

#[test]
fn residuals_that_no_longer_fall() {
    // No x of double precision has a residual of zero.
    let a = dense([[3.0, 1.0], [1.0, 7.0]]);
    let mut x = [0.0; 2];
    let mut direct = Direct::planned(&a, DirectOptions::default().kind(Kind::Lu)).unwrap();
    let report = direct.solve(&[0.1, 0.7], &mut x, 0.0).unwrap();
    assert_eq!(reason(&report, Kind::Lu, "rounding x"), Reason::PrecisionLimit);
    assert!(report.precision_limited && report.digits.is_some_and(|digits| digits > 15.0), "{report:?}");
}

#[test]
fn a_small_singular_matrix_goes_from_one_lu_to_a_dense_factorisation() {
    let a = dense([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.5, 1.0, 3.0]]);
    let report = direct(&a, &[1.0, 1.0, 1.0], DirectOptions::default());
    let kinds: Vec<Kind> = report.reasons.iter().map(|(kind, _)| *kind).collect();
    assert!(kinds.len() == 2 && kinds[0] != Kind::DenseQr && kinds[1] == Kind::DenseQr, "{report:?}");
    assert!(report.normal_residual.is_some() && report.minimum_norm, "{report:?}");
}
