//! A race between iterations and the factorisation that follows them in the list.
//!
//! The number of iterations is not known in advance. Therefore they begin, for a fraction of the minimum time of the
//! factorisation, and the slope of the residual gives a forecast of how many are left. If these are many, the
//! fill-reducing ordering is computed, which the factorisation needs anyway, and from that its cost. Costs are counted
//! in bytes and multiplications, and no clock is read, so the same input is always solved in the same way.

use crate::prices::order::OrderGuess;
use crate::report::seconds;
use crate::solver::names::Method;

/// How far the forecast of a kind of iterations is trusted.
#[derive(Debug)]
struct Trust {
    /// The number of iterations after which their slope can show that they are hopeless.
    told: usize,
    /// The fraction of the usual time of a factorisation that they may take before it is analysed. The analysis takes
    /// up to half of that time, which is lost if the iterations converge.
    before_analysis: f64,
    /// The fraction of the forecast time of the factorisation that they may take, whatever their slope.
    budget: f64,
    /// They go on if the rest of them is forecast to take less than this fraction of the factorisation.
    near: f64,
    /// Iterations are given up if the forecast of their whole time, of those done and those left, exceeds this multiple
    /// of the factorisation's time. Time that is spent is gone either way, but counts here because the extrapolated
    /// slope is often too optimistic.
    most: f64,
    /// No order is computed if the rest of them is forecast to take less than this multiple of its expected time.
    orders: f64,
    /// If no factorisation is possible, they are not given up for another method as long as the slope predicts the end
    /// within this number of iterations: a method that begins anew would have to repeat all of them.
    promising: f64,
}

/// Conjugate gradients converge faster the longer they go on, and suit most matrices that they are used for. They are
/// followed by multigrid, which suits the same matrices.
const DEFINITE: Trust = Trust {
    told: 30,
    before_analysis: 0.15,
    budget: 0.1,
    near: 0.75,
    most: 1.2,
    orders: 1.0,
    promising: 0.0,
};

/// Where multigrid works it needs 5 to 200 iterations, but early residuals do not show it: for dozens of iterations
/// they may stagnate, or grow a hundredfold, while the error falls. It may therefore take half the time of the
/// factorisation.
const LEVELS: Trust =
    Trust { told: 30, before_analysis: 1.0, budget: 0.5, near: 0.75, most: 2.5, orders: 1.0, promising: 0.0 };

/// GMRES and MINRES with the diagonal suit few of the other matrices. If they do, their slope is steeper at the end (on
/// waves in three dimensions twice as steep), so that an ordering that takes a third of the rest would be computed in
/// vain.
const GENERAL: Trust = Trust {
    told: BEFORE_TAKE_OVER,
    before_analysis: 0.1,
    budget: 0.05,
    near: 1.0,
    most: 1.2,
    orders: 3.0,
    promising: 600.0,
};

/// The same if multigrid or incomplete factors come next, whose setup takes as long as a few dozen iterations, and
/// which divide their number by 3 to 100 (convection on grids and meshes in space, PageRank: benches/choice/cpu.csv).
const NEAR_BETTER: f64 = 60.0;

/// The expected time of a factorisation before its analysis, divided by its minimum time: the median of 123 real
/// matrices is 1.3.
const USUALLY: f64 = 1.4;

/// The iterations may take this fraction of the expected time of the order before it is computed. They get less, down
/// to a smallest fraction of that, if the forecast of their rest exceeds this multiple of the expected time of the
/// order and the factorisation. All three were fitted to one half of `benches/choice/cpu.csv`; on the other half the
/// median regret fell from 1.17 to 1.11 (2026-11-28).
const WAIT: f64 = 0.7;
const HOPEFUL: f64 = 0.6;
const LEAST_WAIT: f64 = 0.3;

/// After a guess from the width of the graph, the factorisation is expected to take GUESSED times the sum of the
/// elimination and twice the ordering (the analysis takes about as long), at least its usual time, and at most UP_TO
/// times its usual time or that of the ordering, if that is longer. Fitted to one half of `benches/choice`, seeds 7, 31
/// and 47, together with [`LESS`], `orders` of [`GENERAL`], `BEFORE_LEVELS`, `LEVELS` and `AT_ONCE`, with seed 53 in
/// view: the mean regret fell from 1.31 to 1.24, and from 1.35 to 1.26 on the other half, which was in view too
/// (replayed, 2026-11-28).
const GUESSED: f64 = 0.4;
const UP_TO: f64 = 3.0;

/// A factorisation that takes less than this many seconds comes first: it gives x to working precision and the
/// condition number, and a process takes as long to start.
const SOON: f64 = 1e-3;

/// The minimum number of iterations for a slope.
const FIRST: usize = 4;

/// Incomplete factors take over from iterations with the diagonal after at least this number of iterations, if they are
/// forecast to take less time by this factor.
const BEFORE_TAKE_OVER: usize = 8;
const SOONER: f64 = 1.25;

/// They must also be forecast to take less than this fraction of the factorisation, whose forecast is more certain.
const LESS: f64 = 0.5;

/// Iterations go on if fewer than this number are left: the slope of the first ones is a rough forecast, and a setup
/// takes as long.
const NEARLY_DONE: f64 = 25.0;

/// Incomplete factors that may take over from iterations with the diagonal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) struct TakeOver {
    /// Seconds of their setup, and of an iteration with them.
    pub(in crate::solver) setup: f64,
    pub(in crate::solver) each: f64,
    /// The factor by which they are expected to reduce the number of iterations.
    pub(in crate::solver) fewer: f64,
    /// Iterations after which they are given up if they do not suit the matrix, and the largest fraction of the
    /// remaining time that the setup and these iterations may take.
    pub(in crate::solver) trial: usize,
    pub(in crate::solver) part: f64,
    /// Estimated seconds of multigrid; infinity if it does not come next.
    pub(in crate::solver) levels: f64,
}

/// What to do after an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::solver) enum Call {
    GoOn,
    /// Guess the cost of an ordering, and pass it to [`Race::guess`].
    Guess,
    /// Analyse the factorisation, and pass its cost to [`Race::learn`].
    Analyse,
    GiveUp,
    /// Go on with incomplete factors.
    HandOver,
}

/// Iterations, and the factorisation that follows them.
#[derive(Debug, Clone)]
pub(in crate::solver) struct Race {
    /// Seconds of an iteration.
    each: f64,
    /// Seconds of the factorisation: the usual time at first, after the analysis its forecast.
    behind: f64,
    is_analysed: bool,
    /// Minimum seconds of the analysis: iterations whose rest is forecast to take less go on.
    analysis: f64,
    /// The maximum number of iterations if no factorisation follows, unless the end is near.
    most: usize,
    /// The number of remaining iterations that counts as near.
    promising: f64,
    goal: f64,
    /// The smallest residual norm up to each iteration.
    pub(in crate::solver) best: Vec<f64>,
    /// Forecast of the seconds that were left when they were given up.
    left: f64,
    is_guessed: bool,
    /// Incomplete factors that may take over.
    incomplete: Option<TakeOver>,
    trust: &'static Trust,
}

/// Appends the smallest residual norm so far. The first element belongs to the initial x.
pub(in crate::solver) fn take(best: &mut Vec<f64>, norm: f64) {
    let before = best.last().copied().unwrap_or(f64::INFINITY);
    best.push(before.min(norm));
}

/// The number of iterations that are left until the residual norm is `goal`, if it falls as fast as in the second half
/// of the iterations so far. `best` has the smallest norm after each iteration, beginning with the norm for the initial
/// x.
pub(in crate::solver) fn iterations_left(best: &[f64], goal: f64) -> f64 {
    let last = best.len() - 1;
    let (half, reached) = (last / 2, best[last]);
    if reached <= goal {
        return 0.0;
    }
    let fallen = (best[half] / reached).ln();
    // The number is infinite if the residual has not fallen, or is not a number.
    if fallen > 0.0 { (reached / goal).ln() * (last - half) as f64 / fallen } else { f64::INFINITY }
}

/// Whether a factorisation that takes at least `least` seconds comes before iterations of this method.
pub(in crate::solver) fn is_left_out(method: Method, least: f64) -> bool {
    !matches!(method, Method::Cg | Method::Lsmr) && least < SOON
}

impl Race {
    /// A race of iterations that take `each` seconds, until the residual norm is `goal`, and at most `most` of them if
    /// no factorisation is possible. The factorisation takes at least `least` seconds, or `known` seconds if it was
    /// analysed, including `analysis` seconds for its order. `memory` is the vector of an earlier race, so that
    /// repeated solves allocate nothing.
    pub(in crate::solver) fn new(
        (method, with_levels, each): (Method, bool, f64),
        (least, known, analysis): (f64, Option<f64>, f64),
        goal: f64,
        most: usize,
        mut memory: Vec<f64>,
    ) -> Self {
        memory.clear();
        let (behind, is_analysed) = (known.unwrap_or(USUALLY * least), known.is_some());
        let trust = match method {
            _ if with_levels => &LEVELS,
            Method::Cg => &DEFINITE,
            _ => &GENERAL,
        };
        Self {
            each,
            behind,
            is_analysed,
            analysis,
            most,
            promising: trust.promising,
            goal,
            best: memory,
            left: 0.0,
            is_guessed: is_analysed,
            incomplete: None,
            trust,
        }
    }

    /// Adds incomplete factors that may take over.
    pub(in crate::solver) fn with_factors(self, incomplete: Option<TakeOver>) -> Self {
        Self { incomplete, ..self }
    }

    /// Notes whether a better preconditioner than the diagonal follows if no factorisation is possible.
    pub(in crate::solver) fn before_better(self, is_better: bool) -> Self {
        let promising = if is_better { self.promising.min(NEAR_BETTER) } else { self.promising };
        Self { promising, ..self }
    }

    /// Takes the expected time of the order, and with it that of the factorisation, which is too uncertain to be used
    /// without bounds.
    pub(in crate::solver) fn guess(&mut self, guess: OrderGuess) {
        (self.analysis, self.is_guessed) = (guess.seconds, true);
        let whole = GUESSED * (2.0 * guess.seconds + guess.factorisation());
        self.behind = whole.clamp(self.behind, UP_TO * self.behind.max(guess.seconds));
    }

    pub(in crate::solver) fn is_guessed(&self) -> bool {
        self.is_guessed
    }

    /// The number of iterations that take as long as the factorisation; 0 if its cost was neither guessed nor analysed,
    /// or if it was refused.
    pub(in crate::solver) fn iterations_of_factors(&self) -> f64 {
        if self.is_guessed && self.behind.is_finite() { self.behind / self.each } else { 0.0 }
    }

    /// Takes the seconds of the factorisation according to its analysis; infinity if it was refused.
    pub(in crate::solver) fn learn(&mut self, seconds: f64) {
        (self.behind, self.is_analysed) = (seconds, true);
    }

    /// Changes the residual norm at which the iterations end.
    pub(in crate::solver) fn seek(&mut self, goal: f64) {
        self.goal = goal;
    }

    /// Takes the residual norm after an iteration; the first call is for the initial x.
    pub(in crate::solver) fn see(&mut self, norm: f64) {
        take(&mut self.best, norm);
    }

    /// What to do after the iterations so far.
    pub(in crate::solver) fn call(&mut self) -> Call {
        let iterations = self.best.len().saturating_sub(1);
        if iterations < FIRST {
            return Call::GoOn;
        }
        let left = iterations_left(&self.best, self.goal);
        self.left = left * self.each;
        if iterations >= BEFORE_TAKE_OVER && self.hands_over(left) {
            return Call::HandOver;
        }
        if self.behind.is_infinite() {
            // Iterations that are forecast to end within the same number again go on: the next candidate needs a setup.
            let is_over = iterations >= self.most && left > self.promising.max(iterations as f64);
            return if is_over { Call::GiveUp } else { Call::GoOn };
        }
        let &Trust { budget, near, most, .. } = self.trust;
        let spent = iterations as f64 * self.each;
        if self.left <= near * self.behind && spent + self.left <= most * self.behind {
            return Call::GoOn;
        }
        match self.is_analysed {
            false if spent <= self.wait() => Call::GoOn,
            false if self.left <= self.trust.orders * self.analysis => Call::GoOn,
            // An analysis takes as long as many iterations, and is useless if incomplete factors take over.
            false if self.incomplete.is_some() && iterations < BEFORE_TAKE_OVER => Call::GoOn,
            false if !self.is_guessed => Call::Guess,
            false => Call::Analyse,
            true if spent <= budget * self.behind => Call::GoOn,
            true => Call::GiveUp,
        }
    }

    /// Seconds that the iterations may take before the order is sought.
    fn wait(&self) -> f64 {
        let most = f64::max(self.trust.before_analysis * self.behind, WAIT * self.analysis);
        if self.best.len() <= self.trust.told {
            return most;
        }
        let hope = HOPEFUL * (self.analysis + self.behind) / self.left;
        most * hope.clamp(LEAST_WAIT, 1.0)
    }

    /// Whether iterations with incomplete factors are forecast to finish before the iterations that are left, before
    /// multigrid and before the factorisation, and a failed trial of them would cost a small part of the remaining
    /// time.
    fn hands_over(&self, left: f64) -> bool {
        self.incomplete.is_some_and(|TakeOver { setup, each, fewer, trial, part, levels }| {
            let theirs = setup + left / fewer * each;
            let in_vain = setup + trial as f64 * each;
            let factors = if self.is_analysed { self.behind } else { self.analysis + self.behind };
            left > NEARLY_DONE
                && SOONER * theirs < self.left
                && theirs < levels
                && theirs < LESS * factors
                && in_vain <= part * self.left.min(factors)
        })
    }

    /// The reason why they were given up for a factorisation, if they were.
    pub(in crate::solver) fn words(&self) -> Option<String> {
        let mut words = format!("given up: the factorisation is forecast to take {}", seconds(self.behind));
        if self.left.is_finite() {
            words += &format!(", and these iterations {} more", seconds(self.left));
        }
        self.behind.is_finite().then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first iteration at which a race does not go on, and what it calls for, if each iteration divides the
    /// residual by `by`. `None` if the residual reaches 1e-8 before.
    fn first_call(race: &mut Race, by: f64) -> Option<(usize, Call)> {
        (race.best.len()..)
            .map_while(|iteration| {
                let norm = by.powi(-(iteration as i32));
                race.see(norm);
                (norm > 1e-8 && iteration < 5000).then(|| (iteration, race.call()))
            })
            .find(|(_, call)| *call != Call::GoOn)
    }

    fn race(known: Option<f64>) -> Race {
        Race::new((Method::Gmres, false, 1e-3), (62e-3, known, 0.0), 1e-8, 100, Vec::new())
    }

    #[test]
    fn iterations_that_arrive_soon_are_never_given_up() {
        // 27 iterations of 1 ms are enough, and a factorisation takes at least 62 ms.
        assert_eq!(first_call(&mut race(None), 2.0), None);
        // 270 iterations would be needed: the factorisation is analysed as soon as there is a slope, and is tried ...
        let mut slow = race(None);
        assert_eq!(first_call(&mut slow, 1.07), Some((8, Call::Guess)));
        slow.guess(OrderGuess { seconds: 1e-3, multiplications: 1e8 });
        assert_eq!(slow.call(), Call::Analyse);
        slow.learn(65e-3);
        assert_eq!(slow.call(), Call::GiveUp);
        let words = slow.words().unwrap();
        assert!(words.contains("65.0 ms") && words.contains("264 ms more"), "{words}");
        // 100 iterations would be needed: they may take a little longer before it is analysed ...
        assert_eq!(first_call(&mut race(None), 1.2), Some((8, Call::Guess)));
        // ... unless the order is expected to take longer than the remaining iterations ...
        let mut in_space = race(None);
        assert_eq!(first_call(&mut in_space, 1.07), Some((8, Call::Guess)));
        in_space.guess(OrderGuess { seconds: 0.4, multiplications: 1e9 });
        assert_eq!(first_call(&mut in_space, 1.07), None);
        // ... or the factorisation takes twice as long as they do.
        assert_eq!(first_call(&mut race(Some(0.6)), 1.07), None);
    }

    #[test]
    fn incomplete_factors_take_over_where_they_are_forecast_to_be_sooner() {
        // 50 iterations of 1 ms are left, or 17 of 2 ms; a factorisation takes 62 ms at least.
        let factors = |(setup, each)| {
            Some(TakeOver { setup, each, fewer: 4.0, trial: 15, part: f64::INFINITY, levels: f64::INFINITY })
        };
        let slow = |incomplete| Race { incomplete: factors(incomplete), ..race(Some(0.2)) };
        assert_eq!(first_call(&mut slow((1e-3, 1.2e-3)), 1.4), Some((BEFORE_TAKE_OVER, Call::HandOver)));
        // The factors do not take over if their setup takes longer than the rest of the iterations, or if few are left.
        assert_eq!(first_call(&mut slow((0.1, 1e-3)), 1.4), None);
        assert_eq!(first_call(&mut slow((1e-2, 1e-3)), 5.0), None);
        // Nor do they if an unsuccessful trial would cost more than a given part of the remaining time.
        let part = |part| factors((1e-3, 1.2e-3)).map(|factors| TakeOver { part, ..factors });
        let tried = |share| first_call(&mut Race { incomplete: part(share), ..race(Some(0.2)) }, 1.4);
        assert_eq!(tried(0.5), Some((BEFORE_TAKE_OVER, Call::HandOver)));
        assert_eq!(tried(0.25), None);
        // If the factorisation is faster than both, it is tried.
        let mut creeping = Race { incomplete: factors((1e-3, 1e-3)), ..race(Some(62e-3)) };
        assert!(matches!(first_call(&mut creeping, 1.02), Some((_, Call::GiveUp))));
    }

    #[test]
    fn a_residual_that_stands_still_costs_no_more_than_its_budget() {
        assert_eq!(first_call(&mut race(Some(0.21)), 1.0), Some((11, Call::GiveUp)));
        // If no factorisation is possible, all iterations of the budget are done.
        assert_eq!(first_call(&mut race(Some(f64::INFINITY)), 1.0), Some((100, Call::GiveUp)));
        // They go on if the end is near (270 iterations in all), except conjugate gradients, which multigrid follows.
        assert_eq!(first_call(&mut race(Some(f64::INFINITY)), 1.07), None);
        let mut definite =
            Race::new((Method::Cg, false, 1e-3), (62e-3, Some(f64::INFINITY), 0.0), 1e-8, 100, Vec::new());
        assert_eq!(first_call(&mut definite, 1.07), Some((100, Call::GiveUp)));
        let mut no_numbers = race(Some(1e-3));
        (0..5).for_each(|_| no_numbers.see(f64::NAN));
        assert_eq!(no_numbers.call(), Call::GiveUp);
    }
}
