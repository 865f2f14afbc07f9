//! A stage is one candidate of a solver: a method with its preconditioner in a precision. Stages are tried one after
//! another.
//!
//! A Krylov method is added in two steps: a match arm in [`iterated`], and its row in the lists of
//! [`super::choice::candidates`]. Any other method has a file of its own that implements [`Ready`].

use super::SolverBackend;
use super::choice::{Candidate, When};
use super::factorised::{Factorised, Limits};
use super::hierarchy::{Known, Units};
use super::incomplete::Bounds;
use super::iterated::{Iterated, Parts, RESTART, restart_around_levels};
use super::names::{Method, PreconditionerChoice};
use super::preconditioner::AnyPreconditioner;
use super::ready::Ready;
use super::system::Stored;
use crate::backend::PreconditionSteps;
use crate::direct::Kind;
use crate::error::{Error, Result};
use crate::krylov::{BiCgStab, Cg, Gmres, Lsmr, Minres, SolveOptions};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use crate::work::{StopRequest, within};
use std::time::Instant;

/// A candidate, with its prepared method once it is set up.
pub(super) struct Stage<T: Scalar, B: SolverBackend> {
    pub(super) plan: Candidate,
    pub(super) ready: Option<Box<dyn Ready<T, B>>>,
    /// The forecast of a factorisation in seconds, if there is one; infinity if it was refused.
    pub(super) forecast: Option<f64>,
    /// The caller's units, if the matrix was scaled.
    units: Option<Units>,
}

impl<T: Scalar, B: SolverBackend> AsRef<Candidate> for Stage<T, B> {
    fn as_ref(&self) -> &Candidate {
        &self.plan
    }
}

impl<T: Scalar, B: SolverBackend> Stage<T, B> {
    /// A stage that is set up when it is tried.
    pub(super) fn later(plan: Candidate, units: Option<Units>) -> Self {
        Self { plan, ready: None, forecast: None, units }
    }

    /// A stage that is set up.
    pub(super) fn new(plan: Candidate, ready: Box<dyn Ready<T, B>>, units: Option<Units>) -> Self {
        Self { plan, ready: Some(ready), forecast: None, units }
    }

    /// Sets up the stage for a matrix, unless that was done before. `without` are kinds of factorisation that have
    /// failed.
    ///
    /// # Errors
    /// [`Error::Stopped`] if a stop was requested meanwhile; the stage is then not set up.
    pub(super) fn prepare(
        &mut self,
        backend: &B,
        a: &Stored<T, B>,
        options: &SolveOptions,
        (without, request): (&[Kind], &StopRequest),
    ) -> Result<&mut Box<dyn Ready<T, B>>> {
        if self.ready.is_none() {
            let made = within(request, || self.made(backend, a, options, (without, request.deadline)));
            self.ready = Some(made?);
        }
        Ok(self.ready.as_mut().expect("a stage that was made ready"))
    }

    fn made(
        &self,
        backend: &B,
        a: &Stored<T, B>,
        options: &SolveOptions,
        (without, deadline): (&[Kind], Option<Instant>),
    ) -> Result<Box<dyn Ready<T, B>>> {
        let Candidate { method, preconditioner: name, flops, memory, condition, when, share, .. } = self.plan;
        if method == Method::Direct {
            let limits = Limits { flops, memory, condition, without: without.to_vec(), deadline };
            let made = match a {
                Stored::Open(a) => Factorised::new(backend, a, options, limits)?,
                other => Factorised::new(backend, &other.to_csr(backend)?, options, limits)?,
            };
            return Ok(Box::new(made));
        }
        let set_up = |a: &Csr<T, B>| match name {
            PreconditionerChoice::Ilu => {
                let is_tried = <B as PreconditionSteps>::IS_DEVICE;
                let bounds = match share {
                    Some(_) if is_tried => Bounds::TRIED,
                    Some(_) => Bounds::TAKES_OVER,
                    None => Bounds::NONE,
                };
                AnyPreconditioner::without_fill(backend, a, (method, bounds))
            }
            PreconditionerChoice::Ilut(choice) => {
                let is_before_minres = when == When::Indefinite || when.is_handed_over();
                let bounds = if is_before_minres { Bounds::BEFORE_MINRES } else { Bounds::FILL };
                AnyPreconditioner::with_fill(backend, a, choice, (method, bounds))
            }
            _ => {
                let known = Known { near_null: None, units: self.units.as_ref() };
                AnyPreconditioner::new(backend, a, (method, name), known)
            }
        };
        let setup = match a {
            Stored::Open(a) => set_up(a)?,
            other => set_up(&other.to_csr(backend)?)?,
        };
        let setup = match (setup, a.shared()) {
            (setup, Some(operator)) => setup.on(backend, &operator)?,
            (AnyPreconditioner::Waiting(..), None) => {
                return Err(Error::Unsupported(format!("new values for the preconditioner {name}")));
            }
            (setup, None) => setup,
        };
        iterated(backend, Parts { setup, method, name, options })
    }

    /// Returns the seconds that a factorisation is forecast to take, or why it is refused.
    pub(super) fn seconds(
        &mut self,
        backend: &B,
        a: &Stored<T, B>,
        options: &SolveOptions,
        limits: (&[Kind], &StopRequest),
    ) -> std::result::Result<f64, String> {
        let bandwidth = backend.ordering_price().bandwidth;
        let forecast = match self.prepare(backend, a, options, limits) {
            Ok(ready) => Ok(ready.forecast(a.operator(), 1, bandwidth).1),
            // The next solve may compute the forecast again.
            Err(Error::Stopped) => return Err(Error::Stopped.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.forecast = Some(forecast.as_ref().copied().unwrap_or(f64::INFINITY));
        forecast
    }
}

/// A stage of a Krylov method.
pub(super) fn iterated<T: Scalar, B: SolverBackend>(
    backend: &B,
    parts: Parts<'_, T, B>,
) -> Result<Box<dyn Ready<T, B>>> {
    Ok(match parts.method {
        Method::Cg | Method::Auto => {
            Box::new(Iterated::new(backend, parts, |backend, (n, _), options| Cg::new(backend, n, options)))
        }
        Method::Minres => Box::new(Iterated::new(backend, parts, |backend, (n, _), options| {
            Minres::new(backend, n, options)
        })),
        Method::Gmres if matches!(parts.setup, AnyPreconditioner::Levels(_)) => {
            Box::new(Iterated::new(backend, parts, |backend, (n, _), options| {
                Gmres::new(backend, n, restart_around_levels(n), options)
            }))
        }
        Method::Gmres => Box::new(Iterated::new(backend, parts, |backend, (n, _), options| {
            Gmres::new(backend, n, RESTART, options)
        })),
        Method::BiCgStab => Box::new(Iterated::new(backend, parts, |backend, (n, _), options| {
            BiCgStab::new(backend, n, options)
        })),
        Method::Lsmr => Box::new(Iterated::new(backend, parts, |backend, (rows, columns), options| {
            Lsmr::new(backend, rows, columns, options)
        })),
        Method::Direct => return Err(Error::Unsupported("a factorisation is no Krylov method".into())),
    })
}
