//! A Krylov method that shows its iterates.
//!
//! A method adds up steps, in units of a power of two near ||b||; its driver adds them to x when the method ends or
//! restarts. The iterate is therefore x at the last restart plus the steps since then.

use crate::typed::Value;
use residua::backend::{Alone, Space};
use residua::krylov::{Aim, Method, Outcome, System, Vectors};
use residua::{Host, LinearOperator, Real, Result, Scalar};
use std::fmt;
use std::sync::Mutex;

/// Called with an iterate. A method that has iterates only at the ends of its cycles calls it there.
pub(crate) type Show<'a, T> = &'a (dyn Fn(&[T]) + Sync);

/// The method `M`, which writes each iterate to `latest`, or passes that of each cycle to `show`.
pub(crate) struct Watched<'a, T: Scalar, M> {
    method: M,
    b: &'a [T],
    unit: T,
    /// x at the last restart.
    base: Vec<T>,
    room: Vec<T>,
    latest: &'a Mutex<Vec<T>>,
    show: Option<Show<'a, T>>,
    started: bool,
}

impl<'a, T: Value, M: Method<T, Host>> Watched<'a, T, M> {
    pub(crate) fn new(method: M, b: &'a [T], latest: &'a Mutex<Vec<T>>, show: Option<Show<'a, T>>) -> Self {
        let (rows, columns) = method.shape();
        let (base, room) = (vec![T::zero(); columns], vec![T::zero(); rows]);
        Self { method, b, unit: T::one(), base, room, latest, show, started: false }
    }

    fn is_cyclic(&self) -> bool {
        self.method.cycle().is_some()
    }

    /// Writes the current iterate to `latest`.
    fn take_down(&mut self) {
        let mut latest = self.latest.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let steps = self.method.vectors().steps;
        latest.clear();
        latest.extend(self.base.iter().zip(steps.iter()).map(|(&x, &step)| x + self.unit * step));
    }

    /// Takes over the x from which the driver starts, and at the first start the unit of the steps. `steps` holds x,
    /// unless b - A x differs much from the residual that the method starts from: the driver has then dropped these
    /// steps.
    fn rebase(&mut self, a: &dyn LinearOperator<T, Host>) -> Result<()> {
        let Vectors { steps, residual, .. } = self.method.vectors();
        a.apply(&Host, steps, &mut self.room)?;
        for (ax, &b) in self.room.iter_mut().zip(self.b) {
            *ax = b - *ax;
        }
        let true_norm = norm(&self.room);
        if !self.started {
            self.unit = T::from_f64((true_norm / norm(residual)).log2().round().exp2());
        }
        for (r, &given) in self.room.iter_mut().zip(residual.iter()) {
            *r -= self.unit * given;
        }
        if !self.started || norm(&self.room) <= 0.5 * true_norm {
            self.base.copy_from_slice(steps);
        }
        self.started = true;
        Ok(())
    }
}

/// The 2-norm, computed such that squares neither overflow nor underflow.
fn norm<T: Scalar>(all: &[T]) -> f64 {
    let largest = all.iter().map(|value| value.abs().to_f64()).fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    largest * all.iter().map(|value| (value.abs().to_f64() / largest).powi(2)).sum::<f64>().sqrt()
}

impl<T: Scalar, M: fmt::Debug> fmt::Debug for Watched<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched({:?})", self.method)
    }
}

impl<T: Value, M: Method<T, Host>> Method<T, Host> for Watched<'_, T, M> {
    type Word = M::Word;

    fn name(&self) -> &'static str {
        self.method.name()
    }

    fn shape(&self) -> (usize, usize) {
        self.method.shape()
    }

    fn period(&self) -> usize {
        self.method.period()
    }

    fn cycle(&self) -> Option<usize> {
        self.method.cycle()
    }

    fn is_least_squares(&self) -> bool {
        self.method.is_least_squares()
    }

    fn last_iterate_counts(&self) -> bool {
        self.method.last_iterate_counts()
    }

    fn fit(&mut self, space: &Space<Host, Alone>, system: System<'_, T, Host>) -> Result<()> {
        self.method.fit(space, system)
    }

    fn vectors(&mut self) -> Vectors<'_, T, Host> {
        self.method.vectors()
    }

    fn start(
        &mut self,
        space: &Space<Host, Alone>,
        system: System<'_, T, Host>,
        aim: Aim<T::Real>,
    ) -> Result<()> {
        self.rebase(system.a)?;
        self.method.start(space, system, aim)
    }

    fn iterate(
        &mut self,
        space: &Space<Host, Alone>,
        system: System<'_, T, Host>,
        step: usize,
    ) -> Result<()> {
        self.method.iterate(space, system, step)?;
        if !self.is_cyclic() {
            self.take_down();
        }
        Ok(())
    }

    fn message(&self) -> &[Self::Word] {
        self.method.message()
    }

    fn finish(&mut self, space: &Space<Host, Alone>, system: System<'_, T, Host>, done: usize) -> Result<()> {
        self.method.finish(space, system, done)?;
        if let (true, Some(show)) = (self.is_cyclic() && done > 0, self.show) {
            self.take_down();
            show(&self.latest.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        }
        Ok(())
    }

    fn resume(&mut self, space: &Space<Host, Alone>, aim: Aim<T::Real>) -> Result<bool> {
        let steps = self.method.vectors().steps.to_vec();
        let resumed = self.method.resume(space, aim)?;
        if resumed {
            self.base.copy_from_slice(&steps);
        }
        Ok(resumed)
    }

    fn carries_residual(&self) -> bool {
        self.method.carries_residual()
    }

    fn explain(
        &mut self,
        space: &Space<Host, Alone>,
        system: System<'_, T, Host>,
        fault: Outcome,
    ) -> Result<Outcome> {
        self.method.explain(space, system, fault)
    }

    fn bytes_per_iteration(&self, system: System<'_, T, Host>) -> usize {
        self.method.bytes_per_iteration(system)
    }
}
