//! A matrix with its candidates (stages), and the report of a solve. `turns` has the loop over the stages.

use super::SolverBackend;
use super::choice::{GRIDS, SystemFacts, is_fault};
use super::columns::column;
use super::judging::{judge, nearest};
use super::names::Method;
use super::nullspace::proof_by_residual;
use super::plan::{Notes, System};
use super::report::{Evidence, Seconds, SolveReport, StageReport, Trail, blank};
use super::stage::Stage;
use super::system::Stored;
use super::watch::Watch;
use crate::backend::Backend;
use crate::direct::RightHandSides;
use crate::error::Result;
use crate::krylov::{MultiCg, Outcome, Report, SolveOptions};
use crate::prices::order::OrderGuess;
use crate::scalar::Scalar;
use crate::verdict::{RowNorms, Verdict};
use crate::work;
use std::cell::Cell;
use std::sync::Arc;

/// A matrix with its stages, and the state of the last solve.
pub(super) struct Core<T: Scalar, B: SolverBackend> {
    pub(super) backend: B,
    pub(super) options: SolveOptions,
    pub(super) stored: Stored<T, B>,
    pub(super) stages: Vec<Stage<T, B>>,
    /// The first stage to try: those before it failed with these values, and a later one solved.
    pub(super) first: usize,
    pub(super) group: Option<Group<T, B>>,
    /// The row norms by which residuals are judged.
    pub(super) norms: RowNorms<T, B>,
    /// What the stages of this solve have found out about A.
    pub(super) evidence: Evidence,
    /// The verdict on the x of the last stage, if it was computed.
    pub(super) judged: Option<Verdict>,
    /// The ratio of `nearest` for that x, if it is a least-squares solution.
    pub(super) normal: Option<f64>,
    /// The relative tolerance of this solve, if it must be smaller than that of the options.
    pub(super) aim: Option<f64>,
    /// True if the caller has said that A is singular, or it was proved.
    pub(super) known_singular: bool,
    pub(super) seconds: Seconds,
    device: Arc<str>,
    pub(super) trail: Arc<Trail>,
    pub(super) history: Vec<f64>,
    /// Memory for the residual norms of a race between candidates, kept so that later solves allocate nothing.
    pub(super) falls: Vec<f64>,
    /// The expected cost of an ordering and of its factorisation, once it was estimated.
    pub(super) guess: Cell<Option<OrderGuess>>,
    /// The histories of several right-hand sides.
    histories: Vec<Vec<f64>>,
}

impl<T: Scalar, B: SolverBackend> Core<T, B> {
    pub(super) fn new(
        backend: &B,
        System { stored, stages, facts, .. }: System<T, B>,
        options: SolveOptions,
        Notes { decisions, seconds }: Notes,
        norms: RowNorms<T, B>,
    ) -> Self {
        let facts = Some(SystemFacts::of::<T>(&facts, norms.longest()));
        let mut core = Self {
            device: backend.description().into(),
            backend: backend.clone(),
            options,
            stored,
            stages,
            first: 0,
            group: None,
            norms,
            evidence: Evidence::default(),
            judged: None,
            normal: None,
            aim: None,
            known_singular: false,
            seconds,
            trail: Arc::new(Trail { facts, decisions, stages: Vec::new() }),
            history: Vec::new(),
            histories: Vec::new(),
            falls: Vec::new(),
            guess: Cell::new(None),
        };
        core.announce();
        core
    }

    /// Replaces this system by another one of the same matrix.
    pub(super) fn replace(&mut self, System { stored, stages, facts, .. }: System<T, B>, notes: Notes) {
        (self.stored, self.stages, self.first) = (stored, stages, 0);
        let trail = Arc::make_mut(&mut self.trail);
        trail.facts = Some(SystemFacts::of::<T>(&facts, self.norms.longest()));
        // Decisions about the old values are replaced by those about the new ones, or dropped.
        trail.decisions.retain(|old| {
            old.subject != "values" && notes.decisions.iter().all(|new| new.subject != old.subject)
        });
        trail.decisions.extend(notes.decisions);
        self.announce();
    }

    /// The expected seconds of a factorisation within the band, if that is narrow; new values do not change it.
    pub(super) fn narrow_band(&self) -> Option<f64> {
        self.trail.facts.and_then(|facts| facts.narrow_band)
    }

    /// Adds all candidates to the log before the first is tried.
    fn announce(&mut self) {
        let (a, bandwidth) = (self.stored.operator(), self.backend.ordering_price().bandwidth);
        let told = self.stages.iter().map(|Stage { plan, ready, .. }| {
            let expected = ready.as_ref().map(|ready| ready.forecast(a, plan.iterations, bandwidth));
            let what = (plan.method, plan.preconditioner, plan.precision);
            StageReport::listed(what, (plan.why, plan.when.words(), plan.flops), (plan.iterations, expected))
        });
        let told = told.collect();
        Arc::make_mut(&mut self.trail).stages = told;
    }

    pub(super) fn stored(&self) -> &Stored<T, B> {
        &self.stored
    }

    /// Updates the stages to the new values of the matrix.
    pub(super) fn update(&mut self) -> Result<()> {
        // If iterations were given up for a factorisation, the factorisation is tried first with the new values.
        let by_factors = self.stages[self.first].plan.method == Method::Direct
            && self.stages[..self.first].iter().all(|stage| stage.plan.race);
        self.first = if by_factors { self.first } else { 0 };
        let Stored::Open(a) = &self.stored else { return Ok(()) };
        for stage in &mut self.stages {
            // If an update fails or is stopped, the stage is dropped and set up anew when it is needed.
            if let Some(mut ready) = stage.ready.take() {
                ready.update(a)?;
                work::check();
                stage.ready = Some(ready);
            }
        }
        Ok(())
    }

    /// Solves from x, in the order of the stored matrix.
    pub(super) fn solve(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        if let Some(factors) = watch.probing {
            self.probe(b, factors)?;
            return Ok(blank(&self.device, &self.trail, self.stored.format(), self.stored.values()));
        }
        self.begin();
        self.go_on(self.first, None, b, x, watch)
    }

    /// [`Ready::solve_quickly`](super::ready::Ready::solve_quickly) by the stage that solved last.
    pub(super) fn solve_quickly(
        &mut self,
        transposed: bool,
        b: RightHandSides<'_, T>,
        x: &mut [T],
    ) -> Result<bool> {
        let Self { stages, first, norms, .. } = self;
        match stages.get_mut(*first).and_then(|stage| stage.ready.as_mut()) {
            Some(ready) => ready.solve_quickly(transposed, b, x, norms),
            None => Ok(false),
        }
    }

    /// Judges x.
    pub(super) fn judge(&mut self, b: &B::Slice<T>, x: &B::Slice<T>) -> Result<Verdict> {
        let options = self.asked();
        judge(&self.backend, (&self.stored, &mut self.norms), (b, x), &options, None)
    }

    /// Whether the first stage is multigrid on a grid, chosen by the solver.
    pub(super) fn is_by_levels_of_a_grid(&self) -> bool {
        self.stages.first().is_some_and(|stage| stage.plan.why == GRIDS)
    }

    /// The options of this solve.
    pub(super) fn asked(&self) -> SolveOptions {
        match self.aim {
            Some(aim) => self.options.clone().tolerance(aim).absolute_tolerance(0.0),
            None => self.options.clone(),
        }
    }

    /// Returns ||A^H r|| / (||A|| ||r||) for the residual r of x, if it is small enough to show that x is a
    /// least-squares solution; whatever it is if it is not `tested`, because that was shown otherwise.
    pub(super) fn nearest(&mut self, x: (&B::Slice<T>, &B::Slice<T>), tested: bool) -> Result<Option<f64>> {
        nearest(&self.backend, (&self.stored, &mut self.norms), x, &self.options, tested)
    }

    /// Returns whether the residual of x proves that A is singular, and keeps the proof.
    fn residual_proves_singular(&mut self, b: &B::Slice<T>, x: &B::Slice<T>) -> Result<bool> {
        let a = self.stored.to_csr(&self.backend)?;
        self.evidence.singularity = proof_by_residual(&self.backend, &a, (b, x))?;
        Ok(self.evidence.singularity.is_some())
    }

    pub(super) fn begin(&mut self) {
        self.history.clear();
        (self.seconds.solve, self.seconds.iterating) = (0.0, 0.0);
        self.evidence = Evidence::default();
        self.forget_verdict();
        // The forecasts of the last solve need not hold for this one. They are made again if needed.
        self.stages.iter_mut().for_each(|stage| stage.forecast = None);
        Arc::make_mut(&mut self.trail).stages.iter_mut().for_each(StageReport::clear);
    }

    /// Forgets what is known about the x of the last stage.
    pub(super) fn forget_verdict(&mut self) {
        (self.judged, self.normal) = (None, None);
    }

    /// The report of a solve that ended with a stage. All facts about x are computed for this x.
    pub(super) fn tell(
        &mut self,
        report: &Report,
        stage: usize,
        at_once: usize,
        (b, x): (&B::Slice<T>, &B::Slice<T>),
    ) -> Result<SolveReport> {
        let plan = self.stages[stage].plan;
        let judged = match self.judged {
            Some(judged) => judged,
            None => self.judge(b, x)?,
        };
        let (outcome, normal_residual) = self.outcome(report.outcome, &judged, b, x)?;
        let is_square = self.stored.operator().rows() == self.stored.operator().columns();
        let of_singular =
            matches!(outcome, Outcome::Singular) || (outcome == Outcome::LeastSquares && is_square);
        Ok(SolveReport {
            outcome,
            method: plan.method,
            preconditioner: plan.preconditioner,
            precision: plan.precision,
            iterations: report.iterations,
            restarts: report.restarts,
            residual_norm: judged.residual,
            relative_residual: judged.relative(),
            row_wise_residual: judged.row_wise(),
            backward_error: judged.backward_error(self.norms.frobenius),
            condition: self.evidence.condition,
            digits: self.evidence.digits,
            normal_residual,
            singularity: self.evidence.singularity.filter(|_| of_singular || outcome == Outcome::Converged),
            outside_range: None,
            unmatched: self.evidence.unmatched.clone(),
            memory_needed: self.evidence.memory_needed,
            bytes_per_iteration: report.bytes_per_iteration,
            at_once,
            seconds: self.seconds,
            format: self.stored.format(),
            stored: self.stored.values(),
            device: Arc::clone(&self.device),
            trail: Arc::clone(&self.trail),
        })
    }

    /// Returns the outcome for this x: the one that the last stage reported, unless the verdict on x contradicts it.
    fn outcome(
        &mut self,
        said: Outcome,
        judged: &Verdict,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
    ) -> Result<(Outcome, Option<f64>)> {
        let is_square = self.stored.operator().rows() == self.stored.operator().columns();
        let is_singular = self.known_singular || self.evidence.singularity.is_some();
        Ok(match said {
            _ if judged.met && (is_fault(&said) || said.is_solved()) => (Outcome::Converged, None),
            Outcome::Converged => (Outcome::Stagnated, None),
            Outcome::LeastSquares => {
                let normal = match self.normal {
                    None => self.nearest((b, x), true)?,
                    known => known,
                };
                match normal {
                    Some(normal) if !is_square || is_singular || self.residual_proves_singular(b, x)? => {
                        (Outcome::LeastSquares, Some(normal))
                    }
                    _ if self.evidence.singularity.is_some() => (Outcome::Singular, None),
                    _ => (Outcome::Stagnated, None),
                }
            }
            // If a factorisation found A singular, an iteration after it that did no better does not disprove that.
            Outcome::Stagnated | Outcome::IterationLimit | Outcome::Breakdown { .. }
                if self.evidence.singularity.is_some() =>
            {
                (Outcome::Singular, None)
            }
            other => (other, None),
        })
    }

    pub(super) fn forget_histories(&mut self) {
        self.histories.clear();
    }

    /// Stores the history of the solve that has just ended, one of several right-hand sides.
    pub(super) fn keep_history(&mut self) {
        self.histories.push(self.history.clone());
    }

    /// Residual norms of a right-hand side of the last solve.
    pub(super) fn history(&self, right_hand_side: usize) -> &[f64] {
        match self.histories.get(right_hand_side) {
            Some(history) => history,
            None if right_hand_side == 0 => &self.history,
            None => &[],
        }
    }
}

/// The solver for several systems together, with their right-hand sides and solutions, stored one after another.
pub(super) struct Group<T: Scalar, B: SolverBackend> {
    pub(super) cg: MultiCg<T, B>,
    pub(super) b: B::Vec<T>,
    pub(super) x: B::Vec<T>,
}

impl<T: Scalar, B: SolverBackend> Group<T, B> {
    /// Returns the right-hand side and the solution of system `place`.
    pub(super) fn room(&mut self, unknowns: usize, place: usize) -> Pair<'_, T, B> {
        let own = column(unknowns, place);
        (B::part_mut(&mut self.b, own.clone()), B::part_mut(&mut self.x, own))
    }
}

/// b and x of a system.
type Pair<'a, T, B> = (&'a mut <B as Backend>::Slice<T>, &'a mut <B as Backend>::Slice<T>);
