//! The candidates for each type of system, in the order in which they are tried.

use super::{Candidate, Facts, Hierarchy, Source, When};
use crate::prices::budgets::{
    AT_ONCE, BEFORE_FACTORS, BEFORE_FORECAST, BEFORE_INCOMPLETE, BEFORE_LEVELS_OF_OTHERS, BEFORE_MINRES,
    BEFORE_TRIALS, IN_RACE, LEVELS_ITERATIONS, LONG_LEVELS, MEDIUM, PATIENCE, PATIENT, QUICK, SHARE, SMALL,
    SMALL_ITERATIONS, before_factors_on_device, before_levels, cg_before_factors_on_device, flops_of_levels,
};
use crate::prices::iterations::MORE_PRODUCTS;
use crate::solver::forecast::expected_products;
use crate::solver::names::{Method, Precision, PreconditionerChoice as Name};

pub(in crate::solver) const AS_ASKED: &str = "as asked for";
pub(in crate::solver) const SPD: &str = "the matrix is Hermitian, and may be positive definite";
pub(in crate::solver) const GENERAL: &str = "the matrix is not Hermitian";
const TALL: &str = "the matrix is not square: least squares";
const WIDE: &str =
    "fewer rows than columns: the solution of least norm, for which columns must not be scaled";
const HALF: &str = "half the precision moves half the bytes";
const RESCUE: &str = "in full precision, if half the precision fails";
const POLYNOMIAL: &str = "a polynomial in half the precision moves fewer bytes";
const INSTEAD: &str = "if the polynomial fails";
pub(in crate::solver) const GRIDS: &str = "the matrix is on a grid, so multigrid is set up quickly";
pub(in crate::solver) const MESH: &str =
    "the matrix is that of a large mesh, on which conjugate gradients take many iterations";
pub(in crate::solver) const SYMMETRIZED: &str =
    "the matrix is symmetric up to factors of its rows: multigrid takes few iterations";
pub(in crate::solver) const CLASSICAL: &str =
    "off-diagonal entries have one sign: classical multigrid takes few iterations, whatever the size";
pub(in crate::solver) const PLAIN: &str = "if multigrid fails";
pub(in crate::solver) const HERMITIAN: &str = "for a Hermitian matrix that is not positive definite";
pub(in crate::solver) const SHORT: &str = "another method for a matrix that is not Hermitian";
pub(in crate::solver) const LEAST: &str = "for a matrix that may be singular";
const BAND: &str = "the matrix is a narrow band, whose factorisation needs no ordering";
const CHEAP: &str = "a factorisation, if it is cheap";
const BEYOND: &str = "a factorisation, if multigrid fails";
const DENSE: &str = "a dense factorisation also gives the solution of least norm";
const SQUARES: &str = "a factorisation also gives the least-squares solution";
const ON: &str = "if a factorisation fails";
const SCALED: &str = "scaled columns: a solution, but not the one of least norm";
const LAST: &str = "a factorisation, if iterations fail";
const FACTORS: &str = "an incomplete factorisation, if the diagonal alone takes many iterations";
const FEWER: &str = "an incomplete factorisation: fewer iterations, and perhaps less time";
const FILL: &str = "an incomplete factorisation with fill";
const SADDLES: &str = "an incomplete factorisation with fill, which suits some saddle points";
pub(in crate::solver) const LEVELS: &str =
    "conjugate gradients are slow here: multigrid takes few iterations";

/// The candidates of a system that is solved with conjugate gradients in half the precision and refined, or solved in
/// full precision if that fails.
pub(in crate::solver) fn in_half(facts: &Facts, name: Name) -> Vec<Candidate> {
    let own = match facts.named_or(Name::Jacobi) {
        Name::ChebyshevSingle(_) => Name::Jacobi,
        named => named,
    };
    let half = Candidate { precision: Precision::Mixed, ..facts.first(name, HALF) };
    let full = Candidate { source: Source::Later, ..facts.first(own, RESCUE) };
    let behind = match (facts.method, facts.first_method()) {
        (Method::Auto, Method::Cg) => behind_cg(facts),
        _ => Vec::new(),
    };
    [half, full].into_iter().chain(behind).collect()
}

/// The reason for the first method.
fn why_first(facts: &Facts) -> &'static str {
    match (facts.method, facts.first_method()) {
        (Method::Auto, Method::Lsmr) if facts.is_underdetermined() => WIDE,
        (Method::Auto, Method::Lsmr) => TALL,
        (Method::Auto, Method::Gmres) => GENERAL,
        (Method::Auto, _) => SPD,
        _ => AS_ASKED,
    }
}

/// A method that the caller has named, with the preconditioner that was named or chosen for it.
pub(super) fn named(facts: &Facts) -> Vec<Candidate> {
    match facts.polynomial {
        Some(steps) => with_polynomial(facts, steps, None),
        None => vec![facts.first(facts.named_or(Name::Jacobi), AS_ASKED)],
    }
}

/// A polynomial that the solver has chosen, followed by the diagonal.
fn with_polynomial(facts: &Facts, steps: usize, share: Option<f64>) -> Vec<Candidate> {
    let polynomial = Candidate { share, ..facts.first(Name::ChebyshevSingle(steps), POLYNOMIAL) };
    vec![polynomial, Candidate { source: Source::Beside, ..facts.first(Name::Jacobi, INSTEAD) }]
}

/// The factorisation within a narrow band, if the matrix has one.
fn in_band(facts: &Facts) -> Option<Candidate> {
    facts.begins_with_band().then(|| facts.direct(QUICK, BAND))
}

/// The candidates of a Hermitian matrix: conjugate gradients, and what follows if A is indefinite or they are slow.
pub(super) fn definite(facts: &Facts) -> Vec<Candidate> {
    let (n, race) = (facts.columns, facts.races());
    let name = facts.named_or(Name::Jacobi);
    let share = match name {
        _ if facts.max_iterations.is_some() => None,
        Name::Multigrid(_) => Some(LEVELS_ITERATIONS),
        _ if facts.may_take_levels() => Some(before_levels(n, facts.on_device)),
        _ if n <= SMALL && facts.on_device => {
            Some(cg_before_factors_on_device(n, facts.nonzeros).max(SMALL_ITERATIONS))
        }
        _ if n <= SMALL => Some(SMALL_ITERATIONS),
        _ => None,
    };
    let share = share.map(|most| facts.share(most));
    let mut list = match (facts.hierarchy, facts.polynomial) {
        (Some(hierarchy), _) => vec![
            Candidate { race, ..facts.levels(hierarchy.why, Source::Chosen) },
            Candidate { source: Source::Beside, race, ..facts.first(Name::Jacobi, PLAIN) },
        ],
        (None, Some(steps)) => with_polynomial(facts, steps, share),
        (None, None) => {
            // Iterations that are nearly done go on: the setup of multigrid takes as long as hundreds of them,
            // thousands on a device.
            vec![Candidate { share, race, may_go_on: share.is_some(), ..facts.first(name, why_first(facts)) }]
        }
    };
    list.splice(0..0, in_band(facts));
    list.extend(behind_cg(facts));
    list
}

/// The candidates that follow conjugate gradients.
fn behind_cg(facts: &Facts) -> Vec<Candidate> {
    let (n, race, on_host) = (facts.columns, facts.races(), !facts.on_device);
    let mut list = Vec::new();
    let minres = facts.plain(Method::Minres, HERMITIAN);
    if race {
        let share = Some(facts.share(BEFORE_MINRES));
        list.push(Candidate { share, race, when: When::Indefinite, ..minres });
        if facts.may_take_factors() {
            let factors = facts.incomplete(Name::Ilut(Default::default()), SADDLES);
            list.push(Candidate { method: Method::Gmres, when: When::HandedOver, ..factors });
        }
    } else if facts.on_device && n <= MEDIUM {
        // Thousands of iterations take as long as an ordering, which is computed on the host.
        let share = Some(facts.patience(before_factors_on_device(n, facts.nonzeros)));
        list.push(Candidate { share, may_go_on: true, when: When::Indefinite, ..minres });
    }
    if facts.may_take_levels() && facts.hierarchy.is_none() {
        if on_host && n <= MEDIUM {
            list.push(facts.direct(AT_ONCE.max(LONG_LEVELS * flops_of_levels(facts.nonzeros)), CHEAP));
        }
        list.push(Candidate { race, ..facts.levels(LEVELS, Source::Later) });
        if facts.on_device {
            // Iterations on a device are cheaper than a factorisation on the host.
            let cg = facts.plain(Method::Cg, PLAIN);
            let share = if n <= MEDIUM {
                facts.patience(cg_before_factors_on_device(n, facts.nonzeros))
            } else {
                SHARE
            };
            list.push(Candidate { share: Some(share), may_go_on: true, when: When::Definite, ..cg });
        }
    }
    if n <= MEDIUM {
        list.push(facts.direct(IN_RACE, CHEAP));
    } else if on_host {
        // MINRES takes thousands of iterations for this many unknowns, which is minutes. Problems in two dimensions are
        // factorised in seconds.
        list.push(facts.direct(BEFORE_INCOMPLETE, CHEAP));
    }
    if facts.may_take_factors() {
        // Some saddle points that are too large to factorise take MINRES thousands of iterations, and GMRES with ILUT
        // ten.
        let factors = facts.incomplete(Name::Ilut(Default::default()), FILL);
        list.push(Candidate { method: Method::Gmres, when: When::Indefinite, ..factors });
    }
    list.push(Candidate { share: Some(SHARE), race, ..minres });
    list.push(facts.direct(PATIENT, LAST));
    list.push(facts.plain(Method::Lsmr, LEAST));
    list
}

/// The candidates of a square matrix that is not Hermitian.
pub(super) fn general(facts: &Facts) -> Vec<Candidate> {
    let (n, race, hierarchy) = (facts.columns, facts.races(), facts.hierarchy);
    let name = facts.named_or(Name::Jacobi);
    let most = match name {
        Name::Multigrid(_) => LEVELS_ITERATIONS,
        _ if facts.iterates_first() && n <= SMALL && facts.may_take_factors() && hierarchy.is_none() => {
            before_factors_on_device(n, facts.nonzeros).min(BEFORE_TRIALS)
        }
        _ if facts.iterates_first() => before_factors_on_device(n, facts.nonzeros),
        _ if race => BEFORE_FORECAST,
        _ if n <= SMALL => PATIENCE,
        _ if facts.may_take_factors() => BEFORE_FACTORS,
        _ => BEFORE_FORECAST,
    };
    let most = match hierarchy {
        Some(Hierarchy { is_made: true, .. }) | None => most,
        Some(_) if n > SMALL && !facts.iterates_first() => most.min(BEFORE_LEVELS_OF_OTHERS),
        Some(_) if race => most.min(BEFORE_FACTORS),
        Some(_) => most.min(BEFORE_FORECAST),
    };
    // On a device an iteration of BiCGSTAB with its two products takes as long as one of GMRES on average, which
    // projects on all vectors since its restart. With the diagonal, BiCGSTAB solves all 13 systems of
    // `benches/choice/gpu.csv` that GMRES solves, in 0.5 to 1.0 of its time, and 3 that GMRES does not.
    let first = |name: Name, why: &'static str| {
        let plan = Candidate { share: Some(facts.patience(most)), race, ..facts.first(name, why) };
        let is_short = facts.iterates_first() && facts.is_free() && name == Name::Jacobi;
        Candidate { method: if is_short { Method::BiCgStab } else { plan.method }, ..plan }
    };
    let mut list = match hierarchy {
        Some(Hierarchy { why, is_made: true }) => {
            let levels = Candidate { race, ..facts.levels(why, Source::Chosen) };
            let beside = Candidate { source: Source::Beside, race: false, ..first(Name::Jacobi, PLAIN) };
            if why == SYMMETRIZED {
                // Easy systems may have scaled rows too, so a few iterations with the diagonal come first.
                let share = Some(facts.patience(BEFORE_LEVELS_OF_OTHERS));
                vec![Candidate { share, why: GENERAL, ..beside }, levels]
            } else {
                vec![levels, beside]
            }
        }
        _ => vec![first(name, why_first(facts))],
    };
    if facts.iterates_first() && facts.may_take_factors() && hierarchy.is_none_or(|levels| !levels.is_made) {
        list[0].may_go_on = true;
    }
    let levels_later = hierarchy.filter(|hierarchy| !hierarchy.is_made).map(|hierarchy| hierarchy.why);
    let levels_later = levels_later.map(|why| facts.levels(why, Source::Later));
    if race && name == Name::Jacobi && hierarchy.is_none_or(|hierarchy| !hierarchy.is_made) {
        list.push(Candidate { race, when: When::HandedOverOrCostly, ..facts.without_fill(FEWER) });
    }
    if facts.iterates_first() && n <= SMALL {
        list.extend(levels_later);
        if facts.may_take_factors() && (levels_later.is_some() || hierarchy.is_none()) {
            list.push(facts.without_fill(FACTORS));
        }
        list.push(facts.direct(IN_RACE, CHEAP));
    } else if facts.begins_with_factors() {
        let flops = match levels_later {
            Some(_) if race => flops_of_levels(facts.nonzeros),
            None if race => IN_RACE,
            _ => QUICK,
        };
        if race {
            let share = Some(facts.patience(PATIENCE));
            let bicgstab = facts.plain(Method::BiCgStab, SHORT);
            list.push(Candidate { share, race, when: When::BeforeCostly, ..bicgstab });
        }
        let place = if race { list.len() } else { 0 };
        list.insert(place, facts.direct(flops, CHEAP));
        if let Some(levels) = levels_later {
            list.insert(place + 1, Candidate { race, ..levels });
            list.insert(place + 2, facts.direct(IN_RACE, BEYOND));
        }
    } else {
        list.extend(levels_later);
    }
    list.splice(0..0, in_band(facts));
    list.extend(behind_gmres(facts));
    list
}

/// The candidates that follow GMRES.
fn behind_gmres(facts: &Facts) -> Vec<Candidate> {
    let (large, patience) = (!facts.is_small(), Some(facts.patience(PATIENCE)));
    let mut list = Vec::new();
    if large {
        // For this many unknowns the analysis alone takes seconds, so a few iterations have come first. On a device an
        // incomplete factorisation is computed and applied by all threads.
        if !facts.on_device {
            list.push(facts.direct(BEFORE_INCOMPLETE, CHEAP));
        }
        if facts.may_take_factors() {
            list.push(facts.without_fill(FACTORS));
        }
        // If it is refused, iterations go on.
        list.push(facts.direct(PATIENT, LAST));
    }
    if facts.may_take_factors() {
        list.push(facts.incomplete(Name::Ilut(Default::default()), FILL));
    }
    if large || facts.races() || facts.iterates_first() {
        list.push(Candidate { share: patience, ..facts.plain(Method::Gmres, GENERAL) });
    }
    let race = facts.races();
    list.push(Candidate { share: patience, race, ..facts.plain(Method::BiCgStab, SHORT) });
    if !large {
        list.push(facts.direct(PATIENT, LAST));
    }
    list.push(facts.plain(Method::Lsmr, LEAST));
    list
}

/// The candidates of a matrix that is not square.
pub(super) fn rectangular(facts: &Facts) -> Vec<Candidate> {
    let share =
        (facts.is_underdetermined() || facts.is_overdetermined()).then(|| facts.patience(f64::INFINITY));
    let race = facts.races_for_squares();
    let first = Candidate { share, race, ..facts.first(facts.named_or(Name::Jacobi), why_first(facts)) };
    let behind = if facts.is_underdetermined() {
        vec![facts.direct(QUICK, DENSE), facts.plain(Method::Lsmr, SCALED)]
    } else if facts.is_overdetermined() {
        vec![facts.direct(QUICK, SQUARES), facts.plain(Method::Lsmr, ON)]
    } else {
        Vec::new()
    };
    [first].into_iter().chain(behind).collect()
}

impl Facts {
    /// The first method with a preconditioner that is set up already. Nothing limits its iterations.
    pub(super) fn first(&self, preconditioner: Name, why: &'static str) -> Candidate {
        let products = expected_products(self.columns, 1, self.max_iterations);
        let iterations = match preconditioner {
            Name::Chebyshev(steps) | Name::ChebyshevSingle(steps) => {
                (MORE_PRODUCTS * products as f64 / steps as f64).ceil() as usize
            }
            _ => products,
        };
        Candidate {
            method: self.first_method(),
            preconditioner,
            precision: Precision::Double,
            why,
            source: Source::Chosen,
            when: When::Always,
            iterations,
            share: None,
            may_go_on: false,
            flops: None,
            memory: self.memory,
            condition: self.condition,
            race: false,
        }
    }

    /// The first method with multigrid that the solver has chosen.
    pub(super) fn levels(&self, why: &'static str, source: Source) -> Candidate {
        let most = LEVELS_ITERATIONS;
        let share = if self.hermitian { self.share(most) } else { self.patience(most) };
        // With conjugate gradients multigrid suits positive definite matrices only.
        let when = if self.hermitian { When::Definite } else { When::Always };
        Candidate { share: Some(share), source, when, ..self.first(Name::Multigrid(Default::default()), why) }
    }

    /// A method with the diagonal, or without a preconditioner if the caller wants none.
    pub(super) fn plain(&self, method: Method, why: &'static str) -> Candidate {
        let name = if self.preconditioner == Name::None { Name::None } else { Name::Jacobi };
        Candidate { method, source: Source::Later, ..self.first(name, why) }
    }

    /// The first method with an incomplete factorisation.
    fn incomplete(&self, name: Name, why: &'static str) -> Candidate {
        let share = Some(self.patience(BEFORE_FORECAST));
        Candidate { share, source: Source::Later, ..self.first(name, why) }
    }

    /// Incomplete factors without fill of a matrix that is not Hermitian. On the host they are for BiCGSTAB, which takes
    /// half to 0.9 of the time of GMRES with them on all kinds of `benches/choice` that either solves with them (16
    /// systems, two cores, 2026-11-28); on a device, where setup and barriers dominate, for GMRES.
    fn without_fill(&self, why: &'static str) -> Candidate {
        let method = if self.on_device { self.first_method() } else { Method::BiCgStab };
        Candidate { method, ..self.incomplete(Name::Ilu, why) }
    }

    /// A factorisation with at most this many multiplications.
    fn direct(&self, flops: f64, why: &'static str) -> Candidate {
        let (method, source) = (Method::Direct, Source::Later);
        Candidate { method, source, iterations: 1, flops: Some(flops), ..self.first(Name::None, why) }
    }

    /// True if iterations on a device come before the factorisation of a matrix that is not Hermitian, because its
    /// ordering is computed on the host. With several right-hand sides they do not, because all of them use one
    /// factorisation.
    fn iterates_first(&self) -> bool {
        self.on_device && self.method == Method::Auto && self.right_hand_sides <= 1
    }

    /// This number of iterations as a fraction of the maximum number.
    pub(super) fn share(&self, most: f64) -> f64 {
        (most / self.iteration_limit as f64).min(1.0)
    }

    /// The fraction of all iterations that a method may take if others may solve the system; at most `most` iterations.
    pub(super) fn patience(&self, most: f64) -> f64 {
        SHARE.min(self.share(most))
    }
}
