//! Several processes that solve one system: the command, and the library. A test of the library starts this program
//! again as its ranks, with the name of the work in `WORK`.
#![cfg(all(unix, feature = "cli", feature = "ranks"))]

#[path = "common/rank.rs"]
mod common;

use common::{WORK, as_rank, die, messages, residua_command};
use residua::backend::{Communicator, Space};
use residua::generate::{self, Random};
use residua::graph::{
    Adjacency, SpreadGraph, bfs, reverse_cuthill_mckee, spread_reverse_cuthill_mckee, vertex_parts,
};
use residua::prelude::*;
use residua::ranks::{Group, launch};
use std::ops::ControlFlow;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Starts this program as `count` ranks.
fn ranks(count: usize, work: &str) -> residua::Result<Vec<u8>> {
    let own = std::env::current_exe().unwrap();
    let command = |_| {
        let mut command = Command::new(&own);
        command.args(["--exact", "a_rank"]).env(WORK, work).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    launch(count, command, || false)
}

#[test]
fn a_rank() {
    as_rank(rank);
}

fn rank(group: &Group, work: &str) -> residua::Result<()> {
    let (rank, count) = (group.rank(), group.ranks());
    match work {
        "messages" => {
            messages(group)?;
            // Sums are in the order of ranks: other orders round differently.
            let terms = [1e16_f64, 1.0, -1e16, 1.0];
            for _ in 0..1000 {
                let mut sums = [terms[rank % 4], 1.0];
                group.all_sum(&Host, &mut sums)?;
                assert_eq!(sums[0].to_bits(), terms[..count].iter().sum::<f64>().to_bits());
                assert_eq!(sums[1], count as f64);
            }
            Ok(())
        }
        "rows" => rows(group),
        "levels" => levels(group),
        "options" => group.agree_on("options", if rank == 2 { b"1e-6" } else { b"1e-8" }),
        "memory" if rank == 1 => Err(Error::InvalidArgument("no more memory".into())),
        "killed" if rank == 1 => die(group),
        _ => loop {
            group.all_sum(&Host, &mut [1.0_f64])?;
        },
    }
}

/// Breadth-first search in a graph whose vertices are distributed over the ranks.
fn levels(group: &Group) -> residua::Result<()> {
    let a = generate::rmat(5000, 8, generate::RmatKind::Symmetric, 3)?;
    let own = vertex_parts(&a, group.ranks())?[group.rank()].clone();
    let expected = bfs(&Adjacency::new(&a)?, 7)?;
    let found = SpreadGraph::new(Space::spread(Host, group.clone()), &a, own.clone())?.bfs(&[7])?;
    assert_eq!(found.levels, expected.as_slice()[own.clone()]);
    assert_eq!((found.count, found.reached), (expected.count(), expected.reached()));
    // Computes the order of the whole graph from this rank's rows alone.
    let row = |row: usize| if own.contains(&row) { a.row(row) } else { (&[][..], &[][..]) };
    let mut offsets = vec![0];
    (0..a.rows()).for_each(|k| offsets.push(offsets[k] + row(k).0.len()));
    let columns = (0..a.rows()).flat_map(|k| row(k).0.to_vec()).collect();
    let values = (0..a.rows()).flat_map(|k| row(k).1.to_vec()).collect();
    let mine = Csr::from_parts(a.rows(), a.rows(), offsets, columns, values)?;
    let found = spread_reverse_cuthill_mckee(&Space::spread(Host, group.clone()), &mine, own)?;
    assert!(found == reverse_cuthill_mckee(&a)?);
    Ok(())
}

/// Each rank gives some rows of a matrix, in an order with few halos and in one with many.
fn rows(group: &Group) -> residua::Result<()> {
    let a = generate::poisson2d(41, 30)?;
    let n = a.rows();
    let mut random = Random::new(9);
    let mut order: Vec<usize> = (0..n).collect();
    (1..n).for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
    let mut triplets = Triplets::new(n, n)?;
    a.iter().try_for_each(|(i, j, value)| triplets.push(order[i], order[j], value))?;
    for a in [a, residua::assemble::to_csr(&Host, triplets)?] {
        let bound = |rank: usize| n * rank * (rank + 1) / (group.ranks() * (group.ranks() + 1));
        let (first, last) = (bound(group.rank()), bound(group.rank() + 1));
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in first..last {
            columns.extend_from_slice(a.row(row).0);
            values.extend_from_slice(a.row(row).1);
            offsets.push(values.len());
        }
        let own = Csr::from_parts(last - first, n, offsets, columns, values);
        let mut solver = Solver::<f64>::builder().tolerance(1e-12).build_rows(group, own)?;
        assert_eq!((solver.rows(), solver.own_rows(), solver.nonzeros()), (n, last - first, a.nonzeros()));
        let solution: Vec<f64> = (0..n).map(|_| random.unit() - 0.5).collect();
        let mut b = vec![0.0; n];
        a.product(&Host, 1.0, &solution, 0.0, &mut b)?;
        for _ in 0..2 {
            let mut x = vec![0.0; last - first];
            let told = solver.solve_with(&b[first..last], &mut x, |_| ControlFlow::Continue(()))?;
            assert!(told[0].0.outcome.is_converged() && told[0].1.len() > 10);
            let wrong = x.iter().zip(&solution[first..]).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(wrong < 1e-9, "{wrong:e}");
        }
    }
    // If rows do not form a square matrix, all ranks return an error.
    let own = Csr::from_parts(1, 7, vec![0, 1], vec![0], vec![1.0]);
    let error = Solver::<f64>::builder().build_rows(group, own).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("A has 7 columns"), "{error}");
    Ok(())
}

#[test]
fn each_rank_gives_its_rows() {
    for count in [1, 2, 3] {
        assert_eq!(ranks(count, "rows").unwrap(), vec![0; count]);
    }
}

#[test]
fn each_rank_has_the_levels_of_its_vertices() {
    for count in [1, 2, 3] {
        assert_eq!(ranks(count, "levels").unwrap(), vec![0; count]);
    }
}

#[test]
fn ranks_send_each_other_messages_and_add_in_their_order() {
    for count in [2, 3, 4] {
        assert_eq!(ranks(count, "messages").unwrap(), vec![0; count]);
    }
}

/// The error message of ranks, which must end within seconds.
fn ends(count: usize, work: &str) -> String {
    let start = Instant::now();
    let error = ranks(count, work).unwrap_err().to_string();
    assert!(start.elapsed() < Duration::from_secs(5), "{work}: {:?}", start.elapsed());
    error
}

#[test]
fn a_rank_that_fails_disagrees_or_dies_ends_the_others() {
    assert_eq!(ends(3, "options"), "rank 2 of 3: has another options than rank 0");
    assert_eq!(ends(2, "memory"), "rank 1 of 2: invalid argument: no more memory");
    assert_eq!(ends(3, "killed"), "rank 1 of 3: was ended by signal 9");
}

fn residua(arguments: &[&str]) -> Output {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/matrices");
    Command::new(residua_command()).current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Solves with the command, and returns x and the report.
fn solve(matrix: &str, more: &[&str]) -> (Vec<f64>, serde_json::Value) {
    let solution = std::env::temp_dir().join(format!(
        "residua-ranks-{}-{:?}.mtx",
        std::process::id(),
        std::thread::current().id()
    ));
    let name = solution.display().to_string();
    let arguments = ["solve", matrix, "--device", "cpu", "--json", "-", "--output", &name];
    let output = residua(&[&arguments, more].concat());
    assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&solution).unwrap();
    std::fs::remove_file(&solution).unwrap();
    let numbers = text.lines().skip_while(|line| line.starts_with('%')).skip(1);
    let x = numbers.map(|line| line.trim().parse().unwrap()).collect();
    (x, serde_json::from_slice(&output.stdout).unwrap())
}

fn apart(x: &[f64], y: &[f64]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let difference = square(&mut x.iter().zip(y).map(|(x, y)| x - y));
    (difference / square(&mut y.iter().copied())).sqrt()
}

#[test]
fn every_method_gives_the_answer_of_one_process_and_the_same_bits_in_each_run() {
    let matrix = "poisson2d-64x64.mtx";
    // b has no symmetry that the blocks of some ranks could destroy.
    for (method, preconditioner) in [
        ("cg", "jacobi"),
        ("cg", "none"),
        ("cg", "chebyshev:4"),
        ("cg", "block-jacobi:4"),
        ("cg", "amg"),
        ("cg", "amg:boxes=no"),
        ("minres", "jacobi"),
        ("gmres", "jacobi"),
        ("bicgstab", "jacobi"),
    ] {
        let how = [
            "--method",
            method,
            "--preconditioner",
            preconditioner,
            "--tolerance",
            "1e-13",
            "--rhs",
            "random:3",
        ];
        let (one, report) = solve(matrix, &[&how[..], &["--format", "csr"]].concat());
        let alone = report["iterations"].as_i64().unwrap();
        for ranks in ["2", "3", "4"] {
            let all = [&how[..], &["--ranks", ranks]].concat();
            let (x, report) = solve(matrix, &all);
            assert_eq!(report["status"], "converged", "{all:?}");
            assert!(apart(&x, &one) < 1e-10, "{all:?}: {:e}", apart(&x, &one));
            let iterations = report["iterations"].as_i64().unwrap();
            // BiCGSTAB and the restarts of GMRES are more sensitive to rounding, and blocks of four start anew at each
            // rank's first row.
            let loose = matches!(method, "gmres" | "bicgstab") || preconditioner == "block-jacobi:4";
            let slack = if loose { 8 + alone / 4 } else { 3 };
            // One process uses boxes for a constant stencil; ranks interpolate between points, and need fewer
            // iterations.
            let fewest = if preconditioner == "amg" { alone / 2 } else { alone - slack };
            assert!((fewest..=alone + slack).contains(&iterations), "{all:?}: {iterations}, alone {alone}");
            assert_eq!(report["ranks"].as_array().unwrap().len().to_string(), ranks);
            assert_eq!(solve(matrix, &all).0, x, "{all:?}: other bits");
        }
    }
    let first = solve(matrix, &["--ranks", "3"]).0;
    assert!((0..5).all(|_| solve(matrix, &["--ranks", "3"]).0 == first), "other bits");
}

/// A file of which each rank reads a part.
fn file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("residua-ranks-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn each_rank_reads_its_own_rows() {
    let n = 90;
    let mut lines = Vec::new();
    for i in 0..n {
        lines.push(format!("{} {} {}", i + 1, i + 1, 3.0 + 0.01 * i as f64));
        if i > 0 {
            lines.push(format!("{} {} -1.25", i + 1, i));
            lines.push(format!("{} {} -0.5", i, i + 1));
            // A duplicate, which is added up, from different parts of the file.
            lines.push(format!("{} {} -0.25", i, i + 1));
        }
    }
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&k| (k * 7919) % lines.len());
    let text = |banner: &str, end: &str| {
        let body: Vec<&str> = order.iter().map(|&k| &*lines[k]).collect();
        format!("{banner}\n% a remark\n{n} {n} {}\n{}{end}", lines.len(), body.join("\n"))
    };
    let general = file("general.mtx", &text("%%MatrixMarket matrix coordinate real general", ""));
    let chosen = |report: &serde_json::Value, subject: &str| {
        let all = report["trail"]["decisions"].as_array().unwrap();
        all.iter().find(|d| d["subject"] == subject).unwrap()["why"].as_str().unwrap().to_string()
    };
    for method in ["gmres", "bicgstab", "lsmr"] {
        let how = ["--method", method, "--tolerance", "1e-12", "--rhs", "a-random:3"];
        let (one, _) = solve(&general, &how);
        for ranks in ["2", "3"] {
            let (x, report) = solve(&general, &[&how[..], &["--ranks", ranks]].concat());
            assert_eq!(chosen(&report, "order"), "the rows were distributed by the caller");
            assert!(apart(&x, &one) < 1e-10, "{method}, {ranks}: {:e}", apart(&x, &one));
            assert_eq!(report["nonzeros"].as_i64().unwrap(), 3 * n - 2);
        }
    }
    let output = residua(&["solve", &general, "--method", "cg", "--ranks", "2", "--device", "cpu"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("not symmetric"));
    // A fault in a file is reported as by one process, with its line.
    let wrong = file("wrong.mtx", &text("%%MatrixMarket matrix coordinate real general", "x"));
    let output = residua(&["solve", &wrong, "--ranks", "3", "--device", "cpu"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains(&format!("wrong.mtx:{}: ", lines.len() + 3)), "{told}");
    // In a stored triangle no entry may occur twice, nor be on the other side.
    let half = file(
        "half.mtx",
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 2\n2 2 2\n3 3 2\n2 1 1\n",
    );
    assert_eq!(solve(&half, &["--ranks", "2"]).1["nonzeros"], 5);
    for path in [general, wrong, half] {
        std::fs::remove_file(path).unwrap();
    }
}

/// Files with entries in different orders: each rank assembles its rows from the entries it parsed, without sorting if
/// the file is sorted.
#[test]
fn the_order_of_a_file_makes_no_difference_to_ranks() {
    let n = 80_i32;
    let mut lines = Vec::new();
    for i in 1..=n {
        for j in [i - 9, i - 1, i, i + 1, i + 9, n + 1 - i] {
            if (1..=n).contains(&j) && (j != n + 1 - i || (i - j).abs() > 9) {
                let value = if i == j { 9.0 } else { -0.01 * f64::from(i + j) };
                lines.push((i, j, value));
            }
        }
    }
    let half: Vec<_> = lines.iter().copied().filter(|(i, j, _)| i >= j).collect();
    let by_columns = |lines: &[(i32, i32, f64)]| {
        let mut sorted = lines.to_vec();
        sorted.sort_by_key(|&(i, j, _)| (j, i));
        sorted
    };
    let mut by_rows = lines.clone();
    by_rows.sort_by_key(|&(i, j, _)| (i, j));
    let mixed: Vec<_> =
        half.iter().map(|&(i, j, v)| if (i + j) % 3 == 0 { (j, i, v) } else { (i, j, v) }).collect();
    let mut expected: Option<Vec<f64>> = None;
    for (name, symmetry, lines) in [
        ("rows", "general", &by_rows),
        ("columns", "general", &by_columns(&lines)),
        ("lower", "symmetric", &by_columns(&half)),
        ("mixed", "symmetric", &mixed),
    ] {
        // Comments may be anywhere.
        let body: Vec<String> = lines.iter().map(|(i, j, v)| format!("{i} {j} {v}")).collect();
        let (first, second) = body.split_at(body.len() / 3);
        let text = format!(
            "%%MatrixMarket matrix coordinate real {symmetry}\n{n} {n} {}\n{}\n% between\n{}\n",
            lines.len(),
            first.join("\n"),
            second.join("\n")
        );
        let path = file(&format!("{name}.mtx"), &text);
        for ranks in ["2", "3"] {
            let how = ["--method", "cg", "--tolerance", "1e-12", "--rhs", "random:3", "--reorder", "none"];
            let (x, report) = solve(&path, &[&how[..], &["--ranks", ranks]].concat());
            assert_eq!(report["nonzeros"], by_rows.len());
            assert!(report["trail"].to_string().contains("the rows were distributed by the caller"));
            let (one, _) = solve(&path, &how);
            assert!(apart(&x, &one) < 1e-10, "{name}, {ranks} ranks: {:e}", apart(&x, &one));
            let expected = expected.get_or_insert(one);
            assert!(apart(&x, expected) < 1e-10, "{name}, {ranks} ranks");
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_ranks_cannot_do_is_refused_in_one_line() {
    let told = |arguments: &[&str], status: i32| {
        let output = residua(arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{arguments:?}: {told}");
        told
    };
    let matrix = "poisson2d-64x64.mtx";
    let mixed = told(&["solve", matrix, "--ranks", "2", "--precision", "mixed"], 3);
    assert!(mixed.starts_with("residua: rank ") && mixed.contains(" on several ranks"));
    // One rank makes a factorisation, and the others get its report.
    let direct = residua(&["solve", matrix, "--ranks", "2", "--method", "direct"]);
    let words = String::from_utf8(direct.stdout).unwrap();
    assert!(direct.status.success() && words.contains("converged in 1 iteration"), "{words}");
    assert!(told(&["solve", "nowhere.mtx", "--ranks", "2"], 3).contains("nowhere.mtx"));
    told(&["solve", "-", "--ranks", "2"], 2);
    let few = residua(&["solve", matrix, "--ranks", "2", "--max-iterations", "3"]);
    assert_eq!(few.status.code(), Some(4));
}
