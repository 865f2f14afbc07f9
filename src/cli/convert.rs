//! `residua convert`: rewrite a file.

use super::failure::About;
use super::load::{Loaded, is_complex, load_and_warn};
use super::sink::Sink;
use super::{Ending, Failure, console};
use crate::Scalar;
use crate::files;
use crate::market::{Format, ReadOptions, WriteOptions};
use crate::report::count;
use num_complex::Complex;
use std::path::PathBuf;

// The arguments of `residua convert`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// File of any format that `residua solve` reads; '-' is standard input
    input: PathBuf,
    /// File to write: Matrix Market, compressed if its name ends in .gz; .npz for SciPy; .npy for NumPy (full arrays);
    /// '-' is standard output
    output: PathBuf,
    /// Write both triangles of a symmetric matrix
    #[arg(long)]
    general: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if is_complex(&arguments.input)? { convert::<Complex<f64>>(arguments) } else { convert::<f64>(arguments) }
}

fn convert<T: Scalar>(arguments: &Arguments) -> Result<Ending, Failure> {
    let path = arguments.input.as_path();
    let sink = Sink::for_numbers(&arguments.output)?;
    let options = WriteOptions::default().detect_symmetry(!arguments.general);
    let is_array = path.is_file() && files::read_header(path).about(path)?.format() == Format::Array;
    let what = if is_array {
        let dense = files::read_dense::<T>(path, &ReadOptions::default()).about(path)?;
        sink.write_array("arr_0", dense.rows(), dense.columns(), dense.values(), &options)?;
        format!("array of {} x {}", dense.rows(), dense.columns())
    } else {
        let Loaded { a, .. } = load_and_warn::<T>(path)?;
        sink.write_matrix(&a, &options)?;
        format!("{} x {}, {} nonzeros", a.rows(), a.columns(), count(a.nonzeros() as u64))
    };
    if !sink.is_stdout() {
        console::say(&format!("{}: {what}\n", arguments.output.display()))?;
    }
    Ok(Ending::Done)
}
