//! Stages that are given up where what they have come to says that they will not arrive.

use super::race::iterations_left;

/// After so many iterations multigrid must have brought the residual to less than this part of the largest one so
/// far; else it does not suit the matrix, and the next method goes on. What it begins with says little: where b
/// changes slowly from row to row, the first correction is large and leaves a residual of up to 700 times that size,
/// on meshes with flat elements, from which it falls. Of 25 matrices with three right-hand sides each this gives up 8
/// solves, which take 254 iterations or more; what they begin with as the measure gave up 13, among them one of 26
/// iterations.
const CONTRACTED: [(usize, f64); 2] = [(10, 0.8), (20, 0.5)];

/// After so many iterations it has to have brought the smallest residual of the first half of them to this part.
/// Conjugate gradients stand for dozens of iterations where a few flat elements are left over, and arrive then.
const HALF_TIME: usize = 50;
const SINCE_HALF_TIME: f64 = 0.1;

/// From so many iterations on incomplete factors are judged by the slope of the residual over the second half of them:
/// where they suit a matrix they take ten or twenty, and where they don't hundreds come to nothing.
const JUDGED_FROM: usize = 15;

/// A trial of our choice.
pub(super) enum Trial {
    /// None: it has all of its iterations.
    None,
    /// Of multigrid, which contracts from its first iterations on: the largest residual norm so far, the smallest one,
    /// and the smallest until half-time.
    Levels { largest: f64, least: f64, until_half: f64 },
    /// Of incomplete factors, which are given up where more iterations are left than they may take.
    Factors {
        goal: f64,
        most: usize,
        /// The smallest residual norm so far, after each iteration.
        best: Vec<f64>,
    },
    /// One that was given up; of incomplete factors, with so many iterations left.
    Futile { more: Option<f64> },
}

impl Trial {
    pub(super) fn of_levels(is_one: bool) -> Self {
        let (largest, least) = (0.0, f64::INFINITY);
        if is_one { Trial::Levels { largest, least, until_half: least } } else { Trial::None }
    }

    /// Of `most` iterations, towards a residual norm of `goal`.
    pub(super) fn of_factors(goal: f64, most: usize) -> Self {
        Trial::Factors { goal, most, best: Vec::new() }
    }

    /// Whether it is to be given up with this iteration.
    pub(super) fn is_futile(&mut self, iteration: usize, norm: f64) -> bool {
        let mut more = None;
        let futile = match self {
            Trial::None => false,
            Trial::Levels { largest, least, until_half } => {
                (*largest, *least) = (largest.max(norm), least.min(norm));
                if iteration <= HALF_TIME {
                    *until_half = *least;
                }
                CONTRACTED.iter().any(|&(after, part)| iteration == after && norm >= part * *largest)
                    || (iteration == 2 * HALF_TIME && *least >= SINCE_HALF_TIME * *until_half)
            }
            Trial::Factors { goal, most, best } => {
                let before = best.last().copied().unwrap_or(f64::INFINITY);
                best.push(before.min(norm));
                let left = iterations_left(best, *goal);
                more = Some(left);
                iteration >= JUDGED_FROM && left > most.saturating_sub(iteration) as f64
            }
            Trial::Futile { .. } => return true,
        };
        if futile {
            *self = Trial::Futile { more };
        }
        futile
    }

    pub(super) fn was_futile(&self) -> bool {
        matches!(self, Trial::Futile { .. })
    }

    /// What the trail says of factors that were given up.
    pub(super) fn words(&self) -> Option<String> {
        match self {
            Trial::Futile { more: Some(more) } if more.is_finite() => {
                Some(format!("given up: at this pace {more:.0} more are left"))
            }
            Trial::Futile { more: Some(_) } => Some("given up: the residual stands still".into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_that_creep_are_given_up_and_those_that_arrive_are_not() {
        let given_up = |by: f64| {
            let mut trial = Trial::of_factors(1e-8, 300);
            let found = (0..300).find(|&k| trial.is_futile(k, by.powi(-(k as i32))));
            assert_eq!(found.is_some(), trial.was_futile());
            assert_eq!(found.is_some(), trial.words().is_some_and(|words| words.starts_with("given up: ")));
            found
        };
        assert_eq!(given_up(2.0), None);
        // 1e-8 takes 190 iterations, then 370.
        assert_eq!(given_up(1.1), None);
        assert_eq!(given_up(1.05), Some(JUDGED_FROM));
        assert_eq!(given_up(1.0), Some(JUDGED_FROM));
        // No number is no progress.
        let mut trial = Trial::of_factors(1e-8, 300);
        assert!((0..20).any(|k| trial.is_futile(k, f64::NAN)));
    }

    #[test]
    fn multigrid_must_contract_at_once() {
        let mut trial = Trial::of_levels(true);
        assert!((0..10).all(|k| !trial.is_futile(k, 1.0)) && trial.is_futile(10, 1.0));
        let mut trial = Trial::of_levels(true);
        assert!((0..20).all(|k| !trial.is_futile(k, 0.975_f64.powi(k as i32))) && trial.is_futile(20, 0.6));
        let mut trial = Trial::of_levels(true);
        assert!((0..20).all(|k| !trial.is_futile(k, 0.9_f64.powi(k as i32))) && !trial.was_futile());
        assert!((0..20).all(|k| !Trial::of_levels(false).is_futile(k, 1.0)));
    }

    #[test]
    fn what_multigrid_begins_with_is_no_measure_of_it() {
        // Linear elements on 10^6 points with flat ones at the hull, b = ones: from 1 to 383, 2.8 and 0.97, and 5e-2,
        // where it stands for 20 iterations.
        let norm = |k: usize| match k {
            0 => 1.0,
            1 => 383.0,
            2..=20 => 383.0 * 0.73_f64.powi(k as i32 - 1),
            21..=40 => 0.97 * 0.86_f64.powi(k as i32 - 20),
            41..=60 => 5e-2,
            k => 5e-2 * 0.85_f64.powi(k as i32 - 60),
        };
        let mut trial = Trial::of_levels(true);
        assert!((0..200).all(|k| !trial.is_futile(k, norm(k))));
        // Where it rises and stays there, multigrid does not suit.
        let mut trial = Trial::of_levels(true);
        assert!(
            (0..10).all(|k| !trial.is_futile(k, if k == 0 { 1.0 } else { 7.0 })) && trial.is_futile(10, 6.9)
        );
        // One that creeps is given up after a hundred.
        let mut trial = Trial::of_levels(true);
        let found = (0..200).find(|&k| trial.is_futile(k, 0.96_f64.powi(k as i32)));
        assert_eq!(found, Some(2 * HALF_TIME));
    }
}
