//! The stage of factorisations, which run on the CPU wherever the matrix lies.

use super::SolverBackend;
use super::stage::{Ready, Task};
use crate::backend::Host;
use crate::direct::{Direct, DirectOptions, DirectReport, Reason, norm};
use crate::error::{Error, Result};
use crate::krylov::{Outcome, Report, SolveOptions};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::report::bytes;
use crate::scalar::Scalar;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often the observer of a solve is asked during a factorisation whether to go on.
const OFTEN: Duration = Duration::from_millis(50);

/// A factorisation may take so many times the multiplications that were forecast as the most: pivots off the diagonal
/// are not foreseen. A dense one with column pivoting is slower a multiplication than blocks of a sparse one.
const MORE: f64 = 2.0;
const DENSE: f64 = 0.4;

/// A factorisation of the matrix, in the host's memory.
pub(super) struct Factorised<T: Scalar, B: SolverBackend> {
    backend: B,
    /// It factorises in the first solve, whose observer can end that.
    direct: Direct<T>,
    options: SolveOptions,
    history: Vec<f64>,
    spent: Duration,
    remark: Option<String>,
}

impl<T: Scalar, B: SolverBackend> Factorised<T, B> {
    /// Makes ready to factorise, unless that takes as long as more than `flops` multiplications in dense blocks.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the forecast where it takes more, or more memory than is allowed.
    pub(super) fn new(
        backend: &B,
        a: &Csr<T, B>,
        options: &SolveOptions,
        flops: Option<f64>,
    ) -> Result<Self> {
        let a = a.to_host(backend)?;
        let mut wishes = DirectOptions { condition: false, ..DirectOptions::default() };
        let memory = wishes.memory_limit as f64;
        if let Some(flops) = flops {
            wishes.dense_flop_limit = DENSE * flops;
            wishes.flop_limit = MORE * flops;
        }
        let mut direct = Direct::planned(&a, wishes)?;
        if let Some(flops) = flops {
            let forecast = direct.forecast()?;
            if forecast.in_blocks() > flops || forecast.bytes > memory {
                return Err(Error::Unsupported(format!(
                    "{} takes {:.1e} multiplications and {}",
                    forecast.kind,
                    forecast.flops,
                    bytes(forecast.bytes as u64)
                )));
            }
        }
        Ok(Self {
            backend: backend.clone(),
            direct,
            options: options.clone(),
            history: Vec::new(),
            spent: Duration::ZERO,
            remark: None,
        })
    }

    /// ||b - A x|| on the backend.
    fn residual(&self, a: &dyn LinearOperator<T, B>, b: &B::Slice<T>, x: &B::Slice<T>) -> Result<f64> {
        let mut r = self.backend.zeros(a.rows())?;
        a.apply(&self.backend, x, &mut r)?;
        self.backend.axpby(T::one(), b, -T::one(), &mut r)?;
        Ok(norm(&self.backend.download(&r)?))
    }
}

impl<T: Scalar, B: SolverBackend> Ready<T, B> for Factorised<T, B> {
    fn solve(
        &mut self,
        Task { a, b, x, .. }: Task<'_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report> {
        let start = Instant::now();
        let host_b = self.backend.download(b)?;
        let b_norm = norm(&host_b);
        let before = self.residual(a, b, x)?;
        let threshold = self.options.threshold::<T>(b_norm);
        let report = |outcome, iterations, residual: f64| {
            let relative = if residual == 0.0 { 0.0 } else { residual / b_norm };
            Report::of_factor(outcome, iterations, residual, relative)
        };
        self.history = vec![before];
        if !b_norm.is_finite() || !before.is_finite() {
            return Ok(report(Outcome::NotFinite, 0, f64::NAN));
        }
        if observer(0, before).is_break() && before > threshold {
            return Ok(report(Outcome::Interrupted, 0, before));
        }
        if before <= threshold {
            return Ok(report(Outcome::Converged, 0, before));
        }
        let mut solution = vec![T::zero(); a.columns()];
        let mut asked = Instant::now();
        let mut going = || {
            if asked.elapsed() < OFTEN {
                return true;
            }
            asked = Instant::now();
            observer(1, before).is_continue()
        };
        let told = self.direct.solve_while(&host_b, &mut solution, threshold / b_norm, &mut going)?;
        let candidate = self.backend.upload(solution)?;
        // The certificate is that of all stages: b - A x with the operator of the solve.
        let reached = self.residual(a, b, &candidate)?;
        let better = reached < before;
        if better {
            self.backend.copy(&candidate, x)?;
        }
        let residual = if better { reached } else { before };
        self.history.push(residual);
        self.spent = start.elapsed();
        let outcome = if residual <= threshold { Outcome::Converged } else { failure(&told) };
        self.remark = Some(words(&told));
        let flow = observer(1, residual);
        let outcome = if flow.is_break() && !outcome.is_converged() { Outcome::Interrupted } else { outcome };
        // All of it counts as one iteration; the trail tells its steps.
        Ok(report(outcome, 1, residual))
    }

    fn history(&self) -> &[f64] {
        &self.history
    }

    fn iterating(&self) -> Duration {
        self.spent
    }

    fn update(&mut self, a: &Csr<T, B>) -> Result<()> {
        let a: Csr<T, Host> = a.to_host(&self.backend)?;
        self.direct.update(&a)
    }

    fn bytes(&self, a: &dyn LinearOperator<T, B>) -> f64 {
        a.bytes() as f64
    }

    fn remark(&self) -> Option<String> {
        self.remark.clone()
    }
}

/// What a solve that did not meet the tolerance came to.
fn failure(told: &DirectReport) -> Outcome {
    if told.reasons.iter().any(|(_, reason)| *reason == Reason::Stopped) {
        return Outcome::Interrupted;
    }
    if told.normal_residual.is_some() {
        return Outcome::LeastSquares;
    }
    let singular =
        |reason: &Reason| matches!(reason, Reason::StructurallySingular { .. } | Reason::NumericallySingular);
    match told.reasons.iter().any(|(_, reason)| singular(reason)) {
        true => Outcome::Singular,
        false => Outcome::Stagnated,
    }
}

/// What the trail says of a factorisation.
fn words(told: &DirectReport) -> String {
    let steps = told.refinements + told.iterations;
    let mut words = format!("{told} after {steps} steps, factor of {}", bytes(told.factor_bytes));
    for (kind, reason) in &told.reasons {
        words += &format!("; {kind}: {reason}");
    }
    words
}
