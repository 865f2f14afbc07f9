//! The command as a user types it, also on a device if there is one. `RESIDUA_COMMAND` names the command if it is not
//! where it was built (`scripts/bundle.sh`).

#[path = "common/archives.rs"]
#[allow(dead_code)]
mod archives;
#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/boeing.rs"]
mod boeing;
#[path = "cli/collection.rs"]
mod collection;
#[path = "cli/faults.rs"]
mod faults;
#[path = "cli/files.rs"]
mod files;
#[path = "cli/formats.rs"]
mod formats;
#[path = "cli/interrupt.rs"]
mod interrupt;
#[path = "common/collection.rs"]
mod matrices;
#[path = "cli/several.rs"]
mod several;
#[path = "cli/sharing.rs"]
mod sharing;
#[path = "cli/solving.rs"]
mod solving;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/unsolved.rs"]
mod unsolved;
