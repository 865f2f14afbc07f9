//! Right-hand sides and solutions in the caller's memory, and in lanes.

use crate::scalar::Scalar;

/// Right-hand sides that are solved for at once: two registers of four numbers for each row, and eight for four columns
/// of a factor.
pub(super) const LANES: usize = 8;

/// Rows that are moved between columns and lanes at a time.
const ROWS: usize = 64;

/// Right-hand sides in the caller's memory.
#[derive(Debug, Clone, Copy)]
pub enum RightHandSides<'a, T> {
    /// One after another.
    Columns(&'a [T]),
    /// Row by row: the first entry of each, then the second of each.
    Rows(&'a [T]),
}

impl<'a, T, B: AsRef<[T]> + ?Sized> From<&'a B> for RightHandSides<'a, T> {
    fn from(columns: &'a B) -> Self {
        Self::Columns(columns.as_ref())
    }
}

impl<S: Scalar> RightHandSides<'_, S> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Columns(values) | Self::Rows(values) => values.len(),
        }
    }

    /// The `count` right-hand sides from `first` on in lanes; the lanes behind them are zero.
    pub(super) fn load<T: Scalar, const N: usize>(
        &self,
        (n, first, count): (usize, usize, usize),
        lanes: &mut Vec<[T; N]>,
        convert: impl Fn(S) -> T,
    ) {
        lanes.clear();
        lanes.resize(n, [T::default(); N]);
        match self {
            Self::Columns(values) => {
                for (number, lanes) in lanes.chunks_mut(ROWS).enumerate() {
                    for v in 0..count {
                        let column = &values[(first + v) * n + number * ROWS..];
                        lanes.iter_mut().zip(column).for_each(|(lanes, &value)| lanes[v] = convert(value));
                    }
                }
            }
            Self::Rows(values) => {
                for (lanes, row) in lanes.iter_mut().zip(values.chunks_exact(values.len() / n)) {
                    lanes.iter_mut().zip(&row[first..first + count]).for_each(|(lane, &value)| {
                        *lane = convert(value);
                    });
                }
            }
        }
    }
}

/// Writes solutions in lanes one after another, as many as there is room for.
pub(super) fn store<T: Scalar, S: Scalar, const N: usize>(
    found: &[[T; N]],
    x: &mut [S],
    convert: impl Fn(T) -> S,
) {
    let n = found.len();
    for (number, found) in found.chunks(ROWS).enumerate() {
        for (v, column) in x.chunks_exact_mut(n).enumerate() {
            let column = &mut column[number * ROWS..][..found.len()];
            column.iter_mut().zip(found).for_each(|(x, found)| *x = convert(found[v]));
        }
    }
}
