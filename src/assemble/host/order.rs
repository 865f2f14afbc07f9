//! Finds out which order the triplets already have. Those of most files are sorted by column or by row.

use crate::assemble::Symmetry;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;

/// The order that triplets already have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// All entries are stored, not only one triangle, and they ascend by (row, column).
    Sorted {
        /// Whether some entries have the same row and column.
        duplicates: bool,
    },
    /// The columns of each row ascend, but the rows are mixed.
    RowsInOrder,
    /// No order is known.
    Any,
}

/// The number of pairs that one task compares before it checks whether another task has found a pair out of order.
const BLOCK: usize = 1 << 14;

/// Returns whether `good(k)` holds for all k in 1..n. It stops soon after the first k for which it does not.
fn all_neighbours(n: usize, good: impl Fn(usize) -> bool + Sync) -> bool {
    let blocks = n.div_ceil(BLOCK);
    // The first block is tested alone, because most unsorted inputs are unsorted from the start.
    let block = |b: usize| (b * BLOCK.max(1)..((b + 1) * BLOCK).min(n)).skip(usize::from(b == 0)).all(&good);
    (blocks == 0 || block(0)) && (1..blocks).into_par_iter().all(block)
}

pub(super) fn arrangement(is: &[u32], js: &[u32], symmetry: Symmetry) -> Arrangement {
    let n = is.len();
    let place = |k: usize| (is[k], js[k]);
    if symmetry == Symmetry::General {
        if all_neighbours(n, |k| place(k - 1) < place(k)) {
            Arrangement::Sorted { duplicates: false }
        } else if all_neighbours(n, |k| place(k - 1) <= place(k)) {
            Arrangement::Sorted { duplicates: true }
        } else if all_neighbours(n, |k| js[k - 1] <= js[k]) {
            Arrangement::RowsInOrder
        } else {
            Arrangement::Any
        }
    } else {
        // One sorted triangle gives every row its columns in ascending order. Take the lower triangle by columns. Row r
        // first gets its stored entries, from the columns before r. Column r then gives it the diagonal entry and the
        // mirror images (r, i) with ascending i. The other three cases are alike.
        let mirrored = |k: usize| (js[k], is[k]);
        let triangle = all_neighbours(n + 1, |k| is[k - 1] >= js[k - 1])
            || all_neighbours(n + 1, |k| is[k - 1] <= js[k - 1]);
        let ascending = || {
            all_neighbours(n, |k| mirrored(k - 1) <= mirrored(k))
                || all_neighbours(n, |k| place(k - 1) <= place(k))
        };
        if triangle && ascending() { Arrangement::RowsInOrder } else { Arrangement::Any }
    }
}

/// Adds neighbouring entries that have the same row and column. Overwrites the input with the sums.
pub(super) fn sum_neighbours<T: Scalar>(is: &mut Vec<u32>, js: &mut Vec<u32>, values: &mut Vec<T>) {
    let mut last = 0;
    for k in 1..is.len() {
        if (is[k], js[k]) == (is[last], js[last]) {
            let value = values[k];
            values[last] += value;
        } else {
            last += 1;
            (is[last], js[last], values[last]) = (is[k], js[k], values[k]);
        }
    }
    let length = is.len().min(last + 1);
    is.truncate(length);
    js.truncate(length);
    values.truncate(length);
    js.shrink_to_fit();
    values.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrangements_are_recognised() {
        let general = |is: &[u32], js: &[u32]| arrangement(is, js, Symmetry::General);
        assert_eq!(general(&[], &[]), Arrangement::Sorted { duplicates: false });
        assert_eq!(general(&[0, 0, 1], &[0, 2, 1]), Arrangement::Sorted { duplicates: false });
        assert_eq!(general(&[0, 0, 1], &[0, 0, 1]), Arrangement::Sorted { duplicates: true });
        assert_eq!(general(&[1, 0, 1], &[0, 1, 1]), Arrangement::RowsInOrder);
        assert_eq!(general(&[1, 0, 1], &[2, 1, 1]), Arrangement::Any);
        let half = |is: &[u32], js: &[u32]| arrangement(is, js, Symmetry::Symmetric);
        assert_eq!(half(&[0, 1, 1], &[0, 0, 1]), Arrangement::RowsInOrder);
        assert_eq!(half(&[0, 1, 1], &[0, 1, 0]), Arrangement::Any);
        assert_eq!(half(&[0, 1, 0], &[0, 0, 1]), Arrangement::Any);
        // These are out of order only beyond the first block.
        let mut js: Vec<u32> = (0..40_000).collect();
        let is = vec![7; js.len()];
        assert_eq!(general(&is, &js), Arrangement::Sorted { duplicates: false });
        js[20_000] = 3;
        assert_eq!(general(&is, &js), Arrangement::Any);
    }
}
