//! The stages that are tried in turn, where a solver chooses for itself.

use super::SolverBackend;
use super::budgets::{
    AT_ONCE, BEFORE_FACTORS, BEFORE_FORECAST, BEFORE_INCOMPLETE, BEFORE_MINRES, IN_RACE, LEVELS_FROM, MEDIUM,
    PATIENCE, PATIENT, QUICK, SHARE, SMALL, SMALL_ITERATIONS, before_levels, levels_iterations,
};
use super::iterated::Parts;
use super::names::{Method, Precision, PreconditionerChoice as Name};
use super::plan::{GENERAL, Planner};
use super::preconditioner::Setup;
use super::stage::{Plan, Stage, iterated};
use crate::backend::PreconditionSteps;
use crate::error::Result;
use crate::scalar::Scalar;

pub(super) const HERMITIAN: &str = "for a Hermitian matrix that is not positive definite";
pub(super) const SHORT: &str = "another way for a matrix that is not Hermitian";
pub(super) const LEAST: &str = "for a matrix that is singular, as far as can be told";
const CHEAP: &str = "a factorisation is cheap for a matrix of this size";
const DENSE: &str = "a dense factorisation gives the solution of least norm too";
const SQUARES: &str = "a factorisation gives the least-squares solution too";
const ON: &str = "where a factorisation does not serve";
const SCALED: &str = "scaled columns: a solution, but not that of least norm";
const LAST: &str = "a factorisation, where iterations do not serve";
const FACTORS: &str = "an incomplete factorisation, since iterations with the diagonal are many";
const FEWER: &str = "an incomplete factorisation, with which fewer iterations are sooner at their end";
const FILL: &str = "an incomplete factorisation with fill";
pub(super) const LEVELS: &str = "conjugate gradients have not come far: multigrid takes few iterations";

impl<B: SolverBackend> Planner<'_, B> {
    /// The first method with its preconditioner, and those behind it.
    pub(super) fn stages<T: Scalar>(
        &self,
        n: usize,
        setup: Setup<T, B>,
        name: Name,
        why: &'static str,
    ) -> Result<Vec<Stage<T, B>>> {
        let method = self.first();
        let plan = self.plan(n, name, Precision::Double, why);
        if method == Method::Direct {
            return Ok(vec![Stage::later(Plan { preconditioner: Name::None, ..plan })]);
        }
        let plan = Plan { share: self.share_of_first(n, name), ..plan };
        let parts = Parts { setup, method, name, options: self.options };
        let race = self.races(n);
        let mut stages = vec![Stage::new(Plan { race, ..plan }, iterated(self.backend, parts)?)];
        if race && method == Method::Gmres && name == Name::Jacobi {
            let factors = self.incomplete(n, Name::Ilu, FEWER);
            stages.push(Stage { plan: Plan { race, takes_over: true, ..factors.plan }, ..factors });
        }
        if self.begins_with_factors(n) {
            let place = if race { stages.len() } else { 0 };
            stages.insert(place, self.direct(n, self.quick(n), CHEAP));
        }
        stages.extend(self.others(n));
        Ok(stages)
    }

    /// Whether a factorisation comes before all that does more than try a few iterations.
    pub(super) fn begins_with_factors(&self, n: usize) -> bool {
        self.wishes.method == Method::Auto && self.first() == Method::Gmres && n <= SMALL
    }

    /// Whether iterations come before a factorisation, and are given up where that is forecast to be faster. Factors
    /// serve all right-hand sides, and on a device the order of elimination alone takes longer than most iterations.
    fn races(&self, n: usize) -> bool {
        self.wishes.method == Method::Auto
            && self.is_square()
            && n <= if self.hermitian { MEDIUM } else { SMALL }
            && self.wishes.preconditioner == Name::Auto
            && self.wishes.max_iterations.is_none()
            && self.wishes.right_hand_sides <= 1
            && !<B as PreconditionSteps>::BYTES_TELL
    }

    /// Multiplications of a factorisation that is tried before iterations which may not serve.
    fn quick(&self, n: usize) -> f64 {
        if self.races(n) { IN_RACE } else { QUICK }
    }

    /// What comes behind the first method, where none was named.
    pub(super) fn others<T: Scalar>(&self, n: usize) -> Vec<Stage<T, B>> {
        match (self.wishes.method, self.first()) {
            (Method::Auto, Method::Cg) => self.behind_cg(n),
            (Method::Auto, Method::Gmres) => self.behind_gmres(n),
            _ if self.is_underdetermined() => {
                vec![self.direct(n, QUICK, DENSE), self.plain(n, Method::Lsmr, None, SCALED)]
            }
            _ if self.is_overdetermined() => {
                vec![self.direct(n, QUICK, SQUARES), self.plain(n, Method::Lsmr, None, ON)]
            }
            _ => Vec::new(),
        }
    }

    /// The share of the iterations that the first method gets before others have their turn; none: all of them.
    pub(super) fn share_of_first(&self, n: usize, name: Name) -> Option<f64> {
        match (self.wishes.method, self.first()) {
            (Method::Auto, Method::Gmres) => {
                let most = match name {
                    Name::Multigrid(_) => levels_iterations(n),
                    _ if self.races(n) => BEFORE_FORECAST,
                    _ if n <= SMALL => PATIENCE,
                    _ if self.may_take_factors() => BEFORE_FACTORS,
                    _ => BEFORE_FORECAST,
                };
                Some(self.patience(n, most))
            }
            _ if self.is_underdetermined() || self.is_overdetermined() => {
                Some(self.patience(n, f64::INFINITY))
            }
            (Method::Auto, Method::Cg) if self.wishes.max_iterations.is_none() => {
                let most = match name {
                    Name::Multigrid(_) => levels_iterations(n),
                    _ if self.may_go_on_with_levels(n) => {
                        before_levels(n, <B as PreconditionSteps>::BYTES_TELL)
                    }
                    _ if n <= SMALL => SMALL_ITERATIONS,
                    _ => return None,
                };
                Some(self.share(n, most))
            }
            _ => None,
        }
    }

    /// What comes behind conjugate gradients.
    fn behind_cg<T: Scalar>(&self, n: usize) -> Vec<Stage<T, B>> {
        let mut stages = Vec::new();
        if self.races(n) {
            let minres = self.plain(n, Method::Minres, Some(self.share(n, BEFORE_MINRES)), HERMITIAN);
            stages.push(Stage { plan: Plan { race: true, indefinite: true, ..minres.plan }, ..minres });
        }
        if self.may_go_on_with_levels(n) {
            if n <= SMALL {
                stages.push(self.direct(n, AT_ONCE, CHEAP));
            }
            let plan = self.plan(n, Name::Multigrid(Default::default()), Precision::Double, LEVELS);
            stages.push(Stage::later(Plan { share: Some(self.share(n, levels_iterations(n))), ..plan }));
        }
        if n <= MEDIUM {
            stages.push(self.direct(n, QUICK, CHEAP));
        } else if !<B as PreconditionSteps>::BYTES_TELL {
            // MINRES takes thousands of iterations for so many unknowns: minutes, where plane problems have factors in
            // seconds.
            stages.push(self.direct(n, BEFORE_INCOMPLETE, CHEAP));
        }
        if self.may_take_factors() && !<B as PreconditionSteps>::BYTES_TELL {
            // Saddle points without a factor of bearable size take MINRES thousands of iterations, and these ten.
            let factors = self.incomplete(n, Name::Ilut(Default::default()), FILL);
            let plan = Plan { method: Method::Gmres, indefinite: true, ..factors.plan };
            stages.push(Stage { plan, ..factors });
        }
        stages.push(self.plain(n, Method::Minres, Some(SHARE), HERMITIAN));
        stages.push(self.direct(n, PATIENT, LAST));
        stages.push(self.plain(n, Method::Lsmr, None, LEAST));
        stages
    }

    /// What comes behind GMRES.
    fn behind_gmres<T: Scalar>(&self, n: usize) -> Vec<Stage<T, B>> {
        let (large, patience) = (n > SMALL, Some(self.patience(n, PATIENCE)));
        let mut stages = Vec::new();
        if large {
            // Its forecast alone takes seconds for so many unknowns, so a few iterations have come before. On a device
            // incomplete factorisations are made and applied by all of its threads.
            if !<B as PreconditionSteps>::BYTES_TELL {
                stages.push(self.direct(n, BEFORE_INCOMPLETE, CHEAP));
            }
            if self.may_take_factors() {
                stages.push(self.incomplete(n, Name::Ilu, FACTORS));
            }
            // Iterations go on where it is refused.
            stages.push(self.direct(n, PATIENT, LAST));
        }
        if self.may_take_factors() {
            stages.push(self.incomplete(n, Name::Ilut(Default::default()), FILL));
        }
        if large || self.races(n) {
            stages.push(self.plain(n, Method::Gmres, patience, GENERAL));
        }
        stages.push(self.plain(n, Method::BiCgStab, patience, SHORT));
        if !large {
            stages.push(self.direct(n, PATIENT, LAST));
        }
        stages.push(self.plain(n, Method::Lsmr, None, LEAST));
        stages
    }

    /// Whether multigrid comes behind conjugate gradients that have not come far.
    fn may_go_on_with_levels(&self, n: usize) -> bool {
        self.hermitian && self.may_take_levels(n)
    }

    /// Whether multigrid may be taken at all.
    pub(super) fn may_take_levels(&self, n: usize) -> bool {
        self.wishes.method == Method::Auto
            && self.is_square()
            && n >= LEVELS_FROM
            && self.wishes.preconditioner == Name::Auto
            && self.wishes.near_null.is_none()
            && self.wishes.max_iterations.is_none()
    }

    /// Whether incomplete factorisations may be taken.
    fn may_take_factors(&self) -> bool {
        self.wishes.preconditioner == Name::Auto
    }

    /// The share of iterations that so many are.
    fn share(&self, n: usize, most: f64) -> f64 {
        (most / self.options.iteration_limit(n) as f64).min(1.0)
    }

    /// The share of iterations that a method for matrices which are not Hermitian gets, `most` at most.
    pub(super) fn patience(&self, n: usize, most: f64) -> f64 {
        SHARE.min(self.share(n, most))
    }

    /// A method with the diagonal, or without a preconditioner where none is wished for.
    fn plain<T: Scalar>(
        &self,
        n: usize,
        method: Method,
        share: Option<f64>,
        why: &'static str,
    ) -> Stage<T, B> {
        let name = if self.wishes.preconditioner == Name::None { Name::None } else { Name::Jacobi };
        Stage::later(Plan { method, share, ..self.plan(n, name, Precision::Double, why) })
    }

    /// The first method with an incomplete factorisation.
    fn incomplete<T: Scalar>(&self, n: usize, name: Name, why: &'static str) -> Stage<T, B> {
        let share = Some(self.patience(n, BEFORE_FORECAST));
        Stage::later(Plan { share, ..self.plan(n, name, Precision::Double, why) })
    }

    /// A factorisation of so many multiplications at most.
    fn direct<T: Scalar>(&self, n: usize, flops: f64, why: &'static str) -> Stage<T, B> {
        let plan = self.plan(n, Name::None, Precision::Double, why);
        Stage::later(Plan { method: Method::Direct, iterations: 1, flops: Some(flops), ..plan })
    }
}
