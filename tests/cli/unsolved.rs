//! `residua solve` on systems that have no solution, many, or none in double precision.

use crate::support::{Folder, ones, read_matrix, residual};
use serde_json::Value;

#[test]
fn what_is_not_solved_says_so_and_why() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 40x40 -o a.mtx");
    let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
    f.write("indefinite.mtx", format!("{symmetric}3 3 4\n1 1 1\n2 2 1\n3 3 1\n2 1 5\n"));
    f.write("negative.mtx", format!("{symmetric}2 2 2\n1 1 1\n2 2 -2\n"));
    f.write("hole.mtx", format!("{symmetric}2 2 2\n1 1 1\n2 1 1\n"));
    f.write("singular.mtx", format!("{symmetric}2 2 3\n1 1 1\n2 2 1\n2 1 -1\n"));
    let tiny = |i: usize| format!("{i} {i} 4e-300\n{} {i} -1e-300\n", i + 1);
    let rows: String = (1..50).map(tiny).collect();
    f.write("tiny.mtx", format!("{symmetric}50 50 99\n{rows}50 50 4e-300\n"));
    // Values that single precision cannot represent say nothing about the matrix's signs.
    let run = f.fails(3, "solve tiny.mtx --precision mixed");
    assert!(run.stderr.contains("beyond the range of single precision"), "{}", run.stderr);
    for (line, status, word) in [
        ("a.mtx --max-iterations 5", "max_iterations", "--max-iterations"),
        ("a.mtx --max-iterations 0", "max_iterations", "--max-iterations"),
        ("a.mtx --tolerance 0 --rhs random:1 --method cg", "stagnated", "--tolerance"),
        ("indefinite.mtx --rhs random:1 --method cg", "not_positive_definite", "positive definite"),
        ("negative.mtx --method cg", "not_positive_definite", "diagonal entry is -2"),
        ("hole.mtx --method cg", "not_positive_definite", "diagonal"),
        (
            "hole.mtx --preconditioner none --rhs ones --method cg",
            "not_positive_definite",
            "positive definite",
        ),
        ("singular.mtx --rhs random:1 --method cg", "not_positive_definite", "singular"),
        ("tiny.mtx --method cg", "breakdown", "scaling A and b"),
    ] {
        let run = f.fails(4, &format!("solve {line} -o x.mtx --json r.json"));
        assert!(run.stdout.contains(word) && run.stdout.contains("not solved"), "{line}: {}", run.stdout);
        let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
        assert_eq!(json["status"], status, "{line}");
        let x = read_matrix(&f.path("x.mtx"));
        assert_eq!(x.rows as u64, json["rows"].as_u64().unwrap(), "x is written all the same");
    }
    // x after five iterations is better than none: its residual is the one that the report states.
    f.fails(4, "solve a.mtx --max-iterations 5 -o x.mtx --json r.json");
    let (a, x) = (read_matrix(&f.path("a.mtx")), read_matrix(&f.path("x.mtx")).column(0));
    let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
    let (found, _) = residual(&a, &x, &a.product(&ones(1600)).0);
    assert!((found / json["relative_residual"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(json["iterations"], 5);
}

#[test]
fn singular_systems_end_with_a_reason_and_what_is_known_of_x() {
    let f = Folder::new();
    let general = "%%MatrixMarket matrix coordinate real general\n";
    // Rows 2 and 3 have entries only in column 1.
    f.write("rows.mtx", format!("{general}3 3 4\n1 1 1\n1 2 1\n2 1 1\n3 1 2\n"));
    f.write("path.mtx", format!("{general}3 3 7\n1 1 1\n1 2 -1\n2 1 -1\n2 2 2\n2 3 -1\n3 2 -1\n3 3 1\n"));
    f.write("b.mtx", "%%MatrixMarket matrix array real general\n3 1\n2\n1\n0\n");
    f.write("null.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n1\n1\n");
    f.write("other.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n1\n2\n");
    let run = f.fails(4, "solve rows.mtx --rhs random:1 --json r.json");
    assert!(run.stdout.contains("structurally singular") && run.stdout.contains("row 3"), "{}", run.stdout);
    assert!(run.stdout.contains("backward error"), "{}", run.stdout);
    let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
    assert_eq!((&json["status"], &json["unmatched"]["columns"][0]), (&"least_squares".into(), &3.into()));
    assert!(json["normal_residual"].as_f64().unwrap() <= 1e-10);
    // Constants are found, named or given; only then is the solution accepted.
    for (line, status) in [("", 4), (" --null-space constants", 0), (" --null-space null.mtx", 0)] {
        let run = f.run(format!("solve path.mtx --rhs b.mtx -o x.mtx --json r.json{line}").split(' '));
        assert_eq!(run.status, status, "{line} {} {}", run.stdout, run.stderr);
        assert!(run.stdout.contains("in the null space"), "{}", run.stdout);
        let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
        assert_eq!(json["status"], "least_squares");
        assert!((json["outside_range"].as_f64().unwrap() - 3_f64.sqrt()).abs() < 1e-12);
        let x = read_matrix(&f.path("x.mtx")).column(0);
        assert!(x.iter().zip([1.0, 0.0, -1.0]).all(|(x, known)| (x.0 - known).abs() < 1e-7), "{x:?}");
    }
    let run = f.fails(3, "solve path.mtx --null-space other.mtx");
    assert!(run.stderr.contains("vector 1 is not in the null space of A"), "{}", run.stderr);
    f.fails(3, "solve rows.mtx --null-space b.mtx");
    // A factor allows an estimate of how many digits of x can be trusted.
    f.write("two.mtx", format!("{general}2 2 3\n1 1 1\n1 2 1\n2 2 1e-6\n"));
    let json = f.ok("solve two.mtx --json -").json();
    assert!((1e6..1e7).contains(&json["condition"].as_f64().unwrap()), "{json}");
    assert!((8.0..11.0).contains(&json["digits"].as_f64().unwrap()), "{json}");
}

#[test]
fn a_small_residual_with_a_large_error_is_told() {
    let f = Folder::new();
    // Hilbert's matrix with 12 rows: the residual falls at once, the error does not.
    let places = (1..=12).flat_map(|i| (1..=i).map(move |j| (i, j)));
    let entries: String =
        places.map(|(i, j)| format!("{i} {j} {:e}\n", 1.0 / f64::from(i + j - 1))).collect();
    f.write("a.mtx", format!("%%MatrixMarket matrix coordinate real symmetric\n12 12 78\n{entries}"));
    let run = f.ok("solve a.mtx --method cg --preconditioner none --tolerance 1e-4");
    assert!(run.stdout.contains("converged in") && run.stdout.contains("ill-conditioned"), "{}", run.stdout);
    assert!(!f.ok("solve a.mtx").stdout.contains("ill-conditioned"));
}

#[test]
fn what_no_x_can_do_in_double_precision_is_not_put_on_the_matrix() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 30x30 -o a.mtx");
    let run = f.ok("solve a.mtx --rhs random:1 --tolerance 1e-16");
    assert!(!run.stdout.contains("ill-conditioned"), "{}", run.stdout);
    assert!(run.stdout.contains("The tolerance is beyond double precision"), "{}", run.stdout);
}
