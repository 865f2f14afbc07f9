//! A Krylov method that shows its iterates.
//!
//! A method adds steps up, in units of a power of two near ||b||; its driver adds them to x when the method ends or
//! starts again. So the iterate is what x was at the last start, and the steps since.

use crate::engine::Value;
use residua::backend::{Alone, Space};
use residua::krylov::{Aim, Method, Outcome, System, Vectors};
use residua::{Host, LinearOperator, Real, Result, Scalar};
use std::fmt;
use std::sync::Mutex;

/// Takes an iterate; where a method has one at the end of its cycles alone, it does so then.
pub(crate) type Show<'a, T> = &'a (dyn Fn(&[T]) + Sync);

/// The method `M`, which leaves each iterate in `latest`, or hands that of each cycle to `show`.
pub(crate) struct Watched<'a, T: Scalar, M> {
    method: M,
    b: &'a [T],
    unit: T,
    /// x at the last start.
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

    /// The iterate.
    fn take_down(&mut self) {
        let mut latest = self.latest.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let steps = self.method.vectors().steps;
        latest.clear();
        latest.extend(self.base.iter().zip(steps.iter()).map(|(&x, &step)| x + self.unit * step));
    }

    /// Takes the x over that the driver starts from: `steps` holds it, unless its residual is another one than what the
    /// method is to start from, because the driver has dropped these steps. The first start tells the unit: that in
    /// which the residual is given.
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

/// The 2-norm, whose squares neither overflow nor underflow.
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
