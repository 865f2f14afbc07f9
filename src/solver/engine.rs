//! The interface of a solver: on any backend, and on a named one.

use super::SolverBackend;
use super::report::{SolveReport, Trail};
use super::watch::Watch;
use crate::direct::RightHandSides;
use crate::error::Result;
use crate::matrix::{ChoiceReport, Csr};
use crate::scalar::{Scalar, Symmetry};
use std::any::Any;

/// The interface of a solver on any backend. Vectors are on the host, in the caller's order.
pub trait Engine<T: Scalar>: Send {
    /// Solves from x.
    fn solve(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<SolveReport>;

    /// Solves for several right-hand sides, stored one after another.
    fn solve_many(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<Vec<SolveReport>>;

    /// Takes new values.
    fn update(&mut self, values: &[T]) -> Result<()>;

    /// The matrix in the caller's order. Only its pattern is meant to be used: values may be those of -A.
    fn pattern(&self) -> Result<Csr<T>>;

    /// x by factors that are at hand, one solution after another; false if that does not do.
    fn solve_quickly(&mut self, transposed: bool, b: RightHandSides<'_, T>, x: &mut [T]) -> Result<bool>;

    /// Residual norms of a right-hand side of the last solve.
    fn history(&self, right_hand_side: usize) -> &[f64];

    /// The facts and choices of the setup.
    fn about(&self) -> &About;

    /// The decisions, and the stages in the order in which they are tried.
    fn trail(&self) -> &Trail;
}

/// The interface of a solver on a given backend: that of [`Engine`], and the same with vectors of the backend.
pub trait OnBackend<T: Scalar, B: SolverBackend>: Engine<T> {
    /// Solves from x, with vectors of the backend.
    fn solve_on(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport>;

    /// Solves for several right-hand sides, with vectors of the backend.
    fn solve_many_on(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SolveReport>>;

    /// Takes new values from the memory of the backend, in the order of the caller's entries.
    fn update_on(&mut self, values: &B::Slice<T>) -> Result<()>;

    /// A solver of the transposed matrix, with the same settings.
    fn transposed(&self) -> Result<Box<dyn OnBackend<T, B>>>;
}

/// A solver on a backend that is hidden.
pub(super) trait Held<T: Scalar>: Any + Send {
    fn engine(&self) -> &dyn Engine<T>;

    fn engine_mut(&mut self) -> &mut dyn Engine<T>;

    /// [`OnBackend::transposed`].
    fn transposed(&self) -> Result<Box<dyn Held<T>>>;
}

/// A solver on a backend, boxed twice: the outer trait object hides the backend; the inner one keeps its code from
/// being compiled wherever it is used ([`super::compiled`]).
pub(super) struct Boxed<T: Scalar, B: SolverBackend>(pub(super) Box<dyn OnBackend<T, B>>);

impl<T: Scalar, B: SolverBackend> Held<T> for Boxed<T, B> {
    fn engine(&self) -> &dyn Engine<T> {
        &*self.0
    }

    fn engine_mut(&mut self) -> &mut dyn Engine<T> {
        &mut *self.0
    }

    fn transposed(&self) -> Result<Box<dyn Held<T>>> {
        Ok(Box::new(Boxed(self.0.transposed()?)))
    }
}

/// The facts about a solver that its caller can ask for.
pub struct About {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) nonzeros: usize,
    pub(super) symmetry: Symmetry,
    pub(super) hermitian: bool,
    pub(super) device: String,
    pub(super) choice: Option<ChoiceReport>,
}

impl About {
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }
}
