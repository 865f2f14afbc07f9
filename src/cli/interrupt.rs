//! Ctrl-C and a request to terminate.

use super::console;
use crate::output;
use crate::work::Work;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static WORK: OnceLock<Work> = OnceLock::new();
static WRITING: AtomicBool = AtomicBool::new(false);

/// From here on the first interrupt only sets a flag, so that a solver can end with its current x. A second one, or one
/// while results are written, ends the process at once with the status of a process ended by Ctrl-C.
pub(crate) fn listen() {
    // Fails only if a handler has been set by an earlier call.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) || WRITING.load(Ordering::SeqCst) {
            output::abandon();
            console::tell("residua: interrupted: not all results were written\n");
            std::process::exit(130);
        }
        if let Some(work) = WORK.get() {
            work.stop();
        }
    });
}

/// As [`listen`]. An interrupt also stops the returned work, which setups and factorisations check.
pub(crate) fn listen_during() -> Work {
    let work = WORK.get_or_init(Work::default).clone();
    listen();
    work
}

/// Results are being written from here on, so an interrupt ends the process at once, even if their reader has stopped
/// reading.
pub(crate) fn begin_writing() {
    WRITING.store(true, Ordering::SeqCst);
}

/// All results of a system are written, and the next one begins.
pub(crate) fn end_writing() {
    WRITING.store(false, Ordering::SeqCst);
}

/// Returns whether an interrupt was received.
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}
