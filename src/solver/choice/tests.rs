//! The order of candidates for systems that are given by their facts only.

use super::table::{CLASSICAL, GRIDS, SYMMETRIZED};
use super::*;
use crate::prices::budgets::SHARE;
use crate::solver::names::{Method, PreconditionerChoice as Name};

/// The facts of a system with `n` unknowns and seven entries per row, on a CPU, for which the caller has named nothing.
pub(super) fn facts(n: usize, hermitian: bool) -> Facts {
    Facts {
        rows: n,
        columns: n,
        nonzeros: 7 * n,
        hermitian,
        on_device: false,
        method: Method::Auto,
        preconditioner: Name::Auto,
        has_near_null: false,
        max_iterations: None,
        right_hand_sides: 1,
        condition: true,
        memory: None,
        iteration_limit: 10 * n,
        hierarchy: None,
        polynomial: None,
        narrow_band: None,
        ranks: 1,
        wanted: Vec::new(),
    }
}

/// Methods and preconditioners in one line; `?` marks a candidate that is only tried after some event.
fn order(facts: &Facts) -> String {
    let words = |candidate: &Candidate| {
        let event = if matches!(candidate.when, When::Always) { "" } else { "?" };
        match (candidate.method, candidate.preconditioner) {
            (Method::Direct, _) => format!("direct{event}"),
            (method, Name::Jacobi) => format!("{method}{event}"),
            (method, name) => format!("{method}+{name}{event}"),
        }
    };
    candidates(facts).iter().map(words).collect::<Vec<_>>().join(" ")
}

fn limits(facts: &Facts) -> Vec<f64> {
    candidates(facts).iter().filter_map(|candidate| candidate.flops).collect()
}

#[test]
fn a_hermitian_matrix_has_multigrid_once_it_is_large_and_a_factorisation_behind_it() {
    assert_eq!(order(&facts(1000, true)), "cg minres? gmres+ilut? direct gmres+ilut? minres direct lsmr");
    let behind = "minres? gmres+ilut? direct cg+amg? direct gmres+ilut? minres direct lsmr";
    assert_eq!(order(&facts(100_000, true)), format!("cg {behind}"));
    assert_eq!(order(&facts(1_000_000, true)), "cg cg+amg? direct gmres+ilut? minres direct lsmr");
    let made = Hierarchy { why: GRIDS, is_made: true };
    let on_grid = Facts { hierarchy: Some(made), ..facts(100_000, true) };
    assert_eq!(order(&on_grid), "cg+amg? cg minres? gmres+ilut? direct gmres+ilut? minres direct lsmr");
}

#[test]
fn a_device_iterates_before_an_order_of_elimination_is_found_on_the_host() {
    let here = Facts { on_device: true, ..facts(100_000, true) };
    assert_eq!(order(&here), "cg minres? cg+amg? cg? direct gmres+ilut? minres direct lsmr");
    let minres = candidates(&here)[1];
    let most = minres.share.unwrap() * here.iteration_limit as f64;
    assert!(most > 5000.0 && most < 50_000.0 && minres.may_go_on, "{most}");
    let general = Facts { on_device: true, ..facts(100_000, false) };
    assert!(order(&general).starts_with("bicgstab gmres+ilu direct gmres+ilut "), "{}", order(&general));
    // One factorisation is enough for many right-hand sides.
    let many = Facts { right_hand_sides: 100, ..general };
    assert!(order(&many).starts_with("direct gmres "), "{}", order(&many));
}

#[test]
fn multigrid_of_a_matrix_that_is_not_hermitian_comes_behind_a_factorisation_that_is_as_fast() {
    let behind = "gmres+ilut gmres bicgstab direct lsmr";
    let plain = facts(100_000, false);
    assert_eq!(order(&plain), format!("gmres bicgstab+ilu? bicgstab? direct {behind}"));
    let later = Some(Hierarchy { why: CLASSICAL, is_made: false });
    let classical = Facts { hierarchy: later, ..plain.clone() };
    let multigrid = "gmres bicgstab+ilu? bicgstab? direct gmres+amg direct";
    assert_eq!(order(&classical), format!("{multigrid} {behind}"));
    let limits = limits(&classical);
    assert!(limits[0] < limits[1] && limits[1] < limits[2], "{limits:?}");
    let large = Facts { hierarchy: later, ..facts(1_000_000, false) };
    assert!(order(&large).starts_with("gmres gmres+amg direct bicgstab+ilu direct "), "{}", order(&large));
    let made = Hierarchy { why: SYMMETRIZED, is_made: true };
    let scaled = Facts { hierarchy: Some(made), ..plain };
    assert!(order(&scaled).starts_with("gmres gmres+amg bicgstab? direct "), "{}", order(&scaled));
}

#[test]
fn what_was_named_stands_alone_and_what_is_not_square_has_its_own_methods() {
    let named = |method| Facts { method, ..facts(1000, true) };
    assert_eq!(order(&named(Method::Direct)), "direct");
    assert_eq!(order(&named(Method::BiCgStab)), "bicgstab");
    let polynomial = Facts { polynomial: Some(14), ..named(Method::Cg) };
    assert_eq!(order(&polynomial), "cg+chebyshev-single:14 cg");
    let tall = Facts { rows: 2000, ..facts(1000, false) };
    assert_eq!(order(&tall), "lsmr direct lsmr");
    let wide = Facts { rows: 500, ..facts(1000, false) };
    assert_eq!(order(&wide), "lsmr+none direct lsmr");
}

#[test]
fn every_candidate_but_the_last_leaves_something_to_the_next() {
    for (n, hermitian, on_device) in [100, 100_000, 10_000_000]
        .into_iter()
        .flat_map(|n| [(n, true, false), (n, false, true), (n, false, false)])
    {
        let all = candidates(&Facts { on_device, ..facts(n, hermitian) });
        let (last, others) = all.split_last().unwrap();
        assert!(last.share.is_none() && last.method == Method::Lsmr);
        let ends = |candidate: &Candidate| candidate.share.is_none() && candidate.flops.is_none();
        // Only conjugate gradients may take all iterations: they break down if they do not suit the matrix, and if they
        // converge slowly, nothing is faster.
        assert!(others.iter().all(|other| !ends(other) || other.method == Method::Cg));
    }
}

#[test]
fn ranks_have_no_factorisation_and_multigrid_where_it_is_worth_its_setup() {
    let on_ranks = |n, hermitian| Facts { ranks: 4, ..facts(n, hermitian) };
    assert_eq!(order(&on_ranks(1000, true)), "cg minres lsmr");
    assert_eq!(order(&on_ranks(100_000, true)), "cg cg+amg? minres lsmr");
    let made = Some(Hierarchy { why: GRIDS, is_made: true });
    assert_eq!(order(&Facts { hierarchy: made, ..on_ranks(100_000, true) }), "cg+amg? cg minres lsmr");
    assert_eq!(order(&on_ranks(100_000, false)), "gmres bicgstab lsmr");
    let on_grid = Facts { hierarchy: made, ..on_ranks(100_000, false) };
    assert_eq!(order(&on_grid), "gmres+amg gmres bicgstab lsmr");
    assert_eq!(order(&Facts { method: Method::Minres, ..on_ranks(1000, true) }), "minres");
}

#[test]
fn what_a_caller_lists_is_tried_in_this_order_and_nothing_else() {
    let wanted = vec![
        (Method::Cg, Name::Multigrid(Default::default())),
        (Method::Direct, Name::Auto),
        (Method::Auto, Name::Auto),
    ];
    let listed = Facts { wanted, ..facts(100_000, true) };
    assert_eq!(order(&listed), "cg+amg direct cg");
    let shares: Vec<Option<f64>> = candidates(&listed).iter().map(|candidate| candidate.share).collect();
    assert_eq!(shares, [Some(SHARE), None, None]);
}
