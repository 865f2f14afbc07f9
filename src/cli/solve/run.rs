//! The steps from a file to a solution.

use super::answer::{Answer, Column, Seconds, history_csv, worst};
use super::method::{Ready, System, Wishes};
use super::reorder::{Reordering, reorder};
use super::rhs::RightHandSides;
use super::several::Several;
use super::solver::Solver;
use super::words::{self, Story};
use super::{Arguments, Sinks};
use crate::cli::choice::expected_products;
use crate::cli::failure::About;
use crate::cli::load::Loaded;
use crate::cli::progress::Progress;
use crate::cli::{Ending, Failure, console, interrupt};
use residua::assemble::Assemble;
use residua::backend::{GraphSteps, KrylovSteps, PreconditionSteps, Products, VectorOps};
use residua::graph::Permutation;
use residua::krylov::{Report, SolveOptions};
use residua::market::{Field, Symmetry, WriteOptions, write_dense};
use residua::report::{Curve, Facts, Transposed, convergence_svg, copy_bandwidth};
use residua::scalar::Widen;
use residua::{Csr, Element, Scalar};
use std::ops::ControlFlow;
use std::time::Instant;

/// Solves that move fewer bytes are over before their bandwidth means anything.
const BANDWIDTH_FROM: f64 = 1e9;

/// Solves what was loaded there on `backend`, and writes. `no_gpu` tells why it is not a GPU, where one was looked for.
pub(super) fn run<T, B>(
    backend: &B,
    loaded: Result<Loaded<T, B>, Failure>,
    no_gpu: Option<&str>,
    arguments: &Arguments,
    sinks: &Sinks,
) -> Result<Ending, Failure>
where
    T: Scalar<Real = f64>,
    B: Products + PreconditionSteps + GraphSteps + Assemble,
{
    let path = arguments.matrix.as_path();
    let Loaded { a, header, read, assemble } = loaded?;
    let mut seconds = Seconds { read, assemble, ..Seconds::default() };
    let symmetric = timed(&mut seconds.assemble, || check(backend, &a, header.symmetry(), arguments))?;
    let rhs = timed(&mut seconds.setup, || {
        let rhs = arguments.rhs.make(backend, &a, path)?;
        backend.synchronize()?;
        Ok::<_, Failure>(rhs)
    })?;
    let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());

    let products = expected_products(rows, rhs.count(), arguments.max_iterations);
    let mut spent = 0.0;
    let reordered = timed(&mut spent, || reorder(backend, a, &arguments.reorder, products));
    let (a, reordering) = reordered.about(path)?;
    let permutation = reordering.as_ref().and_then(|reordering| reordering.permutation.as_ref());
    if reordering.is_some() {
        seconds.reorder = spent;
    }

    let auto = arguments.format == "auto";
    // Small integers and binary fractions, as stencils have them, fit a narrower type: the same bits of x, fewer bytes.
    let narrow = timed(&mut seconds.convert, || if auto { a.into_narrow(backend) } else { Ok(Err(a)) });
    let narrow = narrow.about(path)?;
    let stored = if narrow.is_ok() { T::Narrow::NAME } else { T::NAME };
    let ready = match narrow {
        Ok(narrow) => prepare::<T, _, B>(backend, narrow, arguments, rhs.count()),
        Err(a) => prepare::<T, _, B>(backend, a, arguments, rhs.count()),
    };
    let Ready { system, how } = ready.about(path)?;
    seconds.setup += how.spent.setup;
    seconds.convert += how.spent.convert;

    let solved = timed(&mut seconds.solve, || {
        solve_all(backend, arguments, &system, permutation, &rhs, sinks.x.is_some())
    });
    let solved = solved.about(path)?;
    // Measuring the copy bandwidth takes memory of its own.
    drop(system);

    let iterations: usize = solved.columns.iter().map(|column| column.iterations).sum();
    let moved = iterations as f64 * solved.bytes_per_iteration as f64;
    let bandwidth = (moved > 0.0 && solved.iterating > 0.0).then(|| moved / solved.iterating / 1e9);
    let converged = solved.columns.iter().all(|column| column.outcome.is_converged());
    let several = if solved.columns.len() > 1 { solved.columns.clone() } else { Vec::new() };
    let decisive = worst(&solved.columns).expect("there is at least one right-hand side");
    let answer = Answer {
        status: decisive.status,
        iterations: decisive.iterations,
        relative_residual: decisive.relative_residual,
        error: decisive.error,
        rows,
        columns,
        nonzeros,
        symmetric,
        format: how.format.to_string(),
        stored,
        device: backend.description(),
        method: arguments.method.clone(),
        preconditioner: how.preconditioner.to_string(),
        seconds,
        bytes_per_iteration: solved.bytes_per_iteration,
        bandwidth_gb_s: bandwidth,
        history: decisive.history.clone(),
        right_hand_sides: several,
    };

    write(arguments, sinks, &answer, &solved)?;
    if !arguments.quiet && !sinks.stdout {
        let copy = match bandwidth {
            Some(_) if moved >= BANDWIDTH_FROM => copy_bandwidth(backend, 3).ok(),
            _ => None,
        };
        let story = Story {
            arguments,
            answer: &answer,
            columns: &solved.columns,
            rhs: &rhs.words,
            no_gpu,
            choice: how.choice.as_ref(),
            pattern: header.field() == Field::Pattern,
            reordering: reordering.as_ref().map(Reordering::words),
            copy,
            at_once: solved.at_once,
        };
        console::say(&words::story(&story))?;
    }
    Ok(if converged { Ending::Done } else { Ending::NotSolved })
}

/// Runs a step, and adds the time that it took.
fn timed<R>(seconds: &mut f64, step: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = step();
    *seconds += start.elapsed().as_secs_f64();
    result
}

/// Writes what was asked for to files.
fn write<T: Scalar<Real = f64>>(
    arguments: &Arguments,
    sinks: &Sinks,
    answer: &Answer,
    solved: &Solved<T>,
) -> Result<(), Failure> {
    if let Some(sink) = &sinks.x {
        write_dense(sink.path(), answer.rows, solved.columns.len(), &solved.x, &WriteOptions::default())?;
    }
    if let Some(sink) = &sinks.history {
        sink.write(&history_csv(&solved.columns))?;
    }
    if let Some(sink) = &sinks.plot {
        sink.write(&plot(arguments, answer, &solved.columns))?;
    }
    if let Some(sink) = &sinks.json {
        sink.write_json(answer)?;
    }
    Ok(())
}

/// Makes a system of the matrix.
fn prepare<T, V, B>(
    backend: &B,
    a: Csr<V, B>,
    arguments: &Arguments,
    right_hand_sides: usize,
) -> residua::Result<Ready<T, B>>
where
    T: Scalar<Real = f64>,
    V: Scalar + Widen<T>,
    V::Narrow: Widen<T::Narrow>,
    B: Products + PreconditionSteps,
{
    let wishes = Wishes {
        preconditioner: arguments.preconditioner,
        format: &arguments.format,
        max_iterations: arguments.max_iterations,
        right_hand_sides,
        in_one_precision: arguments.precision == "double",
    };
    match arguments.precision.as_str() {
        "mixed" => System::mixed(backend, a, wishes),
        "auto" => System::either(backend, a, wishes),
        _ => System::full(backend, a, wishes),
    }
}

/// Whether the matrix is one that conjugate gradients can take; else says why not.
fn check<T: Scalar, B: Products + KrylovSteps>(
    backend: &B,
    a: &Csr<T, B>,
    stored_as: Symmetry,
    arguments: &Arguments,
) -> Result<bool, Failure> {
    let path = &arguments.matrix;
    let (rows, columns) = (a.rows(), a.columns());
    if rows != columns {
        let cause = format!("{rows} x {columns} is not square: {} solves square systems", arguments.method);
        return Err(Failure::about(path, cause));
    }
    if rows == 0 {
        return Err(Failure::about(path, "an empty matrix: there is nothing to solve"));
    }
    match stored_as {
        Symmetry::Symmetric if !T::COMPLEX => return Ok(true),
        Symmetry::Hermitian => return Ok(!T::COMPLEX),
        // Whatever else a file says of itself, its entries decide.
        _ => {}
    }
    let seen = Transposed::of(backend, a).about(path)?;
    if seen.is_hermitian() {
        return Ok(seen.is_symmetric());
    }
    let a = a.to_host(backend).about(path)?;
    Err(Failure::about(path, words::unsymmetric(&a, &Facts::of(&a))))
}

/// All solutions.
struct Solved<T> {
    columns: Vec<Column>,
    /// Column after column, in the order of the file; empty where nobody asks for it.
    x: Vec<T>,
    bytes_per_iteration: usize,
    /// Seconds of all iterations together.
    iterating: f64,
    /// How many right-hand sides were solved at a time.
    at_once: usize,
}

fn solve_all<T: Scalar<Real = f64>, B: Products + PreconditionSteps + GraphSteps>(
    backend: &B,
    arguments: &Arguments,
    system: &System<T, B>,
    permutation: Option<&Permutation<B>>,
    rhs: &RightHandSides<T, B>,
    keep: bool,
) -> residua::Result<Solved<T>> {
    let k = rhs.count();
    let mut options = SolveOptions::default().tolerance(arguments.tolerance);
    if let Some(iterations) = arguments.max_iterations {
        options = options.max_iterations(iterations);
    }
    interrupt::listen();
    let mut solver = Solver::new(backend, system, options)?;
    let mut solved = Solved {
        columns: Vec::with_capacity(k),
        x: Vec::new(),
        bytes_per_iteration: 0,
        iterating: 0.0,
        at_once: 1,
    };
    if let Solver::Several(several) = &mut solver {
        solve_several(backend, arguments, system, permutation, several, rhs, keep, &mut solved)?;
        return Ok(solved);
    }
    for number in 0..k {
        let label = if k > 1 { format!("b {} of {k}  ", number + 1) } else { String::new() };
        let progress = Progress::new(arguments.quiet, arguments.tolerance, label);
        let b = rhs.column(backend, number, permutation)?;
        let (x, report) = solve_one(backend, system, permutation, &mut solver, &b, progress)?;
        let history = if system.bad_diagonal().is_some() { &[] } else { solver.history() };
        solved.iterating += solver.iterating().as_secs_f64();
        solved.add(backend, rhs, keep, &x, &report, history)?;
    }
    Ok(solved)
}

impl<T: Scalar<Real = f64>> Solved<T> {
    /// Takes a solution in the order of the file down.
    fn add<B: PreconditionSteps>(
        &mut self,
        backend: &B,
        rhs: &RightHandSides<T, B>,
        keep: bool,
        x: &B::Slice<T>,
        report: &Report,
        history: &[f64],
    ) -> residua::Result<()> {
        let error = match &rhs.solution {
            Some(solution) => Some(relative_error(backend, x, solution)?),
            None => None,
        };
        self.columns.push(Column::new(report, history, error));
        self.bytes_per_iteration = self.bytes_per_iteration.max(report.bytes_per_iteration);
        if keep {
            self.x.extend(backend.download(x)?);
        }
        Ok(())
    }
}

/// Several right-hand sides at once, and then the next.
#[allow(clippy::too_many_arguments)]
fn solve_several<T: Scalar<Real = f64>, B: Products + PreconditionSteps + GraphSteps>(
    backend: &B,
    arguments: &Arguments,
    system: &System<T, B>,
    permutation: Option<&Permutation<B>>,
    several: &mut Several<T, B>,
    rhs: &RightHandSides<T, B>,
    keep: bool,
    solved: &mut Solved<T>,
) -> residua::Result<()> {
    let (n, k, at_once) = (system.rows(), rhs.count(), several.cg.systems());
    let own = |place: usize| place * n..(place + 1) * n;
    let mut ordered = backend.zeros(if permutation.is_some() { n } else { 0 })?;
    solved.at_once = at_once;
    for first in (0..k).step_by(at_once) {
        let count = at_once.min(k - first);
        for place in 0..count {
            let b = rhs.column(backend, first + place, permutation)?;
            backend.copy(&b, B::part_mut(&mut several.b, own(place)))?;
        }
        let label = format!("b {} to {} of {k}  ", first + 1, first + count);
        let mut progress = Progress::new(arguments.quiet, arguments.tolerance, label);
        let mut norms = vec![0.0; count];
        let reports = several.solve(backend, system, count, |place, iteration, residual| {
            if iteration == 0 {
                norms[place] = residual;
            }
            progress.update(iteration, residual / norms[place]);
            if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let reports = reports.to_vec();
        solved.iterating += several.cg.iterating().as_secs_f64();
        for (place, report) in reports.iter().enumerate() {
            let mut x = B::part(&several.x, own(place));
            if let Some(permutation) = permutation {
                permutation.apply_inverse_on(backend, x, &mut ordered)?;
                x = &ordered;
            }
            solved.add(backend, rhs, keep, x, report, several.cg.history(place))?;
        }
    }
    Ok(())
}

/// x in the order of the file, and the report, for one right-hand side in the order of the matrix.
fn solve_one<T: Scalar<Real = f64>, B: Products + PreconditionSteps + GraphSteps>(
    backend: &B,
    system: &System<T, B>,
    permutation: Option<&Permutation<B>>,
    solver: &mut Solver<T, B>,
    b: &B::Slice<T>,
    mut progress: Progress,
) -> residua::Result<(B::Vec<T>, Report)> {
    let mut x = backend.zeros(B::len(b))?;
    let mut first = 0.0;
    let observer = |iteration: usize, residual: f64| {
        if iteration == 0 {
            first = residual;
        }
        progress.update(iteration, residual / first);
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let report = solver.solve(backend, system, b, &mut x, observer)?;
    let Some(permutation) = permutation else { return Ok((x, report)) };
    let mut ordered = backend.buffer(B::len(b))?;
    permutation.apply_inverse_on(backend, &x, &mut ordered)?;
    Ok((ordered, report))
}

/// ||x - solution|| / ||solution||; where the solution is zero, ||x||.
fn relative_error<T: Scalar<Real = f64>, B: VectorOps>(
    backend: &B,
    x: &B::Slice<T>,
    solution: &B::Slice<T>,
) -> residua::Result<f64> {
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
    convergence_svg(&title, &words::subtitle(answer, columns), &curves, arguments.tolerance)
}
