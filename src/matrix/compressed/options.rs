//! Options of compression.

/// Options of [`Compressed`](super::Compressed).
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
    /// Whether values may be compressed, or only columns. Default: true.
    #[must_use]
    pub fn values(self, values: bool) -> Self {
        Self { values, ..self }
    }

    /// Whether rows may be stored by kinds, or only entry by entry. Default: true.
    #[must_use]
    pub fn kinds(self, kinds: bool) -> Self {
        Self { kinds, ..self }
    }
}
