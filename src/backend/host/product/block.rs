//! CSR with several vectors at once, interleaved: a row of A meets rows of X.

use super::Scale;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar, Widen};

/// Vectors whose sums stay in registers together.
const AT_ONCE: usize = 8;
/// Rows that one task takes at least.
const ROWS: usize = 256;

/// Y = alpha A X + beta Y. A row's sums run over its nonzeros in order, so the bits do not depend on the number of threads, nor on how
/// many vectors there are.
pub(super) fn product<O: Offset, V: Widen<T>, T: Scalar>(
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
        let (columns, values) = (&indices[range.clone()], &values[range]);
        for first in (0..vectors).step_by(AT_ONCE) {
            let width = AT_ONCE.min(vectors - first);
            let mut sums = [T::zero(); AT_ONCE];
            for (&column, &value) in columns.iter().zip(values) {
                let (value, start): (T, usize) = (value.widen(), column as usize * vectors + first);
                if width == AT_ONCE {
                    let line = &x[start..start + AT_ONCE];
                    sums.iter_mut().zip(line).for_each(|(sum, &x)| *sum += value * x);
                } else {
                    let line = &x[start..start + width];
                    sums.iter_mut().zip(line).for_each(|(sum, &x)| *sum += value * x);
                }
            }
            let line = y[first..first + width].iter_mut();
            line.zip(sums).for_each(|(y, sum)| *y = scale.finish(sum, *y));
        }
    });
}
