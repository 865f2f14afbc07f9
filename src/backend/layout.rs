//! How each format lies in memory, as borrowed parts. The kernels of every backend read these, and only these.
//!
//! The running example, a 4 x 4 matrix with seven nonzeros:
//!
//! ```text
//!     | 1 . 7 . |
//! A = | . . 8 . |
//!     | . 4 3 . |
//!     | 2 . . 1 |
//! ```
//!
//! All indices count from zero. Column indices have 32 bits, row offsets 32 or 64. Values of type `V` may be narrower
//! than the type in which products are computed. Padding never touches `x`: an infinite or NaN entry of `x` reaches
//! only the rows that refer to it.

use super::Backend;
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};
use std::sync::OnceLock;

/// Owned row offsets, one more than there are rows, from 0 to the number of nonzeros.
#[derive(Debug)]
pub enum Offsets<B: Backend> {
    /// Fewer than 2^32 nonzeros.
    Narrow(B::Vec<u32>),
    /// Any number.
    Wide(B::Vec<u64>),
}

impl<B: Backend> Offsets<B> {
    /// `len` zeros, as wide as counting to `total` needs.
    pub(crate) fn zeros(backend: &B, len: usize, total: usize) -> Result<Self> {
        Ok(if total <= NARROW_LIMIT {
            Offsets::Narrow(backend.zeros(len)?)
        } else {
            Offsets::Wide(backend.zeros(len)?)
        })
    }

    /// The same, borrowed.
    pub fn as_ref(&self) -> OffsetsRef<'_, B> {
        match self {
            Offsets::Narrow(v) => OffsetsRef::Narrow(&**v),
            Offsets::Wide(v) => OffsetsRef::Wide(&**v),
        }
    }

    /// The offsets as sizes, on the host.
    ///
    /// # Errors
    /// When the device fails.
    pub fn download(&self, backend: &B) -> Result<Vec<usize>> {
        self.as_ref().download(backend)
    }
}

/// A second buffer with the same content.
pub(crate) fn copied<T: Element, B: Backend>(backend: &B, from: &B::Slice<T>) -> Result<B::Vec<T>> {
    let mut to = backend.buffer(B::len(from))?;
    backend.copy(from, &mut to)?;
    Ok(to)
}

/// Borrowed [`Offsets`].
#[derive(Debug)]
pub enum OffsetsRef<'a, B: Backend> {
    /// Fewer than 2^32 nonzeros.
    Narrow(&'a B::Slice<u32>),
    /// Any number.
    Wide(&'a B::Slice<u64>),
}

impl<B: Backend> Clone for OffsetsRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for OffsetsRef<'_, B> {}

impl<B: Backend> OffsetsRef<'_, B> {
    /// Number of offsets: rows + 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            OffsetsRef::Narrow(v) => B::len::<u32>(v),
            OffsetsRef::Wide(v) => B::len::<u64>(v),
        }
    }

    /// The offsets as sizes, on the host.
    ///
    /// # Errors
    /// When the device fails.
    pub fn download(&self, backend: &B) -> Result<Vec<usize>> {
        Ok(match self {
            OffsetsRef::Narrow(v) => backend.download(v)?.into_iter().map(Offset::to_usize).collect(),
            OffsetsRef::Wide(v) => backend.download(v)?.into_iter().map(Offset::to_usize).collect(),
        })
    }

    /// Owned offsets with the same content.
    pub(crate) fn copied(&self, backend: &B) -> Result<Offsets<B>> {
        Ok(match self {
            OffsetsRef::Narrow(v) => Offsets::Narrow(copied(backend, v)?),
            OffsetsRef::Wide(v) => Offsets::Wide(copied(backend, v)?),
        })
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        match self {
            OffsetsRef::Narrow(v) => B::len::<u32>(v) * 4,
            OffsetsRef::Wide(v) => B::len::<u64>(v) * 8,
        }
    }
}

/// Runs the same body for either width of offsets: `with_offsets!(parts.offsets, offsets => kernel(offsets, ...))`.
macro_rules! with_offsets {
    ($offsets:expr, $name:ident => $body:expr) => {
        match $offsets {
            $crate::backend::OffsetsRef::Narrow($name) => $body,
            $crate::backend::OffsetsRef::Wide($name) => $body,
        }
    };
}
pub(crate) use with_offsets;

/// Compressed sparse rows: row `i` holds the nonzeros `offsets[i]..offsets[i + 1]`, columns ascending.
///
/// ```text
/// offsets  0   2   3   5   7
/// columns  0 2 | 2 | 1 2 | 0 3
/// values   1 7 | 8 | 4 3 | 2 1
/// ```
#[derive(Debug)]
pub struct CsrParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Where each row starts.
    pub offsets: OffsetsRef<'a, B>,
    /// Column of each nonzero.
    pub indices: &'a B::Slice<u32>,
    /// Value of each nonzero.
    pub values: &'a B::Slice<V>,
    /// What a backend found out about the rows.
    pub shape: &'a RowShape<B>,
}

/// What a backend found out about the rows of a CSR matrix at its first product, kept with the matrix: later products choose their
/// way without looking. It follows from the pattern alone.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA chooses by it
pub struct RowShape<B: Backend> {
    extent: OnceLock<RowExtent>,
    scattered: OnceLock<bool>,
    starts: OnceLock<B::Vec<u32>>,
    tiles: OnceLock<B::Vec<u64>>,
    bins: OnceLock<Box<RowBins<B>>>,
}

/// Rows in bins of their lengths, as the backend deals them to threads.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA does
pub(crate) struct RowBins<B: Backend> {
    /// Parts of rows, two words each.
    pub(crate) parts: B::Vec<u64>,
    /// Where each kind of them ends.
    pub(crate) ends: [u32; 7],
}

/// How far rows of a matrix are from alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowExtent {
    /// Nonzeros of the longest row.
    pub longest: u64,
    /// The most nonzeros in 32 rows that follow one another, counted from a multiple of 32.
    pub fullest: u64,
}

impl<B: Backend> Default for RowShape<B> {
    fn default() -> Self {
        Self {
            extent: OnceLock::new(),
            scattered: OnceLock::new(),
            starts: OnceLock::new(),
            tiles: OnceLock::new(),
            bins: OnceLock::new(),
        }
    }
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA chooses by it
impl<B: Backend> RowShape<B> {
    /// The extent that is known, or that `find` finds out now.
    pub(crate) fn extent(&self, find: impl FnOnce() -> Result<RowExtent>) -> Result<RowExtent> {
        known(&self.extent, find).copied()
    }

    /// Whether a product reads x all over the vector, as known or as `find` finds it out now.
    pub(crate) fn scattered(&self, find: impl FnOnce() -> Result<bool>) -> Result<bool> {
        known(&self.scattered, find).copied()
    }

    /// The first row of each of the backend's tiles, as known or as `find` finds them out now.
    pub(crate) fn starts(&self, find: impl FnOnce() -> Result<B::Vec<u32>>) -> Result<&B::Slice<u32>> {
        known(&self.starts, find).map(|starts| &**starts)
    }

    /// Where each of the backend's tiles begins that may end behind their last row's share, as [`Self::starts`].
    pub(crate) fn tiles(&self, find: impl FnOnce() -> Result<B::Vec<u64>>) -> Result<&B::Slice<u64>> {
        known(&self.tiles, find).map(|tiles| &**tiles)
    }

    /// The rows in bins, as [`Self::starts`].
    pub(crate) fn bins(&self, find: impl FnOnce() -> Result<RowBins<B>>) -> Result<&RowBins<B>> {
        known(&self.bins, || find().map(Box::new)).map(|bins| &**bins)
    }
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA chooses by it
fn known<T>(cell: &OnceLock<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let found = find()?;
    // Where two threads were at it, both found the same.
    Ok(cell.get_or_init(|| found))
}

/// Coordinates: row, column and value of each nonzero, sorted by row, then column.
///
/// ```text
/// rows     0 0 1 2 2 3 3
/// columns  0 2 2 1 2 0 3
/// values   1 7 8 4 3 2 1
/// ```
#[derive(Debug)]
pub struct CooParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Row of each nonzero, ascending.
    pub row_indices: &'a B::Slice<u32>,
    /// Column of each nonzero, ascending within a row.
    pub column_indices: &'a B::Slice<u32>,
    /// Value of each nonzero.
    pub values: &'a B::Slice<V>,
}

/// ELLPACK: every row padded to the same width, stored column by column: entry `k` of row `i` is at `k * rows + i`.
///
/// ```text
/// lengths  2 1 2 2            width 2
/// columns  0 2 1 0 | 2 * 2 3
/// values   1 8 4 2 | 7 * 3 1      * padding: index 0, value 0, never read by a product
/// ```
#[derive(Debug)]
pub struct EllParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Entries of each padded row.
    pub width: usize,
    /// Entries of each row that are no padding.
    pub lengths: &'a B::Slice<u32>,
    /// `width * rows` columns.
    pub indices: &'a B::Slice<u32>,
    /// `width * rows` values.
    pub values: &'a B::Slice<V>,
}

/// Jagged diagonals: rows ordered from longest to shortest, then stored column by column without padding: entry `k`
/// of the row at position `p` is at `offsets[k] + p`.
///
/// ```text
/// order    0 2 3 1        (row 1 is the shortest)
/// offsets  0 4 7
/// columns  0 1 0 2 | 2 2 3
/// values   1 4 2 8 | 7 3 1
/// ```
#[derive(Debug)]
pub struct JdsParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The row at each position.
    pub order: RowOrderRef<'a, B>,
    /// Where each jagged diagonal starts; one more than the longest row has entries.
    pub offsets: OffsetsRef<'a, B>,
    /// Column of each nonzero.
    pub indices: &'a B::Slice<u32>,
    /// Value of each nonzero.
    pub values: &'a B::Slice<V>,
}

/// SELL-C-sigma: sections of C rows, each padded to its own longest row and stored column by column: entry `k` of
/// the row at position `p` is at `offsets[p / C] + k * C + p % C`. Within windows of sigma rows, the rows are ordered
/// from longest to shortest, so that rows of like length share a section. The last section has C rows too.
///
/// ```text
/// C = 2, sigma = 4
/// order    0 2 | 3 1
/// lengths  2 2 | 2 1
/// offsets  0 4 8
/// columns  0 1 2 2 | 0 2 3 *
/// values   1 4 7 3 | 2 8 1 *
/// ```
#[derive(Debug)]
pub struct SellParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Rows of a section: C.
    pub height: usize,
    /// Entries of the longest row.
    pub widest: usize,
    /// Rows of a sorting window: sigma, a multiple of C, or 1 where rows keep their order.
    pub window: usize,
    /// The row at each position; `None` where rows keep their order. It maps each window onto itself.
    pub order: Option<RowOrderRef<'a, B>>,
    /// Entries, without padding, of the row at each position.
    pub lengths: &'a B::Slice<u32>,
    /// Where each section starts; one more than there are sections.
    pub offsets: OffsetsRef<'a, B>,
    /// Columns; in padding, what the backend's [`Conversions::csr_to_sell`](super::Conversions::csr_to_sell) writes: its product may
    /// tell padding by it.
    pub indices: &'a B::Slice<u32>,
    /// Values, padding included.
    pub values: &'a B::Slice<V>,
}

/// Rows of a section of [`DiaParts`].
pub const DIA_SECTION: usize = 32;

/// Diagonals: of every row an entry for each of the distances (column - row) that occur, in sections of [`DIA_SECTION`] rows.
/// Entry `k` of row `i`, in column `i + distances[k]`, is at `(i / C * d + k) * C + i % C` for `d` distances and sections of `C`
/// rows; so a section lies in one piece, diagonal after diagonal. No column is stored. The last section has `C` rows too.
///
/// ```text
/// C = 2 (for the drawing)
/// distances  -3 -1 0 1 2
/// values      *  * | *  * | 1  * | *  8 | 7  *        rows 0 and 1
///             *  2 | 4  * | 3  1 | *  * | *  *        rows 2 and 3      * no entry: every bit is set
/// ```
#[derive(Debug)]
pub struct DiaParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Column less row of each diagonal, ascending.
    pub distances: &'a B::Slice<i64>,
    /// Values, and [`no_entry`] where there is none.
    pub values: &'a B::Slice<V>,
}

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

/// Bits of a place in [`SweptParts`] that number the row within its band of `height` rows; the others number the column.
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

/// Where a band's columns, by bins that have entries, are at most so many times its rows, entries of a step lie in the order of rows; else in that of columns.
pub(crate) const SWEPT_SPREAD: usize = 8;

/// Bands of `height` rows, each swept in the order of columns, in steps of up to [`SWEPT_STEP`] entries. No two entries of a step are
/// of one row, those of a row are in the order of their columns, and a column less the step's base fits in the bits of a place that the band's
/// rows leave.
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

/// What stands in [`DiaParts`] where a row has no entry: every bit set, which is a NaN that no arithmetic gives.
pub fn no_entry<V: Scalar>() -> V {
    V::from_bits([u64::MAX; 2])
}

/// Whether a value is [`no_entry`].
#[inline(always)]
pub fn is_no_entry<V: Scalar>(value: V) -> bool {
    value.bits() == no_entry::<V>().bits()
}

macro_rules! copy_parts {
    ($($name:ident),*) => {$(
        impl<V: Element, B: Backend> Clone for $name<'_, V, B> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<V: Element, B: Backend> Copy for $name<'_, V, B> {}
    )*};
}
copy_parts!(CsrParts, CooParts, EllParts, JdsParts, SellParts, DiaParts, SweptParts);

/// An order of rows: each row number once. Only this crate makes one, so kernels may write `y` through it from many
/// threads without a row being written twice.
#[derive(Debug)]
pub struct RowOrder<B: Backend>(B::Vec<u32>);

impl<B: Backend> RowOrder<B> {
    /// From a buffer that holds each of `0..n` once.
    pub(crate) fn new(rows: B::Vec<u32>) -> Self {
        Self(rows)
    }

    /// The same, borrowed.
    pub fn as_ref(&self) -> RowOrderRef<'_, B> {
        RowOrderRef(&*self.0)
    }
}

/// Borrowed [`RowOrder`].
#[derive(Debug)]
pub struct RowOrderRef<'a, B: Backend>(&'a B::Slice<u32>);

impl<'a, B: Backend> RowOrderRef<'a, B> {
    /// The row at each position.
    pub fn as_slice(&self) -> &'a B::Slice<u32> {
        self.0
    }
}

impl<B: Backend> Clone for RowOrderRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for RowOrderRef<'_, B> {}

/// The largest number of nonzeros that 32-bit offsets can count.
pub const NARROW_LIMIT: usize = <u32 as Offset>::MAX;
