//! Diagonals (DIA).

use crate::backend::{Backend, Host};
use crate::scalar::{Element, Scalar};

/// The number of rows in a slice of [`DiaParts`].
#[doc(hidden)]
pub const DIA_SECTION: usize = 32;

/// A matrix stored by diagonals: each row has an entry for each of the distances (column - row) that occur, in slices
/// of `C` = [`DIA_SECTION`] rows. For `d` distances, entry `k` of row `i`, in column `i + distances[k]`, is at
/// `(i / C * d + k) * C + i % C`, so a slice is contiguous, one diagonal after another. Columns are not stored. The
/// last slice has `C` rows too.
///
/// If the matrix equals its transpose, it may store only the distances >= 0: entry (i, i - d) is entry (i - d, i), on
/// diagonal d. `mirrored` is the number of diagonals that are used twice.
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
    /// The number of diagonals, counted from the last, that also represent their mirror images left of the main
    /// diagonal: none, or all to the right of it.
    pub mirrored: usize,
    /// Column minus row of each stored diagonal, ascending.
    pub distances: &'a B::Slice<i64>,
    /// If diagonals are mirrored, a pair for each entry of a row in the order of columns: its distance, and its
    /// position relative to the row's entry on the first diagonal. A mirror image is `(d - 1) C` places before that, or
    /// one slice earlier if its distance modulo `C` exceeds `i % C`.
    pub steps: &'a B::Slice<i64>,
    /// Values, and [`no_entry`] for missing entries.
    pub values: &'a B::Slice<V>,
}

impl<V: Element, B: Backend> DiaParts<'_, V, B> {
    /// Returns the number of diagonals with an entry, whether stored or represented by a mirror image.
    pub fn diagonals(&self) -> usize {
        B::len(self.distances) + self.mirrored
    }
}

/// Returns the position of the first value of a row if there are this many diagonals. Further values follow at
/// distances of [`DIA_SECTION`].
pub(crate) fn first_place(row: usize, diagonals: usize) -> usize {
    row / DIA_SECTION * (diagonals * DIA_SECTION) + row % DIA_SECTION
}

impl<'a, V: Scalar> DiaParts<'a, V, Host> {
    /// Returns the position of a row's entry on the first stored diagonal.
    pub(crate) fn base(self, row: usize) -> usize {
        first_place(row, self.distances.len())
    }

    /// Returns the column and value of each entry of a row that is not stored itself, but as its mirror image.
    pub(crate) fn images(self, row: usize) -> impl Iterator<Item = (usize, V)> + 'a {
        let mirrored = self.distances.iter().enumerate().rev().take(self.mirrored);
        let places =
            mirrored.filter_map(move |(k, &distance)| Some((k, row.checked_sub(distance as usize)?)));
        let entries =
            places.map(move |(k, column)| (column, self.values[self.base(column) + k * DIA_SECTION]));
        entries.filter(|(_, value)| !is_no_entry(*value))
    }

    /// Returns the column and value of each entry of a row.
    pub(crate) fn row(self, row: usize) -> impl Iterator<Item = (usize, V)> + 'a {
        let values = self.values.iter().skip(self.base(row)).step_by(DIA_SECTION);
        let stored = self.distances.iter().zip(values).filter(|(_, value)| !is_no_entry(**value));
        self.images(row)
            .chain(stored.map(move |(distance, &value)| ((row as i64 + distance) as usize, value)))
    }
}

/// Returns the number of distances right of the main diagonal if each has its mirror image in the list, else 0: the
/// possible value of [`DiaParts::mirrored`].
pub(crate) fn mirrored(distances: &[i64]) -> usize {
    let alike = distances.iter().zip(distances.iter().rev()).all(|(left, right)| *left == -right);
    if alike { distances.len() / 2 } else { 0 }
}

/// Returns [`DiaParts::steps`] for these stored diagonals.
pub(crate) fn steps(distances: &[i64], mirrored: usize) -> Vec<i64> {
    let (section, height) = ((distances.len() * DIA_SECTION) as i64, DIA_SECTION as i64);
    let stored = distances.iter().enumerate().map(|(k, &distance)| [distance, k as i64 * height]);
    let images = stored.clone().rev().take(mirrored);
    let images = images.map(|[d, place]| [-d, place - d / height * section - d % height]);
    if mirrored == 0 { Vec::new() } else { images.chain(stored).flatten().collect() }
}

/// Marks a missing entry in [`DiaParts`]: every bit is set, a NaN that arithmetic never produces.
pub fn no_entry<V: Scalar>() -> V {
    V::from_bits([u64::MAX; 2])
}

/// Returns whether a value is [`no_entry`].
#[inline(always)]
pub fn is_no_entry<V: Scalar>(value: V) -> bool {
    value.bits() == no_entry::<V>().bits()
}
