//! The performance model of a backend's products, for the choice of a format.

/// The performance model of a backend's products. The numbers are measured, see `docs/internals/benchmarks/`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ProductModel {
    /// The start-up time of a product, as the number of bytes that could be copied in that time.
    pub start: f64,
    /// The time to sample a matrix, in the same unit.
    pub look: f64,
    /// The time of a conversion from CSR, in CSR products.
    pub conversion: f64,
    /// For each format, the fraction of copy bandwidth that its product reaches; formats that are not listed have no
    /// kernel.
    pub shares: &'static [(&'static str, f64)],
    /// For each format, the time of its product in addition to `start`, and the time for each entry of the longest row
    /// if one thread processes a whole row: the product takes as long as that row. In the same unit; formats that are
    /// not listed have no such times.
    pub waits: &'static [(&'static str, f64, f64)],
    /// The matrices for which the compressed format is suitable.
    pub compression: CompressionRule,
    /// The time for an entry far from its row in addition to its bytes, as bytes that could be copied meanwhile: its x
    /// comes from a farther cache.
    pub far: f64,
}

/// The rule by which a backend's product in the compressed format is fast.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum CompressionRule {
    /// Suits any matrix that becomes smaller in it.
    Smaller,
    /// For runs of rows that are equal including values. The time depends on entries, not on bytes.
    Runs {
        /// The minimum of the mean number of rows in a run.
        rows: usize,
        /// The time of an entry, as the number of bytes that could be copied in that time.
        entry: f64,
    },
}

impl ProductModel {
    /// A model from its parts; the compressed format is used if it is smaller.
    pub const fn new(start: f64, look: f64, conversion: f64, shares: &'static [(&'static str, f64)]) -> Self {
        let compression = CompressionRule::Smaller;
        Self { start, look, conversion, shares, waits: &[], compression, far: 0.0 }
    }

    /// Sets the waiting times of products.
    #[must_use]
    pub const fn waits(mut self, waits: &'static [(&'static str, f64, f64)]) -> Self {
        self.waits = waits;
        self
    }

    /// Sets the rule for the compressed format.
    #[must_use]
    pub const fn compression(mut self, rule: CompressionRule) -> Self {
        self.compression = rule;
        self
    }

    /// Sets the time for an entry far from its row.
    #[must_use]
    pub const fn far(mut self, far: f64) -> Self {
        self.far = far;
        self
    }
}
