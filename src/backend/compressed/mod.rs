//! The compressed format in memory, and what a backend does to fill it.
//!
//! | file | what it holds |
//! |---|---|
//! | `found` | what repeats in a matrix, and how it will be held |
//! | `order` | rows of a window in the order of their lengths |
//! | `parts` | the arrays, as products read them |

mod found;
mod order;
mod parts;

pub use found::*;
pub(crate) use order::ordered_by_length;
pub use order::{WindowOrder, WindowOrderRef};
pub use parts::*;

use super::{Backend, CsrParts, OffsetsRef};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

/// Rows of a section.
pub(crate) const SECTION: usize = 32;

/// Rows of a window within which rows may be ordered by length.
pub(crate) const COMPRESSED_WINDOW: usize = 256;

/// Entries of a tile, where they are dealt out evenly.
pub(crate) const BALANCED_TILE: usize = 2048;

/// Places of entries that are dealt out.
pub(crate) fn balanced_places(nonzeros: usize) -> usize {
    nonzeros.next_multiple_of(BALANCED_TILE)
}

/// Bytes of the tiles of entries that are dealt out, values aside: 16 a tile and at the end, starts of rows, and of
/// each place a code and a bit.
pub(crate) fn balanced_bytes(rows: usize, nonzeros: usize) -> usize {
    let places = balanced_places(nonzeros);
    16 * (places / BALANCED_TILE + 1) + 2 * rows + 2 * places + places / 8
}

/// Keys that a table may have, of which code 255 is never one where an entry may be missing.
#[doc(hidden)]
pub const MOST_KEYS: usize = 256;

/// The code of no entry, in 8, 16 and 32 bits.
pub(crate) const NO_ENTRY: u32 = u32::MAX;

/// Set in the width of a section whose distances are too far apart for 16 bits.
pub(crate) const WIDE_COLUMNS: u32 = 1 << 31;

/// What the rows of a matrix lack of a stencil on the points of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridRows {
    /// What lies beyond the grid, and nothing else.
    Whole,
    /// Some lack more, and so many do not lack all but their own point.
    Holes(usize),
    /// Some have what lies beyond: they are no points of this grid.
    Others,
}

/// The steps of compressing and restoring a matrix. What is done in which order is in
/// [`Compressed`](crate::matrix::Compressed). Matrices have fewer than 2^32 - 1 columns.
pub trait CompressedSteps: Backend {
    /// Where rows and columns of a compressed matrix are whose entries are dealt out evenly, in an order of the
    /// backend's own ([`CompressedBody::Balanced`]). A type without values where there is no such order.
    type Balanced: std::fmt::Debug + Send + Sync + 'static;

    /// Whether products are faster where kinds of rows are known to be parts of one stencil.
    const STENCILS: bool = false;

    /// What rows lack of the places of a stencil ([`StencilParts`]) on a grid of so many points a line, lines a plane
    /// and planes. There are as many rows as points. Asked where [`CompressedSteps::STENCILS`] is set.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_is_grid(
        &self,
        _kind_of: &Self::Slice<u8>,
        _places_of: &Self::Slice<u32>,
        _places: u32,
        _grid: [u32; 3],
    ) -> Result<GridRows> {
        Ok(GridRows::Others)
    }

    /// Marks of the rows, so many of them listed, where [`CompressedSteps::compressed_is_grid`] found holes; `None`
    /// where products are faster by kinds.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_marks(
        &self,
        _kind_of: &Self::Slice<u8>,
        _places_of: &Self::Slice<u32>,
        _places: u32,
        _grid: [u32; 3],
        _listed: usize,
    ) -> Result<Option<GridMarks<Self>>> {
        Ok(None)
    }

    /// What repeats in a matrix.
    ///
    /// # Errors
    /// Without memory, or when the device fails.
    fn compressed_survey<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
    ) -> Result<Survey<V, Self>>;

    /// The kind of every row and the kinds' tables. Where a row differs from all of them, `sets` is told.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_kinds<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &FoundKinds,
        sets: &mut Self::Slice<u64>,
        with_values: bool,
    ) -> Result<Kinds<V, Self>>;

    /// Whether a row, distance or value was in no table, since the survey whose `sets` these are.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_wrong(&self, sets: &Self::Slice<u64>) -> Result<bool>;

    /// Distances and values of the kinds' tables, in the host's memory; `None` where
    /// [`CompressedSteps::compressed_wrong`] says so.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    #[allow(clippy::type_complexity)]
    fn compressed_tables<V: Element>(
        &self,
        sets: &Self::Slice<u64>,
        distances: &Self::Slice<u32>,
        values: &Self::Slice<V>,
    ) -> Result<Option<(Vec<u32>, Vec<V>)>> {
        if self.compressed_wrong(sets)? {
            return Ok(None);
        }
        Ok(Some((self.download(distances)?, self.download(values)?)))
    }

    /// How large sections are without rows of more than `longest` entries, in the order that they want; with `columns`
    /// also what distances they have.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_sizes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
        columns: bool,
    ) -> Result<SectionSizes<Self>>;

    /// Where places and words of sections of such widths start, and the ends, so many words for a row and quad as
    /// [`CompressedPlan::quad_words`] says.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_offsets<O: Offset>(
        &self,
        widths: &Self::Slice<u32>,
        words: [u32; 2],
        place_offsets: &mut Self::Slice<O>,
        word_offsets: &mut Self::Slice<O>,
    ) -> Result<()>;

    /// Codes and values of every section; `offsets` are those of places and of words. `bases` are those of the
    /// sections. Where a distance or value is not in its table, `sets` is told.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    #[allow(clippy::too_many_arguments)]
    fn compressed_fill<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        plan: &CompressedPlan<'_, V>,
        sets: &mut Self::Slice<u64>,
        order: Option<WindowOrderRef<'_, Self>>,
        offsets: (OffsetsRef<'_, Self>, OffsetsRef<'_, Self>),
        bases: &Self::Slice<u32>,
        words: &mut Self::Slice<u32>,
        values: ValuesMut<'_, V, Self>,
    ) -> Result<()>;

    /// Tiles for entries dealt out evenly, not yet filled; `None` where columns of a tile are too far apart, and on
    /// backends to which rows of any lengths are alike.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_tiles<V: Scalar>(&self, _a: CsrParts<'_, V, Self>) -> Result<Option<Self::Balanced>> {
        Ok(None)
    }

    /// Fills such tiles; `values` are no codes.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_deal<V: Scalar>(
        &self,
        _a: CsrParts<'_, V, Self>,
        _tiles: &mut Self::Balanced,
        _values: ValuesMut<'_, V, Self>,
    ) -> Result<()> {
        Ok(())
    }

    /// The given rows, one after the other.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_long<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        rows: &Self::Slice<u32>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Entries of every row.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_lengths<V: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The rows, written at `offsets`.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_to_csr<V: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;
}
