//! `residua solve` with several matrices.

use crate::support::Folder;
use serde_json::Value;

/// Three systems of different sizes.
fn three() -> Folder {
    let f = Folder::new();
    for (name, size) in [("a", "12x11"), ("b", "9x8"), ("c", "20x3")] {
        f.ok(&format!("generate poisson2d --size {size} -o {name}.mtx"));
    }
    f
}

#[test]
fn each_has_the_same_result_as_alone() {
    let f = three();
    f.ok("solve a.mtx b.mtx c.mtx -q --device cpu -o {}.npy --json r-{}.json --history h-{}.csv");
    for (name, rows) in [("a", 132), ("b", 72), ("c", 60)] {
        f.ok(&format!("solve {name}.mtx -q --device cpu -o alone.npy --history alone.csv"));
        let bytes = |file: &str| std::fs::read(f.path(file)).unwrap();
        assert_eq!(bytes(&format!("{name}.npy")), bytes("alone.npy"));
        assert_eq!(bytes(&format!("h-{name}.csv")), bytes("alone.csv"));
        let json: Value = serde_json::from_str(&f.read(&format!("r-{name}.json"))).unwrap();
        assert_eq!((&json["matrix"], &json["rows"]), (&format!("{name}.mtx").into(), &rows.into()));
    }
}

#[test]
fn right_hand_sides_are_named_by_their_matrices() {
    let f = three();
    let ones = |n: usize| format!("%%MatrixMarket matrix array real general\n{n} 1\n{}", "1\n".repeat(n));
    f.write("b-a.mtx", ones(132));
    f.write("b-b.mtx", ones(72));
    f.ok("solve a.mtx b.mtx -q --rhs b-{}.mtx -o x-{}.mtx");
    f.ok("solve b.mtx -q --rhs ones -o alone.mtx");
    assert_eq!(f.read("x-b.mtx"), f.read("alone.mtx"));
    // The name of a single result may have a placeholder, too.
    f.ok("solve a.mtx -q -o only-{}.mtx");
    assert!(f.names().contains(&"only-a.mtx".to_string()));
}

#[test]
fn one_that_fails_leaves_the_others() {
    let f = three();
    f.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n");
    let run = f.run(["solve", "a.mtx", "bad.mtx", "c.mtx", "-q", "-o", "x-{}.mtx"]);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.contains("bad.mtx:3") && run.stderr.contains("1 of 3 systems"), "{}", run.stderr);
    assert!(f.names().contains(&"x-a.mtx".to_string()) && f.names().contains(&"x-c.mtx".to_string()));
    let limited =
        ["solve", "a.mtx", "b.mtx", "-q", "--method", "cg", "--max-iterations", "1", "-o", "l-{}.mtx"];
    assert_eq!(f.run(limited).status, 4);
    assert!(f.names().contains(&"l-b.mtx".to_string()));
}

#[test]
fn what_would_be_written_over_is_refused() {
    let f = three();
    std::fs::create_dir(f.path("more")).unwrap();
    std::fs::copy(f.path("a.mtx"), f.path("more/a.mtx")).unwrap();
    for (line, words) in [
        ("solve a.mtx b.mtx -o x.mtx", "several matrices"),
        ("solve a.mtx more/a.mtx -o x-{}.mtx", "have the name a"),
        ("solve a.mtx -", "standard input"),
    ] {
        let run = f.run(line.split(' '));
        assert_eq!(run.status, 2, "{line}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{line}: {}", run.stderr);
    }
    assert!(!f.names().iter().any(|name| name.starts_with('x')));
    // Nothing is written, so names may be the same.
    f.ok("solve a.mtx more/a.mtx -q");
}

#[test]
fn a_second_file_with_one_column_is_no_matrix() {
    let f = three();
    f.write("rhs.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
    let run = f.run(["solve", "a.mtx", "rhs.mtx"]);
    assert_eq!(run.status, 2, "{}", run.stderr);
    assert!(run.stderr.contains("a right-hand side by --rhs rhs.mtx"), "{}", run.stderr);
}
