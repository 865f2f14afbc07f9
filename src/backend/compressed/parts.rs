//! A compressed matrix as products read it.

use super::{CompressedSteps, WindowOrderRef};
use crate::backend::{Backend, OffsetsRef};
use crate::scalar::{Element, Scalar};

/// Rows that have the same distances (column - row, modulo 2^32), each kind once. Entries `starts[k]..starts[k + 1]` of
/// the tables are those of kind `k`.
#[derive(Debug)]
pub struct KindParts<'a, B: Backend> {
    /// The kind of each row.
    pub of_row: &'a B::Slice<u8>,
    /// The start of each kind, and the end; there are at most 255 kinds.
    pub starts: &'a B::Slice<u32>,
    /// Distance of each entry.
    pub distances: &'a B::Slice<u32>,
}

/// Bases of a slice.
pub(crate) const BASES: usize = 4;

/// The maximum number of distances in a range.
pub(crate) const RANGE: i64 = (1 << 14) - 1;

/// The base that the upper two bits of a 16-bit code select: it is added to the code to give the distance (column -
/// row, modulo 2^32). If a slice's distances are within 65535 of each other, all four bases are the smallest distance.
/// Else there is a base for each of up to four ranges of 2^14 - 1 distances: the start of the range, less 2^14 for each
/// range before it.
pub(crate) fn base_of(bases: &[u32; BASES], code: u32) -> u32 {
    bases[(code >> 14) as usize]
}

/// The code of one of the slice's distances.
pub(crate) fn code_of(bases: &[u32; BASES], distance: u32) -> Option<u32> {
    let codes = bases.iter().enumerate().map(|(b, &base)| (b, distance.wrapping_sub(base)));
    codes.into_iter().find(|&(b, code)| (code >> 14) as usize == b).map(|(_, code)| code)
}

/// The storage of a slice's columns.
#[derive(Debug)]
pub enum CompressedColumns<'a, B: Backend> {
    /// Columns are given by kinds of rows.
    Kinds(KindParts<'a, B>),
    /// As one-byte codes for these [`MOST_KEYS`](super::MOST_KEYS) distances; code 255 is padding.
    Codes(&'a B::Slice<u32>),
    /// As 16 bits above one of the slice's four bases, given here (`base_of`), or, if these do not suffice, as columns
    /// of 32 bits. A code with all bits set is padding.
    Wide(&'a B::Slice<u32>),
}

/// The storage of a slice's values.
#[derive(Debug)]
pub enum CompressedValues<'a, V: Scalar, B: Backend> {
    /// Values are one-byte codes of these values, at most 256.
    Codes(&'a B::Slice<V>),
    /// Values are stored in the narrower type.
    Narrow(&'a B::Slice<V::Narrow>),
    /// Values are stored in their own type.
    Full(&'a B::Slice<V>),
}

/// Slices of 32 rows, each as wide as its longest row. A slice of width w has `entries[s + 1] - entries[s]` = 32 w
/// places; entry k of the row in lane l is at place 32 k + l. Its codes are in `words[word_offsets[s]..word_offsets[s +
/// 1]]`, four entries (a quad) at a time: first the words of the columns' codes (1, 2 or 4 words a row, for 8, 16 or 32
/// bits), then that of the values' codes. Word j of quad q in lane l is at 32 (q r + j) + l, where r is the number of
/// words of a quad.
#[derive(Debug)]
pub struct SectionParts<'a, V: Scalar, B: Backend> {
    /// `None` if rows keep their order.
    pub order: Option<WindowOrderRef<'a, B>>,
    /// Columns.
    pub columns: CompressedColumns<'a, B>,
    /// Values.
    pub values: CompressedValues<'a, V, B>,
    /// The start of each slice's places, and the end.
    pub entries: OffsetsRef<'a, B>,
    /// The start of each slice's words, and the end.
    pub word_offsets: OffsetsRef<'a, B>,
    /// Codes of columns and values.
    pub words: &'a B::Slice<u32>,
}

/// Rows that are too long for slices, in CSR.
#[derive(Debug)]
pub struct LongParts<'a, V: Element, B: Backend> {
    /// The indices of these rows, ascending.
    pub rows: &'a B::Slice<u32>,
    /// The start of each of them.
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
    /// The distance in rows between lines of the grid.
    pub line: u32,
    /// The distance in rows between planes.
    pub plane: u32,
    /// A bit for each place that occurs in some kind.
    pub places: u32,
    /// The value at each place.
    pub numbers: &'a [V; STENCIL_PLACES],
    /// The places of each kind.
    pub places_of: &'a B::Slice<u32>,
    /// The kind that has all places, if there is one.
    pub whole: Option<u8>,
    /// Points per line, lines per plane and planes, if the rows are the points of a grid and each lacks at least the
    /// neighbours beyond the boundary. All values are finite.
    pub grid: Option<[u32; 3]>,
    /// Set if some rows lack more than that; otherwise the kind of a row need not be known.
    pub holes: Option<GridHoles<'a, B>>,
}

/// The kinds of rows that lack exactly the neighbours beyond the boundary: kind 3 (3 p + l) + e has 0 for p, l or e at
/// the first plane, line or point, 2 at the last, 1 between, and is 255 if there is none.
pub type WholeKinds = [u8; STENCIL_PLACES];

/// The missing entries of a grid on which most rows lack only the neighbours beyond the boundary, or all but the
/// diagonal entry.
#[derive(Debug)]
pub struct GridMarks<B: Backend> {
    /// Two bits a row, four rows a byte, the first lowest: 0 for a row that lacks only the neighbours beyond the
    /// boundary, 1 for one that has only its diagonal entry, 2 for all others. A multiple of 16 bytes.
    pub of_rows: B::Vec<u8>,
    /// The other rows, ascending, as row << 32 | its stencil points.
    pub listed: B::Vec<u64>,
}

/// A grid on which some rows lack more than the neighbours beyond the boundary.
#[derive(Debug)]
pub struct GridHoles<'a, B: Backend> {
    /// The kinds of the other rows.
    pub whole: &'a WholeKinds,
    /// The missing entries in compact form.
    pub marks: Option<&'a GridMarks<B>>,
}

impl<V: Element, B: Backend> StencilParts<'_, V, B> {
    /// Returns whether places on both sides of a row in its line have the same value, and those on both sides of its
    /// plane do.
    pub fn is_mirrored(&self) -> bool {
        let number = |place: usize| (self.places >> place & 1 != 0).then_some(self.numbers[place]);
        (0..STENCIL_PLACES).all(|place| {
            let (p, rest, e) = (place / 9, place % 9, place % 3);
            number(place) == number(9 * (2 - p) + rest) && number(place) == number(place - e + 2 - e)
        })
    }

    /// The smallest and the largest distance; places ascend like distances.
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

/// The storage of all rows that are not long.
#[derive(Debug)]
pub enum CompressedBody<'a, V: Scalar, B: CompressedSteps> {
    /// Kinds of rows including their values: nothing else is stored. If they are parts of one stencil, it is included
    /// for backends that use it ([`CompressedSteps::STENCILS`](super::CompressedSteps::STENCILS)).
    Lines(KindParts<'a, B>, &'a B::Slice<V>, Option<StencilParts<'a, V, B>>),
    /// Slices.
    Sections(SectionParts<'a, V, B>),
    /// The balanced form: entries distributed evenly over tiles of 2048, whatever their rows, with padding in the last.
    /// No rows are long, and values are not coded.
    Balanced(&'a B::Balanced, CompressedValues<'a, V, B>),
}

/// The compressed format ([`Compressed`](crate::matrix::Compressed) draws it).
#[derive(Debug)]
pub struct CompressedParts<'a, V: Scalar, B: CompressedSteps> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// All rows except the long ones.
    pub body: CompressedBody<'a, V, B>,
    /// The long rows, which are empty in the body.
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
