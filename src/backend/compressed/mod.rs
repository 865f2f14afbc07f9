//! The compressed format in memory, and the steps with which a backend fills it.
//!
//! | file | what it holds |
//! |---|---|
//! | `found` | the repetitions in a matrix, and the resulting layout |
//! | `order` | the rows of a window sorted by length |
//! | `parts` | the arrays, as products read them |

mod found;
mod order;
mod parts;

pub use found::*;
pub(crate) use order::{COMPRESSED_WINDOW, ordered_by_length};
pub use order::{WindowOrder, WindowOrderRef};
pub use parts::*;

use super::{Backend, CsrParts, OffsetsRef};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

/// The number of rows in a slice.
pub(crate) const SECTION: usize = 32;

/// The number of entries in a tile of the balanced form.
pub(crate) const BALANCED_TILE: usize = 2048;

/// The number of entries in the balanced form, including the padding of the last tile.
pub(crate) fn balanced_places(nonzeros: usize) -> usize {
    nonzeros.next_multiple_of(BALANCED_TILE)
}

/// The number of bytes in the tiles of the balanced form, without values: 16 for each tile and at the end, row starts,
/// and a code and a bit for each entry.
pub(crate) fn balanced_bytes(rows: usize, nonzeros: usize) -> usize {
    let places = balanced_places(nonzeros);
    16 * (places / BALANCED_TILE + 1) + 2 * rows + 2 * places + places / 8
}

/// The maximum number of keys in a table. Code 255 is kept for padding if rows need padding.
#[doc(hidden)]
pub const MOST_KEYS: usize = 256;

/// The code of padding, in 8, 16 and 32 bits.
pub(crate) const NO_ENTRY: u32 = u32::MAX;

/// This bit is set in the width of a slice whose distances do not fit 16 bits.
pub(crate) const WIDE_COLUMNS: u32 = 1 << 31;

/// How the rows of a matrix differ from a full stencil on a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridRows {
    /// Each row lacks only the neighbours beyond the boundary.
    Whole,
    /// Some rows lack more. The number is that of rows among these that have more than their diagonal entry.
    Holes(usize),
    /// Some rows have entries beyond the boundary, so these are not the rows of this grid.
    Others,
}

/// The steps of compressing and decompressing a matrix; [`Compressed`](crate::matrix::Compressed) calls them in order.
/// A matrix must have fewer than 2^32 - 1 columns.
pub trait CompressedSteps: Backend {
    /// The rows and columns of a matrix in the balanced form, in the backend's own layout
    /// ([`CompressedBody::Balanced`]). An uninhabited type if the backend has no such layout.
    type Balanced: std::fmt::Debug + Send + Sync + 'static;

    /// The stencils, as bit masks ([`StencilParts::places`]), for which this backend has faster products if all kinds
    /// of rows are parts of one stencil.
    const STENCILS: &'static [u32] = &[];

    /// Finds how the rows differ from a full stencil ([`StencilParts`]). `grid` has the number of points per line, of
    /// lines per plane and of planes, and there is a row for each point. Called only for
    /// [stencils](CompressedSteps::STENCILS) of the backend.
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

    /// Marks each row as complete, as only a diagonal entry, or as neither, and lists the rows that are neither
    /// ([`GridMarks`]). `listed` is their number, from [`GridRows::Holes`]. Returns `None` if products by kinds of rows
    /// are faster.
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

    /// Finds the repetitions in a matrix.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    fn compressed_survey<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
    ) -> Result<Survey<V, Self>>;

    /// Returns the kind of every row, and the tables of kinds. If a row matches none of them, sets the flag in `sets`.
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

    /// Returns whether a row, distance or value was not found in its table since the survey that returned `sets`.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_wrong(&self, sets: &Self::Slice<u64>) -> Result<bool>;

    /// Copies the tables of distances and values to the host. `None` if [`CompressedSteps::compressed_wrong`] is true.
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

    /// Returns the sizes of slices, and the order of rows that they need. Rows of more than `longest` entries are not
    /// in slices. With `columns`, also examines the distances.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_sizes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
        columns: bool,
    ) -> Result<SectionSizes<Self>>;

    /// Computes the start of each slice's places and of its words, and the ends, from the slices' widths. `words` is
    /// [`CompressedPlan::quad_words`].
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

    /// Writes the codes and values of every slice. `offsets` are the starts of places and of words, `bases` those of
    /// all slices. If a distance or value is not in its table, sets the flag in `sets`.
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

    /// Allocates the tiles of the balanced form. `None` if the columns of a tile do not fit, or if the backend has no
    /// such form.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_tiles<V: Scalar>(&self, _a: CsrParts<'_, V, Self>) -> Result<Option<Self::Balanced>> {
        Ok(None)
    }

    /// Fills the tiles of [`CompressedSteps::compressed_tiles`]; values are not coded.
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

    /// Copies the given rows, one after another, into CSR arrays.
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

    /// `lengths[i]` = the number of entries in row i.
    ///
    /// # Errors
    /// As [`CompressedSteps::compressed_survey`].
    fn compressed_lengths<V: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Converts to CSR: writes each row at its offset.
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
