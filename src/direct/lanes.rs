//! Loops over several vectors at once, whose entries of a row are side by side: `[T; N]`.
//!
//! An entry of a factor is read once for all vectors, and each lane of a register works for a vector of its own. In a
//! vector the operations are those of a vector alone, in the same order, so that it has the same bits in any company.

use super::Factorable;
use crate::parallel::both;

/// Computes y - x factors in place, for one row.
#[inline(always)]
pub(super) fn subtract_row<T: Factorable, const N: usize>(y: &mut [T; N], x: T, factors: &[T; N]) {
    for v in 0..N {
        y[v] -= x * factors[v];
    }
}

/// Computes y - x factors in place.
#[inline(always)]
pub(super) fn subtract<T: Factorable, const N: usize>(y: &mut [[T; N]], x: &[T], factors: [T; N]) {
    let n = y.len().min(x.len());
    let (y, x) = (&mut y[..n], &x[..n]);
    for i in 0..n {
        subtract_row(&mut y[i], x[i], &factors);
    }
}

/// The same for four columns, one after the other, with one pass over y.
#[inline(always)]
pub(super) fn subtract_four<T: Factorable, const N: usize>(
    y: &mut [[T; N]],
    columns: [&[T]; 4],
    [e, f, g, h]: [[T; N]; 4],
) {
    let n = y.len();
    let [a, b, c, d] = columns.map(|column| &column[..n]);
    for (i, y) in y.iter_mut().enumerate() {
        for v in 0..N {
            y[v] = y[v] - a[i] * e[v] - b[i] * f[v] - c[i] * g[v] - d[i] * h[v];
        }
    }
}

/// Subtracts columns times factors from y, one after the other. The columns are `height` apart, and the product begins
/// at row `from` of each.
#[inline(always)]
pub(super) fn subtract_columns<T: Factorable, const N: usize>(
    y: &mut [[T; N]],
    (columns, height, from): (&[T], usize, usize),
    factors: &[[T; N]],
) {
    let (fours, rest) = factors.as_chunks::<4>();
    let column = |k: usize| &columns[k * height + from..];
    for (k, &factors) in fours.iter().enumerate() {
        subtract_four(y, std::array::from_fn(|j| column(4 * k + j)), factors);
    }
    for (k, &factors) in rest.iter().enumerate() {
        subtract(y, column(4 * fours.len() + k), factors);
    }
}

/// The product of a column with each vector. Four sums side by side, so that none waits for another.
#[inline(always)]
pub(super) fn product<T: Factorable, const N: usize>(a: &[T], b: &[[T; N]]) -> [T; N] {
    let (fours, rest) = a.as_chunks::<4>();
    let (fours_b, rest_b) = b.as_chunks::<4>();
    let mut sums = [[T::default(); N]; 4];
    for (a, b) in both(fours, fours_b) {
        for k in 0..4 {
            for v in 0..N {
                sums[k][v] += a[k] * b[k][v];
            }
        }
    }
    let mut last = [T::default(); N];
    for (&a, b) in both(rest, rest_b) {
        for v in 0..N {
            last[v] += a * b[v];
        }
    }
    std::array::from_fn(|v| (sums[0][v] + sums[1][v]) + (sums[2][v] + sums[3][v]) + last[v])
}

/// The products of columns, which are `height` apart and begin at row `from`, with each vector.
#[inline(always)]
pub(super) fn products<T: Factorable, const N: usize>(
    (columns, height, from): (&[T], usize, usize),
    b: &[[T; N]],
    found: &mut [[T; N]],
) {
    let column = |k: usize| &columns[k * height + from..(k + 1) * height];
    let mut first = 0;
    if N == 1 {
        // A vector alone is read once for four columns; several fill the registers with one column.
        let (fours, _) = found.as_flattened_mut().as_chunks_mut::<4>();
        for (k, four) in fours.iter_mut().enumerate() {
            *four = four_products(std::array::from_fn(|j| column(4 * k + j)), b.as_flattened());
        }
        first = 4 * fours.len();
    }
    for (k, found) in found.iter_mut().enumerate().skip(first) {
        *found = product(column(k), b);
    }
}

/// Computes the products of four columns with one vector, which is read once.
#[inline(always)]
fn four_products<T: Factorable>(columns: [&[T]; 4], b: &[T]) -> [T; 4] {
    let n = b.len();
    let columns = columns.map(|column| &column[..n]);
    let mut sums = [[T::default(); 4]; 4];
    let whole = n - n % 4;
    for i in (0..whole).step_by(4) {
        for (sums, column) in sums.iter_mut().zip(&columns) {
            for lane in 0..4 {
                sums[lane] += column[i + lane] * b[i + lane];
            }
        }
    }
    std::array::from_fn(|j| {
        let last = both(&columns[j][whole..], &b[whole..]).fold(T::default(), |sum, (&a, &b)| sum + a * b);
        (sums[j][0] + sums[j][1]) + (sums[j][2] + sums[j][3]) + last
    })
}
