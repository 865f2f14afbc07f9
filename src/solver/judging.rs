//! What a Krylov method is told of an x that its own norm is content with: whether it is the solution, and what to ask
//! for next where it is not.
//!
//! A method works in one norm. Where its x does not meet the tolerance row by row, or rounding has hidden what is left,
//! it goes on, as long as that brings x nearer.

use super::core::is_fault;
use crate::krylov::{Judgement, Outcome, SolveOptions};
use crate::scalar::Scalar;
use crate::verdict::{Verdict, more};
use std::cell::Cell;

/// The verdicts of one stage of a solve.
pub(super) struct Judging<'a> {
    /// What the caller has asked for.
    pub(super) asked: &'a SolveOptions,
    /// The relative residual that the method is asked for next, for whoever waits for it.
    sought: &'a Cell<Option<f64>>,
    worst: f64,
    /// The verdict on the x that the method has ended with, if it meets what was asked for.
    pub(super) last: Option<Verdict>,
}

impl<'a> Judging<'a> {
    pub(super) fn new(asked: &'a SolveOptions, sought: &'a Cell<Option<f64>>) -> Self {
        Self { asked, sought, worst: f64::INFINITY, last: None }
    }

    /// Returns whether the x that a method has ended with may be the solution, and has had no verdict: one that did not
    /// come down to what it was asked for beyond the tolerance may have come far enough.
    pub(super) fn is_open(&self, outcome: &Outcome) -> bool {
        let has_asked = self.worst.is_finite();
        self.last.is_none() && (*outcome == Outcome::Converged || (is_fault(outcome) && has_asked))
    }

    /// What is said of an x whose own residual is `own`, relative to b, and on which this is the verdict. `meets`:
    /// whether that is what the method was asked for.
    pub(super) fn hear<T: Scalar>(&mut self, verdict: Verdict, own: f64, meets: bool) -> Judgement {
        if verdict.met {
            self.last = Some(verdict);
            return Judgement::Met;
        }
        if !meets {
            return Judgement::Missed;
        }
        let excess = verdict.excess::<T>(self.asked);
        let next = more(own, excess, self.worst);
        self.worst = excess;
        match next {
            Some(next) => {
                self.sought.set(Some(next));
                Judgement::More(next)
            }
            None => Judgement::Missed,
        }
    }
}
