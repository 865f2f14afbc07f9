//! What ends a subcommand early, as one line for a person.

use super::console;
use crate::Error;
use std::path::Path;
use std::process::ExitCode;

/// Why a subcommand could not do its work.
pub(crate) enum Failure {
    /// The command line makes no sense: exit status 2.
    Usage(String),
    /// Bad input, or something that the machine lacks: exit status 3.
    Input(String),
    /// One of several processes has failed: exit status 3.
    #[cfg(all(unix, feature = "ranks"))]
    OfRank(Error),
    /// As before, and whoever started this process tells the user.
    #[cfg(all(unix, feature = "ranks"))]
    Told,
    /// Ctrl-C came before there was anything to write: exit status 130, as a shell gives it.
    Interrupted,
    /// The reader of our output is gone: nobody is left to tell, and nothing went wrong here.
    Unread,
}

impl Failure {
    /// A failure whose message starts with the file it is about.
    pub(crate) fn about(path: &Path, cause: impl std::fmt::Display) -> Self {
        Failure::Input(format!("{}: {cause}", path.display()))
    }

    /// Prints the message and gives the exit status.
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

/// A message as one line for a person.
pub(super) fn line_of(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    let line = lines.join(" ");
    // The system's number for an error says nothing to a person.
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

/// Names the file that an operation was about.
pub(crate) trait About<T> {
    /// The same result, its error naming `path` if it does not already.
    fn about(self, path: &Path) -> Result<T, Failure>;
}

impl<T> About<T> for crate::Result<T> {
    fn about(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|error| match error {
            Error::Io { .. } | Error::Parse { .. } | Error::Content { .. } | Error::Rank { .. } => {
                error.into()
            }
            Error::Stopped => Failure::Interrupted,
            // The reader names the file itself.
            Error::Unsupported(what) if what.starts_with(&format!("{}:", path.display())) => {
                Failure::Input(what)
            }
            other => Failure::about(path, other),
        })
    }
}
