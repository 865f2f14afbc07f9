//! The allocator's policy for freed memory.

/// Keeps freed memory for later allocations instead of returning it to the system, which would have to clear each page
/// again. Setting up levels frees and allocates memory of similar size many times, and a tenth of a solve's processor
/// time went into this. A process that solves one system and ends need not return memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn keep_what_is_freed() {
    use std::ffi::c_int;
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_THRESHOLD: c_int = -3;
    const LARGEST: c_int = 1 << 30;
    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // SAFETY: these parameters accept any value. They change when memory is returned to the system, not its contents.
    // Releases of glibc that reject so large a first parameter adapt it by themselves, unless the second one is set.
    unsafe {
        if mallopt(M_MMAP_THRESHOLD, LARGEST) == 1 {
            mallopt(M_TRIM_THRESHOLD, LARGEST);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn keep_what_is_freed() {}
