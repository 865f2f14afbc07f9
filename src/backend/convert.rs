//! Copies entries between CSR and the other layouts. `matrix` computes lengths, orders, offsets and widths with
//! [`Primitives`], once for all backends; here entries are only copied, so values keep every bit.

use super::{
    CompressedSteps, CooParts, CsrParts, DiaParts, EllParts, JdsParts, OffsetsRef, Primitives, RowOrderRef,
    SellParts,
};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

/// The diagonals of a matrix that have an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagonals {
    /// The number of diagonals.
    pub count: usize,
    /// Column minus row of each, ascending; empty if there are more than were requested.
    pub distances: Vec<i64>,
}

impl Diagonals {
    /// From a bit for each diagonal, set if it has an entry: nonzero words of 32 bits, as word number << 32 | word,
    /// ascending; bit 0 of word 0 is `first`.
    pub(crate) fn from_words(count: usize, words: &[u64], first: i64) -> Self {
        let mut distances = Vec::with_capacity(count);
        for &word in words {
            let (number, mut bits) = ((word >> 32) as i64, word as u32);
            while bits != 0 {
                distances.push(first + 32 * number + i64::from(bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
        Self { count, distances }
    }
}

/// The result of storing entries by diagonals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiaFill {
    /// All entries are stored.
    Whole,
    /// A value equals [`no_entry`](super::no_entry).
    Lost,
    /// An entry left of the main diagonal is not the mirror image of a stored one, or an image is missing.
    Unlike,
}

impl DiaFill {
    /// From whether a value equals `no_entry`, and whether an entry differs from its mirror image.
    pub(crate) fn of(lost: bool, unlike: bool) -> Self {
        match (lost, unlike) {
            (true, _) => Self::Lost,
            (_, true) => Self::Unlike,
            _ => Self::Whole,
        }
    }
}

/// Copies of entries between layouts, and the sizes that these need.
///
/// Targets come from [`Backend::buffer`](super::Backend::buffer) and already have the right lengths. A backend whose
/// buffers have undefined contents writes padding too: value 0, and index 0 or, in SELL, the index by which its product
/// recognises padding.
///
/// Every method fails if the device fails, or without temporary memory, which is small: at most a few bytes per row,
/// and none unless stated.
#[allow(clippy::missing_errors_doc)]
pub trait Conversions: Primitives + CompressedSteps {
    /// Rows of a slice of SELL if the caller does not say: on the CPU two cache lines of sums in double precision.
    const CHUNK_HEIGHT: usize = 16;

    // ---- sizes ----

    /// `lengths[i]` = entries of row i after the first `skip`, but at most `most`. Rows have fewer than 2^32 entries.
    fn row_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        skip: usize,
        most: usize,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Sorts the rows of each window of `window` rows from longest to shortest; rows of equal length keep their order.
    /// `longest` is the largest of the lengths. Temporary memory: about 16 bytes per row.
    fn longest_first(
        &self,
        lengths: &Self::Slice<u32>,
        window: usize,
        longest: u32,
    ) -> Result<Self::Vec<u32>>;

    /// As [`Conversions::longest_first`], and returns the lengths in that order; no row has more than `most` entries.
    /// `moved` is set to 1 if a row is not in its place, and else unchanged.
    fn order_windows(
        &self,
        lengths: &Self::Slice<u32>,
        window_and_most: (usize, usize),
        order: &mut Self::Vec<u32>,
        sorted: &mut Self::Slice<u32>,
        moved: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// The start of slices of `height` rows, each padded to its longest row; `offsets` has one more element than there
    /// are slices. The number of all places is added to the first of `found`; if `I` can't represent it, `offsets` is
    /// undefined. The second of `found` becomes at least the longest row's length.
    fn chunk_offsets<I: Offset>(
        &self,
        lengths: &Self::Slice<u32>,
        height: usize,
        offsets: &mut Self::Slice<I>,
        found: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// `reach[k]` = the number of rows with more than `k` entries; `order` sorts them from longest to shortest.
    fn jagged_reach(
        &self,
        lengths: &Self::Slice<u32>,
        order: RowOrderRef<'_, Self>,
        reach: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[row]` = number of jagged diagonals that reach the row's position in `order`.
    fn jagged_lengths(
        &self,
        order: RowOrderRef<'_, Self>,
        diagonals: OffsetsRef<'_, Self>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Offsets of rows that have the entries of both `head` and `tail`.
    fn join_offsets<I: Offset>(
        &self,
        head: OffsetsRef<'_, Self>,
        tail: OffsetsRef<'_, Self>,
        offsets: &mut Self::Slice<I>,
    ) -> Result<()>;

    // ---- entries ----

    /// Entries `skip..` of every row, written at `offsets`, as (rows, columns, values): the COO part of hybrid.
    #[allow(clippy::type_complexity)]
    fn csr_tails<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        skip: usize,
        offsets: OffsetsRef<'_, Self>,
        entries: (&mut Self::Slice<u32>, &mut Self::Slice<u32>, &mut Self::Slice<V>),
    ) -> Result<()>;

    /// The rows of `head`, each followed by its entries in `tail`, which start at `tails`; written at `offsets`.
    fn join_rows<V: Element>(
        &self,
        head: EllParts<'_, V, Self>,
        tail: CooParts<'_, V, Self>,
        tails: OffsetsRef<'_, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The transpose of a square matrix whose pattern is symmetric, so that it has the same offsets and columns. For
    /// backends that can test this and move the values in less time than [`Conversions::csr_transpose`] takes. Returns
    /// whether it was done; if not, the contents of `indices` and `values` are undefined.
    #[allow(unused_variables)]
    fn csr_mirror<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// The number of entries in each column. Neighbouring rows often have the same columns, so a backend may count them
    /// differently from arbitrary keys.
    fn column_counts(&self, columns: &Self::Slice<u32>, counts: &mut Self::Slice<u32>) -> Result<()> {
        self.histogram(columns, counts)
    }

    /// The transpose, whose offsets are known, with columns ascending. Temporary memory on a device: two and a quarter
    /// bytes per entry, for values of 4 bytes one and a third; if there are more columns than entries, or at least 2^28
    /// nonzeros, a tenth of source and target, or 16 MiB.
    fn csr_transpose<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The first `width` entries of every row, in the layout of [`EllParts`].
    fn csr_to_ell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        width: usize,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The rows of an ELL matrix, written at `offsets`; space beyond a row's entries is left unchanged.
    fn ell_to_csr<V: Element>(
        &self,
        a: EllParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The diagonals with entries of a matrix of `rows` rows and `columns` columns. Temporary memory: a bit for each
    /// possible diagonal, and eight bytes for each of `most`.
    fn diagonals(
        &self,
        size: (usize, usize),
        offsets: OffsetsRef<'_, Self>,
        indices: &Self::Slice<u32>,
        most: usize,
    ) -> Result<Diagonals>;

    /// Returns whether products with half of a matrix with this many places on its diagonals are faster than with all
    /// of it.
    fn half_pays<V: Scalar>(&self, places: usize) -> bool;

    /// Returns whether a sample of rows of a square matrix equals its mirror image, bit by bit.
    fn seems_symmetric<V: Scalar>(&self, a: CsrParts<'_, V, Self>) -> Result<bool>;

    /// Every entry, in the layout of [`DiaParts`], on these diagonals, of which the last `mirrored` also represent
    /// their mirror images. Those are compared bit by bit.
    fn csr_to_dia<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        mirrored: usize,
        distances: &Self::Slice<i64>,
        values: &mut Self::Slice<V>,
    ) -> Result<DiaFill>;

    /// Entries of each row of a matrix stored by diagonals.
    fn dia_lengths<V: Scalar>(&self, a: DiaParts<'_, V, Self>, lengths: &mut Self::Slice<u32>) -> Result<()>;

    /// The rows of a matrix stored by diagonals, written at `offsets`.
    fn dia_to_csr<V: Scalar>(
        &self,
        a: DiaParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Every entry, in the layout of [`JdsParts`].
    fn csr_to_jds<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        order: RowOrderRef<'_, Self>,
        diagonals: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The rows of a JDS matrix, written at `offsets`.
    fn jds_to_csr<V: Element>(
        &self,
        a: JdsParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Every entry, in the layout of [`SellParts`]; `size` is its height, and the length of the longest row.
    fn csr_to_sell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        size: (usize, usize),
        order: Option<RowOrderRef<'_, Self>>,
        sections: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The rows of a SELL matrix, written at `offsets`.
    fn sell_to_csr<V: Element>(
        &self,
        a: SellParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;
}
