//! Input from which no system can be read: status 3, one line that names file and cause, and outputs that are not
//! changed.

use crate::support::{Folder, finish, residua};
use std::process::Command;

const REAL: &str = "%%MatrixMarket matrix coordinate real general\n";
const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n";
const ARRAY: &str = "%%MatrixMarket matrix array real general\n";

/// Solves `matrix` and expects an error that contains all of `words`, with bounded memory and `x.mtx` unchanged.
fn refused(f: &Folder, arguments: &str, words: &[&str]) {
    f.write("x.mtx", "precious");
    let before = f.names();
    let mut command = Command::new("sh");
    // 1 GB of address space: enough for two threads and their stacks, but not for a size that a header falsely claims.
    let line = format!("ulimit -v 1000000; exec \"{}\" solve {arguments} -o x.mtx", residua().display());
    command.arg("-c").arg(line).current_dir(f.path("")).env("RAYON_NUM_THREADS", "2");
    let run = finish(command, b"");
    assert_eq!(run.status, 3, "{arguments}: {}{}", run.stdout, run.stderr);
    assert!(run.stdout.is_empty(), "{arguments}: {}", run.stdout);
    assert_eq!(run.stderr.lines().count(), 1, "{arguments}: {}", run.stderr);
    assert!(run.stderr.starts_with("residua: ") && run.stderr.len() < 400, "{}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "{arguments}: no {word} in {}", run.stderr);
    }
    assert_eq!(f.read("x.mtx"), "precious", "{arguments}");
    assert_eq!(f.names(), before, "{arguments} left something behind");
}

#[test]
fn broken_files_are_refused_by_file_line_and_cause() {
    let f = Folder::new();
    for (name, content, words) in [
        ("truncated.mtx", format!("{REAL}3 3 3\n1 1 1\n2 2 1\n"), ["truncated.mtx:", "2 of 3"]),
        ("long.mtx", format!("{REAL}2 2 1\n1 1 1\n2 2 1\n"), ["long.mtx:4:", "more than"]),
        ("half-line.mtx", format!("{REAL}2 2 2\n1 1 1\n2 2"), ["half-line.mtx:4:", "value"]),
        ("zero.mtx", format!("{REAL}2 2 1\n0 1 1\n"), ["zero.mtx:3:", "start at 1"]),
        ("outside.mtx", format!("{REAL}2 2 1\n3 1 1\n"), ["outside.mtx:3:", "outside"]),
        ("beyond.mtx", format!("{REAL}2 2 1\n1 4294967297 1\n"), ["beyond.mtx:3:", "outside"]),
        ("negative.mtx", format!("{REAL}2 2 1\n-1 1 1\n"), ["negative.mtx:3:", "`-1`"]),
        ("word.mtx", format!("{REAL}2 2 1\n1 1 one\n"), ["word.mtx:3:", "`one` is not a number"]),
        ("nan.mtx", format!("{REAL}1 1 1\n1 1 nan\n"), ["nan.mtx:3:", "not finite"]),
        ("infinite.mtx", format!("{REAL}1 1 1\n1 1 -inf\n"), ["infinite.mtx:3:", "not finite"]),
        ("overflow.mtx", format!("{REAL}1 1 1\n1 1 1e999\n"), ["overflow.mtx:3:", "too large"]),
        ("claim.mtx", format!("{REAL}9 9 1000000000000000\n1 1 1\n"), ["claim.mtx:3:", "1000000000000000"]),
        ("rows.mtx", format!("{REAL}4000000000 4000000000 1\n1 1 1\n"), ["rows.mtx:2:", "memory"]),
        ("huge.mtx", format!("{REAL}99999999999 9 1\n1 1 1\n"), ["huge.mtx:2:", "32 bits"]),
        ("banner.mtx", "1 1 1\n1 1 1\n".to_string(), ["banner.mtx:1:", "not a Matrix Market file"]),
        ("empty.mtx", String::new(), ["empty.mtx:1:", "empty"]),
        ("only.mtx", REAL.to_string(), ["only.mtx:", "sizes"]),
        ("zeros.mtx", "\0".repeat(100_000), ["zeros.mtx:1:", "not a Matrix Market file"]),
        ("nothing.mtx", format!("{REAL}0 0 0\n"), ["nothing.mtx:", "matrix is empty"]),
        ("tall-symmetric.mtx", format!("{SYMMETRIC}3 2 1\n1 1 1\n"), ["tall-symmetric.mtx:2:", "square"]),
    ] {
        f.write(name, content);
        refused(&f, name, &words);
    }
    // Matrices that one of the methods cannot solve.
    for (name, content, words) in [
        ("tall.mtx", format!("{REAL}3 2 1\n1 1 1\n"), ["tall.mtx:", "3 x 2 is not square"]),
        (
            "unsymmetric.mtx",
            format!("{REAL}2 2 3\n1 1 1\n2 2 1\n1 2 7\n"),
            ["not symmetric", "entry (1, 2) is 7"],
        ),
        (
            "skew.mtx",
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n".into(),
            ["skew.mtx:", "skew-symmetric"],
        ),
        (
            "complex.mtx",
            "%%MatrixMarket matrix coordinate complex symmetric\n1 1 1\n1 1 1 5\n".into(),
            ["complex.mtx:", "Hermitian"],
        ),
    ] {
        f.write(name, content);
        refused(&f, &format!("{name} --method cg"), &words);
    }
}

#[test]
fn gzip_cut_in_half() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 40x40 -o whole.mtx.gz");
    let whole = std::fs::read(f.path("whole.mtx.gz")).unwrap();
    f.write("cut.mtx.gz", &whole[..whole.len() / 2]);
    refused(&f, "cut.mtx.gz", &["cut.mtx.gz:", "cut off"]);
    f.write("stub.mtx.gz", &whole[..5]);
    refused(&f, "stub.mtx.gz", &["stub.mtx.gz"]);
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle..middle + 8].fill(0x55);
    f.write("flipped.mtx.gz", flipped);
    refused(&f, "flipped.mtx.gz", &["flipped.mtx.gz"]);
}

#[test]
fn files_that_cannot_be_opened() {
    let f = Folder::new();
    std::fs::create_dir(f.path("folder")).unwrap();
    refused(&f, "folder", &["folder:", "irectory"]);
    refused(&f, "missing.mtx", &["missing.mtx:", "No such file"]);
    f.ok("generate diagonal --size 5 -o a.mtx");
    for rhs in ["missing.mtx", "folder"] {
        refused(&f, &format!("a.mtx --rhs {rhs}"), &[rhs]);
    }
    refused(&f, "a.mtx --rhs nosuch", &["nosuch: no such file, nor one of the names ones, a-ones"]);
    refused(&f, "a.mtx --json nosuch/r.json", &["nosuch/r.json: ", "there is no folder nosuch"]);
    // Root can read files without any permission.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(f.path("a.mtx"), std::fs::Permissions::from_mode(0o000)).unwrap();
        if std::fs::File::open(f.path("a.mtx")).is_err() {
            refused(&f, "a.mtx", &["a.mtx: Permission denied"]);
        }
    }
}

#[test]
fn right_hand_sides_that_do_not_fit() {
    let f = Folder::new();
    f.ok("generate diagonal --size 3 -o a.mtx");
    for (content, words) in [
        (format!("{ARRAY}2 1\n1\n1\n"), ["b.mtx:", "2 rows, but a.mtx has 3"]),
        (format!("{ARRAY}1 3\n1\n1\n1\n"), ["b.mtx:", "as a column"]),
        (format!("{ARRAY}3 0\n"), ["b.mtx:", "no columns"]),
        (format!("{ARRAY}3 1\n1\n1\n"), ["b.mtx:", "2 of 3"]),
        (format!("{ARRAY}3 1\n1\nnan\n1\n"), ["b.mtx:4:", "not finite"]),
    ] {
        f.write("b.mtx", content);
        refused(&f, "a.mtx --rhs b.mtx", &words);
    }
}

#[test]
fn outputs_are_checked_before_the_work() {
    let f = Folder::new();
    f.ok("generate diagonal --size 3 -o a.mtx");
    std::fs::create_dir(f.path("folder")).unwrap();
    let before = f.names();
    for option in ["-o", "--json", "--history", "--plot"] {
        for target in ["missing/x", "folder"] {
            let run = f.run(["solve", "a.mtx", option, target]);
            assert_eq!(run.status, 3, "{option} {target}");
            assert!(run.stderr.starts_with(&format!("residua: {target}: ")), "{}", run.stderr);
            assert!(run.stdout.is_empty(), "nothing was solved: {}", run.stdout);
        }
    }
    assert_eq!(f.names(), before);
}

/// A mistyped file name destroys neither the matrix nor a result, even if one file is named by two paths.
#[test]
fn results_have_files_of_their_own() {
    let f = Folder::new();
    f.ok("generate diagonal --size 3 -o a.mtx");
    f.write("b.mtx", format!("{ARRAY}3 1\n1\n1\n1\n"));
    let (a, before) = (f.read("a.mtx"), f.names());
    for (line, word) in [
        ("solve a.mtx -o a.mtx", "overwrite an input file"),
        ("solve a.mtx -o FOLDER/./a.mtx", "overwrite an input file"),
        ("solve a.mtx --rhs b.mtx --json b.mtx", "overwrite an input file"),
        ("solve a.mtx -o x.mtx --history ./x.mtx", "only one result"),
        ("info a.mtx --json a.mtx", "overwrite an input file"),
        ("bench a.mtx --json y --csv y", "only one result"),
        ("reorder a.mtx -o r.mtx --permutation r.mtx", "only one result"),
        ("reorder a.mtx -o r.mtx --permutation a.mtx", "overwrite an input file"),
    ] {
        let folder = f.path("").display().to_string();
        let line = line.replace("FOLDER", folder.trim_end_matches('/'));
        let run = f.fails(2, &line);
        assert!(run.stderr.contains(word) && run.stderr.lines().count() == 1, "{line}: {}", run.stderr);
    }
    assert_eq!((f.read("a.mtx"), f.names()), (a, before));
    // Rewriting a matrix in place is allowed, and a destination that is no file takes any number of results.
    f.ok("convert a.mtx a.mtx");
    f.ok("reorder a.mtx -o a.mtx");
    f.ok("solve a.mtx -o /dev/null --json /dev/null");
}

#[test]
fn messages_tell_what_to_do() {
    let f = Folder::new();
    f.ok("generate diagonal --size 3 -o a.mtx");
    let complex = "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 2 0\n";
    let run = f.run_with(["solve", "-"], complex.as_bytes());
    assert_eq!((run.status, run.stderr.matches("-: ").count()), (3, 1), "{}", run.stderr);
    assert!(run.stderr.contains("a pipe is always read as real"), "{}", run.stderr);
    let run = f.fails(2, "solve a.mtx --tolerance -1");
    assert!(run.stderr.contains("a tolerance must be at least 0"), "{}", run.stderr);
    let run = f.fails(2, "bench a.mtx --device cpu --formats cusparse");
    assert!(run.stderr.contains("choose auto, measured, csr, "), "{}", run.stderr);
}

#[test]
fn other_subcommands_refuse_alike() {
    let f = Folder::new();
    f.write("bad.mtx", format!("{REAL}2 2 1\n9 1 1\n"));
    f.write("tall.mtx", format!("{REAL}3 2 1\n1 1 1\n"));
    f.write("y.mtx", "precious");
    for line in [
        "info bad.mtx",
        "convert bad.mtx y.mtx",
        "reorder bad.mtx -o y.mtx",
        "bench bad.mtx",
        "bench missing.mtx",
    ] {
        let run = f.fails(3, line);
        assert!(run.stdout.is_empty() && run.stderr.lines().count() == 1, "{line}: {}", run.stderr);
    }
    let run = f.fails(3, "reorder tall.mtx -o y.mtx");
    assert!(run.stderr.contains("tall.mtx: 3 x 2 is not square"), "{}", run.stderr);
    assert_eq!(f.read("y.mtx"), "precious");
}
