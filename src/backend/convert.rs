//! How entries move between CSR and the other layouts. What goes where (lengths, order, offsets, widths) is worked
//! out in `matrix`, once for all backends, with [`Primitives`]; here entries are only copied, so values keep every bit.

use super::{
    CompressedSteps, CooParts, CsrParts, DiaParts, EllParts, JdsParts, OffsetsRef, Primitives, RowOrderRef,
    SellParts,
};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

/// The diagonals of a matrix that have an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagonals {
    /// How many there are.
    pub count: usize,
    /// Column less row of each, ascending; empty where there are more than was asked for.
    pub distances: Vec<i64>,
}

impl Diagonals {
    /// From a bit for each diagonal, set where there is an entry: words of 32 bits that are not zero, as word number <<
    /// 32 | word, ascending; bit 0 of word 0 is `first`.
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

/// What became of entries that were to be stored by diagonals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiaFill {
    /// All are.
    Whole,
    /// A value is what stands for [`no_entry`](super::no_entry).
    Lost,
    /// An entry left of the main diagonal is not the mirror image of one that is stored, or the other way round.
    Unlike,
}

impl DiaFill {
    /// From whether a value was lost, and an entry unlike its mirror image.
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
/// Targets come from [`Backend::buffer`](super::Backend::buffer) and have the right lengths already. A backend whose
/// buffers may hold anything writes padding too: value 0, and index 0 or, in SELL, the index by which its product knows
/// padding.
///
/// Every method fails when the device fails, and without temporary memory, of which there is little: a few bytes a row
/// at most, and where nothing else is said none.
#[allow(clippy::missing_errors_doc)]
pub trait Conversions: Primitives + CompressedSteps {
    /// Rows of a section of SELL where the caller does not say: on the CPU two cache lines of sums in double precision.
    const CHUNK_HEIGHT: usize = 16;

    // ---- sizes ----

    /// `lengths[i]` = entries of row i after the first `skip`, but `most` at most. Rows have fewer than 2^32 entries.
    fn row_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        skip: usize,
        most: usize,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Rows of each window of `window` rows from longest to shortest, rows of equal length in their order. `longest` is
    /// the largest of the lengths. Temporary memory: about 16 bytes a row.
    fn longest_first(
        &self,
        lengths: &Self::Slice<u32>,
        window: usize,
        longest: u32,
    ) -> Result<Self::Vec<u32>>;

    /// As [`Conversions::longest_first`], with the lengths in that order; no row has more than `most` entries. `moved`
    /// becomes 1 where a row is not in its place, and stays as it is where none is.
    fn order_windows(
        &self,
        lengths: &Self::Slice<u32>,
        window_and_most: (usize, usize),
        order: &mut Self::Vec<u32>,
        sorted: &mut Self::Slice<u32>,
        moved: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// Where sections of `height` rows start, each padded to its longest row; `offsets` has one element more than there
    /// are sections. All places are added to the first of `found`; where they are more than `I` counts, `offsets` is of
    /// no use. Its second becomes the longest row's length at least.
    fn chunk_offsets<I: Offset>(
        &self,
        lengths: &Self::Slice<u32>,
        height: usize,
        offsets: &mut Self::Slice<I>,
        found: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// `reach[k]` = how many rows have more than `k` entries; `order` has them from longest to shortest.
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

    /// Offsets of rows that have the entries of `head` and `tail`.
    fn join_offsets<I: Offset>(
        &self,
        head: OffsetsRef<'_, Self>,
        tail: OffsetsRef<'_, Self>,
        offsets: &mut Self::Slice<I>,
    ) -> Result<()>;

    // ---- entries ----

    /// Entries `skip..` of every row, written at `offsets`, as (rows, columns, values): hybrid's overflow.
    #[allow(clippy::type_complexity)]
    fn csr_tails<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        skip: usize,
        offsets: OffsetsRef<'_, Self>,
        entries: (&mut Self::Slice<u32>, &mut Self::Slice<u32>, &mut Self::Slice<V>),
    ) -> Result<()>;

    /// The rows of `head`, each followed by the entries of `tail` in it, which start at `tails`; written at `offsets`.
    fn join_rows<V: Element>(
        &self,
        head: EllParts<'_, V, Self>,
        tail: CooParts<'_, V, Self>,
        tails: OffsetsRef<'_, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The transpose of a square matrix whose pattern is symmetric, so that its offsets and columns are the matrix's:
    /// for backends that find out, and move the values, in less time than [`Conversions::csr_transpose`] takes. Tells
    /// whether it was done; else the content of `indices` and `values` is not defined.
    #[allow(unused_variables)]
    fn csr_mirror<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// How many entries each column has. Neighbouring rows often have the same columns, which may be counted in another
    /// way than any keys.
    fn column_counts(&self, columns: &Self::Slice<u32>, counts: &mut Self::Slice<u32>) -> Result<()> {
        self.histogram(columns, counts)
    }

    /// The transpose, whose offsets are known, with columns ascending. Temporary memory: a device takes two and a
    /// quarter bytes an entry, of values of 4 bytes one and a third; where there are more columns than entries, or 2^28
    /// nonzeros and more, a tenth of source and target, or 16 MiB.
    fn csr_transpose<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The first `width` entries of every row, laid out as [`EllParts`] says.
    fn csr_to_ell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        width: usize,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// The rows of an ELL matrix, written at `offsets`; where those leave room for more, it stays as it is.
    fn ell_to_csr<V: Element>(
        &self,
        a: EllParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Which diagonals a matrix of `rows` rows and `columns` columns has entries on. Temporary memory: a bit for each
    /// diagonal there could be, and eight bytes for each of `most`.
    fn diagonals(
        &self,
        size: (usize, usize),
        offsets: OffsetsRef<'_, Self>,
        indices: &Self::Slice<u32>,
        most: usize,
    ) -> Result<Diagonals>;

    /// Whether products with half of a matrix of so many places on its diagonals are faster than with all of it.
    fn half_pays<V: Scalar>(&self, places: usize) -> bool;

    /// Whether a few rows of a square matrix let it be its own transpose, bit by bit.
    fn seems_symmetric<V: Scalar>(&self, a: CsrParts<'_, V, Self>) -> Result<bool>;

    /// Every entry, laid out as [`DiaParts`] says, on these diagonals, of which the last `mirrored` stand for their
    /// mirror images too. Those are compared bit by bit.
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

    /// Every entry, laid out as [`JdsParts`] says.
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

    /// Every entry, laid out as [`SellParts`] says; `size` is its height, and the length of the longest row.
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
