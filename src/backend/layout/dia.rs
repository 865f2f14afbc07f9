//! Diagonals.

use crate::backend::Backend;
use crate::scalar::{Element, Scalar};

/// Rows of a section of [`DiaParts`].
pub const DIA_SECTION: usize = 32;

/// Diagonals: of every row an entry for each of the distances (column - row) that occur, in sections of [`DIA_SECTION`]
/// rows. Entry `k` of row `i`, in column `i + distances[k]`, is at `(i / C * d + k) * C + i % C` for `d` distances and
/// sections of `C` rows; so a section lies in one piece, diagonal after diagonal. No column is stored. The last section
/// has `C` rows too.
///
/// ```text
/// C = 2 (for the drawing)
/// distances  -3 -1 0 1 2
/// values      *  * | *  * | 1  * | *  8 | 7  *        rows 0 and 1
///             *  2 | 4  * | 3  1 | *  * | *  *        rows 2 and 3      * no entry: every bit is set
/// ```
#[derive(Debug)]
pub struct DiaParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Column less row of each diagonal, ascending.
    pub distances: &'a B::Slice<i64>,
    /// Values, and [`no_entry`] where there is none.
    pub values: &'a B::Slice<V>,
}

/// What stands in [`DiaParts`] where a row has no entry: every bit set, which is a NaN that no arithmetic gives.
pub fn no_entry<V: Scalar>() -> V {
    V::from_bits([u64::MAX; 2])
}

/// Whether a value is [`no_entry`].
#[inline(always)]
pub fn is_no_entry<V: Scalar>(value: V) -> bool {
    value.bits() == no_entry::<V>().bits()
}
