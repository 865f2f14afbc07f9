//! The measurement: a few products in each format, on the backend at hand.

use super::super::sparse::SparseMatrix;
use super::super::{Csr, build};
use super::report::Trial;
use crate::backend::{Backend, Conversions, Products, Replay};
use crate::error::{Error, Result};
use crate::scalar::{Scalar, Widen};
use std::time::Instant;

/// Another format must beat CSR by this much: less is chance.
const MARGIN: f64 = 0.97;

/// A format is tried where the model sees it within this factor of the fastest that was measured: so much is the model
/// wrong where nothing that it goes by is missing. (By a sample, what is compressed may seem five times as fast as CSR
/// and be a tenth faster.)
const WITHIN: f64 = 1.25;

/// Batches of which the fastest counts: whatever else the machine does only adds.
const BATCHES: usize = 4;

/// Products of each format beside these: one to warm up, one to see whether it is worth more.
const BEFORE: usize = 2;

/// Products of each format where starting it is all that a product's time is. Batches of a few would tell how long the
/// clock and the start of a recording take.
const SHORT: f64 = 500.0;

/// A format whose first product takes so many of CSR's, and the next as well, has lost.
const HOPELESS: f64 = 3.0;

/// What is being timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Conversion,
    /// So many of them.
    Products(usize),
}

/// Runs a step with a format, whose name it is told, and says how many seconds it took.
pub(super) type Clock<'a> = dyn FnMut(Step, &str, &mut dyn FnMut() -> Result<()>) -> Result<f64> + 'a;

/// The clock on the wall, with all work done at both ends.
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

/// Products of each format where CSR and `n` others share a budget, and starting one is this share of its time.
pub(super) fn each(n: usize, budget: usize, starting: f64) -> usize {
    (budget / (n + 1)).max(BEFORE + BATCHES).max((SHORT * starting) as usize)
}

/// Returns whether an error only means that a format is not for this matrix or device.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Refused { .. } | Error::Unsupported(_) | Error::OutOfMemory { .. })
}

type Stored<T, B, V> = Box<dyn SparseMatrix<T, B, V>>;

/// A format, and the time of its product by the model where CSR's is one.
pub(super) type Proposal = (&'static str, f64);

/// Tries CSR and the formats proposed, in this order, with so many products of each: the matrix in the one with the
/// fastest product, and all times, CSR's first. CSR's time says how long the model's are; a format that would then be
/// slower than what was found is left out.
pub(super) fn run<T, V, B>(
    backend: &B,
    a: Csr<V, B>,
    proposals: &[Proposal],
    each: usize,
    clock: &mut Clock<'_>,
) -> Result<(Stored<T, B, V>, Vec<Trial>)>
where
    T: Scalar,
    V: Scalar + Widen<T>,
    B: Products + Conversions,
{
    let mut x = backend.zeros::<T>(a.columns())?;
    backend.fill(T::one(), &mut x)?;
    let mut y = backend.zeros::<T>(a.rows())?;
    // Seconds of a product by itself, and of one among several; the latter is not measured where the former is beyond a
    // limit.
    let mut time =
        |matrix: &dyn SparseMatrix<T, B, V>, most: f64, clock: &mut Clock<'_>| -> Result<(f64, f64)> {
            let mut product = || matrix.product(backend, T::one(), &x, T::zero(), &mut y);
            // The first says whether there is a kernel, and may compile it.
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
                // As an iteration would run it: launches do not count where a device replays them.
                let mut recorded = backend.record(|| (0..count).try_for_each(|_| product()));
                if let Ok(step) = &mut recorded {
                    return fastest(&mut || step.replay());
                }
            }
            // What needs memory of its own cannot be recorded.
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
