//! Prepares a matrix: the precision is chosen here and in `precision`, the format and the preconditioner in `store`,
//! multigrid in `levels`. The methods to try, and their order, are chosen in [`super::choice`].

mod levels;
mod precision;
mod store;

use super::SolverBackend;
use super::builder::Builder;
use super::choice::{Candidate, Facts, Source, candidates};
use super::hierarchy::{Known, Units};
use super::iterated::Parts;
use super::mesh::Mesh;
use super::names::{Method, Precision, PreconditionerChoice as Name, chooses_format};
use super::preconditioner::AnyPreconditioner;
use super::report::{Decision, Seconds};
use super::stage::{Stage, iterated};
use super::system::Stored;
use crate::backend::PreconditionSteps;
use crate::error::{Error, Result};
use crate::krylov::SolveOptions;
use crate::matrix::{ChoiceReport, Csr};
use crate::scalar::{Element, Scalar};
use std::time::Instant;
pub(super) use store::in_one_call;

/// A matrix, prepared for solving.
pub(super) struct System<T: Scalar, B: SolverBackend> {
    pub(super) stored: Stored<T, B>,
    pub(super) stages: Vec<Stage<T, B>>,
    /// The facts from which the stages were listed.
    pub(super) facts: Facts,
    /// How the format was chosen, if the solver chose it.
    pub(super) choice: Option<ChoiceReport>,
}

/// Notes about the preparation.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) decisions: Vec<Decision>,
    pub(super) seconds: Seconds,
}

/// Runs a step, and adds the time that it took.
pub(super) fn timed<R>(seconds: &mut f64, step: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = step();
    *seconds += start.elapsed().as_secs_f64();
    result
}

/// The caller's near-null vectors and units.
fn known<'a>(wishes: &'a Builder, units: Option<&'a Units>) -> Known<'a> {
    Known { near_null: wishes.near_null.as_ref(), units }
}

/// Makes the choices of the preparation.
pub(super) struct Planner<'a, B: SolverBackend> {
    pub(super) hermitian: bool,
    /// Rows and columns of the matrix.
    pub(super) shape: (usize, usize),
    pub(super) backend: &'a B,
    pub(super) wishes: &'a Builder,
    pub(super) options: &'a SolveOptions,
    pub(super) notes: &'a mut Notes,
    /// The properties of a mesh, found before its unknowns were renumbered.
    pub(super) mesh: Option<Mesh>,
    /// The caller's units, if the matrix was scaled.
    pub(super) units: Option<Units>,
    /// The expected seconds of a factorisation within the band of the matrix, if that is narrow.
    pub(super) narrow_band: Option<f64>,
    /// The format and the type of values that were chosen for earlier values of this pattern, if there were any.
    pub(super) before: Option<(&'static str, &'static str)>,
}

impl<B: SolverBackend> Planner<'_, B> {
    /// Prepares a matrix whose values will not be replaced.
    pub(super) fn system<T: Scalar>(&mut self, a: Csr<T, B>) -> Result<System<T, B>> {
        let auto = chooses_format(&self.wishes.format);
        // Small integers and binary fractions, as in stencils, fit a narrower type without loss: x has the same bits,
        // and fewer bytes are moved.
        let backend = self.backend;
        let narrow =
            timed(&mut self.notes.seconds.convert, || if auto { a.into_lower(backend) } else { Ok(Err(a)) })?;
        match narrow {
            Ok(narrow) => {
                let name = <T::Lower as Element>::NAME;
                self.note(Decision::new("values", name, "it holds every value without loss"));
                self.in_precision(narrow, Stored::Lower)
            }
            Err(a) => self.in_precision(a, Stored::Full),
        }
    }

    /// Prepares a matrix whose values will be replaced, in CSR.
    pub(super) fn open<T: Scalar>(&mut self, a: Csr<T, B>) -> Result<System<T, B>> {
        let (backend, facts) = (self.backend, self.facts(a.nonzeros()));
        let (method, name) = (facts.first_method(), facts.named_or(Name::Jacobi));
        let known = known(self.wishes, self.units.as_ref());
        let setup = timed(&mut self.notes.seconds.setup, || {
            AnyPreconditioner::new(backend, &a, (method, name), known)
        })?;
        self.note(Decision::new("format", Csr::<T, B>::NAME, "its values can be replaced"));
        let stages = self.listed(candidates(&facts), setup, None)?;
        Ok(System { stored: Stored::Open(Box::new(a)), stages, facts, choice: None })
    }

    /// Refuses a named method for a matrix of the wrong shape, or in a precision that it does not have.
    pub(super) fn check(&self, rows: usize, columns: usize) -> Result<()> {
        let listed = self.wishes.candidates.iter().map(|(method, _)| *method);
        let mut named = listed.chain([self.wishes.method]);
        let method = self.wishes.method;
        if rows != columns
            && let Some(method) = named.find(|method| !matches!(method, Method::Auto | Method::Lsmr))
        {
            return Err(Error::Unsupported(format!(
                "{rows} x {columns} is not square, but {method} needs a square matrix; use lsmr or auto"
            )));
        }
        if let Some(near_null) = &self.wishes.near_null {
            near_null.check(columns)?;
        }
        if !matches!(method, Method::Auto | Method::Cg) && self.wishes.precision != Precision::Double {
            let precision = self.wishes.precision;
            return Err(Error::Unsupported(format!(
                "method {method} in precision {precision}; use cg or auto, or precision double"
            )));
        }
        Ok(())
    }

    /// The facts about the matrix before multigrid is considered.
    pub(super) fn facts(&self, nonzeros: usize) -> Facts {
        let on_device = <B as PreconditionSteps>::IS_DEVICE;
        let size = [self.shape.0, self.shape.1, nonzeros];
        let facts = Facts::of(self.wishes, self.options, size, (self.hermitian, on_device));
        Facts { narrow_band: self.narrow_band, ..facts }
    }

    /// The candidates as stages: `chosen` is the preconditioner that was set up, and `beside` the diagonal as its
    /// fallback.
    fn listed<T: Scalar>(
        &self,
        candidates: Vec<Candidate>,
        chosen: AnyPreconditioner<T, B>,
        beside: Option<AnyPreconditioner<T, B>>,
    ) -> Result<Vec<Stage<T, B>>> {
        let (mut chosen, mut beside) = (Some(chosen), beside);
        let stage = |plan: Candidate| {
            let setup = match plan.source {
                Source::Chosen => chosen.take(),
                Source::Beside => beside.take(),
                Source::Later => None,
            };
            let Some(setup) = setup else { return Ok(Stage::later(plan, self.units.clone())) };
            let (method, name) = (plan.method, plan.preconditioner);
            let parts = Parts { setup, method, name, options: self.options };
            Ok(Stage::new(plan, iterated(self.backend, parts)?, self.units.clone()))
        };
        candidates.into_iter().map(stage).collect()
    }

    /// The expected number of products with a matrix of `n` rows.
    fn products(&self, n: usize) -> usize {
        self.wishes.expected_products(n)
    }

    fn note(&mut self, decision: Decision) {
        self.notes.decisions.push(decision);
    }
}
