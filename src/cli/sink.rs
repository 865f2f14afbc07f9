//! The destinations of results.

use super::Failure;
use super::process::stdout_was_closed;
use crate::files;
use crate::market::{self, WriteOptions};
use crate::output::{self, Output};
use crate::{Csr, Scalar};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A format for results.
pub(crate) enum Kind {
    Market,
    Npy,
    Npz,
}

/// The destination of one result. It is checked before the work starts, so that no long solve is lost because of a
/// wrong path.
pub(crate) struct Sink {
    path: PathBuf,
}

impl Sink {
    /// Checks that the file can be written, without changing it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let sink = Self { path: path.to_path_buf() };
        if sink.is_stdout() && stdout_was_closed() {
            return Err(Failure::about(path, "standard output is closed, so a result would be lost"));
        }
        if let Some(folder) =
            path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        {
            return Err(Failure::about(
                path,
                format!("it cannot be written: there is no folder {}", folder.display()),
            ));
        }
        // Opening and closing a pipe would end it for its reader.
        if path.metadata().map_or(true, |data| data.is_file() || data.is_dir()) {
            Output::create(path)?;
        }
        Ok(sink)
    }

    /// [`Sink::open`] for a matrix or vectors: the ending of the name must be that of a format that is written, or
    /// there is none.
    pub(crate) fn for_numbers(path: &Path) -> Result<Self, Failure> {
        let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
        match end.as_deref() {
            None | Some("mtx" | "mm" | "gz" | "npy" | "npz") => Self::open(path),
            Some(end) => Err(Failure::about(
                path,
                format!("files with the ending .{end} cannot be written: choose .mtx, .mtx.gz, .npz or .npy"),
            )),
        }
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The format, by the extension of the name.
    pub(crate) fn kind(&self) -> Kind {
        let end = self.path.extension().map(|end| end.to_ascii_lowercase()).unwrap_or_default();
        match end.to_str() {
            Some("npy") => Kind::Npy,
            Some("npz") => Kind::Npz,
            _ => Kind::Market,
        }
    }

    /// Writes a full array column by column; `name` is its name in an archive.
    pub(crate) fn write_array<T: Scalar>(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
        values: &[T],
        options: &WriteOptions,
    ) -> Result<(), Failure> {
        let path = self.path();
        Ok(match self.kind() {
            Kind::Npy => files::write_npy(path, rows, columns, values),
            Kind::Npz => files::write_npz_array(path, name, rows, columns, values),
            Kind::Market => market::write_dense(path, rows, columns, values, options),
        }?)
    }

    /// Writes a sparse matrix.
    pub(crate) fn write_matrix<T: Scalar>(&self, a: &Csr<T>, options: &WriteOptions) -> Result<(), Failure> {
        match self.kind() {
            Kind::Npy => {
                let cause = "an .npy file holds full arrays, and this matrix is sparse: write .npz or .mtx";
                Err(Failure::about(&self.path, cause))
            }
            Kind::Npz => Ok(files::write_npz(&self.path, a)?),
            Kind::Market => Ok(market::write_csr(&self.path, a, options)?),
        }
    }

    /// Returns whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Writes a text.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        Ok(output::write(&self.path, |file| file.write_all(text.as_bytes()))?)
    }

    /// Writes a value as JSON.
    pub(crate) fn write_json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Failure::about(&self.path, error))?;
        self.write(&(text + "\n"))
    }
}

/// Whether a result is written to standard output. Two results must not share a destination, and none may overwrite a
/// file in `inputs`.
pub(crate) fn takes_stdout<'a>(
    inputs: impl IntoIterator<Item = &'a Path>,
    sinks: impl IntoIterator<Item = Option<&'a Sink>>,
) -> Result<bool, Failure> {
    let inputs: Vec<PathBuf> = inputs.into_iter().filter_map(file).collect();
    let (mut stdout, mut taken) = (false, Vec::new());
    for sink in sinks.into_iter().flatten() {
        let usage = |what: &str| Err(Failure::Usage(format!("{}: {what}", sink.path.display())));
        if sink.is_stdout() {
            if std::mem::replace(&mut stdout, true) {
                return Err(Failure::Usage("only one result can go to standard output ('-')".into()));
            }
        } else if let Some(file) = file(&sink.path) {
            if inputs.contains(&file) {
                return usage("a result would overwrite an input file");
            } else if taken.contains(&file) {
                return usage("only one result can go to a file");
            }
            taken.push(file);
        }
    }
    Ok(stdout)
}

/// The canonical path of a file; none for a pipe or a device.
fn file(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") {
        return None;
    }
    if let Ok(there) = path.canonicalize() {
        return there.is_file().then_some(there);
    }
    let path = &output::behind_links(path).ok()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}
