//! `residua solve --ranks N`: starts the processes, and runs in each of them; also runs in processes that MPI has
//! started.

use super::answer::{Answer, Column, Rank, Seconds, Solved};
use super::page::Portrait;
use super::rhs::{Columns, RightHandSides};
use super::run::{about, relative_error, tell, timed, write};
use super::words::Story;
use super::{Arguments, Sinks, is_complex_system};
use crate::backend::Communicator;
use crate::cli::failure::{About, line_of};
use crate::cli::load::{Loaded, load};
use crate::cli::progress::Progress;
use crate::cli::{Ending, Failure, interrupt};
use crate::market::Symmetry;
use crate::mixing::mixed;
use crate::ranks::{Group, Launcher, OwnRows, launch, read_rows};
#[cfg(feature = "cuda")]
use crate::solver::Device;
use crate::solver::{self, Method, Reorder, Solvable, SolveReport, SolverBackend, SpreadSolver};
use crate::{Csr, Error, Host, Scalar};
use num_complex::Complex;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit status of a system that was not solved.
const NOT_SOLVED: u8 = 4;

/// Returns whether this process was started as one of several.
pub(super) fn is_one() -> bool {
    std::env::var_os("RESIDUA_RANK").is_some() || Launcher::of_this_process().is_some()
}

/// Refuses options that several processes do not support.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let files = [Some(arguments.matrix.as_path()), arguments.rhs_file()];
    if files.into_iter().flatten().any(|path| path == Path::new("-")) {
        let cause = "with several ranks every process reads A and b, so neither can be standard input ('-')";
        return Err(Failure::Usage(cause.into()));
    }
    Ok(())
}

/// Starts the processes and waits for them.
pub(super) fn start(arguments: &Arguments) -> Result<Ending, Failure> {
    check(arguments)?;
    // Errors that a single process would find are reported before the others are started.
    Sinks::open(arguments)?;
    crate::files::read_header(&arguments.matrix).about(&arguments.matrix)?;
    is_complex_system(arguments)?;
    let own = std::env::current_exe().map_err(|error| Failure::Input(error.to_string()))?;
    let command = |_| {
        let mut command = Command::new(&own);
        command.args(std::env::args_os().skip(1)).stdin(Stdio::null());
        command
    };
    interrupt::listen();
    let statuses = launch(usize::from(arguments.ranks.unwrap_or(1)), command, interrupt::requested)?;
    Ok(if statuses.contains(&NOT_SOLVED) { Ending::NotSolved } else { Ending::Done })
}

/// Joins the group.
fn join() -> Result<Option<Group>, Failure> {
    let joined = Group::from_environment();
    if joined.is_err() && Launcher::is_beside_first() {
        // A failure before the ranks can communicate usually happens on all of them.
        Launcher::await_end();
    }
    Ok(joined?)
}

/// Solves as one of several processes.
pub(super) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let Some(group) = join()? else { return Ok(Ending::Done) };
    if let Some(threads) = group.threads().filter(|_| std::env::var_os("RAYON_NUM_THREADS").is_none()) {
        // Fails only if threads have already been started; their number then stays.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    let solve = || {
        group.agree_on("command line", &arguments.digest())?;
        check(arguments)?;
        let (asked, ranks) = (arguments.ranks.map(usize::from), group.ranks());
        if let Some(asked) = asked.filter(|&asked| asked != ranks) {
            let cause =
                format!("--ranks is {asked}, but MPI has started {ranks} processes: leave --ranks out");
            return Err(Failure::Usage(cause));
        }
        let sinks = Sinks::open(arguments)?;
        if is_complex_system(arguments)? {
            solve::<Complex<f64>>(&group, arguments, &sinks)
        } else {
            solve::<f64>(&group, arguments, &sinks)
        }
    };
    let told = match solve() {
        Ok(ending) => {
            group.leave(if matches!(ending, Ending::NotSolved) { NOT_SOLVED } else { 0 });
            // The status of rank 0 counts for all: a launcher of MPI would print a message for every other one that is
            // not zero.
            return Ok(if group.rank() == 0 { ending } else { Ending::Done });
        }
        Err(quiet @ (Failure::Unread | Failure::Told)) => {
            group.leave(0);
            return Err(quiet);
        }
        Err(Failure::Usage(told) | Failure::Input(told)) => told,
        Err(Failure::OfRank(Error::Rank { rank, cause, .. })) => {
            group.fail(&Error::Rank { rank, ranks: group.ranks(), cause: line_of(&cause) });
            return Err(Failure::Told);
        }
        Err(Failure::OfRank(other)) => other.to_string(),
        Err(Failure::Interrupted) => "interrupted before the first iteration".into(),
    };
    // The process that started this one prints the error, or the first rank that fails does.
    group.fail(&Error::Rank { rank: group.rank(), ranks: group.ranks(), cause: line_of(&told) });
    Err(Failure::Told)
}

impl Arguments {
    /// Bytes that are equal if the command lines are.
    fn digest(&self) -> Vec<u8> {
        std::env::args_os().skip(1).flat_map(|word| [word.into_encoded_bytes(), vec![0]].concat()).collect()
    }
}

/// Bytes that very probably differ if matrices do.
fn digest<T: Scalar>(a: &Csr<T>) -> [u8; 24] {
    let parts = a.parts();
    let mut sum = 0_u64;
    let mut take = |word: u64| sum = mixed(sum.rotate_left(5) ^ word);
    parts.indices.iter().for_each(|&column| take(u64::from(column)));
    parts.values.iter().for_each(|value| value.bits().into_iter().for_each(&mut take));
    (0..a.rows()).for_each(|row| take(a.row(row).0.len() as u64));
    let mut all = [0; 24];
    for (place, word) in all.chunks_exact_mut(8).zip([a.rows() as u64, a.nonzeros() as u64, sum]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    all
}

fn solve<T: Solvable<Real = f64>>(
    group: &Group,
    arguments: &Arguments,
    sinks: &Sinks,
) -> Result<Ending, Failure> {
    let path = arguments.matrix.as_path();
    let read = match together(group, arguments)? {
        Some(read) => read,
        None => {
            let loaded = load::<T>(path, arguments.quiet || group.rank() > 0)?;
            group.agree_on(&path.display().to_string(), &digest(&loaded.a))?;
            let nonzeros = loaded.a.nonzeros();
            Read { loaded, nonzeros, parts: None }
        }
    };
    if read.loaded.a.rows() == 0 {
        return Err(Failure::about(path, "the matrix is empty: there is nothing to solve"));
    }
    #[cfg(feature = "cuda")]
    if let Some(ordinal) = gpu(group, arguments, [read.loaded.a.rows(), read.nonzeros])? {
        let cuda = crate::Cuda::new(ordinal)?;
        let peers = crate::ranks::Peers::new(cuda, group)?;
        return solve_on(&cuda, peers, (group, arguments, sinks), read);
    }
    solve_on(&Host, group.clone(), (group, arguments, sinks), read)
}

/// A matrix that was read, as a whole or only this rank's rows.
struct Read<T: Scalar> {
    loaded: Loaded<T>,
    /// Entries of the whole matrix.
    nonzeros: usize,
    /// The rows of each rank, if this one has only its own.
    parts: Option<Vec<Range<usize>>>,
}

/// A system with fewer entries may be left to one GPU, which then needs all of them.
const SMALL: usize = 20_000_000;

/// The file's order is kept only if halos have at most this fraction of the unknowns.
const HALO: f64 = 0.1;

/// Reads the file with each rank reading its own rows, unless something needs the whole matrix: another order of the
/// unknowns is computed from all of it, and a small system is solved on one GPU.
fn together<T: Scalar>(group: &Group, arguments: &Arguments) -> Result<Option<Read<T>>, Failure> {
    let reorder = arguments.reorder.unwrap_or_default();
    // The HTML report shows the whole matrix, and a factorisation is done by one rank, which needs all of it.
    let direct = arguments.method == Method::Direct;
    if !matches!(reorder, Reorder::None | Reorder::Auto) || arguments.report.is_some() || direct {
        return Ok(None);
    }
    let Some(rows) = read_rows::<T>(group, &arguments.matrix)? else { return Ok(None) };
    let OwnRows { header, a, parts, nonzeros, seconds: [read, assemble] } = rows;
    if a.rows() < group.ranks() {
        return Ok(None);
    }
    let halo = crate::spread::halo_of(&a, &parts[group.rank()]).len() as f64;
    let mut sums = [halo, f64::from(u8::from(arguments.device != "cpu" && has_gpu()))];
    group.all_sum(&Host, &mut sums)?;
    let far = reorder == Reorder::Auto && sums[0] > HALO * a.rows() as f64;
    if far || sums[1] > 0.0 && nonzeros < SMALL {
        return Ok(None);
    }
    Ok(Some(Read { loaded: Loaded { a, header, read, assemble }, nonzeros, parts: Some(parts) }))
}

fn has_gpu() -> bool {
    #[cfg(feature = "cuda")]
    return crate::backend::cuda::devices().is_ok_and(|all| !all.is_empty());
    #[cfg(not(feature = "cuda"))]
    false
}

/// The GPU of this rank, or none for the CPU: ranks are assigned to the GPUs of the machine in turn, unless one is
/// named.
#[cfg(feature = "cuda")]
fn gpu(group: &Group, arguments: &Arguments, [rows, nonzeros]: [usize; 2]) -> Result<Option<usize>, Failure> {
    let device: Device = arguments.device.parse()?;
    let count = || crate::backend::cuda::devices().map_or(0, |all| all.len());
    let ordinal = match device {
        Device::Cpu => None,
        Device::Cuda(ordinal) if arguments.device.contains(':') => Some(ordinal),
        Device::Cuda(_) => Some(group.rank() % count().max(1)),
        // Two ranks on one GPU would only wait for each other.
        _ => (Device::too_small(rows, nonzeros, 1).is_none() && count() >= group.ranks())
            .then_some(group.rank()),
    };
    group.agree_on("choice of a GPU", &[u8::from(ordinal.is_some())])?;
    Ok(ordinal)
}

/// Solves on a backend, with the ranks' communicator on it.
fn solve_on<T: Solvable<Real = f64>, B: SolverBackend, C: Communicator<B>>(
    backend: &B,
    communicator: C,
    (group, arguments, sinks): (&Group, &Arguments, &Sinks),
    Read { loaded: Loaded { a, header, read, assemble }, nonzeros, parts }: Read<T>,
) -> Result<Ending, Failure> {
    let path = arguments.matrix.as_path();
    let mut seconds = Seconds { read, assemble, ..Seconds::default() };
    let rhs = timed(&mut seconds.setup, || super::rhs::make(arguments.rhs.as_ref(), &Host, &a, path))?;
    let builder = arguments.builder_for(&header)?;
    let solver = match &parts {
        Some(parts) => builder.build_spread_rows(backend, communicator, &a, parts),
        None => builder.build_spread(backend, communicator, &a),
    };
    let mut solver = about(solver, path)?;
    let (rows, columns) = (a.rows(), a.columns());
    let wanted = sinks.report.is_some() && group.rank() == 0;
    let portrait = wanted.then(|| Portrait::of(&a, path)).transpose()?;
    drop(a);
    let solved = timed(&mut seconds.solve, || {
        solve_all(backend, (group, arguments), (&mut solver, [rows, columns]), &rhs)
    });
    let solved = solved.about(path)?;
    let converged = arguments.are_solved(rows == columns, &solved.columns);
    let ending = if converged { Ending::Done } else { Ending::NotSolved };
    if group.rank() > 0 {
        return Ok(ending);
    }
    seconds.add(&solved.last.seconds);
    let ranks = solver.shares().iter();
    let ranks = ranks.map(|share| Rank { rows: share.rows, nonzeros: share.nonzeros, halo: share.halo });
    let symmetric = solver.symmetry() == Symmetry::Symmetric;
    let mut answer =
        Answer::new([rows, columns, nonzeros], symmetric, (&header, &rhs.origin), (arguments, &solved));
    answer.device = format!("{}, {}", answer.device, group.description());
    (answer.seconds, answer.ranks) = (seconds, ranks.collect());
    write(arguments, sinks, &mut answer, &solved)?;
    let talks = !arguments.quiet && !sinks.stdout;
    if talks || portrait.is_some() {
        let story = Story {
            arguments,
            answer: &answer,
            columns: &solved.columns,
            no_gpu: None,
            choice: None,
            copy: None,
            at_once: 1,
        };
        tell(sinks, &story, portrait.as_ref(), talks)?;
    }
    Ok(ending)
}

/// Solves for the right-hand sides one by one; rank 0 gets x.
fn solve_all<T: Solvable<Real = f64>, B: SolverBackend, C: Communicator<B>>(
    backend: &B,
    (group, arguments): (&Group, &Arguments),
    (solver, [rows, columns]): (&mut SpreadSolver<T, B, C>, [usize; 2]),
    rhs: &RightHandSides<T, Host>,
) -> crate::Result<Solved<T>> {
    interrupt::listen();
    let quiet = arguments.quiet || group.rank() > 0;
    let progress = Progress::new(quiet, "setting up a method");
    let (all, n) = match &rhs.columns {
        Columns::Read(columns, n) => (columns, *n),
        Columns::Made(column) => (column, column.len()),
    };
    let mut solved = Vec::new();
    let (mut x, mut error) = (Vec::new(), None);
    let mut reports: Vec<SolveReport> = Vec::new();
    for (number, whole) in all.chunks_exact(n).enumerate() {
        let b = backend.upload(solver.own_part(whole))?;
        // A matrix that is not square is solved by rank 0, which has all of b and of x.
        let own_columns = if rows == columns { B::len(&b) } else { columns.min(columns * B::len(&b)) };
        let mut own = backend.zeros::<T>(own_columns)?;
        let report = solver.solve_with(&b, &mut own, |now: &solver::Progress| {
            let residual = now.residual_norm / now.first_residual_norm;
            progress.iteration((number, rhs.count()), now.iteration, (residual, arguments.tolerance));
            let stop = interrupt::requested() || group.interrupted();
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(here) = solver.whole(&own)? {
            error =
                rhs.solution.as_ref().map(|solution| relative_error(&Host, &here, solution)).transpose()?;
            x.extend(here);
        }
        solved.push(Column::new(&report, solver.history(), error));
        reports.push(report);
    }
    Solved::new(solved, x, reports)
}
