//! Where results go.

use super::Failure;
use crate::output::{self, Output};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A place for one result, found writable before the work starts, so that an hour of solving is never lost to a
/// mistyped folder.
pub(crate) struct Sink {
    path: PathBuf,
}

impl Sink {
    /// Checks that a result can be put there, without touching what is there.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let sink = Self { path: path.to_path_buf() };
        if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("npz")) {
            let what = "archives of NumPy's are read but not written: write .npy (full arrays) or .mtx";
            return Err(Failure::Usage(format!("{}: {what}", path.display())));
        }
        // Opening and closing a pipe would end it for its reader.
        if path.metadata().map_or(true, |data| data.is_file() || data.is_dir()) {
            Output::create(path)?;
        }
        Ok(sink)
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its name asks for NumPy's format.
    pub(crate) fn is_npy(&self) -> bool {
        self.path.extension().is_some_and(|end| end.eq_ignore_ascii_case("npy"))
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Puts the whole result there.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        Ok(output::write(&self.path, |file| file.write_all(text.as_bytes()))?)
    }

    /// Puts a value there as JSON.
    pub(crate) fn write_json(&self, value: &impl serde::Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Failure::about(&self.path, error))?;
        self.write(&(text + "\n"))
    }
}

/// Whether standard output is taken by a result. Two results can share neither that nor a file, and none may take the
/// place of what is in `inputs`.
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
                return usage("a result would take the place of what is read");
            } else if taken.contains(&file) {
                return usage("only one result can go to a file");
            }
            taken.push(file);
        }
    }
    Ok(stdout)
}

/// The file that a path names, however it does; none where that is a pipe or a device.
fn file(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") {
        return None;
    }
    if let Ok(there) = path.canonicalize() {
        return there.is_file().then_some(there);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}
