//! Classical coarsening, on the host: some unknowns are those of the next level, and the others interpolate from them.
//!
//! ```text
//! row i depends strongly on column j:     -a_ij >= theta max_k -a_ik, signs as seen from a positive a_ii
//! i influences j:                         row j depends strongly on i
//!
//! 3 - 1 - 4 - 1 - 5 - 9        measures: the number of unknowns that i influences, and a fixed fraction
//! F - . - F - . - F - C        round 1: who has the largest measure of all beside it is coarse, who depends on it fine
//! ```
//!
//! An M-matrix, whose couplings are all negative, is what this is for: interpolation then averages with positive
//! weights, and follows strong couplings alone. Choice of unknowns by parallel modified independent sets, PMIS (De
//! Sterck, Yang and Heys, Reducing complexity in parallel algebraic multigrid preconditioners, SIAM Journal on Matrix
//! Analysis and Applications 27, 2006); `extended` has the interpolation.

use super::pattern::Pattern;
use crate::matrix::Csr;
use crate::mixing::mixed;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};

/// Unknowns that one thread takes at least.
const AT_LEAST: usize = 1 << 11;

/// The diagonal of A.
pub(super) struct Diagonal<T> {
    /// Zero where a row has no such entry.
    pub(super) values: Vec<T>,
    /// The number of modulus one that makes each positive, zero for zero.
    phases: Vec<T>,
}

impl<T: Scalar> Diagonal<T> {
    pub(super) fn of(a: &Csr<T>) -> Self {
        let (mut all, mut phases) = (vec![T::zero(); a.rows()], vec![T::zero(); a.rows()]);
        all.par_iter_mut().zip(phases.par_iter_mut()).enumerate().with_min_len(AT_LEAST).for_each(
            |(i, (of_row, phase))| {
                let (columns, values) = a.row(i);
                if let Ok(place) = columns.binary_search(&(i as u32)) {
                    let (value, size) = (values[place], values[place].abs());
                    *of_row = value;
                    if size > T::Real::zero() {
                        *phase = value.conj() / T::from_real(size);
                    }
                }
            },
        );
        Self { values: all, phases }
    }

    /// What an entry of a row is if the diagonal's is positive: negative where their signs differ.
    #[inline(always)]
    pub(super) fn signed(&self, row: usize, value: T) -> T::Real {
        (value * self.phases[row]).re()
    }

    /// The number of this size that has the diagonal's sign.
    #[inline(always)]
    pub(super) fn of_sign(&self, row: usize, size: T::Real) -> T {
        self.phases[row].conj() * T::from_real(size)
    }
}

/// The columns on which each row depends strongly: those with -a_ij >= `threshold` max_k -a_ik, both of the sign that
/// is not the diagonal's. A row whose couplings all have the sign of its diagonal has none.
pub(super) fn strong_dependences<T: Scalar>(a: &Csr<T>, diagonal: &Diagonal<T>, threshold: f64) -> Pattern {
    let threshold = T::Real::from_f64(threshold);
    Pattern::of_rows(a.rows(), |i, strong| {
        let (columns, values) = a.row(i);
        let coupling = |(&j, &value): (&u32, &T)| {
            if j as usize == i { T::Real::zero() } else { -diagonal.signed(i, value) }
        };
        let largest = both(columns, values).map(coupling).fold(T::Real::zero(), Float::max);
        if largest > T::Real::zero() {
            let least = (threshold * largest).max(T::Real::min_positive_value());
            strong.extend(both(columns, values).filter(|&entry| coupling(entry) >= least).map(|(&j, _)| j));
        }
    })
}

/// What is known of an unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Undecided,
    Coarse,
    Fine,
}

/// Which unknowns are those of the next level too, by PMIS. In each round who has the largest measure among all
/// undecided that it depends on or influences becomes coarse, and who depends on it fine; who influences nobody is fine
/// from the start. No two measures are alike, so the result is that of taking unknowns one after the other, the largest
/// measure first, and depends neither on the order of work nor on the number of threads.
pub(super) fn coarse_unknowns(dependences: &Pattern) -> Vec<bool> {
    let influences = dependences.transpose();
    let n = dependences.rows();
    // The fraction decides between as many influences, and the number between two fractions alike.
    let mut measures = vec![(0_u64, 0_u32); n];
    measures.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(i, measure)| {
        *measure = (((influences.row(i).len() as u64) << 32) | (mixed(i as u64) >> 32), i as u32);
    });
    let mut states = vec![State::Fine; n];
    let mut undecided: Vec<u32> = (0..n as u32).filter(|&i| !influences.row(i as usize).is_empty()).collect();
    undecided.iter().for_each(|&i| states[i as usize] = State::Undecided);
    while !undecided.is_empty() {
        let is_largest = |i: usize| {
            let beside = dependences.row(i).iter().chain(influences.row(i));
            let mut beside = beside.map(|&j| j as usize).filter(|&j| states[j] == State::Undecided);
            beside.all(|j| measures[j] <= measures[i])
        };
        let largest = undecided.par_iter().with_min_len(AT_LEAST).map(|&i| is_largest(i as usize)).collect();
        for (&i, largest) in undecided.iter().zip(largest) {
            if largest {
                states[i as usize] = State::Coarse;
            }
        }
        undecided.retain(|&i| {
            if states[i as usize] == State::Coarse {
                return false;
            }
            let depends = dependences.row(i as usize).iter().any(|&j| states[j as usize] == State::Coarse);
            if depends {
                states[i as usize] = State::Fine;
            }
            !depends
        });
    }
    states.into_iter().map(|state| state == State::Coarse).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::generate;
    use crate::matrix::Triplets;
    use crate::random::Random;

    /// A matrix without a pattern: couplings of both signs in rows of very different lengths, of which some have no
    /// diagonal, a negative one, or nothing else.
    pub(in super::super) fn ragged(n: usize, seed: u64) -> Csr<f64> {
        let mut random = Random::new(seed);
        let mut entries = Triplets::new(n, n).unwrap();
        for i in 0..n {
            let length = if random.unit() < 0.05 { 40 } else { (6.0 * random.unit()) as usize };
            for _ in 0..length {
                let j = (random.unit() * n as f64) as usize;
                let sign = if random.unit() < 0.8 { -1.0 } else { 1.0 };
                if i != j {
                    entries.push(i, j, sign * random.unit()).unwrap();
                }
            }
            if random.unit() < 0.95 {
                entries
                    .push(i, i, random.between(1.0, 4.0) * if random.unit() < 0.9 { 1.0 } else { -1.0 })
                    .unwrap();
            }
        }
        crate::assemble::to_csr(&Host, entries).unwrap()
    }

    pub(in super::super) fn matrices() -> Vec<Csr<f64>> {
        let mut all: Vec<_> =
            [5, 60, 400].into_iter().flat_map(|n| [1, 2, 3].map(|seed| ragged(n, seed))).collect();
        all.extend([
            generate::anisotropic2d(23, 17, 0.01).unwrap(),
            generate::jumping([9, 8, 7], 1e6, 2, 1).unwrap(),
            generate::wathen(6, 5, 1).unwrap(),
            generate::convection_diffusion([8, 9, 7], 0.02).unwrap(),
        ]);
        all
    }

    #[test]
    fn dependences_are_as_the_formula_says() {
        for a in matrices() {
            let strong = strong_dependences(&a, &Diagonal::of(&a), 0.25);
            for i in 0..a.rows() {
                let (columns, values) = a.row(i);
                let sign =
                    columns.iter().position(|&j| j as usize == i).map_or(0.0, |at| values[at].signum());
                let beside: Vec<(u32, f64)> = both(columns, values)
                    .filter(|entry| *entry.0 as usize != i)
                    .map(|(&j, &v)| (j, -sign * v))
                    .collect();
                let largest = beside.iter().map(|entry| entry.1).fold(0.0, f64::max);
                let expected: Vec<u32> = beside
                    .iter()
                    .filter(|entry| entry.1 > 0.0 && entry.1 >= 0.25 * largest)
                    .map(|e| e.0)
                    .collect();
                assert_eq!(strong.row(i), expected);
            }
        }
    }

    /// One unknown after the other, that of the largest measure first.
    fn one_by_one(dependences: &Pattern) -> Vec<bool> {
        let n = dependences.rows();
        let influences =
            |i: usize| (0..n).filter(|&k| dependences.row(k).contains(&(i as u32))).collect::<Vec<_>>();
        let influenced: Vec<_> = (0..n).map(influences).collect();
        let mut order: Vec<usize> = (0..n).filter(|&i| !influenced[i].is_empty()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse((influenced[i].len(), mixed(i as u64) >> 32, i)));
        let (mut coarse, mut fine) = (vec![false; n], vec![false; n]);
        for i in order {
            if !fine[i] {
                coarse[i] = true;
                influenced[i].iter().filter(|&&k| !coarse[k]).for_each(|&k| fine[k] = true);
            }
        }
        coarse
    }

    #[test]
    fn the_largest_measure_decides_first() {
        for a in matrices() {
            let strong = strong_dependences(&a, &Diagonal::of(&a), 0.25);
            let coarse = coarse_unknowns(&strong);
            assert_eq!(coarse, one_by_one(&strong));
            let influences = strong.transpose();
            for i in 0..a.rows() {
                let depends = strong.row(i).iter().any(|&j| coarse[j as usize]);
                // Whoever is fine depends on one that is coarse, unless it influences nobody.
                assert!(coarse[i] || depends || influences.row(i).is_empty());
                // Of two coarse ones, none depends on the other and has the smaller measure.
                assert!(
                    !coarse[i]
                        || strong.row(i).iter().all(|&j| {
                            let measure = |i: usize| (influences.row(i).len(), mixed(i as u64) >> 32, i);
                            !coarse[j as usize] || measure(i) > measure(j as usize)
                        })
                );
            }
        }
    }

    #[test]
    fn many_unknowns_have_the_result_of_one_after_the_other() {
        // More than one thread takes: the result is a property of neighbours, whoever decides when.
        let a = generate::poisson2d(90, 91).unwrap();
        let strong = strong_dependences(&a, &Diagonal::of(&a), 0.25);
        let coarse = coarse_unknowns(&strong);
        let count = coarse.iter().filter(|&&coarse| coarse).count();
        assert!((0.2..0.4).contains(&(count as f64 / a.rows() as f64)), "{count}");
        assert!((0..a.rows()).all(|i| coarse[i] != strong.row(i).iter().any(|&j| coarse[j as usize])));
    }
}
