//! The model: how long a product takes in each format, from what the format stores and what the backend reaches.
//!
//! ```text
//! time = (start + start(format) + max(bytes(format) / share(format), entry(format) * longest row)) / copy bandwidth
//! ```
//!
//! `bytes` is the storage, padding counted, with x and y once; `start` what could be copied while a product is being
//! started; `share` the part of copy bandwidth that the backend's kernel reaches on its own bytes; `entry` what could
//! be copied while a thread that has a row to itself takes an entry of it. Only ratios of times are used, so the copy
//! bandwidth itself need not be known.

use super::super::lengths::{RowLengths, RowStatistics};
use super::super::storage::Storage;
use super::super::{Csr, storage_estimates};
use super::sample::Variety;
use crate::backend::{CompressionRule, Conversions, ProductModel, Products};
use crate::scalar::Scalar;
use crate::units::ratio;

/// The format that holds fewer bytes than its values and indices have: "without compression" leaves it out.
pub(super) const COMPRESSED: &str = "compressed";

/// Formats beside CSR that are tried at most.
const MOST: usize = 3;

impl ProductModel {
    /// What a look costs in CSR products of a matrix, and which share of such a product is its start, before anything
    /// but the matrix's size in bytes is known.
    pub(super) fn look_and_start(&self, bytes: usize) -> (f64, f64) {
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

    fn share(&self, format: &str) -> Option<f64> {
        self.shares.iter().find(|(name, _)| *name == format).map(|(_, share)| *share)
    }
}

/// What the model goes by.
#[derive(Debug)]
#[non_exhaustive]
pub struct Traits {
    /// Spread of the row lengths.
    pub rows: RowStatistics,
    /// Number of rows.
    pub row_count: usize,
    /// Number of columns.
    pub column_count: usize,
    /// Number of stored entries.
    pub nonzeros: usize,
    /// What each format would take, for the rows that were looked at.
    pub storage: Vec<(&'static str, Storage)>,
    /// How clustered columns and how varied values are, where that was looked at.
    pub variety: Option<Variety>,
    value: usize,
    /// Rows there are for each row that was looked at.
    scale: f64,
}

impl Traits {
    /// Of a matrix with so many rows, columns and nonzeros, from the lengths of some or all of its rows.
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

    /// With the longest of all rows, where some were looked at.
    #[must_use]
    pub(super) fn longest(mut self, longest: usize) -> Self {
        self.rows.max = self.rows.max.max(longest);
        self
    }

    /// Bytes that a product moves, or could meanwhile; `None` where the format is refused, unknown or unsuited.
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

/// What the model expects of a format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Forecast {
    pub(super) format: &'static str,
    /// Bytes that a product moves.
    pub(super) bytes: f64,
    /// Share of copy bandwidth that it reaches.
    pub(super) share: f64,
    /// Time in bytes of copying.
    pub(super) time: f64,
}

/// All formats that the backend multiplies and the matrix suits, fastest first; of equal ones CSR.
pub(super) fn forecasts(model: &ProductModel, traits: &Traits) -> Vec<Forecast> {
    let forecast = |format: &'static str| {
        let (bytes, share) = (traits.bytes(format, model)?, model.share(format)?);
        let (start, entry) = model.wait(format);
        let time = model.start + start + (bytes / share).max(entry * traits.rows.max as f64);
        Some(Forecast { format, bytes, share, time })
    };
    let mut all: Vec<Forecast> = traits.storage.iter().filter_map(|(format, _)| forecast(format)).collect();
    let csr = |f: &Forecast| f.format != Csr::<f64>::NAME;
    all.sort_by(|a, b| a.time.total_cmp(&b.time).then(csr(a).cmp(&csr(b))));
    all
}

/// The formats beside CSR that may be tried, fastest first. Which of them a trial comes to, it finds out.
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

/// The format that is fastest by the backend's model for a matrix of these row lengths, values of type `V`, without
/// measuring anything; formats within a twentieth of CSR are not worth a conversion.
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
    let each = |f: &Forecast| format!("{:.1}", f.bytes / (traits.nonzeros as f64).max(1.0));
    let rows = &traits.rows;
    let spread = format!("rows of {} to {}, mean {:.1}", rows.min, rows.max, rows.mean);
    if best.format != csr.format {
        return format!(
            "by the model {} times as fast as csr: {} bytes a nonzero at {:.2} of copy bandwidth, csr {} at {:.2} ({spread})",
            ratio((csr.time / best.time * 100.0).round() / 100.0),
            each(best),
            best.share,
            each(csr),
            csr.share
        );
    }
    let next = all.iter().find(|f| f.format != csr.format);
    let next = next.map_or(String::new(), |next| {
        format!("; next is {} with {} at {:.2}", next.format, each(next), next.share)
    });
    format!(
        "needs no conversion and no padding: {} bytes a nonzero at {:.2} of copy bandwidth ({spread}){next}",
        each(csr),
        csr.share
    )
}
