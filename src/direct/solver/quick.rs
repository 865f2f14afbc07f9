//! Solves with factors that are at hand: one product with A in working precision shows that x is good.

use super::Direct;
use crate::direct::Factorable;
use crate::direct::factor::caught;
use crate::direct::goal::{Weights, inverses, norm, weighted_norm};
use crate::parallel::both;
use crate::parallel::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sums of squares in this range have neither underflowed nor overflowed.
const SAFE: std::ops::Range<f64> = 1e-200..1e200;

/// Units of rounding of a complex product beside that of a real one.
const OF_COMPLEX: f64 = 4.0;

impl<T: Factorable> Direct<T> {
    /// x of A x = b (A^T x = b if `transposed`) for right-hand sides one after another, by the factor at hand and
    /// nothing else. Returns whether each x meets the tolerance as that of [`Direct::solve`] does, with the rounding
    /// errors of its residual added to the residual; if not, or if there is no factor, x is not to be used.
    pub(crate) fn solve_quickly(
        &mut self,
        transposed: bool,
        b: &[T],
        x: &mut [T],
        (tolerance, weights): (f64, &Weights),
    ) -> bool {
        let n = self.a.rows();
        let usable = |factor: &super::Factor<T>| factor.has_transpose() && !factor.is_least_squares();
        if n == 0
            || n != self.a.columns()
            || b.len() != x.len()
            || !b.len().is_multiple_of(n)
            || weights.plain.is_some()
            || !self.factor.as_ref().is_some_and(usable)
        {
            return false;
        }
        let of_columns = (transposed && weights.rows.is_some()).then(|| self.column_weights());
        let rows = match &of_columns {
            Some(weights) => weights.rows.as_deref(),
            None => weights.rows.as_deref().filter(|_| !transposed),
        };
        let all = AtomicBool::new(true);
        // Columns are independent of each other, so that threads change no bits.
        b.par_chunks(n).zip(x.par_chunks_mut(n)).for_each(|(b, x)| {
            if all.load(Ordering::Relaxed) && !self.solve_column(transposed, b, x, (tolerance, rows)) {
                all.store(false, Ordering::Relaxed);
            }
        });
        all.into_inner()
    }

    /// The weights of A^T: each column of A in units of its norm.
    fn column_weights(&mut self) -> Arc<Weights> {
        if self.column_weights.is_none() {
            let mut squares = vec![0.0_f64; self.a.columns()];
            for row in 0..self.a.rows() {
                let (indices, values) = self.a.row(row);
                // Squares would overflow where A is in units far from 1.
                both(indices, values).for_each(|(&j, &value)| {
                    squares[j as usize] = squares[j as usize].hypot(value.abs());
                });
            }
            let rows = Some(inverses(&squares));
            self.column_weights = Some(Arc::new(Weights { plain: None, rows, columns: None }));
        }
        self.column_weights.clone().unwrap_or_default()
    }

    fn solve_column(&self, transposed: bool, b: &[T], x: &mut [T], goal: (f64, Option<&[f64]>)) -> bool {
        let Some(factor) = &self.factor else { return false };
        let mut found = b.to_vec();
        let applied = caught(|| {
            factor.apply(transposed, &mut found);
            Ok(())
        });
        if applied.is_err() || !self.is_good(transposed, b, &found, goal) {
            return false;
        }
        x.copy_from_slice(&found);
        true
    }

    /// Whether the residual of x, and a bound of its rounding errors, meet the tolerance: by their norm, and by that of
    /// rows in units of their own.
    fn is_good(
        &self,
        transposed: bool,
        b: &[T],
        x: &[T],
        (tolerance, weights): (f64, Option<&[f64]>),
    ) -> bool {
        let unit = f64::EPSILON * if T::COMPLEX { OF_COMPLEX } else { 1.0 };
        let size = |value: T| value.re().abs() + value.im().abs();
        let (mut plain, mut by_rows) = (0.0, 0.0);
        let mut add = |row: usize, residual: T, sizes: f64, terms: usize| {
            let error = size(residual) + (terms as f64 + 4.0) * unit * sizes;
            plain += error * error;
            if let Some(weights) = weights {
                by_rows += (weights[row] * error).powi(2);
            }
        };
        if transposed {
            let mut sums: Vec<(T, f64, u32)> = b.iter().map(|&b| (b, size(b), 0)).collect();
            for (row, &x) in x.iter().enumerate() {
                let (indices, values) = self.a.row(row);
                for (&j, &value) in both(indices, values) {
                    let (sum, sizes, terms) = &mut sums[j as usize];
                    *sum -= value * x;
                    *sizes += size(value) * size(x);
                    *terms += 1;
                }
            }
            sums.into_iter()
                .enumerate()
                .for_each(|(j, (sum, sizes, terms))| add(j, sum, sizes, terms as usize));
        } else {
            for (row, &b) in b.iter().enumerate() {
                let (indices, values) = self.a.row(row);
                let (mut sum, mut sizes) = (b, size(b));
                for (&j, &value) in both(indices, values) {
                    let x = x[j as usize];
                    sum -= value * x;
                    sizes += size(value) * size(x);
                }
                add(row, sum, sizes, values.len());
            }
        }
        // A residual of zero is good; a square that has underflowed is told from it by the other path.
        let meets = |square: f64, norm: f64| {
            (square == 0.0 || SAFE.contains(&square)) && square.sqrt() <= tolerance * norm && norm.is_finite()
        };
        let in_rows = match weights {
            Some(weights) => {
                let norm = weighted_norm(Some(weights), b);
                norm > 0.0 && meets(by_rows, norm)
            }
            None => true,
        };
        in_rows && meets(plain, norm(b))
    }
}
