//! Stages that are given up where what they have come to says that they will not arrive.

use super::race::{iterations_left, take};
use crate::solver::names::Method;

/// After so many iterations GMRES with multigrid must have brought the residual below this part of what it began with:
/// it stands for twenty where convection crosses a domain, and falls then (7 points 50^3, 84 iterations in all). The
/// residual of conjugate gradients says nothing as early: on a mesh in space it rose a hundredfold for 60 of 113
/// iterations, while the error in the energy norm fell in each.
const BEGUN: (usize, f64) = (30, 0.9);

/// Once multigrid has had this part of its iterations, it is judged by the slope of the best residual so far over the
/// last third of them: with a few flat elements, or coefficients that jump by 10^6, conjugate gradients stagnate for
/// dozens of iterations, and then converge. One that would not arrive is left after half of what it may take.
const JUDGED: f64 = 0.5;
const THIRD: usize = 3;

/// What is nearer to its end than so many iterations goes on: multigrid takes as long at least (330 in the median of 50
/// systems), and the forecast of what is left is often too low. It was fitted to one half of `benches/choice/cpu.csv`
/// (2026-11-28).
const NEAR: f64 = 150.0;

/// From so many iterations on incomplete factors are judged by the slope of the residual over the second half of them:
/// where they suit a matrix they take ten or twenty, and where they don't hundreds come to nothing.
pub(super) const JUDGED_FROM: usize = 15;

/// A trial of our choice.
pub(in crate::solver) enum Trial {
    /// None: it has all of its iterations.
    None,
    /// Of multigrid, at most `most` iterations of it.
    Levels {
        /// Whether no residual is larger than the one before it.
        monotone: bool,
        goal: f64,
        most: usize,
        /// The smallest residual norm so far, after each iteration.
        best: Vec<f64>,
    },
    /// Of incomplete factors, which are given up where more iterations are left than they may take.
    Factors {
        goal: f64,
        most: usize,
        /// The smallest residual norm so far, after each iteration.
        best: Vec<f64>,
    },
    /// Of iterations that go on beyond `most` of them while their slope promises the end within as many again.
    Budget { goal: f64, most: usize, best: Vec<f64> },
    /// One that was given up; of incomplete factors, with so many iterations left.
    Futile { more: Option<f64> },
}

impl Trial {
    /// Of `most` iterations of a method with multigrid, towards a residual norm of `goal`.
    pub(in crate::solver) fn of_levels(method: Method, goal: f64, most: usize) -> Self {
        Trial::Levels { monotone: method == Method::Gmres, goal, most, best: Vec::new() }
    }

    /// Of `most` iterations, towards a residual norm of `goal`.
    pub(in crate::solver) fn of_factors(goal: f64, most: usize) -> Self {
        Trial::Factors { goal, most, best: Vec::new() }
    }

    /// Of iterations beyond `most`, towards a residual norm of `goal`.
    pub(in crate::solver) fn of_budget(goal: f64, most: usize) -> Self {
        Trial::Budget { goal, most, best: Vec::new() }
    }

    /// Goes on towards another residual norm.
    pub(in crate::solver) fn seek(&mut self, sought: f64) {
        match self {
            Trial::Levels { goal, .. } | Trial::Factors { goal, .. } | Trial::Budget { goal, .. } => {
                *goal = sought
            }
            Trial::None | Trial::Futile { .. } => {}
        }
    }

    /// Judges what goes on by its slope from so many iterations on, if that is earlier.
    pub(super) fn shorten(&mut self, iterations: f64) {
        if let Trial::Budget { most, .. } = self {
            *most = (*most).min(iterations as usize);
        }
    }

    /// Whether it is to be given up with this iteration.
    pub(in crate::solver) fn is_futile(&mut self, iteration: usize, norm: f64) -> bool {
        let mut more = None;
        let futile = match self {
            Trial::None => false,
            Trial::Levels { monotone, goal, most, best } => {
                take(best, norm);
                let judged = best.len() as f64 > JUDGED * *most as f64;
                let left = || iterations_left(&best[best.len() - best.len().div_ceil(THIRD)..], *goal);
                (*monotone && best.len() == BEGUN.0 + 1 && norm >= BEGUN.1 * best[0])
                    || (judged && left() > most.saturating_sub(iteration) as f64)
            }
            Trial::Factors { goal, most, best } => {
                take(best, norm);
                let left = iterations_left(best, *goal);
                more = Some(left);
                iteration >= JUDGED_FROM && left > most.saturating_sub(iteration) as f64
            }
            Trial::Budget { goal, most, best } => {
                take(best, norm);
                let left = iterations_left(best, *goal);
                more = Some(left);
                iteration >= *most && left > f64::max(iteration as f64, NEAR)
            }
            Trial::Futile { .. } => return true,
        };
        if futile {
            *self = Trial::Futile { more };
        }
        futile
    }

    pub(in crate::solver) fn was_futile(&self) -> bool {
        matches!(self, Trial::Futile { .. })
    }

    /// What the trail says of factors that were given up.
    pub(in crate::solver) fn words(&self) -> Option<String> {
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
    fn iterations_go_on_beyond_their_budget_while_the_end_is_near() {
        let given_up = |by: f64| {
            let mut trial = Trial::of_budget(1e-8, 100);
            (0..5000).take_while(|&k| by.powi(-k) > 1e-8).find(|&k| trial.is_futile(k as usize, by.powi(-k)))
        };
        // 1e-8 takes 150 iterations, then 235, then 370 and 620.
        assert_eq!(given_up(1.13), None);
        assert_eq!(given_up(1.08), None);
        assert_eq!(given_up(1.05), Some(100));
        assert_eq!(given_up(1.03), Some(100));
        assert_eq!(given_up(1.0), Some(100));
    }

    #[test]
    fn gmres_with_multigrid_stands_for_a_while_at_most() {
        let given_up = |method, norm: &dyn Fn(usize) -> f64| {
            let mut trial = Trial::of_levels(method, 1e-8, 300);
            (0..400).find(|&k| trial.is_futile(k, norm(k)))
        };
        assert_eq!(given_up(Method::Gmres, &|_| 1.0), Some(BEGUN.0));
        let stands = |k: usize| 0.6_f64.powi(k.saturating_sub(20) as i32);
        assert_eq!(given_up(Method::Gmres, &stands), None);
        // Conjugate gradients are judged after half of what they may take.
        assert_eq!(given_up(Method::Cg, &|_| 1.0), Some(150));
        assert_eq!(given_up(Method::Cg, &|k| 0.96_f64.powi(k as i32)), Some(150));
        assert_eq!(given_up(Method::Cg, &|k| 0.93_f64.powi(k as i32)), None);
    }

    #[test]
    fn a_residual_that_rises_before_it_falls_is_no_fault_of_multigrid() {
        // Linear elements in space, 8 10^4 points, after a hundred iterations with the diagonal.
        let in_space = |k: usize| match k {
            0..=60 => 0.036 * 1.07_f64.powi(k as i32),
            k => 2.1 * 0.68_f64.powi(k as i32 - 60),
        };
        // In the plane with flat ones at the hull, b = ones: from 1 to 383, 2.8 and 0.97, and 5e-2, for 20 iterations.
        let in_plane = |k: usize| match k {
            0 => 1.0,
            1 => 383.0,
            2..=20 => 383.0 * 0.73_f64.powi(k as i32 - 1),
            21..=40 => 0.97 * 0.86_f64.powi(k as i32 - 20),
            41..=60 => 5e-2,
            k => 5e-2 * 0.85_f64.powi(k as i32 - 60),
        };
        for norm in [&in_space as &dyn Fn(usize) -> f64, &in_plane] {
            let mut trial = Trial::of_levels(Method::Cg, 1e-8, 300);
            assert!((0..120).all(|k| !trial.is_futile(k, norm(k))));
        }
    }
}
