//! The interface of a solver: on any backend, and on a named one.

use super::SolverBackend;
use super::report::{SolveReport, Trail};
use super::watch::Watch;
use crate::error::Result;
use crate::matrix::{ChoiceReport, Csr};
use crate::scalar::{Scalar, Symmetry};
use std::any::Any;

/// The interface of a solver on any backend. Vectors are on the host, in the caller's order.
pub(super) trait Engine<T: Scalar>: Any + Send {
    /// Solves from x.
    fn solve(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<SolveReport>;

    /// Solves for several right-hand sides, stored one after another.
    fn solve_many(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<Vec<SolveReport>>;

    /// Takes new values.
    fn update(&mut self, values: &[T]) -> Result<()>;

    /// The matrix in the caller's order. Only its pattern is meant to be used: values may be those of -A.
    fn pattern(&self) -> Result<Csr<T>>;

    /// Solves with existing factors, for right-hand sides stored one after another. Returns false if there are none, or
    /// if an x is not accurate enough.
    fn solve_quickly(&mut self, transposed: bool, b: &[T], x: &mut [T]) -> Result<bool>;

    /// A solver of the transposed matrix, with the same settings.
    fn transposed(&self) -> Result<Box<dyn Engine<T>>>;

    /// Residual norms of a right-hand side of the last solve.
    fn history(&self, right_hand_side: usize) -> &[f64];

    /// The facts and choices of the setup.
    fn about(&self) -> &About;

    /// The decisions, and the stages in the order in which they are tried.
    fn trail(&self) -> &Trail;
}

/// The interface of a solver on a given backend: that of [`Engine`], and the same with vectors of the backend.
pub trait OnBackend<T: Scalar, B: SolverBackend>: Send {
    /// [`Engine::solve`].
    fn solve_host(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<SolveReport>;

    /// [`Engine::solve_many`].
    fn solve_many_host(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<Vec<SolveReport>>;

    /// [`Engine::update`].
    fn update_host(&mut self, values: &[T]) -> Result<()>;

    /// Solves from x, with vectors of the backend.
    fn solve(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>, watch: &mut Watch<'_>) -> Result<SolveReport>;

    /// Solves for several right-hand sides, with vectors of the backend.
    fn solve_many(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SolveReport>>;

    /// Takes new values from the memory of the backend, in the order of the caller's entries.
    fn update(&mut self, values: &B::Slice<T>) -> Result<()>;

    /// [`Engine::pattern`].
    fn pattern(&self) -> Result<Csr<T>>;

    /// [`Engine::solve_quickly`].
    fn solve_quickly(&mut self, transposed: bool, b: &[T], x: &mut [T]) -> Result<bool>;

    /// [`Engine::transposed`].
    fn transposed(&self) -> Result<Box<dyn OnBackend<T, B>>>;

    /// [`Engine::history`].
    fn history(&self, right_hand_side: usize) -> &[f64];

    /// [`Engine::about`].
    fn about(&self) -> &About;

    /// [`Engine::trail`].
    fn trail(&self) -> &Trail;
}

/// A solver on a backend, boxed twice: the outer trait object hides the backend; the inner one keeps its code from
/// being compiled wherever it is used ([`super::compiled`]).
pub(super) struct Boxed<T: Scalar, B: SolverBackend>(pub(super) Box<dyn OnBackend<T, B>>);

impl<T: Scalar, B: SolverBackend> Engine<T> for Boxed<T, B> {
    fn solve(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<SolveReport> {
        self.0.solve_host(b, x, watch)
    }

    fn solve_many(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<Vec<SolveReport>> {
        self.0.solve_many_host(b, x, watch)
    }

    fn update(&mut self, values: &[T]) -> Result<()> {
        self.0.update_host(values)
    }

    fn pattern(&self) -> Result<Csr<T>> {
        self.0.pattern()
    }

    fn solve_quickly(&mut self, transposed: bool, b: &[T], x: &mut [T]) -> Result<bool> {
        self.0.solve_quickly(transposed, b, x)
    }

    fn transposed(&self) -> Result<Box<dyn Engine<T>>> {
        Ok(Box::new(Boxed(self.0.transposed()?)))
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.0.history(right_hand_side)
    }

    fn about(&self) -> &About {
        self.0.about()
    }

    fn trail(&self) -> &Trail {
        self.0.trail()
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
