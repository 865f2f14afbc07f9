//! Bands of rows swept in the order of columns: a task a band, whose sums are in the first-level cache.

use super::{Scale, transposed};
use crate::backend::{Host, SweptParts, swept_row_bits};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Scalar, Widen};

/// Row within the band, column and value of every entry of a band, in its order.
fn entries<V: Element>(a: SweptParts<'_, V, Host>, band: usize) -> impl Iterator<Item = (usize, u32, V)> {
    let (steps, bits) = (a.firsts[band] as usize..a.firsts[band + 1] as usize, swept_row_bits(a.height));
    steps.flat_map(move |step| {
        let (entries, base) = (a.starts[step] as usize..a.starts[step + 1] as usize, a.bases[step]);
        let entry = move |(&place, &value): (&u32, &V)| {
            let (row, column) = (place & ((1 << bits) - 1), place >> bits);
            (row as usize, base + column, value)
        };
        a.places[entries.clone()].iter().zip(&a.values[entries]).map(entry)
    })
}

/// y = alpha A x + beta y.
pub(super) fn product<V: Widen<T>, T: Scalar>(
    a: SweptParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    y.par_chunks_mut(a.height).enumerate().for_each(|(band, y)| {
        let mut sums = vec![T::zero(); y.len()];
        entries(a, band).for_each(|(row, column, v)| sums[row] += value(v) * x[column as usize]);
        y.iter_mut().zip(sums).for_each(|(y, sum)| *y = scale.finish(sum, *y));
    });
}

/// y = alpha A^T x + beta y.
pub(super) fn transposed<V: Widen<T>, T: Scalar>(
    a: SweptParts<'_, V, Host>,
    value: impl Fn(V) -> T + Sync + Send + Copy,
    scale: Scale<T>,
    x: &[T],
    y: &mut [T],
) {
    let bands = a.firsts.len() - 1;
    let blocks = transposed::blocks(a.values.len(), a.columns);
    let block = |b| transposed::block(bands, blocks, b);
    let range = |b| transposed::hull(block(b).flat_map(|band| entries(a, band)).map(|(_, column, _)| column));
    let scatter = |b, sums: &mut [T], base| {
        for band in block(b) {
            let x = &x[band * a.height..];
            entries(a, band).for_each(|(row, column, v)| sums[column as usize - base] += value(v) * x[row]);
        }
    };
    transposed::collect(blocks, &range, &scatter, scale, y);
}
