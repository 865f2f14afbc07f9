//! The compressed format in memory, and what a backend does to fill it.

use super::{Backend, CsrParts, Host, Offsets, OffsetsRef};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset, Scalar};

/// Rows of a section.
pub const SECTION: usize = 32;

/// Rows of a window within which rows may be ordered by length.
pub const SLIM_WINDOW: usize = 256;

/// Keys that a table may have, of which code 255 is never one where an entry may be missing.
pub const MOST_KEYS: usize = 256;

/// The code of no entry, in 8, 16 and 32 bits.
pub const NO_ENTRY: u32 = u32::MAX;

/// Rows that have the same distances (column - row, modulo 2^32), each kind once. Entries `starts[k]..starts[k + 1]` of
/// the tables are those of kind `k`.
#[derive(Debug)]
pub struct KindParts<'a, B: Backend> {
    /// The kind of each row.
    pub of_row: &'a B::Slice<u8>,
    /// Where each kind starts; one more than there are kinds, which are 255 at most.
    pub starts: &'a B::Slice<u32>,
    /// Distance of each entry.
    pub distances: &'a B::Slice<u32>,
}

/// An order of rows within windows of [`SLIM_WINDOW`]: at each position the row's number within the window. Only this crate makes one, each
/// row of a window once, so kernels may write `y` through it from many threads without a row being written twice.
#[derive(Debug)]
pub struct WindowOrder<B: Backend>(B::Vec<u8>);

impl<B: Backend> WindowOrder<B> {
    /// From a buffer that holds each row of a window once.
    pub(crate) fn new(rows: B::Vec<u8>) -> Self {
        Self(rows)
    }

    /// The same, borrowed.
    pub fn as_ref(&self) -> WindowOrderRef<'_, B> {
        WindowOrderRef(&*self.0)
    }
}

/// Borrowed [`WindowOrder`].
#[derive(Debug)]
pub struct WindowOrderRef<'a, B: Backend>(&'a B::Slice<u8>);

impl<'a, B: Backend> WindowOrderRef<'a, B> {
    /// The number within its window of the row at each position.
    pub fn as_slice(&self) -> &'a B::Slice<u8> {
        self.0
    }
}

impl WindowOrderRef<'_, Host> {
    /// The row at a position.
    pub(crate) fn row(&self, position: usize) -> usize {
        // The position with its lowest byte exchanged. Written as the window's start plus the byte, loops that collect rows were compiled wrongly
        // (rustc 1.95, optimised: the start was lost, in the last few rows of a loop with optimisation level 3).
        const { assert!(SLIM_WINDOW == 1 << u8::BITS) };
        position ^ usize::from(position as u8 ^ self.0[position])
    }
}

impl<B: Backend> Clone for WindowOrderRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for WindowOrderRef<'_, B> {}

/// Bases of a section.
pub const BASES: usize = 4;

/// Distances that a range has, at most.
pub(crate) const RANGE: i64 = (1 << 14) - 1;

/// The base that the upper two bits of a code of 16 bits choose: it is added to the code for the distance (column - row, modulo 2^32). Where a
/// section's distances are within 65535 of each other all four bases are the smallest. Else there is a base for each of up to four
/// ranges of 2^14 - 1 distances: where the range starts, less 2^14 for each range before it.
pub(crate) fn base_of(bases: &[u32; BASES], code: u32) -> u32 {
    bases[(code >> 14) as usize]
}

/// The code of a distance that is among those of the section.
pub(crate) fn code_of(bases: &[u32; BASES], distance: u32) -> Option<u32> {
    let codes = bases.iter().enumerate().map(|(b, &base)| (b, distance.wrapping_sub(base)));
    codes.into_iter().find(|&(b, code)| (code >> 14) as usize == b).map(|(_, code)| code)
}

/// How a section's columns are held.
#[derive(Debug)]
pub enum SlimColumns<'a, B: Backend> {
    /// By the kinds of rows.
    Kinds(KindParts<'a, B>),
    /// As codes of a byte, which stand for these distances, 255 at most; code 255 is no entry.
    Codes(&'a B::Slice<u32>),
    /// As 16 bits above one of the section's four bases, given here (`base_of`), or where these do not suffice as columns of
    /// 32 bits. All bits set are no entry.
    Wide(&'a B::Slice<u32>),
}

/// How a section's values are held.
#[derive(Debug)]
pub enum SlimValues<'a, V: Scalar, B: Backend> {
    /// As codes of a byte, which stand for these values, 256 at most.
    Codes(&'a B::Slice<V>),
    /// In the narrower type.
    Narrow(&'a B::Slice<V::Narrow>),
    /// As they are.
    Full(&'a B::Slice<V>),
}

/// Sections of 32 rows, each as wide as its longest row. A section of width w has `entries[s + 1] - entries[s]` = 32 w places;
/// entry k of the row in lane l is at place 32 k + l. Its codes stand in `words[word_offsets[s]..word_offsets[s + 1]]`, four
/// entries (a quad) at a time: first the words of the columns' codes (1, 2 or 4 words a row, for 8, 16 or 32 bits), then
/// that of the values' codes. Word j of quad q in lane l is at 32 (q r + j) + l, where r is the number of words of a quad.
#[derive(Debug)]
pub struct SectionParts<'a, V: Scalar, B: Backend> {
    /// `None` where rows keep their order.
    pub order: Option<WindowOrderRef<'a, B>>,
    /// Columns.
    pub columns: SlimColumns<'a, B>,
    /// Values.
    pub values: SlimValues<'a, V, B>,
    /// Where each section's places start, one more than there are sections.
    pub entries: OffsetsRef<'a, B>,
    /// Where each section's words start, one more than there are sections.
    pub word_offsets: OffsetsRef<'a, B>,
    /// Codes of columns and values.
    pub words: &'a B::Slice<u32>,
}

/// Rows too long for sections, in CSR.
#[derive(Debug)]
pub struct LongParts<'a, V: Element, B: Backend> {
    /// Which rows, ascending.
    pub rows: &'a B::Slice<u32>,
    /// Where each of them starts.
    pub offsets: OffsetsRef<'a, B>,
    /// Columns.
    pub indices: &'a B::Slice<u32>,
    /// Values.
    pub values: &'a B::Slice<V>,
}

/// Places of a stencil.
pub const STENCIL_PLACES: usize = 27;

/// A stencil of a point and its neighbours within one step along each of three directions of a grid, of which every kind
/// of rows is a part. Place 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e rows away from a row.
#[derive(Debug)]
pub struct StencilParts<'a, V: Element, B: Backend> {
    /// Rows from a line of the grid to the next.
    pub line: u32,
    /// Rows from a plane to the next.
    pub plane: u32,
    /// A bit for each place that some kind has.
    pub places: u32,
    /// The number at each place.
    pub numbers: &'a [V; STENCIL_PLACES],
    /// The places of each kind.
    pub places_of: &'a B::Slice<u32>,
    /// The kind that has all of them.
    pub whole: Option<u8>,
    /// Points a line, lines a plane and planes, where the rows are the points of a grid, and each lacks what lies beyond it. All numbers are
    /// finite.
    pub grid: Option<[u32; 3]>,
    /// Where some rows lack more than that, the kinds of those that don't; otherwise it need not be known which kind a row is of. Kind
    /// 3 (3 p + l) + e has 0 for p, l or e at the first plane, line or point, 2 at the last, 1 between, and is 255 where there is none.
    pub holes: Option<[u8; STENCIL_PLACES]>,
}

impl<V: Element, B: Backend> StencilParts<'_, V, B> {
    /// Whether places that lie on both sides of a row in its line have one number, and those on both sides of its plane do.
    pub fn is_mirrored(&self) -> bool {
        let number = |place: usize| (self.places >> place & 1 != 0).then_some(self.numbers[place]);
        (0..STENCIL_PLACES).all(|place| {
            let (p, rest, e) = (place / 9, place % 9, place % 3);
            number(place) == number(9 * (2 - p) + rest) && number(place) == number(place - e + 2 - e)
        })
    }

    /// The smallest and the largest distance; places ascend as distances do.
    pub fn span(&self) -> (i64, i64) {
        let distance = |place: u32| {
            let steps = [place / 9, place / 3 % 3, place % 3].map(|step| i64::from(step) - 1);
            steps[0] * i64::from(self.plane) + steps[1] * i64::from(self.line) + steps[2]
        };
        match self.places.checked_ilog2() {
            Some(last) => (distance(self.places.trailing_zeros()), distance(last)),
            None => (0, 0),
        }
    }
}

/// What holds the rows that are not long.
#[derive(Debug)]
pub enum SlimBody<'a, V: Scalar, B: Backend> {
    /// Kinds of rows that have their values too: nothing else is stored. Where they are parts of one stencil, that is told, for
    /// backends that ask ([`SlimSteps::STENCILS`]).
    Lines(KindParts<'a, B>, &'a B::Slice<V>, Option<StencilParts<'a, V, B>>),
    /// Sections.
    Sections(SectionParts<'a, V, B>),
}

/// The compressed format ([`Slim`](crate::matrix::Slim) draws it).
#[derive(Debug)]
pub struct SlimParts<'a, V: Scalar, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// All rows but the long ones.
    pub body: SlimBody<'a, V, B>,
    /// The long ones, which are empty in the body.
    pub long: Option<LongParts<'a, V, B>>,
}

macro_rules! copy_parts {
    ($($name:ident<$($v:ident: $bound:ident)?>),*) => {$(
        impl<$($v: $bound,)? B: Backend> Clone for $name<'_, $($v,)? B> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$($v: $bound,)? B: Backend> Copy for $name<'_, $($v,)? B> {}
    )*};
}
copy_parts!(KindParts<>, StencilParts<V: Element>, SlimColumns<>, SlimValues<V: Scalar>, SectionParts<V: Scalar>, LongParts<V: Element>, SlimBody<V: Scalar>, SlimParts<V: Scalar>);

/// A few distinct keys, ascending, and the code of each as the backend looks it up.
#[derive(Debug)]
pub struct Keys<K: Element> {
    /// What each code stands for.
    pub keys: Vec<K>,
    /// The backend's way from a key to its code.
    pub lookup: Lookup,
}

/// The way from a key to its code. The host looks distances and values up by bisection and leaves it empty.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The number of the hash table on a device ([`Survey::sets`]).
    pub set: usize,
    /// On the host, the hashes of rows, ascending.
    pub hashes: Vec<u64>,
    /// The code of each slot of the table, or of each hash.
    pub codes: Vec<u8>,
}

/// Kinds of rows that a survey found: the first row of each, ascending, and its length. Not yet compared entry by entry.
#[derive(Debug)]
pub struct FoundKinds {
    /// First row of each kind.
    pub first_rows: Vec<u32>,
    /// Entries of each kind.
    pub lengths: Vec<u32>,
    /// From a row's hash to its kind.
    pub lookup: Lookup,
}

/// What repeats in a matrix. Rows with more than so many entries were left out. `None` stands for too many.
#[derive(Debug)]
pub struct Survey<V: Element, B: Backend> {
    /// Distances, ascending as signed numbers; 255 at most.
    pub distances: Option<Keys<u32>>,
    /// Values, told apart by their bits and ascending as those; 256 at most.
    pub values: Option<Keys<V>>,
    /// Whether every value can be held in the narrower type.
    pub narrow: bool,
    /// Kinds of rows by distances; 255 at most.
    pub kinds: Option<FoundKinds>,
    /// Kinds of rows by distances and values; 255 at most.
    pub lines: Option<FoundKinds>,
    /// Rows that are longer than that.
    pub long_rows: LongRows<B>,
    /// The hash tables of a device, and what [`SlimSteps::slim_wrong`] tells.
    pub sets: B::Vec<u64>,
    /// Sizes of sections, columns looked at, where they were found along the way.
    pub sizes: Option<SectionSizes<B>>,
}

/// Long rows that a survey found, ascending.
#[derive(Debug)]
pub enum LongRows<B: Backend> {
    /// Each with its length.
    Told(Vec<(u32, u32)>),
    /// Too many to tell the host of each: which rows, where the entries of each start behind each other, and how many there are of all.
    Held(B::Vec<u32>, Offsets<B>, usize),
}

/// Sizes of sections, and the order of their rows.
#[derive(Debug)]
pub struct SectionSizes<B: Backend> {
    /// The rows of each window of [`SLIM_WINDOW`] from longest to shortest, those that are too long as empty ones, rows of equal length in their
    /// order; `None` where sections of rows in their order pad little enough.
    pub order: Option<WindowOrder<B>>,
    /// Entries of each section's longest row, and [`WIDE_COLUMNS`].
    pub widths: B::Vec<u32>,
    /// The [`BASES`] of each section; of no use where columns were not looked at or are wide.
    pub bases: B::Vec<u32>,
    /// The sums of all widths, of their quads, and of the quads of those with [`WIDE_COLUMNS`].
    pub totals: [u64; 3],
}

impl<B: Backend> SectionSizes<B> {
    /// Places of all sections.
    pub fn places(&self) -> u64 {
        self.totals[0] * SECTION as u64
    }

    /// Words of all sections, so many for a row and quad as [`SlimPlan::quad_words`] says.
    pub fn words(&self, [near, far]: [u32; 2]) -> u64 {
        let [_, quads, wide] = self.totals;
        SECTION as u64 * ((quads - wide) * u64::from(near) + wide * u64::from(far))
    }
}

/// Set in the width of a section whose distances are too far apart for 16 bits.
pub const WIDE_COLUMNS: u32 = 1 << 31;

/// Whether sections of rows in their order pad more than rows ordered by length are worth.
pub(crate) fn wants_order(rows: usize, places: u64, entries: u64) -> bool {
    rows > SECTION && places - entries > entries / 20
}

/// Kinds of rows, compared entry by entry: of each row, then start, distance and, if asked for, value of each entry.
#[derive(Debug)]
pub struct Kinds<V: Element, B: Backend> {
    /// Kind of each row.
    pub of_row: B::Vec<u8>,
    /// Where each kind starts.
    pub starts: B::Vec<u32>,
    /// Distances of all kinds.
    pub distances: B::Vec<u32>,
    /// Values of all kinds; empty where values do not count.
    pub values: B::Vec<V>,
}

/// How columns and values of sections will be held.
#[derive(Debug)]
pub struct SlimPlan<'a, V: Element> {
    /// Longer rows are not in sections.
    pub longest: usize,
    /// By the kinds of rows.
    pub kinds: bool,
    /// Otherwise by codes of these distances, or, where there are none, in 16 or 32 bits.
    pub distances: Option<&'a Keys<u32>>,
    /// By codes of these values.
    pub values: Option<&'a Keys<V>>,
}

impl<V: Element> SlimPlan<'_, V> {
    /// Words of a row and quad where distances are near enough for 16 bits, and where they are not.
    pub fn quad_words(&self) -> [u32; 2] {
        let columns = match self.distances {
            _ if self.kinds => [0, 0],
            Some(_) => [1, 1],
            None => [2, 4],
        };
        columns.map(|words| words + u32::from(self.values.is_some()))
    }
}

/// Where sections' values go.
#[derive(Debug)]
pub enum ValuesMut<'a, V: Scalar, B: Backend> {
    /// Into codes.
    Codes,
    /// To the narrower type.
    Narrow(&'a mut B::Slice<V::Narrow>),
    /// As they are.
    Full(&'a mut B::Slice<V>),
}

/// What the rows of a matrix lack of a stencil on the points of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridRows {
    /// What lies beyond the grid, and nothing else.
    Whole,
    /// Some lack more.
    Holes,
    /// Some have what lies beyond: they are no points of this grid.
    Others,
}

/// The steps of compressing and restoring a matrix. What is done in which order is in [`Slim`](crate::matrix::Slim).
/// Matrices have fewer than 2^32 - 1 columns.
pub trait SlimSteps: Backend {
    /// Whether products are faster where kinds of rows are known to be parts of one stencil.
    const STENCILS: bool = false;

    /// What rows lack of the places of a stencil ([`StencilParts`]) on a grid of so many points a line, lines a plane and planes. There are as
    /// many rows as points. Asked where [`SlimSteps::STENCILS`] is set.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    fn slim_is_grid(
        &self,
        _kind_of: &Self::Slice<u8>,
        _places_of: &Self::Slice<u32>,
        _places: u32,
        _grid: [u32; 3],
    ) -> Result<GridRows> {
        Ok(GridRows::Others)
    }

    /// What repeats in a matrix.
    ///
    /// # Errors
    /// Without memory, or when the device fails.
    fn slim_survey<V: Scalar>(&self, a: CsrParts<'_, V, Self>, longest: usize) -> Result<Survey<V, Self>>;

    /// The kind of every row and the kinds' tables. Where a row differs from all of them, `sets` is told.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    fn slim_kinds<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &FoundKinds,
        sets: &mut Self::Slice<u64>,
        with_values: bool,
    ) -> Result<Kinds<V, Self>>;

    /// Whether a row, distance or value was in no table, since the survey whose `sets` these are.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    fn slim_wrong(&self, sets: &Self::Slice<u64>) -> Result<bool>;

    /// Distances and values of the kinds' tables, in the host's memory; `None` where [`SlimSteps::slim_wrong`] says so.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    #[allow(clippy::type_complexity)]
    fn slim_tables<V: Element>(
        &self,
        sets: &Self::Slice<u64>,
        distances: &Self::Slice<u32>,
        values: &Self::Slice<V>,
    ) -> Result<Option<(Vec<u32>, Vec<V>)>> {
        if self.slim_wrong(sets)? {
            return Ok(None);
        }
        Ok(Some((self.download(distances)?, self.download(values)?)))
    }

    /// How large sections are without rows of more than `longest` entries, in the order that they want; with `columns` also what distances they have.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    fn slim_sizes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
        columns: bool,
    ) -> Result<SectionSizes<Self>>;

    /// Where places and words of sections of such widths start, and the ends, so many words for a row and quad as
    /// [`SlimPlan::quad_words`] says.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    fn slim_offsets<O: Offset>(
        &self,
        widths: &Self::Slice<u32>,
        words: [u32; 2],
        place_offsets: &mut Self::Slice<O>,
        word_offsets: &mut Self::Slice<O>,
    ) -> Result<()>;

    /// Codes and values of every section; `offsets` are those of places and of words. `bases` are those of the sections. Where a distance
    /// or value is not in its table, `sets` is told.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    #[allow(clippy::too_many_arguments)]
    fn slim_fill<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        plan: &SlimPlan<'_, V>,
        sets: &mut Self::Slice<u64>,
        order: Option<WindowOrderRef<'_, Self>>,
        offsets: (OffsetsRef<'_, Self>, OffsetsRef<'_, Self>),
        bases: &Self::Slice<u32>,
        words: &mut Self::Slice<u32>,
        values: ValuesMut<'_, V, Self>,
    ) -> Result<()>;

    /// The given rows, one after the other.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    fn slim_long<V: Scalar>(
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
    /// As [`SlimSteps::slim_survey`].
    fn slim_lengths<V: Scalar>(
        &self,
        a: SlimParts<'_, V, Self>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// The rows, written at `offsets`.
    ///
    /// # Errors
    /// As [`SlimSteps::slim_survey`].
    fn slim_to_csr<V: Scalar>(
        &self,
        a: SlimParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;
}

/// Rows of each window of [`SLIM_WINDOW`] from longest to shortest, rows of equal length in their order.
pub(crate) fn ordered_by_length(lengths: &[u32]) -> WindowOrder<Host> {
    let mut order: Vec<u8> = (0..lengths.len()).map(|row| row as u8).collect();
    let sort = |(window, order): (&[u32], &mut [u8])| {
        order.sort_by_key(|&row| std::cmp::Reverse(window[usize::from(row)]));
    };
    let windows = lengths.par_chunks(SLIM_WINDOW).zip(order.par_chunks_mut(SLIM_WINDOW));
    windows.with_min_len(16).for_each(sort);
    WindowOrder::new(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_is_ordered_by_its_own_lengths() {
        let lengths: Vec<u32> = (0..30_000).map(|i| i * 7919 % 23).collect();
        let order = ordered_by_length(&lengths);
        let order = order.as_ref();
        for start in (0..lengths.len()).step_by(SLIM_WINDOW) {
            let end = lengths.len().min(start + SLIM_WINDOW);
            let sorted: Vec<(u32, usize)> =
                (start..end).map(|position| order.row(position)).map(|row| (lengths[row], row)).collect();
            let in_order = |pair: &[(u32, usize)]| {
                pair[0].0 > pair[1].0 || pair[0].0 == pair[1].0 && pair[0].1 < pair[1].1
            };
            assert!(sorted.windows(2).all(in_order), "the window at {start}: {sorted:?}");
        }
    }
}
