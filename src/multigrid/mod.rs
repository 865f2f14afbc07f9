//! Algebraic multigrid: a preconditioner with which the number of iterations hardly grows with the size of a matrix.
//!
//! ```text
//! A_0 = A            smooth, residual ------------------------------> add correction, smooth
//!                         | R_0 = P_0^H                                    ^ P_0
//! A_1 = R_0 A_0 P_0         smooth, residual ------------> add correction, smooth
//!                                | R_1                          ^ P_1
//! A_2 = R_1 A_1 P_1                solve: the inverse, 400 rows at most, 600 with stiff ones
//! ```
//!
//! A smooth error hardly changes along strong couplings, so few unknowns represent it. Strongly coupled nodes form
//! aggregates, each of which is one node of the next level, and the prolongation P reproduces near-null vectors of A
//! exactly (constants; rigid body modes in elasticity). If P is smoothed once, it has more entries and saves more
//! iterations: smoothed aggregation (Vanek, Mandel and Brezina, Algebraic multigrid by smoothed aggregation for second
//! and fourth order elliptic problems, Computing 56, 1996).
//!
//! | file | what it holds |
//! |---|---|
//! | `build` | which levels suit a matrix |
//! | `sample` | properties of most rows, from a sample |
//! | `diagonal` | diagonal matrices, and a matrix scaled by them |
//! | `scaling` | diagonal matrices with which constants are near the null space |
//! | `symmetrize` | row factors that make a matrix Hermitian |
//! | `strength` | strong couplings, and the matrix without the weak ones |
//! | `stiff` | unknowns of very flat elements, which are kept on the next level |
//! | `independent`, `aggregate` | an independent set at distance two, and the aggregates around its members |
//! | `tentative` | P before smoothing, from near-null vectors |
//! | `nodes` | its smoothing if nodes have several unknowns |
//! | `energy` | P of minimal energy |
//! | `classical`, `extended` | classical coarsening, and its interpolation |
//! | `diffusion` | artificial diffusion for unresolved convection |
//! | `pattern` | patterns of prolongations that are computed on the host |
//! | `galerkin` | R A P |
//! | `setup` | levels from the finest to the coarsest |
//! | `again` | the same levels with new values |
//! | `assemble` | the cycle from its levels, and new values for it |
//! | `smoother` | Chebyshev's iteration on scaled residuals |
//! | `matching` | blocks of strongly coupled unknowns, by matching |
//! | `blocks` | their inverses |
//! | `grid` | geometric levels on grids |
//! | `on_grid` | the matrix of such a level: a stencil or diagonals |
//! | `dense` | the inverse of the coarsest matrix |
//! | `modes` | near-null vectors of elasticity |
//! | `cycle` | the cycle through the levels, on any backend |
//! | `spread` | levels whose rows are distributed over several ranks |

use crate::backend::{
    ClassicalSteps, Conversions, GridSteps, NearNullSteps, PreconditionSteps, Products, RowFacts,
    TriangularSteps, copied,
};
use crate::error::{Error, Result};
use crate::look::Transposed;
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::precondition::{Preconditioner, Workspace};
use crate::scalar::Scalar;
use std::sync::Arc;

mod again;
mod aggregate;
mod assemble;
mod blocks;
mod build;
mod classical;
mod cycle;
mod dense;
mod diagonal;
mod diffusion;
mod energy;
mod extended;
mod galerkin;
mod grid;
mod independent;
mod matching;
mod modes;
mod nodes;
mod on_grid;
mod options;
mod pattern;
mod sample;
mod scaling;
mod setup;
mod smoother;
mod spread;
mod stiff;
mod strength;
mod symmetrize;
mod tentative;

use again::Kept;
use assemble::{cycle_of, narrow_cycle_of, of_new, take_over};
use cycle::{Cycle, Stored};
pub(crate) use grid::of_distances;
pub use modes::rigid_body_modes;
#[cfg(feature = "cli")]
pub(crate) use options::operator_complexity;
pub use options::{Coarsening, LevelFacts, MultigridFacts, MultigridOptions, Prolongation, Smoothing};
pub(crate) use sample::{has_hubs, is_like_an_m_matrix, is_shifted};
use scaling::Scaled;
use setup::Plan;
pub(crate) use setup::longest_row;
pub(crate) use spread::{PartOf, planes, seeming_grid, some_distances};

/// The operations that multigrid needs of a backend, which builds all levels in its own memory.
pub trait MultigridBackend:
    Products
    + Conversions
    + PreconditionSteps
    + GridSteps
    + ClassicalSteps
    + NearNullSteps
    + RowFacts
    + TriangularSteps
{
}
impl<B> MultigridBackend for B where
    B: Products
        + Conversions
        + PreconditionSteps
        + GridSteps
        + ClassicalSteps
        + NearNullSteps
        + RowFacts
        + TriangularSteps
{
}

/// M = one cycle. For a Hermitian positive definite A, M is too; for others see [`MultigridOptions::real_eigenvalues`].
/// It owns all that it needs of A, unless A is shared ([`Multigrid::share`]).
///
/// If A is on a grid of points whose couplings along all axes are about equally strong, the levels are geometric; else
/// they are aggregates. Both are set up in the memory of A's backend; prolongations of minimal energy are computed on
/// the host. Cycles run on any backend, allocate nothing and wait for nothing. The same A gives the same bits, whatever
/// the number of threads.
///
/// ```
/// use residua::{Host, generate, krylov::{Cg, SolveOptions}, multigrid::Multigrid};
/// use std::ops::ControlFlow;
/// let a = generate::poisson2d(100, 100)?;
/// let m = Multigrid::new(&Host, &a, &Default::default())?;
/// let (b, mut x) = (vec![1.0; 10_000], vec![0.0; 10_000]);
/// let mut cg = Cg::new(&Host, 10_000, SolveOptions::default())?;
/// let report = cg.solve(&a, &m, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
/// assert!(report.outcome.is_converged() && report.iterations < 15);
/// println!("{}", m.facts());
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug)]
pub struct Multigrid<T: Scalar, B: MultigridBackend> {
    cycle: AnyCycle<T, B>,
    plans: Plans<T, B>,
    /// The data for new values, from the first update on.
    kept: Option<Kept<B>>,
    /// L and R, if the levels are those of L A R, and the options that were given.
    scaled: Option<(Scaled<T, B>, MultigridOptions)>,
    options: MultigridOptions,
    /// The options that were given, if they were for a general matrix.
    asked: Option<Asked>,
    facts: MultigridFacts,
    /// Rows of this rank, if the matrix is distributed over several.
    own: Option<usize>,
    /// The diagonal of D^-1 if the levels are those of A, and whether the matrix is D A D, not D A.
    units: Option<(B::Vec<T>, bool)>,
}

/// The options of a hierarchy that was requested for a general matrix.
#[derive(Debug)]
struct Asked {
    options: MultigridOptions,
    /// True if near-null vectors were given, which are not kept.
    near_null: bool,
    /// True if the matrix turned out to be Hermitian.
    hermitian: bool,
}

/// A cycle in one of two precisions.
#[derive(Debug)]
enum AnyCycle<T: Scalar, B: MultigridBackend> {
    Full(Cycle<T, B>),
    Lower(Cycle<T::Lower, B>),
}

/// The plans for new values, in the precision in which levels are computed.
#[derive(Debug)]
enum Plans<T: Scalar, B: MultigridBackend> {
    Full(Vec<Plan<T, B>>),
    /// Used if the cycle runs in half the precision and each unknown is a node with a near-null vector of ones: the
    /// levels would be rounded in the end anyway, and this moves half of the bytes.
    Lower(Vec<Plan<T::Lower, B>>),
}

impl<T: Scalar, B: MultigridBackend> Multigrid<T, B> {
    /// Uses the caller's A, in any format, instead of its own copy; values, rows and columns must be the same. A cycle
    /// in half the precision keeps its rounded copy, and so do cycles on grids, of a scaled matrix, or with artificial
    /// diffusion.
    ///
    /// The next update is then like the first one: it copies A and computes the data for its pattern.
    ///
    /// # Errors
    /// If the matrix has other dimensions.
    pub fn share(&mut self, a: Arc<dyn LinearOperator<T, B>>) -> Result<()> {
        Error::check_dimension("rows of the matrix", self.len(), a.rows())?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if self.scaled.is_none()
            && !self.options.diffusion
            && let AnyCycle::Full(cycle) = &mut self.cycle
            && let Some(level) = cycle.levels.first_mut()
            && let Stored::Rows(_) = level.a
        {
            level.a = Stored::Shared(a);
            self.kept = None;
        }
        Ok(())
    }

    /// z = M r with the cycle M.
    fn apply_cycle(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        match &self.cycle {
            AnyCycle::Full(cycle) => cycle.apply(backend, r, z, work.full),
            AnyCycle::Lower(cycle) => {
                let n = self.len();
                let (low_r, rest) = B::split_mut(work.narrow, n);
                let (low_z, rest) = B::split_mut(rest, n);
                backend.narrow::<T>(num_traits::One::one(), r, low_r)?;
                cycle.apply(backend, low_r, low_z, rest)?;
                backend.widen::<T>(low_z, z)
            }
        }
    }

    /// The levels, finest first.
    pub fn facts(&self) -> &MultigridFacts {
        &self.facts
    }

    /// The length of the vectors that it is applied to.
    fn len(&self) -> usize {
        self.own.unwrap_or(self.facts.levels[0].rows)
    }

    /// Bytes of all matrices of the cycle, and of the data kept for new values.
    pub fn storage_bytes(&self) -> usize {
        let cycle = match &self.cycle {
            AnyCycle::Full(cycle) => cycle.storage_bytes(),
            AnyCycle::Lower(cycle) => cycle.storage_bytes(),
        };
        let plans = match &self.plans {
            Plans::Full(plans) => plans.iter().map(|plan| plan.storage_bytes()).sum::<usize>(),
            Plans::Lower(plans) => plans.iter().map(|plan| plan.storage_bytes()).sum::<usize>(),
        };
        let scaled = self.scaled.as_ref().map_or(0, |(scaled, _)| scaled.storage_bytes());
        cycle + plans + scaled + self.kept.as_ref().map_or(0, Kept::storage_bytes)
    }
}

/// Returns an error for a matrix with infinite or NaN entries.
fn check_finite<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<()> {
    // One pass over the values; if the sum of squares overflows, they are examined one by one.
    let mut sum = backend.zeros::<T::Real>(1)?;
    backend.norm2_squared(a.parts().values, &mut sum)?;
    let finite = num_traits::Float::is_finite(backend.value(&sum)?)
        || backend.download(a.parts().values)?.into_iter().all(Scalar::is_finite);
    if finite { Ok(()) } else { Err(Error::InvalidMatrix("an entry is infinite or NaN".into())) }
}

impl<T: Scalar, B: MultigridBackend> Preconditioner<T, B> for Multigrid<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(self.len())
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let mut full = backend.zeros(self.work_len())?;
        let mut narrow = backend.zeros(self.narrow_work_len())?;
        self.apply_in(backend, Workspace { full: &mut full, narrow: &mut narrow }, r, z)
    }

    fn work_len(&self) -> usize {
        let of_cycle = match &self.cycle {
            AnyCycle::Full(cycle) => cycle.work_len(),
            AnyCycle::Lower(_) => 0,
        };
        of_cycle + if self.scaled.is_some() { self.len() } else { 0 }
    }

    fn narrow_work_len(&self) -> usize {
        match &self.cycle {
            AnyCycle::Full(_) => 0,
            AnyCycle::Lower(cycle) => 2 * cycle.rows() + cycle.work_len(),
        }
    }

    fn apply_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        let n = self.len();
        Error::check_dimension("length of r", n, B::len(r))?;
        Error::check_dimension("length of z", n, B::len(z))?;
        let Some((scaled, _)) = &self.scaled else { return self.apply_cycle(backend, work, r, z) };
        let (between, full) = B::split_mut(work.full, n);
        scaled.around(backend, r, z, between, |r, z| {
            self.apply_cycle(backend, Workspace { full, ..work }, r, z)
        })
    }

    /// Takes new values from a matrix that has the pattern of the one before, or refuses it. Aggregates are kept; from
    /// the second update on, strong couplings and the patterns of all products are kept too, so that only numbers are
    /// computed. Levels on grids, of minimal energy, classical ones and those of a scaled matrix are rebuilt (the first
    /// matrix decides whether to scale). So are those of a hierarchy for a general matrix if one matrix is Hermitian
    /// and the one before is not; with given near-null vectors such a matrix is refused. A matrix that is refused
    /// leaves the preconditioner unchanged.
    fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        if self.own.is_some() {
            return Err(Error::Unsupported("new values for multigrid on several ranks".into()));
        }
        let finest = self.facts.levels[0];
        Error::check_dimension("rows of the matrix", finest.rows, a.rows())?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if let Some(Asked { options, near_null, hermitian }) = &self.asked
            && Transposed::of(backend, a)?.is_hermitian() != *hermitian
        {
            if *near_null {
                let what = "new values that change the symmetry, for multigrid with near-null vectors";
                return Err(Error::Unsupported(what.into()));
            }
            *self = Self::new(backend, a, options)?;
            return Ok(());
        }
        if let Some((_, options)) = &self.scaled {
            let options = self.asked.as_ref().map_or(options, |asked| &asked.options);
            let make = |a: &Csr<T, B>| Self::new(backend, a, options).map(Some);
            let made = match &self.units {
                None => make(a)?,
                Some((units, columns)) => {
                    Self::in_units_of(backend, a, (copied(backend, units)?, *columns), make)?
                }
            };
            *self = made.expect("a hierarchy for any matrix");
            return Ok(());
        }
        if self.facts.grid || self.options.is_made_anew() {
            let asked = self.asked.as_ref().map_or(&self.options, |asked| &asked.options);
            *self = Self::new(backend, a, asked)?;
            return Ok(());
        }
        Error::check_dimension("entries of the matrix", finest.entries, a.nonzeros())?;
        let known = match &self.cycle {
            AnyCycle::Full(cycle) => cycle.pattern(),
            AnyCycle::Lower(cycle) => cycle.pattern(),
        };
        if let Some(known) = known
            && !again::same_pattern(backend, a.parts().pattern(), known)?
        {
            return Err(Error::InvalidArgument("new values on another pattern, for multigrid".into()));
        }
        check_finite(backend, a)?;
        let (options, kept, facts) = (&self.options, &mut self.kept, &mut self.facts.levels);
        match (&mut self.cycle, &self.plans) {
            (AnyCycle::Full(cycle), Plans::Full(plans)) => {
                let write = |from: &B::Slice<T>, to: &mut B::Slice<T>| backend.copy(from, to);
                let made = |new| {
                    let (levels, coarsest) = of_new(a.copied(backend)?, new);
                    cycle_of(backend, levels, coarsest, None, options)
                };
                take_over(backend, a, (cycle, plans, kept, facts), options, &made, &write, &Ok)
            }
            (AnyCycle::Lower(cycle), Plans::Full(plans)) => {
                let write = |from: &B::Slice<T>, to: &mut B::Slice<T::Lower>| {
                    backend.narrow::<T>(num_traits::One::one(), from, to)
                };
                let made = |new| {
                    let (levels, coarsest) = of_new(a.copied(backend)?, new);
                    narrow_cycle_of(backend, levels, coarsest, options)
                };
                let narrowed = |inverse: Csr<T, B>| inverse.into_rounded(backend);
                take_over(backend, a, (cycle, plans, kept, facts), options, &made, &write, &narrowed)
            }
            (AnyCycle::Lower(cycle), Plans::Lower(plans)) => {
                let a = &a.to_rounded(backend)?;
                let write = |from: &B::Slice<T::Lower>, to: &mut B::Slice<T::Lower>| backend.copy(from, to);
                let made = |new| {
                    let (levels, coarsest) = of_new(a.copied(backend)?, new);
                    cycle_of(backend, levels, coarsest, None, options)
                };
                take_over(backend, a, (cycle, plans, kept, facts), options, &made, &write, &Ok)
            }
            (AnyCycle::Full(_), Plans::Lower(_)) => unreachable!("a cycle is no wider than its levels"),
        }
    }

    fn steps(&self) -> usize {
        let of_cycle = match &self.cycle {
            AnyCycle::Full(cycle) => cycle.steps(),
            AnyCycle::Lower(cycle) => cycle.steps() + 2,
        };
        of_cycle + if self.scaled.is_some() { 2 } else { 0 }
    }

    fn bytes(&self) -> usize {
        let vectors = self.len() * (2 * size_of::<T>() + 2 * size_of::<T::Lower>());
        let of_cycle = match &self.cycle {
            AnyCycle::Full(cycle) => cycle.bytes(),
            AnyCycle::Lower(cycle) => cycle.bytes() + vectors,
        };
        of_cycle + if self.scaled.is_some() { 6 * self.len() * size_of::<T>() } else { 0 }
    }
}
