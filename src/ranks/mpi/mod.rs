//! Ranks that are processes of MPI. The library is loaded when a program asks for it, and nothing of MPI is needed to
//! build residua.
//!
//! | file | what it holds |
//! |---|---|
//! | `launcher` | the launcher according to the environment, and where it is installed |
//! | `find` | finds and loads the library |
//! | `abi` | the three binary interfaces, with their constants |
//! | `table` | the functions that are called |
//! | `communicator` | the operations of ranks through MPI |
//! | `begin` | the checks at the start: versions, machines, whether they can share a window |

mod abi;
mod begin;
mod communicator;
mod find;
mod launcher;
mod table;

pub(super) use begin::{Begun, begin};
pub(super) use communicator::Wire;
pub(crate) use launcher::Launcher;

use crate::error::{Error, Result};
use find::Mpi;
use std::ffi::c_int;

/// The processes that a launcher has started.
///
/// # Errors
/// [`Error::Mpi`] if no library is found, if it fails, or if its number of ranks differs from the launcher's.
pub(super) fn of_launcher(launcher: &Launcher) -> Result<Box<dyn Wire>> {
    let mpi = Mpi::get(Some(launcher))?;
    let wire = communicator::world(mpi)?;
    if wire.ranks() != launcher.ranks {
        let (variable, started) = (launcher.variable, launcher.ranks);
        return Err(Error::Mpi(format!(
            "{variable} says that {started} ranks were started, {} ({}) knows of {}: the launcher is another MPI's; \
             RESIDUA_MPI=FILE names its library",
            wire.library(),
            mpi.file.display(),
            wire.ranks()
        )));
    }
    Ok(wire)
}

/// All processes of MPI, whether a launcher is known or not.
///
/// # Errors
/// As [`of_launcher`].
pub(super) fn world() -> Result<Box<dyn Wire>> {
    match Launcher::of_this_process() {
        Some(launcher) => of_launcher(&launcher),
        None => communicator::world(Mpi::get(None)?),
    }
}

/// The communicator of the host program with this Fortran handle.
///
/// # Errors
/// [`Error::Mpi`] if MPI has not been initialised.
pub(super) fn of_number(number: c_int) -> Result<Box<dyn Wire>> {
    communicator::of_number(Mpi::get(Launcher::of_this_process().as_ref())?, number)
}
