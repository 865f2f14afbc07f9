//! `residua solve`.

mod answer;
mod forecast;
mod page;
#[cfg(all(unix, feature = "ranks"))]
mod ranks;
mod rhs;
mod run;
mod several;
mod words;

use super::choice::{completed, formats, one_of, parse_format};
use super::device::{self, Device};
use super::failure::About;
use super::load::{came_complex, is_complex, load};
#[cfg(feature = "cuda")]
use super::load::{load_on, options};
#[cfg(feature = "cuda")]
use super::progress::Progress;
use super::sink::{Sink, takes_stdout};
use super::{Ending, Failure};
use crate::files::read_dense;
#[cfg(feature = "cuda")]
use crate::files::{Reading, read_header};
use crate::krylov::Outcome;
use crate::market::{Header, ReadOptions, Symmetry};
use crate::solver::{Builder, Method, Precision, PreconditionerChoice, Reorder, Solvable};
use crate::{Host, Solver};
use answer::Column;
use num_complex::Complex;
use rhs::Rhs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(clap::Args, Clone)]
#[command(after_help = "Examples:\n  \
    residua solve A.mtx                         solves A x = A 1 and tells how well\n  \
    residua solve A.mtx --rhs b.mtx -o x.mtx    solves A x = b, for each column of b\n  \
    residua solve A.mtx --rhs ones --tolerance 1e-10 --plot residuals.svg --json -\n  \
    mpirun -n 4 residua solve A.mtx             four processes solve together\n  \
    residua solve *.mtx -o '{}.npy'             one after another; {} is the name of each, without its ending\n\n\
    x and the report are written even where the system is not solved (exit status 4).")]
pub(crate) struct Arguments {
    /// File of A: Matrix Market, SuiteSparse .tar.gz, Rutherford-Boeing, Harwell-Boeing, SciPy .npz, NumPy .npy, PETSc
    /// binary, MATLAB .mat (version 5) or AMGX's; '-' is standard input
    matrix: PathBuf,
    /// Further files, which are solved one after another on the device that is open; in names of other files {} then
    /// stands for the name of each matrix without its ending
    #[arg(value_name = "MATRIX")]
    more: Vec<PathBuf>,
    /// Right-hand side b: a file (one column or several), ones, a-ones (A times ones: the solution is known),
    /// random:SEED, or a-random:SEED (A times a random solution); a file may be plain numbers too [default: the one
    /// that came with the matrix in its file, else a-ones]
    #[arg(long, value_name = "FILE|NAME")]
    rhs: Option<Rhs>,
    /// Write x to this file: Matrix Market, or by its name .npy or .npz
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Method; auto chooses one for the matrix
    #[arg(long, default_value = "auto", value_parser = one_of::<Method>(Method::ALL.iter().map(|value| value.name())))]
    method: Method,
    /// Preconditioner: none, jacobi, block-jacobi[:ROWS], fsai, chebyshev[:STEPS], chebyshev-single[:STEPS] (the same
    /// in single precision, while the method is in double), ilu (incomplete factors with the pattern of A),
    /// ilut[:fill=N,digits=N] (with fill), amg[:OPTION=VALUE,...] (multigrid; steps, unknowns, smoothing, coarsening,
    /// weights, prolongation, precision, boxes), or auto: jacobi, or amg, ilu or chebyshev-single if that is likely to
    /// be faster
    #[arg(long, default_value = "auto", value_name = "NAME", hide_possible_values = true, value_parser = completed(PRECONDITIONERS, parse_preconditioner))]
    preconditioner: PreconditionerChoice,
    /// double; mixed: iterate with matrix and vectors in single precision, refine in double; or auto: as mixed, and
    /// continue in double if that does not reach the tolerance
    #[arg(long, default_value = "double", value_parser = one_of::<Precision>(Precision::ALL.iter().map(|value| value.name())))]
    precision: Precision,
    /// Stop when ||b - A x|| is at most this times ||b||, also with each row divided by the norm of that row of A
    #[arg(long, default_value = "1e-8", value_parser = parse_tolerance, allow_negative_numbers = true)]
    tolerance: f64,
    /// Stop after this many iterations [default: 10 for each unknown, at least 1000, at most 100000]
    #[arg(long)]
    max_iterations: Option<usize>,
    /// Stop after this many seconds of setting up and solving [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    /// Maximum memory of a factorisation, such as 4GB [default: seven eighths of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory_limit: Option<u64>,
    /// Storage format of A: auto (by a model of the device), measured (the fastest of a trial), or one that `residua
    /// info` lists
    #[arg(long, default_value = "auto", hide_possible_values = true, value_parser = completed(formats(), parse_format))]
    format: String,
    /// Where to compute: auto (a GPU if there is one, otherwise the CPU), cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", hide_possible_values = true, value_parser = completed(device::NAMES, device::parse))]
    device: String,
    /// Renumber the unknowns before solving: auto does so if it is likely to pay; x is in the order of the file in any
    /// case [default: auto]
    #[arg(long, value_parser = one_of::<Reorder>(Reorder::ALL.iter().map(|value| value.name())))]
    reorder: Option<Reorder>,
    /// Coordinates of the points of the mesh, one point per row of this file: multigrid then represents rigid body
    /// modes if each point has as many unknowns as there are dimensions
    #[arg(long, value_name = "FILE", conflicts_with = "near_null")]
    coordinates: Option<PathBuf>,
    /// Vectors that A maps near to zero, for multigrid: the columns of this file
    #[arg(long, value_name = "FILE")]
    near_null: Option<PathBuf>,
    /// Solve with this many processes on this machine, each with its rows of A, on the CPU or on a GPU of its own (as
    /// --device says); under `mpirun -n N` it is the number of processes that mpirun has started
    #[cfg(all(unix, feature = "ranks"))]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    ranks: Option<u16>,
    /// Take further options from this file, by their long names, such as `tolerance = 1e-10` (TOML); options of the
    /// command line take precedence
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Null space of A: constants (on each component of its graph), or a file of vectors. x is then the shortest of all
    /// solutions and, if A is symmetric, the part of b outside the range of A is removed and reported [default:
    /// constants are found if A is symmetric and its rows add up to zero]
    #[arg(long, value_name = "constants|FILE")]
    null_space: Option<PathBuf>,
    /// Write the report as JSON; with '-' it is printed in the place of the report in words
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the residual of each iteration as CSV
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Draw the residuals as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write a page (HTML) with everything, to send to a colleague: result, convergence, the matrix and its picture,
    /// what was tried and why, times
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Leave out the estimate of the condition number, for which a factorisation needs a few more solves; it is made
    /// all the same if double precision cannot meet the tolerance
    #[arg(long)]
    no_condition: bool,
    /// Solve nothing: show which methods would be tried, in which order and why, and how long each is expected to take,
    /// from half of the digits of iterations and the order of a factorisation (also by --json)
    #[arg(long, conflicts_with_all = ["output", "history", "plot", "report", "quiet"])]
    dry_run: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Preconditioners without their numbers and options, for completions.
const PRECONDITIONERS: [&str; 10] =
    ["auto", "none", "jacobi", "block-jacobi", "fsai", "chebyshev", "chebyshev-single", "ilu", "ilut", "amg"];

fn parse_preconditioner(text: &str) -> Result<PreconditionerChoice, String> {
    text.parse().map_err(|error: crate::Error| {
        // The message of the command line names the option and the value already.
        let told = error.to_string();
        let told = told.strip_prefix("invalid argument: ").unwrap_or(&told);
        told.strip_prefix(&format!("'{text}' is not possible: ")).unwrap_or(told).to_string()
    })
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..1.0).contains(&value) => Ok(value),
        _ => Err("a tolerance must be at least 0 and below 1, such as 1e-8".into()),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "a time must be a number of seconds, such as 0.5".into())
}

/// A number of bytes, with a unit of 10^3, 10^6, 10^9 or 10^12, or none.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)];
    let found = units.into_iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let (digits, size) = found.unwrap_or((text, 1.0));
    let number = digits.trim().parse::<f64>().ok().filter(|number| (0.0..1e19).contains(&(number * size)));
    number
        .map(|number| (number * size) as u64)
        .ok_or_else(|| "write an amount of memory like 500MB or 4GB".into())
}

impl Arguments {
    fn is_mixed(&self) -> bool {
        self.precision != Precision::Double
    }

    /// The file of b, if it is one.
    fn rhs_file(&self) -> Option<&Path> {
        match &self.rhs {
            Some(Rhs::File(path)) => Some(path),
            _ => None,
        }
    }

    /// Returns whether all right-hand sides were solved. A least-squares solution counts if it was requested, by name
    /// or by the shape of the matrix.
    fn are_solved(&self, is_square: bool, columns: &[Column]) -> bool {
        let least_squares = !is_square || self.method == Method::Lsmr || self.null_space.is_some();
        let is_solved =
            |outcome: &Outcome| outcome.is_solved() && (least_squares || *outcome != Outcome::LeastSquares);
        columns.iter().all(|column| is_solved(&column.outcome))
    }

    /// The settings for a matrix whose file has this header. Properties that the header does not state are found from
    /// the entries.
    fn builder_for(&self, header: &Header) -> Result<Builder, Failure> {
        let mut builder = self.builder();
        if let Some(path) = &self.coordinates {
            let (points, dimensions, coordinates) = rows_of(path)?;
            if points == 0 || !header.rows().is_multiple_of(points) || !(1..=3).contains(&dimensions) {
                let what = format!(
                    "{points} points of {dimensions} dimensions do not fit {} unknowns",
                    header.rows()
                );
                let how = "write each point as a row of one to three numbers; each point has the same number of \
                    unknowns";
                return Err(Failure::about(path, format!("{what}: {how}")));
            }
            builder = builder.coordinates(dimensions, coordinates);
        }
        if let Some(path) = &self.near_null {
            let (rows, count, entries) = rows_of(path)?;
            if rows != header.rows() || count == 0 {
                let what = format!(
                    "the file has {count} vectors of {rows} rows, but the matrix has {} rows",
                    header.rows()
                );
                return Err(Failure::about(path, what));
            }
            builder = builder.near_null_space(count, entries);
        }
        Ok(match header.symmetry() {
            known @ (Symmetry::Symmetric | Symmetry::Hermitian) => builder.symmetry_of_file(known),
            _ => builder,
        })
    }

    /// [`Arguments::builder_for`] with the named null space.
    fn builder_of<T: Solvable<Real = f64>>(&self, header: &Header) -> Result<Builder, Failure> {
        let builder = self.builder_for(header)?;
        let Some(path) = &self.null_space else { return Ok(builder) };
        if path.as_os_str() == "constants" {
            return Ok(builder.null_space_constants());
        }
        let file = read_dense::<T>(path, &ReadOptions::default()).about(path)?;
        let (rows, n) = (file.rows(), header.columns());
        if rows != n {
            let what =
                format!("the null vectors have {rows} rows, but {} has {n} columns", self.matrix.display());
            return Err(Failure::about(path, what));
        }
        let vectors: Vec<Vec<T>> = (0..file.columns()).map(|j| file.column(j).to_vec()).collect();
        Ok(builder.null_space(&vectors))
    }

    /// The settings given on the command line.
    fn builder(&self) -> Builder {
        let mut builder = Solver::builder()
            .tolerance(self.tolerance)
            .method(self.method)
            .preconditioner(self.preconditioner)
            .precision(self.precision)
            .condition(!self.no_condition)
            .format(&self.format)
            .reorder(self.reorder.unwrap_or_default());
        if let Some(iterations) = self.max_iterations {
            builder = builder.max_iterations(iterations);
        }
        if let Some(limit) = self.memory_limit {
            builder = builder.memory_limit(limit);
        }
        if let Some(limit) = self.time_limit {
            builder = builder.time_limit(limit);
        }
        builder
    }
}

/// Rows and columns of an array in a file, and its numbers row by row.
fn rows_of(path: &Path) -> Result<(usize, usize, Vec<f64>), Failure> {
    let file = read_dense::<f64>(path, &ReadOptions::default()).about(path)?;
    let (rows, columns) = (file.rows(), file.columns());
    let entries: Vec<f64> =
        (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| file.column(j)[i]).collect();
    if let Some(place) = entries.iter().position(|entry| !entry.is_finite()) {
        return Err(Failure::about(
            path,
            format!("an entry in row {} is infinite or NaN", place / columns + 1),
        ));
    }
    Ok((rows, columns, entries))
}

/// The destinations of the results.
struct Sinks {
    x: Option<Sink>,
    json: Option<Sink>,
    history: Option<Sink>,
    plot: Option<Sink>,
    report: Option<Sink>,
    /// True if one of them is standard output, which the printed report then can't use.
    stdout: bool,
    /// When the work on this matrix began.
    begun: Instant,
}

impl Sinks {
    fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let begun = Instant::now();
        let Arguments { output, json, history, plot, report, .. } = arguments;
        let x = output.as_deref().map(Sink::for_numbers).transpose()?;
        let paths = [json, history, plot, report];
        let [json, history, plot, report] = paths.map(|path| path.as_deref().map(Sink::open).transpose());
        let (json, history, plot, report) = (json?, history?, plot?, report?);
        let inputs = [Some(arguments.matrix.as_path()), arguments.rhs_file(), arguments.config.as_deref()];
        let sinks = [&x, &json, &history, &plot, &report].map(Option::as_ref);
        let stdout = takes_stdout(inputs.into_iter().flatten(), sinks)?;
        Ok(Self { x, json, history, plot, report, stdout, begun })
    }
}

/// Solves the systems that the command line names.
pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if arguments.more.is_empty() {
        one(&several::named(arguments, &arguments.matrix))
    } else {
        several::run(arguments)
    }
}

/// Solves with one matrix.
fn one(arguments: &Arguments) -> Result<Ending, Failure> {
    let pipe = Path::new("-");
    if arguments.rhs_file() == Some(pipe) && arguments.matrix == pipe {
        return Err(Failure::Usage("A and b cannot both come from standard input ('-')".into()));
    }
    #[cfg(all(unix, feature = "ranks"))]
    if arguments.dry_run && (ranks::is_one() || arguments.ranks.is_some_and(|ranks| ranks > 1)) {
        return Err(Failure::Usage("--dry-run works with one process only".into()));
    } else if arguments.null_space.is_some()
        && (ranks::is_one() || arguments.ranks.is_some_and(|ranks| ranks > 1))
    {
        return Err(Failure::Usage("--null-space works with one process only".into()));
    } else if ranks::is_one() {
        return ranks::run(arguments);
    } else if arguments.ranks.is_some_and(|ranks| ranks > 1) {
        return ranks::start(arguments);
    }
    if let Some(path) = arguments.rhs_file() {
        rhs::check_name(path)?;
    }
    let sinks = Sinks::open(arguments)?;
    if is_complex_system(arguments)? {
        run_as::<Complex<f64>>(arguments, &sinks)
    } else {
        run_as::<f64>(arguments, &sinks)
    }
}

/// Whether A or b has complex numbers.
fn is_complex_system(arguments: &Arguments) -> Result<bool, Failure> {
    let complex_rhs = match (&arguments.rhs, arguments.rhs_file()) {
        (_, Some(path)) => is_complex(path)?,
        (None, None) => came_complex(&arguments.matrix)?,
        _ => false,
    };
    Ok(is_complex(&arguments.matrix)? || complex_rhs)
}

#[cfg(feature = "cuda")]
fn run_as<T: Solvable<Real = f64>>(arguments: &Arguments, sinks: &Sinks) -> Result<Ending, Failure> {
    let path = arguments.matrix.as_path();
    // With `auto`, a GPU is used only if the system is large enough to pay for starting it.
    if arguments.device == "auto"
        && path.is_file()
        && let Some(reason) = device::too_small(&read_header(path).about(path)?)
    {
        // Without a GPU there is nothing to explain.
        let reason = Some(reason.as_str()).filter(|_| device::is_there());
        return run::run::<T, _>(&Host, load(path, arguments.quiet), reason, arguments, sinks);
    }
    if arguments.device == "cpu" {
        return run::run::<T, _>(&Host, load(path, arguments.quiet), None, arguments, sinks);
    }
    device::ask_for_one_connection();
    // A device takes a fifth of a second to start, in which a large part of a file can be read. A pipe can be read only
    // once, and is left to the backend that will compute.
    let start = Instant::now();
    let (progress, meter) = Progress::reading(arguments.quiet, path);
    let begin = || (Reading::<T>::start(path, options(meter.clone())), start);
    let reading = path.is_file().then(begin);
    match device::open(&arguments.device)? {
        Device::Cpu(reason) => {
            let loaded = load_on(&Host, path, reading.unwrap_or_else(begin));
            drop(progress);
            run::run::<T, _>(&Host, loaded, reason.as_deref(), arguments, sinks)
        }
        Device::Cuda(cuda) => {
            let _compiling = cuda.compile_ahead(arguments.builder().kernels::<T>());
            let loaded = load_on(&cuda, path, reading.unwrap_or_else(begin));
            drop(progress);
            run::run::<T, _>(&cuda, loaded, None, arguments, sinks)
        }
    }
}

/// The CPU; this build supports no other device.
#[cfg(not(feature = "cuda"))]
fn run_as<T: Solvable<Real = f64>>(arguments: &Arguments, sinks: &Sinks) -> Result<Ending, Failure> {
    let Device::Cpu(reason) = device::open(&arguments.device)?;
    run::run::<T, _>(&Host, load(&arguments.matrix, arguments.quiet), reason.as_deref(), arguments, sinks)
}
