//! Ctrl-C, closed pipes.
#![cfg(target_os = "linux")]

use crate::support::{Folder, read_matrix};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns whether the process has a handler for SIGINT, which it sets when it starts a setup.
fn listens(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(caught.trim(), 16).unwrap_or(0) & (1 << (2 - 1)) != 0
}

fn wait_until_it_listens(child: &mut Child) {
    let start = Instant::now();
    while !listens(child) {
        assert!(start.elapsed() < Duration::from_secs(120), "the solve never started");
        assert!(child.try_wait().unwrap().is_none(), "the solve ended too early");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn interrupt(child: &Child) {
    let kill = Command::new("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status().unwrap();
    assert!(kill.success());
}

#[test]
fn ctrl_c_ends_an_order_or_a_factorisation_and_leaves_no_half_files() {
    let f = Folder::new();
    f.ok("generate poisson3d --size 96 -o a.mtx");
    for wait in [100, 1500] {
        let mut command = f.command();
        command.args("solve a.mtx --device cpu --method direct -o x.mtx --json r.json".split(' '));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until_it_listens(&mut child);
        std::thread::sleep(Duration::from_millis(wait));
        interrupt(&child);
        let start = Instant::now();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}, {stderr}", start.elapsed());
        // In both phases, x is the starting vector.
        assert_eq!(output.status.code(), Some(4), "{stderr}");
        assert!(f.read("r.json").contains("\"interrupted\""), "{stderr}");
        assert_eq!(f.names(), ["a.mtx", "r.json", "x.mtx"]);
        assert_eq!(f.read("x.mtx").lines().filter(|line| !line.starts_with('%')).count(), 1 + 96 * 96 * 96);
        std::fs::remove_file(f.path("r.json")).unwrap();
    }
}

/// A time limit also ends a maximum product transversal, which takes long for random entries.
#[test]
fn a_time_limit_ends_a_matching_with_status_4_and_x() {
    let f = Folder::new();
    f.write("a.mtx", random_symmetric(60_000, 5));
    for limit in ["0", "0.5"] {
        let start = Instant::now();
        let how = "--device cpu --method gmres --preconditioner ilut";
        let line = format!("solve a.mtx {how} --time-limit {limit} -o x.mtx --json -");
        let run = f.fails(4, &line);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        let json = run.json();
        assert_eq!((&json["status"], &json["relative_residual"]), (&"time_limit".into(), &1.0.into()));
        assert_eq!(read_matrix(&f.path("x.mtx")).rows, 60_000);
    }
}

/// A matrix with `each` random entries per row in each triangle, and none on the diagonal.
fn random_symmetric(n: usize, each: usize) -> String {
    use std::fmt::Write;
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut places: Vec<(usize, usize)> = (0..each * n).map(|_| (next() % n, next() % n)).collect();
    places.retain(|(i, j)| i != j);
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n", places.len());
    for (i, j) in places {
        let _ = writeln!(text, "{} {} {}", i.max(j) + 1, i.min(j) + 1, 1 + next() % 1000);
    }
    text
}

#[test]
fn ctrl_c_ends_with_a_report_and_x() {
    let f = Folder::new();
    // This solve would take far longer than minutes: half a million unknowns, coefficients over nine decades.
    f.ok("generate jumping2d --size 700 --contrast 1e9 -o a.mtx");
    let mut command = f.command();
    command.args(
        "solve a.mtx --device cpu --rhs random:1 --tolerance 1e-13 --max-iterations 1000000 -o x.mtx --json r.json"
            .split(' '),
    );
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_it_listens(&mut child);
    // Long enough for the setup and some iterations, even on a busy machine.
    std::thread::sleep(Duration::from_secs(4));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{stdout}{stderr}");
    assert!(stdout.contains("interrupted"), "{stdout}");
    let json: serde_json::Value = serde_json::from_str(&f.read("r.json")).unwrap();
    assert_eq!(json["status"], "interrupted");
    assert!(json["iterations"].as_u64().unwrap() > 0);
    assert!(json["relative_residual"].as_f64().unwrap() > 1e-13);
    let x = read_matrix(&f.path("x.mtx")).column(0);
    assert!(x.len() == 490_000 && x.iter().any(|v| v.0 != 0.0));
}

#[test]
fn nobody_reading_is_no_panic() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 150 -o a.mtx");
    for arguments in [
        vec!["generate", "poisson2d", "--size", "200"],
        vec!["convert", "a.mtx", "-"],
        vec!["solve", "a.mtx", "-o", "-"],
        vec!["solve", "a.mtx", "--json", "-"],
        vec!["info", "a.mtx"],
        vec!["generate"],
    ] {
        let mut child =
            f.command().args(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{arguments:?}: {status} {stderr}");
        assert!(stderr.is_empty(), "{arguments:?}: {stderr}");
    }
}
