//! A solver on a backend, and the trait that hides the backend.

use super::SolverBackend;
use super::builder::Builder;
use super::columns::{Columns, Here, OnHost};
use super::core::Core;
use super::finite;
use super::nullspace::{self, Beside, NullSpace};
use super::plan::{Notes, Planner, System, timed};
use super::report::{Decision, SolveReport, Trail};
use super::sign::{NEGATED, with_positive_diagonal};
use super::symmetry::{self, Found};
use super::system::{Order, Stored, reorder};
use super::watch::Watch;
use crate::backend::{Backend, Host};
use crate::error::{Error, Result};
use crate::graph;
use crate::krylov::{Outcome, SolveOptions};
use crate::matrix::{ChoiceReport, Csr};
use crate::prices;
use crate::scalar::{Real, Scalar, Symmetry};
use crate::verdict::{Equilibrated, RowNorms, Verdict, equilibrated};
use num_traits::Float;
use std::any::Any;
use std::ops::Range;
use std::time::Instant;

/// The interface of a solver on any backend. Vectors are on the host, in the caller's order.
pub(super) trait Engine<T: Scalar>: Any + Send {
    /// Solves from x.
    fn solve(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<SolveReport>;

    /// Solves for several right-hand sides, stored one after another.
    fn solve_many(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<Vec<SolveReport>>;

    /// Takes new values.
    fn update(&mut self, values: &[T]) -> Result<()>;

    /// The matrix in the caller's order, for its pattern: values may be those of -A.
    fn pattern(&self) -> Result<Csr<T>>;

    /// x by factors that are at hand, for right-hand sides one after another; false if that does not do.
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
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }
}

/// Rounding may make the residual of the shorter x larger by this factor.
const LEVEL: f64 = 1.0 + 1e-9;

/// What is left of b after a projection counts as zero below this many units of rounding.
const ROUNDING: f64 = 16.0;

/// A right-hand side and a solution.
type Pair<T, B> = (<B as Backend>::Vec<T>, <B as Backend>::Vec<T>);

/// A solver in the memory of a backend.
pub(super) struct Placed<T: Scalar, B: SolverBackend> {
    backend: B,
    wishes: Builder,
    core: Core<T, B>,
    /// True if -A is stored, and solved for -x.
    negated: bool,
    order: Option<Order<T, B>>,
    /// The row and column scaling of the stored matrix, if it is scaled.
    scaled: Option<Equilibrated<T, B>>,
    /// b and x in the order and scale of the stored matrix, kept from solve to solve.
    room: Option<Pair<T, B>>,
    /// The null space, if it is known, with workspaces for a right-hand side and a solution.
    null: Option<Beside<T, B>>,
    /// Copies of the caller's vectors in this memory, allocated at first use.
    vectors: Option<(B::Vec<T>, B::Vec<T>)>,
    /// The caller's new values in this memory, allocated at first use.
    values: Option<B::Vec<T>>,
    /// The matrix in CSR, in addition to the format of its products, if all is made anew for new values.
    beside: Option<Csr<T, B>>,
    about: About,
}

impl<T: Scalar, B: SolverBackend> Placed<T, B> {
    /// Analyses a matrix, and makes all choices for it. `why` is the reason for this backend if the caller did not name
    /// it.
    pub(super) fn build(backend: &B, a: Csr<T, B>, wishes: &Builder, why: Option<String>) -> Result<Self> {
        let mut notes = Notes::default();
        let why = why.unwrap_or_else(|| "the matrix is there".into());
        notes.decisions.push(Decision::new("device", backend.description(), why));
        let mut looked = 0.0;
        timed(&mut looked, || finite::check_matrix(backend, &a))?;
        let found = timed(&mut looked, || symmetry::of(backend, &a, wishes.symmetry, wishes.method))?;
        notes.seconds.look = looked;
        let known = if found.looked { "looked at" } else { "known beforehand" };
        notes.decisions.push(Decision::new("prices", prices::machine::name()?, ""));
        let decision = Decision::new("symmetry", found.word::<T>(), known);
        notes.decisions.push(Decision { seconds: Some(looked), ..decision });
        Self::new(backend, a, wishes, found, notes)
    }

    /// Makes an engine for a matrix whose symmetry is known.
    fn new(backend: &B, mut a: Csr<T, B>, wishes: &Builder, found: Found, mut notes: Notes) -> Result<Self> {
        let options = wishes.options();
        let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());
        let symmetry = found.symmetry();
        let negated = found.hermitian && with_positive_diagonal(backend, &mut a)?;
        if negated {
            notes.decisions.push(Decision::new("sign", "-A", NEGATED));
        }
        let mut spent = 0.0;
        let null = timed(&mut spent, || NullSpace::of(backend, &a, wishes, found.hermitian))?;
        notes.seconds.look += spent;
        notes.decisions.extend(null.decision.map(|told| Decision { seconds: Some(spent), ..told }));
        let null = match null.space {
            Some(space) => Some(Beside { space, b: backend.zeros(rows)?, x: backend.zeros(columns)? }),
            None => None,
        };
        let hermitian = found.hermitian;
        let mut planner = Planner {
            hermitian,
            shape: (rows, columns),
            backend,
            wishes,
            options: &options,
            notes: &mut notes,
            mesh: None,
            units: None,
            before: None,
        };
        let levels = planner.facts(nonzeros).may_take_levels().then_some(hermitian);
        let mut spent = 0.0;
        let (a, order, decision) = timed(&mut spent, || {
            let products = wishes.expected_products(columns).max(planner.products_of_named_levels(&a)?);
            let how = (wishes.order()?, levels);
            reorder(backend, a, how, products, |a| planner.products_of_levels(a))
        })?;
        let spent = if decision.why == super::choice::AS_ASKED { 0.0 } else { spent };
        planner.notes.seconds.reorder = spent;
        planner.notes.decisions.push(Decision { seconds: Some(spent), ..decision });
        planner.check(rows, columns)?;
        let (a, norms, scaled) =
            timed(&mut planner.notes.seconds.look, || judged_by(backend, a, (wishes, &options), hermitian))?;
        if let Some(scaled) = &scaled {
            planner.notes.decisions.push(scaling_decision(scaled, &norms));
            planner.units = scaled.units();
        }
        let open = wishes.updates && wishes.can_stay_open();
        // Levels on a grid are made anew for new values in any case, and then so is what suits them.
        let anew = open && planner.takes_levels_of_a_grid(&a)?;
        let beside = if anew { Some(a.copied(backend)?) } else { None };
        let mut system = if open && !anew { planner.open(a)? } else { planner.system(a)? };
        let device = backend.description();
        let choice = system.choice.take();
        let core = Core::new(backend, system, options, notes, norms);
        let about = About { rows, columns, nonzeros, symmetry, hermitian, device, choice };
        Ok(Self {
            backend: backend.clone(),
            wishes: wishes.clone(),
            core,
            negated,
            order,
            scaled,
            room: None,
            null,
            vectors: None,
            values: None,
            beside,
            about,
        })
    }

    /// Solves from x, with the null space if there is one.
    fn solve_one(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        Error::check_dimension("length of b", self.about.rows, B::len(b))?;
        Error::check_dimension("length of x", self.about.columns, B::len(x))?;
        self.check_right_hand_side(b)?;
        let Some(mut null) = self.null.take() else { return self.solve_here(b, x, watch) };
        let report = self.solve_beside(&mut null, b, x, watch);
        self.null = Some(null);
        report
    }

    /// Returns an error if the right-hand side has an entry that is infinite or NaN, with its position.
    fn check_right_hand_side(&self, b: &B::Slice<T>) -> Result<()> {
        finite::check_vector(&self.backend, b, "the right-hand side")
    }

    /// Solves with the matrix as it is stored, after permuting and scaling b and x.
    fn solve_here(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        self.turn(x)?;
        let report = self.solve_in_order(b, x, watch);
        self.turn(x)?;
        report
    }

    /// Solves with the stored matrix, A or -A, in its order.
    fn solve_in_order(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        let Some(mut room) = self.enter(b, x)? else { return self.core.solve(b, x, watch) };
        let report = self.core.solve(&room.0, &mut room.1, watch);
        let left = self.leave(&room.1, x);
        self.room = Some(room);
        left?;
        let mut report = report?;
        if let (Some(unmatched), Some(order)) = (&mut report.unmatched, &self.order) {
            let old = self.backend.download(order.permutation.new_to_old())?;
            let numbers = unmatched.rows.iter_mut().chain(&mut unmatched.columns);
            numbers.for_each(|number| *number = old[*number as usize]);
        }
        Ok(report)
    }

    /// b and x in the order and scale of the stored matrix; none if these are the caller's.
    fn enter(&mut self, b: &B::Slice<T>, x: &B::Slice<T>) -> Result<Option<Pair<T, B>>> {
        if self.order.is_none() && self.scaled.is_none() {
            return Ok(None);
        }
        let backend = self.backend.clone();
        let (mut to_b, mut to_x) = match self.room.take() {
            Some(room) => room,
            None => (backend.zeros(self.about.rows)?, backend.zeros(self.about.columns)?),
        };
        self.enter_into((b, x), (&mut to_b, &mut to_x))?;
        Ok(Some((to_b, to_x)))
    }

    /// [`Placed::enter`] into given vectors.
    fn enter_into(
        &mut self,
        (b, x): (&B::Slice<T>, &B::Slice<T>),
        (to_b, to_x): (&mut B::Slice<T>, &mut B::Slice<T>),
    ) -> Result<()> {
        let backend = &self.backend;
        match (&mut self.order, &self.scaled) {
            (None, None) => {
                backend.copy(b, to_b)?;
                backend.copy(x, to_x)
            }
            (Some(order), None) => {
                order.permutation.apply_on(backend, b, to_b)?;
                order.permutation.apply_on(backend, x, to_x)
            }
            (None, Some(scaled)) => scaled.enter(backend, (b, x), (to_b, to_x)),
            (Some(order), Some(scaled)) => {
                order.permutation.apply_on(backend, b, &mut order.b)?;
                order.permutation.apply_on(backend, x, &mut order.x)?;
                scaled.enter(backend, (&order.b, &order.x), (to_b, to_x))
            }
        }
    }

    /// Copies x back to the caller's order and units.
    fn leave(&mut self, from: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<()> {
        let backend = &self.backend;
        match (&mut self.order, &self.scaled) {
            (None, None) => backend.copy(from, x),
            (Some(order), None) => order.permutation.apply_inverse_on(backend, from, x),
            (None, Some(scaled)) => scaled.leave(backend, from, x),
            (Some(order), Some(scaled)) => {
                scaled.leave(backend, from, &mut order.x)?;
                order.permutation.apply_inverse_on(backend, &order.x, x)
            }
        }
    }

    /// Replaces x by -x if -A is stored.
    fn turn(&self, x: &mut B::Slice<T>) -> Result<()> {
        if self.negated { self.backend.scale_in_place(-T::one(), x) } else { Ok(()) }
    }

    /// Solves with a known null space: removes the part of b outside of the range, and returns the shortest of all
    /// solutions.
    fn solve_beside(
        &mut self,
        Beside { space: null, b: here, x: short }: &mut Beside<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<SolveReport> {
        let backend = self.backend.clone();
        let size = nullspace::norm(&backend, b)?;
        backend.copy(b, here)?;
        let outside = if null.hermitian { null.remove(&backend, here)? } else { 0.0 };
        let unit = <T::Real as Float>::epsilon().to_f64();
        if nullspace::norm(&backend, here)? <= ROUNDING * unit * size {
            // b is in the null space, up to rounding.
            backend.fill(T::default(), here)?;
        }
        let enough = self.core.options.threshold::<T>(size);
        let inside = nullspace::norm(&backend, here)?;
        if outside > enough && inside > 0.0 {
            // A^H r only has contributions of the residual inside the range: that must be small compared to the part of
            // b outside.
            let least = self.core.options.least_squares_tolerance::<T>() * outside / (2.0 * inside);
            self.core.aim = Some(least.min(self.core.options.threshold_of_one::<T>()));
        }
        let report = self.solve_here(here, x, watch);
        self.core.aim = None;
        let mut report = report?;
        backend.copy(x, short)?;
        null.remove(&backend, short)?;
        // A times the shorter x is the same up to rounding, so its residual is computed anew.
        let (long, mut judged) = (self.judge(b, x)?, self.judge(b, short)?);
        if judged.met || judged.residual <= (long.residual * LEVEL).max(enough) {
            backend.copy(short, x)?;
        } else {
            judged = long;
        }
        (report.residual_norm, report.relative_residual) = (judged.residual, judged.relative());
        (report.row_wise_residual, report.normal_residual) = (judged.row_wise(), None);
        report.backward_error = judged.backward_error(self.core.norms.frobenius);
        if null.hermitian {
            report.outside_range = Some(outside);
        }
        if judged.met {
            report.outcome = Outcome::Converged;
        } else if report.outcome.is_converged() || report.outcome == Outcome::LeastSquares {
            report.normal_residual = self.nearest(b, x)?.filter(|_| null.hermitian);
            report.singularity = null.singularity();
            report.outcome = match report.normal_residual {
                Some(_) => Outcome::LeastSquares,
                None => Outcome::Stagnated,
            };
        }
        Ok(report)
    }

    /// The verdict on a caller's x.
    fn judge(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<Verdict> {
        self.turn(x)?;
        let judged = match self.enter(b, x)? {
            None => self.core.judge(b, x),
            Some(room) => {
                let judged = self.core.judge(&room.0, &room.1);
                self.room = Some(room);
                judged
            }
        };
        self.turn(x)?;
        judged
    }

    /// The ratio of [`Core::nearest`] for a caller's x.
    fn nearest(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<Option<f64>> {
        self.turn(x)?;
        let nearest = match self.enter(b, x)? {
            None => self.core.nearest(b, x),
            Some(room) => {
                let nearest = self.core.nearest(&room.0, &room.1);
                self.room = Some(room);
                nearest
            }
        };
        self.turn(x)?;
        nearest
    }

    /// Stores the matrix such that values can be replaced: CSR instead of its format, or in addition to it if the setup
    /// must be made anew, as the caller named it, or because it is multigrid on a grid.
    fn reopen(&mut self) -> Result<()> {
        let a = self.core.stored().to_csr(&self.backend)?;
        if self.wishes.can_stay_open() && !self.core.is_by_levels_of_a_grid() {
            return self.replace(|planner| planner.open(a));
        }
        self.beside = Some(a);
        Ok(())
    }

    /// Replaces the stored system by another one.
    fn replace(&mut self, plan: impl FnOnce(&mut Planner<'_, B>) -> Result<System<T, B>>) -> Result<()> {
        let (options, mut notes) = (self.wishes.options(), Notes::default());
        let before = Some((self.core.stored().format(), self.core.stored().values()));
        let system = plan(&mut Planner {
            hermitian: self.about.hermitian,
            shape: self.about.shape(),
            backend: &self.backend,
            wishes: &self.wishes,
            options: &options,
            notes: &mut notes,
            mesh: None,
            units: self.scaled.as_ref().and_then(Equilibrated::units),
            before,
        })?;
        self.core.replace(system, notes);
        Ok(())
    }

    /// Makes all choices anew for a matrix with other values.
    fn rebuild(&mut self, a: Csr<T, B>) -> Result<()> {
        self.replace(|planner| planner.system(a))
    }

    /// The number of right-hand sides in vectors of these lengths.
    fn count(&self, b: usize, x: usize) -> Result<usize> {
        let (rows, columns) = self.about.shape();
        Error::check_dimension("entries of b after the last complete right-hand side", 0, b % rows.max(1))?;
        let count = b.checked_div(rows).unwrap_or(0);
        Error::check_dimension("length of x", columns * count, x)?;
        Ok(count)
    }

    /// Solves `count` systems, one by one or several at once.
    fn each(
        &mut self,
        count: usize,
        columns: &mut dyn Columns<T, B>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SolveReport>> {
        let mut reports = Vec::with_capacity(count);
        self.core.forget_histories();
        // Each right-hand side has its own part in the null space.
        let at_once = if self.null.is_some() { 1 } else { self.core.make_room(count)? };
        let (mut b, mut x) = self.take_vectors()?;
        for first in (0..count).step_by(at_once) {
            watch.offset = first;
            if at_once == 1 {
                columns.load(&self.backend, first, &mut b, &mut x)?;
                reports.push(self.solve_one(&b, &mut x, watch)?);
                columns.store(&self.backend, first, &x)?;
                self.core.keep_history();
            } else {
                let group = first..count.min(first + at_once);
                self.group(group, columns, (&mut b, &mut x), watch, &mut reports)?;
            }
        }
        watch.offset = 0;
        self.vectors = Some((b, x));
        Ok(reports)
    }

    /// Solves several systems at once. `b` and `x` are workspaces for one system.
    fn group(
        &mut self,
        numbers: Range<usize>,
        columns: &mut dyn Columns<T, B>,
        (b, x): (&mut B::Slice<T>, &mut B::Slice<T>),
        watch: &mut Watch<'_>,
        reports: &mut Vec<SolveReport>,
    ) -> Result<()> {
        let backend = self.backend.clone();
        for (place, number) in numbers.clone().enumerate() {
            columns.load(&backend, number, b, x)?;
            self.check_right_hand_side(b)?;
            self.turn(x)?;
            let mut group = self.core.take_group()?;
            let (to_b, to_x) = group.room(self.about.columns, place);
            let entered = self.enter_into((b, x), (to_b, to_x));
            self.core.group = Some(group);
            entered?;
        }
        self.core.solve_group(numbers.len(), watch, reports)?;
        for (place, number) in numbers.enumerate() {
            let mut group = self.core.take_group()?;
            let left = self.leave(group.room(self.about.columns, place).1, x);
            self.core.group = Some(group);
            left?;
            self.turn(x)?;
            columns.store(&backend, number, x)?;
        }
        Ok(())
    }

    /// This solver, if its backend is the host: the caller's vectors are then used without a copy.
    fn on_host(&mut self) -> Option<&mut Placed<T, Host>> {
        let any: &mut dyn Any = self;
        any.downcast_mut()
    }

    /// Workspaces for a right-hand side and a solution in the caller's order.
    fn take_vectors(&mut self) -> Result<(B::Vec<T>, B::Vec<T>)> {
        let (rows, columns) = self.about.shape();
        match self.vectors.take() {
            Some(vectors) => Ok(vectors),
            None => Ok((self.backend.zeros(rows)?, self.backend.zeros(columns)?)),
        }
    }
}

/// The matrix, with its rows scaled if necessary, and the norms by which residuals are judged.
type Judged<T, B> = (Csr<T, B>, RowNorms<T, B>, Option<Equilibrated<T, B>>);

fn judged_by<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: Csr<T, B>,
    (wishes, options): (&Builder, &SolveOptions),
    hermitian: bool,
) -> Result<Judged<T, B>> {
    let mut norms = RowNorms::of(backend, &a, wishes.row_wise, hermitian)?;
    if !wishes.may_scale() {
        return Ok((a, norms, None));
    }
    match equilibrated(backend, &a, &mut norms, hermitian, options)? {
        Some((scaled, factors)) => Ok((scaled, norms, Some(factors))),
        None => Ok((a, norms, None)),
    }
}

fn scaling_decision<T: Scalar, B: SolverBackend>(
    scaled: &Equilibrated<T, B>,
    norms: &RowNorms<T, B>,
) -> Decision {
    let why = format!(
        "rows have norms from {:.1e} to {:.1e} and are scaled by powers of two",
        norms.least, norms.most
    );
    Decision::new("scaling", scaled.words(), why)
}

impl<T: Scalar, B: SolverBackend> OnBackend<T, B> for Placed<T, B> {
    fn solve_host(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<SolveReport> {
        if let Some(here) = self.on_host() {
            return here.solve(b, x, watch);
        }
        Error::check_dimension("length of b", self.about.rows, b.len())?;
        Error::check_dimension("length of x", self.about.columns, x.len())?;
        let (mut here_b, mut here_x) = self.take_vectors()?;
        self.backend.write(b, &mut here_b)?;
        self.backend.write(x, &mut here_x)?;
        let report = self.solve(&here_b, &mut here_x, watch);
        self.backend.read(&here_x, x)?;
        self.vectors = Some((here_b, here_x));
        report
    }

    fn solve_many_host(&mut self, b: &[T], x: &mut [T], watch: &mut Watch<'_>) -> Result<Vec<SolveReport>> {
        let (shape, count) = (self.about.shape(), self.count(b.len(), x.len())?);
        self.each(count, &mut OnHost { shape, b, x }, watch)
    }

    fn update_host(&mut self, values: &[T]) -> Result<()> {
        if let Some(here) = self.on_host() {
            return here.update(values);
        }
        Error::check_dimension("number of values", self.about.nonzeros, values.len())?;
        let mut here = match self.values.take() {
            Some(here) => here,
            None => self.backend.zeros(values.len())?,
        };
        self.backend.write(values, &mut here)?;
        let done = self.update(&here);
        self.values = Some(here);
        done
    }

    fn solve(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>, watch: &mut Watch<'_>) -> Result<SolveReport> {
        self.core.forget_histories();
        self.solve_one(b, x, watch)
    }

    fn solve_many(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SolveReport>> {
        let (shape, count) = (self.about.shape(), self.count(B::len(b), B::len(x))?);
        self.each(count, &mut Here::<T, B> { shape, b, x }, watch)
    }

    fn update(&mut self, values: &B::Slice<T>) -> Result<()> {
        Error::check_dimension("number of values", self.about.nonzeros, B::len(values))?;
        let start = Instant::now();
        if self.beside.is_none() && !matches!(self.core.stored(), Stored::Open(_)) {
            self.reopen()?;
        }
        finite::check_vector(&self.backend, values, "the new values")?;
        let Self { backend, core, order, beside, negated, null, .. } = self;
        let (hermitian, options) = (self.about.hermitian, core.options.clone());
        let is_beside = beside.is_some();
        let (target, norms) = match (&mut *beside, &mut core.stored) {
            (Some(a), _) => (a, &mut core.norms),
            (None, Stored::Open(a)) => (&mut **a, &mut core.norms),
            _ => return Err(Error::Unsupported("new values for a matrix in this format".into())),
        };
        match order {
            None => backend.copy(values, target.values_mut())?,
            Some(order) => order.write_values(backend, values, target)?,
        }
        if *negated {
            // The new values may have the opposite sign.
            *negated = with_positive_diagonal(backend, target)?;
        }
        if let Some(found) = &null
            && !found.space.is_given()
            && !found.space.holds(backend, target)?
        {
            *null = None;
        }
        norms.update(backend, target)?;
        let scaled = match self.wishes.may_scale() {
            true => equilibrated(backend, target, norms, hermitian, &options)?,
            false => None,
        };
        self.scaled = None;
        if is_beside {
            let a = match scaled {
                Some((a, scaled)) => {
                    self.scaled = Some(scaled);
                    a
                }
                None => target.copied(&self.backend)?,
            };
            self.rebuild(a)?;
        } else {
            if let Some((a, scaled)) = scaled {
                self.scaled = Some(scaled);
                backend.copy(a.parts().values, target.values_mut())?;
            }
            self.core.update()?;
        }
        self.core.seconds.update = start.elapsed().as_secs_f64();
        Ok(())
    }

    fn pattern(&self) -> Result<Csr<T>> {
        let a = self.core.stored().to_csr(&self.backend)?.to_host(&self.backend)?;
        match &self.order {
            None => Ok(a),
            Some(order) => {
                graph::permute_symmetric(&a, &order.permutation.to_host(&self.backend)?.into_inverse())
            }
        }
    }

    fn solve_quickly(&mut self, transposed: bool, b: &[T], x: &mut [T]) -> Result<bool> {
        if self.order.is_some() || self.scaled.is_some() || self.null.is_some() {
            return Ok(false);
        }
        let good = self.core.solve_quickly(transposed, b, x)?;
        if good && self.negated {
            x.iter_mut().for_each(|x| *x = -*x);
        }
        Ok(good)
    }

    fn transposed(&self) -> Result<Box<dyn OnBackend<T, B>>> {
        let backend = &self.backend;
        let mut a = self.core.stored().to_csr(backend)?;
        if let Some(scaled) = &self.scaled {
            a = scaled.undone(backend, a)?;
        }
        if self.negated {
            backend.scale_in_place(-T::one(), a.values_mut())?;
        }
        let mut a = a.transpose(backend)?;
        if let Some(order) = &self.order {
            let back = order.permutation.to_host(backend)?.into_inverse();
            a = graph::permute_symmetric(&a.to_host(backend)?, &back)?.into_backend(backend)?;
        }
        let wishes = self.wishes.clone().of_transpose(self.about.hermitian && !T::COMPLEX);
        Ok(Box::new(Self::build(backend, a, &wishes, Some("that of the solver of A".into()))?))
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.core.history(right_hand_side)
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn trail(&self) -> &Trail {
        &self.core.trail
    }
}
