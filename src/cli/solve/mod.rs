//! `residua solve`.

mod answer;
mod method;
mod reorder;
mod rhs;
mod run;
mod words;

use super::device::{self, Device};
#[cfg(feature = "cuda")]
use super::failure::About;
use super::load::is_complex;
use super::sink::{Sink, takes_stdout};
use super::{Ending, Failure};
use num_complex::Complex;
#[cfg(feature = "cuda")]
use residua::market::read_header;
use residua::{Host, Scalar};
use rhs::Rhs;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    residua solve A.mtx                         solves A x = A 1 and tells how well\n  \
    residua solve A.mtx --rhs b.mtx -o x.mtx    solves A x = b, for each column of b\n  \
    residua solve A.mtx --rhs ones --tolerance 1e-10 --plot residuals.svg --json -\n\n\
    x and the report are written even where the system is not solved (exit status 4).")]
pub(crate) struct Arguments {
    /// Matrix Market file of A; '-' is standard input
    matrix: PathBuf,
    /// Right-hand side b: a file (one column or several), ones, a-ones (A times ones: the solution is known),
    /// random:SEED, or a-random:SEED (A times a random solution)
    #[arg(long, default_value = "a-ones", value_name = "FILE|NAME")]
    rhs: Rhs,
    /// Write x to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Solver
    #[arg(long, default_value = "cg", value_parser = ["cg"])]
    method: String,
    /// Preconditioner: none, jacobi, block-jacobi[:ROWS], fsai, chebyshev[:STEPS]
    #[arg(long, default_value = "jacobi", value_name = "NAME", value_parser = method::parse)]
    preconditioner: method::Name,
    /// double, or mixed: iterate with matrix and vectors in single precision, refine in double
    #[arg(long, default_value = "double", value_parser = ["double", "mixed"])]
    precision: String,
    /// Stop where ||b - A x|| is at most this times ||b||
    #[arg(long, default_value = "1e-8", value_parser = parse_tolerance)]
    tolerance: f64,
    /// Stop after this many iterations [default: 10 for each unknown, at least 1000, at most 100000]
    #[arg(long)]
    max_iterations: Option<usize>,
    /// Storage format of A: auto or one that `residua info` lists
    #[arg(long, default_value = "auto", value_parser = super::choice::parse_format)]
    format: String,
    /// Where to compute: auto (a GPU where there is one, else the CPU), cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", value_parser = super::device::parse)]
    device: String,
    /// Renumber the unknowns before solving: auto does so where it is likely to pay; x comes back in the order of the
    /// file
    #[arg(long, default_value = "none", value_parser = ["none", "rcm", "auto"])]
    reorder: String,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the residual of each iteration as CSV
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Draw the residuals as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..1.0).contains(&value) => Ok(value),
        _ => Err("a tolerance is a number from 0 to below 1, such as 1e-8".into()),
    }
}

impl Arguments {
    fn is_mixed(&self) -> bool {
        self.precision == "mixed"
    }
}

/// Where the results go.
struct Sinks {
    x: Option<Sink>,
    json: Option<Sink>,
    history: Option<Sink>,
    plot: Option<Sink>,
    /// Whether standard output belongs to one of them rather than to the report for a person.
    stdout: bool,
}

impl Sinks {
    fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let paths = [&arguments.output, &arguments.json, &arguments.history, &arguments.plot];
        let [x, json, history, plot] = paths.map(|path| path.as_deref().map(Sink::open).transpose());
        let (x, json, history, plot) = (x?, json?, history?, plot?);
        let stdout = takes_stdout([&x, &json, &history, &plot].map(Option::as_ref))?;
        Ok(Self { x, json, history, plot, stdout })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if let Rhs::File(path) = &arguments.rhs
        && path == Path::new("-")
        && arguments.matrix == Path::new("-")
    {
        return Err(Failure::Usage("A and b cannot both come from standard input ('-')".into()));
    }
    let sinks = Sinks::open(arguments)?;
    let complex_rhs = match &arguments.rhs {
        Rhs::File(path) => is_complex(path)?,
        _ => false,
    };
    let device = place(arguments)?;
    if is_complex(&arguments.matrix)? || complex_rhs {
        run_on::<Complex<f64>>(device, arguments, &sinks)
    } else {
        run_on::<f64>(device, arguments, &sinks)
    }
}

/// The device to compute on: with `auto`, a GPU only for what is worth starting it.
fn place(arguments: &Arguments) -> Result<Device, Failure> {
    #[cfg(feature = "cuda")]
    if arguments.device == "auto"
        && arguments.matrix.is_file()
        && let Some(reason) = device::too_small(&read_header(&arguments.matrix).about(&arguments.matrix)?)
    {
        return Ok(Device::Cpu(Some(reason)));
    }
    device::open(&arguments.device)
}

fn run_on<T: Scalar<Real = f64>>(
    device: Device,
    arguments: &Arguments,
    sinks: &Sinks,
) -> Result<Ending, Failure> {
    match device {
        Device::Cpu(reason) => run::run::<T, _>(&Host, reason.as_deref(), arguments, sinks),
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => run::run::<T, _>(&cuda, None, arguments, sinks),
    }
}
