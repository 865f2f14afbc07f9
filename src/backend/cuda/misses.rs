//! Indices out of range: kernels count them, and the next synchronisation of the thread that enqueued the kernels
//! reports an error.

use super::device::Device;
use super::driver::call;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};

impl Device {
    /// Returns the address of the counter of indices out of range for this thread's next synchronisation.
    pub(super) fn misses(&self) -> u64 {
        let place = place_of_thread();
        self.checks_indices.fetch_or(1 << place, Ordering::Relaxed);
        self.workspaces.counter(place)
    }

    /// As [`Stream::synchronize`](super::stream::Stream::synchronize), with an error if an index of this thread was out
    /// of range since the last time. The count is copied after all work, so that this waits only once, and is cleared
    /// only if it is not zero.
    pub(super) fn synchronize_and_check(&self) -> Result<()> {
        let place = place_of_thread();
        if self.checks_indices.fetch_and(!(1 << place), Ordering::Relaxed) & 1 << place == 0 {
            return self.synchronize();
        }
        self.bind()?;
        let (mut count, address) = (0_u32, self.workspaces.counter(place));
        // SAFETY: copies four bytes of the shared buffer after all earlier work; `count` outlives the wait below.
        unsafe {
            call!(&self.name, cuMemcpyDtoHAsync_v2((&raw mut count).cast(), address, 4, self.main_stream()))
        }?;
        self.synchronize()?;
        if count == 0 {
            return Ok(());
        }
        // SAFETY: clears the same four bytes before all later work.
        unsafe { call!(&self.name, cuMemsetD8Async(address, 0, 4, self.main_stream())) }?;
        Err(Error::InvalidArgument(format!("{count} indices of a gather or scatter lie out of range")))
    }

    /// Records that this thread has replayed recorded work, which may have checked indices.
    pub(super) fn note_replay(&self) {
        self.checks_indices.fetch_or(1 << place_of_thread(), Ordering::Relaxed);
    }
}

/// Returns one of 32 counters for this thread, so that threads get their own errors.
fn place_of_thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static PLACE: u32 = NEXT.fetch_add(1, Ordering::Relaxed) % 32);
    PLACE.with(|place| *place)
}
