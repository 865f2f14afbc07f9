//! The performance model of a backend's products, by which a format is chosen.

/// The performance model of a backend's products. The numbers were measured, see `docs/internals/benchmarks/`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ProductModel {
    /// The time to start a product, as the number of bytes that could be copied in that time.
    pub start: f64,
    /// The time to sample a matrix for the choice, in the same unit.
    pub look: f64,
    /// The time of a conversion from CSR, as a number of CSR products.
    pub conversion: f64,
    /// For each format, the fraction of copy bandwidth that its product reaches. The backend has no kernel for formats
    /// that are not listed.
    pub shares: &'static [(&'static str, f64)],
    /// For each format, the time of its product in addition to `start`, and the time for each entry of the longest row
    /// if one thread processes a whole row, because then the product takes as long as that row. Both are in the unit of
    /// `start`, and zero for formats that are not listed.
    pub waits: &'static [(&'static str, f64, f64)],
    /// Which matrices suit the compressed format.
    pub compression: CompressionRule,
    /// The time for an entry far from the diagonal in addition to its bytes, because its x comes from a slower cache.
    /// The unit is that of `start`.
    pub far: f64,
}

/// Which matrices have fast products in the compressed format.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum CompressionRule {
    /// Any matrix that takes fewer bytes in it.
    Smaller,
    /// Matrices with runs of equal rows, including their values. The time depends on entries, not on bytes.
    Runs {
        /// The smallest mean number of rows in a run.
        rows: usize,
        /// The time of an entry, as the number of bytes that could be copied in that time.
        entry: f64,
    },
}

impl ProductModel {
    /// A model from its parts. The compressed format is used if it takes fewer bytes.
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

    /// Sets the time for an entry far from the diagonal.
    #[must_use]
    pub const fn far(mut self, far: f64) -> Self {
        self.far = far;
        self
    }
}
