//! The steps from a file to a solution.

use super::answer::{Answer, Column, Seconds, history_csv, worst};
use super::rhs::RightHandSides;
use super::words::{self, Story};
use super::{Arguments, Sinks};
use crate::cli::choice::choose;
use crate::cli::failure::About;
use crate::cli::load::{Loaded, load};
use crate::cli::progress::Progress;
use crate::cli::{Ending, Failure, console, interrupt};
use residua::graph::{self, Permutation};
use residua::krylov::{Cg, Outcome, Report, SolveOptions};
use residua::market::{Field, Symmetry, WriteOptions, write_dense};
use residua::matrix;
use residua::precondition::{Identity, Jacobi};
use residua::report::{Curve, Facts, convergence_svg, copy_bandwidth};
use residua::{Backend, Csr, Error, Host, Scalar};
use std::ops::ControlFlow;
use std::time::Instant;

/// Solves that take less are over before their bandwidth means anything.
const BANDWIDTH_FROM: f64 = 0.02;

type Operator<T> = dyn matrix::SparseMatrix<T, Host>;

pub(super) fn run<T: Scalar<Real = f64>>(arguments: &Arguments, sinks: &Sinks) -> Result<Ending, Failure> {
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
    let preconditioner = Setup::new(&a, &arguments.preconditioner).about(path)?;
    seconds.setup = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let format = match arguments.format.as_str() {
        "auto" => choose(&a).about(path)?.format.to_string(),
        name => name.to_string(),
    };
    let operator = matrix::convert::<T, Host, T>(&Host, &format, a).about(path)?;
    seconds.convert = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let solved = solve_all(arguments, &*operator, &preconditioner, &rhs, permutation).about(path)?;
    seconds.solve = start.elapsed().as_secs_f64();

    let iterations: usize = solved.columns.iter().map(|column| column.iterations).sum();
    let moved = iterations as f64 * solved.bytes_per_iteration as f64;
    let bandwidth = (moved > 0.0 && seconds.solve > 0.0).then(|| moved / seconds.solve / 1e9);
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
        format,
        device: Host.description(),
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
            Some(_) if seconds.solve >= BANDWIDTH_FROM => copy_bandwidth(&Host, 3).ok(),
            _ => None,
        };
        let story = Story {
            arguments,
            answer: &answer,
            columns: &solved.columns,
            rhs: &rhs.words,
            pattern: header.field() == Field::Pattern,
            ordering: ordering.as_ref(),
            copy,
        };
        console::say(&words::story(&story))?;
    }
    Ok(if converged { Ending::Done } else { Ending::NotSolved })
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
enum Setup<T: Scalar> {
    Identity,
    Jacobi(Jacobi<T, Host>),
    /// A diagonal entry that no positive definite matrix has.
    NotPositiveDefinite(f64),
}

impl<T: Scalar<Real = f64>> Setup<T> {
    fn new(a: &Csr<T>, name: &str) -> residua::Result<Self> {
        if name == "none" {
            return Ok(Setup::Identity);
        }
        match Jacobi::new(&Host, a) {
            Ok(jacobi) => Ok(Setup::Jacobi(jacobi)),
            Err(Error::Diagonal { value, .. }) if value <= 0.0 => Ok(Setup::NotPositiveDefinite(value)),
            Err(error) => Err(error),
        }
    }
}

/// All solutions.
struct Solved<T> {
    columns: Vec<Column>,
    /// Column after column, in the order of the file.
    x: Vec<T>,
    bytes_per_iteration: usize,
}

fn solve_all<T: Scalar<Real = f64>>(
    arguments: &Arguments,
    a: &Operator<T>,
    preconditioner: &Setup<T>,
    rhs: &RightHandSides<T>,
    permutation: Option<&Permutation>,
) -> residua::Result<Solved<T>> {
    let (n, k) = (a.rows(), rhs.columns.len());
    let mut options = SolveOptions::default().tolerance(arguments.tolerance);
    if let Some(iterations) = arguments.max_iterations {
        options = options.max_iterations(iterations);
    }
    interrupt::listen();
    let mut solver = Cg::new(&Host, n, options)?;
    let mut solved =
        Solved { columns: Vec::with_capacity(k), x: Vec::with_capacity(n * k), bytes_per_iteration: 0 };
    for (number, b) in rhs.columns.iter().enumerate() {
        let b = match permutation {
            Some(p) => &p.apply(b)?,
            None => b,
        };
        let label = if k > 1 { format!("b {} of {k}  ", number + 1) } else { String::new() };
        let mut progress = Progress::new(arguments.quiet, arguments.tolerance, label);
        let mut first = 0.0;
        let observer = |iteration: usize, residual: f64| {
            if iteration == 0 {
                first = residual;
            }
            progress.update(iteration, residual / first);
            if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut x = vec![T::zero(); n];
        let (report, history): (Report, &[f64]) = match preconditioner {
            Setup::Identity => (solver.solve(a, &Identity, b, &mut x, observer)?, solver.history()),
            Setup::Jacobi(jacobi) => (solver.solve(a, jacobi, b, &mut x, observer)?, solver.history()),
            Setup::NotPositiveDefinite(entry) => {
                let outcome = Outcome::NotPositiveDefinite { iteration: 0, curvature: *entry };
                (Report::not_started(outcome, b), &[])
            }
        };
        drop(progress);
        let x = match permutation {
            Some(p) => p.apply_inverse(&x)?,
            None => x,
        };
        let error = rhs.solution.as_deref().map(|solution| relative_error(&x, solution)).transpose()?;
        solved.columns.push(Column::new(&report, history, error));
        solved.bytes_per_iteration = solved.bytes_per_iteration.max(report.bytes_per_iteration);
        solved.x.extend(x);
    }
    Ok(solved)
}

/// ||x - solution|| / ||solution||; where the solution is zero, ||x||.
fn relative_error<T: Scalar<Real = f64>>(x: &[T], solution: &[T]) -> residua::Result<f64> {
    use residua::backend::VectorOps;
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
