//! What may be compressed.

/// What [`Compressed`](super::Compressed) may compress.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressedOptions {
    pub(super) values: bool,
    pub(super) kinds: bool,
}

impl Default for CompressedOptions {
    fn default() -> Self {
        Self { values: true, kinds: true }
    }
}

impl CompressedOptions {
    /// Whether values may be compressed, or columns only. Default: true.
    #[must_use]
    pub fn values(self, values: bool) -> Self {
        Self { values, ..self }
    }

    /// Whether rows may be stored by kinds, or entry by entry only. Default: true.
    #[must_use]
    pub fn kinds(self, kinds: bool) -> Self {
        Self { kinds, ..self }
    }
}
