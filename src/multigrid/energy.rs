//! Prolongations of minimal energy, on the host.
//!
//! With flat elements, couplings have both signs, and a prolongation smoothed once represents smooth errors badly.
//! Among all matrices P of a given pattern that map the near-null vector of the next level to that of this one, the
//! best minimises the sum of p^H A p over the columns p; a few steps towards it suffice (Mandel, Brezina and Vanek,
//! Energy optimization of algebraic multigrid bases, Computing 62, 1999; Olson, Schroder and Tuminaro, A general
//! interpolation strategy for algebraic multigrid using energy minimization, SIAM Journal on Scientific Computing 33,
//! 2011).

use super::pattern::{AT_LEAST, Pattern, Places, SCALED, keep_largest, task_of};
use super::strength::packed;
use crate::backend::NO_GROUP;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::{of_stretches, prelude::*};
use crate::scalar::Scalar;
use num_traits::{Float, Zero};

/// A row has the aggregates of all nodes within this many strong couplings.
const STEPS: usize = 2;

/// Steps of Chebyshev's iteration towards the minimal energy, and the lower end of its interval of eigenvalues,
/// relative to the largest.
const ITERATIONS: usize = 6;
const LOWEST: f64 = 0.06;

/// A row keeps at most this many entries, the largest in magnitude.
const MOST: usize = 8;

impl Pattern {
    /// Row i has the aggregates of all nodes that are reached by [`STEPS`] strong couplings.
    fn around(strong: &Csr<f32>, of: &[u32], groups: usize) -> Self {
        let mut rows: Vec<Vec<u32>> =
            of.iter().map(|&group| if group == NO_GROUP { Vec::new() } else { vec![group] }).collect();
        for _ in 0..STEPS {
            let before = &rows;
            rows = of_stretches(&(0..of.len()), task_of(of.len()), |nodes| {
                let mut places = Places::new(groups);
                let of_node = |node: usize| {
                    let mut row = before[node].clone();
                    places.set(node, &row);
                    for &neighbour in strong.row(node).0 {
                        for &group in &before[neighbour as usize] {
                            if places.of(node, group).is_none() {
                                places.set(node, &[group]);
                                row.push(group);
                            }
                        }
                    }
                    row.sort_unstable();
                    row
                };
                nodes.map(of_node).collect::<Vec<_>>()
            })
            .concat();
        }
        let mut starts = vec![0];
        rows.iter().for_each(|row| starts.push(starts[starts.len() - 1] + row.len()));
        Self { starts, columns: rows.concat() }
    }

    /// Sets the values of rows, in parallel: `set` gets the row, its columns and its values.
    fn fill<T: Scalar>(
        &self,
        groups: usize,
        values: &mut [T],
        set: impl Fn(usize, &[u32], &mut [T], &mut Places) + Sync,
    ) {
        let task = task_of(self.rows());
        let (mut parts, mut rest) = (Vec::new(), values);
        for first in (0..self.rows()).step_by(task) {
            let end = self.rows().min(first + task);
            let (part, more) = rest.split_at_mut(self.starts[end] - self.starts[first]);
            parts.push((first..end, part));
            rest = more;
        }
        parts.into_par_iter().for_each(|(rows, part)| {
            let (mut places, before) = (Places::new(groups), self.starts[rows.start]);
            for row in rows {
                let range = self.range(row);
                let values = &mut part[range.start - before..range.end - before];
                set(row, &self.columns[range], values, &mut places);
            }
        });
    }
}

/// The prolongation P of least energy with P `norms` = `vector`. `of[i]` is the aggregate of node i, and `norms` has an
/// element for each aggregate.
pub(super) fn of_least_energy<T: Scalar>(
    a: &Csr<T>,
    strong: &Csr<f32>,
    of: &[u32],
    vector: &[T::Real],
    norms: &[T::Real],
) -> Csr<T> {
    let (n, groups) = (a.rows(), norms.len());
    let pattern = Pattern::around(strong, of, groups);
    let entries = pattern.columns.len();
    let real = |value: f64| T::from_real(T::Real::from_f64(value));
    // The direction of descent in the space where P times the vector stays the same: A P on the pattern, divided by the
    // row sums of magnitudes of A, with each row made orthogonal to the vector.
    let descent = |p: &[T], to: &mut [T], update: &(dyn Fn(T, T) -> T + Sync)| {
        pattern.fill(groups, to, |row, columns, to, places| {
            places.set(row, columns);
            let mut sums = vec![T::zero(); columns.len()];
            let mut magnitudes = T::Real::zero();
            let (neighbours, values) = a.row(row);
            for (&neighbour, &value) in both(neighbours, values) {
                magnitudes += value.abs();
                let range = pattern.range(neighbour as usize);
                for (&column, &entry) in both(&pattern.columns[range.clone()], &p[range]) {
                    if let Some(place) = places.of(row, column) {
                        sums[place] += value * entry;
                    }
                }
            }
            let (mut along, mut square) = (T::zero(), T::Real::zero());
            for (&column, &sum) in both(columns, &sums) {
                let norm = norms[column as usize];
                along += sum * T::from_real(norm);
                square += norm * norm;
            }
            let scale = if magnitudes > T::Real::zero() { magnitudes.recip() } else { T::Real::zero() };
            let along =
                if square > T::Real::zero() { along * T::from_real(square.recip()) } else { T::zero() };
            for ((&column, sum), to) in columns.iter().zip(sums).zip(to) {
                let along = along * T::from_real(norms[column as usize]);
                *to = update((sum - along) * T::from_real(scale), *to);
            }
        });
    };
    let mut p = vec![T::zero(); entries];
    pattern.fill(groups, &mut p, |row, columns, p, _| {
        if let Ok(place) = columns.binary_search(&of[row]) {
            p[place] = T::from_real(vector[row] / norms[of[row] as usize]);
        }
    });
    // Saad, Iterative Methods for Sparse Linear Systems, algorithm 12.1.
    let (middle, half) = ((1.0 + LOWEST) / 2.0, (1.0 - LOWEST) / 2.0);
    let sigma = middle / half;
    let mut rho = 1.0 / sigma;
    let mut r = vec![T::zero(); entries];
    descent(&p, &mut r, &|energy, _| -energy);
    let mut step: Vec<T> = r.iter().map(|&r| r * real(1.0 / middle)).collect();
    for iteration in 0..ITERATIONS {
        p.par_iter_mut().zip(&step).with_min_len(1 << 12).for_each(|(p, &step)| *p += step);
        if iteration + 1 < ITERATIONS {
            descent(&step, &mut r, &|energy, r| r - energy);
            let next = 1.0 / (2.0 * sigma - rho);
            let (again, by) = (real(next * rho), real(2.0 * next / half));
            step.par_iter_mut()
                .zip(&r)
                .with_min_len(1 << 12)
                .for_each(|(step, &r)| *step = again * *step + by * r);
            rho = next;
        }
    }
    kept(&pattern, &p, (n, groups), vector, norms)
}

/// Keeps the entries of largest magnitude of each row, scaled so that P maps `norms` to `vector`.
fn kept<T: Scalar>(
    pattern: &Pattern,
    p: &[T],
    (n, groups): (usize, usize),
    vector: &[T::Real],
    norms: &[T::Real],
) -> Csr<T> {
    let rows = (0..n).into_par_iter().with_min_len(AT_LEAST).map(|row| {
        let range = pattern.range(row);
        let columns = pattern.columns[range.clone()].iter().copied();
        let mut entries: Vec<(u32, T)> = columns.zip(p[range].iter().copied()).collect();
        if entries.len() > MOST {
            keep_largest(&mut entries, MOST);
            let taken = entries
                .iter()
                .fold(T::Real::zero(), |sum, &(column, value)| sum + value.re() * norms[column as usize]);
            let scale = vector[row] / taken;
            if scale > T::Real::from_f64(1.0 / SCALED) && scale < T::Real::from_f64(SCALED) {
                entries.iter_mut().for_each(|entry| entry.1 *= T::from_real(scale));
            }
        }
        entries
    });
    let rows = rows.collect();
    let mut offsets = vec![0_u64];
    rows.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len() as u64));
    let (columns, values) = rows.into_iter().flatten().unzip();
    Csr::from_parts_unchecked(n, groups, packed(offsets), columns, values)
}
