//! The dense inverse of the coarsest matrix.

use super::strength::packed;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::parallel::{Inlined, vectorised_whole};
use crate::scalar::Scalar;
use crate::work::look;
use num_traits::{Float, Zero};
use std::ops::Range;

/// The number of pivots that are eliminated together, so that each entry is read once for all of them.
const PANEL: usize = 8;

/// Smaller matrices are inverted by one thread: a panel takes 20 microseconds, about as long as sharing it would.
const ALONE: usize = 300;

/// The inverse of a Hermitian positive semi-definite A, as a matrix that stores every entry: one product applies it on
/// any backend. Pivots are swept one by one in their order, within the lower triangle (Goodnight, A tutorial on the
/// SWEEP operator, The American Statistician 33, 1979), so that the inverse is exactly Hermitian. If a pivot is only
/// rounding error compared to the original diagonal entry, its unknown depends on the ones before and is set to zero.
///
/// # Errors
/// If A is not finite.
pub(super) fn inverse<T: Scalar>(a: &Csr<T>) -> Result<Csr<T>> {
    stored(a.rows(), inverse_of(&mut entries(a), a.rows())?)
}

/// The inverse of any nonsingular A, by Gauss-Jordan elimination with row exchanges (Golub and Van Loan, 3.4).
///
/// # Errors
/// If A is not finite, or a pivot is only rounding error.
pub(super) fn general_inverse<T: Scalar>(a: &Csr<T>) -> Result<Csr<T>> {
    let n = a.rows();
    let mut rows = entries(a);
    let mut inverse = vec![T::zero(); n * n];
    (0..n).for_each(|i| inverse[i * n + i] = T::one());
    let largest = rows.iter().fold(T::Real::zero(), |most, value| Float::max(most, value.abs()));
    let smallest = largest * <T::Real as Float>::epsilon();
    for k in 0..n {
        look();
        let size = |row: usize| rows[row * n + k].abs();
        let pivot = (k..n).fold(k, |best, row| if size(row) > size(best) { row } else { best });
        let found = size(pivot);
        if !Float::is_finite(largest) || !Float::is_finite(found) || found <= smallest {
            return Err(Error::InvalidMatrix(
                "the coarsest matrix of multigrid is singular or not finite".into(),
            ));
        }
        let factor = T::one() / rows[pivot * n + k];
        for matrix in [&mut rows, &mut inverse] {
            for j in 0..n {
                matrix.swap(k * n + j, pivot * n + j);
                matrix[k * n + j] *= factor;
            }
        }
        let (of_a, of_inverse) = (rows[k * n..(k + 1) * n].to_vec(), inverse[k * n..(k + 1) * n].to_vec());
        let both = rows.chunks_mut(n).zip(inverse.chunks_mut(n)).enumerate();
        for (_, (row, inverse)) in both.filter(|(i, _)| *i != k) {
            let factor = row[k];
            if factor != T::zero() {
                row[k..].iter_mut().zip(&of_a[k..]).for_each(|(value, &above)| *value -= factor * above);
                inverse.iter_mut().zip(&of_inverse).for_each(|(value, &above)| *value -= factor * above);
            }
        }
    }
    stored(n, inverse)
}

/// Every entry, including zeros, by rows.
fn entries<T: Scalar>(a: &Csr<T>) -> Vec<T> {
    let n = a.rows();
    let mut rows = vec![T::zero(); n * n];
    a.iter().for_each(|(i, j, value)| rows[i * n + j] = value);
    rows
}

/// A CSR matrix in which every entry is stored.
fn stored<T: Scalar>(n: usize, values: Vec<T>) -> Result<Csr<T>> {
    let indices = (0..n).flat_map(|_| 0..n as u32).collect();
    Ok(Csr::from_parts_unchecked(
        n,
        n,
        packed((0..=n as u64).map(|i| i * n as u64).collect()),
        indices,
        values,
    ))
}

/// [`inverse`] of the matrix in `rows`, of which only the lower triangle is used.
fn inverse_of<T: Scalar>(rows: &mut [T], n: usize) -> Result<Vec<T>> {
    let rounding = <T::Real as Float>::epsilon() * T::Real::from_f64(n as f64);
    let smallest: Vec<T::Real> = (0..n).map(|i| rounding * rows[i * n + i].abs()).collect();
    // The columns of a panel, and a conjugated copy of each as it was when it was swept.
    let (mut columns, mut swept) = (vec![T::zero(); PANEL * n], vec![T::zero(); PANEL * n]);
    for start in (0..n).step_by(PANEL) {
        look();
        let panel = start..n.min(start + PANEL);
        for (p, column) in panel.clone().zip(columns.chunks_mut(n)) {
            let above = rows[p * n..p * n + p].iter().map(|value| value.conj());
            let below = rows[p * n..].iter().skip(p).step_by(n).copied();
            column.iter_mut().zip(above.chain(below)).for_each(|(to, value)| *to = value);
        }
        let reciprocals = sweep_panel(&panel, &mut columns, &mut swept, (&smallest, n))?;
        let least = if n < ALONE { usize::MAX } else { PANEL };
        let (columns, swept) = (&columns, &swept);
        rows.par_chunks_mut(n.max(1)).enumerate().with_min_len(least).for_each(|(i, row)| {
            if panel.contains(&i) {
                let column = &columns[(i - start) * n..];
                row[..=i].iter_mut().zip(column).for_each(|(to, value)| *to = value.conj());
                return;
            }
            let factors: [T; PANEL] =
                std::array::from_fn(|k| swept[k * n + i].conj() * T::from_real(reciprocals[k]));
            vectorised_whole(Panel { row: &mut row[..=i], factors, swept, n });
            for p in panel.clone().take_while(|&p| p < i) {
                row[p] = columns[(p - start) * n + i];
            }
        });
    }
    let mut values = vec![T::zero(); n * n];
    for (i, row) in rows.chunks(n.max(1)).enumerate() {
        for (j, &value) in row[..=i].iter().enumerate() {
            values[j * n + i] = -value.conj();
            values[i * n + j] = -value;
        }
        // The imaginary part of the diagonal is rounding error.
        values[i * n + i] = T::from_real(-row[i].re());
    }
    Ok(values)
}

/// Sweeps the pivots of a panel within its columns. Returns their reciprocals, zero for dependent unknowns and for
/// missing columns; `swept` has zeros there.
fn sweep_panel<T: Scalar>(
    panel: &Range<usize>,
    columns: &mut [T],
    swept: &mut [T],
    (smallest, n): (&[T::Real], usize),
) -> Result<[T::Real; PANEL]> {
    let mut reciprocals = [T::Real::zero(); PANEL];
    swept.fill(T::zero());
    for (k, p) in panel.clone().enumerate() {
        let pivot = columns[k * n + p].re();
        if !Float::is_finite(pivot) {
            return Err(Error::InvalidMatrix("an entry of a dense matrix of multigrid is not finite".into()));
        }
        if pivot <= smallest[p] {
            columns[k * n..(k + 1) * n].fill(T::zero());
            columns.chunks_mut(n).for_each(|column| column[p] = T::zero());
            continue;
        }
        let reciprocal = pivot.recip();
        reciprocals[k] = reciprocal;
        let own = &mut swept[k * n..(k + 1) * n];
        for (to, value) in own.iter_mut().zip(&mut columns[k * n..(k + 1) * n]) {
            *to = value.conj();
            *value *= T::from_real(reciprocal);
        }
        columns[k * n + p] = T::from_real(-reciprocal);
        for (l, q) in panel.clone().enumerate().filter(|&(l, _)| l != k) {
            let factor = own[q] * T::from_real(reciprocal);
            let column = &mut columns[l * n..(l + 1) * n];
            column.iter_mut().zip(&*own).for_each(|(value, there)| *value -= there.conj() * factor);
            column[p] = factor;
        }
    }
    Ok(reciprocals)
}

/// Swept columns of `n` entries each, and their factors for a row.
struct Panel<'a, T> {
    row: &'a mut [T],
    factors: [T; PANEL],
    swept: &'a [T],
    n: usize,
}

impl<T: Scalar> Inlined for Panel<'_, T> {
    type Output = ();

    /// Subtracts from the row the sum of each factor times the swept column, in this order.
    #[inline(always)]
    fn run(self) {
        let Self { row, factors, swept, n } = self;
        let len = row.len();
        let swept: [&[T]; PANEL] = std::array::from_fn(|k| &swept[k * n..k * n + len]);
        for (j, value) in row.iter_mut().enumerate() {
            let mut left = *value;
            for k in 0..PANEL {
                left -= factors[k] * swept[k][j];
            }
            *value = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use num_complex::Complex;

    #[test]
    fn inverse_times_matrix_is_the_identity() {
        let a = generate::poisson2d(5, 4).unwrap();
        let inverse = inverse(&a).unwrap();
        for i in 0..a.rows() {
            for j in 0..a.rows() {
                let (columns, values) = a.row(j);
                let sum: f64 =
                    columns.iter().zip(values).map(|(&k, v)| v * inverse.get(i, k as usize).unwrap()).sum();
                assert!((sum - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j} {sum}");
            }
        }
    }

    #[test]
    fn inverses_of_complex_matrices_in_several_panels_are_hermitian() {
        let n = 3 * PANEL + 2;
        let mut values = vec![Complex::<f64>::zero(); n * n];
        for i in 0..n {
            // The diagonal varies by six decades, so each pivot must be compared to its own diagonal entry.
            let scale = |i: usize| f64::powi(10.0, (i % 7) as i32 - 3);
            values[i * n + i] = Complex::new(scale(i) * scale(i) * (2.0 + n as f64), 0.0);
            for j in 0..i {
                let angle = (3 * i + 7 * j) as f64;
                let value = Complex::new(angle.cos(), angle.sin()) * scale(i) * scale(j);
                (values[i * n + j], values[j * n + i]) = (value, value.conj());
            }
        }
        let a = stored(n, values).unwrap();
        let inverse = inverse(&a).unwrap();
        for i in 0..n {
            for j in 0..n {
                assert_eq!(inverse.get(i, j).unwrap(), inverse.get(j, i).unwrap().conj());
                let products = (0..n).map(|k| a.get(i, k).unwrap() * inverse.get(k, j).unwrap());
                let (mut sum, mut size) = (Complex::new(-f64::from(u8::from(i == j)), 0.0), 0.0);
                for product in products {
                    sum += product;
                    size += product.norm();
                }
                assert!(sum.norm() < 1e-12 * size, "{i} {j} {sum}");
            }
        }
    }

    #[test]
    fn inverses_of_matrices_that_are_not_hermitian() {
        let a = Csr::from_parts(3, 3, vec![0, 1, 3, 5], vec![2, 0, 1, 1, 2], vec![2.0, 1.0, 4.0, -1.0, 3.0])
            .unwrap();
        let inverse = general_inverse(&a).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let sum: f64 = a
                    .row(i)
                    .0
                    .iter()
                    .zip(a.row(i).1)
                    .map(|(&k, v)| v * inverse.get(k as usize, j).unwrap())
                    .sum();
                assert!((sum - f64::from(u8::from(i == j))).abs() < 1e-15, "{i} {j} {sum}");
            }
        }
        let singular = Csr::from_parts(2, 2, vec![0, 1, 2], vec![0, 0], vec![1.0, 2.0]).unwrap();
        assert!(general_inverse(&singular).is_err());
    }

    #[test]
    fn what_depends_on_others_stays_at_zero() {
        let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, -1.0, -1.0, 1.0]).unwrap();
        let inverse = inverse(&a).unwrap();
        assert_eq!(inverse.parts().values, [1.0, 0.0, 0.0, 0.0]);
    }
}
