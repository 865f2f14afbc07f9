//! Chooses the storage format of a matrix: a model proposes formats, a short measurement decides, and a file stores the
//! result.
//!
//! ```text
//! sizes -> can a trial pay at all?     -> no: csr, as it is
//!             | yes
//! sample of rows -> remembered?        -> yes: the cheapest by the remembered times
//!             | no
//! row lengths, clustering of columns, variety of values -> model -> up to three formats beside csr
//!             -> do the expected savings pay for a trial? -> no: csr, as it is
//!                        | yes
//! convert, a few products each, on the backend at hand, as long as the next may be the fastest -> the fastest,
//!                                                                                                  remembered
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `model` | forecast of the time of a product in each format |
//! | `sample` | row lengths, clustering of columns, variety of values and a fingerprint, from a sample of rows |
//! | `trial` | the measurement |
//! | `memory` | results of earlier trials, on disk |
//! | `report` | the choice and its cost |
//!
//! A trial is made only if it pays. It costs about `c` CSR products for each conversion (see the backend's
//! [`ProductModel`](crate::backend::ProductModel)) and a few products for measuring; the model estimates the fraction
//! of a product that the best candidate saves. The expected number of products, times that fraction, must exceed twice
//! the cost; so a small system or a short solve keeps CSR and only pays for a comparison of sizes.

mod memory;
mod model;
mod report;
mod sample;
mod trial;

pub use model::{Advice, Traits, advise};
pub use report::{Basis, ChoiceReport, Trial};
pub use sample::Variety;

use super::lengths::{lengths_of, longest_of};
use super::sparse::SparseMatrix;
use super::{Csr, build};
use crate::backend::{Conversions, Products};
use crate::error::Result;
use crate::scalar::{Promote, Scalar};
use crate::settings::settings;
use memory::Entry;
use model::{COMPRESSED, Forecast};
use std::time::Instant;

/// Options of a choice.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChoiceOptions {
    products: usize,
    budget: usize,
    compression: bool,
    cache: bool,
    measured: bool,
}

impl Default for ChoiceOptions {
    fn default() -> Self {
        Self { products: 1000, budget: 16, compression: true, cache: true, measured: true }
    }
}

settings! { ChoiceOptions;
    /// The number of products that the matrix will be used for. Default 1000.
    pub fn products(products: usize) => products = products;

    /// The maximum number of products spent on measuring, over all formats. Each format gets at least six (up to some
    /// hundreds if starting a product takes longer than the product), but only three if it is three times slower than
    /// CSR. Default 16.
    pub fn budget(products: usize) => budget = products;

    /// Whether the compressed format may be chosen. It is lossless. Default true.
    pub fn compression(allowed: bool) => compression = allowed;

    /// Whether a trial decides. If not, the model alone does, and the choice is the same in every run. Default true.
    pub fn measured(measured: bool) => measured = measured;
}

impl ChoiceOptions {
    /// Names, for the report, the work before another format than CSR can be used.
    fn cost(&self) -> &'static str {
        if self.measured { "a trial" } else { "a conversion" }
    }

    /// Whether results of earlier trials are read from and written to the user's cache folder. Default true.
    #[must_use]
    pub fn cache(mut self, used: bool) -> Self {
        self.cache = used;
        self
    }
}

/// A matrix in the format that was chosen for it.
#[derive(Debug)]
pub struct Choice<T: Scalar, B: Products + Conversions, V: Scalar = T> {
    matrix: Box<dyn SparseMatrix<T, B, V>>,
    report: ChoiceReport,
}

impl<T: Scalar, B: Products + Conversions, V: Scalar> Choice<T, B, V> {
    /// The matrix.
    pub fn matrix(&self) -> &dyn SparseMatrix<T, B, V> {
        &*self.matrix
    }

    /// The report of the choice.
    pub fn report(&self) -> &ChoiceReport {
        &self.report
    }

    /// The matrix and the report.
    pub fn into_parts(self) -> (Box<dyn SparseMatrix<T, B, V>>, ChoiceReport) {
        (self.matrix, self.report)
    }
}

/// Stores a matrix in the format whose products are fastest on this backend, if the expected number of products pays
/// for finding out. If CSR is kept, it is moved and not copied. During a trial up to three forms of the matrix are in
/// memory; a format for which there is not enough memory counts as refused.
///
/// If two formats are equally fast, the choice may differ between runs, and so may the last bits of products;
/// [`convert`](super::convert) with a name does not measure.
///
/// ```
/// use residua::matrix::{ChoiceOptions, choose};
/// use residua::{Host, generate};
/// let a = generate::poisson2d(30, 30)?;
/// let choice = choose::<f64, f64, _>(&Host, a, &ChoiceOptions::default().products(50).cache(false))?;
/// println!("{}", choice.report());
/// let mut y = vec![0.0; 900];
/// choice.matrix().product(&Host, 1.0, &[1.0; 900], 0.0, &mut y)?;
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If memory runs out for the vectors of a trial, or if the device fails. It is no error if the backend has no kernel
/// for a format, or a format refuses the matrix.
pub fn choose<T, V, B>(backend: &B, a: Csr<V, B>, options: &ChoiceOptions) -> Result<Choice<T, B, V>>
where
    T: Scalar,
    V: Scalar + Promote<T>,
    B: Products + Conversions,
{
    let (start, before) = (Instant::now(), backend.first_use_seconds());
    let mut chosen = decide(backend, a, options, &mut trial::wall_clock(backend))?;
    chosen.report.seconds = start.elapsed().as_secs_f64();
    chosen.report.first_use_seconds = backend.first_use_seconds() - before;
    Ok(chosen)
}

fn decide<T, V, B>(
    backend: &B,
    a: Csr<V, B>,
    options: &ChoiceOptions,
    clock: &mut trial::Clock<'_>,
) -> Result<Choice<T, B, V>>
where
    T: Scalar,
    V: Scalar + Promote<T>,
    B: Products + Conversions,
{
    let model = backend.model();
    let keep = |a: Csr<V, B>, reason: String| {
        let report = ChoiceReport::new(Csr::<V, B>::NAME, Basis::Model, reason, Vec::new());
        Ok(Choice { matrix: Box::new(a), report })
    };
    if model.shares.len() < 2 {
        return keep(a, format!("csr is the only format that {} supports", backend.description()));
    }
    // Twice the cost of a trial of `n` formats in addition to CSR, and of the sample before it, in CSR products. At
    // best the whole product is saved: if there are fewer products than a trial costs, not even a sample pays.
    let (look, starting) = model.sample_and_launch_cost((a.nonzeros() + a.rows()) * (4 + size_of::<V>()));
    let each = |n: usize| trial::each(n, options.budget, starting);
    let trial = |n: usize| if options.measured { ((n + 1) * each(n)) as f64 } else { 0.0 };
    let affordable = |n: usize| 2.0 * (look + n as f64 * model.conversion + trial(n));
    let least = affordable(1);
    if (options.products as f64) < least {
        let how = if options.measured { "measuring other formats" } else { "converting to another format" };
        return keep(a, format!("{how} would cost more than it could save"));
    }
    let sample::Sample { variety, lengths, fingerprint: mut key } = sample::sample(backend, &a)?;
    for part in [backend.description().as_str(), V::NAME, T::NAME, env!("CARGO_PKG_VERSION")] {
        key.add(part.as_bytes());
    }
    key.add(&[u8::from(options.compression)]);
    let entry = Entry::new(key.0, options.cache && options.measured);
    if let Some(trials) = entry.load() {
        return recall(backend, a, trials, options);
    }
    let mut traits = Traits::new::<V, B>((a.rows(), a.columns(), a.nonzeros()), &lengths, Some(variety));
    if !model.waits.is_empty() {
        // A sample may miss one very long row, which would delay all others.
        match lengths_of(backend, &a).and_then(|lengths| longest_of(backend, &lengths)) {
            Ok(longest) => traits = traits.longest(longest as usize),
            Err(error) if trial::is_refusal(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let forecasts = model::forecasts(&model, &traits);
    let csr = forecasts.iter().find(|f| f.format == Csr::<V, B>::NAME).copied();
    let candidates = model::candidates(&forecasts, options.compression);
    let (Some(best), Some(csr)) = (candidates.first(), csr) else {
        return keep(a, "no other format suits this matrix on this device".into());
    };
    let saved = 1.0 - best.time / csr.time;
    let promised = options.products as f64 * saved;
    let count = (1..=candidates.len()).rev().find(|&n| promised > affordable(n));
    let Some(count) = count else { return keep(a, too_little(best, saved, &csr, options)) };
    if !options.measured {
        return by_model(backend, a, best, &csr);
    }
    let proposals: Vec<_> = candidates[..count].iter().map(|f| (f.format, f.time / csr.time)).collect();
    let (matrix, trials) = trial::run(backend, a, &proposals, each(count), clock)?;
    entry.store(&trials);
    let tried: Vec<&str> = trials[1..].iter().map(|trial| trial.format).collect();
    let reason = format!("the model proposed {}", tried.join(" and "));
    let report = ChoiceReport::new(matrix.format(), Basis::Measured, reason, trials);
    Ok(Choice { matrix, report })
}

/// The fraction of a product that the model must expect to save if nothing is measured. The model is fitted to one
/// machine; on another, diagonals that were expected to save 13 % took 14 to 20 % more (7 points 96^3, two cores of a
/// Xeon).
const PROMISED: f64 = 0.25;

/// Chooses the fastest format by the model, if it is faster by a wide margin.
fn by_model<T, V, B>(backend: &B, a: Csr<V, B>, best: &Forecast, csr: &Forecast) -> Result<Choice<T, B, V>>
where
    T: Scalar,
    V: Scalar + Promote<T>,
    B: Products + Conversions,
{
    let saved = 1.0 - best.time / csr.time;
    if saved < PROMISED {
        let reason = format!("{} would save only about {:.0} % of a product", best.format, 100.0 * saved);
        let report = ChoiceReport::new(csr.format, Basis::Model, reason, Vec::new());
        return Ok(Choice { matrix: Box::new(a), report });
    }
    let (matrix, reason) = match build(backend, best.format, &a) {
        Ok(matrix) => (Some(matrix), format!("it saves about {:.0} % of a product in csr", 100.0 * saved)),
        Err(error) if trial::is_refusal(&error) => {
            (None, format!("{} is not possible for this matrix", best.format))
        }
        Err(error) => return Err(error),
    };
    backend.synchronize()?;
    let matrix = matrix.unwrap_or_else(|| Box::new(a));
    let report = ChoiceReport::new(matrix.format(), Basis::Model, reason, Vec::new());
    Ok(Choice { matrix, report })
}

fn too_little(best: &Forecast, saved: f64, csr: &Forecast, options: &ChoiceOptions) -> String {
    let products = options.products;
    if saved <= 0.0 {
        return format!("no other format is expected to be faster ({} comes next)", best.format);
    }
    format!(
        "{} would save {:.0} % of a product ({:.1} MB instead of {:.1}), which does not pay for {} in {products} products",
        best.format,
        100.0 * saved,
        best.bytes / 1e6,
        csr.bytes / 1e6,
        options.cost()
    )
}

/// Chooses the cheapest format for the expected products, from the stored times.
fn recall<T, V, B>(
    backend: &B,
    a: Csr<V, B>,
    trials: Vec<Trial>,
    options: &ChoiceOptions,
) -> Result<Choice<T, B, V>>
where
    T: Scalar,
    V: Scalar + Promote<T>,
    B: Products + Conversions,
{
    let csr = trials.iter().find_map(|trial| trial.product_seconds).unwrap_or(0.0);
    let cost = |trial: &Trial| {
        let product = trial.product_seconds.unwrap_or(f64::INFINITY);
        // The first conversion may have included compiling its kernels, which are in the cache now.
        let convert = trial.convert_seconds.min(backend.model().conversion * csr);
        convert + options.products as f64 * product
    };
    let allowed = trials.iter().filter(|trial| options.compression || trial.format != COMPRESSED);
    let best = allowed.min_by(|a, b| cost(a).total_cmp(&cost(b))).map_or(Csr::<V, B>::NAME, |t| t.format);
    let converted = match best {
        Csr::<f64>::NAME => None,
        name => match build(backend, name, &a) {
            Ok(matrix) => Some(matrix),
            Err(error) if trial::is_refusal(&error) => None,
            Err(error) => return Err(error),
        },
    };
    let matrix: Box<dyn SparseMatrix<T, B, V>> = match converted {
        Some(matrix) => matrix,
        None => Box::new(a),
    };
    backend.synchronize()?;
    let reason = "an earlier trial of this pattern is remembered".into();
    let report = ChoiceReport::new(matrix.format(), Basis::Remembered, reason, trials);
    Ok(Choice { matrix, report })
}

#[cfg(test)]
mod tests;
