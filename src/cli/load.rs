//! Reads a file into a matrix in CSR, with timing, and writes matrices.

use super::Failure;
use super::console;
use super::failure::About;
use super::progress::Progress;
use super::sink::Sink;
#[cfg(feature = "cuda")]
use crate::assemble::Assemble;
#[cfg(feature = "cuda")]
use crate::backend::Conversions;
use crate::files;
use crate::market::{Field, Header, Meter, ReadOptions, WriteOptions};
use crate::report::count;
use crate::{Backend, Csr, Host, Scalar};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A matrix, with the time to load it.
pub(crate) struct Loaded<T: Scalar, B: Backend = Host> {
    pub(crate) a: Csr<T, B>,
    pub(crate) header: Header,
    /// Seconds of reading the file.
    pub(crate) read: f64,
    /// Seconds of sorting entries into CSR.
    pub(crate) assemble: f64,
}

/// A note on how the entries were interpreted, if other programs may do so differently.
pub(crate) fn twice(header: &Header) -> Option<String> {
    (header.repeated() > 0).then(|| {
        format!(
            "given in both triangles of a {} matrix, with values that agree: {} entries, each taken once (other \
             programs may add them up)",
            header.symmetry().name(),
            count(header.repeated())
        )
    })
}

/// [`load`], with the note of [`twice`] on standard error.
pub(crate) fn load_and_warn<T: Scalar>(path: &Path) -> Result<Loaded<T>, Failure> {
    let loaded = load(path, false)?;
    if let Some(note) = twice(&loaded.header) {
        console::tell(&format!("residua: {}: {note}\n", path.display()));
    }
    Ok(loaded)
}

/// Reads and assembles a matrix, with a progress line unless `quiet`.
pub(crate) fn load<T: Scalar>(path: &Path, quiet: bool) -> Result<Loaded<T>, Failure> {
    let start = Instant::now();
    let (progress, meter) = Progress::reading(quiet, path);
    let stored = files::read_stored::<T>(path, &options(meter)).about(path)?;
    progress.now("assembling");
    let read = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let header = stored.header().clone();
    let a = stored.into_csr().about(path)?;
    Ok(Loaded { a, header, read, assemble: start.elapsed().as_secs_f64() })
}

/// The defaults, with a meter if there is one.
pub(crate) fn options(meter: Option<Arc<Meter>>) -> ReadOptions {
    let options = ReadOptions::default();
    meter.into_iter().fold(options, ReadOptions::meter)
}

/// [`load`] into the memory of a backend: what `reading`, started at `start`, has read so far is copied and assembled
/// there.
#[cfg(feature = "cuda")]
pub(crate) fn load_on<T: Scalar, B: Assemble + Conversions>(
    backend: &B,
    path: &Path,
    (reading, start): (files::Reading<T>, Instant),
) -> Result<Loaded<T, B>, Failure> {
    let resident = reading.into_resident(backend).about(path)?;
    backend.synchronize()?;
    let read = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let header = resident.header().clone();
    let a = resident.into_csr(backend).about(path)?;
    backend.synchronize()?;
    Ok(Loaded { a, header, read, assemble: start.elapsed().as_secs_f64() })
}

/// Whether the file has complex numbers. A pipe can be read only once, so it counts as real; reading it then reports
/// complex numbers as an error.
pub(crate) fn is_complex(path: &Path) -> Result<bool, Failure> {
    if !path.is_file() {
        return Ok(false);
    }
    Ok(files::read_header(path).about(path)?.field() == Field::Complex)
}

/// Whether a right-hand side came with the matrix and has complex numbers.
pub(crate) fn came_complex(path: &Path) -> Result<bool, Failure> {
    let came = files::right_hand_side_header(path).about(path)?;
    Ok(came.is_some_and(|header| header.field() == Field::Complex))
}

/// Writes a matrix, with its symmetry detected.
pub(crate) fn save<T: Scalar>(to: &Sink, a: &Csr<T>) -> Result<(), Failure> {
    to.write_matrix(a, &WriteOptions::default())
}
