//! The course of a solve: how its candidates have ended, and which one is next.
//!
//! Its input is events (a candidate has ended, was refused, or has shown that A is indefinite), its output is turns. It
//! needs no matrix, so it is used for solves on one machine, for solves on several ranks, and in the tests that replay
//! measured solves.

use super::{Candidate, When};
use crate::direct::Kind;
use crate::krylov::{Outcome, Report};
use crate::prices::budgets::SHARE;
use crate::solver::names::{Method, Precision, PreconditionerChoice};

/// Returns whether a solve ended with a fault that another method, another preconditioner or more precision may avoid.
pub(in crate::solver) fn is_fault(outcome: &Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Converged
            | Outcome::LeastSquares
            | Outcome::PrecisionLimit { .. }
            | Outcome::Interrupted
            | Outcome::IterationLimit
            | Outcome::TimeLimit
            | Outcome::GivenUp
    )
}

/// A method, its preconditioner and its precision.
type What = (Method, PreconditionerChoice, Precision);

/// The next candidate, and the iterations that it may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) struct Turn {
    /// The candidate's index in the list.
    pub(in crate::solver) number: usize,
    /// Iterations that all candidates together may still take.
    pub(in crate::solver) left: usize,
    /// The number of them that this candidate may take before the next one's turn; none if it may take all of them.
    pub(in crate::solver) share: Option<usize>,
    /// The index of the factorisation for which the iterations are given up if it is faster.
    pub(in crate::solver) rival: Option<usize>,
    pub(in crate::solver) is_last: bool,
}

impl Turn {
    /// The number of iterations after which the candidate ends in any case. It may end earlier: if
    /// there is a rival, or if it may go on beyond its share, the slope of the residual norm decides.
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

/// How the candidates of a solve have ended so far.
pub(in crate::solver) struct Course {
    /// The last candidate, and the report of all of them together.
    pub(in crate::solver) last: usize,
    pub(in crate::solver) total: Option<Report>,
    /// Kinds of factorisation that have failed.
    pub(in crate::solver) failed: Vec<Kind>,
    /// The index of a candidate that was refused before its turn, and the reason.
    pub(in crate::solver) refused: Option<(usize, String)>,
    /// Whether the last iterations were given up for incomplete factors, in this solve or in an earlier one.
    pub(in crate::solver) handed_over: bool,
    /// Whether the factorisation for which iterations were given up is forecast to take as long as very many of them.
    pub(in crate::solver) costly: bool,
    /// The methods that were tried and their iterations; `usize::MAX` if they failed.
    had: Vec<(What, usize)>,
    /// Whether conjugate gradients have found that A is not positive definite.
    indefinite: bool,
}

impl Course {
    /// A course that begins with the candidate `first`, after the iterations that `done` reports.
    pub(in crate::solver) fn new(first: usize, done: Option<Report>) -> Self {
        let is_definite = |report: &Report| !matches!(report.outcome, Outcome::NotPositiveDefinite { .. });
        let indefinite = done.as_ref().is_some_and(|report| !is_definite(report));
        let (failed, had) = (Vec::new(), Vec::new());
        Self {
            last: first,
            total: done,
            failed,
            refused: None,
            handed_over: false,
            costly: false,
            had,
            indefinite,
        }
    }

    pub(in crate::solver) fn iterations(&self) -> usize {
        self.total.as_ref().map_or(0, |report| report.iterations)
    }

    /// The next turn in a list, beginning with the candidate `from`. `limit` is the maximum number of iterations of all
    /// candidates together. `is_soon(method)` is true if a factorisation is so cheap that it comes before this method.
    pub(in crate::solver) fn next(
        &self,
        from: usize,
        list: &[impl AsRef<Candidate>],
        limit: usize,
        is_soon: impl Fn(Method) -> bool,
    ) -> Option<Turn> {
        let left = limit.saturating_sub(self.iterations());
        if left == 0 && self.total.is_some() {
            // A setup is useless if no iterations may follow.
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

    /// True if a candidate suits the matrix, as far as is known.
    fn suits(&self, plan: &Candidate) -> bool {
        match plan.when {
            When::Always => true,
            When::Definite => !self.indefinite,
            When::Indefinite => self.indefinite,
            When::HandedOver => self.handed_over,
            When::HandedOverOrCostly => self.handed_over || self.costly,
            When::BeforeCostly => self.costly,
        }
    }

    /// The index of the next candidate if that is a factorisation. If several follow each other, it is the last of
    /// them, which has the largest limit and includes the work of the others.
    fn next_factors(&self, behind: &[impl AsRef<Candidate>]) -> Option<usize> {
        let suiting = (0..).zip(behind).filter(|(_, one)| self.suits(one.as_ref()));
        suiting.take_while(|(_, one)| one.as_ref().method == Method::Direct).map(|(number, _)| number).last()
    }

    /// True if the same method was tried already with at least this many iterations.
    fn has_had(&self, what: What, share: Option<usize>) -> bool {
        self.had.iter().any(|&(other, iterations)| other == what && share.is_some_and(|s| s <= iterations))
    }

    /// Adds the report of a candidate to the total. Returns whether the next candidate is tried.
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
    /// True if a candidate has used up its share without solving the system, so that the next one is tried.
    pub(in crate::solver) fn creeps(&self, plan: &Candidate, outcome: &Outcome) -> bool {
        *outcome == Outcome::IterationLimit && plan.share.is_some() && !self.is_last
    }
}
