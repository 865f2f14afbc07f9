//! Bands of rows, swept in the order of columns.

use crate::backend::Backend;
use crate::scalar::Element;

/// Entries of a step of [`SweptParts`] at most.
pub const SWEPT_STEP: usize = 2048;

/// Rows that a band of [`SweptParts`] has at most.
pub const SWEPT_ROWS: usize = 1 << 16;

/// Entries of the longest row that [`SweptParts`] hold: each lies in a step of its own.
pub const SWEPT_LONGEST: usize = 4096;

/// Why a matrix is not held by [`SweptParts`], if so, by its longest row.
pub(crate) fn swept_refusal(longest: usize) -> Option<String> {
    (longest > SWEPT_LONGEST).then(|| format!("a row of {longest} entries takes as many steps"))
}

/// Bits of a place in [`SweptParts`] that number the row within its band of `height` rows; the others number the
/// column.
#[must_use]
pub fn swept_row_bits(height: usize) -> u32 {
    (usize::BITS - height.saturating_sub(1).leading_zeros()).max(1)
}

/// Bins by which columns of [`SweptParts`] are cut into chunks, so many at a time...
pub(crate) const SWEPT_BINS: usize = 1 << 12;

/// ...of 2^shift columns each, by the number of all columns: of 2^14 at most.
pub(crate) fn swept_bin_shift(columns: usize) -> u32 {
    let bits = usize::BITS - columns.saturating_sub(1).leading_zeros();
    bits.saturating_sub(SWEPT_BINS.ilog2()).min(14)
}

/// Entries that a chunk is meant to have: a little less than a step, so that few steps get more.
pub(crate) const SWEPT_SHARE: usize = 1984;

/// Parts into which each is divided: what a column takes of a chunk, whatever its entries, is a part of one.
pub(crate) const SWEPT_OF_ENTRY: usize = 1 << 20;

/// Where a band's columns, by bins that have entries, are at most so many times its rows, entries of a step lie in the
/// order of rows; else in that of columns.
pub(crate) const SWEPT_SPREAD: usize = 8;

/// Bands of `height` rows, each swept in the order of columns, in steps of up to [`SWEPT_STEP`] entries. No two entries
/// of a step are of one row, those of a row are in the order of their columns, and a column less the step's base fits
/// in the bits of a place that the band's rows leave.
///
/// ```text
/// one band, steps of up to 3 entries (for the drawing)
/// firsts  0                                     3        first step of each band
/// starts  0               3               6     7        first entry of each step
/// bases   0               0               0
/// places  0,0  2,1  3,0 | 0,2  1,2  2,2 | 3,3            row within the band, column less base
/// values  1    4    2   | 7    8    3   | 1
/// ```
#[derive(Debug)]
pub struct SweptParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Rows of a band; the last may have fewer.
    pub height: usize,
    /// First step of each band; one more than there are bands.
    pub firsts: &'a B::Slice<u32>,
    /// First entry of each step; one more than there are steps.
    pub starts: &'a B::Slice<u64>,
    /// The column that columns of each step are counted from.
    pub bases: &'a B::Slice<u32>,
    /// Column less base, and below it, in [`swept_row_bits`] bits, the row within the band.
    pub places: &'a B::Slice<u32>,
    /// Value of each entry.
    pub values: &'a B::Slice<V>,
}

/// The arrays of [`SweptParts`], owned.
#[derive(Debug)]
pub struct SweptArrays<V: Element, B: Backend> {
    /// First step of each band; one more than there are bands.
    pub firsts: B::Vec<u32>,
    /// First entry of each step; one more than there are steps.
    pub starts: B::Vec<u64>,
    /// The column that columns of each step are counted from.
    pub bases: B::Vec<u32>,
    /// Row within the band, and column less base.
    pub places: B::Vec<u32>,
    /// Value of each entry.
    pub values: B::Vec<V>,
}
