//! Classical coarsening, on the host: the coarse level has some of the unknowns, and the others interpolate from them.
//!
//! ```text
//! row i depends strongly on column j:     -a_ij >= theta max_k -a_ik, signs as seen from a positive a_ii
//! i influences j:                         row j depends strongly on i
//!
//! 3 - 1 - 4 - 1 - 5 - 9        measures: the number of unknowns that i influences, and a fixed fraction
//! F - . - F - . - F - C        round 1: an unknown with the largest measure among its neighbours becomes coarse (C),
//!                              and those that depend on it become fine (F)
//! ```
//!
//! It is meant for M-matrices, whose couplings are all negative: interpolation then averages with positive weights, and
//! follows only strong couplings. The coarse unknowns are chosen by parallel modified independent sets, PMIS (De
//! Sterck, Yang and Heys, Reducing complexity in parallel algebraic multigrid preconditioners, SIAM Journal on Matrix
//! Analysis and Applications 27, 2006); `extended` has the interpolation.

use super::pattern::Pattern;
use crate::matrix::Csr;
use crate::mixing::mixed;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};

/// The minimum number of unknowns for each thread.
const AT_LEAST: usize = 1 << 11;

/// The diagonal of A.
pub(super) struct Diagonal<T> {
    /// a_ii, or zero if a row has no such entry.
    pub(super) values: Vec<T>,
    /// The number of modulus one whose product with the diagonal entry is positive; zero for zero.
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

    /// The real part of an entry after its row is multiplied such that the diagonal is positive: negative if the entry
    /// and the diagonal have opposite signs.
    #[inline(always)]
    pub(super) fn signed(&self, row: usize, value: T) -> T::Real {
        (value * self.phases[row]).re()
    }

    /// A number of magnitude `size` with the sign of the row's diagonal.
    #[inline(always)]
    pub(super) fn of_sign(&self, row: usize, size: T::Real) -> T {
        self.phases[row].conj() * T::from_real(size)
    }
}

/// The columns on which each row depends strongly: those with -a_ij >= `threshold` max_k -a_ik, in rows scaled to a
/// positive diagonal. A row whose couplings all have the sign of its diagonal has none.
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

/// The state of an unknown during the selection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Undecided,
    Coarse,
    Fine,
}

/// Selects the coarse unknowns by PMIS. In each round, an unknown whose measure is the largest among all undecided
/// unknowns that it depends on or influences becomes coarse, and the unknowns that depend on it become fine. An unknown
/// that influences no other is fine from the start. No two measures are equal, so the result is that of the sequential
/// algorithm, which takes unknowns in the order of decreasing measure; it depends neither on the order of work nor on
/// the number of threads.
pub(super) fn coarse_unknowns(dependences: &Pattern) -> Vec<bool> {
    let influences = dependences.transpose();
    let n = dependences.rows();
    // The integer part counts influences; a pseudo-random fraction breaks ties, and the index breaks ties of fractions.
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

    /// A matrix without structure: couplings of both signs in rows of very different lengths, some with no diagonal
    /// entry, with a negative one, or with no other entry.
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

    /// The sequential algorithm: one unknown after another, in the order of decreasing measure.
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
                // A fine unknown depends on a coarse one, unless it influences no other.
                assert!(coarse[i] || depends || influences.row(i).is_empty());
                // If a coarse unknown depends on another, it has the larger measure.
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
        // Large enough for several threads: the result depends on neighbours only, not on the order of decisions.
        let a = generate::poisson2d(90, 91).unwrap();
        let strong = strong_dependences(&a, &Diagonal::of(&a), 0.25);
        let coarse = coarse_unknowns(&strong);
        let count = coarse.iter().filter(|&&coarse| coarse).count();
        assert!((0.2..0.4).contains(&(count as f64 / a.rows() as f64)), "{count}");
        assert!((0..a.rows()).all(|i| coarse[i] != strong.row(i).iter().any(|&j| coarse[j as usize])));
    }
}
