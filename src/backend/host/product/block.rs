//! Products of CSR with several interleaved vectors.

use super::Scale;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Promote, Scalar};

/// The minimum number of rows in a task.
const ROWS: usize = 256;

/// Y = alpha A X + beta Y. A row's sums add its nonzeros in order, so the bits depend neither on the number of threads
/// nor on the number of vectors.
pub(super) fn product<O: Offset, V: Promote<T>, T: Scalar>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    vectors: usize,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    if vectors == 0 {
        return;
    }
    y.par_chunks_mut(vectors).with_min_len(ROWS).enumerate().for_each(|(row, y)| {
        let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
        let entries = (&indices[range.clone()], &values[range]);
        // Sums of up to eight vectors stay in registers.
        let mut first = 0;
        while first < vectors {
            first += match vectors - first {
                8.. => part::<8, V, T>(entries, (vectors, first), scale, x, y),
                4.. => part::<4, V, T>(entries, (vectors, first), scale, x, y),
                2.. => part::<2, V, T>(entries, (vectors, first), scale, x, y),
                _ => part::<1, V, T>(entries, (vectors, first), scale, x, y),
            };
        }
    });
}

/// Multiplies a row with WIDTH of the vectors, starting with `first`. Returns WIDTH.
#[inline(always)]
fn part<const WIDTH: usize, V: Promote<T>, T: Scalar>(
    (columns, values): (&[u32], &[V]),
    (vectors, first): (usize, usize),
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) -> usize {
    let mut sums = [T::zero(); WIDTH];
    for (&column, &value) in both(columns, values) {
        let (value, start): (T, usize) = (value.widen(), column as usize * vectors + first);
        let line = &x[start..start + WIDTH];
        for k in 0..WIDTH {
            sums[k] += value * line[k];
        }
    }
    let line = &mut y[first..first + WIDTH];
    for k in 0..WIDTH {
        line[k] = scale.finish(sums[k], line[k]);
    }
    WIDTH
}
