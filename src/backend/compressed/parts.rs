//! A compressed matrix, as products read it.

use super::{CompressedSteps, WindowOrderRef};
use crate::backend::{Backend, OffsetsRef};
use crate::scalar::{Element, Scalar};

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

/// Bases of a section.
pub(crate) const BASES: usize = 4;

/// Distances that a range has, at most.
pub(crate) const RANGE: i64 = (1 << 14) - 1;

/// The base that the upper two bits of a code of 16 bits choose: it is added to the code for the distance (column -
/// row, modulo 2^32). Where a section's distances are within 65535 of each other all four bases are the smallest. Else
/// there is a base for each of up to four ranges of 2^14 - 1 distances: where the range starts, less 2^14 for each
/// range before it.
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
pub enum CompressedColumns<'a, B: Backend> {
    /// By the kinds of rows.
    Kinds(KindParts<'a, B>),
    /// As codes of a byte, which stand for these [`MOST_KEYS`](super::MOST_KEYS) distances; code 255 is no entry,
    /// whatever stands there.
    Codes(&'a B::Slice<u32>),
    /// As 16 bits above one of the section's four bases, given here (`base_of`), or where these do not suffice as
    /// columns of 32 bits. All bits set are no entry.
    Wide(&'a B::Slice<u32>),
}

/// How a section's values are held.
#[derive(Debug)]
pub enum CompressedValues<'a, V: Scalar, B: Backend> {
    /// As codes of a byte, which stand for these values, 256 at most.
    Codes(&'a B::Slice<V>),
    /// In the narrower type.
    Narrow(&'a B::Slice<V::Narrow>),
    /// As they are.
    Full(&'a B::Slice<V>),
}

/// Sections of 32 rows, each as wide as its longest row. A section of width w has `entries[s + 1] - entries[s]` = 32 w
/// places; entry k of the row in lane l is at place 32 k + l. Its codes stand in
/// `words[word_offsets[s]..word_offsets[s + 1]]`, four entries (a quad) at a time: first the words of the columns'
/// codes (1, 2 or 4 words a row, for 8, 16 or 32 bits), then that of the values' codes. Word j of quad q in lane l is
/// at 32 (q r + j) + l, where r is the number of words of a quad.
#[derive(Debug)]
pub struct SectionParts<'a, V: Scalar, B: Backend> {
    /// `None` where rows keep their order.
    pub order: Option<WindowOrderRef<'a, B>>,
    /// Columns.
    pub columns: CompressedColumns<'a, B>,
    /// Values.
    pub values: CompressedValues<'a, V, B>,
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
pub(crate) const STENCIL_PLACES: usize = 27;

/// A stencil of a point and its neighbours within one step along each of three directions of a grid, of which every
/// kind of rows is a part. Place 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e rows away from a row.
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
    /// Points a line, lines a plane and planes, where the rows are the points of a grid, and each lacks what lies
    /// beyond it. All numbers are finite.
    pub grid: Option<[u32; 3]>,
    /// Where some rows lack more than that; otherwise it need not be known which kind a row is of.
    pub holes: Option<GridHoles<'a, B>>,
}

/// The kinds of rows of a grid that lack no more than what lies beyond it: kind 3 (3 p + l) + e has 0 for p, l or e at
/// the first plane, line or point, 2 at the last, 1 between, and is 255 where there is none.
pub type WholeKinds = [u8; STENCIL_PLACES];

/// What rows of a grid lack, where most lack what lies beyond it, or all but their own point.
#[derive(Debug)]
pub struct GridMarks<B: Backend> {
    /// Two bits a row, four rows a byte, the first lowest: 0 of a row that lacks what lies beyond the grid and nothing
    /// else, 1 of one that has its own point alone, 2 of all others. A whole number of 16 bytes.
    pub of_rows: B::Vec<u8>,
    /// These others, ascending: row << 32 | its places.
    pub listed: B::Vec<u64>,
}

/// Where some rows of a grid lack more than what lies beyond it.
#[derive(Debug)]
pub struct GridHoles<'a, B: Backend> {
    /// The kinds of the others.
    pub whole: &'a WholeKinds,
    /// What rows lack, in short.
    pub marks: Option<&'a GridMarks<B>>,
}

impl<V: Element, B: Backend> StencilParts<'_, V, B> {
    /// Whether places that lie on both sides of a row in its line have one number, and those on both sides of its plane
    /// do.
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
pub enum CompressedBody<'a, V: Scalar, B: CompressedSteps> {
    /// Kinds of rows that have their values too: nothing else is stored. Where they are parts of one stencil, that is
    /// told, for backends that ask ([`CompressedSteps::STENCILS`](super::CompressedSteps::STENCILS)).
    Lines(KindParts<'a, B>, &'a B::Slice<V>, Option<StencilParts<'a, V, B>>),
    /// Sections.
    Sections(SectionParts<'a, V, B>),
    /// Entries dealt out evenly, whatever rows they are in: tiles of 2048, the last filled up. No rows are long, and
    /// values are no codes.
    Balanced(&'a B::Balanced, CompressedValues<'a, V, B>),
}

/// The compressed format ([`Compressed`](crate::matrix::Compressed) draws it).
#[derive(Debug)]
pub struct CompressedParts<'a, V: Scalar, B: CompressedSteps> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// All rows but the long ones.
    pub body: CompressedBody<'a, V, B>,
    /// The long ones, which are empty in the body.
    pub long: Option<LongParts<'a, V, B>>,
}

macro_rules! copy_parts {
    ($($name:ident<$($v:ident: $bound:ident)?>),*) => {$(
        impl<$($v: $bound,)? B: CompressedSteps> Clone for $name<'_, $($v,)? B> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$($v: $bound,)? B: CompressedSteps> Copy for $name<'_, $($v,)? B> {}
    )*};
}
copy_parts!(KindParts<>, GridHoles<>, StencilParts<V: Element>, CompressedColumns<>, CompressedValues<V: Scalar>, SectionParts<V: Scalar>, LongParts<V: Element>, CompressedBody<V: Scalar>, CompressedParts<V: Scalar>);
