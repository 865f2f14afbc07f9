//! Indices out of range: kernels count them, and the next synchronisation of the thread that enqueued them tells.

use super::device::Device;
use super::driver::call;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};

impl Device {
    /// Where kernels count indices out of range, to be told by this thread's next synchronisation.
    pub(super) fn misses(&self) -> u64 {
        let place = place_of_thread();
        self.checks_indices.fetch_or(1 << place, Ordering::Relaxed);
        self.counter(place)
    }

    /// As [`Device::synchronize`], and an error where an index of this thread's lay out of range since the last time.
    pub(super) fn synchronize_and_check(&self) -> Result<()> {
        self.synchronize()?;
        let place = place_of_thread();
        if self.checks_indices.fetch_and(!(1 << place), Ordering::Relaxed) & 1 << place == 0 {
            return Ok(());
        }
        let (mut count, address) = (0_u32, self.counter(place));
        // SAFETY: four bytes of the shared buffer, read and cleared behind all work.
        unsafe {
            call!(&self.name, cuMemcpyDtoHAsync_v2((&raw mut count).cast(), address, 4, self.main_stream()))?;
            call!(&self.name, cuMemsetD8Async(address, 0, 4, self.main_stream()))?;
        }
        self.synchronize()?;
        match count {
            0 => Ok(()),
            count => Err(Error::InvalidArgument(format!(
                "{count} indices of a gather or scatter lie out of range"
            ))),
        }
    }

    /// Recorded work may check indices at every replay.
    pub(super) fn note_replay(&self) {
        self.checks_indices.fetch_or(1 << place_of_thread(), Ordering::Relaxed);
    }
}

/// One of 32 places for this thread's counts, so that threads hear of their own errors.
fn place_of_thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static PLACE: u32 = NEXT.fetch_add(1, Ordering::Relaxed) % 32);
    PLACE.with(|place| *place)
}
