//! The `residua` command.

fn main() {}
