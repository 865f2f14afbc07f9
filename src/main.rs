//! The `residua` command.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
