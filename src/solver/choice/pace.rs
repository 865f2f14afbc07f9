//! The pace of a candidate that iterates: whether it keeps its promise ([`super::trial`]), and whether a factorisation is
//! forecast to be sooner at its end ([`super::race`]).

use super::course::Turn;
use super::race::{Call, Race};
use super::trial::Trial;
use super::{Candidate, When};
use crate::krylov::Outcome;
use crate::prices::budgets::{order_seconds, seconds_of_levels};
use crate::solver::names::PreconditionerChoice as Name;

const HANDED_OVER: &str = "given up: with incomplete factors fewer are left";

/// What iterations and the factorisation behind them cost, in seconds.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Costs {
    /// Of an iteration.
    pub(in crate::solver) each: f64,
    /// Of the factorisation at least, before it is analysed.
    pub(in crate::solver) least: f64,
    /// Of the factorisation, if it was analysed in this solve.
    pub(in crate::solver) known: Option<f64>,
    /// Rows and nonzeros of the matrix, and the entries of its longest row.
    pub(in crate::solver) size: [usize; 3],
    /// Of setting incomplete factors up, and of an iteration with them.
    pub(in crate::solver) incomplete: (f64, f64),
}

/// The pace of a candidate.
pub(in crate::solver) struct Pace {
    trial: Trial,
    race: Option<Race>,
    /// What the race has called for last.
    call: Call,
    /// Why there is no factorisation to compare with.
    pub(in crate::solver) refused: Option<String>,
}

impl Candidate {
    fn has_levels(&self) -> bool {
        matches!(self.preconditioner, Name::Multigrid(_))
    }

    fn is_incomplete(&self) -> bool {
        self.has_fill() || self.preconditioner == Name::Ilu
    }

    fn has_fill(&self) -> bool {
        matches!(self.preconditioner, Name::Ilut(_))
    }

    /// Whether its iterations are judged on the way, for which the norm of b has to be known.
    pub(in crate::solver) fn is_judged(&self, turn: &Turn) -> bool {
        turn.rival.is_some()
            || turn.share.is_some() && (self.has_levels() || self.has_fill() || self.may_go_on)
    }
}

impl Pace {
    /// Of a candidate towards a residual norm of `goal`, with the candidate behind it and the one behind its rival. The
    /// memory is that of another race, so that one solve after the other allocates none.
    pub(in crate::solver) fn new(
        (plan, behind, then): (&Candidate, Option<&Candidate>, Option<&Candidate>),
        turn: &Turn,
        goal: f64,
        costs: Option<Costs>,
        memory: &mut Vec<f64>,
    ) -> Self {
        let trial = match turn.share {
            Some(most) if plan.has_levels() => Trial::of_levels(plan.method, goal, most),
            Some(most) if plan.has_fill() => Trial::of_factors(goal, most),
            Some(most) if plan.may_go_on => Trial::of_budget(goal, most),
            _ => Trial::None,
        };
        let race = costs.filter(|_| turn.rival.is_some()).map(|costs| {
            let least = match costs.least {
                // A factorisation that is as fast has had its turn.
                least if plan.has_levels() => least.max(seconds_of_levels(costs.size[1])),
                least => least,
            };
            let behind_it = (least, costs.known, order_seconds(costs.size));
            let what = (plan.method, plan.has_levels(), costs.each);
            let race =
                Race::new(what, behind_it, goal, turn.share.unwrap_or(turn.left), std::mem::take(memory));
            let takes_over = behind.is_some_and(|behind| behind.when == When::HandedOver);
            let is_better = then.is_some_and(|then| then.has_levels() || then.is_incomplete());
            race.with_factors(takes_over.then_some(costs.incomplete)).before_better(is_better)
        });
        Self { trial, race, call: Call::GoOn, refused: None }
    }

    /// Goes on towards another residual norm.
    pub(in crate::solver) fn seek(&mut self, goal: f64) {
        self.trial.seek(goal);
        self.race.iter_mut().for_each(|race| race.seek(goal));
    }

    /// Whether the candidate goes on after an iteration, of which the start is number 0. `analyse` finds out what the
    /// factorisation takes, or why it is refused.
    pub(in crate::solver) fn goes_on(
        &mut self,
        (iteration, norm): (usize, f64),
        analyse: impl FnOnce() -> Result<f64, String>,
    ) -> bool {
        if self.trial.is_futile(iteration, norm) {
            return false;
        }
        let Some(race) = &mut self.race else { return true };
        race.see(norm);
        self.call = race.call();
        if self.call == Call::Analyse {
            let forecast = analyse();
            race.learn(forecast.as_ref().copied().unwrap_or(f64::INFINITY));
            self.refused = forecast.err();
            self.call = race.call();
        }
        !self.has_lost()
    }

    /// Whether the iterations were given up for what is sooner at its end.
    fn has_lost(&self) -> bool {
        matches!(self.call, Call::GiveUp | Call::HandOver)
    }

    pub(in crate::solver) fn handed_over(&self) -> bool {
        self.call == Call::HandOver
    }

    /// What a candidate has come to that ended with an outcome, and what is said of it.
    pub(in crate::solver) fn ended(&self, outcome: Outcome) -> (Outcome, Option<String>) {
        if outcome != Outcome::Interrupted {
            return (outcome, None);
        }
        if self.trial.was_futile() {
            let words = self.trial.words();
            // What creeps has had its share of the iterations.
            return (if words.is_some() { Outcome::IterationLimit } else { Outcome::Stagnated }, words);
        }
        match &self.race {
            Some(_) if self.handed_over() => (Outcome::IterationLimit, Some(HANDED_OVER.into())),
            Some(race) if self.has_lost() => (Outcome::IterationLimit, race.words()),
            _ => (outcome, None),
        }
    }

    /// The memory of its race, for the next one.
    pub(in crate::solver) fn into_memory(self) -> Option<Vec<f64>> {
        self.race.map(|race| race.best)
    }
}
