//! Gaussian elimination of one small dense matrix stored by rows, four columns at a time: each later row is read and
//! written once for four multiplications an entry.

use super::judge::{Solve, size};
use super::rows::{Rows, SUMS};
use crate::scalar::Scalar;

/// Columns that are eliminated together.
const TOGETHER: usize = 4;

/// The factors of a matrix, and the original position of each of their rows.
#[derive(Debug, Default)]
pub(super) struct Dense<D> {
    pub(super) n: usize,
    /// L below the diagonal and U from the diagonal on; or D L^H from the diagonal on.
    pub(super) entries: Vec<D>,
    order: Vec<u32>,
    definite: bool,
}

impl<D: Scalar<Real = f64>> Dense<D> {
    /// Allocates a zero matrix of `n` rows.
    #[inline(always)]
    pub(super) fn clear(&mut self, n: usize) {
        self.n = n;
        self.entries.clear();
        self.entries.resize(n * n, D::default());
        self.order.clear();
        self.order.extend(0..n as u32);
    }

    /// One row.
    #[inline(always)]
    pub(super) fn row(&mut self, i: usize) -> &mut [D] {
        &mut self.entries[i * self.n..(i + 1) * self.n]
    }

    /// Returns whether the matrix equals its conjugate transpose, with a positive diagonal.
    #[inline(always)]
    pub(super) fn is_hermitian(&self) -> bool {
        let n = self.n;
        (0..n).all(|i| {
            let own = self.entries[i * n + i];
            own.re() > 0.0
                && own.im() == 0.0
                && (0..i).all(|j| self.entries[i * n + j] == self.entries[j * n + i].conj())
        })
    }

    /// L D L^H from the upper triangle; returns false if a pivot is not positive.
    #[inline(always)]
    pub(super) fn eliminate_definite(&mut self) -> bool {
        let n = self.n;
        self.definite = true;
        let mut k = 0;
        while k < n {
            let width = TOGETHER.min(n - k);
            let (panel, below) = self.entries[k * n..].split_at_mut(width * n);
            let mut inverses = [D::default(); TOGETHER];
            for c in 0..width {
                let (above, rest) = panel.split_at_mut((c + 1) * n);
                let pivot_row = &above[c * n..];
                let pivot = pivot_row[k + c].re();
                if !(pivot > 0.0 && pivot < f64::INFINITY) {
                    return false;
                }
                inverses[c] = D::from_f64(1.0 / pivot);
                for (i, row) in rest.chunks_exact_mut(n).enumerate() {
                    let i = k + c + 1 + i;
                    subtract(pivot_row[i].conj() * inverses[c], &pivot_row[i..], &mut row[i..]);
                }
            }
            for (i, row) in below.chunks_exact_mut(n).enumerate() {
                let i = k + width + i;
                let mut factors = [D::default(); TOGETHER];
                for c in 0..width {
                    factors[c] = panel[c * n + i].conj() * inverses[c];
                }
                subtract_rows(panel, n, width, factors, i, row);
            }
            k += width;
        }
        true
    }

    /// L U with partial pivoting; returns false if a column has no nonzero pivot.
    #[inline(always)]
    pub(super) fn eliminate(&mut self) -> bool {
        let n = self.n;
        self.definite = false;
        let mut k = 0;
        while k < n {
            let width = TOGETHER.min(n - k);
            let end = k + width;
            for c in k..end {
                let (mut best, mut at) = (0.0, c);
                for i in c..n {
                    let size = size(self.entries[i * n + c]);
                    if size > best {
                        (best, at) = (size, i);
                    }
                }
                if best == 0.0 {
                    return false;
                }
                if at != c {
                    let (above, below) = self.entries.split_at_mut(at * n);
                    above[c * n..(c + 1) * n].swap_with_slice(&mut below[..n]);
                    self.order.swap(c, at);
                }
                let (above, below) = self.entries.split_at_mut((c + 1) * n);
                let pivot_row = &above[c * n..c * n + end];
                let inverse = D::one() / pivot_row[c];
                for row in below.chunks_exact_mut(n) {
                    let factor = row[c] * inverse;
                    row[c] = factor;
                    for j in c + 1..end {
                        row[j] -= factor * pivot_row[j];
                    }
                }
            }
            let (panel, below) = self.entries[k * n..].split_at_mut(width * n);
            for c in 1..width {
                let (above, own) = panel.split_at_mut(c * n);
                for p in 0..c {
                    let factor = own[k + p];
                    subtract(factor, &above[p * n + end..(p + 1) * n], &mut own[end..n]);
                }
            }
            for row in below.chunks_exact_mut(n) {
                let mut factors = [D::default(); TOGETHER];
                factors[..width].copy_from_slice(&row[k..end]);
                subtract_rows(panel, n, width, factors, end, row);
            }
            k = end;
        }
        true
    }
}

impl<D: Scalar<Real = f64>> Dense<D> {
    /// x = A^-1 b.
    #[inline(always)]
    fn solve(&self, b: &[D], x: &mut [D]) {
        let n = self.n;
        if self.definite {
            x.copy_from_slice(b);
            for k in 0..n {
                let row = &self.entries[k * n..(k + 1) * n];
                let (own, rest) = x[k..].split_at_mut(1);
                let factor = own[0] * D::from_f64(1.0 / row[k].re());
                for (x, &u) in rest.iter_mut().zip(&row[k + 1..]) {
                    *x -= factor * u.conj();
                }
            }
        } else {
            for i in 0..n {
                x[i] = b[self.order[i] as usize] - dot(&self.entries[i * n..i * n + i], &x[..i]);
            }
        }
        for i in (0..n).rev() {
            let row = &self.entries[i * n..(i + 1) * n];
            x[i] = (x[i] - dot(&row[i + 1..], &x[i + 1..n])) / row[i];
        }
    }
}

/// A system with its factors.
pub(super) struct Eliminated<'a, T, D> {
    pub(super) rows: &'a Rows<'a, T>,
    pub(super) factors: &'a Dense<D>,
}

impl<'a, T: Scalar<Double = D>, D: Scalar<Real = f64>> Solve<D, 1> for Eliminated<'a, T, D> {
    type Matrix = Rows<'a, T>;

    fn matrix(&self) -> &Rows<'a, T> {
        self.rows
    }

    #[inline(always)]
    fn solve(&mut self, b: &[[D; 1]], x: &mut [[D; 1]]) {
        self.factors.solve(b.as_flattened(), x.as_flattened_mut());
    }
}

/// row -= factor u.
#[inline(always)]
fn subtract<D: Scalar<Real = f64>>(factor: D, u: &[D], row: &mut [D]) {
    let u = &u[..row.len()];
    for j in 0..row.len() {
        row[j] -= factor * u[j];
    }
}

/// Subtracts from a row, from column `from` on, the rows of a panel of `width` times factors.
#[inline(always)]
fn subtract_rows<D: Scalar<Real = f64>>(
    panel: &[D],
    n: usize,
    width: usize,
    factors: [D; TOGETHER],
    from: usize,
    row: &mut [D],
) {
    if width < TOGETHER {
        for c in 0..width {
            subtract(factors[c], &panel[c * n + from..(c + 1) * n], &mut row[from..n]);
        }
        return;
    }
    let row = &mut row[from..n];
    let length = row.len();
    let of = |c: usize| &panel[c * n + from..][..length];
    let (u0, u1, u2, u3) = (of(0), of(1), of(2), of(3));
    let [f0, f1, f2, f3] = factors;
    for j in 0..length {
        row[j] = row[j] - f0 * u0[j] - f1 * u1[j] - f2 * u2[j] - f3 * u3[j];
    }
}

/// The dot product, without conjugation.
#[inline(always)]
fn dot<D: Scalar<Real = f64>>(u: &[D], x: &[D]) -> D {
    let x = &x[..u.len()];
    let mut sums = [D::default(); SUMS];
    let whole = u.len() / SUMS * SUMS;
    for (u, x) in u[..whole].chunks_exact(SUMS).zip(x[..whole].chunks_exact(SUMS)) {
        for lane in 0..SUMS {
            sums[lane] += u[lane] * x[lane];
        }
    }
    let mut rest = D::default();
    for j in whole..u.len() {
        rest += u[j] * x[j];
    }
    let pair = |k: usize| sums[k] + sums[k + SUMS / 2];
    ((pair(0) + pair(1)) + (pair(2) + pair(3))) + rest
}
