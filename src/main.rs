//! The `residua` command.

fn main() -> std::process::ExitCode {
    residua::command()
}
