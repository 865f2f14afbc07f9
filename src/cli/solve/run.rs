//! The steps from a file to a solution.

use super::answer::{Answer, Column, Seconds, history_csv, worst};
use super::rhs::RightHandSides;
use super::words::{self, Story};
use super::{Arguments, Sinks};
use crate::cli::choice::expected_products;
use crate::cli::failure::About;
use crate::cli::load::{Loaded, load};
use crate::cli::progress::Progress;
use crate::cli::{Ending, Failure, console, interrupt};
use residua::backend::{KrylovSteps, Products, VectorOps};
use residua::graph::{self, Permutation};
use residua::krylov::{Cg, Outcome, Report, SolveOptions};
use residua::market::{Field, Symmetry, WriteOptions, write_dense};
use residua::matrix::{self, ChoiceOptions, ChoiceReport};
use residua::precondition::{Identity, Jacobi};
use residua::report::{Curve, Facts, convergence_svg, copy_bandwidth};
use residua::scalar::Widen;
use residua::{Backend, Csr, Element, Error, Host, LinearOperator, Scalar};
use std::ops::ControlFlow;
use std::time::Instant;

/// Solves that move fewer bytes are over before their bandwidth means anything.
const BANDWIDTH_FROM: f64 = 1e9;

/// Reads, solves on `backend`, and writes. `no_gpu` tells why it is not a GPU, where one was looked for.
pub(super) fn run<T, B>(
    backend: &B,
    no_gpu: Option<&str>,
    arguments: &Arguments,
    sinks: &Sinks,
) -> Result<Ending, Failure>
where
    T: Scalar<Real = f64>,
    B: Products + KrylovSteps,
{
    let path = arguments.matrix.as_path();
    let Loaded { a, header, read, assemble } = load::<T>(path)?;
    let mut seconds = Seconds { read, assemble, ..Seconds::default() };
    let symmetric = check(&a, header.symmetry(), arguments)?;
    let rhs = arguments.rhs.make(&a, path)?;
    let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());

    let start = Instant::now();
    let ordering = match arguments.reorder.as_str() {
        "rcm" => Some(graph::ordering(&a).about(path)?),
        _ => None,
    };
    let permutation = ordering.as_ref().filter(|o| !o.keeps_natural_order()).map(|o| o.permutation());
    let a = match permutation {
        Some(p) => graph::permute_symmetric(&a, p).about(path)?,
        None => a,
    };
    if ordering.is_some() {
        seconds.reorder = start.elapsed().as_secs_f64();
    }

    let start = Instant::now();
    let auto = arguments.format == "auto";
    // Small integers and binary fractions, as stencils have them, fit a narrower type: the same bits of x, fewer bytes.
    let narrow = if auto { a.to_narrow() } else { None };
    seconds.convert = start.elapsed().as_secs_f64();
    let stored = if narrow.is_some() { T::Narrow::NAME } else { T::NAME };
    let Prepared { preconditioner, operator, format, choice } = match narrow {
        Some(narrow) => {
            drop(a);
            prepare(backend, narrow, arguments, rhs.columns.len(), &mut seconds)
        }
        None => prepare(backend, a, arguments, rhs.columns.len(), &mut seconds),
    }
    .about(path)?;

    let start = Instant::now();
    let system = System { backend, a: &*operator, preconditioner: &preconditioner, permutation };
    let solved = solve_all(arguments, &system, &rhs).about(path)?;
    seconds.solve = start.elapsed().as_secs_f64();
    // Measuring the copy bandwidth takes memory of its own.
    drop((operator, preconditioner));

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
        format: format.to_string(),
        stored,
        device: backend.description(),
        method: arguments.method.clone(),
        preconditioner: arguments.preconditioner.clone(),
        seconds,
        bytes_per_iteration: solved.bytes_per_iteration,
        bandwidth_gb_s: bandwidth,
        history: decisive.history.clone(),
        right_hand_sides: several,
    };

    if let Some(sink) = &sinks.x {
        write_dense(sink.path(), rows, solved.columns.len(), &solved.x, &WriteOptions::default())?;
    }
    if let Some(sink) = &sinks.history {
        sink.write(&history_csv(&solved.columns))?;
    }
    if let Some(sink) = &sinks.plot {
        sink.write(&plot(arguments, &answer, &solved.columns))?;
    }
    if let Some(sink) = &sinks.json {
        sink.write_json(&answer)?;
    }
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
            choice: choice.as_ref(),
            pattern: header.field() == Field::Pattern,
            ordering: ordering.as_ref(),
            copy,
        };
        console::say(&words::story(&story))?;
    }
    Ok(if converged { Ending::Done } else { Ending::NotSolved })
}

/// What a solve multiplies with.
type Operator<T, B> = Box<dyn LinearOperator<T, B>>;

/// All that a solve needs besides b.
struct Prepared<T: Scalar, B: Backend> {
    preconditioner: Setup<T, B>,
    operator: Operator<T, B>,
    format: &'static str,
    /// How the format was chosen, where it was.
    choice: Option<ChoiceReport>,
}

/// Moves the matrix to the backend, sets the preconditioner up, and stores the matrix in the format asked for, or in
/// the one that pays for the products to be expected.
fn prepare<T, V, B>(
    backend: &B,
    a: Csr<V>,
    arguments: &Arguments,
    right_hand_sides: usize,
    seconds: &mut Seconds,
) -> residua::Result<Prepared<T, B>>
where
    T: Scalar<Real = f64>,
    V: Scalar + Widen<T>,
    B: Products + KrylovSteps,
{
    let start = Instant::now();
    let a = a.into_backend(backend)?;
    let moved = start.elapsed();
    let start = Instant::now();
    let preconditioner = Setup::new(backend, &a, &arguments.preconditioner)?;
    seconds.setup = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let (operator, choice) =
        if arguments.format == "auto" && backend.cg_bursts::<V, T>(a.rows(), a.nonzeros()) {
            (matrix::convert::<T, B, V>(backend, Csr::<V>::NAME, a)?, None)
        } else if arguments.format == "auto" {
            let products = expected_products(a.rows(), right_hand_sides, arguments.max_iterations);
            let options = ChoiceOptions::default().products(products);
            let (operator, report) = matrix::choose::<T, V, B>(backend, a, &options)?.into_parts();
            (operator, Some(report))
        } else {
            (matrix::convert::<T, B, V>(backend, &arguments.format, a)?, None)
        };
    backend.synchronize()?;
    seconds.convert += (moved + start.elapsed()).as_secs_f64();
    Ok(Prepared { preconditioner, format: operator.format(), operator, choice })
}

/// Whether the matrix is one that conjugate gradients can take; else says why not.
fn check<T: Scalar>(a: &Csr<T>, stored_as: Symmetry, arguments: &Arguments) -> Result<bool, Failure> {
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
    let facts = Facts::of(a);
    if facts.is_hermitian() {
        return Ok(facts.is_symmetric());
    }
    Err(Failure::about(path, words::unsymmetric(a, &facts)))
}

/// A preconditioner that is set up, or the proof that none is needed.
enum Setup<T: Scalar, B: Backend> {
    Identity,
    Jacobi(Jacobi<T, B>),
    /// A diagonal entry that no positive definite matrix has.
    NotPositiveDefinite(f64),
}

impl<T: Scalar<Real = f64>, B: KrylovSteps> Setup<T, B> {
    fn new<V: Scalar + Widen<T>>(backend: &B, a: &Csr<V, B>, name: &str) -> residua::Result<Self> {
        if name == "none" {
            return Ok(Setup::Identity);
        }
        match Jacobi::new(backend, a) {
            Ok(jacobi) => Ok(Setup::Jacobi(jacobi)),
            Err(Error::Diagonal { value, .. }) if value <= 0.0 => Ok(Setup::NotPositiveDefinite(value)),
            Err(error) => Err(error),
        }
    }
}

/// What every right-hand side shares.
struct System<'a, T: Scalar, B: Products + KrylovSteps> {
    backend: &'a B,
    a: &'a dyn LinearOperator<T, B>,
    preconditioner: &'a Setup<T, B>,
    /// What the unknowns were renumbered by.
    permutation: Option<&'a Permutation>,
}

/// All solutions.
struct Solved<T> {
    columns: Vec<Column>,
    /// Column after column, in the order of the file.
    x: Vec<T>,
    bytes_per_iteration: usize,
    /// Seconds of all iterations together.
    iterating: f64,
}

fn solve_all<T: Scalar<Real = f64>, B: Products + KrylovSteps>(
    arguments: &Arguments,
    system: &System<'_, T, B>,
    rhs: &RightHandSides<T>,
) -> residua::Result<Solved<T>> {
    let (n, k) = (system.a.rows(), rhs.columns.len());
    let mut options = SolveOptions::default().tolerance(arguments.tolerance);
    if let Some(iterations) = arguments.max_iterations {
        options = options.max_iterations(iterations);
    }
    interrupt::listen();
    let mut solver = Cg::new(system.backend, n, options)?;
    let mut solved = Solved {
        columns: Vec::with_capacity(k),
        x: Vec::with_capacity(n * k),
        bytes_per_iteration: 0,
        iterating: 0.0,
    };
    for (number, b) in rhs.columns.iter().enumerate() {
        let label = if k > 1 { format!("b {} of {k}  ", number + 1) } else { String::new() };
        let progress = Progress::new(arguments.quiet, arguments.tolerance, label);
        let (x, report) = solve_one(system, &mut solver, b, progress)?;
        let history = if matches!(system.preconditioner, Setup::NotPositiveDefinite(_)) {
            &[]
        } else {
            solver.history()
        };
        let error = rhs.solution.as_deref().map(|solution| relative_error(&x, solution)).transpose()?;
        solved.columns.push(Column::new(&report, history, error));
        solved.iterating += solver.iterating().as_secs_f64();
        solved.bytes_per_iteration = solved.bytes_per_iteration.max(report.bytes_per_iteration);
        solved.x.extend(x);
    }
    Ok(solved)
}

/// x and the report for one right-hand side, both in the order of the file.
fn solve_one<T: Scalar<Real = f64>, B: Products + KrylovSteps>(
    system: &System<'_, T, B>,
    solver: &mut Cg<T, B>,
    b: &[T],
    mut progress: Progress,
) -> residua::Result<(Vec<T>, Report)> {
    let System { backend, a, .. } = *system;
    let device_b = backend.upload(match system.permutation {
        Some(p) => p.apply(b)?,
        None => b.to_vec(),
    })?;
    let mut device_x = backend.zeros(b.len())?;
    let mut first = 0.0;
    let observer = |iteration: usize, residual: f64| {
        if iteration == 0 {
            first = residual;
        }
        progress.update(iteration, residual / first);
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let report = match system.preconditioner {
        Setup::Identity => solver.solve(a, &Identity, &device_b, &mut device_x, observer)?,
        Setup::Jacobi(jacobi) => solver.solve(a, jacobi, &device_b, &mut device_x, observer)?,
        Setup::NotPositiveDefinite(entry) => {
            Report::not_started(Outcome::NotPositiveDefinite { iteration: 0, curvature: *entry }, b)
        }
    };
    let x = backend.download(&device_x)?;
    let x = match system.permutation {
        Some(p) => p.apply_inverse(&x)?,
        None => x,
    };
    Ok((x, report))
}

/// ||x - solution|| / ||solution||; where the solution is zero, ||x||.
fn relative_error<T: Scalar<Real = f64>>(x: &[T], solution: &[T]) -> residua::Result<f64> {
    let mut difference = Host.download(x)?;
    Host.axpby(-T::one(), solution, T::one(), &mut difference)?;
    let (mut top, mut bottom) = ([0.0], [0.0]);
    Host.norm2_squared(&difference, &mut top)?;
    Host.norm2_squared(solution, &mut bottom)?;
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
