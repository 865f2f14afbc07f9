//! `residua solve` on good input.

use crate::support::{Entries, Folder, check_svg, devices, norm, ones, read_matrix, residual};
use serde_json::Value;

/// The keys of a JSON object, in order.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn sorted<const N: usize>(mut names: [&str; N]) -> Vec<&str> {
    names.sort_unstable();
    names.to_vec()
}

const KEYS: [&str; 28] = [
    "right_hand_side",
    "status",
    "iterations",
    "relative_residual",
    "row_wise_residual",
    "backward_error",
    "condition",
    "digits",
    "normal_residual",
    "outside_range",
    "error",
    "rows",
    "columns",
    "nonzeros",
    "symmetric",
    "format",
    "device",
    "method",
    "preconditioner",
    "seconds",
    "bytes_per_iteration",
    "bandwidth_gb_s",
    "history",
    "trail",
    "matrix",
    "tolerance",
    "version",
    "threads",
];

#[test]
fn levels_of_multigrid_are_told_and_drawn() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 90x80 -o a.mtx");
    let line = "solve a.mtx --device cpu --method cg --plot p.svg --json r.json --preconditioner ";
    let run = f.ok(&format!("{line}amg"));
    let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
    let levels = json["trail"]["stages"][0]["levels"].as_array().unwrap();
    let size = |level: &Value| (level["rows"].as_u64().unwrap(), level["entries"].as_u64().unwrap());
    let sizes: Vec<_> = levels.iter().map(size).collect();
    assert!(sizes.len() > 2 && sizes[0] == (7200, 5 * 7200 - 2 * (90 + 80)), "{sizes:?}");
    assert!(sizes.windows(2).all(|pair| pair[1].0 < pair[0].0), "{sizes:?}");
    let words = format!("{}, with 7200 to {} rows and ", sizes.len(), sizes[sizes.len() - 1].0);
    assert!(run.stdout.contains(&words), "{words} in {}", run.stdout);
    let picture = f.read("p.svg");
    assert!(picture.contains("levels of multigrid") && picture.matches(" entries<").count() == sizes.len());

    let run = f.ok(&format!("{line}jacobi"));
    let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
    assert!(json["trail"]["stages"][0].get("levels").is_none());
    assert!(!run.stdout.contains("levels") && !f.read("p.svg").contains("levels"));
}

#[test]
fn defaults_solve_and_tell() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 30x20 -o a.mtx");
    let run = f.ok("solve a.mtx -o x.mtx --history h.csv --plot p.svg --json r.json");
    for word in [
        "a.mtx: 600 x 600, 2900 nonzeros, symmetric",
        "converged in",
        "recomputed from x",
        "known x",
        "x.mtx",
    ] {
        assert!(run.stdout.contains(word), "{word} in {}", run.stdout);
    }
    assert!(run.stderr.is_empty(), "no progress bar into a pipe: {}", run.stderr);

    let (a, x) = (read_matrix(&f.path("a.mtx")), read_matrix(&f.path("x.mtx")));
    assert_eq!((x.rows, x.columns), (600, 1));
    let (b, _) = a.product(&ones(600));
    assert!(residual(&a, &x.column(0), &b).0 <= 1e-8);

    let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
    assert_eq!(keys(&json), sorted(KEYS));
    let stages = sorted(["read", "assemble", "reorder", "convert", "setup", "solve", "other"]);
    assert_eq!(keys(&json["seconds"]), stages);
    assert_eq!(json["status"], "converged");
    assert_eq!(
        (&json["rows"], &json["columns"], &json["nonzeros"]),
        (&600.into(), &600.into(), &2900.into())
    );
    assert_eq!((&json["method"], &json["preconditioner"]), (&"cg".into(), &"jacobi".into()));
    assert_eq!(json["symmetric"], true);
    let iterations = json["iterations"].as_u64().unwrap() as usize;
    let history: Vec<f64> = json["history"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert_eq!(history.len(), iterations + 1);
    assert!(history[0] == 1.0 && history[iterations] <= 1e-8);
    assert!(json["relative_residual"].as_f64().unwrap() <= 1e-8);
    let error = x.column(0).iter().map(|v| (v.0 - 1.0, v.1)).collect::<Vec<_>>();
    let error = norm(&error) / 600f64.sqrt();
    assert!((json["error"].as_f64().unwrap() / error - 1.0).abs() < 1e-6);
    assert!(json["bytes_per_iteration"].as_u64().unwrap() > 2900 * 8);

    let csv = f.read("h.csv");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("iteration,relative_residual"));
    for (k, (line, expected)) in lines.by_ref().zip(&history).enumerate() {
        let (iteration, value) = line.split_once(',').unwrap();
        assert_eq!(iteration.parse(), Ok(k));
        // The tests' JSON reader may be off in the last bit.
        let value: f64 = value.parse().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-15);
    }
    assert_eq!(csv.lines().count(), history.len() + 1);
    check_svg(&f.read("p.svg"));
}

#[test]
fn every_kind_of_right_hand_side() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 12x9 -o a.mtx");
    let a = read_matrix(&f.path("a.mtx"));
    let solve = |rhs: &str| {
        let json = f.run(["solve", "a.mtx", "--json", "-", "-o", "x.mtx", "--rhs", rhs]).json();
        (read_matrix(&f.path("x.mtx")).column(0), json)
    };
    let (x, json) = solve("ones");
    assert!(residual(&a, &x, &ones(108)).0 <= 1e-8 && json["error"].is_null());
    let (x, json) = solve("a-random:3");
    let (other, _) = solve("a-random:4");
    assert_ne!(x, other);
    assert!(json["error"].as_f64().unwrap() < 1e-6);
    assert!(x.iter().all(|v| v.0.abs() <= 1.0) && norm(&x) > 3.0, "x is random in [-1, 1)");
    let (x, json) = solve("random:3");
    assert!(json["status"] == "converged" && json["error"].is_null() && norm(&x) > 0.0);

    let (b, _) = a.product(&(0..108).map(|i| (f64::from(i), 0.0)).collect::<Vec<_>>());
    let text: String = b.iter().map(|v| format!("{:e}\n", v.0)).collect();
    f.write("b.mtx", format!("%%MatrixMarket matrix array real general\n108 1\n{text}"));
    let (x, _) = solve("b.mtx");
    assert!(residual(&a, &x, &b).0 <= 1e-8);
    assert!((x[100].0 - 100.0).abs() < 1e-5);
}

#[test]
fn several_right_hand_sides_at_once() {
    let f = Folder::new();
    f.ok("generate poisson3d-27 --size 6x6x3 -o a.mtx");
    let n = 108;
    let columns: Vec<Vec<f64>> = vec![
        (0..n).map(|i| f64::from(i as u32).sin()).collect(),
        vec![0.0; n],
        (0..n).map(|i| if i == 5 { 1.0 } else { 0.0 }).collect(),
    ];
    let text: String = columns.concat().iter().map(|v| format!("{v:e}\n")).collect();
    f.write("b.mtx", format!("%%MatrixMarket matrix array real general\n{n} 3\n{text}"));
    let line = "solve a.mtx --rhs b.mtx -o x.mtx --json r.json --history h.csv --plot p.svg";
    let run = f.ok(line);
    assert!(run.stdout.contains("3 of 3 right-hand sides converged"), "{}", run.stdout);
    let (a, x) = (read_matrix(&f.path("a.mtx")), read_matrix(&f.path("x.mtx")));
    assert_eq!((x.rows, x.columns), (n, 3));
    for (j, b) in columns.iter().enumerate() {
        let b: Vec<_> = b.iter().map(|&v| (v, 0.0)).collect();
        assert!(residual(&a, &x.column(j), &b).0 <= 1e-8, "column {j}");
    }
    assert_eq!(norm(&x.column(1)), 0.0);
    let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
    let each = json["right_hand_sides"].as_array().unwrap();
    assert_eq!(each.len(), 3);
    assert_eq!(keys(&each[0]), sorted(["status", "iterations", "relative_residual", "error", "history"]));
    assert_eq!(each[1]["iterations"], 0);
    let worst = each.iter().map(|c| c["relative_residual"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(json["relative_residual"].as_f64(), Some(worst));
    let csv = f.read("h.csv");
    assert!(csv.starts_with("right_hand_side,iteration,relative_residual\n1,0,1e0\n"), "{csv}");
    assert!(csv.contains("\n3,0,1e0\n"));
    let svg = f.read("p.svg");
    check_svg(&svg);
    assert!(svg.contains("right-hand side 3"));

    // The same with another preconditioner, in another order, and with several at once, in groups.
    let x = read_matrix(&f.path("x.mtx"));
    f.write("many.mtx", format!("%%MatrixMarket matrix array real general\n{n} 12\n{}", text.repeat(4)));
    for how in ["--rhs b.mtx --preconditioner block-jacobi:1", "--rhs b.mtx --reorder rcm", "--rhs many.mtx"]
    {
        let run = f.ok(&format!("solve a.mtx {how} -o y.mtx --json y.json"));
        // Three right-hand sides are too few to be solved at once.
        assert_eq!(run.stdout.contains("6 right-hand sides at once"), how.contains("many"), "{}", run.stdout);
        let y = read_matrix(&f.path("y.mtx"));
        let json: Value = serde_json::from_str(&f.read("y.json")).unwrap();
        let each = json["right_hand_sides"].as_array().unwrap().len();
        assert_eq!(y.columns, each);
        for j in 0..each {
            let error: Vec<_> =
                x.column(j % 3).iter().zip(y.column(j)).map(|(x, y)| (x.0 - y.0, x.1 - y.1)).collect();
            assert!(norm(&error) <= 1e-6 * norm(&x.column(0)), "{how}, column {j}: {:e}", norm(&error));
        }
    }

    // If one of them is not solved the status is 4, and the x of the others are written all the same.
    let run = f.fails(4, &format!("{line} --max-iterations 1"));
    assert!(run.stdout.contains("1 of 3 right-hand sides converged"), "{}", run.stdout);
    assert_eq!(read_matrix(&f.path("x.mtx")).columns, 3);
}

#[test]
fn every_format_and_preconditioner_gives_the_same_answer() {
    let f = Folder::new();
    f.ok("generate jumping2d --size 20x30 --contrast 100 -o a.mtx");
    let a = read_matrix(&f.path("a.mtx"));
    let (b, _) = a.product(&ones(600));
    for preconditioner in ["jacobi", "none"] {
        let mut counts = Vec::new();
        for format in ["auto", "csr", "coo", "csc", "ell", "hybrid", "jds", "sell", "dia"] {
            let line =
                format!("solve a.mtx --format {format} --preconditioner {preconditioner} -o x.mtx --json -");
            let json = f.ok(&line).json();
            assert!(format == "auto" || json["format"] == format, "{}", json["format"]);
            assert_eq!(json["preconditioner"], preconditioner);
            assert!(residual(&a, &read_matrix(&f.path("x.mtx")).column(0), &b).0 <= 1e-8, "{format}");
            counts.push(json["iterations"].as_i64().unwrap());
        }
        // Formats round differently, and so the number of iterations differs after the norm meets the tolerance and
        // before the rows do.
        let alike = 2 + counts[0] / 100;
        assert!(counts.iter().all(|count| (count - counts[0]).abs() <= alike), "{counts:?}");
    }
}

#[test]
fn every_preconditioner_and_precision_meets_the_tolerance() {
    let f = Folder::new();
    f.ok("generate jumping2d --size 20x30 --contrast 100 -o a.mtx");
    let a = read_matrix(&f.path("a.mtx"));
    let (b, _) = a.product(&ones(600));
    for device in devices() {
        let mut counts = std::collections::HashMap::new();
        let choices =
            ["jacobi", "block-jacobi:30", "fsai", "chebyshev:3", "chebyshev-single:3"].into_iter().flat_map(
                |preconditioner| ["double", "mixed", "auto"].map(|precision| (preconditioner, precision)),
            );
        for (preconditioner, precision) in choices {
            let how = format!("--device {device} --preconditioner {preconditioner} --precision {precision}");
            let json = f.ok(&format!("solve a.mtx {how} --tolerance 1e-11 -o x.mtx --json -")).json();
            assert_eq!(
                (&json["preconditioner"], &json["status"]),
                (&preconditioner.into(), &"converged".into())
            );
            assert!(residual(&a, &read_matrix(&f.path("x.mtx")).column(0), &b).0 <= 1e-11, "{how}");
            counts.insert((preconditioner, precision), json["iterations"].as_i64().unwrap());
        }
        let jacobi = counts[&("jacobi", "double")];
        for better in ["block-jacobi:30", "fsai", "chebyshev:3", "chebyshev-single:3"] {
            assert!(counts[&(better, "double")] < jacobi, "{device}: {counts:?}");
        }
    }
    let told = f.ok("solve a.mtx --precision mixed").stdout;
    assert!(told.contains("single precision"), "{told}");
}

/// A system that half the precision cannot solve, or cannot represent, is solved by `auto` in full precision.
#[test]
fn automatic_precision_meets_the_tolerance_where_mixed_does_not() {
    let f = Folder::new();
    let head = "%%MatrixMarket matrix coordinate real symmetric\n";
    f.write("stiff.mtx", format!("{head}2 2 3\n1 1 1\n2 1 0.99999998\n2 2 1\n"));
    f.write("large.mtx", format!("{head}2 2 3\n1 1 4e200\n2 1 1e200\n2 2 3e200\n"));
    f.write("small.mtx", format!("{head}2 2 3\n1 1 4e-200\n2 1 1e-200\n2 2 3e-200\n"));
    let matrices = [("stiff", 4), ("large", 3), ("small", 3)];
    for (device, (name, status)) in devices().into_iter().flat_map(|d| matrices.map(|matrix| (d, matrix))) {
        let what = format!("{name} on {device}");
        let line = |precision| {
            let how = format!("--device {device} --rhs random:3 --tolerance 1e-6 --precision {precision}");
            format!("solve {name}.mtx {how} --json -")
        };
        let mixed = f.run(line("mixed").split(' '));
        assert_eq!(mixed.status, status, "{what}: {}", mixed.stderr);
        assert_eq!(mixed.stderr.contains("beyond the range of single precision"), status == 3, "{what}");
        let [double, auto] = ["double", "auto"].map(|precision| f.ok(&line(precision)).json());
        assert_eq!(auto["status"], "converged", "{what}");
        assert!(auto["relative_residual"].as_f64() <= Some(1e-6), "{what}");
        let count = |json: &serde_json::Value| json["iterations"].as_u64().unwrap();
        assert!(count(&auto) >= count(&double), "{what}");
        assert_eq!(auto["history"].as_array().unwrap().len() as u64, count(&auto) + 1, "{what}");
    }
}

/// The grid's points renumbered at random.
fn shuffled(f: &Folder) -> Entries {
    f.ok("generate poisson2d --size 15x14 -o plain.mtx");
    let plain = read_matrix(&f.path("plain.mtx"));
    let new = |i: usize| (i * 83 + 7) % 210;
    let lines: String = plain
        .entries
        .iter()
        .map(|(i, j, v)| {
            format!("{} {} {}\n", new(*i) + 1, new(*j) + 1, v.0 * (1.0 + (*i.min(j) as f64) / 500.0))
        })
        .collect();
    let count = plain.entries.len();
    f.write("a.mtx", format!("%%MatrixMarket matrix coordinate real general\n210 210 {count}\n{lines}"));
    read_matrix(&f.path("a.mtx"))
}

#[test]
fn reordering_keeps_the_order_of_x_and_tells_the_bandwidth() {
    let f = Folder::new();
    let a = shuffled(&f);
    let run = f.ok("solve a.mtx --rhs a-random:9 --tolerance 1e-12 --reorder rcm -o x.mtx");
    assert!(run.stdout.contains("reverse Cuthill-McKee: bandwidth"), "{}", run.stdout);
    f.ok("solve a.mtx --rhs a-random:9 --tolerance 1e-12 -o y.mtx");
    let (x, y) = (read_matrix(&f.path("x.mtx")).column(0), read_matrix(&f.path("y.mtx")).column(0));
    let difference: Vec<_> = x.iter().zip(&y).map(|(x, y)| (x.0 - y.0, 0.0)).collect();
    assert!(norm(&difference) < 1e-9 * norm(&y));
    let (b, _) = a.product(&y);
    assert!(residual(&a, &x, &b).0 < 1e-10);
    let json = f.ok("solve a.mtx --reorder rcm --json -").json();
    assert!(json["seconds"]["reorder"].as_f64().unwrap() > 0.0);
    let json = f.ok("solve a.mtx --reorder none --json -").json();
    assert_eq!(json["seconds"]["reorder"], 0.0);
    // The system is solved before an ordering could pay, and the report says so.
    let run = f.ok("solve a.mtx --reorder auto");
    assert!(run.stdout.contains(" no; costs ") && run.stdout.contains(", saves "), "{}", run.stdout);
}

#[test]
fn a_dry_run_tells_the_methods_in_their_order_and_solves_nothing() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 30x20 -o a.mtx");
    let run = f.ok("solve a.mtx --dry-run");
    let lines: Vec<&str> = run.stdout.lines().collect();
    let of = |word: &str| lines.iter().filter(|line| line.starts_with(word)).copied().collect::<Vec<_>>();
    assert!(of("first")[0].contains("cg with jacobi"), "{}", run.stdout);
    assert!(
        of("then").iter().any(|line| line.contains("direct: ") && line.contains("entries in the factors"))
    );
    assert!(!run.stdout.contains("converged") && run.stdout.contains("Nothing was solved"), "{}", run.stdout);
    // The method that it names first is the one that a solve tries first.
    f.ok("solve a.mtx -q --json r.json");
    let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
    assert_eq!(json["trail"]["stages"][0]["method"], "cg");
    assert_eq!(json["trail"]["stages"].as_array().unwrap().len(), of("first").len() + of("then").len());
    // As JSON it has a forecast with its range wherever something is known, and null elsewhere.
    let told = f.ok("solve a.mtx --dry-run --json -").json();
    assert_eq!(told["status"], "dry_run");
    let stages = told["trail"]["stages"].as_array().unwrap();
    assert_eq!(stages.len(), json["trail"]["stages"].as_array().unwrap().len());
    for stage in stages {
        assert!(stage["outcome"].is_null());
        let range = stage["predicted_range"].as_array();
        assert_eq!(range.is_some(), stage["predicted_seconds"].is_number(), "{stage}");
        if let Some([low, high]) = range.map(Vec::as_slice) {
            let (low, high) = (low.as_f64().unwrap(), high.as_f64().unwrap());
            let forecast = stage["predicted_seconds"].as_f64().unwrap();
            assert!(0.0 < low && low < forecast && forecast < high && high <= 4.001 * low, "{stage}");
        }
    }
    // Half of the digits tell how many iterations there will be.
    let iterations = json["iterations"].as_f64().unwrap();
    let forecast = stages[0]["predicted_iterations"].as_f64().unwrap();
    assert!((0.5..2.0).contains(&(forecast / iterations)), "{forecast} {iterations}");
    f.fails(2, "solve a.mtx --dry-run -o x.mtx");
    f.fails(2, "solve a.mtx --dry-run --ranks 2");
}

#[test]
fn devices_are_found_or_their_absence_is_told() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 9 -o a.mtx");
    let cpu = f.ok("solve a.mtx --device cpu --json -").json();
    assert!(cpu["device"].as_str().unwrap().starts_with("cpu"));
    let auto = f.ok("solve a.mtx --device auto");
    let cuda = f.run(["solve", "a.mtx", "--device", "cuda", "--json", "-"]);
    if cuda.status == 0 {
        assert!(cuda.json()["device"].as_str().unwrap().contains("cuda:0"));
    } else {
        assert_eq!((cuda.status, cuda.stderr.lines().count()), (3, 1), "{}", cuda.stderr);
    }
    // The system is too small for a GPU to pay; nothing is said without a GPU, or in a build without CUDA.
    let signs = ["/dev/nvidia0", "/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg"];
    let told = cfg!(feature = "cuda") && signs.iter().any(|sign| std::path::Path::new(sign).exists());
    let json = f.ok("solve a.mtx --device auto --json -").json();
    let mut decisions = json["trail"]["decisions"].as_array().unwrap().iter();
    let device = decisions.find(|decision| decision["subject"] == "device").unwrap();
    let why = device["why"].as_str().unwrap().to_string();
    let dry = f.ok("solve a.mtx --device auto --dry-run").stdout;
    for text in [auto.stdout, why, dry] {
        assert_eq!(text.contains("too small for a GPU to pay"), told, "{text}");
    }
    assert_eq!(f.run(["solve", "a.mtx", "--device", "cuda:77"]).status, 3);
}

#[test]
fn complex_hermitian_systems_are_solved() {
    let f = Folder::new();
    let text = "%%MatrixMarket matrix coordinate complex hermitian\n3 3 5\n1 1 4 0\n2 2 5 0\n3 3 6 0\n2 1 1 2\n3 2 0 -1\n";
    f.write("a.mtx", text);
    for rhs in ["a-ones", "a-random:2", "ones"] {
        let run = f.ok(&format!("solve a.mtx -o x.mtx --rhs {rhs}"));
        assert!(run.stdout.contains("Hermitian"), "{}", run.stdout);
    }
    let (a, x) = (read_matrix(&f.path("a.mtx")), read_matrix(&f.path("x.mtx")).column(0));
    assert!(residual(&a, &x, &ones(3)).0 < 1e-8);
    assert!(x.iter().any(|v| v.1.abs() > 0.01), "{x:?}");
    // A complex right-hand side of a real matrix.
    f.ok("generate tridiagonal --size 3 -o t.mtx");
    f.write("b.mtx", "%%MatrixMarket matrix array complex general\n3 1\n1 0\n0 1\n2 -2\n");
    f.ok("solve t.mtx --rhs b.mtx -o x.mtx");
    let (a, x) = (read_matrix(&f.path("t.mtx")), read_matrix(&f.path("x.mtx")).column(0));
    assert!(residual(&a, &x, &[(1.0, 0.0), (0.0, 1.0), (2.0, -2.0)]).0 < 1e-8);
}

#[test]
fn quiet_prints_nothing_and_dashes_are_streams() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 10x10 -o a.mtx");
    let run = f.ok("solve a.mtx --quiet");
    assert!(run.stdout.is_empty() && run.stderr.is_empty());
    let matrix = std::fs::read(f.path("a.mtx")).unwrap();
    let run = f.run_with(["solve", "-", "-o", "-"], &matrix);
    assert_eq!(run.status, 0);
    f.write("x.mtx", &run.stdout);
    let x = read_matrix(&f.path("x.mtx")).column(0);
    assert!(x.iter().all(|v| (v.0 - 1.0).abs() < 1e-6));
    let run = f.run_with(["solve", "a.mtx", "--rhs", "-", "--json", "-"], run.stdout.as_bytes());
    assert_eq!(run.json()["status"], "converged");
    for result in ["--history", "--plot"] {
        let run = f.run(["solve", "a.mtx", result, "-"]);
        assert!(run.status == 0 && (run.stdout.starts_with("iteration,") || run.stdout.starts_with("<svg")));
    }
    let gz = f.ok("generate poisson2d --size 10x10 -o a.mtx.gz");
    assert!(gz.stderr.is_empty());
    assert!(std::fs::read(f.path("a.mtx.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
    assert!(f.ok("solve a.mtx.gz").stdout.contains("converged"));
}

#[test]
fn a_command_line_that_makes_no_sense_is_status_2() {
    let f = Folder::new();
    f.ok("generate diagonal --size 9 -o a.mtx");
    for line in [
        "",
        "sing",
        "solve",
        "solve a.mtx --tolerance 2",
        "solve a.mtx --tolerance -1",
        "solve a.mtx --tolerance nan",
        "solve a.mtx --method lu",
        "solve a.mtx --preconditioner magic",
        "solve a.mtx --preconditioner block-jacobi:33",
        "solve a.mtx --precision half",
        "solve a.mtx --format dense",
        "solve a.mtx --device tpu",
        "solve a.mtx --rhs random:x",
        "solve a.mtx --max-iterations many",
        "solve a.mtx -o - --json -",
        "solve - --rhs -",
        "info a.mtx --json - --spy -",
        "bench",
        "bench a.mtx --formats dense",
        "bench a.mtx --json - --csv -",
        "generate nothing",
        "generate poisson3d --size 4x4",
        "generate poisson3d --size 0",
        "generate poisson3d --size 9999999",
        "generate poisson3d --size x",
        "generate arrow --contrast 3",
        "generate random --size 4 --row-lengths 5",
        "generate random --row-lengths some",
        "convert a.mtx",
        "reorder a.mtx",
    ] {
        let arguments: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let run = f.run(&arguments);
        assert_eq!(run.status, 2, "{line}: {}", run.stderr);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{line}");
    }
    assert_eq!(f.names(), ["a.mtx"]);
}

#[test]
fn coordinates_and_near_null_vectors_from_files() {
    let f = Folder::new();
    let array = "%%MatrixMarket matrix array real general\n";
    f.ok("generate elasticity2d --size 30x20 -o a.mtx");
    // Points of a beam that is fixed at its left end: 30 x 21 of them, with two unknowns each.
    let points: Vec<(f64, f64)> = (0..630).map(|i| ((i % 30 + 1) as f64, (i / 30) as f64)).collect();
    let (xs, ys): (Vec<String>, Vec<String>) =
        points.iter().map(|(x, y)| (x.to_string(), y.to_string())).unzip();
    f.write("points.mtx", format!("{array}630 2\n{}\n{}\n", xs.join("\n"), ys.join("\n")));
    let modes = [0, 1, 2].map(|mode| {
        let of = |&(x, y): &(f64, f64)| match mode {
            0 => "1\n0".to_string(),
            1 => "0\n1".to_string(),
            _ => format!("{}\n{}", 10.0 - y, x - 15.5),
        };
        points.iter().map(of).collect::<Vec<_>>().join("\n")
    });
    f.write("modes.mtx", format!("{array}1260 3\n{}\n", modes.join("\n")));
    for option in ["--coordinates points.mtx", "--near-null modes.mtx --preconditioner amg:unknowns=2"] {
        let run = f.ok(&format!("solve a.mtx --rhs random:3 {option} --json r.json"));
        let json: Value = serde_json::from_str(&f.read("r.json")).unwrap();
        assert_eq!(json["status"], "converged", "{}", run.stdout);
        assert!(json["preconditioner"].as_str().unwrap().starts_with("amg"), "{}", json["preconditioner"]);
        assert!(json["iterations"].as_u64().unwrap() <= 25, "{option}: {}", json["iterations"]);
    }
    f.write("few.mtx", format!("{array}629 2\n{}\n{}\n", xs[1..].join("\n"), ys[1..].join("\n")));
    for (line, words) in [
        ("--coordinates few.mtx", ["few.mtx: ", "629 points"]),
        ("--near-null points.mtx", ["points.mtx: ", "630 rows"]),
        ("--coordinates missing.mtx", ["missing.mtx", "No such file"]),
    ] {
        let run = f.fails(3, &format!("solve a.mtx {line}"));
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{line}: {}", run.stderr);
    }
}

#[cfg(feature = "ranks")]
#[test]
fn two_ranks_solve_what_is_not_square() {
    let f = Folder::new();
    f.write("tall.mtx", "%%MatrixMarket matrix coordinate real general\n4 2 4\n1 1 1\n2 2 1\n3 1 1\n4 2 2\n");
    let run = f.ok("solve tall.mtx --ranks 2 --device cpu -o x.mtx");
    assert!(run.stdout.contains("converged"), "{}", run.stdout);
    assert_eq!(read_matrix(&f.path("x.mtx")).column(0).len(), 2);
}
