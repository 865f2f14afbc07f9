//! Solves with existing factors: one product with A in working precision shows that x is accurate enough.

use super::Direct;
use crate::backend::with_offsets;
use crate::direct::Factorable;
use crate::direct::goal::{Weights, inverses};
use crate::direct::steps::caught;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sums of squares in this range have neither underflowed nor overflowed.
const SAFE: std::ops::Range<f64> = 1e-200..1e200;

/// With fewer numbers than this in right-hand sides and A, another thread saves no time.
const FEW: usize = 1 << 16;

/// The number of right-hand sides for which fronts are read once.
const AT_ONCE: usize = 8;

/// The rounding error of a complex product, relative to that of a real one.
const OF_COMPLEX: f64 = 4.0;

impl<T: Factorable> Direct<T> {
    /// Solves A x = b (A^T x = b if `transposed`) for right-hand sides stored one after another, with the current
    /// factor alone. Returns true if each x meets the tolerance as [`Direct::solve`] defines it, with the rounding
    /// errors of its residual added to the residual. Otherwise, or without a factor, x must not be used.
    pub(crate) fn solve_quickly<S: Scalar<Double = T>>(
        &mut self,
        transposed: bool,
        b: &[S],
        x: &mut [S],
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
        if b.len() == n {
            return self.solve_column(transposed, b, x, (tolerance, rows));
        }
        let all = AtomicBool::new(true);
        // Columns are independent of each other, so the number of threads does not change any bits.
        let (group, least) = (AT_ONCE * n, FEW.div_ceil(AT_ONCE * (n + self.a.nonzeros())));
        b.par_chunks(group).zip(x.par_chunks_mut(group)).with_min_len(least).for_each(|(b, x)| {
            if all.load(Ordering::Relaxed) && !self.solve_group(transposed, b, x, (tolerance, rows)) {
                all.store(false, Ordering::Relaxed);
            }
        });
        all.into_inner()
    }

    /// Solves for [`AT_ONCE`] columns together, or for fewer one by one.
    fn solve_group<S: Scalar<Double = T>>(
        &self,
        transposed: bool,
        b: &[S],
        x: &mut [S],
        goal: (f64, Option<&[f64]>),
    ) -> bool {
        let n = self.a.rows();
        let Some(factor) = &self.factor else { return false };
        if b.len() < AT_ONCE * n {
            let mut columns = b.chunks(n).zip(x.chunks_mut(n));
            return columns.all(|(b, x)| self.solve_column(transposed, b, x, goal));
        }
        let given: [Vec<T>; AT_ONCE] =
            std::array::from_fn(|k| b[k * n..(k + 1) * n].iter().map(|b| b.to_double()).collect());
        let mut found = given.clone();
        let applied = caught(|| {
            factor.apply_several(transposed, &mut found);
            Ok(())
        });
        let good = |(b, x): (&Vec<T>, &Vec<T>)| self.is_good(transposed, b, x, goal);
        if applied.is_err() || !given.iter().zip(&found).all(good) {
            return false;
        }
        x.iter_mut().zip(found.iter().flatten()).for_each(|(x, &found)| *x = S::from_double(found));
        true
    }

    /// The weights of A^T, which divide each column of A by its norm.
    fn column_weights(&mut self) -> Arc<Weights> {
        if self.column_weights.is_none() {
            let mut squares = vec![0.0_f64; self.a.columns()];
            for row in 0..self.a.rows() {
                let (indices, values) = self.a.row(row);
                // Squares would overflow if the entries of A are far from 1.
                both(indices, values).for_each(|(&j, &value)| {
                    squares[j as usize] = squares[j as usize].hypot(value.abs());
                });
            }
            let rows = Some(inverses(&squares));
            self.column_weights = Some(Arc::new(Weights { plain: None, rows, columns: None }));
        }
        self.column_weights.clone().unwrap_or_default()
    }

    fn solve_column<S: Scalar<Double = T>>(
        &self,
        transposed: bool,
        b: &[S],
        x: &mut [S],
        goal: (f64, Option<&[f64]>),
    ) -> bool {
        let Some(factor) = &self.factor else { return false };
        let b: Vec<T> = b.iter().map(|b| b.to_double()).collect();
        let mut found = b.clone();
        let applied = caught(|| {
            factor.apply(transposed, &mut found);
            Ok(())
        });
        if applied.is_err() || !self.is_good(transposed, &b, &found, goal) {
            return false;
        }
        x.iter_mut().zip(found).for_each(|(x, found)| *x = S::from_double(found));
        true
    }

    /// True if the residual of x plus a bound on its rounding errors meets the tolerance, both in its norm and in the
    /// norm with weighted rows.
    fn is_good(
        &self,
        transposed: bool,
        b: &[T],
        x: &[T],
        (tolerance, weights): (f64, Option<&[f64]>),
    ) -> bool {
        let unit = f64::EPSILON * if T::COMPLEX { OF_COMPLEX } else { 1.0 };
        let size = |value: T| value.re().abs() + value.im().abs();
        // Sums of squares of the residual and of b: as they are, and with weights.
        let (mut left, mut given) = ([0.0; 2], [0.0; 2]);
        let mut add = |row: usize, residual: T, sizes: f64, terms: usize| {
            let error = size(residual) + (terms as f64 + 4.0) * unit * sizes;
            let (square, of_b) = (error * error, b[row].abs2());
            left[0] += square;
            given[0] += of_b;
            if let Some(weights) = weights {
                let weight = weights[row] * weights[row];
                left[1] += weight * square;
                given[1] += weight * of_b;
            }
        };
        with_offsets!(self.a.parts().offsets, offsets => {
            let parts = self.a.parts();
            let rows = offsets.windows(2).map(|pair| pair[0].to_usize()..pair[1].to_usize());
            let rows = rows.map(|range| (&parts.indices[range.clone()], &parts.values[range]));
            if transposed {
                let mut sums: Vec<(T, f64, u32)> = b.iter().map(|&b| (b, size(b), 0)).collect();
                for ((indices, values), &x) in rows.zip(x) {
                    for (&j, &value) in both(indices, values) {
                        let (sum, sizes, terms) = &mut sums[j as usize];
                        *sum -= value * x;
                        *sizes += size(value) * size(x);
                        *terms += 1;
                    }
                }
                for (j, (sum, sizes, terms)) in sums.into_iter().enumerate() {
                    add(j, sum, sizes, terms as usize);
                }
            } else {
                for (row, (indices, values)) in rows.enumerate() {
                    let (mut sum, mut sizes) = (b[row], size(b[row]));
                    for (&j, &value) in both(indices, values) {
                        let x = x[j as usize];
                        sum -= value * x;
                        sizes += size(value) * size(x);
                    }
                    add(row, sum, sizes, values.len());
                }
            }
        });
        // A residual whose square is zero, perhaps by underflow, is good: `SAFE` excludes a small b.
        let meets = |k: usize| {
            (left[k] == 0.0 || SAFE.contains(&left[k]))
                && SAFE.contains(&given[k])
                && left[k].sqrt() <= tolerance * given[k].sqrt()
        };
        meets(0) && (weights.is_none() || meets(1))
    }
}
