//! Faults around the command: files that cannot grow, closed pipes, signals during long work.
#![cfg(target_os = "linux")]

use crate::support::{Folder, Run, finish, read_matrix, residua};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time to end after a request. On an idle machine it takes a third of a second, but other tests run at the
/// same time.
const SOON: Duration = Duration::from_secs(5);

/// Runs a line of the shell in the folder, where `$R` is the command.
fn shell(f: &Folder, line: &str) -> Run {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).env("R", residua()).current_dir(f.path("."));
    finish(command, b"")
}

fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap().success());
}

/// Waits until `ready` is true, as long as the process runs.
fn await_in(child: &mut Child, ready: impl Fn(u32) -> bool) {
    let start = Instant::now();
    while !ready(child.id()) {
        assert!(start.elapsed() < Duration::from_secs(60), "it was never ready");
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether the process has a handler for SIGINT.
fn listens(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(caught.trim(), 16).unwrap_or(0) & (1 << (2 - 1)) != 0
}

/// Returns whether the main thread of the process is waiting for a reader to open a pipe.
fn waits_for_a_reader(process: u32) -> bool {
    let waits_in = std::fs::read_to_string(format!("/proc/{process}/wchan")).unwrap_or_default();
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let sleeps = state.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('S'));
    listens(process)
        && (waits_in.contains("partner")
            || waits_in.contains("pipe")
            || waits_in.contains("fifo")
            || waits_in == "0" && sleeps)
}

/// A running command, which is killed at the end of its test.
struct Running(Option<Child>);

impl Running {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(f: &Folder, line: &str) -> Running {
    let mut command = f.command();
    command.args(line.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(Some(command.spawn().unwrap()))
}

/// The output of a process that was asked to end.
fn ended(mut running: Running) -> Run {
    let start = Instant::now();
    let output = running.0.take().unwrap().wait_with_output().unwrap();
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    Run {
        status: output.status.code().expect("no signal should end the command"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_pipe_that_nobody_reads_does_not_hold_a_first_request_to_terminate() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 8 -o a.mtx");
    assert!(Command::new("mkfifo").arg(f.path("pipe")).status().unwrap().success());
    let mut child = spawn(&f, "solve a.mtx --device cpu --history h.csv -o pipe");
    await_in(child.child(), waits_for_a_reader);
    // It may not have opened the pipe yet.
    std::thread::sleep(Duration::from_millis(100));
    signal(child.child().id(), "TERM");
    let run = ended(child);
    assert_eq!(run.status, 130, "{}", run.stderr);
    assert!(run.stderr.contains("interrupted: not all results were written"), "{}", run.stderr);
    assert_eq!(f.names(), ["a.mtx", "pipe"]);
}

#[test]
fn a_number_of_threads_out_of_all_proportion_is_cut_down() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 8 -o a.mtx");
    for (asked, most) in [(100_000, 10_000), (3, 3)] {
        let run =
            shell(&f, &format!("RAYON_NUM_THREADS={asked} \"$R\" solve a.mtx --device cpu --report p.html"));
        assert_eq!(run.status, 0, "{}", run.stderr);
        let page = f.read("p.html");
        let before = page.rsplit_once(" threads,").unwrap().0;
        let threads: usize = before.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((3..=most).contains(&threads), "{threads} of {asked}");
    }
}

#[test]
fn a_result_for_a_closed_standard_output_is_refused() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 8 -o a.mtx");
    for result in ["solve a.mtx -o -", "solve a.mtx --json -", "convert a.mtx -"] {
        let run = shell(&f, &format!("\"$R\" {result} >&-"));
        assert_eq!(run.status, 3, "{result}: {}", run.stderr);
        assert!(run.stderr.contains("standard output is closed"), "{result}: {}", run.stderr);
    }
    // An output that discards everything is not closed, and a result in a file needs no standard output.
    assert_eq!(shell(&f, "\"$R\" solve a.mtx -o - >/dev/null").status, 0);
    assert_eq!(shell(&f, "\"$R\" solve a.mtx -o x.mtx --quiet >&-").status, 0);
}

#[test]
fn a_file_that_may_not_grow_is_told_and_leaves_nothing() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 60 -o a.mtx");
    let run = shell(&f, "ulimit -f 8; \"$R\" solve a.mtx -o x.mtx");
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.starts_with("residua: x.mtx: "), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert_eq!(f.names(), ["a.mtx"]);
}

#[test]
fn a_result_goes_through_a_link_to_what_is_not_there_yet() {
    let f = Folder::new();
    f.ok("generate poisson2d --size 8 -o a.mtx");
    std::os::unix::fs::symlink("later.mtx", f.path("x.mtx")).unwrap();
    f.ok("solve a.mtx -o x.mtx");
    assert_eq!(std::fs::read_link(f.path("x.mtx")).unwrap(), Path::new("later.mtx"));
    assert_eq!(read_matrix(&f.path("later.mtx")).rows, 64);
    // Two results with the same destination are detected.
    std::os::unix::fs::symlink("both", f.path("one")).unwrap();
    assert!(f.fails(2, "solve a.mtx -o one --json both").stderr.contains("only one result can go to a file"));
    std::os::unix::fs::symlink("nowhere/x.mtx", f.path("lost.mtx")).unwrap();
    assert!(f.fails(3, "solve a.mtx -o lost.mtx").stderr.starts_with("residua: lost.mtx: "));
}

#[cfg(feature = "ranks")]
#[test]
fn a_rank_that_is_stopped_does_not_hold_an_interrupt() {
    let f = Folder::new();
    f.ok("generate jumping2d --size 200 --contrast 1e9 -o a.mtx");
    let mut child = spawn(&f, "solve a.mtx --ranks 2 --device cpu --rhs random:1 --tolerance 1e-15 -o x.mtx");
    let children = |process: u32| -> Vec<u32> {
        let told =
            std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        told.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    // Ranks listen for signals once they solve.
    await_in(child.child(), |process| {
        let ranks = children(process);
        ranks.len() == 2 && ranks.into_iter().all(listens)
    });
    let ranks = children(child.child().id());
    signal(ranks[1], "STOP");
    signal(child.child().id(), "INT");
    let run = ended(child);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.contains("rank 1 of 2: is suspended"), "{}", run.stderr);
    assert!(ranks.iter().all(|rank| !Path::new(&format!("/proc/{rank}")).exists()));
    assert_eq!(f.names(), ["a.mtx"]);
}
