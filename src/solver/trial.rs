//! Stages that are given up where what they have come to says that they will not arrive.

use super::race::iterations_left;

/// After so many iterations multigrid must have brought the residual to less than this part of what it began with; else
/// it does not suit the matrix, and the next method goes on. Conjugate gradients' residual may stand for some
/// iterations where coefficients differ much, and fall from there on.
const CONTRACTED: [(usize, f64); 2] = [(10, 1.0), (20, 0.5)];

/// From so many iterations on incomplete factors are judged by the slope of the residual over the second half of them:
/// where they suit a matrix they take ten or twenty, and where they don't hundreds come to nothing.
const JUDGED_FROM: usize = 15;

/// A trial of our choice.
pub(super) enum Trial {
    /// None: it has all of its iterations.
    None,
    /// Of multigrid, which contracts from its first iterations on.
    Levels { begun_with: f64 },
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
        if is_one { Trial::Levels { begun_with: f64::INFINITY } } else { Trial::None }
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
            Trial::Levels { begun_with } => {
                if iteration == 0 {
                    *begun_with = norm;
                }
                CONTRACTED.iter().any(|&(after, part)| iteration == after && norm >= part * *begun_with)
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
        assert!((0..20).all(|k| !trial.is_futile(k, 1.0 - 0.02 * k as f64)) && trial.is_futile(20, 0.6));
        let mut trial = Trial::of_levels(true);
        assert!((0..20).all(|k| !trial.is_futile(k, 0.9_f64.powi(k as i32))) && !trial.was_futile());
        assert!((0..20).all(|k| !Trial::of_levels(false).is_futile(k, 1.0)));
    }
}
