//! The course of a solve: what its candidates have come to, and which of them is next.
//!
//! Events come in (a candidate ended, was refused, showed that A is indefinite) and turns go out. Nothing here knows a
//! matrix, so that all runners share it: of one machine, of several ranks, and of the tests that replay what was
//! measured.

use super::{Candidate, When};
use crate::direct::Kind;
use crate::krylov::{Outcome, Report};
use crate::prices::budgets::SHARE;
use crate::solver::core::is_fault;
use crate::solver::names::{Method, Precision, PreconditionerChoice};

/// A method, its preconditioner and its precision.
type What = (Method, PreconditionerChoice, Precision);

/// A candidate's turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) struct Turn {
    /// Which candidate of the list it is.
    pub(in crate::solver) number: usize,
    /// Iterations that are left to all candidates.
    pub(in crate::solver) left: usize,
    /// Those of them that it may take before the next one's turn; none: all of them.
    pub(in crate::solver) share: Option<usize>,
    /// The factorisation for which iterations are given up where that is faster.
    pub(in crate::solver) rival: Option<usize>,
    pub(in crate::solver) is_last: bool,
}

impl Turn {
    /// Iterations after which the candidate ends in any case. Those of a race end where it says so, and those that may
    /// go on where their slope does.
    pub(in crate::solver) fn most(&self, plan: &Candidate) -> usize {
        match self.share {
            Some(_) if self.rival.is_some() || plan.may_go_on => part_of(SHARE, self.left),
            Some(share) => share,
            None => self.left,
        }
    }
}

fn part_of(share: f64, iterations: usize) -> usize {
    (share * iterations as f64).ceil() as usize
}

/// How far the candidates of a solve have come.
pub(in crate::solver) struct Course {
    /// The candidate that came last, and what all of them came to.
    pub(in crate::solver) last: usize,
    pub(in crate::solver) total: Option<Report>,
    /// Kinds of factorisation that have failed.
    pub(in crate::solver) failed: Vec<Kind>,
    /// Why the candidate of a number was refused before its turn.
    pub(in crate::solver) refused: Option<(usize, String)>,
    /// Whether the iterations that came last were given up for incomplete factors, in this solve or in one before.
    pub(in crate::solver) handed_over: bool,
    /// Methods that have had so many iterations; all that there are, if they ended in a fault.
    had: Vec<(What, usize)>,
    /// Whether conjugate gradients have told that A is not positive definite.
    indefinite: bool,
}

impl Course {
    /// From a candidate on, after what `done` tells of.
    pub(in crate::solver) fn new(first: usize, done: Option<Report>) -> Self {
        let is_definite = |report: &Report| !matches!(report.outcome, Outcome::NotPositiveDefinite { .. });
        let indefinite = done.as_ref().is_some_and(|report| !is_definite(report));
        let (failed, had) = (Vec::new(), Vec::new());
        Self { last: first, total: done, failed, refused: None, handed_over: false, had, indefinite }
    }

    pub(in crate::solver) fn iterations(&self) -> usize {
        self.total.as_ref().map_or(0, |report| report.iterations)
    }

    /// The next turn in a list, from a candidate on. `limit`: the most iterations of all candidates together.
    /// `is_soon`: whether a factorisation takes so little that a method need not come before it.
    pub(in crate::solver) fn next(
        &self,
        from: usize,
        list: &[impl AsRef<Candidate>],
        limit: usize,
        is_soon: impl Fn(Method) -> bool,
    ) -> Option<Turn> {
        let left = limit.saturating_sub(self.iterations());
        if left == 0 && self.total.is_some() {
            // A setup whose iterations cannot follow would be in vain.
            return None;
        }
        (from..list.len()).find_map(|number| {
            let (plan, behind) = (list[number].as_ref(), &list[number + 1..]);
            let (rival, is_last) = (self.next_factors(behind), behind.is_empty());
            let share = plan.share.map(|share| part_of(share, left)).filter(|_| !is_last);
            let is_left_out = plan.race && is_soon(plan.method)
                || plan.method == Method::Direct && rival.is_some()
                || self.has_had(plan.what(), share);
            let rival = rival.map(|more| number + 1 + more).filter(|_| plan.race);
            (self.suits(plan) && !is_left_out).then_some(Turn { number, left, share, rival, is_last })
        })
    }

    /// Whether a candidate is for a matrix like this one, as far as that is known.
    fn suits(&self, plan: &Candidate) -> bool {
        match plan.when {
            When::Always => true,
            When::Definite => !self.indefinite,
            When::Indefinite => self.indefinite,
            When::HandedOver => self.handed_over,
        }
    }

    /// Which of these comes next, if that is a factorisation. Of two in turn it is the second one, which may take more
    /// and does what the first would.
    fn next_factors(&self, behind: &[impl AsRef<Candidate>]) -> Option<usize> {
        let suiting = (0..).zip(behind).filter(|(_, one)| self.suits(one.as_ref()));
        suiting.take_while(|(_, one)| one.as_ref().method == Method::Direct).map(|(number, _)| number).last()
    }

    /// Whether the same was tried with as many iterations.
    fn has_had(&self, what: What, share: Option<usize>) -> bool {
        self.had.iter().any(|&(other, iterations)| other == what && share.is_some_and(|s| s <= iterations))
    }

    /// Takes what a candidate came to, and counts what came before it in; whether the next one has its turn.
    pub(in crate::solver) fn add(&mut self, turn: &Turn, plan: &Candidate, mut report: Report) -> bool {
        self.indefinite |= matches!(report.outcome, Outcome::NotPositiveDefinite { .. });
        let is_over = is_fault(&report.outcome);
        self.had.push((plan.what(), if is_over { usize::MAX } else { report.iterations }));
        let goes_on = is_over || turn.creeps(plan, &report.outcome);
        if let Some(earlier) = &self.total {
            report.iterations += earlier.iterations;
            report.restarts += earlier.restarts;
        }
        (self.last, self.total) = (turn.number, Some(report));
        goes_on
    }
}

impl Turn {
    /// Whether a candidate with this outcome has had its share, and is left for the next one.
    pub(in crate::solver) fn creeps(&self, plan: &Candidate, outcome: &Outcome) -> bool {
        *outcome == Outcome::IterationLimit && plan.share.is_some() && !self.is_last
    }
}
