//! The interpolation of classical multigrid, on the host: extended+i (De Sterck, Falgout, Nolting and Yang,
//! Distance-two interpolation for parallel algebraic multigrid, Numerical Linear Algebra with Applications 15, 2008).
//!
//! A fine unknown i interpolates from C_i: the coarse unknowns on which i or a strong fine neighbour of i depends
//! strongly. For an error e that smoothing has reduced, residuals are nearly zero,
//!
//! ```text
//! a_ii e_i + sum of a_ij e_j = 0
//! ```
//!
//! and e is expressed by e_i and C_i alone: e_j of a weak coupling outside of C_i is replaced by e_i, and e_k of a
//! strong fine neighbour k by the mean over C_i and i itself with the weights of row k,
//!
//! ```text
//! w_ij = -(a_ij + sum over k of a_ik a'_kj / s_k) / d         s_k = sum over C_i and i of a'_kl
//! d = a_ii + sum of weak a_in + sum over k of a_ik a'_ki / s_k
//! ```
//!
//! where a'_kl is a_kl if its sign is opposite to the diagonal's, else zero. If rows of A sum to zero, so do those of
//! I - P: a constant is interpolated exactly.

use super::classical::{Diagonal, coarse_unknowns, strong_dependences};
use super::pattern::{Pattern, Places, SCALED, keep_largest, task_of};
use super::strength::packed;
use crate::backend::{ClassicalSteps, CsrPattern};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::{both, of_stretches};
use crate::scalar::Scalar;
use num_traits::{Float, Zero};
use std::any::Any;

/// A strong fine neighbour with a longer row is replaced by e_i too, because its row would be read for each unknown
/// that depends on it. An unknown with more neighbours than this is rarely fine.
const LONGEST: usize = 1 << 10;

/// The prolongation from the coarse unknowns, of which there may be none, with at most `weights` entries a row: by the
/// kernels of the backend if they have room, else on the host.
pub(super) fn classical_prolongation<T: Scalar, B: ClassicalSteps>(
    backend: &B,
    a: &Csr<T, B>,
    strength: f64,
    weights: usize,
) -> Result<Csr<T, B>> {
    if weights <= B::MOST_WEIGHTS {
        let (starts, columns) = backend.strong_columns(a.parts(), strength)?;
        let strong =
            CsrPattern { rows: a.rows(), columns: a.rows(), offsets: starts.as_ref(), indices: &columns };
        let found = backend.extended_interpolation(a.parts(), strong, weights)?;
        if let Some(((offsets, indices, values), coarse)) = found {
            return Ok(Csr::from_parts_unchecked(a.rows(), coarse, offsets, indices, values));
        }
    }
    on_host(backend, a, |a| {
        let diagonal = Diagonal::of(a);
        let dependences = strong_dependences(a, &diagonal, strength);
        let coarse = coarse_unknowns(&dependences);
        extended(a, &dependences, &coarse, &diagonal, weights)
    })
}

/// The same prolongation with fewer weights a row: the largest, scaled so that their sum stays the same.
pub(super) fn fewer_weights<T: Scalar, B: ClassicalSteps>(
    backend: &B,
    p: &Csr<T, B>,
    weights: usize,
) -> Result<Csr<T, B>> {
    if weights <= B::MOST_WEIGHTS {
        let (offsets, indices, values) = backend.with_fewer_weights(p.parts(), weights)?;
        return Ok(Csr::from_parts_unchecked(p.rows(), p.columns(), offsets, indices, values));
    }
    on_host(backend, p, |p| with_fewer_weights(p, weights))
}

/// A matrix made on the host from another one.
fn on_host<T: Scalar, B: ClassicalSteps>(
    backend: &B,
    a: &Csr<T, B>,
    make: impl FnOnce(&Csr<T>) -> Csr<T>,
) -> Result<Csr<T, B>> {
    let any: &dyn Any = a;
    match any.downcast_ref::<Csr<T>>() {
        Some(here) => make(here),
        None => make(&a.to_host(backend)?),
    }
    .into_backend(backend)
}

/// The data from which rows of the prolongation are computed.
struct Level<'a, T: Scalar> {
    a: &'a Csr<T>,
    dependences: &'a Pattern,
    coarse: &'a [bool],
    diagonal: &'a Diagonal<T>,
}

impl<T: Scalar> Level<'_, T> {
    /// Returns whether k is a fine unknown that is replaced by a mean over its neighbours.
    fn is_averaged(&self, k: u32) -> bool {
        !self.coarse[k as usize] && self.a.row(k as usize).0.len() <= LONGEST
    }

    /// C_i, in the order in which its members are found.
    fn coarse_around(&self, i: usize, places: &mut Places, around: &mut Vec<u32>) {
        around.clear();
        for &j in self.dependences.row(i) {
            if self.coarse[j as usize] {
                places.add(i, j, around);
            } else if self.is_averaged(j) {
                for &l in self.dependences.row(j as usize) {
                    if self.coarse[l as usize] {
                        places.add(i, l, around);
                    }
                }
            }
        }
    }

    /// The weights of a fine unknown for the C_i in `places`; zeros if d is zero. `mean` is a workspace.
    fn weights(&self, i: usize, places: &Places, weights: &mut [T], mean: &mut Vec<(usize, T)>) {
        weights.fill(T::zero());
        let mut d = self.diagonal.values[i];
        let mut strong = self.dependences.row(i).iter().peekable();
        let (columns, values) = self.a.row(i);
        for (&j, &value) in both(columns, values).filter(|entry| *entry.0 as usize != i) {
            let is_strong = strong.next_if_eq(&&j).is_some();
            if let Some(place) = places.of(i, j) {
                weights[place] += value;
                continue;
            }
            let sums = (is_strong && self.is_averaged(j)).then(|| self.mean(i, j, places, mean));
            match sums {
                Some((sum, of_i)) if sum != T::zero() => {
                    let scale = value / sum;
                    mean.iter().for_each(|&(place, of_column)| weights[place] += scale * of_column);
                    d += scale * of_i;
                }
                _ => d += value,
            }
        }
        let finite = weights.iter_mut().fold(true, |finite, weight| {
            *weight = -*weight / d;
            finite && weight.is_finite()
        });
        if !finite {
            weights.fill(T::zero());
        }
    }

    /// The mean that replaces e_k: positions in C_i with their a'_kl, and the sums s_k and a'_ki.
    fn mean(&self, i: usize, k: u32, places: &Places, mean: &mut Vec<(usize, T)>) -> (T, T) {
        mean.clear();
        let (mut sum, mut of_i) = (T::zero(), T::zero());
        let (columns, values) = self.a.row(k as usize);
        for (&l, &value) in both(columns, values) {
            let place = places.of(i, l);
            if (place.is_none() && l as usize != i)
                || self.diagonal.signed(k as usize, value) >= T::Real::zero()
            {
                continue;
            }
            sum += value;
            match place {
                Some(place) => mean.push((place, value)),
                None => of_i = value,
            }
        }
        (sum, of_i)
    }
}

/// The prolongation: rows of the identity for `coarse` unknowns, and for others the `most` weights of largest
/// magnitude, scaled so that their sum stays the same. Rows are independent, so the number of threads does not change
/// any bits.
fn extended<T: Scalar>(
    a: &Csr<T>,
    dependences: &Pattern,
    coarse: &[bool],
    diagonal: &Diagonal<T>,
    most: usize,
) -> Csr<T> {
    let n = a.rows();
    let (mut count, mut number) = (0, vec![0_u32; n]);
    for (number, _) in number.iter_mut().zip(coarse).filter(|unknown| *unknown.1) {
        *number = count;
        count += 1;
    }
    let level = Level { a, dependences, coarse, diagonal };
    let room = || (Places::new(n), Vec::new(), Vec::new(), Vec::new());
    by_rows((n, count as usize), room, |i, (places, around, weights, mean), row| {
        if coarse[i] {
            row.push((number[i], T::one()));
            return;
        }
        level.coarse_around(i, places, around);
        weights.resize(around.len(), T::zero());
        level.weights(i, places, weights, mean);
        let entries = both(around, weights).filter(|entry| *entry.1 != T::zero());
        row.extend(entries.map(|(&l, &weight)| (number[l as usize], weight)));
        truncate(row, most);
    })
}

/// The prolongation with fewer weights per row.
fn with_fewer_weights<T: Scalar>(p: &Csr<T>, most: usize) -> Csr<T> {
    by_rows(
        (p.rows(), p.columns()),
        || (),
        |i, (), row| {
            let (columns, values) = p.row(i);
            row.extend(both(columns, values).map(|(&column, &value)| (column, value)));
            truncate(row, most);
        },
    )
}

/// Builds a matrix in parallel: `row` computes the entries of a row, with a workspace that `room` creates for each
/// task.
fn by_rows<T: Scalar, R>(
    (n, columns): (usize, usize),
    room: impl Fn() -> R + Sync,
    row: impl Fn(usize, &mut R, &mut Vec<(u32, T)>) + Sync,
) -> Csr<T> {
    let stretches = of_stretches(&(0..n), task_of(n), |rows| {
        let (mut ends, mut entries, mut room) = (Vec::with_capacity(rows.len()), Vec::new(), room());
        let mut of_row = Vec::new();
        for number in rows {
            of_row.clear();
            row(number, &mut room, &mut of_row);
            entries.extend_from_slice(&of_row);
            ends.push(entries.len() as u64);
        }
        (ends, entries)
    });
    let entries = stretches.iter().map(|(_, entries)| entries.len()).sum();
    let mut offsets = Vec::with_capacity(n + 1);
    offsets.push(0_u64);
    let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
    for (ends, entries) in stretches {
        let before = indices.len() as u64;
        offsets.extend(ends.into_iter().map(|end| before + end));
        indices.extend(entries.iter().map(|entry| entry.0));
        values.extend(entries.iter().map(|entry| entry.1));
    }
    Csr::from_parts_unchecked(n, columns, packed(offsets), indices, values)
}

/// Keeps the `most` largest entries in the order of columns, scaled so that the row sum stays the same.
fn truncate<T: Scalar>(row: &mut Vec<(u32, T)>, most: usize) {
    let sum = |row: &[(u32, T)]| row.iter().fold(T::zero(), |sum, entry| sum + entry.1);
    let all = sum(row);
    let truncated = row.len() > most;
    keep_largest(row, most);
    if truncated {
        let scale = all / sum(row);
        let factor = T::Real::from_f64(SCALED);
        if scale.re() > factor.recip() && scale.abs() < factor {
            row.iter_mut().for_each(|entry| entry.1 *= scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::multigrid::classical::tests::matrices;
    use num_complex::Complex;
    use std::collections::BTreeSet;

    fn parts<T: Scalar>(a: &Csr<T>) -> (Pattern, Vec<bool>, Diagonal<T>) {
        let diagonal = Diagonal::of(a);
        let strong = strong_dependences(a, &diagonal, 0.25);
        let coarse = coarse_unknowns(&strong);
        (strong, coarse, diagonal)
    }

    /// Row i of the prolongation from the formula, with dense rows, in the numbering of this level.
    fn row_of(dense: &[Vec<f64>], strong: &Pattern, coarse: &[bool], i: usize) -> Vec<(usize, f64)> {
        let n = dense.len();
        let depends = |i: usize, j: usize| strong.row(i).contains(&(j as u32));
        let strong_coarse = |i: usize| (0..n).filter(move |&j| depends(i, j) && coarse[j]);
        let strong_fine: Vec<usize> = (0..n).filter(|&k| depends(i, k) && !coarse[k]).collect();
        let mut around: BTreeSet<usize> = strong_coarse(i).collect();
        strong_fine.iter().for_each(|&k| around.extend(strong_coarse(k)));
        let opposite = |k: usize, l: usize| if dense[k][l] * dense[k][k] < 0.0 { dense[k][l] } else { 0.0 };
        let sum = |k: usize| around.iter().map(|&l| opposite(k, l)).sum::<f64>() + opposite(k, i);
        let averaged: Vec<usize> = strong_fine.iter().copied().filter(|&k| sum(k) != 0.0).collect();
        let others = (0..n).filter(|j| *j != i && !around.contains(j) && !averaged.contains(j));
        let d = dense[i][i]
            + others.map(|j| dense[i][j]).sum::<f64>()
            + averaged.iter().map(|&k| dense[i][k] * opposite(k, i) / sum(k)).sum::<f64>();
        let weight = |&j: &usize| {
            let through = averaged.iter().map(|&k| dense[i][k] * opposite(k, j) / sum(k)).sum::<f64>();
            (j, -(dense[i][j] + through) / d)
        };
        around.iter().map(weight).collect()
    }

    #[test]
    fn rows_are_as_the_formula_says() {
        let mut met = 0;
        for a in matrices() {
            let n = a.rows();
            let mut dense = vec![vec![0.0; n]; n];
            a.iter().for_each(|(i, j, value)| dense[i][j] = value);
            let (strong, coarse, diagonal) = parts(&a);
            let p = extended(&a, &strong, &coarse, &diagonal, usize::MAX);
            let unknowns: Vec<usize> = (0..n).filter(|&i| coarse[i]).collect();
            assert_eq!((p.rows(), p.columns()), (n, unknowns.len()));
            for i in 0..n {
                let (columns, values) = p.row(i);
                assert!(columns.is_sorted());
                if coarse[i] {
                    assert_eq!((unknowns[columns[0] as usize], values), (i, &[1.0][..]));
                    continue;
                }
                let expected = row_of(&dense, &strong, &coarse, i);
                let size = expected.iter().map(|entry| entry.1.abs()).fold(0.0, f64::max);
                if !size.is_finite() || size > 1e8 {
                    continue;
                }
                for (j, weight) in expected {
                    let at = columns.iter().position(|&column| unknowns[column as usize] == j);
                    let found = at.map_or(0.0, |at| values[at]);
                    assert!((found - weight).abs() <= 1e-9 * size, "row {i}, column {j}: {found} {weight}");
                    met += usize::from(at.is_some());
                }
            }
        }
        assert!(met > 5000, "{met}");
    }

    #[test]
    fn constants_are_interpolated_exactly_with_few_weights_too() {
        // Interior rows sum to zero, others have a larger diagonal.
        for a in [generate::poisson3d(9, 8, 10).unwrap(), generate::anisotropic2d(30, 20, 1e-2).unwrap()] {
            let (strong, coarse, diagonal) = parts(&a);
            for most in [1, 2, 4, usize::MAX] {
                let p = extended(&a, &strong, &coarse, &diagonal, most);
                for (i, is_coarse) in coarse.iter().copied().enumerate() {
                    let (sum, weights) = (a.row(i).1.iter().sum::<f64>(), p.row(i).1);
                    assert!(!weights.is_empty() && weights.len() <= most);
                    assert!(weights.iter().all(|&weight| weight > 0.0 && weight < 1.0 + 1e-12));
                    let of_row = weights.iter().sum::<f64>();
                    assert!(
                        of_row < 1.0 + 1e-12 && (sum > 1e-9 || is_coarse || of_row > 1.0 - 1e-9),
                        "{i}: {of_row}"
                    );
                }
            }
        }
    }

    #[test]
    fn fewer_weights_are_those_that_would_have_been_left() {
        let a = generate::jumping([9, 8, 7], 1e6, 2, 1).unwrap();
        let (strong, coarse, diagonal) = parts(&a);
        let of = |most| extended(&a, &strong, &coarse, &diagonal, most);
        let (all, two) = (of(usize::MAX), of(2));
        assert!(all.nonzeros() > 2 * a.rows() && two.nonzeros() < 2 * a.rows());
        let fewer = with_fewer_weights(&with_fewer_weights(&all, 4), 2);
        assert_eq!((fewer.columns(), fewer.nonzeros()), (two.columns(), two.nonzeros()));
        for (one, other) in fewer.iter().zip(two.iter()) {
            assert_eq!((one.0, one.1), (other.0, other.1));
            assert!((one.2 - other.2).abs() < 1e-12);
        }
    }

    #[test]
    fn signs_are_seen_from_the_diagonal() {
        let a = generate::wathen(5, 6, 2).unwrap();
        let (strong, coarse, diagonal) = parts(&a);
        let p = extended(&a, &strong, &coarse, &diagonal, 4);
        // The same weights must result if rows are multiplied by numbers of modulus one.
        let turned = |i: usize, value: f64| Complex::from_polar(1.0, i as f64) * value;
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..a.rows() {
            columns.extend_from_slice(a.row(i).0);
            values.extend(a.row(i).1.iter().map(|&value| turned(i, value)));
            offsets.push(columns.len());
        }
        let b = Csr::from_parts(a.rows(), a.rows(), offsets, columns, values).unwrap();
        let (strong_there, coarse_there, diagonal) = parts(&b);
        assert_eq!(strong.columns, strong_there.columns);
        assert_eq!(coarse, coarse_there);
        let there = extended(&b, &strong, &coarse, &diagonal, 4);
        assert_eq!(p.nonzeros(), there.nonzeros());
        for (here, there) in p.iter().zip(there.iter()) {
            assert_eq!((here.0, here.1), (there.0, there.1));
            assert!((there.2 - here.2).norm() < 1e-9 * here.2.abs().max(1.0), "{here:?} {there:?}");
        }
    }

    #[test]
    fn sums_stay_where_entries_go() {
        let mut row = vec![(1, 0.125), (4, 0.5), (6, 0.25), (9, 0.125)];
        truncate(&mut row, 2);
        assert_eq!(row, [(4, 0.5 * (1.0 / 0.75)), (6, 0.25 * (1.0 / 0.75))]);
        // The sum of the dropped weights has the opposite sign: weights are not scaled.
        let mut row = vec![(1, 0.5), (2, -0.45), (3, -0.4)];
        truncate(&mut row, 1);
        assert_eq!(row, [(1, 0.5)]);
    }
}
