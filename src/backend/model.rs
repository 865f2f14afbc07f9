//! What a backend tells of the speed of its products, for the choice of a format.

/// What a backend tells of its products, for the model. The figures are measured ones, see
/// `docs/internals/benchmarks/`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ProductModel {
    /// What any product costs before its first byte, in bytes that could have been copied meanwhile.
    pub start: f64,
    /// What a look at a sample of a matrix costs, in the same unit.
    pub look: f64,
    /// What a conversion from CSR costs, in CSR products.
    pub conversion: f64,
    /// Format, and the share of copy bandwidth that its product reaches on its own bytes; what is not listed has no
    /// kernel.
    pub shares: &'static [(&'static str, f64)],
    /// Format, what its product costs beside `start`, and what an entry of the longest row does where one thread takes
    /// it all: the product lasts as long as that row. In the same unit; what is not listed waits for nothing.
    pub waits: &'static [(&'static str, f64, f64)],
    /// What the compressed format suits.
    pub compression: CompressionRule,
    /// What an entry far from its row costs beside its bytes, in bytes that could have been copied meanwhile: x comes
    /// from another cache.
    pub far: f64,
}

/// Which matrices a backend's product in the compressed format is fast for.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum CompressionRule {
    /// Whatever it makes smaller.
    Smaller,
    /// Runs of rows that are alike, values included. An entry costs time, not bytes.
    Runs {
        /// Rows of a run at least, on average.
        rows: usize,
        /// What an entry costs, in bytes that could have been copied meanwhile.
        entry: f64,
    },
}

impl ProductModel {
    /// From its parts; the compressed format where it is smaller.
    pub const fn new(start: f64, look: f64, conversion: f64, shares: &'static [(&'static str, f64)]) -> Self {
        let compression = CompressionRule::Smaller;
        Self { start, look, conversion, shares, waits: &[], compression, far: 0.0 }
    }

    /// With what products wait for beside their bytes.
    #[must_use]
    pub const fn waits(mut self, waits: &'static [(&'static str, f64, f64)]) -> Self {
        self.waits = waits;
        self
    }

    /// With another rule for the compressed format.
    #[must_use]
    pub const fn compression(mut self, rule: CompressionRule) -> Self {
        self.compression = rule;
        self
    }

    /// With what an entry far from its row costs.
    #[must_use]
    pub const fn far(mut self, far: f64) -> Self {
        self.far = far;
        self
    }
}
