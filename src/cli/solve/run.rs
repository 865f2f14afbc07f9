//! The steps from a file to a solution.

use super::answer::{Answer, Column, Seconds, Solved, history_csv};
use super::forecast;
use super::page::{Portrait, page};
use super::rhs::{self, Columns, RightHandSides};
use super::words::{self, Story};
use super::{Arguments, Sinks};
use crate::backend::VectorOps;
use crate::cli::failure::About;
use crate::cli::load::Loaded;
use crate::cli::progress::Progress;
use crate::cli::{Ending, Failure, console, interrupt};
use crate::direct::norm;
use crate::krylov::Outcome;
use crate::market::{Symmetry, WriteOptions};
use crate::report::{Curve, convergence_svg, copy_bandwidth};
use crate::solver::{self, Solvable, SolveReport, SolverBackend};
use crate::work::{StopRequest, within};
use crate::{Error, Scalar, Solver};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Solves that move fewer bytes are not compared with the copy bandwidth, whose measurement moves 1 GB itself and takes
/// half a second on a CPU.
const BANDWIDTH_FROM: f64 = 1e10;

/// Solves on `backend` with the matrix loaded there, and writes the results. `no_gpu` is the reason why it is not a
/// GPU, if one was looked for.
pub(super) fn run<T, B>(
    backend: &B,
    loaded: Result<Loaded<T, B>, Failure>,
    no_gpu: Option<&str>,
    arguments: &Arguments,
    sinks: &Sinks,
) -> Result<Ending, Failure>
where
    T: Solvable<Real = f64>,
    B: SolverBackend,
{
    let path = arguments.matrix.as_path();
    let Loaded { a, header, read, assemble } = loaded?;
    if a.rows() == 0 {
        return Err(Failure::about(path, "the matrix is empty: there is nothing to solve"));
    }
    if arguments.dry_run {
        let rhs = rhs::make(arguments.rhs.as_ref(), backend, &a, path)?;
        let builder =
            arguments.builder_of::<T>(&header)?.right_hand_sides(rhs.count()).placed_because(no_gpu);
        let told = about(forecast::told(backend, a, &rhs, (&builder, arguments)), path)?;
        if let Some(sink) = &sinks.json {
            sink.write_json(&told)?;
        }
        if !sinks.stdout {
            console::say(&told.text())?;
        }
        return Ok(Ending::Done);
    }
    let portrait = sinks.report.as_ref().map(|_| Portrait::of(&a.to_host(backend)?, path)).transpose()?;
    let mut seconds = Seconds { read, assemble, ..Seconds::default() };
    let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());
    let rhs = timed(&mut seconds.setup, || {
        let rhs = rhs::make(arguments.rhs.as_ref(), backend, &a, path)?;
        backend.synchronize()?;
        Ok::<_, Failure>(rhs)
    })?;
    let builder = arguments.builder_of::<T>(&header)?.placed_because(no_gpu);
    let builder = builder.right_hand_sides(rhs.count());
    let progress = Progress::new(arguments.quiet, "setting up");
    let work = interrupt::listen_during();
    progress.follow(&work);
    let start = Instant::now();
    let deadline = arguments.time_limit.and_then(|limit| start.checked_add(limit));
    let request = StopRequest { deadline, cancelled: None };
    let made = work.set_up(|| within(&request, || builder.build_on(backend, a)));
    let (solved, symmetric, choice) = if let Err(Error::Stopped) = made {
        (unstarted(backend, arguments, columns, &rhs)?, false, None)
    } else {
        let mut solver = about(made, path)?;
        if let Some(limit) = arguments.time_limit {
            solver.limit_time(limit.saturating_sub(start.elapsed()));
        }
        let solved = timed(&mut seconds.solve, || {
            work.run(|| solve_all(backend, (arguments, &progress), &mut solver, &rhs))
        });
        // The solver ends here, because measuring the copy bandwidth needs its memory.
        let symmetric = solver.symmetry() == Symmetry::Symmetric;
        (solved.about(path)?, symmetric, solver.format_choice().cloned())
    };
    drop(progress);

    let last = &solved.last;
    seconds.add(&last.seconds);
    let iterations: usize = solved.columns.iter().map(|column| column.iterations).sum();
    let moved = iterations as f64 * solved.bytes_per_iteration as f64;
    let bandwidth = (moved > 0.0 && solved.iterating > 0.0).then(|| moved / solved.iterating / 1e9);
    let converged = arguments.are_solved(rows == columns, &solved.columns);
    let mut answer =
        Answer::new([rows, columns, nonzeros], symmetric, (&header, &rhs.origin), (arguments, &solved));
    (answer.seconds, answer.bandwidth_gb_s) = (seconds, bandwidth);

    write(arguments, sinks, &mut answer, &solved)?;
    let talks = !arguments.quiet && !sinks.stdout;
    if talks || portrait.is_some() {
        let copy = match bandwidth {
            Some(_) if moved >= BANDWIDTH_FROM => copy_bandwidth(backend, 3).ok(),
            _ => None,
        };
        let story = Story {
            arguments,
            answer: &answer,
            columns: &solved.columns,
            no_gpu,
            choice: choice.as_ref(),
            copy,
            at_once: last.at_once,
        };
        tell(sinks, &story, portrait.as_ref(), talks)?;
    }
    Ok(if converged { Ending::Done } else { Ending::NotSolved })
}

/// Writes the page and prints the report, if requested.
pub(super) fn tell(
    sinks: &Sinks,
    story: &Story<'_>,
    portrait: Option<&Portrait>,
    talks: bool,
) -> Result<(), Failure> {
    if let (Some(sink), Some(portrait)) = (&sinks.report, portrait) {
        let convergence = plot(story.arguments, story.answer, story.columns);
        sink.write(&page(story, portrait, &convergence))?;
    }
    if talks { console::say(&words::story(story)) } else { Ok(()) }
}

/// Names the file in a refusal, and keeps its message.
pub(super) fn about<R>(result: crate::Result<R>, path: &Path) -> Result<R, Failure> {
    match result {
        Err(Error::Unsupported(what)) => Err(Failure::about(path, what)),
        other => other.about(path),
    }
}

/// Runs a step, and adds the time that it took.
pub(super) fn timed<R>(seconds: &mut f64, step: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = step();
    *seconds += start.elapsed().as_secs_f64();
    result
}

/// Writes the requested files, the report with its times as the last one.
pub(super) fn write<T: Scalar<Real = f64>>(
    arguments: &Arguments,
    sinks: &Sinks,
    answer: &mut Answer,
    solved: &Solved<T>,
) -> Result<(), Failure> {
    interrupt::begin_writing();
    if let Some(sink) = &sinks.x {
        let (rows, count) = (answer.columns, solved.columns.len());
        sink.write_array("x", rows, count, &solved.x, &WriteOptions::default())?;
    }
    if let Some(sink) = &sinks.history {
        sink.write(&history_csv(&solved.columns))?;
    }
    if let Some(sink) = &sinks.plot {
        sink.write(&plot(arguments, answer, &solved.columns))?;
    }
    answer.seconds.complete(sinks.begun.elapsed().as_secs_f64());
    if let Some(sink) = &sinks.json {
        sink.write_json(answer)?;
    }
    Ok(())
}

/// The result of a solve whose setup was stopped: x is the starting vector.
fn unstarted<T: Solvable<Real = f64>, B: SolverBackend>(
    backend: &B,
    arguments: &Arguments,
    n: usize,
    rhs: &RightHandSides<T, B>,
) -> Result<Solved<T>, Failure> {
    let outcome = if interrupt::requested() { Outcome::Interrupted } else { Outcome::TimeLimit };
    let here;
    let all = match &rhs.columns {
        Columns::Read(b, _) => b,
        Columns::Made(b) => {
            here = backend.download(b)?;
            &here
        }
    };
    let device = backend.description();
    let reports: Vec<_> = all
        .chunks(all.len() / rhs.count())
        .map(|b| SolveReport::unstarted(outcome, norm(b), &device))
        .collect();
    // For a generated right-hand side the solution is known, and x = 0 has a relative error of 1.
    let error = rhs.solution.as_ref().map(|_| 1.0);
    let columns = reports.iter().map(|report| Column::new(report, &[report.residual_norm], error)).collect();
    let x = if arguments.output.is_some() { vec![T::zero(); n * rhs.count()] } else { Vec::new() };
    Ok(Solved::new(columns, x, reports)?)
}

fn solve_all<T: Solvable<Real = f64>, B: SolverBackend>(
    backend: &B,
    (arguments, progress): (&Arguments, &Progress),
    solver: &mut Solver<T>,
    rhs: &RightHandSides<T, B>,
) -> crate::Result<Solved<T>> {
    progress.now("setting up a method, or factorising");
    let count = rhs.count();
    let observer = |now: &solver::Progress| {
        let residual = now.residual_norm / now.first_residual_norm;
        progress.iteration((now.right_hand_side, count), now.iteration, (residual, arguments.tolerance));
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let (mut x, mut error) = (Vec::new(), None);
    let reports = match &rhs.columns {
        Columns::Read(b, _) => {
            x.resize(rhs.count() * solver.columns(), T::zero());
            solver.solve_many_with(b, &mut x, observer)?
        }
        Columns::Made(b) => {
            let mut here = backend.zeros(solver.columns())?;
            let report = solver.solve_on_with(backend, b, &mut here, observer)?;
            if let Some(solution) = &rhs.solution {
                error = Some(relative_error(backend, &here, solution)?);
            }
            if arguments.output.is_some() {
                x = backend.download(&here)?;
            }
            vec![report]
        }
    };
    let columns = reports.iter().enumerate();
    let columns = columns.map(|(k, report)| Column::new(report, solver.history_of(k), error)).collect();
    Solved::new(columns, x, reports)
}

/// ||x - solution|| / ||solution||; if the solution is zero, ||x||.
pub(super) fn relative_error<T: Scalar<Real = f64>, B: VectorOps>(
    backend: &B,
    x: &B::Slice<T>,
    solution: &B::Slice<T>,
) -> crate::Result<f64> {
    let mut difference = backend.buffer(B::len(x))?;
    backend.copy(x, &mut difference)?;
    backend.axpby(-T::one(), solution, T::one(), &mut difference)?;
    let mut square = backend.zeros(1)?;
    let (mut top, mut bottom) = ([0.0], [0.0]);
    backend.norm2_squared(&difference, &mut square)?;
    backend.read(&square, &mut top)?;
    backend.norm2_squared(solution, &mut square)?;
    backend.read(&square, &mut bottom)?;
    Ok(if bottom[0] > 0.0 { (top[0] / bottom[0]).sqrt() } else { top[0].sqrt() })
}

fn plot(arguments: &Arguments, answer: &Answer, columns: &[Column]) -> String {
    let curves: Vec<Curve<'_>> = columns
        .iter()
        .enumerate()
        .map(|(k, column)| Curve {
            name: format!("right-hand side {}", k + 1),
            history: &column.history,
            confirmed: Some(column.relative_residual),
        })
        .collect();
    let title = arguments.matrix.file_name().map_or_else(|| "A".into(), |name| name.to_string_lossy());
    let levels: Vec<_> = answer.trail.levels().iter().map(|level| (level.rows, level.entries)).collect();
    convergence_svg(&title, &words::subtitle(answer, columns), &curves, arguments.tolerance, &levels)
}
