//! Candidates that are refused because of the expected cost of a factorisation, before an ordering is computed.

use super::{Candidate, Source};
use crate::prepare::LIMITED_FROM;
use crate::prices::budgets::{PART, expected_factors_beside_device};
use crate::prices::iterations::WITH_FILL;
use crate::prices::order::OrderGuess;
use crate::report::seconds;
use crate::solver::names::Method;

/// Seconds of a trial of incomplete factors without fill or of BiCGSTAB on a device (H200, 10 to 13 ms, 2026-11-28).
const TRIAL: f64 = 12e-3;

/// A factorisation whose ordering is searched for within a limit is refused beforehand only if its estimated cost
/// exceeds the allowed one by this factor. Estimates are within a factor of 2 in the median. Of 1 and 1.5, this was
/// better on systems of `benches/choice`, seed 61: replayed, their regret (time relative to that of the best candidate)
/// fell from 1.15 to 1.12 in the median, from 1.56 to 1.48 for 90 %, and from 1.97 to 1.69 at most (2026-11-28).
/// Systems of seed 67 were measured with it afterwards (`docs/choice.md`).
const UNSURE: f64 = 1.5;

/// The reason to refuse a factorisation with at most `most` multiplications before its ordering is computed, if there
/// is one. It is for factorisations that multigrid follows, so the time to compute the ordering counts as part of the
/// factorisation.
pub(in crate::solver) fn refuses_factors(guess: &OrderGuess, most: f64, rows: usize) -> Option<String> {
    let is_small = (rows as f64).powi(3) <= most;
    let unsure = if rows >= LIMITED_FROM { UNSURE } else { 1.0 };
    (!is_small && guess.exceeds(unsure * most)).then(|| {
        format!(
            "estimated from the width of the matrix's graph, the ordering takes {} and the elimination {:.1e} \
             multiplications, which together take longer than the allowed {most:.1e} multiplications",
            seconds(guess.seconds),
            guess.multiplications
        )
    })
}

/// The reason to skip a trial on a device, if there is one: the factorisation that follows, which may take `most`
/// multiplications, is expected to take less than twice as long.
pub(in crate::solver) fn refuses_trial(
    plan: &Candidate,
    nonzeros: usize,
    guess: &OrderGuess,
    most: f64,
) -> Option<String> {
    let trial = match plan.method {
        _ if plan.has_fill() => WITH_FILL[0] * nonzeros as f64,
        _ if plan.is_incomplete() => TRIAL,
        Method::BiCgStab if plan.source == Source::Later => TRIAL,
        _ => return None,
    };
    let factors = expected_factors_beside_device(guess);
    (!guess.exceeds(most) && trial > PART * factors).then(|| {
        let (trial, factors) = (seconds(trial), seconds(factors));
        format!("a trial takes {trial}, and the factorisation that follows about {factors}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::choice::{Facts, candidates};

    #[test]
    fn a_trial_is_skipped_if_the_factorisation_is_as_cheap() {
        let facts = Facts { on_device: true, ..super::super::tests::facts(22_500, false) };
        let list = candidates(&facts);
        let ilu = list.iter().find(|plan| plan.is_incomplete() && !plan.has_fill()).unwrap();
        let cheap = OrderGuess { seconds: 3e-3, multiplications: 5e7 };
        assert!(refuses_trial(ilu, facts.nonzeros, &cheap, 1e10).is_some());
        let dear = OrderGuess { seconds: 0.1, multiplications: 5e9 };
        assert!(refuses_trial(ilu, facts.nonzeros, &dear, 1e10).is_none());
        // A factorisation that is refused replaces nothing.
        assert!(refuses_trial(ilu, facts.nonzeros, &cheap, 1e6).is_none());
        // GMRES itself is no trial.
        assert!(refuses_trial(&list[0], facts.nonzeros, &cheap, 1e10).is_none());
    }

    #[test]
    fn a_factorisation_is_refused_by_its_order_alone() {
        let guess = OrderGuess { seconds: 1.0, multiplications: 1e8 };
        assert!(refuses_factors(&guess, 1e9, 100_000).is_some_and(|why| why.contains("1.00 s")));
        assert!(refuses_factors(&guess, 1e11, 100_000).is_none());
        assert!(refuses_factors(&guess, 1e9, 1000).is_none());
    }
}
