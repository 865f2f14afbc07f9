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
use super::choice::{Candidate, Course, Pace, is_fault};
use super::consensus::{Share, of_all, ordered, refuse, shares, together};
use super::finite;
use super::forecast::expected_products;
use super::hierarchy::Known;
use super::judging::Judging;
use super::names::{AUTO, Method, Precision, PreconditionerChoice as Name, Reorder};
use super::parted::{Block, Stage, Task};
use super::plan::timed;
use super::preconditioner::AnyPreconditioner;
use super::report::{Decision, Seconds, SolveReport, Trail, blank};
use super::sign::{NEGATED, all_with_positive_diagonals, first_curvature};
use super::single_rank::{self, SingleRank};
use super::spread_stages::Sources;
use super::symmetry;
use super::watch::{Canceller, Progress, Watch};
use super::{Solvable, SolverBackend};
use crate::backend::{Communicator, ExchangePlan, Host, PreconditionSteps, Space};
use crate::error::{Error, Result};
use crate::graph::Permutation;
use crate::krylov::{Outcome, Report, SolveOptions};
use crate::matrix::{self, ChoiceOptions, Csr};
use crate::multigrid::{planes, seeming_grid, some_distances};
use crate::operator::LinearOperator;
use crate::prices::order::OrderGuess;
use crate::scalar::{Promote, Real, Scalar, Symmetry};
use crate::spread::{Edge, Spread, balanced_parts, check_parts, joined_rows, rows_on, split};
use crate::verdict::{RowNorms, Verdict, verdict};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::{ControlFlow, Range};
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
    time_limit: Option<Duration>,
    /// None if rank 0 solves alone.
    pub(super) operator: Option<Arc<Spread<T, B, C>>>,
    lone: Option<SingleRank<T>>,
    pub(super) stages: Vec<Stage<T, B>>,
    /// This rank's block and the entries beside it, if a stage is yet to be set up from them.
    pub(super) rows: Option<(Csr<T, B>, Edge<T>)>,
    /// True if -A is stored, and solved for -x.
    negated: bool,
    /// The caller's numbers of this rank's unknowns.
    numbers: Vec<u32>,
    pub(super) parts: Vec<Range<usize>>,
    order: Option<Permutation>,
    shares: Vec<Share>,
    symmetry: Symmetry,
    /// A diagonal entry that proves that A is not positive definite.
    pub(super) curvature: Option<f64>,
    /// The norms by which residuals are judged; none if rank 0 solves alone.
    norms: Option<RowNorms<T, B>>,
    seconds: Seconds,
    spent: BuildSeconds,
    pub(super) trail: Trail,
    history: Vec<f64>,
    device: Arc<str>,
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
    /// std::thread::scope(|scope| {
    ///     let solve = |part: Parts| -> Result<f64> {
    ///         let number = Communicator::<Host>::part(&part);
    ///         let values = if number == 0 { vec![2.0, 1.0] } else { vec![1.0, 2.0] };
    ///         let own = Csr::from_parts(1, 2, vec![0, 2], vec![0, 1], values)?.into_backend(&Host)?;
    ///         let mut solver = Solver::builder().build_spread_rows_on(&Host, part, own, &rows)?;
    ///         let mut x = vec![0.0];
    ///         solver.solve_into(&[3.0], &mut x)?;
    ///         Ok(x[0])
    ///     };
    ///     let solve = &solve;
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

    /// Solves A x = b from x: both are this rank's entries ([`SpreadSolver::own_part`]).
    ///
    /// # Errors
    /// If a vector has another length, if memory runs out, and if another rank has failed.
    pub fn solve_into(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<SolveReport> {
        self.solve_with(b, x, |_| ControlFlow::Continue(()))
    }

    /// [`SpreadSolver::solve_into`] with an observer of each iteration. If the observer of any rank asks to stop, the
    /// solve ends on all ranks, at most an iteration later.
    ///
    /// # Errors
    /// As [`SpreadSolver::solve_into`].
    pub fn solve_with(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        if self.lone.is_some() {
            return self.solve_alone(b, x, observer);
        }
        if !self.negated {
            return self.solve_spread(b, x, observer);
        }
        self.space.backend().scale_in_place(-T::one(), x)?;
        let report = self.solve_spread(b, x, observer);
        self.space.backend().scale_in_place(-T::one(), x)?;
        report
    }

    /// Solves with the stored matrix, A or -A, on all ranks.
    fn solve_spread(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        let (start, canceller) = (Instant::now(), Canceller::default());
        let limit = self.options.iteration_limit(self.columns());
        self.history.clear();
        self.seconds.iterating = 0.0;
        let clock = self.time_limit;
        let mut late = false;
        let mut watch = Watch::new(Some(&mut observer), &canceller, None);
        let (mut course, mut from) = (Course::new(0, None), 0);
        let mut judged = None;
        // Distributed solves have no factorisation that could come first.
        while let Some(turn) = course.next(from, &self.stages, limit, |_| false) {
            let (begun, number, before) = (Instant::now(), turn.number, course.iterations());
            from = number + 1;
            if let Some(why) = self.prepare(number)? {
                self.trail.stages[number].refused = Some(why);
                continue;
            }
            let stage = &self.stages[number];
            let plan = stage.plan;
            watch.method = plan.method;
            let communicator = self.space.communicator();
            let (mut broken, is_first) = (None, course.total.is_none());
            let length = if plan.is_judged(&turn) { self.length(b)? } else { 0.0 };
            let goal = self.options.threshold::<T>(if length.is_finite() { length } else { 0.0 });
            let mut pace = Pace::new((&plan, &[] as &[Candidate]), &turn, goal, None, &mut Vec::new());
            let sought = Cell::new(None);
            let mut observe = |iteration: usize, norm: f64| {
                if let Some(next) = sought.take() {
                    pace.seek(next * length);
                }
                // Norms are the same on all ranks, so all give up together.
                let no_order = || OrderGuess::new([0, 0], 0.0);
                if !pace.goes_on((iteration, norm), no_order, || Ok(f64::INFINITY)) {
                    return ControlFlow::Break(());
                }
                let mut stop = false;
                if iteration > 0 || is_first {
                    stop = watch.see(0, before + iteration, norm).is_break();
                }
                let over = clock.is_some_and(|clock| start.elapsed() >= clock);
                match communicator.agree(stop || over) {
                    Ok(true) => {
                        late = !stop && clock.is_some();
                        ControlFlow::Break(())
                    }
                    Ok(false) => ControlFlow::Continue(()),
                    Err(error) => {
                        broken = Some(error);
                        ControlFlow::Break(())
                    }
                }
            };
            let Some(operator) = &self.operator else { break };
            let Some(norms) = &mut self.norms else { break };
            let mut judging = Judging::new(&self.options, &sought);
            let options = self.options.clone().max_iterations(turn.most(&plan));
            let system = (&**operator as &dyn LinearOperator<T, B>, &mut *norms);
            let task = Task { space: &self.space, system, options, b, x: &mut *x, judging: &mut judging };
            let (mut report, history, iterating) = task.run(stage, &mut observe)?;
            judged = judging.last;
            if judging.is_open(&report.outcome) {
                judged = Some(verdict(&self.space, (&**operator, norms), (b, x), &self.options, None)?);
            }
            report.outcome = match judged {
                Some(judged) if judged.met => Outcome::Converged,
                Some(_) if report.outcome == Outcome::Converged => Outcome::Stagnated,
                _ => report.outcome,
            };
            if let Some(error) = broken {
                return Err(error);
            }
            let (outcome, words) = pace.ended(report.outcome);
            report.outcome = outcome;
            if late && report.outcome == Outcome::Interrupted {
                report.outcome = Outcome::TimeLimit;
            }
            let skipped = usize::from(!self.history.is_empty());
            self.history.extend(history.iter().skip(skipped));
            self.seconds.iterating += iterating.as_secs_f64();
            let creeps = turn.creeps(&plan, &report.outcome);
            let told = &mut self.trail.stages[number];
            told.outcome = Some(if creeps { Outcome::GivenUp } else { report.outcome });
            told.iterations = report.iterations;
            told.bytes = report.iterations as f64 * report.bytes_per_iteration as f64;
            told.seconds = begun.elapsed().as_secs_f64();
            told.relative_residual = Some(report.relative_residual);
            told.remark = words;
            if let Some(AnyPreconditioner::Levels(levels)) = &self.stages[number].setup {
                told.remark = Some(levels.told.clone()).filter(|told| !told.is_empty());
                told.levels = levels.facts.clone();
            }
            if !course.add(&turn, &plan, report) {
                break;
            }
        }
        self.seconds.solve = start.elapsed().as_secs_f64();
        let Course { last, total, .. } = course;
        let report = total.ok_or_else(|| Error::Unsupported("a system without a method".into()))?;
        let Some((operator, norms)) = self.operator.as_ref().zip(self.norms.as_mut()) else {
            return Err(Error::Unsupported("a system without an operator".into()));
        };
        let judged = match judged {
            Some(judged) => judged,
            None => verdict(&self.space, (&**operator, norms), (b, x), &self.options, None)?,
        };
        self.tell(&report, last, &judged)
    }

    /// ||b||.
    fn length(&self, b: &B::Slice<T>) -> Result<f64> {
        let backend = self.space.backend();
        let mut square = backend.zeros::<T::Real>(1)?;
        backend.norm2_squared(b, &mut square)?;
        self.space.communicator().all_sum(backend, &mut square)?;
        Ok(backend.value(&square)?.to_f64().sqrt())
    }

    /// Rank 0 solves, and sends its report to the others.
    fn solve_alone(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<SolveReport> {
        let solver = self.lone.as_mut().and_then(|lone| lone.0.as_mut());
        let Some(solver) = solver else {
            let words = self.space.communicator().gather(Vec::new())?.swap_remove(0);
            let blank = blank(&self.device, &self.trail, Csr::<T>::NAME, T::NAME);
            return single_rank::heard(&words, blank);
        };
        let report = solver.solve_on_with(self.space.backend(), b, x, &mut observer);
        self.space.communicator().gather(single_rank::told(&report))?;
        let report = report?;
        self.history = solver.history().to_vec();
        // Decisions made before there was a solver come first.
        let mut trail = self.trail.clone();
        trail.decisions.extend(report.trail.decisions.iter().cloned());
        trail.stages = report.trail.stages.clone();
        Ok(SolveReport { trail: Arc::new(trail), ..report })
    }

    /// Makes the report of a solve, with the outcome that the check of x gives.
    fn tell(&self, report: &Report, stage: usize, judged: &Verdict) -> Result<SolveReport> {
        // A distributed solve has no proof that a square matrix is singular.
        let outcome = match report.outcome {
            said if judged.met && (is_fault(&said) || said.is_solved()) => Outcome::Converged,
            Outcome::Converged | Outcome::LeastSquares => Outcome::Stagnated,
            other => other,
        };
        Ok(SolveReport {
            outcome,
            method: self.stages[stage].plan.method,
            preconditioner: self.trail.stages[stage].preconditioner,
            precision: Precision::Double,
            iterations: report.iterations,
            restarts: report.restarts,
            residual_norm: judged.residual,
            relative_residual: judged.relative(),
            row_wise_residual: judged.row_wise(),
            backward_error: self.norms.as_ref().and_then(|norms| judged.backward_error(norms.frobenius)),
            condition: None,
            digits: None,
            normal_residual: None,
            singularity: None,
            outside_range: None,
            unmatched: None,
            memory_needed: None,
            bytes_per_iteration: report.bytes_per_iteration,
            at_once: 1,
            seconds: self.seconds,
            format: Csr::<T>::NAME,
            stored: T::NAME,
            device: Arc::clone(&self.device),
            trail: Arc::new(self.trail.clone()),
        })
    }
}
