//! Several right-hand sides at once.

use super::method::{Stored, System};
use residua::backend::{PreconditionSteps, Products};
use residua::krylov::{MultiCg, Report, SolveOptions};
use residua::{Error, Scalar};
use std::ops::ControlFlow;

/// The memory for a few systems at once: solver, right-hand sides and solutions, one behind the other.
pub(super) struct Several<T: Scalar, B: PreconditionSteps> {
    pub(super) cg: MultiCg<T, B>,
    pub(super) b: B::Vec<T>,
    pub(super) x: B::Vec<T>,
}

impl<T: Scalar, B: PreconditionSteps + Products> Several<T, B> {
    /// None where they are to be solved one after the other, or memory is short.
    pub(super) fn new(
        backend: &B,
        system: &System<T, B>,
        options: &SolveOptions,
    ) -> residua::Result<Option<Self>> {
        let System::Full(Stored { operator, at_once, .. }) = system else { return Ok(None) };
        let (n, systems) = (operator.rows(), *at_once);
        if systems < 2 {
            return Ok(None);
        }
        let make = || {
            let (b, x) = (backend.zeros(n * systems)?, backend.zeros(n * systems)?);
            Ok(Self { cg: MultiCg::new(backend, n, systems, options.clone())?, b, x })
        };
        match make() {
            Ok(several) => Ok(Some(several)),
            Err(Error::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Solves the first `count` of what lies in `b`, from x = 0.
    pub(super) fn solve(
        &mut self,
        backend: &B,
        system: &System<T, B>,
        count: usize,
        observer: impl FnMut(usize, usize, f64) -> ControlFlow<()>,
    ) -> residua::Result<&[Report]> {
        let System::Full(Stored { operator, preconditioner, .. }) = system else {
            unreachable!("several at once are a system in full precision")
        };
        backend.fill(T::zero(), &mut self.x)?;
        let own = 0..count * operator.rows();
        let (b, x) = (B::part(&self.b, own.clone()), B::part_mut(&mut self.x, own));
        let (cg, a) = (&mut self.cg, &**operator);
        cg.solve(a, preconditioner.get(), b, x, observer)
    }
}
