//! The compressed format.

mod compress;
mod options;
mod size;

pub use options::CompressedOptions;

use super::Csr;
use super::kept::Kept;
use super::product::product_op;
use super::stencil::Stencil;
use crate::backend::{
    Backend, CompressedBody, CompressedColumns, CompressedParts, CompressedSteps, CompressedValues,
    Conversions, Host, KindParts, LongParts, Offsets, SectionParts, WindowOrder, balanced_bytes,
};
use crate::error::Result;
use crate::scalar::{Element, Scalar};

/// A matrix stored in as few bytes as its repetitions allow, without losing a bit. Products then move fewer bytes, and
/// bytes determine their time.
///
/// One of five forms is chosen for each matrix:
///
/// 1. **Lines.** If there are at most 255 kinds of rows, distinguished by distances (column - row) and values, one
///    byte per row is stored: stencils with constant coefficients. If the kinds are parts of one stencil with at most
///    one step along each of three directions of a grid, that is stored too: a GPU then reads x once for several rows,
///    and nothing of the matrix if the rows are all points of a grid and no point is missing.
/// 2. **Kinds.** If there are at most 255 kinds of rows by distances only, one byte per row replaces its columns:
///    structured grids, also with several unknowns per point.
/// 3. **Codes.** If there are at most 255 distances, one byte per entry.
/// 4. **Wide.** Else two bytes per entry: 16 bits above the smallest distance of the slice, or, in a slice that
///    spans more, 14 bits above one of four distances; if that is not enough either, the slice has columns of 32 bits.
///
/// In 2 to 4, values are one-byte codes if at most 256 different ones occur, else they have half the width if that is
/// exact, else full width. They are stored in slices of 32 rows, each as wide as its longest row; if that pads more
/// than a twentieth, rows are sorted by length within windows of 256. Rows with more than 8 times the mean number of
/// entries plus 64 stay in CSR (2 times plus 4, if slices would still pad by half).
///
/// 5. **Balanced.** If that takes fewer bytes than 2 to 4 with their padding and long rows, a GPU distributes
///    entries evenly, 2048 to a tile in the order of CSR, provided that the columns of every tile fit 16 bits: two
///    bytes and a bit per entry in addition to its value, which is not coded, and two bytes per row, whatever the row
///    lengths.
///
/// The running example has codes for both columns and values. Distances -3 -1 0 1 2 have codes 0 to 4, values 1 2 3 4 7
/// 8 codes 0 to 5; four codes of a row share a word, and the words of a slice are interleaved by row:
///
/// ```text
/// | 1 . 7 . |     columns  2 4 * * | 3 * * * | 1 2 * * | 0 2 * *       * = 255: no entry
/// | . . 8 . |     values   0 4     | 5       | 3 2     | 1 0
/// | . 4 3 . |
/// | 2 . . 1 |     and 28 rows of padding, so that this matrix takes more than CSR; large ones do not
/// ```
///
/// Bytes a nonzero: almost none, 1, 2 or 4 for its column; almost none, 1, or half or full width for its value.
/// Products have the same bits in every run, and padding is never multiplied with x.
///
/// Source: Kourtis, Goumas and Koziris, "Optimizing sparse matrix-vector multiplication using index and value
/// compression", Computing Frontiers 2008, for dictionaries of values and distances; kinds of rows extend the idea from
/// entries to rows.
pub struct Compressed<V: Scalar, B: CompressedSteps = Host> {
    rows: usize,
    columns: usize,
    nonzeros: usize,
    padding: usize,
    body: Body<V, B>,
    long: Option<Long<V, B>>,
    transposed: Kept<Self>,
}

/// The indices of long rows, and their entries in CSR.
type Long<V, B> = (<B as Backend>::Vec<u32>, Csr<V, B>);

/// The kind of each row, and the distances of each kind.
struct KindTable<B: Backend> {
    of_row: B::Vec<u8>,
    starts: B::Vec<u32>,
    distances: B::Vec<u32>,
}

impl<B: Backend> KindTable<B> {
    fn parts(&self) -> KindParts<'_, B> {
        KindParts { of_row: &self.of_row, starts: &self.starts, distances: &self.distances }
    }

    fn bytes(&self) -> usize {
        B::len(&*self.of_row) + 4 * (B::len(&*self.starts) + B::len(&*self.distances))
    }
}

/// The storage of columns.
enum Columns<B: Backend> {
    Kinds(KindTable<B>),
    /// The distance of each code, and the number of codes.
    Codes(B::Vec<u32>, usize),
    Wide(B::Vec<u32>),
}

/// The storage of values: codes of a table, the narrower type if that is lossless, or their own type.
enum Values<V: Scalar, B: Backend> {
    Codes(B::Vec<V>),
    Lower(B::Vec<V::Lower>),
    Full(B::Vec<V>),
}

impl<V: Scalar, B: Backend> Values<V, B> {
    fn parts(&self) -> CompressedValues<'_, V, B> {
        match self {
            Values::Codes(values) => CompressedValues::Codes(&**values),
            Values::Lower(values) => CompressedValues::Lower(&**values),
            Values::Full(values) => CompressedValues::Full(&**values),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Values::Codes(values) | Values::Full(values) => B::len(&**values) * size_of::<V>(),
            Values::Lower(values) => B::len(&**values) * size_of::<V::Lower>(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Values::Codes(values) => format!("values as codes of {}", B::len(&**values)),
            Values::Lower(_) => format!("values in {}", V::Lower::NAME),
            Values::Full(_) => format!("values in {}", V::NAME),
        }
    }
}

/// Rows in slices of 32, padded to the longest row of each slice.
struct Sections<V: Scalar, B: Backend> {
    order: Option<WindowOrder<B>>,
    columns: Columns<B>,
    values: Values<V, B>,
    entries: Offsets<B>,
    word_offsets: Offsets<B>,
    words: B::Vec<u32>,
}

/// The storage of all rows that are not long: kinds of rows with values, slices, or tiles of equal size.
enum Body<V: Scalar, B: CompressedSteps> {
    Lines(KindTable<B>, B::Vec<V>, Option<Stencil<V, B>>),
    Sections(Sections<V, B>),
    Balanced(B::Balanced, Values<V, B>),
}

impl<V: Scalar, B: CompressedSteps> Compressed<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "compressed";

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries, padding not counted.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// Entries stored beyond the nonzeros.
    pub fn padding(&self) -> usize {
        self.padding
    }

    /// How columns and values are stored, for reports: `27 kinds of rows`, `columns in codes, values in codes`.
    pub fn describe(&self) -> String {
        let long =
            self.long.as_ref().map_or(String::new(), |(rows, _)| format!(", {} long rows", B::len(&**rows)));
        let kinds = |table: &KindTable<B>| B::len(&*table.starts) - 1;
        let body = match &self.body {
            Body::Lines(table, _, stencil) => {
                let of = stencil.as_ref().map_or("", |_| ", parts of a stencil");
                format!("{} kinds of rows, values included{of}", kinds(table))
            }
            Body::Sections(s) => {
                let columns = match &s.columns {
                    Columns::Kinds(table) => format!("columns by {} kinds of rows", kinds(table)),
                    Columns::Codes(_, count) => format!("columns as codes of {count} distances"),
                    Columns::Wide(_) => "columns in 16 or 32 bits".into(),
                };
                let values = s.values.describe();
                let order = if s.order.is_some() { ", rows by length" } else { "" };
                format!("{columns}, {values}{order}")
            }
            Body::Balanced(_, values) => {
                format!("dealt out evenly, columns in 16 bits, {}", values.describe())
            }
        };
        body + &long
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> CompressedParts<'_, V, B> {
        let body = match &self.body {
            Body::Lines(table, values, stencil) => {
                CompressedBody::Lines(table.parts(), values, stencil.as_ref().map(Stencil::parts))
            }
            Body::Sections(s) => CompressedBody::Sections(SectionParts {
                order: s.order.as_ref().map(WindowOrder::as_ref),
                columns: match &s.columns {
                    Columns::Kinds(table) => CompressedColumns::Kinds(table.parts()),
                    Columns::Codes(distances, _) => CompressedColumns::Codes(&**distances),
                    Columns::Wide(bases) => CompressedColumns::Wide(&**bases),
                },
                values: s.values.parts(),
                entries: s.entries.as_ref(),
                word_offsets: s.word_offsets.as_ref(),
                words: &s.words,
            }),
            Body::Balanced(tiles, values) => CompressedBody::Balanced(tiles, values.parts()),
        };
        let long = self.long.as_ref().map(|(rows, csr)| {
            let csr = csr.parts();
            LongParts { rows: &**rows, offsets: csr.offsets, indices: csr.indices, values: csr.values }
        });
        CompressedParts { rows: self.rows, columns: self.columns, body, long }
    }

    /// Bytes of the matrix that a product reads: all arrays, except the kinds of rows if a stencil on a grid needs
    /// none.
    pub(super) fn read_bytes(&self) -> usize {
        let stencil = match &self.body {
            Body::Lines(_, _, stencil) => stencil.as_ref(),
            Body::Sections(_) | Body::Balanced(..) => None,
        };
        stencil.and_then(Stencil::bytes_without_kinds).unwrap_or_else(|| self.storage_bytes())
    }

    /// Bytes of all arrays.
    pub fn storage_bytes(&self) -> usize {
        let long = self.long.as_ref().map_or(0, |(rows, csr)| 4 * B::len(&**rows) + csr.storage_bytes());
        let body = match &self.body {
            Body::Lines(table, values, stencil) => {
                let stencil = stencil.as_ref().map_or(0, Stencil::bytes);
                table.bytes() + B::len(&**values) * size_of::<V>() + stencil
            }
            Body::Sections(s) => {
                let columns = match &s.columns {
                    Columns::Kinds(table) => table.bytes(),
                    Columns::Codes(table, _) | Columns::Wide(table) => 4 * B::len(&**table),
                };
                let order = if s.order.is_some() { self.rows } else { 0 };
                let offsets = s.entries.as_ref().bytes() + s.word_offsets.as_ref().bytes();
                columns + s.values.bytes() + order + offsets + 4 * B::len(&*s.words)
            }
            Body::Balanced(_, values) => balanced_bytes(self.rows, self.nonzeros) + values.bytes(),
        };
        body + long
    }

    product_op!(compressed, " On a device the first product with the transpose makes a compressed, transposed copy, \
        which is kept; while it is made, the matrix is in memory in CSR twice."; transposed by compressed);
}

impl<V: Scalar, B: Conversions> Compressed<V, B> {
    /// The same entries in CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        // There is one more count than rows; the scan puts the total there.
        let mut lengths = backend.zeros(self.rows + 1)?;
        let (counts, _) = B::split_mut(&mut lengths, self.rows);
        backend.compressed_lengths(self.parts(), counts)?;
        let mut offsets = Offsets::zeros(backend, self.rows + 1, self.nonzeros)?;
        match &mut offsets {
            Offsets::Lower(o) => backend.exclusive_scan(&lengths, o)?,
            Offsets::Wide(o) => backend.exclusive_scan(&lengths, o)?,
        }
        let mut indices = backend.buffer(self.nonzeros)?;
        let mut values = backend.buffer(self.nonzeros)?;
        backend.compressed_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }
}
