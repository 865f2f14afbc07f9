//! The solver: [`Solver`] takes a matrix, decides how to solve with it, and solves.
//!
//! ```text
//! matrix -> device -> symmetry -> order of the unknowns -> narrowest lossless type of values -> format
//!        -> stages: (method, preconditioner, precision), tried in turn until one meets the tolerance
//!        -> x, with the residual b - A x computed anew, and a log of all decisions (the trail)
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `builder`, `build` | the settings of a solver, and building it |
//! | `arrays` | solvers for a caller's arrays, with new values in their order |
//! | `names`, `device` | methods, preconditioners, precisions, orders and devices by name |
//! | `engine` | the trait that hides the backend |
//! | `placed`, `solving` | a solver on a backend: setup and new values; solves |
//! | `compiled` | engines that are compiled with the library |
//! | `core` | a matrix with its candidates (stages), and the report of a solve |
//! | `turns` | tries one stage after another until one solves |
//! | `plan` | chooses format, precision and preconditioner of a matrix |
//! | `choice` | lists the stages, limits them, and decides when to give one up |
//! | `forecast` | forecasts of the cost of a solve |
//! | `sign` | -A for negative definite matrices |
//! | `symmetry`, `system` | the symmetry of a matrix; its storage: format, order, new values |
//! | `stage`, `ready` | a method with its preconditioner; the interface of each |
//! | `judging` | decides whether an x is the solution |
//! | `nullspace` | a given or found null space, removed from b and x |
//! | `finite` | refuses infinities and NaN, with their position |
//! | `factorised` | the stage of factorisations |
//! | `iterated`, `refined` | the stages of Krylov methods, in full precision and in two |
//! | `preconditioner`, `diagonal`, `hierarchy`, `incomplete` | preconditioners as the solver sets them up |
//! | `spread`, `spread_stages`, `spread_solving`, `parted` | distributed solvers: how they are built, stages, solves |
//! | `consensus`, `single_rank` | agreements of ranks; one rank alone |
//! | `rows` | distributed solves for rows that each process gives |
//! | `many`, `group`, `columns` | how many right-hand sides to solve together, solving them, and their storage |
//! | `alone` | preconditioners on their own |
//! | `watch` | observer, cancellation, clock |
//! | `report` | the report of a solve, and the trail |

mod alone;
mod arrays;
mod build;
mod builder;
mod choice;
mod columns;
mod compiled;
mod consensus;
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
mod many;
mod mesh;
mod names;
mod near_null;
mod nullspace;
mod parted;
mod placed;
mod plan;
mod preconditioner;
mod probe;
mod ready;
mod refined;
mod report;
#[cfg(all(unix, feature = "ranks"))]
mod rows;
mod sign;
mod single_rank;
mod solving;
mod spread;
mod spread_solving;
mod spread_stages;
mod stage;
mod symmetry;
mod system;
mod turns;
mod watch;

pub use crate::direct::{RightHandSides, Singularity};
pub use alone::AlonePreconditioner;
pub use arrays::ArraySolver;
pub use build::MatrixSource;
pub use builder::Builder;
pub use choice::SystemFacts;
pub use compiled::Solvable;
pub use consensus::Share;
pub use device::{Device, Opened};
#[cfg(feature = "cli")]
pub(crate) use factorised::{factorises, is_worth_a_device};
pub use names::{IlutChoice, Method, MultigridChoice, Precision, PreconditionerChoice, Reorder};
#[cfg(feature = "cli")]
pub(crate) use probe::range_around;
pub use report::{Decision, Seconds, Solution, SolveReport, StageReport, Trail};
#[cfg(all(unix, feature = "ranks"))]
pub use rows::{RowsSolver, Told};
pub use spread::{BuildSeconds, SpreadSolver};
pub use watch::{Canceller, Progress};

#[cfg(feature = "cuda")]
use crate::backend::Cuda;
use crate::backend::{FactorSteps, GraphSteps, Host, KrylovSteps, RowFacts, TriangularSteps};
use crate::error::{Error, Result};
use crate::matrix::{ChoiceReport, Csr};
use crate::multigrid::MultigridBackend;
use crate::scalar::{Scalar, Symmetry};
use engine::{Boxed, Held, OnBackend};
use placed::Placed;
use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;
use watch::Watch;

/// A backend that a solver can compute on, with all operations that the solver may choose. A backend of your own
/// implements it with an empty body.
pub trait SolverBackend:
    MultigridBackend + RowFacts + KrylovSteps + GraphSteps + TriangularSteps + FactorSteps
{
    /// A solver for a matrix in this memory. `why` is the reason for this backend if the caller did not name it.
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

/// Solves A x = b for one matrix and many right-hand sides, and chooses how. It owns the matrix in a suitable format,
/// its preconditioner and the memory of its methods, on the CPU or on a GPU.
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
/// In a time loop the pattern stays the same. From the second update on nothing is allocated, and each solve starts
/// from the x of the last one.
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
/// Not converging is no error: see the report's outcome. Only [`Outcome::Converged`](crate::krylov::Outcome::Converged)
/// means that b - A x, computed anew, meets the tolerance.
pub struct Solver<T: Solvable> {
    held: Box<dyn Held<T>>,
    canceller: Canceller,
    time_limit: Option<Duration>,
}

impl<T: Solvable> fmt::Debug for Solver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Solver of {} unknowns on {}", self.columns(), self.device())
    }
}

impl Solver<f64> {
    /// Settings for a solver, all at their defaults. The solver gets its type from the matrix that [`Builder::build`]
    /// is given.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<T: Solvable> Solver<T> {
    /// Solves A x = b from x = 0.
    ///
    /// # Errors
    /// If the length of b is not the number of rows, if memory runs out, or if the device fails.
    pub fn solve(&mut self, b: &[T]) -> Result<Solution<T>> {
        let mut x = vec![T::zero(); self.columns()];
        let report = self.solve_into(b, &mut x)?;
        Ok(Solution { x, report, history: self.history().to_vec() })
    }

    /// Solves A x = b from the given x, and leaves the solution there. A solve that fails never leaves a larger
    /// residual than it found; if b or x has an infinite or NaN entry, x stays as it was.
    ///
    /// # Errors
    /// As [`Solver::solve`], and if x has another length.
    pub fn solve_into(&mut self, b: &[T], x: &mut [T]) -> Result<SolveReport> {
        let Self { held, canceller, time_limit } = self;
        let mut watch = Watch::new(None, canceller, *time_limit);
        let report = held.engine_mut().solve(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// [`Solver::solve_into`] with an observer, which is called after each iteration and can stop the solve. On a GPU
    /// the observer is called when later iterations are already in progress.
    ///
    /// # Errors
    /// As [`Solver::solve_into`].
    pub fn solve_with(
        &mut self,
        b: &[T],
        x: &mut [T],
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        let Self { held, canceller, time_limit } = self;
        let mut watch = Watch::new(Some(&mut observer), canceller, *time_limit);
        let report = held.engine_mut().solve(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// [`Solver::solve_into`] with vectors in the memory of the backend that the solver computes on.
    ///
    /// # Errors
    /// As [`Solver::solve_into`], and [`Error::InvalidArgument`] if the solver is on another backend.
    pub fn solve_on<B: SolverBackend>(
        &mut self,
        backend: &B,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<SolveReport> {
        let Self { held, canceller, time_limit } = self;
        let mut watch = Watch::new(None, canceller, *time_limit);
        let report = on(backend, &mut **held)?.solve_on(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// [`Solver::solve_on`] with an observer as in [`Solver::solve_with`].
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
        let Self { held, canceller, time_limit } = self;
        let mut watch = Watch::new(Some(&mut observer), canceller, *time_limit);
        let report = on(backend, &mut **held)?.solve_on(b, x, &mut watch)?;
        Ok(watch.timed(report))
    }

    /// Solves for several right-hand sides, stored one after another in `b`. `x` has the starting vectors in the same
    /// layout, and gets the solutions. Several are solved together if that moves fewer bytes
    /// ([`MultiCg`](crate::krylov::MultiCg)). Returns one report for each.
    ///
    /// # Errors
    /// If the length of b is not a multiple of the number of rows, or x has another length, and as [`Solver::solve`].
    pub fn solve_many(&mut self, b: &[T], x: &mut [T]) -> Result<Vec<SolveReport>> {
        let Self { held, canceller, time_limit } = self;
        held.engine_mut().solve_many(b, x, &mut Watch::new(None, canceller, *time_limit))
    }

    /// [`Solver::solve_many`] with an observer as in [`Solver::solve_with`]; [`Progress::right_hand_side`] is the
    /// number of the right-hand side.
    ///
    /// # Errors
    /// As [`Solver::solve_many`].
    pub fn solve_many_with(
        &mut self,
        b: &[T],
        x: &mut [T],
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Vec<SolveReport>> {
        let Self { held, canceller, time_limit } = self;
        held.engine_mut().solve_many(b, x, &mut Watch::new(Some(&mut observer), canceller, *time_limit))
    }

    /// [`Solver::solve_many`] with vectors in the memory of the backend that the solver computes on.
    ///
    /// # Errors
    /// As [`Solver::solve_many`] and [`Solver::solve_on`].
    pub fn solve_many_on<B: SolverBackend>(
        &mut self,
        backend: &B,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<Vec<SolveReport>> {
        let Self { held, canceller, time_limit } = self;
        on(backend, &mut **held)?.solve_many_on(b, x, &mut Watch::new(None, canceller, *time_limit))
    }

    /// [`Solver::solve_many_on`] with an observer as in [`Solver::solve_many_with`].
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
        let Self { held, canceller, time_limit } = self;
        let mut watch = Watch::new(Some(&mut observer), canceller, *time_limit);
        on(backend, &mut **held)?.solve_many_on(b, x, &mut watch)
    }

    /// Takes new values of the matrix, in the order of the entries of the matrix that the solver was built from. The
    /// pattern must stay the same, and so must the symmetry, which is not checked again.
    ///
    /// A matrix in another format is stored in CSR from then on ([`Builder::updates`] does so from the start). If the
    /// caller named a format, a precision or a preconditioner that can't take new values, everything is set up anew.
    /// Otherwise an update allocates nothing from the second one on.
    ///
    /// # Errors
    /// If the number of values differs, if memory runs out, or if the device fails; after an error, update again before
    /// the next solve.
    pub fn update(&mut self, values: &[T]) -> Result<()> {
        self.held.engine_mut().update(values)
    }

    /// [`Solver::update`] with values in the memory of the backend that the solver computes on.
    ///
    /// # Errors
    /// As [`Solver::update`] and [`Solver::solve_on`].
    pub fn update_on<B: SolverBackend>(&mut self, backend: &B, values: &B::Slice<T>) -> Result<()> {
        on(backend, &mut *self.held)?.update_on(values)
    }

    /// Solves A x = b, or A^T x = b if `transposed`, with the factors of an earlier solve and without a report: for
    /// many small solves. Right-hand sides are stored one after another. Returns true if one product with A shows that
    /// each x meets the relative tolerance. Otherwise, also if there are no factors, x must not be used: call
    /// [`Solver::solve_into`], which may do more. Values must be in double precision, and the factors on the CPU.
    ///
    /// ```
    /// use residua::{Csr, Solver, solver::Method};
    /// let a = Csr::from_parts(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![2.0, 1.0, 4.0])?;
    /// let mut solver = Solver::builder().method(Method::Direct).build(a)?;
    /// solver.solve(&[3.0, 4.0])?;
    /// let mut x = [0.0; 2];
    /// assert!(solver.solve_quickly(true, &[2.0, 5.0], &mut x)? && x == [1.0, 1.0]);
    /// # Ok::<(), residua::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory runs out.
    pub fn solve_quickly<'b>(
        &mut self,
        transposed: bool,
        b: impl Into<RightHandSides<'b, T>>,
        x: &mut [T],
    ) -> Result<bool> {
        self.held.engine_mut().solve_quickly(transposed, b.into(), x)
    }

    /// A solver for A^T with the same settings, on the same device. It makes its own choices and computes its own
    /// factors. New values for it are those of A^T, in rows with ascending columns. For complex values, A^H x = b is
    /// A^T y = conj(b) with x = conj(y).
    ///
    /// ```
    /// use residua::{Csr, Solver};
    /// // | 2 1 |^T
    /// // | . 4 |   x = b
    /// let a = Csr::from_parts(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![2.0, 1.0, 4.0])?;
    /// let solution = Solver::builder().build(a)?.transposed()?.solve(&[2.0, 5.0])?;
    /// assert!((solution.x[0] - 1.0_f64).abs() < 1e-7 && (solution.x[1] - 1.0).abs() < 1e-7);
    /// # Ok::<(), residua::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn transposed(&self) -> Result<Self> {
        let held = self.held.transposed()?;
        Ok(Self { held, canceller: Canceller::default(), time_limit: self.time_limit })
    }

    /// The matrix on the host, in the caller's order; values may be those of -A, and may have been stored in lower
    /// precision if that loses nothing.
    pub(crate) fn pattern(&self) -> Result<Csr<T>> {
        self.held.engine().pattern()
    }

    /// Writes forecasts of the candidates that iterate into the trail, for this right-hand side. A factorisation is
    /// forecast to take `factors` seconds.
    #[cfg(feature = "cli")]
    pub(crate) fn forecast_on<B: SolverBackend>(
        &mut self,
        backend: &B,
        b: &B::Slice<T>,
        factors: f64,
    ) -> Result<()> {
        let Self { held, canceller, .. } = self;
        let mut x = backend.zeros(held.engine().about().columns)?;
        let mut watch = Watch::new(None, canceller, None);
        watch.probing = Some(factors);
        on(backend, &mut **held)?.solve_on(b, &mut x, &mut watch).map(drop)
    }

    /// Sets the longest time of each solve from here on.
    #[cfg(feature = "cli")]
    pub(crate) fn limit_time(&mut self, limit: Duration) {
        self.time_limit = Some(limit);
    }

    /// The decisions made when the solver was built, and the methods in the order in which they will be tried, each
    /// with its reason and a forecast. After a solve it also has the outcome of each.
    pub fn trail(&self) -> &Trail {
        self.held.engine().trail()
    }

    /// A handle that stops this solver from another thread.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Residual norms of the last solve: at the start, then after each iteration.
    pub fn history(&self) -> &[f64] {
        self.held.engine().history(0)
    }

    /// The residual norms of one of the right-hand sides of [`Solver::solve_many`]; empty if there was none with this
    /// number.
    pub fn history_of(&self, right_hand_side: usize) -> &[f64] {
        self.held.engine().history(right_hand_side)
    }

    /// Rows of the matrix: the length of b.
    pub fn rows(&self) -> usize {
        self.held.engine().about().rows
    }

    /// Columns of the matrix: the number of unknowns.
    pub fn columns(&self) -> usize {
        self.held.engine().about().columns
    }

    /// Stored entries of the matrix.
    pub fn nonzeros(&self) -> usize {
        self.held.engine().about().nonzeros
    }

    /// [`Symmetry::Symmetric`] if the matrix equals its transpose, or else [`Symmetry::Hermitian`] if it equals its
    /// conjugate transpose.
    pub fn symmetry(&self) -> Symmetry {
        self.held.engine().about().symmetry
    }

    /// The name of the device that it computes on.
    pub fn device(&self) -> &str {
        &self.held.engine().about().device
    }

    /// How the storage format was chosen, if the solver chose it.
    pub fn format_choice(&self) -> Option<&ChoiceReport> {
        self.held.engine().about().choice.as_ref()
    }
}

/// The solver, if it is on that backend.
fn on<'a, T: Scalar, B: SolverBackend>(
    backend: &B,
    held: &'a mut dyn Held<T>,
) -> Result<&'a mut dyn OnBackend<T, B>> {
    let (own, given) = (&held.engine().about().device, backend.description());
    if *own != given {
        return Err(Error::InvalidArgument(format!(
            "the buffers are on {given}, but the solver is on {own}"
        )));
    }
    let any: &mut dyn Any = held;
    match any.downcast_mut::<Boxed<T, B>>() {
        Some(boxed) => Ok(&mut *boxed.0),
        None => Err(Error::InvalidArgument(format!(
            "the buffers belong to another backend than the solver, which is on {given}"
        ))),
    }
}

/// Solves A x = b once, from x = 0, with all settings of [`Solver::builder`] at their defaults. For many solves, keep a
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
