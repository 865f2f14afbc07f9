//! One door to all of it: [`Solver`] takes a matrix, decides how to solve with it, and solves.
//!
//! ```text
//! matrix -> device -> symmetry -> order of the unknowns -> values as narrow as loses nothing -> format
//!        -> stages: (method, preconditioner, precision), tried in turn until one meets the tolerance
//!        -> x, with the residual b - A x computed anew, and the trail of all that
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `builder` | what a caller asks for, and the way to a solver |
//! | `arrays` | the same of a caller's arrays, with new values in their order |
//! | `names`, `device` | methods, preconditioners, precisions, orders and devices by name |
//! | `engine` | a solver on a backend, and the trait that hides which |
//! | `compiled` | engines that are compiled with the library, for all programs |
//! | `core` | a matrix with its stages, and what is told of a solve |
//! | `turns`, `race`, `trial` | stage after stage until one solves, and which are given up |
//! | `plan` | what is chosen for a matrix: format, precision, preconditioner |
//! | `sequence`, `budgets` | the stages that are tried in turn, and how much each may take |
//! | `forecast` | what a solve is likely to cost |
//! | `sign` | -A for what is negative definite |
//! | `symmetry`, `system` | what is found in a matrix, and how it is kept: format, order, new values |
//! | `stage` | a method with its preconditioner: what each has to do |
//! | `nullspace` | a null space that is given or found, taken out of b and x |
//! | `finite` | what is no number is refused by its place |
//! | `factorised` | the stage of factorisations |
//! | `iterated`, `refined` | the stages of Krylov methods, in full precision and in two |
//! | `preconditioner`, `diagonal`, `hierarchy`, `incomplete` | preconditioners that are set up |
//! | `spread`, `parted`, `agreed`, `lone` | unknowns spread over several parts; their stages; what they find out together; one part alone |
//! | `rows` | the same of rows that each process of a group gives |
//! | `many`, `group`, `columns` | how many right-hand sides are solved at once, how, and where they lie |
//! | `alone` | preconditioners by themselves |
//! | `watch` | observer, cancellation, clock |
//! | `report` | how a solve ended, and the trail |

mod agreed;
mod alone;
mod arrays;
mod builder;
mod choice;
mod columns;
mod compiled;
mod core;
mod device;
mod diagonal;
mod engine;
mod factorised;
mod finite;
mod forecast;
mod group;
mod hierarchy;
mod incomplete;
mod iterated;
mod judging;
mod lone;
mod many;
mod mesh;
mod names;
mod near_null;
mod nullspace;
mod parted;
mod plan;
mod preconditioner;
mod refined;
mod report;
#[cfg(all(unix, feature = "ranks"))]
mod rows;
mod sign;
mod spread;
mod stage;
mod symmetry;
mod system;
mod turns;
mod watch;

pub use crate::direct::Singularity;
pub use alone::AlonePreconditioner;
pub use arrays::ArraySolver;
pub use builder::{Builder, MatrixSource};
pub use choice::SystemFacts;
pub use compiled::Solvable;
pub use device::{Device, Opened};
#[cfg(feature = "cli")]
pub(crate) use factorised::is_worth_a_device;
pub use names::{IlutChoice, Method, MultigridChoice, Precision, PreconditionerChoice, Reorder};
pub use report::{Decision, Seconds, Solution, SolveReport, StageReport, Trail};
#[cfg(all(unix, feature = "ranks"))]
pub use rows::{RowsSolver, Told};
pub use spread::{Share, SpreadSolver};
pub use watch::{Canceller, Progress};

#[cfg(feature = "cuda")]
use crate::backend::Cuda;
use crate::backend::{FactorSteps, GraphSteps, Host, KrylovSteps, RowFacts, TriangularSteps};
use crate::error::{Error, Result};
use crate::matrix::{ChoiceReport, Csr};
use crate::multigrid::MultigridBackend;
use crate::scalar::{Scalar, Symmetry};
use engine::{Boxed, Engine, OnBackend, Placed};
use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;
use watch::Watch;

/// A backend that a solver can compute on: all that it may choose among is there. A backend of your own implements it
/// with nothing in it.
pub trait SolverBackend:
    MultigridBackend + RowFacts + KrylovSteps + GraphSteps + TriangularSteps + FactorSteps
{
    /// A solver for a matrix in this memory; `why` tells why it is here, where the caller did not say so.
    #[doc(hidden)]
    fn solver<T: Solvable>(
        &self,
        a: Csr<T, Self>,
        wishes: &Builder,
        why: Option<String>,
    ) -> Result<Box<dyn OnBackend<T, Self>>> {
        Ok(Box::new(Placed::build(self, a, wishes, why)?))
    }
}

impl SolverBackend for Host {
    fn solver<T: Solvable>(
        &self,
        a: Csr<T>,
        wishes: &Builder,
        why: Option<String>,
    ) -> Result<Box<dyn OnBackend<T, Self>>> {
        T::on_host(self, a, wishes, why)
    }
}

#[cfg(feature = "cuda")]
impl SolverBackend for Cuda {
    fn solver<T: Solvable>(
        &self,
        a: Csr<T, Self>,
        wishes: &Builder,
        why: Option<String>,
    ) -> Result<Box<dyn OnBackend<T, Self>>> {
        T::on_cuda(self, a, wishes, why)
    }
}

/// Solves A x = b for one matrix and many right-hand sides, on whatever it chose: it owns the matrix in the format that
/// suits it, its preconditioner and the memory of its methods, on the CPU or on a GPU.
///
/// ```
/// use residua::prelude::*;
/// let a = residua::generate::poisson2d(30, 30)?;
/// let mut solver = Solver::builder().tolerance(1e-10).build(a)?;
/// let solution = solver.solve(&[1.0; 900])?;
/// assert!(solution.report.outcome.is_converged());
/// for stage in &solution.report.trail.stages {
///     println!("{} with {}: {:?}", stage.method, stage.preconditioner, stage.outcome);
/// }
/// # Ok::<(), Error>(())
/// ```
///
/// In a time loop the pattern stays. From the second update on nothing is allocated, and each solve starts from the
/// last one's x.
///
/// ```
/// use residua::prelude::*;
/// // | 2 -1 |
/// // |-1  2 | x = b, then with 4 in place of 2
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, -1.0, -1.0, 2.0])?;
/// let mut solver = Solver::builder().updates(true).build(&a)?;
/// let mut x = vec![0.0; 2];
/// assert!(solver.solve_into(&[1.0, 1.0], &mut x)?.outcome.is_converged() && x == [1.0, 1.0]);
/// solver.update(&[4.0, -1.0, -1.0, 4.0])?;
/// assert!(solver.solve_into(&[3.0, 3.0], &mut x)?.outcome.is_converged() && x == [1.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// Not converging is no error: the report's outcome tells, and only
/// [`Outcome::Converged`](crate::krylov::Outcome::Converged) means that b - A x, computed anew, meets the tolerance.
pub struct Solver<T: Solvable> {
    engine: Box<dyn Engine<T>>,
    canceller: Canceller,
    time_limit: Option<Duration>,
}

impl<T: Solvable> fmt::Debug for Solver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Solver of {} unknowns on {}", self.columns(), self.device())
    }
}

impl Solver<f64> {
    /// What a solver is to be, all settings at their defaults. The type of the solver is that of the matrix which
    /// [`Builder::build`] is given.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<T: Solvable> Solver<T> {
    /// Solves A x = b from x = 0.
    ///
    /// # Errors
    /// If b has another length than A has rows, on too little memory, or if the device fails.
    pub fn solve(&mut self, b: &[T]) -> Result<Solution<T>> {
        let mut x = vec![T::zero(); self.columns()];
        let report = self.solve_into(b, &mut x)?;
        Ok(Solution { x, report, history: self.history().to_vec() })
    }

    /// Solves A x = b from the x that is given, and leaves the solution there. A solve that fails leaves no larger
    /// residual than it found; an infinite or NaN b or x leaves x as it was.
    ///
    /// # Errors
    /// As [`Solver::solve`], and if x has another length.
    pub fn solve_into(&mut self, b: &[T], x: &mut [T]) -> Result<SolveReport> {
        let Self { engine, canceller, time_limit } = self;
        let mut watch = Watch::new(None, canceller, *time_limit);
        let report = engine.solve(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// As [`Solver::solve_into`], with an observer that hears of each iteration and can stop the solve. On a GPU it
    /// hears of an iteration when later ones are under way.
    ///
    /// # Errors
    /// As [`Solver::solve_into`].
    pub fn solve_with(
        &mut self,
        b: &[T],
        x: &mut [T],
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        let Self { engine, canceller, time_limit } = self;
        let mut watch = Watch::new(Some(&mut observer), canceller, *time_limit);
        let report = engine.solve(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// As [`Solver::solve_into`] with vectors in the memory of the backend that the solver computes on.
    ///
    /// # Errors
    /// As [`Solver::solve_into`], and [`Error::InvalidArgument`] if the solver is elsewhere.
    pub fn solve_on<B: SolverBackend>(
        &mut self,
        backend: &B,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<SolveReport> {
        let Self { engine, canceller, time_limit } = self;
        let mut watch = Watch::new(None, canceller, *time_limit);
        let report = on(backend, &mut **engine)?.solve(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// As [`Solver::solve_on`], with an observer as in [`Solver::solve_with`].
    ///
    /// # Errors
    /// As [`Solver::solve_on`].
    pub fn solve_on_with<B: SolverBackend>(
        &mut self,
        backend: &B,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        let Self { engine, canceller, time_limit } = self;
        let mut watch = Watch::new(Some(&mut observer), canceller, *time_limit);
        let report = on(backend, &mut **engine)?.solve(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// Solves for each of several right-hand sides. They lie one behind the other in `b`, and in `x` likewise what each
    /// solve starts from, and then its solution. Where it moves fewer bytes, several are solved at once
    /// ([`MultiCg`](crate::krylov::MultiCg)). One report each.
    ///
    /// # Errors
    /// If b is not a multiple of the rows long or x of another length, and as [`Solver::solve`].
    pub fn solve_many(&mut self, b: &[T], x: &mut [T]) -> Result<Vec<SolveReport>> {
        let Self { engine, canceller, time_limit } = self;
        engine.solve_many(b, x, &mut Watch::new(None, canceller, *time_limit))
    }

    /// As [`Solver::solve_many`], with an observer as in [`Solver::solve_with`]; [`Progress::right_hand_side`] tells of
    /// which it hears.
    ///
    /// # Errors
    /// As [`Solver::solve_many`].
    pub fn solve_many_with(
        &mut self,
        b: &[T],
        x: &mut [T],
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Vec<SolveReport>> {
        let Self { engine, canceller, time_limit } = self;
        engine.solve_many(b, x, &mut Watch::new(Some(&mut observer), canceller, *time_limit))
    }

    /// As [`Solver::solve_many`] with vectors in the memory of the backend that the solver computes on.
    ///
    /// # Errors
    /// As [`Solver::solve_many`] and [`Solver::solve_on`].
    pub fn solve_many_on<B: SolverBackend>(
        &mut self,
        backend: &B,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<Vec<SolveReport>> {
        let Self { engine, canceller, time_limit } = self;
        on(backend, &mut **engine)?.solve_many(b, x, &mut Watch::new(None, canceller, *time_limit))
    }

    /// As [`Solver::solve_many_on`], with an observer as in [`Solver::solve_many_with`].
    ///
    /// # Errors
    /// As [`Solver::solve_many_on`].
    pub fn solve_many_on_with<B: SolverBackend>(
        &mut self,
        backend: &B,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Vec<SolveReport>> {
        let Self { engine, canceller, time_limit } = self;
        let mut watch = Watch::new(Some(&mut observer), canceller, *time_limit);
        on(backend, &mut **engine)?.solve_many(b, x, &mut watch)
    }

    /// Takes new values of the matrix over, in the order of the entries of the matrix that the solver was built from.
    /// The pattern stays, and so must the symmetry, which is not looked at again.
    ///
    /// A matrix that was stored in another format than CSR is stored in CSR from then on ([`Builder::updates`] begins
    /// so); with a format, a precision or a preconditioner that was named and cannot take new values, it is all set up
    /// anew. Otherwise an update allocates nothing from the second one on.
    ///
    /// # Errors
    /// On another number of values, on too little memory, or if the device fails; after an error, update again before
    /// the next solve.
    pub fn update(&mut self, values: &[T]) -> Result<()> {
        self.engine.update(values)
    }

    /// As [`Solver::update`] with values in the memory of the backend that the solver computes on.
    ///
    /// # Errors
    /// As [`Solver::update`] and [`Solver::solve_on`].
    pub fn update_on<B: SolverBackend>(&mut self, backend: &B, values: &B::Slice<T>) -> Result<()> {
        on(backend, &mut *self.engine)?.update(values)
    }

    /// The matrix on the host, in the caller's order; values may be those of -A, and as narrow as loses nothing.
    pub(crate) fn pattern(&self) -> Result<Csr<T>> {
        self.engine.pattern()
    }

    /// The longest time of a solve from here on.
    #[cfg(feature = "cli")]
    pub(crate) fn limit_time(&mut self, limit: Duration) {
        self.time_limit = Some(limit);
    }

    /// What was decided when the solver was built, and the methods in the order in which they will be tried, each with
    /// its reason and what is expected of it. After a solve it tells how each has ended too.
    pub fn trail(&self) -> &Trail {
        self.engine.trail()
    }

    /// A handle that ends this solver's work from another thread.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Residual norms of the last solve: at the start, then after each iteration.
    pub fn history(&self) -> &[f64] {
        self.engine.history(0)
    }

    /// The same of one of the right-hand sides of [`Solver::solve_many`]; empty where there was none.
    pub fn history_of(&self, right_hand_side: usize) -> &[f64] {
        self.engine.history(right_hand_side)
    }

    /// Rows of the matrix: the length of b.
    pub fn rows(&self) -> usize {
        self.engine.about().rows
    }

    /// Columns of the matrix: the number of unknowns.
    pub fn columns(&self) -> usize {
        self.engine.about().columns
    }

    /// Stored entries of the matrix.
    pub fn nonzeros(&self) -> usize {
        self.engine.about().nonzeros
    }

    /// Whether the matrix equals its transpose ([`Symmetry::Symmetric`]), or else its conjugate transpose
    /// ([`Symmetry::Hermitian`]).
    pub fn symmetry(&self) -> Symmetry {
        self.engine.about().symmetry
    }

    /// What it computes on.
    pub fn device(&self) -> &str {
        &self.engine.about().device
    }

    /// How the storage format was chosen, where it was.
    pub fn format_choice(&self) -> Option<&ChoiceReport> {
        self.engine.about().choice.as_ref()
    }
}

/// The solver inside, where it is on that backend.
fn on<'a, T: Scalar, B: SolverBackend>(
    backend: &B,
    engine: &'a mut dyn Engine<T>,
) -> Result<&'a mut dyn OnBackend<T, B>> {
    let (own, given) = (&engine.about().device, backend.description());
    if *own != given {
        return Err(Error::InvalidArgument(format!("buffers of {given} for a solver on {own}")));
    }
    let any: &mut dyn Any = engine;
    match any.downcast_mut::<Boxed<T, B>>() {
        Some(boxed) => Ok(&mut *boxed.0),
        None => Err(Error::InvalidArgument(format!("buffers of another kind than the solver's on {given}"))),
    }
}

/// Solves A x = b once, from x = 0, all settings of [`Solver::builder`] at their defaults. For many solves, keep a
/// [`Solver`].
///
/// ```
/// use residua::{Csr, solve};
/// // | 2 -1  . |
/// // |-1  2 -1 | x = b
/// // | . -1  2 |
/// let a = Csr::from_parts(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2],
///     vec![2.0, -1.0, -1.0, 2.0, -1.0, -1.0, 2.0])?;
/// let solution = solve(&a, &[1.0, 0.0, 1.0])?;
/// assert!(solution.report.outcome.is_converged());
/// assert!(solution.x.iter().all(|x: &f64| (x - 1.0).abs() < 1e-12));
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// As [`Builder::build`] and [`Solver::solve`].
pub fn solve<T: Solvable>(a: &Csr<T, Host>, b: &[T]) -> Result<Solution<T>> {
    Error::check_dimension("length of b", a.rows(), b.len())?;
    Solver::builder().build(a)?.solve(b)
}
