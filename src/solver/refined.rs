//! The stage of conjugate gradients in half the precision, with refinement in full.

use super::SolverBackend;
use super::iterated::not_started;
use super::judging::judge;
use super::preconditioner::AnyPreconditioner;
use super::ready::{Ready, Task};
use crate::error::{Error, Result};
use crate::krylov::{Certified, Refinement, Report, SolveOptions};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::scalar::Scalar;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Conjugate gradients in half the precision.
pub(super) struct Refined<T: Scalar, B: SolverBackend> {
    backend: B,
    /// The matrix in half the precision.
    operator: Arc<dyn LinearOperator<T::Lower, B>>,
    setup: AnyPreconditioner<T::Lower, B>,
    options: SolveOptions,
    refinement: Option<Refinement<T, B>>,
    /// True if the solver was made for the tolerance of one solve.
    again: bool,
}

impl<T: Scalar, B: SolverBackend> Refined<T, B> {
    pub(super) fn new(
        backend: &B,
        operator: Arc<dyn LinearOperator<T::Lower, B>>,
        setup: AnyPreconditioner<T::Lower, B>,
        options: &SolveOptions,
    ) -> Self {
        Self {
            backend: backend.clone(),
            operator,
            setup,
            options: options.clone(),
            refinement: None,
            again: false,
        }
    }
}

impl<T: Scalar, B: SolverBackend> Ready<T, B> for Refined<T, B> {
    fn solve(
        &mut self,
        task: Task<'_, '_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report> {
        if let AnyPreconditioner::NotPositiveDefinite(curvature) = self.setup {
            return not_started(&self.backend, &self.options, curvature, task, observer);
        }
        let (asked, again) = (task.options(&self.options), task.aim.is_some());
        let Task { a, stored, b, x, norms, judging, .. } = task;
        let of_another = std::mem::replace(&mut self.again, again);
        let refinement = match &mut self.refinement {
            Some(refinement) if !again && !of_another => refinement,
            place => place.insert(Refinement::new(&self.backend, a.rows(), asked)?),
        };
        let backend = &self.backend;
        let system = (a, &*self.operator, self.setup.get());
        refinement.solve_judged(system, b, x, observer, &mut |Certified { x, r, scale, relative, meets }| {
            let told = judge(backend, (stored, &mut *norms), (b, x), judging.asked, Some((r, scale)))?;
            Ok(judging.hear::<T>(told, relative, meets))
        })
    }

    fn history(&self) -> &[f64] {
        self.refinement.as_ref().map_or(&[], Refinement::history)
    }

    fn iterating(&self) -> Duration {
        self.refinement.as_ref().map_or(Duration::ZERO, Refinement::iterating)
    }

    fn update(&mut self, _: &Csr<T, B>) -> Result<()> {
        Err(Error::Unsupported("new values for a matrix that is stored in lower precision".into()))
    }

    fn bytes(&self, _: &dyn LinearOperator<T, B>) -> f64 {
        let vector = self.operator.rows() * size_of::<T::Lower>();
        let preconditioner = match &self.setup {
            AnyPreconditioner::Identity
            | AnyPreconditioner::NotPositiveDefinite(_)
            | AnyPreconditioner::Jacobi(_) => 2 * vector,
            other => other.get().bytes() + 2 * vector,
        };
        (self.operator.bytes() + 8 * vector + preconditioner) as f64
    }
}
