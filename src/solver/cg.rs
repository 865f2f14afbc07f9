//! Stages of conjugate gradients: in full precision, and in half of it with refinement around.

use super::SolverBackend;
use super::names::PreconditionerChoice;
use super::preconditioner::Setup;
use super::stage::{Ready, Task};
use crate::error::{Error, Result};
use crate::krylov::{Cg, Outcome, Refinement, Report, SolveOptions};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::precondition::Identity;
use crate::scalar::Scalar;
use std::ops::ControlFlow;
use std::time::Duration;

/// Conjugate gradients in full precision.
pub(super) struct Full<T: Scalar, B: SolverBackend> {
    backend: B,
    preconditioner: Setup<T, B>,
    name: PreconditionerChoice,
    options: SolveOptions,
    /// The solver, and the iterations that it is for where that is not what the options say.
    cg: Option<(Option<usize>, Cg<T, B>)>,
}

impl<T: Scalar, B: SolverBackend> Full<T, B> {
    pub(super) fn new(
        backend: &B,
        preconditioner: Setup<T, B>,
        name: PreconditionerChoice,
        options: &SolveOptions,
    ) -> Self {
        Self { backend: backend.clone(), preconditioner, name, options: options.clone(), cg: None }
    }
}

impl<T: Scalar, B: SolverBackend> Ready<T, B> for Full<T, B> {
    fn solve(
        &mut self,
        Task { a, b, x, left }: Task<'_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report> {
        let proof = match &self.preconditioner {
            Setup::NotPositiveDefinite(value) => Some(*value),
            _ => None,
        };
        let left = if proof.is_some() { Some(0) } else { left };
        let cg = match &mut self.cg {
            Some((limit, cg)) if *limit == left => cg,
            place => {
                let options = match left {
                    Some(left) => self.options.clone().max_iterations(left),
                    None => self.options.clone(),
                };
                &mut place.insert((left, Cg::new(&self.backend, a.rows(), options)?)).1
            }
        };
        if let Some(curvature) = proof {
            return not_started(cg, curvature, Task { a, b, x, left }, observer);
        }
        self.preconditioner.with(&self.backend, a, |m| cg.solve(a, m, b, x, observer))
    }

    fn history(&self) -> &[f64] {
        self.cg.as_ref().map_or(&[], |(_, cg)| cg.history())
    }

    fn iterating(&self) -> Duration {
        self.cg.as_ref().map_or(Duration::ZERO, |(_, cg)| cg.iterating())
    }

    fn update(&mut self, a: &Csr<T, B>) -> Result<()> {
        self.preconditioner.update(&self.backend, a, self.name)
    }

    fn bytes(&self, a: &dyn LinearOperator<T, B>) -> f64 {
        (a.bytes() + 8 * a.rows() * size_of::<T>() + self.preconditioner.bytes(a)) as f64
    }

    fn for_several(&self) -> Option<&Setup<T, B>> {
        Some(&self.preconditioner)
    }
}

/// Certifies x as it is, where a diagonal entry has shown that A is not positive definite.
fn not_started<T: Scalar, B: SolverBackend>(
    cg: &mut Cg<T, B>,
    curvature: f64,
    Task { a, b, x, .. }: Task<'_, T, B>,
    observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
) -> Result<Report> {
    let mut report = cg.solve(a, &Identity, b, x, observer)?;
    if report.outcome == Outcome::IterationLimit {
        report.outcome = Outcome::NotPositiveDefinite { iteration: 0, curvature };
    }
    Ok(report)
}

/// Conjugate gradients in half the precision, with refinement in full.
pub(super) struct Refined<T: Scalar, B: SolverBackend> {
    backend: B,
    /// The matrix in half the precision.
    operator: Box<dyn LinearOperator<T::Narrow, B>>,
    preconditioner: Setup<T::Narrow, B>,
    options: SolveOptions,
    refinement: Option<Refinement<T, B>>,
}

impl<T: Scalar, B: SolverBackend> Refined<T, B> {
    pub(super) fn new(
        backend: &B,
        operator: Box<dyn LinearOperator<T::Narrow, B>>,
        preconditioner: Setup<T::Narrow, B>,
        options: &SolveOptions,
    ) -> Self {
        Self {
            backend: backend.clone(),
            operator,
            preconditioner,
            options: options.clone(),
            refinement: None,
        }
    }
}

impl<T: Scalar, B: SolverBackend> Ready<T, B> for Refined<T, B> {
    fn solve(
        &mut self,
        Task { a, b, x, left }: Task<'_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report> {
        if let Setup::NotPositiveDefinite(curvature) = self.preconditioner {
            let mut cg = Cg::new(&self.backend, a.rows(), self.options.clone().max_iterations(0))?;
            return not_started(&mut cg, curvature, Task { a, b, x, left }, observer);
        }
        let refinement = match &mut self.refinement {
            Some(refinement) => refinement,
            place => place.insert(Refinement::new(&self.backend, a.rows(), self.options.clone())?),
        };
        let low = &*self.operator;
        self.preconditioner.with(&self.backend, low, |m| refinement.solve(a, low, m, b, x, observer))
    }

    fn history(&self) -> &[f64] {
        self.refinement.as_ref().map_or(&[], Refinement::history)
    }

    fn iterating(&self) -> Duration {
        self.refinement.as_ref().map_or(Duration::ZERO, Refinement::iterating)
    }

    fn update(&mut self, _: &Csr<T, B>) -> Result<()> {
        Err(Error::Unsupported("new values in the place of rounded ones".into()))
    }

    fn bytes(&self, a: &dyn LinearOperator<T, B>) -> f64 {
        let vectors = 8 * a.rows() * size_of::<T::Narrow>();
        (self.operator.bytes() + vectors + self.preconditioner.bytes(&*self.operator)) as f64
    }
}
