//! The candidates of a system: by its kind, of several ranks, or as a caller has listed them.

use super::distributed::distributed;
use super::table::{AS_ASKED, definite, general, named, rectangular};
use super::wanted::wanted;
use super::{Candidate, Facts, Source};
use crate::solver::names::{Method, PreconditionerChoice as Name};

/// The candidates for a system, in the order in which they are tried.
pub(in crate::solver) fn candidates(facts: &Facts) -> Vec<Candidate> {
    match (facts.method, facts.first_method()) {
        _ if !facts.wanted.is_empty() => wanted(facts),
        _ if facts.ranks > 1 => distributed(facts),
        (Method::Direct, _) => vec![Candidate {
            preconditioner: Name::None,
            source: Source::Later,
            ..facts.first(Name::None, AS_ASKED)
        }],
        (Method::Auto, Method::Cg) => definite(facts),
        (Method::Auto, Method::Gmres) => general(facts),
        (Method::Auto, _) => rectangular(facts),
        _ => named(facts),
    }
}
