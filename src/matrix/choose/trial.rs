//! The trial: measures a few products in each format on the backend.

use super::super::sparse::SparseMatrix;
use super::super::{Csr, build};
use super::report::Trial;
use crate::backend::{Backend, Conversions, Products, Replay};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};
use std::time::Instant;

/// Another format must take at most this fraction of CSR's time; a smaller gain may be noise.
const MARGIN: f64 = 0.97;

/// A format is tried if the model puts it within this factor of the fastest measured time, since the model may be wrong
/// by this much even if all its inputs are right. (From a sample, the compressed format may seem five times as fast as
/// CSR and be only a tenth faster.)
const WITHIN: f64 = 1.25;

/// The fastest of this many batches counts, since other load only adds time.
const BATCHES: usize = 4;

/// Further products of each format: one to warm up, one to decide whether the format is worth more.
const BEFORE: usize = 2;

/// Products of each format if a product takes no longer than its start. A few would measure the clock and the start of
/// a recording.
const SHORT: f64 = 500.0;

/// A format is dropped if its first two products take this many times the time of CSR's.
const HOPELESS: f64 = 3.0;

/// The step that is being timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Conversion,
    /// This number of products.
    Products(usize),
}

/// Runs a step with the named format, and returns its time in seconds.
pub(super) type Clock<'a> = dyn FnMut(Step, &str, &mut dyn FnMut() -> Result<()>) -> Result<f64> + 'a;

/// Wall-clock time, synchronised with the backend at both ends.
pub(super) fn wall_clock<B: Backend>(
    backend: &B,
) -> impl FnMut(Step, &str, &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    |_, _, body| {
        backend.synchronize()?;
        let start = Instant::now();
        body()?;
        backend.synchronize()?;
        Ok(start.elapsed().as_secs_f64())
    }
}

/// Products of each format if CSR and `n` others share a budget, and `starting` is the fraction of a product's time
/// that is its start.
pub(super) fn each(n: usize, budget: usize, starting: f64) -> usize {
    (budget / (n + 1)).max(BEFORE + BATCHES).max((SHORT * starting) as usize)
}

/// Returns whether an error only means that a format does not suit this matrix or device.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Refused { .. } | Error::Unsupported(_) | Error::OutOfMemory { .. })
}

type Stored<T, B, V> = Box<dyn SparseMatrix<T, B, V>>;

/// A format, and the model's time of its product relative to CSR's.
pub(super) type Proposal = (&'static str, f64);

/// Measures CSR and the proposed formats in this order, with `each` products of each. Returns the matrix in the fastest
/// format, and all times, CSR's first. CSR's time converts the model's times to seconds; a format that would then be
/// slower than the best so far is skipped.
pub(super) fn run<T, V, B>(
    backend: &B,
    a: Csr<V, B>,
    proposals: &[Proposal],
    each: usize,
    clock: &mut Clock<'_>,
) -> Result<(Stored<T, B, V>, Vec<Trial>)>
where
    T: Scalar,
    V: Scalar + Promote<T>,
    B: Products + Conversions,
{
    let mut x = backend.zeros::<T>(a.columns())?;
    backend.fill(T::one(), &mut x)?;
    let mut y = backend.zeros::<T>(a.rows())?;
    // Seconds of a product by itself, and of one among several; the latter is not measured if the former exceeds a
    // limit.
    let mut time =
        |matrix: &dyn SparseMatrix<T, B, V>, most: f64, clock: &mut Clock<'_>| -> Result<(f64, f64)> {
            let mut product = || matrix.product(backend, T::one(), &x, T::zero(), &mut y);
            // The first product shows whether there is a kernel, and may compile it.
            product()?;
            let mut single = clock(Step::Products(1), matrix.format(), &mut product)?;
            if single > most {
                single = single.min(clock(Step::Products(1), matrix.format(), &mut product)?);
            }
            if single > most {
                return Ok((single, single));
            }
            let count = (each.saturating_sub(BEFORE) / BATCHES).max(1);
            let mut fastest = |body: &mut dyn FnMut() -> Result<()>| -> Result<(f64, f64)> {
                let mut batch = || clock(Step::Products(count), matrix.format(), body);
                let first = batch()?;
                let best = (1..BATCHES).try_fold(first, |best, _| Ok::<_, Error>(best.min(batch()?)))?;
                Ok((single, best / count as f64))
            };
            {
                // As an iteration would run it: a device that replays recordings has no launch overhead.
                let mut recorded = backend.record(|| (0..count).try_for_each(|_| product()));
                if let Ok(step) = &mut recorded {
                    return fastest(&mut || step.replay());
                }
            }
            // A product that allocates memory cannot be recorded.
            fastest(&mut || (0..count).try_for_each(|_| product()))
        };
    let (single, csr) = time(&a, f64::INFINITY, clock)?;
    let mut trials = vec![Trial::measured(Csr::<V, B>::NAME, 0.0, csr)];
    let (mut best, mut fastest) = (None, csr * MARGIN);
    for &(name, promised) in proposals {
        if promised * csr > WITHIN * fastest {
            continue;
        }
        let mut built = None;
        let outcome = clock(Step::Conversion, name, &mut || {
            built = Some(build::<T, B, V>(backend, name, &a)?);
            Ok(())
        })
        .and_then(|convert| match built.take() {
            Some(matrix) => Ok((convert, time(&*matrix, HOPELESS * single, clock)?.1, matrix)),
            None => Err(Error::Unsupported(format!("{name} was not built"))),
        });
        match outcome {
            Ok((convert, product, matrix)) => {
                trials.push(Trial::measured(name, convert, product));
                if product < fastest {
                    (best, fastest) = (Some(matrix), product);
                }
            }
            Err(error) if is_refusal(&error) => trials.push(Trial::refused(name, 0.0, error.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok((best.unwrap_or_else(|| Box::new(a)), trials))
}
