//! The start of MPI ranks: they check that all run the same version, which of them share a machine and its processors,
//! and whether all can open one window.

use super::communicator::Wire;
use crate::error::{Error, Result};
use crate::ranks::launch::VERSION;
use crate::ranks::wait::{Waiting, processors};
use crate::ranks::window::Window;
use std::path::Path;
use std::sync::Arc;

/// If this variable is set to anything but 0 on any rank, sums and halos are sent as messages of MPI even on one
/// machine.
const NO_WINDOW: &str = "RESIDUA_NO_WINDOW";

/// Bytes of each rank's words.
const BYTES: usize = 1024;

/// The result of the start, the same on all ranks.
pub(in crate::ranks) struct Begun {
    /// Shared memory, if all ranks are on one machine.
    pub(in crate::ranks) window: Option<Window>,
    pub(in crate::ranks) waiting: Waiting,
    /// Processors for each of the ranks that share them with this one.
    pub(in crate::ranks) threads: usize,
}

/// Exchanges the facts about all ranks.
///
/// # Errors
/// [`Error::Rank`] on all ranks if one runs another version; errors of MPI.
pub(in crate::ranks) fn begin(wire: &dyn Wire) -> Result<Begun> {
    let (rank, ranks) = (wire.rank(), wire.ranks());
    // The number of ranks on this machine is not known yet.
    let waiting = Waiting::among(2, 1);
    let no_window = std::env::var_os(NO_WINDOW).is_some_and(|value| value != "0");
    let machine = machine(wire);
    let own = [VERSION, &machine, &allowed(), if no_window { "messages" } else { "window" }].join("\n");
    let all = words_of_all(wire, waiting, &own)?;
    let told: Vec<Vec<&str>> = all.iter().map(|words| words.split('\n').collect()).collect();
    if let Some(other) = told.iter().position(|words| words[0] != told[0][0]) {
        let cause = format!("runs residua {}, but rank 0 runs {}", told[other][0], told[0][0]);
        return Err(Error::Rank { rank: other, ranks, cause });
    }
    let beside = told.iter().filter(|words| words[1..3] == told[rank][1..3]).count();
    let waiting = Waiting::among(beside, processors());
    let threads = (processors() / beside).max(1);
    let wished = told.iter().all(|words| words[1] == told[0][1] && words.last() == Some(&"window"));
    let window = if wished { share(wire, waiting)? } else { None };
    Ok(Begun { window, waiting, threads })
}

/// A window that rank 0 creates and all open; none if one of them can't, as in containers that share a machine but not
/// its memory.
fn share(wire: &dyn Wire, waiting: Waiting) -> Result<Option<Window>> {
    let (rank, ranks) = (wire.rank(), wire.ranks());
    let made = if rank == 0 { Window::create(ranks).ok() } else { None };
    let name = made.as_deref().map_or_else(String::new, |path| path.display().to_string());
    let opened = words_of_all(wire, waiting, &name).and_then(|names| {
        let open = || Window::open(Path::new(&names[0]), [rank, ranks], waiting, Arc::default());
        let window = if names[0].is_empty() { None } else { open().ok() };
        let all = words_of_all(wire, waiting, if window.is_some() { "open" } else { "" })?;
        Ok(window.filter(|_| all.iter().all(|word| word == "open")))
    });
    // All ranks that can have opened it: the file is removed, so that nothing remains however they end.
    made.inspect(|path| drop(std::fs::remove_file(path)));
    opened
}

/// Gathers the words of each rank, of which the first `BYTES` bytes count.
fn words_of_all(wire: &dyn Wire, waiting: Waiting, own: &str) -> Result<Vec<String>> {
    let mut bytes = [0; BYTES];
    let length = own.len().min(BYTES);
    bytes[..length].copy_from_slice(&own.as_bytes()[..length]);
    let mut all = vec![0; BYTES * wire.ranks()];
    wire.all_gather(waiting, &bytes, &mut all)?;
    let words = all.chunks_exact(BYTES).map(|words| {
        let length = words.iter().position(|&byte| byte == 0).unwrap_or(BYTES);
        String::from_utf8_lossy(&words[..length]).into_owned()
    });
    Ok(words.collect())
}

/// The identity of this machine: its name, and the random number that its system chose at boot.
fn machine(wire: &dyn Wire) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{} {}", wire.machine().trim(), boot.trim()).replace('\n', " ")
}

/// The processors that this process may use, as the system lists them: launchers give each rank its own, or all of them
/// to all.
fn allowed() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().chars().take(BYTES / 4).collect()
}
