//! Measures the memory bandwidth of a machine, which limits every sparse product.

use crate::backend::Backend;
use crate::error::Result;
use std::time::Instant;

/// Bytes of each of the two buffers: far more than the caches hold.
const BUFFER: usize = 128 << 20;

/// Copy bandwidth of the backend's memory in GB/s (10^9 bytes, counting both reads and writes): the fastest of
/// `repeats` copies of 128 MiB after a warm-up.
///
/// # Errors
/// If there is no memory for the two buffers, or if the device fails.
pub fn copy_bandwidth<B: Backend>(backend: &B, repeats: usize) -> Result<f64> {
    let len = BUFFER / size_of::<f64>();
    let mut from = backend.zeros::<f64>(len)?;
    let mut to = backend.zeros::<f64>(len)?;
    // Pages that were never written all map to the same page of zeros.
    backend.fill(1.0, &mut from)?;
    backend.copy(&from, &mut to)?;
    backend.synchronize()?;
    // If work is queued, waiting for its end would take a significant part of one copy.
    let batch = if B::QUEUE_DEPTH > 1 { 16 } else { 1 };
    let mut best = f64::INFINITY;
    for _ in 0..repeats.max(1) {
        let start = Instant::now();
        (0..batch).try_for_each(|_| backend.copy(&from, &mut to))?;
        backend.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64() / f64::from(batch));
    }
    Ok(2.0 * BUFFER as f64 / best / 1e9)
}
