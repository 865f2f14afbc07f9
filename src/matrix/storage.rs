//! What a format takes for a matrix, and when that is too much.

use crate::error::{Error, Result};

/// What a format would take for a matrix, worked out from its row lengths and diagonals without building it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Storage {
    /// Bytes of all arrays; `u64::MAX` where they exceed it.
    pub bytes: u64,
    /// True if that is what it takes, or the most that it can take: row lengths do not tell what repeats.
    pub exact: bool,
    /// Entries stored beyond the nonzeros.
    pub padding: u64,
    /// Why the format is refused for this matrix, in figures.
    pub refused: Option<String>,
}

/// Padding up to this many entries is never refused: it is small in any case.
pub const FREE_PADDING: u64 = 1 << 12;

/// Padding of more than this many times the nonzeros is refused.
pub const MOST_PADDING: u64 = 2;

impl Storage {
    /// `entries` stored places of `nonzeros` entries, `entry` bytes each, and `index` bytes around them.
    pub(super) fn new(nonzeros: usize, entries: u128, entry: usize, index: u128, about: &str) -> Self {
        let bytes = u64::try_from(entries * entry as u128 + index).unwrap_or(u64::MAX);
        let padding = u64::try_from(entries - nonzeros as u128).unwrap_or(u64::MAX);
        let limit = FREE_PADDING.max((nonzeros as u64).saturating_mul(MOST_PADDING));
        let refused = (padding > limit).then(|| {
            format!(
                "{about}: {padding} padded entries for {nonzeros} nonzeros ({bytes} bytes), more than {MOST_PADDING} a nonzero"
            )
        });
        Self { bytes, exact: true, padding, refused }
    }

    /// At most so many bytes: `entries` places of `entry` bytes, and `index` bytes around them. Never refused.
    pub(super) fn at_most(nonzeros: usize, entries: u128, entry: usize, index: u128) -> Self {
        Self { exact: false, refused: None, ..Self::new(nonzeros, entries, entry, index, "") }
    }

    /// The refusal as an error.
    pub(super) fn check(&self, format: &'static str) -> Result<()> {
        match &self.refused {
            Some(reason) => Err(Error::Refused { format, reason: reason.clone() }),
            None => Ok(()),
        }
    }
}

/// Bytes of `n` offsets that count to `total`.
pub(super) fn offset_bytes(n: usize, total: u128) -> u128 {
    n as u128 * if total <= crate::backend::NARROW_LIMIT as u128 { 4 } else { 8 }
}
