//! Where results go.

use super::Failure;
use residua::output::{self, Output};
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

/// Whether standard output is taken by a result. Two results cannot share it.
pub(crate) fn takes_stdout<'a>(sinks: impl IntoIterator<Item = Option<&'a Sink>>) -> Result<bool, Failure> {
    match sinks.into_iter().flatten().filter(|sink| sink.is_stdout()).count() {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Failure::Usage("only one result can go to standard output ('-')".into())),
    }
}
