//! The storage that a format takes for a matrix, and when that is refused.

use crate::error::{Error, Result};

/// The storage that a format would take for a matrix, computed from its row lengths and diagonals without building it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Storage {
    /// Bytes of all arrays; `u64::MAX` if that overflows.
    pub bytes: u64,
    /// True if `bytes` is exact; false if it is an upper bound, because row lengths do not show what repeats.
    pub exact: bool,
    /// Entries stored beyond the nonzeros.
    pub padding: u64,
    /// The reason why the format is refused for this matrix, with numbers.
    pub refused: Option<String>,
}

/// Padding of at most this many entries is never refused, since it is small.
pub const FREE_PADDING: u64 = 1 << 12;

/// Padding of more than this many times the nonzeros is refused.
pub const MOST_PADDING: u64 = 2;

impl Storage {
    /// The storage of `nonzeros` entries in `entries` positions of `entry` bytes each, and of `index` bytes of other
    /// arrays.
    pub(super) fn new(nonzeros: usize, entries: u128, entry: usize, index: u128, about: &str) -> Self {
        let bytes = u64::try_from(entries * entry as u128 + index).unwrap_or(u64::MAX);
        let padding = u64::try_from(entries - nonzeros as u128).unwrap_or(u64::MAX);
        let limit = FREE_PADDING.max((nonzeros as u64).saturating_mul(MOST_PADDING));
        let refused = (padding > limit).then(|| {
            format!(
                "{about}: {padding} padded entries for {nonzeros} nonzeros ({bytes} bytes), more than \
                 {MOST_PADDING} per nonzero"
            )
        });
        Self { bytes, exact: true, padding, refused }
    }

    /// An upper bound: `entries` positions of `entry` bytes, and `index` bytes of other arrays. Never refused.
    pub(super) fn at_most(nonzeros: usize, entries: u128, entry: usize, index: u128) -> Self {
        Self { exact: false, refused: None, ..Self::new(nonzeros, entries, entry, index, "") }
    }

    /// Returns the refusal as an error.
    pub(super) fn check(&self, format: &'static str) -> Result<()> {
        match &self.refused {
            Some(reason) => Err(Error::Refused { format, reason: reason.clone() }),
            None => Ok(()),
        }
    }
}

/// Bytes of `n` offsets, the last of which is `total`.
pub(super) fn offset_bytes(n: usize, total: u128) -> u128 {
    n as u128 * if total <= crate::backend::NARROW_LIMIT as u128 { 4 } else { 8 }
}

/// Implements the methods by which all formats tell their sizes: an expression for each, of the matrix `$a`.
macro_rules! sizes {
    (|$a:ident| rows: $rows:expr, columns: $columns:expr, nonzeros: $nonzeros:expr, storage_bytes: $bytes:expr,
        padding: $padding:expr $(,)?) => {
        /// Number of rows.
        pub fn rows(&self) -> usize {
            let $a = self;
            $rows
        }

        /// Number of columns.
        pub fn columns(&self) -> usize {
            let $a = self;
            $columns
        }

        /// Number of stored entries: explicit zeros count, padding does not.
        pub fn nonzeros(&self) -> usize {
            let $a = self;
            $nonzeros
        }

        /// Bytes of all arrays.
        pub fn storage_bytes(&self) -> usize {
            let $a = self;
            $bytes
        }

        /// Entries stored beyond the nonzeros; 0 if there are fewer, as in half of a symmetric matrix.
        pub fn padding(&self) -> usize {
            #[allow(unused_variables)] // some formats have no padding
            let $a = self;
            $padding
        }
    };
}
pub(super) use sizes;
