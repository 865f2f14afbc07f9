//! Where is measured, and how long.

use crate::Result;
use crate::backend::Products;
use crate::report::copy_bandwidth;

/// A backend to measure on.
pub(super) struct Bench<B> {
    pub(super) backend: B,
    /// GB/s of a copy, measured once for all matrices.
    copy: f64,
    /// Seconds that each measurement lasts, and whether iterations are recorded.
    pub(super) time: (f64, bool),
}

impl<B: Products> Bench<B> {
    pub(super) fn new(backend: B, time: (f64, bool)) -> Result<Self> {
        Ok(Self { copy: copy_bandwidth(&backend, 5)?, backend, time })
    }

    /// GB/s of a copy.
    pub(super) fn copy(&self) -> f64 {
        self.copy
    }
}
