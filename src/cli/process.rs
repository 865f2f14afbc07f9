//! What the command settles with the system before it begins.

use crate::parallel::most_threads;

/// Settles all of it.
pub(super) fn prepare() {
    go_on_beyond_limits_of_files();
    limit_threads();
}

/// Threads beyond a few for each processor only take memory and time: a number of them that is out of all proportion,
/// as a typing error in RAYON_NUM_THREADS is, is cut down. A sensible one is left to rayon, which reads it when it
/// begins.
fn limit_threads() {
    let named = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<usize>().ok());
    let most = most_threads();
    if named.is_some_and(|named| named > most) {
        // Fails only where threads have begun already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(most).build_global();
    }
}

/// Where a file grows beyond what the user allows (`ulimit -f`), the system ends the process, unless that ignores the
/// signal: then the write fails, and we tell where and leave nothing half done.
#[cfg(unix)]
fn go_on_beyond_limits_of_files() {
    use std::ffi::c_int;
    // The same on Linux (but for MIPS, where this number ends a process that is stopped), macOS and the BSDs.
    const SIGXFSZ: c_int = 25;
    const IGNORED: usize = 1;
    unsafe extern "C" {
        fn signal(number: c_int, handler: usize) -> usize;
    }
    // SAFETY: the handler is the system's own, which does nothing; no other thread has begun.
    unsafe { signal(SIGXFSZ, IGNORED) };
}

#[cfg(not(unix))]
fn go_on_beyond_limits_of_files() {}

/// Returns whether standard output was closed when the process began. Rust puts an open file that takes all and keeps
/// nothing in its place before `main`, so that this is asked before that.
pub(super) fn stdout_was_closed() -> bool {
    #[cfg(target_os = "linux")]
    return at_start::STDOUT_CLOSED.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(target_os = "linux")]
mod at_start {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicBool, Ordering};

    pub(super) static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

    /// The loader calls what stands in this section before anything of Rust's begins.
    // SAFETY: an array of functions of this type is what the section is for.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = {
        extern "C" fn look() {
            const STDOUT: c_int = 1;
            const F_GETFD: c_int = 1;
            unsafe extern "C" {
                fn fcntl(file: c_int, command: c_int, ...) -> c_int;
            }
            // SAFETY: this command only asks for the flags of a descriptor, open or not.
            STDOUT_CLOSED.store(unsafe { fcntl(STDOUT, F_GETFD) } == -1, Ordering::Relaxed);
        }
        look
    };
}
