//! A solver whose unknowns are distributed over several ranks: processes, or threads of this one.
//!
//! Orderings and preconditioners, which each rank makes for itself, and sums and halos, which are collective, are
//! implemented elsewhere. This file chooses what is used, and the order in which stages are tried, as `plan` and `core`
//! do for a single rank. All ranks make the same decisions, since these depend only on a matrix that each rank has as a
//! whole, and on what ranks tell each other of their rows.
//!
//! ```text
//! rows on the host -> in the backend's memory -> own columns, and the entries beside them -> checks, norms
//!                  -> format of the own columns -> operator with exchanges -> stages
//! ```

use super::builder::Builder;
use super::consensus::{Share, of_all, ordered, refuse, shares, together};
use super::finite;
use super::forecast::expected_products;
use super::hierarchy::Known;
use super::names::{AUTO, Method, PreconditionerChoice as Name, Reorder};
use super::parted::{Block, Sources, Stage};
use super::plan::timed;
use super::preconditioner::AnyPreconditioner;
use super::report::{Decision, Seconds, Trail};
use super::sign::{NEGATED, all_with_positive_diagonals, first_curvature};
use super::single_rank::{self, SingleRank};
use super::symmetry;
use super::{Solvable, SolverBackend};
use crate::backend::{Communicator, ExchangePlan, Host, PreconditionSteps, Space};
use crate::error::{Error, Result};
use crate::graph::Permutation;
use crate::krylov::SolveOptions;
use crate::matrix::{self, ChoiceOptions, Csr};
use crate::multigrid::{planes, seeming_grid, some_distances};
use crate::operator::LinearOperator;
use crate::scalar::{Promote, Scalar, Symmetry};
use crate::spread::{Edge, Spread, balanced_parts, check_parts, joined_rows, rows_on, split};
use crate::verdict::RowNorms;
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A rank's own rows and columns in their format: its name, why it was chosen, and the operator.
type StoredAs<T, B> = (&'static str, String, Box<dyn LinearOperator<T, B>>);

fn stored_as<T: Scalar, V: Scalar + Promote<T>, B: SolverBackend>(
    backend: &B,
    own: Csr<V, B>,
    options: &ChoiceOptions,
) -> Result<StoredAs<T, B>> {
    let (stored, report) = matrix::choose::<T, V, B>(backend, own, options)?.into_parts();
    let values = if V::NAME == T::NAME { String::new() } else { format!(", values in {}", V::NAME) };
    Ok((stored.format(), format!("{report}{values}"), stored))
}

/// The format that suits this rank's block, if the caller names none; `n` is the number of all unknowns.
fn stored<T: Scalar, B: SolverBackend>(
    backend: &B,
    own: Csr<T, B>,
    wishes: &Builder,
    n: usize,
) -> Result<StoredAs<T, B>> {
    if wishes.format != AUTO {
        return Ok((Csr::<T>::NAME, "the format of distributed matrices".into(), Box::new(own)));
    }
    let options =
        ChoiceOptions::default().products(expected_products(n, 1, wishes.max_iterations)).measured(false);
    // Values that a narrower type holds exactly are stored in it, as on one process. x has the same bits.
    let narrow = if <B as PreconditionSteps>::IS_DEVICE { Err(own) } else { own.into_lower(backend)? };
    match narrow {
        Ok(narrow) => stored_as::<T, T::Lower, B>(backend, narrow, &options),
        Err(own) => stored_as::<T, T, B>(backend, own, &options),
    }
}

/// Seconds of the parts of a distributed build, on this rank ([`SpreadSolver::build_seconds`]).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct BuildSeconds {
    /// Copying this rank's rows to the backend's memory.
    pub rows: f64,
    /// Dividing them into the rank's own columns and the others, and preparing exchanges.
    pub halo: f64,
    /// Norms, signs, symmetry.
    pub look: f64,
    /// Choosing a format, and converting to it.
    pub format: f64,
    /// Setting up preconditioners.
    pub levels: f64,
    /// The part of all these that went into compiling and loading kernels.
    pub first_use: f64,
}

/// Adds the time since the last call to one of the parts, after the backend's work.
struct Clock<'a, B>(&'a B, Instant);

impl<B: SolverBackend> Clock<'_, B> {
    fn lap(&mut self, part: &mut f64) -> Result<()> {
        self.0.synchronize()?;
        *part += self.1.elapsed().as_secs_f64();
        self.1 = Instant::now();
        Ok(())
    }
}

/// The rows of this rank, as the caller has them.
enum Given<'a, T: Scalar, B: SolverBackend> {
    /// Some rows of a matrix on the host.
    OnHost(&'a Csr<T>, Range<usize>),
    /// These rows alone, in the backend's memory.
    There(Csr<T, B>),
}

/// What is known of the matrix before it is divided.
struct Before {
    found: Option<symmetry::Found>,
    ranges: Vec<Range<usize>>,
    order: Option<Permutation>,
    decision: Decision,
    trail: Trail,
    seconds: Seconds,
}

impl Before {
    /// For rows that the caller has distributed.
    fn distributed(rows: &[Range<usize>]) -> Self {
        Self {
            found: None,
            ranges: rows.to_vec(),
            order: None,
            decision: Decision::new("order", "no", "the rows were distributed by the caller"),
            trail: Trail::default(),
            seconds: Seconds::default(),
        }
    }
}

/// Solves A x = b together with the other ranks of a communicator ([`Builder::build_spread`]). All ranks call the same
/// functions in the same order.
pub struct SpreadSolver<T: Solvable, B: SolverBackend, C: Communicator<B>> {
    pub(super) space: Space<B, C>,
    pub(super) options: SolveOptions,
    pub(super) time_limit: Option<Duration>,
    /// None if rank 0 solves alone.
    pub(super) operator: Option<Arc<Spread<T, B, C>>>,
    pub(super) lone: Option<SingleRank<T>>,
    pub(super) stages: Vec<Stage<T, B>>,
    /// This rank's block and the entries beside it, if a stage is yet to be set up from them.
    pub(super) rows: Option<(Csr<T, B>, Edge<T>)>,
    /// True if -A is stored, and solved for -x.
    pub(super) negated: bool,
    /// The caller's numbers of this rank's unknowns.
    pub(super) numbers: Vec<u32>,
    pub(super) parts: Vec<Range<usize>>,
    pub(super) order: Option<Permutation>,
    pub(super) shares: Vec<Share>,
    pub(super) symmetry: Symmetry,
    /// A diagonal entry that proves that A is not positive definite.
    pub(super) curvature: Option<f64>,
    /// The norms by which residuals are judged; none if rank 0 solves alone.
    pub(super) norms: Option<RowNorms<T, B>>,
    pub(super) seconds: Seconds,
    pub(super) spent: BuildSeconds,
    pub(super) trail: Trail,
    pub(super) history: Vec<f64>,
    pub(super) device: Arc<str>,
}

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> fmt::Debug for SpreadSolver<T, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpreadSolver of {} unknowns, {} of them here", self.columns(), self.numbers.len())
    }
}

impl Builder {
    /// A solver for a square matrix whose rows are distributed over the ranks of a communicator. Each rank is given the
    /// whole matrix and keeps its own rows; ranks have contiguous rows in the chosen order, with about equally many
    /// stored entries. Distributed solves do not support factorisations, two precisions, and formats other than CSR.
    /// Preconditioners are those of each rank's own rows and columns, except for the diagonal, polynomials and
    /// multigrid, which are those of the whole matrix (multigrid if each node has one unknown).
    ///
    /// # Errors
    /// As [`Builder::build`], if there are more ranks than rows, and if another rank has failed.
    pub fn build_spread<T: Solvable, B: SolverBackend, C: Communicator<B>>(
        &self,
        backend: &B,
        communicator: C,
        a: &Csr<T, Host>,
    ) -> Result<SpreadSolver<T, B, C>> {
        self.check()?;
        SpreadSolver::of_whole(Space::spread(backend.clone(), communicator), self, a)
    }

    /// [`Builder::build_spread`] for ranks that have only their own rows: `a` has the size of the whole matrix, and
    /// rows of other ranks are empty. `rows` are the rows of each rank; the order stays the caller's.
    ///
    /// # Errors
    /// As [`Builder::build_spread`], and if the rows of all ranks do not follow one another.
    pub fn build_spread_rows<T: Solvable, B: SolverBackend, C: Communicator<B>>(
        &self,
        backend: &B,
        communicator: C,
        a: &Csr<T, Host>,
        rows: &[Range<usize>],
    ) -> Result<SpreadSolver<T, B, C>> {
        self.check()?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        check_parts(a.rows(), rows, communicator.parts())?;
        let given = Given::OnHost(a, rows[communicator.part()].clone());
        let space = Space::spread(backend.clone(), communicator);
        SpreadSolver::of_rows(space, self, given, Before::distributed(rows))
    }

    /// [`Builder::build_spread_rows`] for rows in the backend's memory: `a` has this rank's rows alone, and columns have
    /// the numbers of the whole matrix. Nothing of it is copied to the host but entries in columns of other ranks.
    ///
    /// ```
    /// use residua::backend::{Communicator, Parts};
    /// use residua::prelude::*;
    /// // | 2 1 |, a row each for two threads; on GPUs a rank is a process
    /// // | 1 2 |
    /// let rows = [0..1, 1..2];
    /// let solve = |part: Parts| -> Result<f64> {
    ///     let number = Communicator::<Host>::part(&part);
    ///     let values = if number == 0 { vec![2.0, 1.0] } else { vec![1.0, 2.0] };
    ///     let own = Csr::from_parts(1, 2, vec![0, 2], vec![0, 1], values)?.into_backend(&Host)?;
    ///     let mut solver = Solver::builder().build_spread_rows_on(&Host, part, own, &rows)?;
    ///     let mut x = vec![0.0];
    ///     solver.solve_into(&[3.0], &mut x)?;
    ///     Ok(x[0])
    /// };
    /// let solve = &solve;
    /// std::thread::scope(|scope| {
    ///     for thread in Parts::new(2).into_iter().map(|part| scope.spawn(move || solve(part))).collect::<Vec<_>>() {
    ///         assert!((thread.join().unwrap().unwrap() - 1.0).abs() < 1e-7);
    ///     }
    /// });
    /// ```
    ///
    /// # Errors
    /// As [`Builder::build_spread_rows`].
    pub fn build_spread_rows_on<T: Solvable, B: SolverBackend, C: Communicator<B>>(
        &self,
        backend: &B,
        communicator: C,
        a: Csr<T, B>,
        rows: &[Range<usize>],
    ) -> Result<SpreadSolver<T, B, C>> {
        self.check()?;
        check_parts(a.columns(), rows, communicator.parts())?;
        Error::check_dimension("rows of this rank", rows[communicator.part()].len(), a.rows())?;
        let space = Space::spread(backend.clone(), communicator);
        SpreadSolver::of_rows(space, self, Given::There(a), Before::distributed(rows))
    }
}

impl<T: Solvable, B: SolverBackend, C: Communicator<B>> SpreadSolver<T, B, C> {
    /// For a matrix that each rank has as a whole.
    fn of_whole(space: Space<B, C>, wishes: &Builder, a: &Csr<T, Host>) -> Result<Self> {
        let (mut seconds, mut trail) = (Seconds::default(), Trail::default());
        let (part, parts) = (space.communicator().part(), space.communicator().parts());
        // Each rank sees all of it, and names the entry.
        together(&space, finite::check_matrix(&Host, a))?;
        let must = single_rank::must(wishes, a, parts);
        if must.is_none() {
            refuse(wishes)?;
        }
        let found = timed(&mut seconds.look, || symmetry::of(&Host, a, wishes.symmetry, wishes.method))?;
        let alone = if must.is_some() {
            must
        } else if wishes.all_parts {
            None
        } else {
            single_rank::why::<T, B, C>(&space, [a.rows(), a.nonzeros()], found.hermitian)
        };
        if let Some(why) = alone {
            trail.decisions.push(found.decision::<T>(wishes));
            trail.decisions.push(Decision::new("ranks", format!("one of {parts} ranks"), why));
            let made = timed(&mut seconds.setup, || SingleRank::new(wishes, space.backend(), part, a));
            let lone = together(&space, made)?;
            let ends = |other: usize| if other == 0 { 0..a.rows() } else { a.rows()..a.rows() };
            let rows: Vec<Range<usize>> = (0..parts).map(ends).collect();
            let nonzeros = |rows: &Range<usize>| if rows.is_empty() { 0 } else { a.nonzeros() };
            let share = |rows: &Range<usize>| Share { rows: rows.len(), nonzeros: nonzeros(rows), halo: 0 };
            return Ok(Self {
                options: wishes.options(),
                time_limit: wishes.time_limit,
                operator: None,
                lone: Some(lone),
                stages: Vec::new(),
                rows: None,
                negated: false,
                numbers: rows[part].clone().map(|row| row as u32).collect(),
                shares: rows.iter().map(share).collect(),
                parts: rows,
                order: None,
                symmetry: found.symmetry(),
                curvature: None,
                norms: None,
                seconds,
                spent: BuildSeconds::default(),
                trail,
                history: Vec::new(),
                device: space.backend().description().into(),
                space,
            });
        }
        let start = Instant::now();
        // Whole planes of a grid, as multigrid with boxes needs them, if there is one.
        let slabs = |a: &Csr<T>| -> Result<Option<Vec<Range<usize>>>> {
            let grid = seeming_grid(a.rows(), some_distances(&Host, a)?);
            Ok(grid.and_then(|grid| planes(grid, parts)))
        };
        let of_grid = slabs(a)?;
        let boxes = matches!(wishes.preconditioner, Name::Multigrid(choice) if choice.boxes);
        let (permuted, order, decision) = if boxes && wishes.reorder == Reorder::Auto && of_grid.is_some() {
            (None, None, Decision::new("order", "no", "each rank has whole planes of a grid"))
        } else {
            ordered(a, wishes.reorder, parts)?
        };
        let of_grid = if let Some(permuted) = &permuted { slabs(permuted)? } else { of_grid };
        seconds.reorder = start.elapsed().as_secs_f64();
        let a = permuted.as_ref().unwrap_or(a);
        let ranges = of_grid.unwrap_or_else(|| balanced_parts(a, parts));
        let rows = ranges[part].clone();
        let decision = Decision { seconds: Some(seconds.reorder), ..decision };
        let before = Before { found: Some(found), ranges, order, decision, trail, seconds };
        Self::of_rows(space, wishes, Given::OnHost(a, rows), before)
    }

    /// For the rows of this rank.
    fn of_rows(space: Space<B, C>, wishes: &Builder, given: Given<'_, T, B>, before: Before) -> Result<Self> {
        let Before { found, ranges, order, decision, mut trail, mut seconds } = before;
        refuse(wishes)?;
        let (backend, communicator) = (space.backend(), space.communicator());
        let (part, parts) = (communicator.part(), communicator.parts());
        let device: Arc<str> = format!("{parts} x {}", backend.description()).into();
        let (mut spent, first_uses) = (BuildSeconds::default(), backend.first_use_seconds());
        let start = Instant::now();
        let mut clock = Clock(backend, start);
        let here = &ranges[part];
        let divided = match &given {
            Given::OnHost(a, rows) => {
                let any: &dyn Any = *a;
                match any.downcast_ref::<Csr<T, B>>() {
                    Some(a) => split(backend, a, rows, here),
                    None => rows_on(backend, a, rows).and_then(|a| {
                        clock.lap(&mut spent.rows)?;
                        split(backend, &a, &(0..a.rows()), here)
                    }),
                }
            }
            Given::There(a) => split(backend, a, &(0..a.rows()), here),
        };
        let (mut own, mut edge) = together(&space, divided)?;
        let on_host = match given {
            Given::OnHost(a, rows) => Some((a, rows)),
            Given::There(_) => None,
        };
        clock.lap(&mut spent.halo)?;
        together(&space, finite::check_part(backend, (&own, &edge), here.start))?;
        let found = match found {
            Some(found) => found,
            None => symmetry::of_parts(&space, (&own, &edge), &ranges, wishes.symmetry, wishes.method)?,
        };
        trail.decisions.push(found.decision::<T>(wishes));
        let negated = found.hermitian && all_with_positive_diagonals(&space, &mut own)?;
        if negated {
            edge.a.values_mut().iter_mut().for_each(|value| *value = -*value);
            trail.decisions.push(Decision::new("sign", "-A", NEGATED));
        }
        trail.decisions.push(decision);
        let shares = shares::<T, B, C>(&space, (&own, &edge), &ranges)?;
        let why = "each rank has consecutive rows with about the same number of entries";
        trail.decisions.push(Decision::new("ranks", parts.to_string(), why));
        let curvature = match found.hermitian {
            true => of_all(&space, first_curvature(backend, &own)?)?,
            false => None,
        };
        let norms = RowNorms::of_part(&space, (&own, &edge), wishes.row_wise, found.hermitian)?;
        clock.lap(&mut spent.look)?;
        // The rows of the caller on the host, unless -A is stored.
        let on_host = on_host.filter(|_| !negated);
        // Preconditioners are made from the block in CSR, whatever format the products use; a diagonal needs no copy of
        // it.
        let plain = matches!(wishes.preconditioner, Name::Jacobi | Name::None)
            && (wishes.method == Method::Cg || on_host.is_some());
        let n = ranges.last().map_or(0, |rows| rows.end);
        let made = (|| {
            let block = if plain {
                let known = Known::default();
                Block::Diagonal(AnyPreconditioner::new(backend, &own, (Method::Cg, Name::Jacobi), known))
            } else {
                Block::Rows(own.copied(backend)?)
            };
            Ok((block, stored(backend, own, wishes, n)?))
        })();
        let (block, (name, why, stored)) = together(&space, made)?;
        trail.decisions.push(Decision::new("format", name, why));
        clock.lap(&mut spent.format)?;
        let operator = Spread::joined(backend, communicator.clone(), stored, &edge, &ranges);
        let operator = Arc::new(together(&space, operator)?);
        clock.lap(&mut spent.halo)?;
        let numbers = here.clone().map(|row| order.as_ref().map_or(row as u32, |o| o.new_to_old()[row]));
        let first = here.start;
        let mut solver = Self {
            options: wishes.options(),
            time_limit: wishes.time_limit,
            operator: Some(operator),
            lone: None,
            stages: Vec::new(),
            rows: None,
            negated,
            numbers: numbers.collect(),
            parts: ranges,
            order,
            shares,
            symmetry: found.symmetry(),
            curvature,
            norms: Some(norms),
            seconds: Seconds::default(),
            spent: BuildSeconds::default(),
            trail,
            history: Vec::new(),
            device,
            space: space.clone(),
        };
        let put_together = |block: &Block<T, B>, edge: &Edge<T>| match (&on_host, block) {
            (Some((a, rows)), _) => a.window(&Host, rows.clone()),
            (None, Block::Rows(block)) => joined_rows(&block.to_host(backend)?, edge, first),
            (None, Block::Diagonal(_)) => {
                Err(Error::Unsupported("this preconditioner on several ranks".into()))
            }
        };
        let sources = Sources { block, edge, on_host: &put_together };
        solver.list(wishes, sources, found.hermitian)?;
        clock.lap(&mut spent.levels)?;
        spent.first_use = backend.first_use_seconds() - first_uses;
        seconds.setup = start.elapsed().as_secs_f64();
        (solver.seconds, solver.spent) = (seconds, spent);
        Ok(solver)
    }

    /// Where the time of the build went, on this rank. Zeros if one rank solves alone.
    pub fn build_seconds(&self) -> BuildSeconds {
        self.spent
    }

    /// Unknowns of all ranks.
    pub fn columns(&self) -> usize {
        self.parts.last().map_or(0, |rows| rows.end)
    }

    /// The caller's numbers of this rank's unknowns, in the order of its vectors.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// [`Symmetry::Symmetric`] if A equals its transpose, or else [`Symmetry::Hermitian`] if it equals its conjugate
    /// transpose.
    pub fn symmetry(&self) -> Symmetry {
        self.symmetry
    }

    /// The size of each rank's part.
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Residual norms of the last solve: at the start, then after each iteration.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// This rank's entries of a whole vector, which is in the caller's order.
    pub fn own_part<V: Copy>(&self, whole: &[V]) -> Vec<V> {
        if self.lone.is_some() {
            // A matrix that is not square has vectors of two lengths, and rank 0 solves alone.
            return if self.space.communicator().part() == 0 { whole.to_vec() } else { Vec::new() };
        }
        self.numbers.iter().map(|&number| whole[number as usize]).collect()
    }

    /// Gathers the whole vector in the caller's order on rank 0. Returns `None` on the others.
    ///
    /// # Errors
    /// If another rank has failed, or `own` does not have the length of this rank's part.
    pub fn whole(&self, own: &B::Slice<T>) -> Result<Option<Vec<T>>> {
        let (backend, communicator) = (self.space.backend(), self.space.communicator());
        let first = communicator.part() == 0;
        if self.lone.is_some() {
            return if first { backend.download(own).map(Some) } else { Ok(None) };
        }
        Error::check_dimension("entries of this part", self.numbers.len(), B::len(own))?;
        let mut send = vec![0; self.parts.len()];
        send[0] = B::len(own);
        let receive: Vec<usize> = self.parts.iter().map(|rows| if first { rows.len() } else { 0 }).collect();
        let mut all = backend.zeros(receive.iter().sum())?;
        let plan = ExchangePlan { send, receive };
        communicator.prepare_exchange::<T>(backend, &plan)?;
        communicator.begin_exchange(backend, &plan, own)?;
        communicator.exchange(backend, &plan, own, &mut all)?;
        if !first {
            return Ok(None);
        }
        let all = backend.download(&all)?;
        match &self.order {
            Some(order) => order.apply_inverse(&all).map(Some),
            None => Ok(Some(all)),
        }
    }
}
