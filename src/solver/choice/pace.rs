//! The pace of a candidate that iterates: whether it is likely to converge ([`super::trial`]), and whether a
//! factorisation is forecast to finish earlier ([`super::race`]).

use super::course::Turn;
use super::race::{Call, Race, TakeOver};
use super::trial::{JUDGED_FROM, Trial};
use super::unseen::refuses_factors;
use super::{Candidate, Source, When};
use crate::krylov::Outcome;
use crate::prices::budgets::{LOOKED_AT, before_expected_factors, seconds_of_levels};
use crate::prices::iterations::{FEWER_WITH_FILL, FEWER_WITHOUT_FILL, WITH_FILL};
use crate::prices::order::{OrderGuess, least_order_seconds};
use crate::solver::names::{Method, PreconditionerChoice as Name};

/// Incomplete factors may take this fraction of the time of the factorisation that follows them.
const OF_FACTORS: f64 = 0.5;

/// If a factorisation takes as long as this many iterations, or multigrid as long as the other number, incomplete
/// factors and BiCGSTAB with the diagonal come first, for a fraction of that time. These constants were set for four
/// kinds of systems with a regret of 5 to 23 (staggered fermions on a lattice, harmonic balance, population balance,
/// neurons); no system of `benches/choice` has another regret with them (replayed; with 50 for both, the largest one
/// becomes 34, 2026-11-28).
const COSTLY: f64 = 200.0;
const COSTLY_LEVELS: f64 = 100.0;

const HANDED_OVER: &str = "given up: incomplete factors are forecast to take fewer iterations";

/// Seconds of iterations and of the factorisation that follows them.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Costs {
    /// Seconds of an iteration.
    pub(in crate::solver) each: f64,
    /// A lower bound for the seconds of the factorisation, known without an analysis.
    pub(in crate::solver) least: f64,
    /// Seconds of the factorisation, if it was analysed in this solve.
    pub(in crate::solver) known: Option<f64>,
    /// True if vectors are in the memory of a GPU.
    pub(in crate::solver) on_device: bool,
    /// Rows and nonzeros of the matrix.
    pub(in crate::solver) size: [usize; 2],
    /// Seconds to set up incomplete factors without fill, and of an iteration with them.
    pub(in crate::solver) incomplete: (f64, f64),
}

impl Costs {
    /// Incomplete factors that may take over from the iterations. `has_levels` is true if multigrid comes next.
    fn take_over(&self, factors: &Candidate, has_levels: bool) -> TakeOver {
        let trial = JUDGED_FROM;
        let levels = if has_levels { seconds_of_levels(self.size[1]) } else { f64::INFINITY };
        if factors.has_fill() {
            let [setup, times] = WITH_FILL;
            let setup = setup * self.size[1] as f64;
            return TakeOver {
                setup,
                each: times * self.each,
                fewer: FEWER_WITH_FILL,
                trial,
                part: 1.0,
                levels,
            };
        }
        let (setup, each) = self.incomplete;
        TakeOver { setup, each, fewer: FEWER_WITHOUT_FILL, trial, part: f64::INFINITY, levels }
    }
}

/// The pace of a candidate.
pub(in crate::solver) struct Pace {
    trial: Trial,
    race: Option<Race>,
    /// The last call of the race.
    call: Call,
    /// On a GPU, the rows and nonzeros of a matrix whose graph is searched after many iterations.
    unseen: Option<[usize; 2]>,
    /// The limit of multiplications of the rival, and the rows of A, if the rival is refused by its expected cost
    /// because multigrid follows.
    before_levels: Option<(f64, usize)>,
    /// Whether incomplete factors may take a part of the time of the factorisation, because no multigrid comes next.
    is_measured_by_factors: bool,
    /// The number of iterations that take as long as the multigrid that follows a factorisation.
    instead_of_factors: Option<f64>,
    /// Why no factorisation is possible.
    pub(in crate::solver) refused: Option<String>,
}

impl Candidate {
    pub(in crate::solver) fn has_levels(&self) -> bool {
        matches!(self.preconditioner, Name::Multigrid(_))
    }

    /// Whether it has incomplete factors. These are given up after a trial if they do not suit the matrix.
    pub(super) fn is_incomplete(&self) -> bool {
        self.has_fill() || self.preconditioner == Name::Ilu
    }

    pub(super) fn has_fill(&self) -> bool {
        matches!(self.preconditioner, Name::Ilut(_))
    }

    /// Whether its iterations are judged while they run, which needs the norm of b.
    pub(in crate::solver) fn is_judged(&self, turn: &Turn) -> bool {
        turn.rival.is_some()
            || turn.share.is_some() && (self.has_levels() || self.is_incomplete() || self.may_go_on)
    }
}

impl Pace {
    /// The pace of the candidate `plan`, which the candidates `behind` follow, until the residual norm is `goal`.
    /// `memory` is the vector of an earlier race, so that repeated solves allocate nothing.
    pub(in crate::solver) fn new(
        (plan, behind): (&Candidate, &[impl AsRef<Candidate>]),
        turn: &Turn,
        goal: f64,
        costs: Option<Costs>,
        memory: &mut Vec<f64>,
    ) -> Self {
        let of_rival = turn.rival.map(|rival| rival - turn.number - 1);
        let candidate = |place: Option<usize>| place.and_then(|place| behind.get(place)).map(AsRef::as_ref);
        let (next, rival) = (candidate(Some(0)), candidate(of_rival));
        let then = candidate(of_rival.map(|place| place + 1));
        // Incomplete factors that took over are set up already. They therefore get twice the time of multigrid, if that
        // is next.
        let takes_over = plan.when.is_handed_over() && then.is_some_and(Candidate::has_levels);
        let instead = |costs: Costs| (2.0 * seconds_of_levels(costs.size[1]) / costs.each) as usize;
        let instead = costs.filter(|_| takes_over).map_or(usize::MAX, instead);
        let trial = match turn.share {
            Some(most) if plan.has_levels() => Trial::of_levels(plan.method, goal, most),
            Some(most) if plan.is_incomplete() => Trial::of_factors(goal, most.min(instead)),
            Some(most) if plan.may_go_on => {
                let on_host = costs.filter(|costs| !costs.on_device);
                let levels = |costs: Costs| seconds_of_levels(costs.size[1]) / costs.each;
                Trial::of_budget(plan.method, goal, most, on_host.map(levels))
            }
            _ => Trial::None,
        };
        let on_device = costs.filter(|costs| costs.on_device && matches!(trial, Trial::Budget { .. }));
        // If multigrid comes next, it does so whatever the graph is like.
        let to_levels = next.is_some_and(|next| {
            next.has_levels() && (next.when == When::Always || plan.method == Method::Cg)
        });
        let is_searched = !to_levels && (plan.method != Method::Cg || plan.source == Source::Later);
        let unseen = on_device.filter(|_| is_searched).map(|costs| costs.size);
        let race = costs.filter(|_| turn.rival.is_some()).map(|costs| {
            let least = match costs.least {
                // A factorisation that is faster than multigrid would have come before it.
                least if plan.has_levels() => least.max(seconds_of_levels(costs.size[1])),
                least => least,
            };
            let behind_it = (least, costs.known, least_order_seconds(costs.size));
            let what = (plan.method, plan.has_levels(), costs.each);
            let race =
                Race::new(what, behind_it, goal, turn.share.unwrap_or(turn.left), std::mem::take(memory));
            let takes_over = next.filter(|next| next.when.is_handed_over());
            let is_better = then.is_some_and(|then| then.has_levels() || then.is_incomplete());
            let has_levels = then.is_some_and(Candidate::has_levels);
            race.with_factors(takes_over.map(|factors| costs.take_over(factors, has_levels)))
                .before_better(is_better)
        });
        let levels = costs.filter(|_| then.is_some_and(Candidate::has_levels));
        let instead_of_factors = levels.map(|costs| seconds_of_levels(costs.size[1]) / costs.each);
        let before_levels = then
            .filter(|then| then.has_levels())
            .and(rival.and_then(|rival| rival.flops))
            .zip(costs.map(|costs| costs.size[0]));
        let is_measured_by_factors = plan.is_incomplete() && !then.is_some_and(Candidate::has_levels);
        Self {
            trial,
            race,
            call: Call::GoOn,
            unseen,
            before_levels,
            is_measured_by_factors,
            instead_of_factors,
            refused: None,
        }
    }

    /// Changes the residual norm at which the iterations end.
    pub(in crate::solver) fn seek(&mut self, goal: f64) {
        self.trial.seek(goal);
        self.race.iter_mut().for_each(|race| race.seek(goal));
    }

    /// Whether the candidate goes on after an iteration; number 0 is the initial x. `guess` estimates the cost of an
    /// ordering, and `analyse` returns the seconds of the factorisation, or the reason why it is refused.
    pub(in crate::solver) fn goes_on(
        &mut self,
        (iteration, norm): (usize, f64),
        guess: impl FnOnce() -> OrderGuess,
        analyse: impl FnOnce() -> Result<f64, String>,
    ) -> bool {
        if iteration >= LOOKED_AT
            && self.trial.is_far(iteration)
            && let Some(size) = self.unseen.take()
        {
            self.trial.shorten(before_expected_factors(size, &guess()));
            return !self.trial.is_futile(iteration, norm);
        }
        let mut guess = Some(guess);
        if iteration == JUDGED_FROM
            && self.is_measured_by_factors
            && let Some(race) = &mut self.race
        {
            if !race.is_guessed()
                && let Some(guess) = guess.take()
            {
                race.guess(guess());
            }
            self.trial.lengthen(OF_FACTORS * race.iterations_of_factors());
        }
        if self.trial.is_futile(iteration, norm) {
            return false;
        }
        let Some(race) = &mut self.race else { return true };
        race.see(norm);
        self.call = race.call();
        if self.call == Call::Guess
            && let Some(guess) = guess.take()
        {
            let guess = guess();
            race.guess(guess);
            self.refused = self.before_levels.and_then(|(most, rows)| refuses_factors(&guess, most, rows));
            if self.refused.is_some() {
                race.learn(f64::INFINITY);
            }
            self.call = race.call();
        }
        if self.call == Call::Analyse {
            let forecast = analyse();
            race.learn(forecast.as_ref().copied().unwrap_or(f64::INFINITY));
            self.refused = forecast.err();
            self.call = race.call();
        }
        !self.has_lost()
    }

    /// Whether the iterations were given up for a candidate that is forecast to finish earlier.
    fn has_lost(&self) -> bool {
        matches!(self.call, Call::GiveUp | Call::HandOver)
    }

    pub(in crate::solver) fn handed_over(&self) -> bool {
        self.call == Call::HandOver
    }

    /// Whether the factorisation, or multigrid if that was refused, is forecast to take as long as very many iterations.
    pub(in crate::solver) fn is_costly(&self) -> bool {
        let levels = self.instead_of_factors.filter(|_| self.refused.is_some());
        levels.is_some_and(|iterations| iterations > COSTLY_LEVELS)
            || self.race.as_ref().is_some_and(|race| race.iterations_of_factors() > COSTLY)
    }

    /// The outcome of a candidate as it is reported, given the outcome of its iterations, and a remark.
    pub(in crate::solver) fn ended(&self, outcome: Outcome) -> (Outcome, Option<String>) {
        if outcome != Outcome::Interrupted {
            return (outcome, None);
        }
        if self.trial.was_futile() {
            let words = self.trial.words();
            // A candidate that converges slowly has used up its share of the iterations.
            return (if words.is_some() { Outcome::IterationLimit } else { Outcome::Stagnated }, words);
        }
        match &self.race {
            Some(_) if self.handed_over() => (Outcome::IterationLimit, Some(HANDED_OVER.into())),
            Some(race) if self.has_lost() => (Outcome::IterationLimit, race.words()),
            _ => (outcome, None),
        }
    }

    /// The vector of its race, to be used for the next one.
    pub(in crate::solver) fn into_memory(self) -> Option<Vec<f64>> {
        self.race.map(|race| race.best)
    }
}
