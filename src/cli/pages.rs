//! `residua completions` and `residua man`: shell completions and manual pages, generated from the command's
//! description.

use super::{CommandLine, Ending, Failure, console};
use crate::cli::failure::About;
use crate::output;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// The name of the command.
const NAME: &str = "residua";

#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct Man {
    /// The folder to write the pages to: residua.1, and one for each subcommand
    folder: PathBuf,
}

/// Prints the completions for a shell.
pub(crate) fn completions(arguments: &Completions) -> Result<Ending, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut CommandLine::command(), NAME, &mut text);
    console::say(&String::from_utf8_lossy(&text))?;
    Ok(Ending::Done)
}

/// Writes the pages.
pub(crate) fn man(arguments: &Man) -> Result<Ending, Failure> {
    let folder = arguments.folder.as_path();
    let told = |source| crate::Error::Io { path: folder.to_path_buf(), source };
    std::fs::create_dir_all(folder).map_err(told)?;
    let mut all = CommandLine::command().disable_help_subcommand(true);
    // Subcommands get their full names and the global options.
    all.build();
    page(folder, NAME, all.clone())?;
    for subcommand in all.get_subcommands() {
        let name = format!("{NAME}-{}", subcommand.get_name());
        page(folder, &name, subcommand.clone())?;
    }
    Ok(Ending::Done)
}

fn page(folder: &Path, name: &str, command: clap::Command) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let written = output::write(&path, |file| clap_mangen::Man::new(command).title(name).render(file));
    written.about(&path)
}
