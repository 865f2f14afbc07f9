//! Process settings that the command makes before it begins.

use crate::parallel::most_threads;

/// Makes all settings.
pub(super) fn prepare() {
    go_on_beyond_limits_of_files();
    limit_threads();
}

/// Far more threads than processors only cost memory and time, so a number in RAYON_NUM_THREADS that is out of
/// proportion, such as a typing error, is reduced. A reasonable number is left to rayon, which reads it when it starts.
fn limit_threads() {
    let named = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<usize>().ok());
    let most = most_threads();
    if named.is_some_and(|named| named > most) {
        // Fails only if threads have already been started.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(most).build_global();
    }
}

/// If a file exceeds the user's limit (`ulimit -f`), the system ends the process unless the signal is ignored: then the
/// write fails, an error is reported, and no partial file is left.
#[cfg(unix)]
fn go_on_beyond_limits_of_files() {
    use std::ffi::c_int;
    // The same number on Linux (except MIPS, where it ends a stopped process), macOS and the BSDs.
    const SIGXFSZ: c_int = 25;
    const IGNORED: usize = 1;
    unsafe extern "C" {
        fn signal(number: c_int, handler: usize) -> usize;
    }
    // SAFETY: the handler is the system's own one that ignores signals; no other thread has started.
    unsafe { signal(SIGXFSZ, IGNORED) };
}

#[cfg(not(unix))]
fn go_on_beyond_limits_of_files() {}

/// Returns whether standard output was closed when the process began. Rust opens a null device in its place before
/// `main`, so this is checked earlier.
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

    /// The loader calls the functions in this section before Rust's runtime starts.
    /// SAFETY: the section is an array of functions of this type.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = {
        extern "C" fn look() {
            const STDOUT: c_int = 1;
            const F_GETFD: c_int = 1;
            unsafe extern "C" {
                fn fcntl(file: c_int, command: c_int, ...) -> c_int;
            }
            // SAFETY: this command only reads the flags of a descriptor, open or not.
            STDOUT_CLOSED.store(unsafe { fcntl(STDOUT, F_GETFD) } == -1, Ordering::Relaxed);
        }
        look
    };
}
