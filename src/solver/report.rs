//! The report of a solve, and the trail: a log of what was considered, chosen and tried.

use super::choice::SystemFacts;
use super::names::{Method, Precision, PreconditionerChoice};
use crate::direct::{Singularity, Unmatched};
use crate::krylov::Outcome;
use crate::multigrid::LevelFacts;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// The report of a solve. Norms are 2-norms.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "not converging is no error: check the outcome"]
#[non_exhaustive]
pub struct SolveReport {
    /// How it ended.
    pub outcome: Outcome,
    /// The last method that was tried.
    pub method: Method,
    /// Its preconditioner.
    pub preconditioner: PreconditionerChoice,
    /// The precision in which it iterated: [`Precision::Double`] is that of the vectors.
    pub precision: Precision,
    /// Iterations that changed x, of all methods that were tried.
    pub iterations: usize,
    /// How often an iteration was restarted from b - A x.
    pub restarts: usize,
    /// ||b - A x||, computed anew from the final x; NaN if it is not finite.
    pub residual_norm: f64,
    /// [`residual_norm`](SolveReport::residual_norm) / ||b||; 0 if both are zero.
    pub relative_residual: f64,
    /// The relative residual with each row divided by the norm of that row of A: ||D (b - A x)|| / ||D b||. A solve has
    /// converged if both meet the tolerance; without [`Builder::row_wise`](super::Builder::row_wise) this one need not.
    pub row_wise_residual: f64,
    /// The backward error ||b - A x|| / (||A|| ||x|| + ||b||) with the Frobenius norm of A: the relative distance to
    /// the nearest system that x solves exactly (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
    /// theorem 7.1). None if one of the norms is out of the range of the type.
    pub backward_error: Option<f64>,
    /// An estimate of the condition number ||A||_1 ||A^-1||_1, if the last method was a factorisation and the estimate
    /// was requested ([`Builder::condition`](super::Builder::condition)) or working precision was not enough to meet
    /// the tolerance.
    pub condition: Option<f64>,
    /// Decimal digits of x, in norm, that can be trusted, from the condition and the backward error.
    pub digits: Option<f64>,
    /// ||A^H (b - A x)|| / (||A|| ||b - A x||) for this x, if it is a least-squares solution, with a lower bound of
    /// ||A||.
    pub normal_residual: Option<f64>,
    /// The proof that A is singular, if there is one and the tolerance is not met.
    pub singularity: Option<Singularity>,
    /// The norm of the part of b in the (given or found) null space of a Hermitian A. No A x can match it, and the
    /// method was given b without it.
    pub outside_range: Option<f64>,
    /// Rows and columns without a partner in a matching, if a factorisation found A structurally singular and no x that
    /// meets the tolerance.
    pub unmatched: Option<Unmatched>,
    /// The bytes that a factorisation needs at least, if the last method was one and did not have enough memory.
    pub memory_needed: Option<u64>,
    /// Compulsory bytes of one iteration of the last method.
    pub bytes_per_iteration: usize,
    /// Right-hand sides that were solved at the same time.
    pub at_once: usize,
    /// Seconds of each phase.
    pub seconds: Seconds,
    /// The storage format of the matrix.
    pub format: &'static str,
    /// The type in which the matrix's values are stored: narrower than that of the vectors if that loses nothing.
    pub stored: &'static str,
    /// The name of the device.
    pub device: Arc<str>,
    /// The log of what was considered, chosen and tried.
    pub trail: Arc<Trail>,
}

#[cfg(feature = "cli")]
impl SolveReport {
    /// The report of a solve whose setup was stopped: x is zero, and the residual b, which has this norm.
    pub(crate) fn unstarted(outcome: Outcome, residual_norm: f64, device: &str) -> Self {
        let blank = blank(&device.into(), &Trail::default(), "none", "none");
        let relative_residual = if residual_norm == 0.0 { 0.0 } else { 1.0 };
        Self { outcome, residual_norm, relative_residual, row_wise_residual: relative_residual, ..blank }
    }
}

/// A solution with its report.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "not converging is no error: check the outcome in the report"]
#[non_exhaustive]
pub struct Solution<T> {
    /// The last iterate.
    pub x: Vec<T>,
    /// How the solve ended.
    pub report: SolveReport,
    /// Residual norms of the recurrences: at the start, then after each iteration.
    pub history: Vec<f64>,
}

/// Seconds of wall-clock time. The fields before `solve` are the setup, and are the same in each report of a solver.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Seconds {
    /// Analysing the matrix: its symmetry and its norm.
    pub look: f64,
    /// Renumbering the unknowns, or finding out that it does not pay.
    pub reorder: f64,
    /// Choosing a format and converting to it.
    pub convert: f64,
    /// Setting up preconditioners.
    pub setup: f64,
    /// Taking new values, the last time.
    pub update: f64,
    /// This solve, from the call to its return. With several right-hand sides in one call: the part of one of them,
    /// without copying vectors to and from the device.
    pub solve: f64,
    /// Seconds of the iterations only.
    pub iterating: f64,
}

/// The log of what was considered, chosen and tried.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Trail {
    /// The facts from which the methods were listed; none if rows are distributed.
    pub facts: Option<SystemFacts>,
    /// Decisions made when the solver was built.
    pub decisions: Vec<Decision>,
    /// The methods, in the order in which they are tried.
    pub stages: Vec<StageReport>,
}

impl Trail {
    /// The multigrid levels of the last method, finest first; empty with other preconditioners.
    pub fn levels(&self) -> &[LevelFacts] {
        let last = self.stages.iter().rfind(|stage| stage.outcome.is_some());
        last.map_or(&[], |stage| &stage.levels)
    }
}

/// A decision of the setup.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// What was decided: `device`, `prices`, `symmetry`, `order`, `values`, `format`, `preconditioner`, `right-hand
    /// sides`.
    pub subject: &'static str,
    /// The decision.
    pub chosen: String,
    /// Why, and what else was considered.
    pub why: String,
    /// Seconds that the choice was expected to cost, if there is a forecast.
    pub predicted_seconds: Option<f64>,
    /// Seconds that it took.
    pub seconds: Option<f64>,
    /// Bytes of the result.
    pub bytes: Option<usize>,
}

impl Decision {
    pub(super) fn new(subject: &'static str, chosen: impl Into<String>, why: impl Into<String>) -> Self {
        Self { subject, chosen: chosen.into(), why: why.into(), ..Self::default() }
    }
}

/// One attempt: a method with its preconditioner, and how it ended in the last solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageReport {
    /// The method.
    #[serde(serialize_with = "word")]
    pub method: Method,
    /// Its preconditioner.
    #[serde(serialize_with = "word")]
    pub preconditioner: PreconditionerChoice,
    /// The precision in which it iterates.
    #[serde(serialize_with = "word")]
    pub precision: Precision,
    /// Why it is in the list.
    pub why: &'static str,
    /// The condition under which it is tried, if it is not always.
    pub condition: Option<&'static str>,
    /// The maximum number of multiplications that a factorisation may take here, if that is limited.
    pub most_multiplications: Option<f64>,
    /// The minimum number of iterations that is expected.
    pub predicted_iterations: usize,
    /// Bytes that these iterations move, or those of the factors. None if there is no forecast, because the method is
    /// set up only when it is tried.
    pub predicted_bytes: Option<f64>,
    /// Seconds that these iterations take at the known bandwidth of the device, or a factorisation at the measured
    /// multiplications per second. None if there is no forecast.
    pub predicted_seconds: Option<f64>,
    /// The lowest and the highest seconds that a dry run expects. None if there is no forecast, or only a lower bound.
    pub predicted_range: Option<[f64; 2]>,
    /// How it ended; none if it was not tried.
    #[serde(serialize_with = "status")]
    pub outcome: Option<Outcome>,
    /// Why it could not be set up, if so.
    pub refused: Option<String>,
    /// Details of a factorisation: its kind, its size, and why others failed.
    pub remark: Option<String>,
    /// The levels of multigrid, finest first; empty with other preconditioners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelFacts>,
    /// The number of iterations.
    pub iterations: usize,
    /// The minimum number of bytes that these moved, or the bytes of the factors.
    pub bytes: f64,
    /// The seconds that it took.
    pub seconds: f64,
    /// ||b - A x|| / ||b|| at its end, computed anew.
    pub relative_residual: Option<f64>,
}

impl StageReport {
    /// A stage that has not been tried yet, with forecasts of its iterations, their bytes and their seconds.
    pub(super) fn listed(
        (method, preconditioner, precision): (Method, PreconditionerChoice, Precision),
        (why, condition, most_multiplications): (&'static str, Option<&'static str>, Option<f64>),
        (iterations, predicted): (usize, Option<(f64, f64)>),
    ) -> Self {
        Self {
            method,
            preconditioner,
            precision,
            why,
            condition,
            most_multiplications,
            predicted_iterations: iterations,
            predicted_bytes: predicted.map(|(bytes, _)| bytes),
            predicted_seconds: predicted.map(|(_, seconds)| seconds),
            predicted_range: None,
            outcome: None,
            refused: None,
            remark: None,
            levels: Vec::new(),
            iterations: 0,
            bytes: 0.0,
            seconds: 0.0,
            relative_residual: None,
        }
    }

    /// Clears the result of the last solve.
    pub(super) fn clear(&mut self) {
        self.outcome = None;
        (self.refused, self.remark) = (None, None);
        self.levels.clear();
        (self.iterations, self.bytes, self.seconds) = (0, 0.0, 0.0);
        self.relative_residual = None;
    }
}

/// What a stage found out about A in its last solve, in addition to its outcome.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    pub(super) condition: Option<f64>,
    pub(super) digits: Option<f64>,
    pub(super) singularity: Option<Singularity>,
    pub(super) unmatched: Option<Unmatched>,
    pub(super) memory_needed: Option<u64>,
}

impl Evidence {
    /// Adds the findings of another stage, which replace older ones.
    pub(super) fn add(&mut self, other: Self) {
        *self = Self {
            condition: other.condition.or(self.condition),
            digits: other.digits.or(self.digits),
            singularity: other.singularity.or(self.singularity),
            unmatched: other.unmatched.or(self.unmatched.take()),
            memory_needed: other.memory_needed,
        };
    }
}

fn word<S: Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn status<S: Serializer>(outcome: &Option<Outcome>, serializer: S) -> Result<S::Ok, S::Error> {
    outcome.map(|outcome| outcome.status()).serialize(serializer)
}

/// An empty report, before any solve.
pub(super) fn blank(
    device: &Arc<str>,
    trail: &Trail,
    format: &'static str,
    stored: &'static str,
) -> SolveReport {
    SolveReport {
        outcome: Outcome::IterationLimit,
        method: Method::Auto,
        preconditioner: PreconditionerChoice::Auto,
        precision: Precision::Double,
        iterations: 0,
        restarts: 0,
        residual_norm: f64::NAN,
        relative_residual: f64::NAN,
        row_wise_residual: f64::NAN,
        backward_error: None,
        condition: None,
        digits: None,
        normal_residual: None,
        singularity: None,
        outside_range: None,
        unmatched: None,
        memory_needed: None,
        bytes_per_iteration: 0,
        at_once: 1,
        seconds: Seconds::default(),
        format,
        stored,
        device: Arc::clone(device),
        trail: Arc::new(trail.clone()),
    }
}
