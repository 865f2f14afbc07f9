//! Conjugate gradients on the matrices of the test collection, compared with the iteration counts in its index.
//! Skipped, with a message, if the collection does not exist (`RESIDUA_MATRICES` names its folder).

#[path = "common/collection.rs"]
mod collection;

use collection::{folder, table};
use residua::generate::Random;
use residua::krylov::{Cg, Outcome, Report, SolveOptions};
use residua::market::read_csr;
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Csr, Error, Host};
use std::ops::ControlFlow;

fn read(file: &str) -> Csr<f64> {
    read_csr::<f64>(folder().unwrap().join(file)).unwrap()
}

/// A row of the index: file, unknowns, iterations of plain and of Jacobi-preconditioned CG.
struct Entry {
    file: String,
    unknowns: usize,
    plain: Option<usize>,
    jacobi: usize,
}

/// The real positive definite matrices that Jacobi-preconditioned CG solves.
fn positive_definite() -> Vec<Entry> {
    let Some(folder) = folder() else { return Vec::new() };
    let entries: Vec<Entry> = table(&folder.join("index.csv"))
        .iter()
        .filter(|row| row["spd"].starts_with("yes") && row["jcg_status"] == "ok" && row["field"] != "complex")
        .map(|row| Entry {
            file: row["file"].clone(),
            unknowns: row["rows"].parse().unwrap(),
            plain: (row["cg_status"] == "ok").then(|| row["cg_iters"].parse().unwrap()),
            jacobi: row["jcg_iters"].parse().unwrap(),
        })
        .collect();
    assert_eq!(entries.len(), 38);
    entries
}

fn solve<M: Preconditioner<f64, Host>>(a: &Csr<f64>, m: &M, b: &[f64]) -> (Report, Vec<f64>) {
    let (report, x, _) = solve_and_watch(a, m, b);
    (report, x)
}

/// Like [`solve`], with the iteration after which the recurrence first claimed convergence. The index counts up to
/// there, whatever b - A x is then.
fn solve_and_watch<M: Preconditioner<f64, Host>>(
    a: &Csr<f64>,
    m: &M,
    b: &[f64],
) -> (Report, Vec<f64>, usize) {
    let mut x = vec![0.0; b.len()];
    let mut cg = Cg::new(&Host, b.len(), SolveOptions::default()).unwrap();
    let report = cg.solve(a, m, b, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(cg.history().len(), report.iterations + 1);
    let met = cg.history().iter().position(|&norm| norm <= 1e-8 * cg.history()[0]);
    let met = met.unwrap_or(usize::MAX);
    (report, x, met)
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn product(a: &Csr<f64>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    a.product(&Host, 1.0, x, 0.0, &mut y).unwrap();
    y
}

fn check(what: &str, a: &Csr<f64>, b: &[f64], (report, x): &(Report, Vec<f64>)) {
    assert_eq!(report.outcome, Outcome::Converged, "{what}: {report:?}");
    let r: Vec<f64> = b.iter().zip(product(a, x)).map(|(b, y)| b - y).collect();
    assert!(norm(&r) <= 1.000_001e-8 * norm(b), "{what}: {report:?}, but {:e}", norm(&r) / norm(b));
}

#[test]
fn every_positive_definite_matrix_is_solved_with_defaults() {
    for entry in positive_definite() {
        let a = read(&entry.file);
        let jacobi = Jacobi::new(&Host, &a).unwrap();
        let ones = product(&a, &vec![1.0; entry.unknowns]);
        let (report, x, met) = solve_and_watch(&a, &jacobi, &ones);
        assert!(
            met.abs_diff(entry.jacobi) <= 2 + entry.jacobi / 50,
            "{}: {} expected, {met}, {report:?}",
            entry.file,
            entry.jacobi
        );
        // Only nos7: after the index's 99 iterations the residual of the textbook's recurrence is 9.3e-9, and that of
        // its x 3.7e-8. Only the latter counts here, so the solver continues.
        let drifts = entry.file == "nos7.mtx";
        assert!(report.iterations == met || drifts, "{}: {met}, {report:?}", entry.file);
        check(&entry.file, &a, &ones, &(report, x));
        // With x = 1 some systems are too easy.
        let mut random = Random::new(7);
        let x: Vec<f64> = (0..entry.unknowns).map(|_| random.between(-1.0, 1.0)).collect();
        let b = product(&a, &x);
        check(&entry.file, &a, &b, &solve(&a, &jacobi, &b));
    }
}

#[test]
fn plain_iterations_are_those_of_the_index() {
    for entry in positive_definite() {
        let Some(expected) = entry.plain.filter(|_| entry.unknowns < 6000) else { continue };
        let a = read(&entry.file);
        let b = product(&a, &vec![1.0; entry.unknowns]);
        let (report, x, met) = solve_and_watch(&a, &Identity, &b);
        // Thousands of iterations for a few hundred unknowns: rounding errors determine the last few percent.
        let slack = 2 + expected / if expected > 2 * entry.unknowns { 10 } else { 16 };
        assert!(met.abs_diff(expected) <= slack, "{}: {expected}, {met}, {report:?}", entry.file);
        check(&entry.file, &a, &b, &(report, x));
    }
}

#[test]
fn hard_cases_end_honestly() {
    if folder().is_none() {
        return;
    }
    // Positive semidefinite: solved if b is in the range; an empty row is named if its diagonal entry is needed.
    let a = read("bcsstm01.mtx");
    assert!(matches!(Jacobi::<f64, Host>::new(&Host, &a), Err(Error::Diagonal { row: 3, value: 0.0 })));
    let b = product(&a, &[1.0; 48]);
    check("bcsstm01", &a, &b, &solve(&a, &Identity, &b));
    let (report, x) = solve(&a, &Identity, &[1.0; 48]);
    assert!(!report.outcome.is_converged(), "{report:?}");
    assert_eq!((report.relative_residual, norm(&x)), (1.0, 0.0));
    // An indefinite matrix: the file has only a pattern, so all values are one.
    let a = read("bcspwr07.mtx");
    let b = product(&a, &vec![1.0; a.rows()]);
    let (report, _) = solve(&a, &Jacobi::new(&Host, &a).unwrap(), &b);
    let Outcome::NotPositiveDefinite { iteration, curvature } = report.outcome else { panic!("{report:?}") };
    assert!(iteration <= 4 && curvature < 0.0, "{report:?}");
    // Singular, the constants its null space: b = A x is consistent, a random b is not.
    let a = read("fem_neumann_singular.mtx.gz");
    let x: Vec<f64> = (0..a.rows()).map(|i| ((i * 37) % 11) as f64).collect();
    let b = product(&a, &x);
    let jacobi = Jacobi::new(&Host, &a).unwrap();
    check("fem_neumann_singular", &a, &b, &solve(&a, &jacobi, &b));
    let (report, _) = solve(&a, &jacobi, &x);
    assert!(!report.outcome.is_converged() && report.relative_residual <= 1.0, "{report:?}");
}
