//! What this process does with memory that it has freed.

/// Keeps freed memory for what is allocated next, in the place of giving it back to the system, which would clear each
/// page anew: setting up one level after the other frees and allocates as much many times over, and a tenth of a
/// solve's processor time went there. A process that solves one system and ends needs nothing back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn keep_what_is_freed() {
    use std::ffi::c_int;
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_THRESHOLD: c_int = -3;
    const LARGEST: c_int = 1 << 30;
    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // SAFETY: these parameters take any value, and change when memory goes back to the system, not what is in it. Releases
    // of glibc that refuse so large a first one raise it by themselves, unless the second is set.
    unsafe {
        if mallopt(M_MMAP_THRESHOLD, LARGEST) == 1 {
            mallopt(M_TRIM_THRESHOLD, LARGEST);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn keep_what_is_freed() {}
