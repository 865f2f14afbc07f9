//! The command as a user types it.

#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/collection.rs"]
mod collection;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/interrupt.rs"]
mod interrupt;
#[path = "cli/solving.rs"]
mod solving;
#[path = "cli/support.rs"]
mod support;
