//! How far one solve has come.

use super::units::Units;
use crate::scalar::Scalar;
use std::ops::ControlFlow;

/// The state of one solve.
pub(super) struct Solve<'a, T: Scalar, F> {
    pub(super) units: Units<T::Real>,
    /// The solve has converged when ||b - A x|| is at most this.
    pub(super) threshold: f64,
    /// Least-squares methods may end when ||A^H (b - A x)|| is at most this times ||A|| ||b - A x||.
    pub(super) gradient: f64,
    /// The value for `gradient` that the recurrence has to reach.
    pub(super) gradient_aim: f64,
    pub(super) limit: usize,
    pub(super) window: usize,
    pub(super) iterations: usize,
    pub(super) best: Best,
    /// ||x|| for the caller's x, if a certificate has measured it.
    pub(super) length: Option<f64>,
    pub(super) history: &'a mut Vec<f64>,
    pub(super) observer: F,
}

impl<T: Scalar, F: FnMut(usize, f64) -> ControlFlow<()>> Solve<'_, T, F> {
    pub(super) fn observe(&mut self, norm: f64) -> ControlFlow<()> {
        self.history.push(norm);
        (self.observer)(self.iterations, norm)
    }
}

/// The smallest residual norm so far, and how many iterations ago it was reached.
#[derive(Clone, Copy)]
pub(super) struct Best {
    pub(super) norm: f64,
    pub(super) age: usize,
}

impl Default for Best {
    fn default() -> Self {
        Self { norm: f64::INFINITY, age: 0 }
    }
}
