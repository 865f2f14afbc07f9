//! Measures times on the device, with its own clock.

use super::Cuda;
use super::driver::call;
use crate::error::Result;
use cudarc::driver::sys::CUevent;
use std::time::Duration;

/// A position in the stream whose time can be read once it is reached.
struct Event(CUevent);

impl Event {
    fn new(cuda: Cuda) -> Result<Self> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the call writes one handle, and callers have made the context current.
        unsafe { call!(&cuda.0.name, cuEventCreate(&raw mut event, 0)) }?;
        Ok(Event(event))
    }

    fn record(&self, cuda: Cuda) -> Result<()> {
        // SAFETY: the event and the device's stream are alive.
        unsafe { call!(&cuda.0.name, cuEventRecord(self.0, cuda.0.main_stream())) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event was created by `new` and is destroyed once. A destructor can't report an error.
        let _ = unsafe { cudarc::driver::sys::cuEventDestroy_v2(self.0) };
    }
}

impl Cuda {
    /// Returns the time on the device from the first to the last operation that `work` enqueues, measured by its own
    /// clock. Waits for them. Earlier work does not count, and hides the latency of the first launch.
    ///
    /// # Errors
    /// Errors of `work`, and if the device fails.
    pub fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
        self.0.bind()?;
        let (start, end) = (Event::new(*self)?, Event::new(*self)?);
        start.record(*self)?;
        work()?;
        end.record(*self)?;
        self.0.synchronize()?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events were recorded and have been reached; the call writes one number.
        unsafe { call!(&self.0.name, cuEventElapsedTime(&raw mut milliseconds, start.0, end.0)) }?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }
}
