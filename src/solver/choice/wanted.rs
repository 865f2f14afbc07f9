//! The candidates that a caller has listed, in the caller's order.

use super::table::AS_ASKED;
use super::{Candidate, Facts, Source};
use crate::prices::budgets::SHARE;
use crate::solver::names::{Method, PreconditionerChoice as Name};

/// A candidate for each pair of a method and a preconditioner. `Auto` stands for the method and the preconditioner with
/// which a solver begins. Each candidate may take the same fraction of the iterations that remain, and the last one all
/// of them.
pub(super) fn wanted(facts: &Facts) -> Vec<Candidate> {
    let pair = |&(method, name): &(Method, Name)| {
        let method = if method == Method::Auto { facts.first_method() } else { method };
        let name = match name {
            Name::Auto if method == Method::Direct => Name::None,
            Name::Auto => Name::Jacobi,
            named => named,
        };
        let is_direct = method == Method::Direct;
        let share = (!is_direct).then_some(SHARE);
        Candidate { method, source: Source::Later, share, ..facts.first(name, AS_ASKED) }
    };
    let mut list: Vec<Candidate> = facts.wanted.iter().map(pair).collect();
    if let Some(last) = list.last_mut() {
        last.share = None;
    }
    list
}
