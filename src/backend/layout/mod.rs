//! The memory layout of each format, as borrowed parts: all that the kernels of a backend read.
//!
//! The matrix of the examples, 4 x 4 with seven nonzeros:
//!
//! ```text
//!     | 1 . 7 . |
//! A = | . . 8 . |
//!     | . 4 3 . |
//!     | 2 . . 1 |
//! ```
//!
//! All indices count from zero. Column indices have 32 bits, row offsets 32 or 64. Values of type `V` may have a lower
//! precision than the products. Padding is never multiplied with `x`, so an infinite or NaN entry of `x` reaches only
//! the rows that have an entry in its column.

mod blocks;
mod dia;
mod offsets;
mod order;
mod rows;

pub use blocks::*;
pub use dia::*;
pub use offsets::*;
pub use order::*;
pub use rows::*;

use crate::backend::Backend;
use crate::scalar::Element;

/// Compressed sparse rows: row `i` consists of the nonzeros `offsets[i]..offsets[i + 1]`, with ascending columns.
///
/// ```text
/// offsets  0   2   3   5   7
/// columns  0 2 | 2 | 1 2 | 0 3
/// values   1 7 | 8 | 4 3 | 2 1
/// ```
#[derive(Debug)]
pub struct CsrParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The start of each row.
    pub offsets: OffsetsRef<'a, B>,
    /// Column of each nonzero.
    pub indices: &'a B::Slice<u32>,
    /// Value of each nonzero.
    pub values: &'a B::Slice<V>,
    /// Properties of the rows that a backend has determined.
    pub shape: &'a RowShape<B>,
}

impl<'a, V: Element, B: Backend> CsrParts<'a, V, B> {
    /// The same pattern with other values.
    pub(crate) fn with_values<S: Element>(self, values: &'a B::Slice<S>) -> CsrParts<'a, S, B> {
        let Self { rows, columns, offsets, indices, shape, .. } = self;
        CsrParts { rows, columns, offsets, indices, values, shape }
    }
}

/// Coordinates: row, column and value of each nonzero, sorted by row, then column.
///
/// ```text
/// rows     0 0 1 2 2 3 3
/// columns  0 2 2 1 2 0 3
/// values   1 7 8 4 3 2 1
/// ```
#[derive(Debug)]
pub struct CooParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Row of each nonzero, ascending.
    pub row_indices: &'a B::Slice<u32>,
    /// Column of each nonzero, ascending within a row.
    pub column_indices: &'a B::Slice<u32>,
    /// Value of each nonzero.
    pub values: &'a B::Slice<V>,
}

/// ELLPACK: every row padded to the same width, stored column by column: entry `k` of row `i` is at `k * rows + i`.
///
/// ```text
/// lengths  2 1 2 2            width 2
/// columns  0 2 1 0 | 2 * 2 3
/// values   1 8 4 2 | 7 * 3 1      * padding: index 0, value 0, never read by a product
/// ```
#[derive(Debug)]
pub struct EllParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Entries of each padded row.
    pub width: usize,
    /// Entries of each row without padding.
    pub lengths: &'a B::Slice<u32>,
    /// `width * rows` columns.
    pub indices: &'a B::Slice<u32>,
    /// `width * rows` values.
    pub values: &'a B::Slice<V>,
}

/// Jagged diagonals: rows ordered from longest to shortest, then stored column by column without padding: entry `k`
/// of the row at position `p` is at `offsets[k] + p`.
///
/// ```text
/// order    0 2 3 1        (row 1 is the shortest)
/// offsets  0 4 7
/// columns  0 1 0 2 | 2 2 3
/// values   1 4 2 8 | 7 3 1
/// ```
#[derive(Debug)]
pub struct JdsParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The row at each position.
    pub order: RowOrderRef<'a, B>,
    /// The start of each jagged diagonal, and the end.
    pub offsets: OffsetsRef<'a, B>,
    /// Column of each nonzero.
    pub indices: &'a B::Slice<u32>,
    /// Value of each nonzero.
    pub values: &'a B::Slice<V>,
}

/// SELL-C-sigma: slices of C rows, each padded to its own longest row and stored column by column: entry `k` of the row
/// at position `p` is at `offsets[p / C] + k * C + p % C`. Within windows of sigma rows, the rows are ordered from
/// longest to shortest, so that rows of similar length share a slice. The last slice has C rows too.
///
/// ```text
/// C = 2, sigma = 4
/// order    0 2 | 3 1
/// lengths  2 2 | 2 1
/// offsets  0 4 8
/// columns  0 1 2 2 | 0 2 3 *
/// values   1 4 7 3 | 2 8 1 *
/// ```
#[derive(Debug)]
pub struct SellParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Rows of a slice: C.
    pub height: usize,
    /// Entries of the longest row.
    pub widest: usize,
    /// Rows of a sorting window: sigma, a multiple of C, or 1 if rows keep their order.
    pub window: usize,
    /// The row at each position; `None` if rows keep their order. It maps each window onto itself.
    pub order: Option<RowOrderRef<'a, B>>,
    /// Entries, without padding, of the row at each position.
    pub lengths: &'a B::Slice<u32>,
    /// The start of each slice, and the end.
    pub offsets: OffsetsRef<'a, B>,
    /// Columns. In padding, the value that [`Conversions::csr_to_sell`](super::Conversions::csr_to_sell) of the backend
    /// writes; its product may recognise padding by it.
    pub indices: &'a B::Slice<u32>,
    /// Values, including padding.
    pub values: &'a B::Slice<V>,
}

macro_rules! copy_parts {
    ($($name:ident),*) => {$(
        impl<V: Element, B: Backend> Clone for $name<'_, V, B> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<V: Element, B: Backend> Copy for $name<'_, V, B> {}
    )*};
}
copy_parts!(CsrParts, CooParts, EllParts, JdsParts, SellParts, DiaParts);
