//! Algebraic multigrid: a preconditioner with which iterations hardly grow with the size of a matrix.
//!
//! ```text
//! A_0 = A            smooth, residual ------------------------------> add correction, smooth
//!                         | R_0 = P_0^H                                    ^ P_0
//! A_1 = R_0 A_0 P_0         smooth, residual ------------> add correction, smooth
//!                                | R_1                          ^ P_1
//! A_2 = R_1 A_1 P_1                solve: the inverse, 400 rows at most, 600 with stiff ones
//! ```
//!
//! What smoothing leaves of an error hardly changes along strong couplings, so few unknowns represent it. Nodes that
//! are coupled strongly form aggregates, one for each node of the next level, and the prolongation P takes a vector
//! that A takes near to zero (constants; rigid body modes in elasticity) exactly there and back. Smoothed once, P costs
//! more entries and saves more iterations: smoothed aggregation (Vanek, Mandel and Brezina, Algebraic multigrid by
//! smoothed aggregation for second and fourth order elliptic problems, Computing 56, 1996).
//!
//! | file | what it holds |
//! |---|---|
//! | `strength` | which couplings are strong, and the matrix without the others |
//! | `stiff` | unknowns of very flat elements, which the next level has too |
//! | `independent`, `aggregate` | an independent set at distance two, and the aggregates around it |
//! | `tentative` | P before smoothing, from near-null vectors |
//! | `energy` | P of least energy |
//! | `setup` | levels from the finest to the coarsest |
//! | `again` | the same levels for new values |
//! | `smoother` | Chebyshev's iteration on scaled residuals |
//! | `matching` | blocks of strongly coupled unknowns, by matching |
//! | `blocks` | their inverses |
//! | `grid` | levels of grids |
//! | `on_grid` | the matrix of such a level: a stencil, or diagonals |
//! | `dense` | the inverse of the coarsest matrix |
//! | `modes` | near-null vectors of elasticity |
//! | `cycle` | the way through the levels, on any backend |
//! | `spread` | levels whose rows are spread over several parts |

use crate::backend::{
    CoarseningSteps, Conversions, Diagonals, GridSteps, PreconditionSteps, Products, RowFacts,
};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::parallel::beside;
use crate::precondition::{Preconditioner, Workspace};
use crate::scalar::Scalar;
use std::sync::Arc;

mod again;
mod aggregate;
mod blocks;
mod cycle;
mod dense;
mod energy;
mod grid;
mod independent;
mod matching;
mod modes;
mod on_grid;
mod options;
mod setup;
mod smoother;
mod spread;
mod stiff;
mod strength;
mod tentative;

use again::{Kept, NewLevel};
use blocks::{Blocks, Scales};
use cycle::{Coarsest, Cycle, Level, Stored, Transfer};
pub(crate) use grid::of_distances;
pub use modes::rigid_body_modes;
pub use options::{LevelFacts, MultigridFacts, MultigridOptions, Prolongation, Smoothing};
use setup::{Hierarchy, Matrices, Plan, longest_row};
use smoother::{Scaling, Smoother};
pub(crate) use spread::{planes, seeming_grid, some_distances};
use tentative::{NearNull, Vectors};

/// A coarsest matrix of more rows than this has no inverse stored.
const MOST_DENSE: usize = 1200;

/// With longer rows a cycle stays in full precision: sums of so many entries in half of it are as coarse as what keeps
/// such a matrix from being singular. On a graph one of whose vertices has 42 000 neighbours, weights over six decades,
/// conjugate gradients take 14 iterations so, and with single precision do not arrive in hundreds.
const LONGEST_IN_HALF: u32 = 10_000;

/// Steps of smoothing that stand for the solution of a coarsest system without an inverse.
const COARSEST_STEPS: usize = 8;

/// What multigrid asks of a backend: all of its levels are built and multiplied with where the matrix lies.
pub trait MultigridBackend:
    Products + Conversions + PreconditionSteps + GridSteps + CoarseningSteps + RowFacts
{
}
impl<B> MultigridBackend for B where
    B: Products + Conversions + PreconditionSteps + GridSteps + CoarseningSteps + RowFacts
{
}

/// M = one cycle: for a Hermitian positive definite A, M is so too, and for others see
/// [`MultigridOptions::real_eigenvalues`]. It owns all that it needs of A, unless A is shared ([`Multigrid::share`]).
///
/// Where A is on a grid of points whose couplings along all axes are about as strong, levels are grids, set up where A
/// lies. Else aggregates are found and prolongations smoothed on the host. Cycles run on any backend, allocate nothing
/// and wait for nothing. The same A gives the same bits, whatever the number of threads.
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
    /// What new values are computed in, from the first on.
    kept: Option<Kept<B>>,
    options: MultigridOptions,
    facts: MultigridFacts,
    /// Rows of this part, where the matrix is spread over several.
    own: Option<usize>,
}

/// In which precision a cycle runs.
#[derive(Debug)]
enum AnyCycle<T: Scalar, B: MultigridBackend> {
    Full(Cycle<T, B>),
    Narrow(Cycle<T::Narrow, B>),
}

/// What is kept for new values, in the precision in which levels are computed.
#[derive(Debug)]
enum Plans<T: Scalar, B: MultigridBackend> {
    Full(Vec<Plan<T, B>>),
    /// Where the cycle runs in half the precision, and each unknown is a node whose near-null vector is one: levels are
    /// rounded in the end anyway, and half the bytes are moved for them.
    Narrow(Vec<Plan<T::Narrow, B>>),
}

/// The cycle of levels (matrix, prolongation, restriction) and a coarsest matrix. `scales`: those of the finest level,
/// where they are known.
fn cycle_of<T: Scalar, B: MultigridBackend>(
    backend: &B,
    levels: Matrices<T, B>,
    coarsest: Csr<T, B>,
    scales: Option<Scales<T, B>>,
    options: &MultigridOptions,
) -> Result<Cycle<T, B>> {
    moved(backend, levels.into_iter(), coarsest, scales, options, Ok)
}

/// The same in half the precision.
fn narrow_cycle_of<T: Scalar, B: MultigridBackend>(
    backend: &B,
    levels: Matrices<T, B>,
    coarsest: Csr<T, B>,
    options: &MultigridOptions,
) -> Result<Cycle<T::Narrow, B>> {
    moved(backend, levels.into_iter(), coarsest, None, options, |a: Csr<T, B>| a.into_rounded(backend))
}

/// Levels for new values, as [`cycle_of`] takes them, and the coarsest matrix.
fn of_new<T: Scalar, B: MultigridBackend>(
    a: Csr<T, B>,
    new: Vec<NewLevel<T, B>>,
) -> (Matrices<T, B>, Csr<T, B>) {
    let (mut matrix, mut levels) = (a, Vec::with_capacity(new.len()));
    for NewLevel { prolongation, restriction, coarse } in new {
        levels.push([std::mem::replace(&mut matrix, coarse), prolongation, restriction]);
    }
    (levels, matrix)
}

impl<T: Scalar, B: MultigridBackend> Multigrid<T, B> {
    /// A hierarchy for A, from vectors of ones.
    ///
    /// # Errors
    /// Where A is not square or has entries that are infinite or NaN, without memory, or when the device fails.
    pub fn new(backend: &B, a: &Csr<T, B>, options: &MultigridOptions) -> Result<Self> {
        Self::build(backend, a, None, options)
    }

    /// The same from near-null vectors: vectors which a matrix without boundary conditions takes to zero, such as the
    /// rigid body modes in elasticity. Entry (i, j) of `near_null`, vector j at row i, is at i * `vectors` + j.
    ///
    /// # Errors
    /// As [`Multigrid::new`]; for no vectors, or of another length.
    pub fn with_near_null(
        backend: &B,
        a: &Csr<T, B>,
        vectors: usize,
        near_null: Vec<T>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        Error::check_dimension("entries of the near-null vectors", a.rows() * vectors, near_null.len())?;
        if vectors == 0 {
            return Err(Error::InvalidArgument("multigrid from no near-null vectors".into()));
        }
        let alone = vectors == 1 && options.unknowns_a_node == 1;
        let near_null = if alone && near_null.iter().all(|value| *value == T::from_real(value.re())) {
            NearNull::One(backend.upload(near_null.iter().map(|value| value.re()).collect())?)
        } else {
            NearNull::Several(Vectors { count: vectors, rows: near_null })
        };
        Self::build(backend, a, Some(near_null), options)
    }

    fn build(
        backend: &B,
        a: &Csr<T, B>,
        near_null: Option<NearNull<T, B>>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        options.check()?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if options.boxes
            && options.unknowns_a_node == 1
            && near_null.is_none()
            && let Some(this) = Self::on_grid(backend, a, options, None)?
        {
            return Ok(this);
        }
        check_finite(backend, a)?;
        // Flat elements, which ask for blocks, spoil levels in half of the precision: a Delaunay mesh of 10^6 points
        // takes 81 iterations in full, and ends after 209 in half, where a cycle is no longer positive definite.
        let mut full = options.is_narrow::<T>() && longest_row(backend, a)? > LONGEST_IN_HALF;
        let (mut rounded, mut in_blocks) = (None, None);
        if options.is_narrow::<T>() && !full && options.unknowns_a_node == 1 && near_null.is_none() {
            let a = a.to_rounded(backend)?;
            let scales = Scales::new(backend, &a)?;
            if options.real_eigenvalues {
                full = options.smoothing != Smoothing::Diagonal && scales.blocks_pay(backend)?;
                in_blocks = Some(full);
            }
            rounded = Some((a, scales));
        }
        let options = &if full { options.clone().narrow(false) } else { options.clone() };
        let of_energy = options.prolongation == Prolongation::LeastEnergy;
        if of_energy && (options.unknowns_a_node > 1 || near_null.is_some() || !options.real_eigenvalues) {
            let what = "a prolongation of least energy for nodes of several unknowns, given vectors, or a matrix that \
                        is not Hermitian";
            return Err(Error::Unsupported(what.into()));
        }
        if let Some((a, scales)) = rounded.filter(|_| !full) {
            let hierarchy = Hierarchy::new(backend, a, None, in_blocks, options)?;
            let (facts, (levels, coarsest, plans)) = (hierarchy.facts(), hierarchy.into_parts());
            let cycle = AnyCycle::Narrow(cycle_of(backend, levels, coarsest, Some(scales), options)?);
            return Ok(Self::general(cycle, Plans::Narrow(plans), facts, options));
        }
        let hierarchy = Hierarchy::new(backend, a.copied(backend)?, near_null, in_blocks, options)?;
        let (facts, (levels, coarsest, plans)) = (hierarchy.facts(), hierarchy.into_parts());
        let cycle = if options.is_narrow::<T>() {
            AnyCycle::Narrow(narrow_cycle_of(backend, levels, coarsest, options)?)
        } else {
            AnyCycle::Full(cycle_of(backend, levels, coarsest, None, options)?)
        };
        Ok(Self::general(cycle, Plans::Full(plans), facts, options))
    }

    fn general(
        cycle: AnyCycle<T, B>,
        plans: Plans<T, B>,
        levels: Vec<LevelFacts>,
        options: &MultigridOptions,
    ) -> Self {
        let facts = MultigridFacts { levels, grid: false };
        Self { cycle, plans, kept: None, options: options.clone(), facts, own: None }
    }

    /// A hierarchy of grids, where the matrix is on one; `known`: its diagonals, where somebody has looked for them.
    ///
    /// # Errors
    /// As [`Multigrid::new`].
    pub(crate) fn on_grid(
        backend: &B,
        a: &Csr<T, B>,
        options: &MultigridOptions,
        known: Option<&Diagonals>,
    ) -> Result<Option<Self>> {
        let Some(found) = grid::suited(backend, a, options, known)? else { return Ok(None) };
        let made = if options.is_narrow::<T>() {
            let made = grid::narrow_hierarchy(backend, a, found, options)?;
            made.map(|(cycle, facts)| (AnyCycle::Narrow(cycle), facts))
        } else {
            let made = grid::hierarchy(backend, a, found, options)?;
            made.map(|(cycle, facts)| (AnyCycle::Full(cycle), facts))
        };
        Ok(made.map(|(cycle, facts)| Self {
            cycle,
            plans: Plans::Full(Vec::new()),
            kept: None,
            options: options.clone(),
            facts,
            own: None,
        }))
    }

    /// Takes A in the place of its own copy, from whoever has it in any format: values as they are, rows and columns in
    /// the same order. A cycle in half of the precision has a rounded copy, and keeps that; so does one on grids.
    ///
    /// The next new values are as the first ones: a copy of A is made, and what depends on their pattern.
    ///
    /// # Errors
    /// For a matrix of other dimensions.
    pub fn share(&mut self, a: Arc<dyn LinearOperator<T, B>>) -> Result<()> {
        Error::check_dimension("rows of the matrix", self.len(), a.rows())?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if let AnyCycle::Full(cycle) = &mut self.cycle
            && let Some(level) = cycle.levels.first_mut()
            && let Stored::Rows(_) = level.a
        {
            level.a = Stored::Shared(a);
            self.kept = None;
        }
        Ok(())
    }

    /// The levels, finest first.
    pub fn facts(&self) -> &MultigridFacts {
        &self.facts
    }

    /// Entries of the vectors that it is applied to.
    fn len(&self) -> usize {
        self.own.unwrap_or(self.facts.levels[0].rows)
    }

    /// Bytes of all matrices of the cycle, and of what is kept for new values.
    pub fn storage_bytes(&self) -> usize {
        let cycle = match &self.cycle {
            AnyCycle::Full(cycle) => cycle.storage_bytes(),
            AnyCycle::Narrow(cycle) => cycle.storage_bytes(),
        };
        let plans = match &self.plans {
            Plans::Full(plans) => plans.iter().map(|plan| plan.storage_bytes()).sum::<usize>(),
            Plans::Narrow(plans) => plans.iter().map(|plan| plan.storage_bytes()).sum::<usize>(),
        };
        cycle + plans + self.kept.as_ref().map_or(0, Kept::storage_bytes)
    }
}

/// Refuses a matrix that is not finite.
fn check_finite<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<()> {
    // One pass where the matrix lies: squares that overflow are looked at one by one.
    let mut sum = backend.zeros::<T::Real>(1)?;
    backend.norm2_squared(a.parts().values, &mut sum)?;
    let finite = num_traits::Float::is_finite(backend.value(&sum)?)
        || backend.download(a.parts().values)?.into_iter().all(Scalar::is_finite);
    if finite { Ok(()) } else { Err(Error::InvalidMatrix("an entry is infinite or NaN".into())) }
}

/// The inverse of the coarsest matrix, where it is small enough for one.
fn inverse_of<T: Scalar, B: MultigridBackend>(
    backend: &B,
    coarsest: &Csr<T, B>,
    options: &MultigridOptions,
) -> Result<Option<Csr<T, B>>> {
    let Some(coarsest) = small_to_host(backend, coarsest)? else { return Ok(None) };
    inverse_on_host(&coarsest, options)?.into_backend(backend).map(Some)
}

/// The coarsest matrix, where it is small enough for its inverse.
fn small_to_host<T: Scalar, B: MultigridBackend>(
    backend: &B,
    coarsest: &Csr<T, B>,
) -> Result<Option<Csr<T>>> {
    (coarsest.rows() <= MOST_DENSE).then(|| coarsest.to_host(backend)).transpose()
}

fn inverse_on_host<T: Scalar>(coarsest: &Csr<T>, options: &MultigridOptions) -> Result<Csr<T>> {
    let inverse = if options.real_eigenvalues { dense::inverse } else { dense::general_inverse };
    inverse(coarsest)
}

/// The cycle of levels (matrix, prolongation, restriction) and a coarsest matrix; `rounded` brings matrices to its
/// precision. `scales`: those of the finest level, where they are known. The coarsest matrix is inverted by another
/// thread of the host meanwhile.
fn moved<T: Scalar, S: Scalar<Narrow = T::Narrow>, B: MultigridBackend>(
    backend: &B,
    levels: impl Iterator<Item = [Csr<T, B>; 3]>,
    coarsest: Csr<T, B>,
    scales: Option<Scales<S, B>>,
    options: &MultigridOptions,
    rounded: impl Fn(Csr<T, B>) -> Result<Csr<S, B>>,
) -> Result<Cycle<S, B>> {
    let small = small_to_host(backend, &coarsest)?;
    let large = if small.is_some() { None } else { Some(rounded(coarsest)?) };
    let (mut matrices, mut transfers) = (Vec::new(), Vec::new());
    for [a, prolongation, restriction] in levels {
        matrices.push(rounded(a)?);
        let (prolongation, restriction) =
            (prolongation.into_rounded(backend)?, restriction.into_rounded(backend)?);
        transfers.push(Transfer::Matrices { prolongation, restriction });
    }
    let smoothed = || {
        let levels = matrices.iter().map(|a| (a, None));
        smoothers(backend, levels.chain(large.as_ref().map(|a| (a, Some(COARSEST_STEPS)))), scales, options)
    };
    let inverted = || small.map(|coarsest| inverse_on_host(&coarsest, options)).transpose();
    let (inverse, smoothers) = beside(inverted, smoothed);
    let mut smoothers = smoothers?;
    let coarsest = match (inverse?, large) {
        (Some(inverse), _) => Some(Coarsest::Inverse(rounded(inverse.into_backend(backend)?)?)),
        (None, Some(a)) => smoothers.pop().map(|smoother| Coarsest::Smoothed(Stored::Rows(a), smoother)),
        (None, None) => None,
    };
    let parts = matrices.into_iter().zip(smoothers).zip(transfers);
    let level = |((a, smoother), transfer)| Level { a: Stored::Rows(a), smoother, transfer, twice: false };
    Ok(Cycle {
        levels: parts.map(level).collect(),
        coarsest: coarsest.expect("a coarsest matrix is inverted or smoothed"),
        chebyshev: options.real_eigenvalues,
    })
}

/// New numbers in the matrices of a cycle, whose patterns are those of the levels that were kept.
fn renew<T: Scalar, S: Scalar<Narrow = T::Narrow>, B: MultigridBackend>(
    backend: &B,
    cycle: &mut Cycle<S, B>,
    (a, new): (&Csr<T, B>, &[NewLevel<T, B>]),
    inverse: Option<Csr<T, B>>,
    write: impl Fn(&B::Slice<T>, &mut B::Slice<S>) -> Result<()>,
    narrowed: impl Fn(Csr<T, B>) -> Result<Csr<S, B>>,
) -> Result<()> {
    let mut matrix = a;
    for (level, from) in cycle.levels.iter_mut().zip(new) {
        if let Stored::Rows(a) = &mut level.a {
            write(matrix.parts().values, a.values_mut())?;
        }
        if let Transfer::Matrices { prolongation, restriction } = &mut level.transfer {
            let one = num_traits::One::one();
            backend.narrow::<T>(one, from.prolongation.parts().values, prolongation.values_mut())?;
            backend.narrow::<T>(one, from.restriction.parts().values, restriction.values_mut())?;
        }
        matrix = &from.coarse;
    }
    if let Some(inverse) = inverse {
        cycle.coarsest = Coarsest::Inverse(narrowed(inverse)?);
    } else if let Coarsest::Smoothed(Stored::Rows(a), _) = &mut cycle.coarsest {
        write(matrix.parts().values, a.values_mut())?;
    }
    let levels = cycle.levels.iter_mut().map(|level| (&level.a, &mut level.smoother));
    let coarsest = match &mut cycle.coarsest {
        Coarsest::Smoothed(a, smoother) => Some((&*a, smoother)),
        _ => None,
    };
    let in_rows = levels.chain(coarsest).filter_map(|(a, smoother)| match a {
        Stored::Rows(a) => Some((a, smoother)),
        _ => None,
    });
    Smoother::renew(backend, in_rows)
}

/// What new values change: the cycle, what is kept for them, and what is told of the levels.
type Changed<'a, T, S, B> =
    (&'a mut Cycle<S, B>, &'a [Plan<T, B>], &'a mut Option<Kept<B>>, &'a mut Vec<LevelFacts>);

/// Takes new values over: the first time by a cycle that is made anew, then into its matrices.
fn take_over<T: Scalar, S: Scalar<Narrow = T::Narrow>, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    (cycle, plans, kept, facts): Changed<'_, T, S, B>,
    options: &MultigridOptions,
    made: impl FnOnce(Vec<NewLevel<T, B>>) -> Result<Cycle<S, B>>,
    (write, narrowed): (
        impl Fn(&B::Slice<T>, &mut B::Slice<S>) -> Result<()>,
        impl Fn(Csr<T, B>) -> Result<Csr<S, B>>,
    ),
) -> Result<()> {
    let Some(kept) = kept else {
        let (known, new) = Kept::new(backend, a, plans)?;
        let levels = facts[..1].iter().copied().chain(again::facts(&new)).collect();
        *cycle = made(new)?;
        (*facts, *kept) = (levels, Some(known));
        return Ok(());
    };
    let new = kept.again(backend, a, plans, cycle)?;
    let inverse = inverse_of(backend, new.last().map_or(a, |level| &level.coarse), options)?;
    renew(backend, cycle, (a, &new), inverse, write, narrowed)
}

/// Smoothing on each of the levels, of so many steps where they say so; the scales of the first may be known. 1 bounds
/// the eigenvalues unless blocks say otherwise. Where nothing is said of blocks, the first level decides.
fn smoothers<'a, T: Scalar, B: MultigridBackend>(
    backend: &B,
    levels: impl Iterator<Item = (&'a Csr<T, B>, Option<usize>)>,
    mut known: Option<Scales<T, B>>,
    options: &MultigridOptions,
) -> Result<Vec<Smoother<T, B>>> {
    let scaled = levels.map(|(a, steps)| {
        let scales = known.take().map_or_else(|| Scales::new(backend, a), Ok)?;
        Ok((a, steps, scales))
    });
    let all = scaled.collect::<Result<Vec<_>>>()?;
    let in_blocks = match options.smoothing {
        Smoothing::Auto => all.first().map_or(Ok(false), |(.., scales)| scales.blocks_pay(backend))?,
        Smoothing::Diagonal => false,
        Smoothing::Blocks => true,
    };
    let smoother = |scaling, steps: Option<usize>, largest| {
        let steps = steps.unwrap_or_else(|| options.smoothing_steps(in_blocks));
        if options.real_eigenvalues {
            Smoother::new(scaling, steps, largest)
        } else {
            Smoother::plain(scaling, steps)
        }
    };
    if !in_blocks {
        let by_sums = |(_, steps, scales): (_, _, Scales<T, B>)| {
            smoother(Scaling::Diagonal(scales.of_sums), steps, 1.0)
        };
        return Ok(all.into_iter().map(by_sums).collect());
    }
    let scaled: Vec<_> = all.iter().map(|(a, _, scales)| (*a, scales)).collect();
    let mut of_all = Scales::blocks(backend, &scaled, options.real_eigenvalues)?;
    let largest = if options.real_eigenvalues {
        let mut both: Vec<_> = all.iter().map(|(a, ..)| *a).zip(&mut of_all).collect();
        Blocks::renew(backend, &mut both)?
    } else {
        let each = all.iter().zip(&mut of_all);
        each.map(|((a, ..), blocks)| blocks.renew_bounded(backend, a).map(|()| 1.0)).collect::<Result<_>>()?
    };
    let in_blocks = all.iter().zip(of_all).zip(largest);
    let made = in_blocks
        .map(|(((_, steps, _), blocks), largest)| smoother(Scaling::Blocks(blocks), *steps, largest));
    Ok(made.collect())
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
        match &self.cycle {
            AnyCycle::Full(cycle) => cycle.work_len(),
            AnyCycle::Narrow(_) => 0,
        }
    }

    fn narrow_work_len(&self) -> usize {
        match &self.cycle {
            AnyCycle::Full(_) => 0,
            AnyCycle::Narrow(cycle) => 2 * cycle.rows() + cycle.work_len(),
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
        match &self.cycle {
            AnyCycle::Full(cycle) => cycle.apply(backend, r, z, work.full),
            AnyCycle::Narrow(cycle) => {
                let (low_r, rest) = B::split_mut(work.narrow, n);
                let (low_z, rest) = B::split_mut(rest, n);
                backend.narrow::<T>(num_traits::One::one(), r, low_r)?;
                cycle.apply(backend, low_r, low_z, rest)?;
                backend.widen::<T>(low_z, z)
            }
        }
    }

    /// Takes new values of a matrix over that has the pattern of the one before, or refuses it. Aggregates are kept, and from the
    /// second time on which couplings count as strong and where all products have entries too, so that numbers alone
    /// are computed. After a matrix that is refused, the preconditioner is as it was.
    fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        if self.own.is_some() {
            return Err(Error::Unsupported("new values of multigrid on several parts".into()));
        }
        let finest = self.facts.levels[0];
        Error::check_dimension("rows of the matrix", finest.rows, a.rows())?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if self.facts.grid || self.options.prolongation == Prolongation::LeastEnergy {
            *self = Self::new(backend, a, &self.options)?;
            return Ok(());
        }
        Error::check_dimension("entries of the matrix", finest.entries, a.nonzeros())?;
        let known = match &self.cycle {
            AnyCycle::Full(cycle) => cycle.pattern(),
            AnyCycle::Narrow(cycle) => cycle.pattern(),
        };
        if let Some(known) = known
            && !again::same_pattern(backend, a.parts().pattern(), known)?
        {
            return Err(Error::InvalidArgument(
                "new values of multigrid in a matrix of another pattern".into(),
            ));
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
                take_over(backend, a, (cycle, plans, kept, facts), options, made, (write, Ok))
            }
            (AnyCycle::Narrow(cycle), Plans::Full(plans)) => {
                let write = |from: &B::Slice<T>, to: &mut B::Slice<T::Narrow>| {
                    backend.narrow::<T>(num_traits::One::one(), from, to)
                };
                let made = |new| {
                    let (levels, coarsest) = of_new(a.copied(backend)?, new);
                    narrow_cycle_of(backend, levels, coarsest, options)
                };
                let narrowed = |inverse: Csr<T, B>| inverse.into_rounded(backend);
                take_over(backend, a, (cycle, plans, kept, facts), options, made, (write, narrowed))
            }
            (AnyCycle::Narrow(cycle), Plans::Narrow(plans)) => {
                let a = &a.to_rounded(backend)?;
                let write = |from: &B::Slice<T::Narrow>, to: &mut B::Slice<T::Narrow>| backend.copy(from, to);
                let made = |new| {
                    let (levels, coarsest) = of_new(a.copied(backend)?, new);
                    cycle_of(backend, levels, coarsest, None, options)
                };
                take_over(backend, a, (cycle, plans, kept, facts), options, made, (write, Ok))
            }
            (AnyCycle::Full(_), Plans::Narrow(_)) => unreachable!("a cycle is no wider than its levels"),
        }
    }

    fn steps(&self) -> usize {
        match &self.cycle {
            AnyCycle::Full(cycle) => cycle.steps(),
            AnyCycle::Narrow(cycle) => cycle.steps() + 2,
        }
    }

    fn bytes(&self) -> usize {
        let vectors = self.len() * (2 * size_of::<T>() + 2 * size_of::<T::Narrow>());
        match &self.cycle {
            AnyCycle::Full(cycle) => cycle.bytes(),
            AnyCycle::Narrow(cycle) => cycle.bytes() + vectors,
        }
    }
}
