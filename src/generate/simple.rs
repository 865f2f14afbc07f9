//! Matrices given by a formula.

use super::rows::by_rows;
use crate::error::Result;
use crate::matrix::Csr;

/// A matrix with a full first row, first column and diagonal: n + 1 at the corner, 2 on the rest of the diagonal, -1 in
/// the rest of the first row and column. Positive definite, and the worst case for a format that pads rows to one
/// length.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn arrow(n: usize) -> Result<Csr<f64>> {
    by_rows(n, n, |i, row| {
        if i == 0 {
            row.push(0, n as f64 + 1.0);
            (1..n).for_each(|j| row.push(j, -1.0));
        } else {
            row.push(0, -1.0);
            row.push(i, 2.0);
        }
    })
}

/// The numbers 1 to n on the diagonal: condition number n.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn diagonal(n: usize) -> Result<Csr<f64>> {
    by_rows(n, n, |i, row| row.push(i, i as f64 + 1.0))
}

/// -u'' on n points: 2 on the diagonal, -1 next to it.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn tridiagonal(n: usize) -> Result<Csr<f64>> {
    by_rows(n, n, |i, row| {
        if i > 0 {
            row.push(i - 1, -1.0);
        }
        row.push(i, 2.0);
        if i + 1 < n {
            row.push(i + 1, -1.0);
        }
    })
}
