//! Trials of candidates, which are given up if their residuals show that they will not converge soon.

use super::race::{iterations_left, take};
use crate::solver::names::Method;

/// After this number of iterations GMRES with multigrid must have reduced the residual to this fraction of its initial
/// norm. If convection crosses a domain, the residual stagnates for twenty iterations and then falls (7 points 50^3, 84
/// iterations in all). The residual of conjugate gradients shows nothing as early: for a mesh in three dimensions it
/// rose a hundredfold during 60 of 113 iterations, while the error in the energy norm fell in each of them.
const BEGUN: (usize, f64) = (30, 0.9);

/// After this fraction of its iterations multigrid is judged by the slope of the smallest residual over the last third
/// of them: with a few flat elements, or coefficients that jump by 10^6, conjugate gradients stagnate for dozens of
/// iterations and then converge. Multigrid that will not converge is therefore given up after half of its budget.
const JUDGED: f64 = 0.5;
const THIRD: usize = 3;

/// Iterations go on if the rest of them is forecast to take less than this fraction of the time of multigrid. Fitted to
/// one half of `benches/choice/cpu.csv` (2026-11-28).
const NEAR: f64 = 0.3;

/// The residual of BiCGSTAB falls irregularly, so its slope is trusted less: it goes on beyond its budget while the
/// forecast of the remaining iterations is at most the first number times those done, and ends in any case after the
/// second number times its budget. With 1 as the first number, systems of five kinds, none of them used for a fit, were
/// given up with a forecast of up to 1.5 times the iterations done, where few remained (H200, 2026-11-29).
const IRREGULAR: [f64; 2] = [2.0, 2.0];

/// After this number of iterations incomplete factors are judged by the slope of the residual over the second half of
/// them: if they suit a matrix they take ten or twenty iterations, and otherwise hundreds do not suffice.
pub(super) const JUDGED_FROM: usize = 20;

/// Whether the forecast of the remaining iterations exceeds both `near` and `again` times those done.
fn is_far(left: f64, iteration: usize, (near, again): (f64, f64)) -> bool {
    left > near.max(again * iteration as f64)
}

/// The trial of a candidate that the solver has chosen.
pub(in crate::solver) enum Trial {
    /// No trial: the candidate may take all of its iterations.
    None,
    /// A trial of multigrid, with at most `most` iterations.
    Levels {
        /// Whether the method never increases the residual.
        monotone: bool,
        goal: f64,
        most: usize,
        /// The smallest residual norm up to each iteration.
        best: Vec<f64>,
    },
    /// A trial of incomplete factors, which are given up if more iterations are left than they may take.
    Factors {
        goal: f64,
        most: usize,
        /// The smallest residual norm up to each iteration.
        best: Vec<f64>,
    },
    /// A trial of iterations that go on beyond `most` as long as their slope predicts the end within the same number.
    Budget {
        goal: f64,
        most: usize,
        /// The number of remaining iterations with which they go on in any case.
        near: f64,
        /// They also go on if the slope predicts at most this many more, relative to the iterations so far.
        again: f64,
        /// They end in any case after this many iterations, relative to `most`.
        longest: f64,
        /// The smallest residual norm up to each iteration.
        best: Vec<f64>,
    },
    /// A trial that was given up, with the forecast of the remaining iterations if there is one.
    Futile { more: Option<f64> },
}

impl Trial {
    /// A trial of at most `most` iterations of a method with multigrid, until the residual norm is `goal`.
    pub(in crate::solver) fn of_levels(method: Method, goal: f64, most: usize) -> Self {
        Trial::Levels { monotone: method == Method::Gmres, goal, most, best: Vec::new() }
    }

    /// A trial of at most `most` iterations with incomplete factors, until the residual norm is `goal`.
    pub(in crate::solver) fn of_factors(goal: f64, most: usize) -> Self {
        Trial::Factors { goal, most, best: Vec::new() }
    }

    /// A trial of iterations that may go on beyond `most`, until the residual norm is `goal`. On the host, multigrid
    /// takes as long as `levels` of them, which is `None` on a device.
    pub(in crate::solver) fn of_budget(method: Method, goal: f64, most: usize, levels: Option<f64>) -> Self {
        let near = levels.map_or(0.0, |levels| NEAR * levels);
        let irregular = method == Method::BiCgStab;
        let [again, longest] = if irregular { IRREGULAR } else { [1.0, f64::INFINITY] };
        Trial::Budget { goal, most, near, again, longest, best: Vec::new() }
    }

    /// Changes the residual norm at which the iterations end.
    pub(in crate::solver) fn seek(&mut self, sought: f64) {
        match self {
            Trial::Levels { goal, .. } | Trial::Factors { goal, .. } | Trial::Budget { goal, .. } => {
                *goal = sought
            }
            Trial::None | Trial::Futile { .. } => {}
        }
    }

    /// True if the slope predicts so many more iterations that they would be given up if their budget were used up.
    pub(super) fn is_far(&self, iteration: usize) -> bool {
        match self {
            Trial::Budget { goal, near, again, best, .. } => {
                best.is_empty() || is_far(iterations_left(best, *goal), iteration, (*near, *again))
            }
            _ => false,
        }
    }

    /// Reduces the number of iterations after which the slope is judged to this number, if it is smaller.
    pub(super) fn shorten(&mut self, iterations: f64) {
        if let Trial::Budget { most, .. } = self {
            *most = (*most).min(iterations as usize);
        }
    }

    /// Increases the number of iterations that incomplete factors may take to this number, if it is larger.
    pub(super) fn lengthen(&mut self, iterations: f64) {
        if let Trial::Factors { most, .. } = self {
            *most = (*most).max(iterations as usize);
        }
    }

    /// True if it is given up after this iteration.
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
            Trial::Budget { goal, most, near, again, longest, best } => {
                take(best, norm);
                let left = iterations_left(best, *goal);
                more = Some(left);
                iteration >= *most && is_far(left, iteration, (*near, *again))
                    || iteration as f64 >= *longest * *most as f64
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

    /// The words of the report for a trial that was given up.
    pub(in crate::solver) fn words(&self) -> Option<String> {
        match self {
            Trial::Futile { more: Some(more) } if more.is_finite() => {
                Some(format!("given up: at this pace {more:.0} more are left"))
            }
            Trial::Futile { more: Some(_) } => Some("given up: the residual stagnates".into()),
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
        // A residual that is not a number is no progress.
        let mut trial = Trial::of_factors(1e-8, 300);
        assert!((0..30).any(|k| trial.is_futile(k, f64::NAN)));
    }

    #[test]
    fn iterations_go_on_beyond_their_budget_while_the_end_is_near() {
        let given_up = |by: f64| {
            let mut trial = Trial::of_budget(Method::Gmres, 1e-8, 100, Some(500.0));
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
    fn multigrid_is_kept_if_the_residual_rises_before_it_falls() {
        // Linear elements in space, 8 10^4 points, after a hundred iterations with the diagonal.
        let in_space = |k: usize| match k {
            0..=60 => 0.036 * 1.07_f64.powi(k as i32),
            k => 2.1 * 0.68_f64.powi(k as i32 - 60),
        };
        // In the plane, with flat triangles at the hull and b = ones: from 1 to 383, 2.8 and 0.97, and 5e-2, for 20
        // iterations.
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
