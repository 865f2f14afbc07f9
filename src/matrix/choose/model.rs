//! The model: the time of a product in each format, from the bytes that the format stores and the bandwidth that the
//! backend reaches.
//!
//! ```text
//! time = (start + start(format) + max(bytes(format) / share(format), entry(format) * longest row)) / copy bandwidth
//! ```
//!
//! `bytes` is the storage with padding, plus x and y once; `start` is what could be copied in the time that a product
//! takes to start; `share` is the fraction of copy bandwidth that the backend's kernel reaches; `entry` is what could
//! be copied in the time that one thread, which has a row to itself, takes for an entry. Only ratios of times are used,
//! so the copy bandwidth itself need not be known.

use super::super::lengths::{RowLengths, RowStatistics};
use super::super::storage::Storage;
use super::super::{Csr, storage_estimates};
use super::sample::Variety;
use crate::backend::{CompressionRule, Conversions, ProductModel, Products};
use crate::scalar::Scalar;
use crate::units::ratio;

/// The format that may take fewer bytes than its values and indices; "without compression" excludes it.
pub(super) const COMPRESSED: &str = "compressed";

/// At most this many formats are tried in addition to CSR.
const MOST: usize = 3;

impl ProductModel {
    /// The cost of reading a sample, in CSR products, and the fraction of a CSR product that is launch and waiting
    /// time, estimated from the matrix's size in bytes alone.
    pub(super) fn sample_and_launch_cost(&self, bytes: usize) -> (f64, f64) {
        let share = self.share(Csr::<f64>::NAME).unwrap_or(1.0);
        let start = self.start + self.wait(Csr::<f64>::NAME).0;
        let product = (start + bytes as f64 / share).max(1.0);
        (self.look / product, start / product)
    }

    fn wait(&self, format: &str) -> (f64, f64) {
        self.waits
            .iter()
            .find(|(name, ..)| *name == format)
            .map_or((0.0, 0.0), |&(_, start, entry)| (start, entry))
    }

    /// The fraction of copy bandwidth that products in a format reach.
    fn share(&self, format: &str) -> Option<f64> {
        self.shares.iter().find(|(name, _)| *name == format).map(|(_, share)| *share)
    }
}

/// The properties of a matrix that the model uses.
#[derive(Debug)]
#[non_exhaustive]
pub struct Traits {
    /// Statistics of the row lengths.
    pub rows: RowStatistics,
    /// Number of rows.
    pub row_count: usize,
    /// Number of columns.
    pub column_count: usize,
    /// Number of stored entries.
    pub nonzeros: usize,
    /// The storage in each format, for the rows in the sample.
    pub storage: Vec<(&'static str, Storage)>,
    /// The clustering of columns and the variety of values, if they were sampled.
    pub variety: Option<Variety>,
    value: usize,
    /// The number of rows divided by that of the sample.
    scale: f64,
}

impl Traits {
    /// The properties of a matrix of this size, from the lengths of some or all of its rows.
    pub(super) fn new<V: Scalar, B: Products + Conversions>(
        (rows, columns, nonzeros): (usize, usize, usize),
        lengths: &RowLengths,
        variety: Option<Variety>,
    ) -> Self {
        Self {
            rows: lengths.statistics(),
            row_count: rows,
            column_count: columns,
            nonzeros,
            storage: storage_estimates::<V, B>(lengths),
            variety,
            value: size_of::<V>(),
            scale: rows as f64 / lengths.rows().max(1) as f64,
        }
    }

    /// Sets the longest of all rows, if only some were sampled.
    #[must_use]
    pub(super) fn longest(mut self, longest: usize) -> Self {
        self.rows.max = self.rows.max.max(longest);
        self
    }

    /// Bytes that a product moves, or could move in its time; `None` if the format is refused, unknown or unsuited.
    fn bytes(&self, format: &str, model: &ProductModel) -> Option<f64> {
        if let (COMPRESSED, CompressionRule::Runs { rows, entry }) = (format, model.compression) {
            self.variety.as_ref().filter(|variety| variety.repeats(rows))?;
            return Some(self.row_count as f64 + entry * self.nonzeros as f64 + self.vectors());
        }
        let (_, storage) = self.storage.iter().find(|(name, _)| *name == format)?;
        let mut stored = storage.bytes as f64 * self.scale;
        if let (COMPRESSED, Some(variety)) = (format, &self.variety) {
            stored = stored.min(variety.bytes(self.row_count, self.nonzeros, self.value));
        }
        let far = self.variety.as_ref().map_or(0.0, |variety| 1.0 - variety.near);
        let far = far * self.nonzeros as f64 * model.far;
        storage.refused.is_none().then_some(stored + far + self.vectors())
    }

    fn vectors(&self) -> f64 {
        (self.row_count + self.column_count) as f64 * self.value as f64
    }
}

/// The model's forecast for a format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Forecast {
    pub(super) format: &'static str,
    /// Bytes that a product moves.
    pub(super) bytes: f64,
    /// The time of a product, as the number of bytes that could be copied in that time.
    pub(super) time: f64,
}

/// All formats that the backend can multiply and that suit the matrix, fastest first; CSR comes first among equals.
pub(super) fn forecasts(model: &ProductModel, traits: &Traits) -> Vec<Forecast> {
    let forecast = |format: &'static str| {
        let (bytes, share) = (traits.bytes(format, model)?, model.share(format)?);
        let (start, entry) = model.wait(format);
        let time = model.start + start + (bytes / share).max(entry * traits.rows.max as f64);
        Some(Forecast { format, bytes, time })
    };
    let mut all: Vec<Forecast> = traits.storage.iter().filter_map(|(format, _)| forecast(format)).collect();
    let csr = |f: &Forecast| f.format != Csr::<f64>::NAME;
    all.sort_by(|a, b| a.time.total_cmp(&b.time).then(csr(a).cmp(&csr(b))));
    all
}

/// The formats that may be tried in addition to CSR, fastest first. The trial itself decides which of them it measures.
pub(super) fn candidates(forecasts: &[Forecast], compression: bool) -> Vec<Forecast> {
    let allowed = |f: &&Forecast| f.format != Csr::<f64>::NAME && (compression || f.format != COMPRESSED);
    forecasts.iter().filter(allowed).take(MOST).copied().collect()
}

/// An advised format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// The format's name.
    pub format: &'static str,
    /// Why, in one sentence.
    pub reason: String,
}

/// The fastest format by the backend's model for a matrix of these row lengths and values of type `V`, without a
/// measurement. A format must be at least a twentieth faster than CSR to be worth a conversion.
pub fn advise<V: Scalar, B: Products + Conversions>(backend: &B, lengths: &RowLengths) -> Advice {
    let traits = Traits::new::<V, B>((lengths.rows(), lengths.columns(), lengths.nonzeros()), lengths, None);
    let all = forecasts(&backend.model(), &traits);
    let csr = all.iter().find(|f| f.format == Csr::<V>::NAME);
    let Some(csr) = csr else {
        return Advice { format: Csr::<V>::NAME, reason: "every backend multiplies csr".into() };
    };
    let best = all.first().filter(|best| best.time < 0.95 * csr.time).unwrap_or(csr);
    Advice { format: best.format, reason: reason(best, csr, &all, &traits) }
}

fn reason(best: &Forecast, csr: &Forecast, all: &[Forecast], traits: &Traits) -> String {
    let rows = &traits.rows;
    let spread = format!("rows of {} to {}, mean {:.1}", rows.min, rows.max, rows.mean);
    if best.format != csr.format {
        let times = ratio((csr.time / best.time * 100.0).round() / 100.0);
        return format!(
            "products about {times} times as fast as with csr (worth it for many products; {spread})"
        );
    }
    let next = all.iter().find(|f| f.format != csr.format);
    let next = next.map_or(String::new(), |next| format!("; next is {}", next.format));
    format!("it needs no conversion and no padding ({spread}){next}")
}
