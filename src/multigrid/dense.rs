//! The coarsest level: a small system, solved by its inverse.

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};

/// Sums that run side by side, so that additions do not wait for each other.
const LANES: usize = 8;

/// Matrices of fewer rows are inverted by one thread.
const ALONE: usize = 64;

/// The inverse of a Hermitian positive semi-definite A, as a matrix in which every entry is stored: one product applies
/// it on any backend. From A = L L^H (Golub and Van Loan, 4.2), the inverse is L^-H L^-1, exactly Hermitian. Where a
/// pivot is rounding error only, the unknown depends on the ones before it and is left at zero.
///
/// # Errors
/// Where A is not finite.
pub(super) fn inverse<T: Scalar>(a: &Csr<T>) -> Result<Csr<T>> {
    stored(a.rows(), inverse_of(&mut entries(a), a.rows())?)
}

/// The inverse of any regular A, by Gauss-Jordan elimination with exchanges of rows (Golub and Van Loan, 3.4).
///
/// # Errors
/// Where A is not finite, or a pivot is rounding error only.
pub(super) fn general_inverse<T: Scalar>(a: &Csr<T>) -> Result<Csr<T>> {
    let n = a.rows();
    let mut rows = entries(a);
    let mut inverse = vec![T::zero(); n * n];
    (0..n).for_each(|i| inverse[i * n + i] = T::one());
    let largest = rows.iter().fold(T::Real::zero(), |most, value| Float::max(most, value.abs()));
    let smallest = largest * <T::Real as Float>::epsilon();
    for k in 0..n {
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

/// Every entry, row after row.
fn entries<T: Scalar>(a: &Csr<T>) -> Vec<T> {
    let n = a.rows();
    let mut rows = vec![T::zero(); n * n];
    a.iter().for_each(|(i, j, value)| rows[i * n + j] = value);
    rows
}

/// The matrix in which every entry is stored.
fn stored<T: Scalar>(n: usize, values: Vec<T>) -> Result<Csr<T>> {
    let indices = (0..n).flat_map(|_| 0..n as u32).collect();
    Csr::from_parts(n, n, (0..=n).map(|i| i * n).collect(), indices, values)
}

/// The same of the matrix in `rows`, where its factor is left.
fn inverse_of<T: Scalar>(rows: &mut [T], n: usize) -> Result<Vec<T>> {
    let largest = (0..n).fold(T::Real::zero(), |most, i| Float::max(most, rows[i * n + i].abs()));
    let smallest = largest * <T::Real as Float>::epsilon() * T::Real::from_f64(n as f64);
    // Row by row, l_ij = (a_ij - sum over k < j of l_ik conj(l_jk)) / l_jj: rows are contiguous.
    let mut reciprocals = vec![T::Real::zero(); n];
    for i in 0..n {
        let (before, row) = rows.split_at_mut(i * n);
        for j in 0..i {
            let sum = row[j] - dot(&before[j * n..j * n + j], &row[..j]);
            row[j] = sum * T::from_real(reciprocals[j]);
        }
        let pivot = row[i].re() - dot(&row[..i], &row[..i]).re();
        if !Float::is_finite(pivot) {
            return Err(Error::InvalidMatrix("an entry of a dense matrix of multigrid is not finite".into()));
        }
        if pivot > smallest {
            reciprocals[i] = Float::sqrt(pivot).recip();
            row[i] = T::from_real(Float::sqrt(pivot));
        } else {
            row[..=i].fill(T::zero());
        }
    }
    // Columns of L^-1, one behind the other, each from its diagonal entry on.
    let mut columns = vec![T::zero(); n * n];
    let least = if n < ALONE { usize::MAX } else { 1 };
    columns.par_chunks_mut(n.max(1)).enumerate().with_min_len(least).for_each(|(j, column)| {
        column[j] = T::from_real(reciprocals[j]);
        for i in j + 1..n {
            let known = column[j..i].iter().zip(&rows[i * n + j..i * n + i]);
            let sum = known.fold(T::zero(), |sum, (&y, &l)| sum + l * y);
            column[i] = -sum * T::from_real(reciprocals[i]);
        }
    });
    let mut values = vec![T::zero(); n * n];
    values.par_chunks_mut(n.max(1)).enumerate().with_min_len(least).for_each(|(i, row)| {
        for (j, value) in row.iter_mut().enumerate() {
            // The same sum for (i, j) and (j, i), conjugated.
            let (low, high) = (i.min(j), i.max(j));
            let from = |column: usize| &columns[column * n + high..(column + 1) * n];
            let sum = dot(from(low), from(high));
            *value = if i <= j { sum } else { sum.conj() };
        }
    });
    Ok(values)
}

/// Sum of conj(x_i) y_i.
fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    let mut sums = [T::zero(); LANES];
    for (x, y) in xs.iter().zip(ys) {
        for lane in 0..LANES {
            sums[lane] += x[lane].conj() * y[lane];
        }
    }
    let rest: T = x_rest.iter().zip(y_rest).map(|(&x, &y)| x.conj() * y).sum();
    sums.into_iter().sum::<T>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

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
