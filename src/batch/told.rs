//! Verdicts: on the host, or still in the memory of a backend.

use crate::backend::Backend;
use crate::error::Result;
use crate::krylov::Outcome;
use std::sync::Arc;

/// What is known of the x of each system.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdicts {
    /// How each system ended; the worst of several right-hand sides.
    pub outcomes: Vec<Outcome>,
    /// ||b - A x|| / ||b||, computed anew from the x that you get; the largest of several right-hand sides.
    pub residuals: Vec<f64>,
    /// Steps of refinement, or iterations of a method that iterates; the maximum over several right-hand sides.
    pub iterations: Vec<u32>,
    /// How many systems were solved one by one.
    pub apart: usize,
    pub(super) all_converged: bool,
}

impl Verdicts {
    /// Whether every system has converged.
    pub fn all_converged(&self) -> bool {
        self.all_converged
    }
}

/// What [`solve_there`](super::Batch::solve_there) tells.
#[derive(Debug)]
pub enum Told<'a, B: Backend> {
    /// Every system has converged, and their residuals can be read.
    AllConverged(Arc<Stored<B>>),
    /// Not all have converged, or there are none.
    Each(&'a Verdicts),
}

/// Verdicts on systems that have all converged, in the memory of a backend.
#[derive(Debug)]
pub struct Stored<B: Backend> {
    backend: B,
    pub(super) steps: B::Vec<u32>,
    pub(super) residuals: B::Vec<f64>,
}

impl<B: Backend> Stored<B> {
    pub(super) fn new(backend: &B, systems: usize) -> Result<Self> {
        let (steps, residuals) = (backend.zeros(systems)?, backend.zeros(systems)?);
        Ok(Self { backend: backend.clone(), steps, residuals })
    }

    /// Room that no caller has, for this number of systems.
    pub(super) fn of<'a>(place: &'a mut Arc<Self>, backend: &B, systems: usize) -> Result<&'a mut Self> {
        let is_free = Arc::get_mut(place).is_some_and(|room| B::len(&room.steps) == systems);
        if !is_free {
            *place = Arc::new(Self::new(backend, systems)?);
        }
        Ok(Arc::get_mut(place).expect("nobody else has what was just made, or was not shared"))
    }

    /// The number of systems.
    pub fn systems(&self) -> usize {
        B::len(&self.steps)
    }

    /// Copies the iterations and residuals of all systems, as in [`Verdicts`].
    ///
    /// # Errors
    /// If lengths do not agree, and if the device fails.
    pub fn read(&self, iterations: &mut [u32], residuals: &mut [f64]) -> Result<()> {
        self.backend.read(&self.steps, iterations)?;
        self.backend.read(&self.residuals, residuals)
    }
}
