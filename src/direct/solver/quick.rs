//! Solves with existing factors: one product with A in working precision shows that x is accurate enough.

use super::Direct;
use crate::backend::with_offsets;
use crate::direct::Factorable;
use crate::direct::goal::{Weights, inverses};
use crate::direct::lanes::subtract_row;
use crate::direct::sides::{LANES, RightHandSides, store};
use crate::direct::steps::caught;
use crate::lock::lock;
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::parallel::{Inlined, both, vectorised_whole};
use crate::scalar::{Offset, Scalar};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Sums of squares in this range have neither underflowed nor overflowed.
const SAFE: std::ops::Range<f64> = 1e-200..1e200;

/// With fewer numbers than this in right-hand sides and A, another thread saves no time.
const FEW: usize = 1 << 16;

/// The rounding error of a complex product, relative to that of a real one.
const OF_COMPLEX: f64 = 4.0;

/// What x has to meet.
#[derive(Clone, Copy)]
struct Asked<'a> {
    transposed: bool,
    tolerance: f64,
    /// Weights of rows.
    weights: Option<&'a [f64]>,
}

/// Right-hand sides and solutions in lanes, and memory to work in.
type Memory<T, const N: usize> = [Vec<[T; N]>; 3];

impl<T: Factorable> Direct<T> {
    /// Solves A x = b (A^T x = b if `transposed`) for right-hand sides stored one after another, with the current
    /// factor alone. Returns true if each x meets the tolerance as [`Direct::solve`] defines it, with the rounding
    /// errors of its residual added to the residual. Otherwise, or without a factor, x must not be used.
    pub(crate) fn solve_quickly<S: Scalar<Double = T>>(
        &mut self,
        transposed: bool,
        b: RightHandSides<'_, S>,
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
        let weights = match &of_columns {
            Some(weights) => weights.rows.as_deref(),
            None => weights.rows.as_deref().filter(|_| !transposed),
        };
        let goal = Asked { transposed, tolerance, weights };
        if b.len() == n {
            return self.solve_lanes::<S, 1>(goal, (b, 0), x, &mut Memory::default());
        }
        let all = AtomicBool::new(true);
        // Groups are independent of each other, so that threads change no bits.
        let least = FEW.div_ceil(LANES * (n + self.a.nonzeros()));
        let groups = x.par_chunks_mut(LANES * n).enumerate().with_min_len(least);
        // A group takes the memory of an earlier one: new pages would have to be cleared first.
        let spare: Mutex<Vec<Memory<T, LANES>>> = Mutex::default();
        groups.for_each(|(group, x)| {
            if !all.load(Ordering::Relaxed) {
                return;
            }
            let b = (b, group * LANES);
            let good = match x.len() / n {
                1 => self.solve_lanes::<S, 1>(goal, b, x, &mut Memory::default()),
                2 => self.solve_lanes::<S, 2>(goal, b, x, &mut Memory::default()),
                _ => {
                    let mut memory = lock(&spare).pop().unwrap_or_default();
                    let good = self.solve_lanes(goal, b, x, &mut memory);
                    lock(&spare).push(memory);
                    good
                }
            };
            if !good {
                all.store(false, Ordering::Relaxed);
            }
        });
        all.into_inner()
    }

    /// Solves for at most `N` right-hand sides, from number `first` on.
    fn solve_lanes<S: Scalar<Double = T>, const N: usize>(
        &self,
        goal: Asked<'_>,
        (b, first): (RightHandSides<'_, S>, usize),
        x: &mut [S],
        [given, found, work]: &mut Memory<T, N>,
    ) -> bool {
        let n = self.a.rows();
        let Some(factor) = &self.factor else { return false };
        let count = x.len() / n;
        b.load((n, first, count), given, S::to_double);
        found.clone_from(given);
        let applied = caught(|| {
            factor.apply_lanes(goal.transposed, found, work);
            Ok(())
        });
        if applied.is_err() {
            return false;
        }
        let judged = Judged { a: &self.a, goal, b: given, x: found };
        let good = if N == 1 { judged.run() } else { vectorised_whole(judged) };
        if !good[..count].iter().all(|&good| good) {
            return false;
        }
        store(found, x, S::from_double);
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
}

/// Candidates to be judged.
struct Judged<'a, T: Factorable, const N: usize> {
    a: &'a Csr<T>,
    goal: Asked<'a>,
    b: &'a [[T; N]],
    x: &'a [[T; N]],
}

/// Sums of squares of residuals with their rounding errors, and of b: as they are, and with the weights of rows.
struct Sums<'a, T: Factorable, const N: usize> {
    goal: Asked<'a>,
    /// The rounding error of an operation.
    unit: f64,
    b: &'a [[T; N]],
    left: [[f64; N]; 2],
    given: [[f64; N]; 2],
}

impl<T: Factorable, const N: usize> Sums<'_, T, N> {
    /// Adds a row's residual, a sum of so many terms of these sizes.
    #[inline(always)]
    fn add(&mut self, row: usize, residual: &[T; N], sizes: &[f64; N], terms: usize) {
        let rounding = (terms as f64 + 4.0) * self.unit;
        let weight = self.goal.weights.map_or(1.0, |weights| weights[row] * weights[row]);
        for v in 0..N {
            let error = size(residual[v]) + rounding * sizes[v];
            let (left, given) = (error * error, self.b[row][v].abs2());
            self.left[0][v] += left;
            self.left[1][v] += weight * left;
            self.given[0][v] += given;
            self.given[1][v] += weight * given;
        }
    }
}

#[inline(always)]
fn size<T: Factorable>(value: T) -> f64 {
    value.re().abs() + value.im().abs()
}

impl<T: Factorable, const N: usize> Inlined for Judged<'_, T, N> {
    /// Whether the residual of each x, and a bound of its rounding errors, meet the tolerance: by their norm, and by
    /// that of rows in units of their own.
    type Output = [bool; N];

    #[inline(always)]
    fn run(self) -> [bool; N] {
        let Self { a, goal, b, x } = self;
        let unit = f64::EPSILON * if T::COMPLEX { OF_COMPLEX } else { 1.0 };
        let mut sums = Sums { goal, unit, b, left: [[0.0; N]; 2], given: [[0.0; N]; 2] };
        let parts = a.parts();
        with_offsets!(parts.offsets, offsets => {
            let range = |row: usize| offsets[row].to_usize()..offsets[row + 1].to_usize();
            if goal.transposed {
                let mut rows: Vec<_> = b.iter().map(|&b| (b, b.map(size), 0)).collect();
                for (row, x) in x.iter().enumerate() {
                    let range = range(row);
                    for (&j, &value) in both(&parts.indices[range.clone()], &parts.values[range]) {
                        let (sum, sizes, terms) = &mut rows[j as usize];
                        take(sum, sizes, value, x);
                        *terms += 1;
                    }
                }
                for (row, (sum, sizes, terms)) in rows.iter().enumerate() {
                    sums.add(row, sum, sizes, *terms);
                }
            } else {
                for (row, &given) in b.iter().enumerate() {
                    let (mut sum, mut sizes) = (given, given.map(size));
                    let range = range(row);
                    let terms = range.len();
                    for (&j, &value) in both(&parts.indices[range.clone()], &parts.values[range]) {
                        take(&mut sum, &mut sizes, value, &x[j as usize]);
                    }
                    sums.add(row, &sum, &sizes, terms);
                }
            }
        });
        // A residual whose square is zero, perhaps by underflow, is good: `SAFE` excludes a small b.
        let meets = |left: f64, given: f64| {
            (left == 0.0 || SAFE.contains(&left))
                && SAFE.contains(&given)
                && left.sqrt() <= goal.tolerance * given.sqrt()
        };
        let is_zero = |v: usize| both(b, x).all(|(b, x)| b[v] == T::default() && x[v] == T::default());
        std::array::from_fn(|v| {
            let good = (0..2).all(|k| meets(sums.left[k][v], sums.given[k][v]));
            good || (sums.given[0][v] == 0.0 && is_zero(v))
        })
    }
}

/// Subtracts an entry's product from a residual, and adds its size.
#[inline(always)]
fn take<T: Factorable, const N: usize>(sum: &mut [T; N], sizes: &mut [f64; N], value: T, x: &[T; N]) {
    subtract_row(sum, value, x);
    let of_value = size(value);
    for v in 0..N {
        sizes[v] += of_value * size(x[v]);
    }
}
