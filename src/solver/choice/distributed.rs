//! The candidates of a matrix whose rows are distributed over several ranks: those that do not factorise the whole
//! matrix. Preconditioners other than multigrid use the rows and columns of one rank only.

use super::table::{GENERAL, GRIDS, HERMITIAN, LEAST, LEVELS, PLAIN, SHORT, SPD, named};
use super::{Candidate, Facts, Source};
use crate::prices::budgets::{LEVELS_ITERATIONS, PATIENCE, SHARE, before_levels};
use crate::solver::names::{Method, PreconditionerChoice as Name};

/// The candidates of a distributed system, in the order in which they are tried.
pub(super) fn distributed(facts: &Facts) -> Vec<Candidate> {
    match facts.method {
        Method::Auto if facts.hermitian => definite(facts),
        Method::Auto => general(facts),
        _ => named(facts),
    }
}

fn definite(facts: &Facts) -> Vec<Candidate> {
    let first = facts.first(facts.named_or(Name::Jacobi), SPD);
    let levels = |why, source| {
        let share = Some(facts.share(LEVELS_ITERATIONS));
        Candidate { share, ..facts.levels(why, source) }
    };
    let mut list = if facts.hierarchy.is_some() {
        let behind = Candidate { source: Source::Later, why: PLAIN, ..first };
        vec![levels(GRIDS, Source::Chosen), behind]
    } else if facts.may_take_levels() {
        let share = Some(facts.share(before_levels(facts.rows, facts.on_device)));
        vec![Candidate { share, ..first }, levels(LEVELS, Source::Later)]
    } else {
        vec![first]
    };
    list.push(Candidate { share: Some(SHARE), ..facts.plain(Method::Minres, HERMITIAN) });
    list.push(facts.plain(Method::Lsmr, LEAST));
    list
}

fn general(facts: &Facts) -> Vec<Candidate> {
    let share = Some(facts.patience(PATIENCE));
    let why = if facts.hierarchy.is_some() { PLAIN } else { GENERAL };
    let mut list = vec![
        Candidate { share, ..facts.first(facts.named_or(Name::Jacobi), why) },
        Candidate { share, ..facts.plain(Method::BiCgStab, SHORT) },
        facts.plain(Method::Lsmr, LEAST),
    ];
    if facts.hierarchy.is_some() {
        list[0].source = Source::Later;
        let share = Some(facts.share(LEVELS_ITERATIONS));
        list.insert(0, Candidate { share, ..facts.levels(GRIDS, Source::Chosen) });
    }
    list
}
