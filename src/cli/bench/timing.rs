//! Medians of repeated work.

use crate::backend::Replay;
use crate::{Backend, Result};
use std::time::Instant;

/// The approximate duration of a batch, which makes the wait for its end negligible.
const BATCH: f64 = 4e-3;

/// The median, and half the distance between the quartiles divided by the median.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    pub(super) spread: f64,
}

impl Measured {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        Self { seconds: at(0.5), spread: (at(0.75) - at(0.25)) / 2.0 / at(0.5) }
    }
}

/// Times a step that waits for its own end; repeated for `total` seconds, at least three times.
pub(super) fn alone<B: Backend>(
    backend: &B,
    total: f64,
    mut body: impl FnMut() -> Result<()>,
) -> Result<Measured> {
    let mut run = || -> Result<f64> {
        let start = Instant::now();
        body().and_then(|()| backend.synchronize())?;
        Ok(start.elapsed().as_secs_f64())
    };
    run()?;
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 3 || (start.elapsed().as_secs_f64() < total && times.len() < 100_000) {
        times.push(run()?);
    }
    Ok(Measured::of(times))
}

/// Times a step as an iteration would run it: in batches, `recorded` if the backend can record it, so that only the
/// device's time counts. Repeated for `total` seconds, at least three batches.
pub(super) fn in_batches<B: Backend>(
    backend: &B,
    (total, recorded): (f64, bool),
    mut body: impl FnMut() -> Result<()> + Send,
) -> Result<Measured> {
    let once = |body: &mut (dyn FnMut() -> Result<()> + Send)| -> Result<f64> {
        let start = Instant::now();
        body().and_then(|()| backend.synchronize())?;
        Ok(start.elapsed().as_secs_f64())
    };
    once(&mut body)?;
    let guess = once(&mut body)?.min(once(&mut body)?).max(1e-9);
    let fewest = if B::QUEUE_DEPTH > 1 { 8.0 } else { 1.0 };
    let batch = (BATCH / guess).clamp(fewest, 200.0) as usize;
    let times = {
        let mut step = if recorded {
            backend.record(|| (0..batch).try_for_each(|_| body()))
        } else {
            Err(crate::Error::Unsupported("not asked for".into()))
        };
        match &mut step {
            Ok(step) => Some(batches(total, batch, || {
                step.replay()?;
                backend.synchronize()
            })?),
            // A step that allocates memory, for example, cannot be recorded.
            Err(_) => None,
        }
    };
    let times = match times {
        Some(times) => times,
        None => batches(total, batch, || {
            (0..batch).try_for_each(|_| body())?;
            backend.synchronize()
        })?,
    };
    Ok(Measured::of(times))
}

/// Seconds of one step, batch by batch, after one batch to warm up.
fn batches(total: f64, batch: usize, mut run: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    run()?;
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 3 || (start.elapsed().as_secs_f64() < total && times.len() < 100_000) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() / batch as f64);
    }
    Ok(times)
}
