//! Diagonals.

use crate::backend::{Backend, Host};
use crate::scalar::{Element, Scalar};

/// Rows of a section of [`DiaParts`].
#[doc(hidden)]
pub const DIA_SECTION: usize = 32;

/// Diagonals: of every row an entry for each of the distances (column - row) that occur, in sections of [`DIA_SECTION`]
/// rows. Entry `k` of row `i`, in column `i + distances[k]`, is at `(i / C * d + k) * C + i % C` for `d` distances and
/// sections of `C` rows; so a section lies in one piece, diagonal after diagonal. No column is stored. The last section
/// has `C` rows too.
///
/// Of a matrix that is its own transpose only distances >= 0 are stored, where it has others: entry (i, i - d) is entry
/// (i - d, i), on diagonal d. `mirrored` tells.
///
/// ```text
/// C = 2 (for the drawing)
/// distances  -3 -1 0 1 2
/// values      *  * | *  * | 1  * | *  8 | 7  *        rows 0 and 1
///             *  2 | 4  * | 3  1 | *  * | *  *        rows 2 and 3      * no entry: every bit is set
///
/// | 1 5 . . |  distances   0 1                                mirrored 1
/// | 5 2 6 . |  values      1  2 | 5  6                         rows 0 and 1
/// | . 6 3 7 |              3  4 | 7  *                         rows 2 and 3
/// | . . 7 4 |
/// ```
#[derive(Debug)]
pub struct DiaParts<'a, V: Element, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// How many of the diagonals, the last ones, stand for their mirror images left of the main one too: none, or all
    /// to the right of it.
    pub mirrored: usize,
    /// Column less row of each stored diagonal, ascending.
    pub distances: &'a B::Slice<i64>,
    /// Where anything is mirrored, a pair for each entry of a row in the order of columns: its distance, and how many
    /// places behind the row's place on the first diagonal it is. A mirror image whose distance leaves a remainder of
    /// more than `i % C` on division by `C` is `(d - 1) C` places before that: one section further up.
    pub steps: &'a B::Slice<i64>,
    /// Values, and [`no_entry`] where there is none.
    pub values: &'a B::Slice<V>,
}

impl<V: Element, B: Backend> DiaParts<'_, V, B> {
    /// How many diagonals have an entry, stored or as a mirror image.
    pub fn diagonals(&self) -> usize {
        B::len(self.distances) + self.mirrored
    }
}

/// Where the first of a row's values lies among so many diagonals; the others follow, a section's height apart.
pub(crate) fn first_place(row: usize, diagonals: usize) -> usize {
    row / DIA_SECTION * (diagonals * DIA_SECTION) + row % DIA_SECTION
}

impl<'a, V: Scalar> DiaParts<'a, V, Host> {
    /// Where a row's place on the first stored diagonal is.
    pub(crate) fn base(self, row: usize) -> usize {
        first_place(row, self.distances.len())
    }

    /// Column and value of each entry of a row that is a mirror image.
    pub(crate) fn images(self, row: usize) -> impl Iterator<Item = (usize, V)> + 'a {
        let mirrored = self.distances.iter().enumerate().rev().take(self.mirrored);
        let places =
            mirrored.filter_map(move |(k, &distance)| Some((k, row.checked_sub(distance as usize)?)));
        let entries =
            places.map(move |(k, column)| (column, self.values[self.base(column) + k * DIA_SECTION]));
        entries.filter(|(_, value)| !is_no_entry(*value))
    }

    /// Column and value of each entry of a row.
    pub(crate) fn row(self, row: usize) -> impl Iterator<Item = (usize, V)> + 'a {
        let values = self.values.iter().skip(self.base(row)).step_by(DIA_SECTION);
        let stored = self.distances.iter().zip(values).filter(|(_, value)| !is_no_entry(**value));
        self.images(row)
            .chain(stored.map(move |(distance, &value)| ((row as i64 + distance) as usize, value)))
    }
}

/// How many of these distances are to the right of the main diagonal, where each has its mirror image among them and
/// there are such: what [`DiaParts::mirrored`] may be.
pub(crate) fn mirrored(distances: &[i64]) -> usize {
    let alike = distances.iter().zip(distances.iter().rev()).all(|(left, right)| *left == -right);
    if alike { distances.len() / 2 } else { 0 }
}

/// What [`DiaParts::steps`] are where so many of these stored diagonals are mirrored.
pub(crate) fn steps(distances: &[i64], mirrored: usize) -> Vec<i64> {
    let (section, height) = ((distances.len() * DIA_SECTION) as i64, DIA_SECTION as i64);
    let stored = distances.iter().enumerate().map(|(k, &distance)| [distance, k as i64 * height]);
    let images = stored.clone().rev().take(mirrored);
    let images = images.map(|[d, place]| [-d, place - d / height * section - d % height]);
    if mirrored == 0 { Vec::new() } else { images.chain(stored).flatten().collect() }
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
