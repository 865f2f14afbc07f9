//! The command line, one file for each subcommand. It contains no numerical code.
//!
//! | exit status | means |
//! |---|---|
//! | 0 | solved, or done |
//! | 2 | wrong command line |
//! | 3 | bad input, or something is missing on this machine; a line on stderr says what and where |
//! | 4 | not solved; the report and the best x are still written |

mod bench;
mod choice;
mod config;
mod console;
mod convert;
mod device;
mod devices;
mod failure;
mod generate;
mod info;
mod interrupt;
mod load;
mod measure;
mod memory;
mod pages;
mod process;
mod progress;
mod reorder;
mod sink;
mod solve;

#[cfg(all(unix, feature = "ranks"))]
use crate::ranks::Launcher;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use config::Config;
use failure::Failure;
use std::path::PathBuf;
use std::process::ExitCode;

/// Solves sparse linear systems A x = b given as files: Matrix Market, SuiteSparse, SciPy, PETSc.
#[derive(Parser)]
#[command(name = "residua", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 solved or done, 2 wrong usage, 3 bad input or environment, 4 not solved.\n\
    '-' as a file is standard input or output. RAYON_NUM_THREADS sets the number of threads."
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Solve A x = b
    Solve(Box<solve::Arguments>),
    /// Analyse a matrix before solving with it
    Info(info::Arguments),
    /// Rewrite a file of any format: sorted, duplicates summed, symmetric if the matrix is, in the format given by the
    /// name; values as real or complex numbers in double precision, those of a pattern as 1
    Convert(convert::Arguments),
    /// Renumber a matrix so that its nonzeros are near the diagonal
    Reorder(reorder::Arguments),
    /// Compare the formats' products on your matrix
    Bench(bench::Arguments),
    /// Make a model problem
    Generate(generate::Arguments),
    /// List the devices on which this machine can solve
    Devices(devices::Arguments),
    /// Print a script with which a shell completes words of this command
    Completions(pages::Completions),
    /// Write manual pages
    Man(pages::Man),
}

/// How a subcommand that did its work ended.
pub(crate) enum Ending {
    /// All is done.
    Done,
    /// The system was not solved; the report says why.
    NotSolved,
}

/// The reason why no command is run.
enum Refused {
    Line(clap::Error),
    Config(Failure),
}

/// Parses the command line, and adds the options of the file that it names.
fn parse() -> Result<CommandLine, Refused> {
    let mut description = CommandLine::command();
    let mut matches = description.try_get_matches_from_mut(std::env::args_os()).map_err(Refused::Line)?;
    let mut config = None;
    if let Some((name, given)) = matches.subcommand()
        && let Ok(Some(path)) = given.try_get_one::<PathBuf>("config")
        && let Some(known) = description.find_subcommand(name)
    {
        config = Some(Config::read(path, known, given).map_err(Refused::Config)?);
    }
    if let Some(config) = config {
        let blamed = |error| match config.blame(&error) {
            Some(failure) => Refused::Config(failure),
            None => Refused::Line(error),
        };
        matches = description.try_get_matches_from_mut(config.with(std::env::args_os())).map_err(blamed)?;
    }
    CommandLine::from_arg_matches(&matches).map_err(Refused::Line)
}

/// Runs the command that the process was started with.
pub(crate) fn main() -> ExitCode {
    memory::keep_what_is_freed();
    process::prepare();
    let line = match parse() {
        Ok(line) => line,
        // If MPI has started several processes with the same words, only the first prints the message.
        #[cfg(all(unix, feature = "ranks"))]
        Err(refused) if Launcher::is_beside_first() => {
            let status = match refused {
                Refused::Line(error) => u8::try_from(error.exit_code()).unwrap_or(2),
                Refused::Config(_) => 3,
            };
            if status != 0 {
                Launcher::await_end();
            }
            return ExitCode::from(status);
        }
        Err(Refused::Line(error)) => error.exit(),
        Err(Refused::Config(failure)) => return failure.report(),
    };
    let result = match line.command {
        Command::Solve(arguments) => solve::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Reorder(arguments) => reorder::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Devices(arguments) => devices::run(&arguments),
        Command::Completions(arguments) => pages::completions(&arguments),
        Command::Man(arguments) => pages::man(&arguments),
    };
    match result {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::NotSolved) => ExitCode::from(4),
        Err(failure) => failure.report(),
    }
}
