//! A compressed matrix as products read it.

use super::{CompressedSteps, WindowOrderRef};
use crate::backend::{Backend, OffsetsRef};
use crate::scalar::{Element, Scalar};

/// Groups of rows with the same distances (column - row, modulo 2^32), each stored once. Entries
/// `starts[k]..starts[k + 1]` of the tables are those of kind `k`.
#[derive(Debug)]
pub struct KindParts<'a, B: Backend> {
    /// The kind of each row.
    pub of_row: &'a B::Slice<u8>,
    /// The start of each kind, and the end; there are at most 255 kinds.
    pub starts: &'a B::Slice<u32>,
    /// Distance of each entry.
    pub distances: &'a B::Slice<u32>,
}

/// The number of bases of a slice.
pub(crate) const BASES: usize = 4;

/// The maximum number of distances in a range.
pub(crate) const RANGE: i64 = (1 << 14) - 1;

/// The base that the upper two bits of a 16-bit code select. Base plus code is the distance (column - row, modulo
/// 2^32). If a slice's distances are within 65535 of each other, all four bases are the smallest distance. Otherwise
/// there is a base for each of up to four ranges of 2^14 - 1 distances: the start of the range, less 2^14 for each
/// range before it.
pub(crate) fn base_of(bases: &[u32; BASES], code: u32) -> u32 {
    bases[(code >> 14) as usize]
}

/// The code of a distance, for the bases of its slice; `None` if no base fits.
pub(crate) fn code_of(bases: &[u32; BASES], distance: u32) -> Option<u32> {
    let codes = bases.iter().enumerate().map(|(b, &base)| (b, distance.wrapping_sub(base)));
    codes.into_iter().find(|&(b, code)| (code >> 14) as usize == b).map(|(_, code)| code)
}

/// How a slice stores its columns.
#[derive(Debug)]
pub enum CompressedColumns<'a, B: Backend> {
    /// The kinds of rows determine the columns.
    Kinds(KindParts<'a, B>),
    /// As one-byte codes for these [`MOST_KEYS`](super::MOST_KEYS) distances; code 255 is padding.
    Codes(&'a B::Slice<u32>),
    /// As 16-bit codes relative to one of the slice's four bases, which are given here (`base_of`), or, if these do not
    /// suffice, as columns of 32 bits. A code with all bits set is padding.
    Wide(&'a B::Slice<u32>),
}

/// How a slice stores its values.
#[derive(Debug)]
pub enum CompressedValues<'a, V: Scalar, B: Backend> {
    /// Values are one-byte codes of these values; there are at most 256.
    Codes(&'a B::Slice<V>),
    /// Values are stored in half the precision.
    Lower(&'a B::Slice<V::Lower>),
    /// Values are stored in their own type.
    Full(&'a B::Slice<V>),
}

/// Slices of 32 rows, each as wide as its longest row. A slice of width w has `entries[s + 1] - entries[s]` = 32 w
/// places. Entry k of the row in lane l is at place 32 k + l. The codes of a slice are in
/// `words[word_offsets[s]..word_offsets[s + 1]]`, by quads of four entries: each quad has the words of the columns'
/// codes (1, 2 or 4 words a row, for 8, 16 or 32 bits), then that of the values' codes. Word j of quad q in lane l is
/// at 32 (q r + j) + l, if a quad has r words for each row.
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
    /// The indices of the long rows, ascending.
    pub rows: &'a B::Slice<u32>,
    /// The start of each long row, and the end.
    pub offsets: OffsetsRef<'a, B>,
    /// Columns.
    pub indices: &'a B::Slice<u32>,
    /// Values.
    pub values: &'a B::Slice<V>,
}

/// The number of places of a stencil.
pub(crate) const STENCIL_PLACES: usize = 27;

/// A stencil that contains every kind of rows: a point of a grid and its neighbours within one step along each of three
/// directions. Place 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e points away from the row's own point.
#[derive(Debug)]
pub struct StencilParts<'a, V: Element, B: Backend> {
    /// The distance in rows between lines of the grid.
    pub line: u32,
    /// The distance in rows between planes.
    pub plane: u32,
    /// A mask with a bit for each place that occurs in some kind.
    pub places: u32,
    /// The matrix entry at each place.
    pub numbers: &'a [V; STENCIL_PLACES],
    /// The places of each kind, as a bit mask.
    pub places_of: &'a B::Slice<u32>,
    /// The kind that has an entry at all places, if there is one.
    pub whole: Option<u8>,
    /// The number of points per line, of lines per plane and of planes; `None` unless the rows are the points of a
    /// grid, no row has an entry beyond the boundary, and all values are finite.
    pub grid: Option<[u32; 3]>,
    /// Given if some rows lack more than the neighbours beyond the boundary. Without it, products need not know the
    /// kind of a row.
    pub holes: Option<GridHoles<'a, B>>,
}

/// The kinds of rows that lack exactly the neighbours beyond the boundary. Element 3 (3 p + l) + e is the kind of
/// points in the first (0), an inner (1) or the last (2) plane, line and place in the line; 255 if there is no such
/// kind.
pub type WholeKinds = [u8; STENCIL_PLACES];

/// Marks for a grid on which most rows lack only the neighbours beyond the boundary, or everything but the diagonal
/// entry.
#[derive(Debug)]
pub struct GridMarks<B: Backend> {
    /// Two bits for each row, four rows in a byte, the first row in the lowest bits: 0 for a row that lacks only the
    /// neighbours beyond the boundary, 1 for a row that has only its diagonal entry, 2 for all others. The length is a
    /// multiple of 16 bytes.
    pub of_rows: B::Vec<u8>,
    /// The other rows, ascending, as row << 32 | mask of its stencil places.
    pub listed: B::Vec<u64>,
}

/// A grid on which some rows lack more than the neighbours beyond the boundary.
#[derive(Debug)]
pub struct GridHoles<'a, B: Backend> {
    /// The kinds of the rows that lack only the neighbours beyond the boundary.
    pub whole: &'a WholeKinds,
    /// The missing entries in compact form, if the backend uses them.
    pub marks: Option<&'a GridMarks<B>>,
}

impl<V: Element, B: Backend> StencilParts<'_, V, B> {
    /// Returns whether the stencil is symmetric along lines and across planes: mirrored places have the same value.
    pub fn is_mirrored(&self) -> bool {
        let number = |place: usize| (self.places >> place & 1 != 0).then_some(self.numbers[place]);
        (0..STENCIL_PLACES).all(|place| {
            let (p, rest, e) = (place / 9, place % 9, place % 3);
            number(place) == number(9 * (2 - p) + rest) && number(place) == number(place - e + 2 - e)
        })
    }

    /// Returns the smallest and the largest distance. Distances ascend with the number of the place.
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

/// How all rows are stored, except the long ones.
#[derive(Debug)]
pub enum CompressedBody<'a, V: Scalar, B: CompressedSteps> {
    /// Kinds of rows that include their values, so nothing else is stored. If all kinds are parts of one stencil, it is
    /// given too for backends that use it ([`CompressedSteps::STENCILS`](super::CompressedSteps::STENCILS)).
    Lines(KindParts<'a, B>, &'a B::Slice<V>, Option<StencilParts<'a, V, B>>),
    /// Slices.
    Sections(SectionParts<'a, V, B>),
    /// The balanced form: the entries, in order of rows, in tiles of 2048 each, with padding in the last tile. There
    /// are no long rows, and values are not coded.
    Balanced(&'a B::Balanced, CompressedValues<'a, V, B>),
}

/// A matrix in the compressed format ([`Compressed`](crate::matrix::Compressed) draws it).
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
