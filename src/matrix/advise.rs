//! Which format suits a matrix: the backend's rule, and its reason in a sentence.

use super::format::Storage;
use super::lengths::{RowLengths, RowStatistics};
use super::storage_estimates;
use crate::backend::Products;
use crate::scalar::Scalar;

/// What a rule goes by.
#[derive(Debug)]
#[non_exhaustive]
pub struct Traits {
    /// Spread of the row lengths.
    pub rows: RowStatistics,
    /// Number of rows.
    pub row_count: usize,
    /// Number of stored entries.
    pub nonzeros: usize,
    /// What each format would take.
    pub storage: Vec<(&'static str, Storage)>,
}

impl Traits {
    /// Entries stored for each nonzero in a format: 1 without padding; `None` where it is refused or unknown.
    pub fn fill(&self, format: &str) -> Option<f64> {
        let (_, storage) = self.storage.iter().find(|(name, _)| *name == format)?;
        let stored = self.nonzeros as f64 + storage.padding as f64;
        storage.refused.is_none().then(|| stored / (self.nonzeros as f64).max(1.0))
    }
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

impl Advice {
    /// For a rule.
    pub(crate) fn new(format: &'static str, reason: impl Into<String>) -> Self {
        Self { format, reason: reason.into() }
    }
}

/// The format that a backend advises for products with a matrix of these row lengths, values of type `V`.
pub fn advise<V: Scalar, B: Products>(backend: &B, lengths: &RowLengths) -> Advice {
    let traits = Traits {
        rows: lengths.statistics(),
        row_count: lengths.rows(),
        nonzeros: lengths.nonzeros(),
        storage: storage_estimates::<V>(lengths),
    };
    backend.advise(&traits)
}
