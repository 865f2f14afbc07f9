//! `residua bench`: the formats compared on a matrix.
//!
//! | file | what it holds |
//! |---|---|
//! | `source` | matrices from files, and generated model problems |
//! | `place` | the device and the duration of measurements |
//! | `compare` | one matrix on one device in one type: every format, the automatic choice |
//! | `timing` | medians of batches |
//! | `line` | a measurement, and files of measurements |
//! | `words`, `claims` | the table for the terminal, and the claims of textbooks |

mod claims;
mod compare;
mod line;
mod place;
mod source;
mod timing;
mod words;

use super::choice::parse_format;
use super::device::{self, Device};
use super::failure::About;
use super::sink::{Sink, takes_stdout};
use super::{Ending, Failure, console};
use crate::backend::{Conversions, Products};
use crate::{Csr, Host};
use line::{Line, to_csv};
use num_complex::Complex;
use place::Bench;
use source::{Matrix, Source};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    residua bench A.mtx                                    every format on the CPU and, where there is one, the GPU\n  \
    residua bench A.mtx --copies 100 --device cuda         a small matrix's kind, larger than the caches\n  \
    residua bench --generate poisson3d:256x256x256 --device cuda --types f64\n  \
    residua bench --generate random:2000000,row-lengths=16 --formats csr,sell,auto --csv figures.csv")]
// The arguments of `residua bench`.
pub(crate) struct Arguments {
    /// Matrix Market files
    #[arg(required_unless_present = "generate")]
    matrices: Vec<PathBuf>,
    /// A model problem of `residua generate`: KIND, KIND:100x100x100, or with options KIND:SIZE,seed=7
    #[arg(long, value_name = "MODEL")]
    generate: Vec<Source>,
    /// How often each matrix is repeated along a diagonal, to measure a small matrix at a size where memory is the
    /// limit, not latency
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    copies: u32,
    /// Formats to compare, separated by commas: names of formats, measured (the fastest of a trial) [default: all]
    #[arg(long, value_delimiter = ',', value_parser = parse_format)]
    formats: Vec<String>,
    /// Types of values and vectors, separated by commas; mixed is values in f32, vectors and sums in f64
    #[arg(long, value_delimiter = ',', default_value = "f64,f32", value_parser = ["f64", "f32", "mixed"])]
    types: Vec<String>,
    /// Where to compute: auto (the CPU, and a GPU if there is one), cpu, cuda or cuda:N
    #[arg(long, default_value = "auto", value_parser = device::parse)]
    device: String,
    /// Seconds that each measurement lasts
    #[arg(long, default_value_t = 0.2, value_parser = parse_time)]
    time: f64,
    /// Time products one call after another; by default, the work of a device is recorded once and replayed, as in
    /// solvers
    #[arg(long)]
    unrecorded: bool,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

fn parse_time(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(time) if (0.0..=60.0).contains(&time) => Ok(time),
        _ => Err("give a number of seconds from 0 to 60".into()),
    }
}

impl Arguments {
    /// Returns whether a format, or a keyword in its place, was requested.
    fn wants(&self, name: &str) -> bool {
        self.formats.is_empty() || self.formats.iter().any(|wanted| wanted == name)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let json = arguments.json.as_deref().map(Sink::open).transpose()?;
    let csv = arguments.csv.as_deref().map(Sink::open).transpose()?;
    let silent =
        takes_stdout(arguments.matrices.iter().map(PathBuf::as_path), [json.as_ref(), csv.as_ref()])?;
    let mut places = Places::open(arguments)?;
    let mut notes = std::mem::take(&mut places.notes);
    let files = arguments.matrices.iter().map(|path| Source::File(path.clone()));
    let mut lines = Vec::new();
    for source in files.chain(arguments.generate.iter().cloned()) {
        let name = match arguments.copies {
            1 => source.name(),
            copies => format!("{} x {copies}", source.name()),
        };
        let mut tell = |new: Vec<Line>, copy: f64, notes: &[String]| {
            if !silent {
                console::say(&words::table(&new, copy, notes))?;
            }
            lines.extend(new);
            Ok::<(), Failure>(())
        };
        let matrix = source.read(arguments.copies as usize)?;
        // Printed only once a matrix has been read, so that bad input gives a single message.
        for note in notes.drain(..).filter(|_| !silent) {
            console::say(&format!("{note}\n"))?;
        }
        match matrix {
            Matrix::Complex(a) => places.each(&mut |place| place.complex(&name, &a, arguments, &mut tell)),
            Matrix::Real(a) => places.each(&mut |place| place.real(&name, &a, arguments, &mut tell)),
        }?;
    }
    if let Some(sink) = json {
        sink.write_json(&lines)?;
    }
    if let Some(sink) = csv {
        sink.write(&to_csv(&lines))?;
    }
    Ok(Ending::Done)
}

/// Receives the measurements of one matrix, device and type, with the device's copy bandwidth and notes.
type Tell<'a> = dyn FnMut(Vec<Line>, f64, &[String]) -> Result<(), Failure> + 'a;

/// The devices to measure on.
struct Places {
    host: Option<Bench<Host>>,
    #[cfg(feature = "cuda")]
    cuda: Option<Bench<crate::Cuda>>,
    notes: Vec<String>,
}

/// Runs the comparison for a matrix on any backend.
trait Place {
    fn real(&self, name: &str, a: &Csr<f64>, to: &Arguments, tell: &mut Tell<'_>) -> Result<(), Failure>;
    fn complex(
        &self,
        name: &str,
        a: &Csr<Complex<f64>>,
        to: &Arguments,
        tell: &mut Tell<'_>,
    ) -> Result<(), Failure>;
}

impl Places {
    fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let device = device::open(&arguments.device)?;
        let time = (arguments.time, !arguments.unrecorded);
        let notes = match &device {
            Device::Cpu(Some(reason)) => vec![format!("only on the CPU: {reason}")],
            _ => Vec::new(),
        };
        let wants_host = arguments.device == "auto" || matches!(device, Device::Cpu(_));
        let host = wants_host.then(|| Bench::new(Host, time)).transpose()?;
        #[cfg(feature = "cuda")]
        let cuda = match device {
            Device::Cuda(cuda) => Some(Bench::new(cuda, time)?),
            Device::Cpu(_) => None,
        };
        Ok(Self {
            host,
            #[cfg(feature = "cuda")]
            cuda,
            notes,
        })
    }

    fn each(&mut self, body: &mut dyn FnMut(&dyn Place) -> Result<(), Failure>) -> Result<(), Failure> {
        if let Some(host) = &self.host {
            body(host)?;
        }
        #[cfg(feature = "cuda")]
        if let Some(cuda) = &self.cuda {
            body(cuda)?;
        }
        Ok(())
    }
}

impl<B: Products + Conversions> Place for Bench<B> {
    fn real(&self, name: &str, a: &Csr<f64>, to: &Arguments, tell: &mut Tell<'_>) -> Result<(), Failure> {
        for kind in &to.types {
            let path = std::path::Path::new(name);
            let (lines, notes) = match kind.as_str() {
                "f64" => self.compare::<f64, f64>(name, kind, a, to),
                "f32" => self.compare::<f32, f32>(name, kind, &a.map(|value| value as f32), to),
                _ => self.compare::<f64, f32>(name, kind, &a.map(|value| value as f32), to),
            }
            .about(path)?;
            tell(lines, self.copy(), &notes)?;
        }
        Ok(())
    }

    fn complex(
        &self,
        name: &str,
        a: &Csr<Complex<f64>>,
        to: &Arguments,
        tell: &mut Tell<'_>,
    ) -> Result<(), Failure> {
        let compared = self.compare::<Complex<f64>, Complex<f64>>(name, "c64", a, to);
        let (lines, notes) = compared.about(std::path::Path::new(name))?;
        tell(lines, self.copy(), &notes)
    }
}
