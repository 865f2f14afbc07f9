//! Vectors that lie on a GPU. Whoever calls has waited for the work that writes them.

use crate::engine::{Engine, Value};
use crate::report::Report;
use pyo3::prelude::*;
use residua::Cuda;

/// Where a solver computes, by the words with which it tells.
pub(crate) enum Place {
    Cpu,
    Gpu,
}

impl Place {
    /// The host's description begins with "cpu"; any other one is a GPU's.
    pub(crate) fn of_solver(description: &str) -> Self {
        if description.starts_with("cpu") { Place::Cpu } else { Place::Gpu }
    }

    pub(crate) fn is_gpu(&self) -> bool {
        matches!(self, Place::Gpu)
    }
}

/// Solves with right-hand sides and starting vectors at these addresses of a GPU, so many values each; solutions go to
/// where the starting vectors were. Returns when the GPU has finished.
pub(crate) fn solve<T: Value>(
    engine: &Engine,
    ordinal: usize,
    (b, b_len): (u64, usize),
    (x, x_len): (u64, usize),
    several: bool,
) -> PyResult<Vec<Report>> {
    engine.solve_by::<T>(None, several, move |state, ear| {
        use residua::Backend;
        let cuda = Cuda::new(ordinal)?;
        // SAFETY: the Python side has read address, length, type and contiguity from the array's own description and
        // checked all of them against the solver, holds a reference to both arrays until this returns, and has waited
        // for the stream on which they were written.
        let b = unsafe { cuda.foreign::<T>(b, b_len) };
        // SAFETY: as above; x is an array of its own that nobody else has seen yet.
        let x = unsafe { cuda.foreign_mut::<T>(x, x_len) };
        let reports = if several {
            state.solver.solve_many_on(&cuda, b, x)?
        } else {
            let told = |progress: &residua::solver::Progress| {
                ear.hear(progress.right_hand_side, progress.iteration, progress.residual_norm)
            };
            vec![state.solver.solve_on_with(&cuda, b, x, told)?]
        };
        cuda.synchronize()?;
        Ok(reports)
    })
}
