//! The device and the duration of measurements.

use crate::Result;
use crate::backend::Products;
use crate::report::copy_bandwidth;

/// A backend to measure on.
pub(super) struct Bench<B> {
    pub(super) backend: B,
    /// Copy bandwidth in GB/s, measured once for all matrices.
    copy: f64,
    /// Seconds of each measurement, and whether iterations are recorded.
    pub(super) time: (f64, bool),
}

impl<B: Products> Bench<B> {
    pub(super) fn new(backend: B, time: (f64, bool)) -> Result<Self> {
        Ok(Self { copy: copy_bandwidth(&backend, 5)?, backend, time })
    }

    /// Copy bandwidth in GB/s.
    pub(super) fn copy(&self) -> f64 {
        self.copy
    }
}
