//! Copies entries between CSR and the other layouts. The module `matrix` computes lengths, orders, offsets and widths
//! with [`Primitives`], once for all backends. The steps here only copy entries, so values keep every bit.

use super::{
    CompressedSteps, CooParts, CsrParts, CsrPattern, DiaParts, EllParts, JdsParts, Offsets, OffsetsRef,
    Primitives, RowOrderRef, SellParts,
};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};
use std::ops::Range;

/// The diagonals of a matrix that have at least one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagonals {
    /// The number of diagonals.
    pub count: usize,
    /// Column minus row of each diagonal, ascending; empty if there are more diagonals than the caller asked for.
    pub distances: Vec<i64>,
}

impl Diagonals {
    /// From a bit mask of the diagonals with an entry. `words` has its nonzero words of 32 bits as word number << 32 |
    /// word, ascending; bit 0 of word 0 is the diagonal `first`.
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
    /// A value equals [`no_entry`](super::no_entry), so it would be lost.
    Lost,
    /// The matrix is not symmetric: an entry left of the main diagonal differs from its mirror image, or one of the two
    /// is missing.
    Unlike,
}

impl DiaFill {
    /// The result if a value equals `no_entry` (`lost`), or if an entry differs from its mirror image (`unlike`).
    pub(crate) fn of(lost: bool, unlike: bool) -> Self {
        match (lost, unlike) {
            (true, _) => Self::Lost,
            (_, true) => Self::Unlike,
            _ => Self::Whole,
        }
    }
}

/// Copies entries between layouts, and computes the sizes that this needs.
///
/// Targets come from [`Backend::buffer`](super::Backend::buffer) and already have the right lengths. If the buffers of
/// a backend have undefined contents, it writes padding too: value 0, and index 0 or, in SELL, the index by which its
/// product recognises padding.
///
/// Every method fails if the device fails, or if there is no memory for temporary arrays. These are small, at most a
/// few bytes per row, and most methods need none; exceptions are stated.
#[allow(clippy::missing_errors_doc)]
pub trait Conversions: Primitives + CompressedSteps {
    /// The default height of a slice of SELL: on the CPU its sums fill two cache lines in double precision.
    const CHUNK_HEIGHT: usize = 16;

    // ---- sizes ----

    /// `lengths[i]` = the number of entries in row i after the first `skip`, but at most `most`. Rows have fewer than
    /// 2^32 entries.
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

    /// As [`Conversions::longest_first`], and also writes the lengths in that order to `sorted`. No row has more than
    /// `most` entries. `moved` is set to 1 if the order moves a row, and else unchanged.
    fn order_windows(
        &self,
        lengths: &Self::Slice<u32>,
        window_and_most: (usize, usize),
        order: &mut Self::Vec<u32>,
        sorted: &mut Self::Slice<u32>,
        moved: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// `offsets[s]` = the start of slice s of `height` rows, each padded to its longest row. `offsets` has one more
    /// element than there are slices. The number of all places is added to `found[0]`; if `I` can't represent it,
    /// `offsets` is undefined. `found[1]` becomes at least the longest row's length.
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

    /// `lengths[row]` = the number of jagged diagonals that are long enough to include the row, given its position in
    /// `order`.
    fn jagged_lengths(
        &self,
        order: RowOrderRef<'_, Self>,
        diagonals: OffsetsRef<'_, Self>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Adds two arrays of offsets: row i of the result has as many entries as row i of `head` and of `tail` together.
    fn join_offsets<I: Offset>(
        &self,
        head: OffsetsRef<'_, Self>,
        tail: OffsetsRef<'_, Self>,
        offsets: &mut Self::Slice<I>,
    ) -> Result<()>;

    // ---- entries ----

    /// `beyond[i]` = the number of entries in row `rows.start + i` in columns outside of `own`.
    fn entries_beyond(
        &self,
        a: CsrPattern<'_, Self>,
        rows: Range<usize>,
        own: Range<usize>,
        beyond: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Divides some rows into their entries in the columns `own`, which are numbered from 0 then, and the others, which
    /// keep their columns. `before[i]` is the number of other entries in the first i of these rows; its last element is
    /// that of all rows. Offsets of the others are `before`.
    #[allow(clippy::type_complexity)]
    fn split_columns<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        rows: Range<usize>,
        own: Range<usize>,
        before: &Self::Slice<u64>,
        ours: (&mut Offsets<Self>, &mut Self::Slice<u32>, &mut Self::Slice<V>),
        others: (&mut Self::Slice<u32>, &mut Self::Slice<V>),
    ) -> Result<()>;

    /// Copies the entries `skip..` of every row, written at `offsets`, as (rows, columns, values): the COO part of
    /// hybrid.
    #[allow(clippy::type_complexity)]
    fn csr_tails<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        skip: usize,
        offsets: OffsetsRef<'_, Self>,
        entries: (&mut Self::Slice<u32>, &mut Self::Slice<u32>, &mut Self::Slice<V>),
    ) -> Result<()>;

    /// Joins rows: writes at `offsets` each row of `head`, followed by its entries in `tail`, which start at `tails`.
    fn join_rows<V: Element>(
        &self,
        head: EllParts<'_, V, Self>,
        tail: CooParts<'_, V, Self>,
        tails: OffsetsRef<'_, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The transpose of a square matrix with a symmetric pattern, which has the same offsets and columns. For backends
    /// that can test this and move the values in less time than [`Conversions::csr_transpose`] takes. Returns false if
    /// it was not done; then the contents of `indices` and `values` are undefined.
    #[allow(unused_variables)]
    fn csr_mirror<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Counts the entries in each column. Neighbouring rows often have the same columns, so a backend may use another
    /// algorithm than for arbitrary keys.
    fn column_counts(&self, columns: &Self::Slice<u32>, counts: &mut Self::Slice<u32>) -> Result<()> {
        self.histogram(columns, counts)
    }

    /// Writes the transpose, with columns ascending; its offsets are given. Temporary memory on a device: 2.25 bytes
    /// per entry, or 1.33 for values of 4 bytes. If there are more columns than entries, or at least 2^28 nonzeros: a
    /// tenth of source and target, or 16 MiB.
    fn csr_transpose<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Copies the first `width` entries of every row into the layout of [`EllParts`].
    fn csr_to_ell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        width: usize,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Copies the rows of an ELL matrix to CSR, at `offsets`. If a row has space for more entries, the rest is
    /// unchanged.
    fn ell_to_csr<V: Element>(
        &self,
        a: EllParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Finds the diagonals with entries of a matrix of `size` = (rows, columns), up to `most` of them. Temporary
    /// memory: a bit for each possible diagonal, and eight bytes for each of `most`.
    fn diagonals(
        &self,
        size: (usize, usize),
        offsets: OffsetsRef<'_, Self>,
        indices: &Self::Slice<u32>,
        most: usize,
    ) -> Result<Diagonals>;

    /// Returns whether, for a symmetric matrix with this many places on its diagonals, products are faster if only half
    /// of it is stored.
    fn half_pays<V: Scalar>(&self, places: usize) -> bool;

    /// Returns whether the entries in a sample of rows equal their mirror images, bit by bit. The matrix is square.
    fn seems_symmetric<V: Scalar>(&self, a: CsrParts<'_, V, Self>) -> Result<bool>;

    /// Copies every entry into the layout of [`DiaParts`] with these diagonals. The last `mirrored` of them also
    /// represent their mirror images, which are compared bit by bit.
    fn csr_to_dia<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        mirrored: usize,
        distances: &Self::Slice<i64>,
        values: &mut Self::Slice<V>,
    ) -> Result<DiaFill>;

    /// `lengths[i]` = the number of entries in row i of a matrix stored by diagonals.
    fn dia_lengths<V: Scalar>(&self, a: DiaParts<'_, V, Self>, lengths: &mut Self::Slice<u32>) -> Result<()>;

    /// Copies the rows of a matrix stored by diagonals to CSR, at `offsets`.
    fn dia_to_csr<V: Scalar>(
        &self,
        a: DiaParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Copies every entry into the layout of [`JdsParts`].
    fn csr_to_jds<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        order: RowOrderRef<'_, Self>,
        diagonals: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Copies the rows of a JDS matrix to CSR, at `offsets`.
    fn jds_to_csr<V: Element>(
        &self,
        a: JdsParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Copies every entry into the layout of [`SellParts`]. `size` is the height of its slices and the length of the
    /// longest row.
    fn csr_to_sell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        size: (usize, usize),
        order: Option<RowOrderRef<'_, Self>>,
        sections: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Copies the rows of a SELL matrix to CSR, at `offsets`.
    fn sell_to_csr<V: Element>(
        &self,
        a: SellParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;
}
