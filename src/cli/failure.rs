//! Failures that end a subcommand early, each with a message of one line.

use super::console;
use crate::Error;
use std::path::Path;
use std::process::ExitCode;

/// The reason why a subcommand failed.
pub(crate) enum Failure {
    /// A wrong command line: exit status 2.
    Usage(String),
    /// Bad input, or something is missing on this machine: exit status 3.
    Input(String),
    /// One of several processes has failed: exit status 3.
    #[cfg(all(unix, feature = "ranks"))]
    OfRank(Error),
    /// A process has failed, and the process that started this one prints the message.
    #[cfg(all(unix, feature = "ranks"))]
    Told,
    /// Ctrl-C before there were results to write: exit status 130, as in a shell.
    Interrupted,
    /// The reader of our output is gone: nothing can be printed, and it is no error here.
    Unread,
}

impl Failure {
    /// A failure whose message starts with the file it is about.
    pub(crate) fn about(path: &Path, cause: impl std::fmt::Display) -> Self {
        Failure::Input(format!("{}: {cause}", path.display()))
    }

    /// Prints the message and returns the exit status.
    pub(crate) fn report(self) -> ExitCode {
        let (message, status) = match self {
            Failure::Usage(message) => (message, 2),
            Failure::Input(message) => (message, 3),
            #[cfg(all(unix, feature = "ranks"))]
            Failure::OfRank(error) => (error.to_string(), 3),
            #[cfg(all(unix, feature = "ranks"))]
            Failure::Told => return ExitCode::from(3),
            Failure::Interrupted => ("interrupted before the first iteration".into(), 130),
            Failure::Unread => return ExitCode::SUCCESS,
        };
        console::tell(&format!("residua: {}\n", line_of(&message)));
        ExitCode::from(status)
    }
}

/// Joins a message to one line.
pub(super) fn line_of(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    let line = lines.join(" ");
    // The system's error number is of no use to the user.
    line.rsplit_once(" (os error ").map_or(line.as_str(), |(told, _)| told).to_string()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Stopped => Failure::Interrupted,
            Error::Io { path, source }
                if path.as_os_str() == "-" && source.kind() == std::io::ErrorKind::BrokenPipe =>
            {
                Failure::Unread
            }
            #[cfg(all(unix, feature = "ranks"))]
            Error::Rank { .. } => Failure::OfRank(error),
            _ => Failure::Input(error.to_string()),
        }
    }
}

/// Adds the file's name to an error.
pub(crate) trait About<T> {
    /// The same result, with an error that names `path` if it does not already.
    fn about(self, path: &Path) -> Result<T, Failure>;
}

impl<T> About<T> for crate::Result<T> {
    fn about(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|error| match error {
            Error::Io { .. } | Error::Parse { .. } | Error::Content { .. } | Error::Rank { .. } => {
                error.into()
            }
            Error::Stopped => Failure::Interrupted,
            // The reader has already named the file.
            Error::Unsupported(what) if what.starts_with(&format!("{}:", path.display())) => {
                Failure::Input(what)
            }
            other => Failure::about(path, other),
        })
    }
}
