//! What is chosen for a matrix: the format, the precision, the preconditioner.

use super::SolverBackend;
use super::budgets::{BEFORE_FACTORS, SMALL, device_setup, levels_iterations};
use super::builder::Builder;
use super::forecast::{MORE_PRODUCTS, expected_products, polynomial_may_pay, polynomial_pays};
use super::hierarchy::{Levels, grids_pay, unknowns_a_node};
use super::iterated::Parts;
use super::many;
use super::mesh::{Mesh, PRODUCTS_OF_LEVELS};
use super::names::{Method, Precision, PreconditionerChoice as Name, SINGLE_STEPS};
use super::preconditioner::{Setup, single};
use super::refined::Refined;
use super::report::{Decision, Seconds};
use super::stage::{Plan, Ready, Stage, iterated};
use super::system::Stored;
use crate::backend::{Diagonals, NEIGHBOURS, PreconditionSteps};
use crate::error::{Error, Result};
use crate::krylov::SolveOptions;
use crate::matrix::{self, ChoiceOptions, ChoiceReport, Csr, Sell, SparseMatrix};
use crate::multigrid;
use crate::operator::LinearOperator;
use crate::report::bytes;
use crate::scalar::{Element, Scalar, Widen};
use std::sync::Arc;
use std::time::Instant;

/// The name that lets a solver choose the format.
pub(super) const AUTO: &str = "auto";

pub(super) const AS_ASKED: &str = "as asked for";
pub(super) const SPD: &str = "the matrix is Hermitian, and may be positive definite";
pub(super) const GENERAL: &str = "the matrix is not Hermitian";
const TALL: &str = "the matrix is not square: least squares";
const WIDE: &str =
    "fewer rows than columns: of all solutions that of least norm, which scaled columns do not give";
const HALF: &str = "half the precision moves half the bytes";
const RESCUE: &str = "in full precision, where half the precision does not serve";
const POLYNOMIAL: &str = "a polynomial in half the precision moves so many fewer bytes";
const INSTEAD: &str = "where the polynomial does not serve";
pub(super) const GRIDS: &str = "the matrix is on a grid, so that multigrid is soon set up";
const MESH: &str = "the matrix is that of a large mesh, on which conjugate gradients take many iterations";
pub(super) const PLAIN: &str = "where multigrid does not serve";

/// A matrix made ready to be solved with.
pub(super) struct System<T: Scalar, B: SolverBackend> {
    pub(super) stored: Stored<T, B>,
    pub(super) stages: Vec<Stage<T, B>>,
    /// How the format was chosen, where it was.
    pub(super) choice: Option<ChoiceReport>,
}

/// What is told of the preparation.
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

/// What decides, in one place.
pub(super) struct Planner<'a, B: SolverBackend> {
    pub(super) hermitian: bool,
    /// Rows and columns of the matrix.
    pub(super) shape: (usize, usize),
    pub(super) backend: &'a B,
    pub(super) wishes: &'a Builder,
    pub(super) options: &'a SolveOptions,
    pub(super) notes: &'a mut Notes,
    /// What was found out of a mesh before its unknowns were renumbered.
    pub(super) mesh: Option<Mesh>,
}

impl<B: SolverBackend> Planner<'_, B> {
    /// Chooses for a matrix whose values stay.
    pub(super) fn system<T: Scalar>(&mut self, a: Csr<T, B>) -> Result<System<T, B>> {
        let auto = self.wishes.format == AUTO;
        // Small integers and binary fractions, as stencils have them, fit a narrower type: the same bits of x, fewer
        // bytes.
        let backend = self.backend;
        let narrow =
            timed(
                &mut self.notes.seconds.convert,
                || {
                    if auto { a.into_narrow(backend) } else { Ok(Err(a)) }
                },
            )?;
        match narrow {
            Ok(narrow) => {
                let name = <T::Narrow as Element>::NAME;
                self.note(Decision::new("values", name, "every value is held in it without loss"));
                self.in_precision(narrow, Stored::Narrow)
            }
            Err(a) => self.in_precision(a, Stored::Full),
        }
    }

    /// Whether new values can be taken over without anything being made anew.
    pub(super) fn can_stay_open(&self) -> bool {
        let Builder { format, precision, preconditioner, .. } = self.wishes;
        (format == AUTO || format == Csr::<f64>::NAME)
            && *precision == Precision::Double
            && !matches!(preconditioner, Name::Chebyshev(_) | Name::ChebyshevSingle(_))
    }

    /// Chooses for a matrix whose values are replaced: CSR, so that they can be.
    pub(super) fn open<T: Scalar>(&mut self, a: Csr<T, B>) -> Result<System<T, B>> {
        let (backend, method, name) = (self.backend, self.first(), self.named_or(Name::Jacobi));
        let setup = timed(&mut self.notes.seconds.setup, || {
            Setup::new(backend, &a, (method, name), self.wishes.near_null.as_ref())
        })?;
        self.note(Decision::new("format", Csr::<T, B>::NAME, "values are replaced in it"));
        let stages = self.stages(a.columns(), setup, name, self.why())?;
        Ok(System { stored: Stored::Open(Box::new(a)), stages, choice: None })
    }

    /// Refuses a method that was named for a matrix of another shape, or in a precision that it has not.
    pub(super) fn check(&self, rows: usize, columns: usize) -> Result<()> {
        let method = self.wishes.method;
        if !self.is_square() && !matches!(method, Method::Auto | Method::Lsmr) {
            return Err(Error::Unsupported(format!(
                "{rows} x {columns} is not square: {method} solves square systems; lsmr takes others"
            )));
        }
        if let Some(near_null) = &self.wishes.near_null {
            near_null.check(columns)?;
        }
        if !matches!(method, Method::Auto | Method::Cg) && self.wishes.precision != Precision::Double {
            let precision = self.wishes.precision;
            return Err(Error::Unsupported(format!("method {method} in precision {precision}: cg has it")));
        }
        Ok(())
    }

    pub(super) fn is_square(&self) -> bool {
        self.shape.0 == self.shape.1
    }

    /// Whether there are fewer equations than unknowns, and nothing says which method and preconditioner are wanted.
    pub(super) fn is_underdetermined(&self) -> bool {
        let wishes = (self.wishes.method, self.wishes.preconditioner);
        self.shape.0 < self.shape.1 && wishes == (Method::Auto, Name::Auto)
    }

    /// Whether there are more equations than unknowns, and nothing says which method and preconditioner are wanted.
    pub(super) fn is_overdetermined(&self) -> bool {
        let wishes = (self.wishes.method, self.wishes.preconditioner);
        self.shape.0 > self.shape.1 && wishes == (Method::Auto, Name::Auto)
    }

    /// The preconditioner that is wished for; none where scaled columns would change which solution is found.
    fn wish(&self) -> Name {
        match self.wishes.preconditioner {
            _ if self.is_underdetermined() => Name::None,
            // What is known of near-null vectors is known for multigrid.
            Name::Auto if self.wishes.near_null.is_some() => Name::Multigrid(Default::default()),
            named => named,
        }
    }

    /// The method to begin with.
    pub(super) fn first(&self) -> Method {
        match self.wishes.method {
            Method::Auto if !self.is_square() => Method::Lsmr,
            Method::Auto if self.hermitian => Method::Cg,
            Method::Auto => Method::Gmres,
            named => named,
        }
    }

    /// Why it is the first.
    fn why(&self) -> &'static str {
        match (self.wishes.method, self.first()) {
            (Method::Auto, Method::Lsmr) if self.is_underdetermined() => WIDE,
            (Method::Auto, Method::Lsmr) => TALL,
            (Method::Auto, Method::Gmres) => GENERAL,
            (Method::Auto, _) => SPD,
            _ => AS_ASKED,
        }
    }

    fn in_precision<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let halves = size_of::<T::Narrow>() < size_of::<T>() && self.first() == Method::Cg;
        match self.wishes.precision {
            Precision::Mixed if halves => self.mixed(a, wrap),
            Precision::Auto if halves => self.either(a, wrap),
            _ => self.full(a, wrap),
        }
    }

    /// In full precision.
    fn full<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let Kept { operator, setup, rescue, why, name, choice, later } = self.store::<V, T>(a, true)?;
        let (n, stored) = (operator.columns(), wrap(operator.into()));
        let why = if rescue.is_some() { why } else { self.why() };
        let setup = match (setup, stored.shared()) {
            (setup, Some(operator)) => setup.on(self.backend, &operator)?,
            (setup, None) => setup,
        };
        let mut stages = self.stages(n, setup, name, why)?;
        if why == MESH {
            // What did not serve at first does not later.
            let levels = |stage: &Stage<T, B>| matches!(stage.plan.preconditioner, Name::Multigrid(_));
            stages.retain(|stage| !levels(stage) || stage.plan.why == MESH);
        }
        if later {
            // Nothing is set up for a stage that may not have its turn.
            let levels = self.plan(n, Name::Multigrid(Default::default()), Precision::Double, GRIDS);
            let levels = Plan { share: Some(self.patience(n, levels_iterations(n))), ..levels };
            let place = stages.iter().position(|stage| stage.plan.method == Method::Direct);
            stages.insert(place.map_or(0, |place| place + 1), Stage::later(levels));
            let first = &mut stages[0].plan;
            if first.race {
                first.share = Some(self.patience(n, BEFORE_FACTORS));
            }
        }
        if let Some(setup) = rescue {
            let parts = Parts { setup, method: self.first(), name: Name::Jacobi, options: self.options };
            let behind = if why == POLYNOMIAL { INSTEAD } else { PLAIN };
            let plan = self.plan(n, Name::Jacobi, Precision::Double, behind);
            // Behind the stage that it stands in for, where that is not the first.
            let place = stages.iter().position(|stage| stage.plan.why == why).map_or(0, |place| place + 1);
            let share = self.share_of_first(n, Name::Jacobi).filter(|_| plan.method == Method::Gmres);
            stages.insert(place, Stage::new(Plan { share, ..plan }, iterated(self.backend, parts)?));
        }
        Ok(System { stored, stages, choice })
    }

    /// With the matrix rounded in the loop and as it is outside.
    fn mixed<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let backend = self.backend;
        let low = self.store::<V::Narrow, T::Narrow>(a.to_rounded(backend)?, false);
        let refused = match &low {
            Ok(kept) => matches!(kept.setup, Setup::NotPositiveDefinite(_)),
            Err(error) => matches!(error, Error::Diagonal { .. }),
        };
        // Where rounding has done that, it is the precision that does not serve, not the matrix.
        let whole = || Setup::<T, B>::new(backend, &a, (Method::Cg, Name::Jacobi), None);
        if refused && !matches!(whole()?, Setup::NotPositiveDefinite(_)) {
            return Err(Error::InvalidArgument(
                "a diagonal entry is beyond the range of single precision; use precision double, or scale A and b"
                    .into(),
            ));
        }
        let Kept { operator, setup, name, choice, .. } = low?;
        let plan = self.plan(a.rows(), name, Precision::Mixed, AS_ASKED);
        let stage = Stage::new(plan, self.refined(operator, setup)?);
        Ok(System { stored: wrap(Arc::new(a)), stages: vec![stage], choice })
    }

    /// As `mixed` where rounding leaves a matrix to iterate with, and then in full precision where that does not do;
    /// else as `full`.
    fn either<T, V>(
        &mut self,
        a: Csr<V, B>,
        wrap: impl Fn(Arc<dyn SparseMatrix<T, B, V>>) -> Stored<T, B>,
    ) -> Result<System<T, B>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let backend = self.backend;
        match self.store::<V::Narrow, T::Narrow>(a.to_rounded(backend)?, false) {
            Ok(Kept { setup: Setup::NotPositiveDefinite(_), .. }) | Err(Error::Diagonal { .. }) => {
                self.full(a, wrap)
            }
            Ok(Kept { operator, setup, name, choice, .. }) => {
                let own = match self.named_or(Name::Jacobi) {
                    Name::ChebyshevSingle(_) => Name::Jacobi,
                    named => named,
                };
                let n = a.rows();
                let mut stages = vec![
                    Stage::new(self.plan(n, name, Precision::Mixed, HALF), self.refined(operator, setup)?),
                    Stage::later(self.plan(n, own, Precision::Double, RESCUE)),
                ];
                stages.extend(self.others(n));
                Ok(System { stored: wrap(Arc::new(a)), stages, choice })
            }
            Err(error) => Err(error),
        }
    }

    /// The stage of refinement.
    fn refined<T: Scalar, V: Scalar>(
        &self,
        operator: Box<dyn SparseMatrix<T::Narrow, B, V>>,
        setup: Setup<T::Narrow, B>,
    ) -> Result<Box<dyn Ready<T, B>>> {
        let operator: Box<dyn LinearOperator<T::Narrow, B>> = operator;
        let operator = Arc::from(operator);
        let setup = setup.on(self.backend, &operator)?;
        Ok(Box::new(Refined::new(self.backend, operator, setup, self.options)))
    }

    /// The preconditioner that is wished for, or another where that is left to us.
    fn named_or(&self, other: Name) -> Name {
        match self.wish() {
            Name::Auto => other,
            named => named,
        }
    }

    pub(super) fn plan(
        &self,
        n: usize,
        preconditioner: Name,
        precision: Precision,
        why: &'static str,
    ) -> Plan {
        let products = expected_products(n, 1, self.wishes.max_iterations);
        let iterations = match preconditioner {
            Name::Chebyshev(steps) | Name::ChebyshevSingle(steps) => {
                (MORE_PRODUCTS * products as f64 / steps as f64).ceil() as usize
            }
            _ => products,
        };
        let (method, Builder { condition, memory_limit: memory, .. }) = (self.first(), self.wishes);
        let (share, flops, condition, memory) = (None, None, *condition, *memory);
        let (race, indefinite, takes_over) = (false, false, false);
        Plan {
            method,
            preconditioner,
            precision,
            why,
            iterations,
            share,
            flops,
            memory,
            condition,
            race,
            indefinite,
            takes_over,
        }
    }

    /// Products with a matrix of `n` rows that are to be expected.
    fn products(&self, n: usize) -> usize {
        expected_products(n, self.wishes.right_hand_sides, self.wishes.max_iterations)
    }

    fn note(&mut self, decision: Decision) {
        self.notes.decisions.push(decision);
    }

    /// Stores a matrix in the format asked for, or in the one that pays for the products to be expected, and sets its
    /// preconditioner up. `alone`: it is the only precision of the system.
    fn store<V, T>(&mut self, a: Csr<V, B>, alone: bool) -> Result<Kept<T, B, V>>
    where
        T: Scalar,
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let (backend, method, wish) = (self.backend, self.first(), self.wish());
        let mut setup = timed(&mut self.notes.seconds.setup, || {
            Setup::new(backend, &a, (method, wish), self.wishes.near_null.as_ref())
        })?;
        let free = matches!((&setup, wish), (Setup::Jacobi(_) | Setup::Diagonal(_), Name::Auto));
        let on_grid = if alone && free { self.suits_levels_of_a_grid::<V, T>(&a)? } else { None };
        let later = on_grid.is_some() && self.begins_with_factors(a.rows());
        let levels = match (&setup, wish) {
            _ if later => None,
            (Setup::Jacobi(_) | Setup::Diagonal(_), Name::Auto) if alone => {
                match on_grid.map_or(Ok(None), |found| self.levels_of_a_grid::<V, T>(&a, &found))? {
                    None => self.levels_of_a_mesh::<V, T>(&a)?.map(|levels| (levels, MESH)),
                    levels => levels.map(|levels| (levels, GRIDS)),
                }
            }
            _ => None,
        };
        let start = Instant::now();
        let low = match wish {
            Name::ChebyshevSingle(_) => Some(a.to_rounded(backend)?),
            // Without memory for it, the choice is made.
            Name::Auto if levels.is_none() && self.may_pay::<V, T>(&a) => a.to_rounded(backend).ok(),
            _ => None,
        };
        let (operator, choice) = match self.wishes.format.as_str() {
            AUTO => self.automatic::<V, T>(a)?,
            name => (matrix::convert::<T, B, V>(backend, name, a)?, None),
        };
        // A format that was chosen for one right-hand side gives way to what several at once are fast in.
        let in_half = matches!(wish, Name::ChebyshevSingle(_));
        let at_once = match choice {
            Some(_) if alone && !in_half && method == Method::Cg => {
                many::instead(&*operator, &setup, self.wishes.right_hand_sides)
            }
            _ => 1,
        };
        let (operator, choice) = match operator.format() {
            format if at_once > 1 && format != Csr::<V>::NAME => {
                let csr: Box<dyn SparseMatrix<T, B, V>> = Box::new(operator.to_csr(backend)?);
                (csr, None)
            }
            _ => (operator, choice),
        };
        backend.synchronize()?;
        self.notes.seconds.convert += start.elapsed().as_secs_f64();
        self.note(format_decision(&*operator, choice.as_ref(), at_once, start.elapsed().as_secs_f64()));
        let (mut name, mut rescue) = (self.named_or(Name::Jacobi), None);
        let start = Instant::now();
        let mut why = POLYNOMIAL;
        if let Some((levels, why_levels)) = levels {
            rescue = Some(std::mem::replace(&mut setup, Setup::Levels(levels)));
            (name, why) = (Name::Multigrid(Default::default()), why_levels);
        }
        if let (Some(low), Setup::Jacobi(_)) = (low, &setup) {
            let format = operator.format();
            match wish {
                Name::ChebyshevSingle(steps) => {
                    setup = single(backend, low, format, steps)?;
                }
                _ if at_once == 1
                    && polynomial_pays(&*operator, self.products(operator.rows()), SINGLE_STEPS) =>
                {
                    // Where it can't be set up, what is at hand must do.
                    if let Ok(single) = single(backend, low, format, SINGLE_STEPS) {
                        rescue = Some(std::mem::replace(&mut setup, single));
                        name = Name::ChebyshevSingle(SINGLE_STEPS);
                    }
                }
                _ => {}
            }
        }
        backend.synchronize()?;
        self.notes.seconds.setup += start.elapsed().as_secs_f64();
        Ok(Kept { operator, setup, rescue, why, name, choice, later })
    }

    /// The diagonals of a matrix on a grid for which multigrid is likely to be faster.
    fn suits_levels_of_a_grid<V: Scalar + Widen<T>, T: Scalar>(
        &mut self,
        a: &Csr<V, B>,
    ) -> Result<Option<Diagonals>> {
        let (backend, parts, rows) = (self.backend, a.parts(), a.rows());
        if !self.may_take_levels(rows) || a.nonzeros() > NEIGHBOURS * rows {
            return Ok(None);
        }
        let found = timed(&mut self.notes.seconds.setup, || {
            backend.diagonals((rows, rows), parts.offsets, parts.indices, NEIGHBOURS)
        })?;
        let (price, on_device) = (backend.ordering_price(), <B as PreconditionSteps>::BYTES_TELL);
        let grid = multigrid::of_distances(rows, &found.distances);
        let pays = grid.is_some_and(|(grid, _)| {
            grids_pay::<T>(grid.sizes, a.nonzeros(), price, (on_device, self.hermitian))
        });
        Ok(pays.then_some(found))
    }

    /// Multigrid of a grid. Where it can't be set up, what is at hand must do.
    fn levels_of_a_grid<V: Scalar + Widen<T>, T: Scalar>(
        &mut self,
        a: &Csr<V, B>,
        diagonals: &Diagonals,
    ) -> Result<Option<Levels<T, B>>> {
        let (backend, method) = (self.backend, self.first());
        timed(&mut self.notes.seconds.setup, || {
            Ok(Levels::of_grid(backend, a, (Default::default(), method), diagonals).unwrap_or(None))
        })
    }

    /// Whether multigrid may be taken at once where conjugate gradients would take many iterations.
    fn may_take_levels_of_a_mesh(&self, rows: usize) -> bool {
        rows > SMALL && self.hermitian && self.first() == Method::Cg && self.may_take_levels(rows)
    }

    /// What is known of a mesh. On the host a path through it is looked for, since rows may be in any order.
    fn mesh_of<V: Scalar>(&mut self, a: &Csr<V, B>) -> Result<Mesh> {
        if let Some(mesh) = self.mesh {
            return Ok(mesh);
        }
        let mut mesh = Mesh::of(self.backend, a)?;
        if !<B as PreconditionSteps>::BYTES_TELL && !mesh.wants_levels::<V>(None) {
            // On a device the order is a good one by now, or does not matter.
            mesh = mesh.with_path(self.backend, a)?;
        }
        self.mesh = Some(mesh);
        Ok(mesh)
    }

    /// What multigrid that was named is worth in products, where the order of rows matters to them: on the host, of
    /// nodes that renumbering does not tear apart; 0 else.
    pub(super) fn products_of_named_levels<T: Scalar>(&self, a: &Csr<T, B>) -> Result<usize> {
        let named = matches!(self.wishes.preconditioner, Name::Multigrid(choice) if choice.unknowns <= 1);
        let suits = named && self.is_square() && !<B as PreconditionSteps>::BYTES_TELL;
        let alone = suits && unknowns_a_node::<T, T, B>(self.backend, a)? == 1;
        Ok(if alone { PRODUCTS_OF_LEVELS } else { 0 })
    }

    /// The same of multigrid that nobody named but that will be taken; none where it will not.
    pub(super) fn products_of_levels<T: Scalar>(&mut self, a: &Csr<T, B>) -> Result<Option<usize>> {
        let may = !<B as PreconditionSteps>::BYTES_TELL && self.may_take_levels_of_a_mesh(a.rows());
        let will = may
            && self.mesh_of(a)?.wants_levels::<T>(None)
            && unknowns_a_node::<T, T, B>(self.backend, a)? == 1;
        Ok(will.then_some(PRODUCTS_OF_LEVELS))
    }

    /// Multigrid, where conjugate gradients are likely to take so many iterations that its setup pays.
    fn levels_of_a_mesh<V: Scalar + Widen<T>, T: Scalar>(
        &mut self,
        a: &Csr<V, B>,
    ) -> Result<Option<Levels<T, B>>> {
        let (backend, rows) = (self.backend, a.rows());
        if !self.may_take_levels_of_a_mesh(rows) {
            return Ok(None);
        }
        let start = Instant::now();
        let setup = <B as PreconditionSteps>::BYTES_TELL.then(|| device_setup(rows));
        let levels = if self.mesh_of(a)?.wants_levels::<T>(setup) {
            // As above.
            Levels::new(backend, a, (Default::default(), Method::Cg), None).ok()
        } else {
            None
        };
        self.notes.seconds.setup += start.elapsed().as_secs_f64();
        Ok(levels)
    }

    /// Whether a polynomial in half the precision may be faster: where vectors and matrix come from memory in each
    /// iteration.
    fn may_pay<V: Scalar + Widen<T>, T: Scalar>(&self, a: &Csr<V, B>) -> bool {
        let (rows, nonzeros) = (a.rows(), a.nonzeros());
        <B as PreconditionSteps>::BYTES_TELL
            && self.first() == Method::Cg
            && size_of::<T::Narrow>() < size_of::<T>()
            && !in_one_call::<V, T, B>(self.backend, rows, nonzeros)
            && polynomial_may_pay::<T>(rows, self.products(rows))
    }

    /// In the format that pays: where many iterations go in one call, the one that they ask for, else by trial.
    fn automatic<V: Scalar + Widen<T>, T: Scalar>(&self, a: Csr<V, B>) -> Result<Chosen<T, B, V>> {
        let (backend, cg) = (self.backend, self.first() == Method::Cg);
        if cg && backend.cg_persists::<V, T>(a.rows(), a.nonzeros()) {
            return Ok((matrix::convert::<T, B, V>(backend, Csr::<V>::NAME, a)?, None));
        }
        if cg && backend.cg_streams::<V, T>(a.rows(), a.nonzeros()) {
            match matrix::build::<T, B, V>(backend, Sell::<V>::NAME, &a) {
                Err(Error::Refused { .. }) => {}
                made => return Ok((made?, None)),
            }
        }
        let options = ChoiceOptions::default().products(self.products(a.rows()));
        let (operator, report) = matrix::choose::<T, V, B>(backend, a, &options)?.into_parts();
        Ok((operator, Some(report)))
    }
}

/// Whether a backend does many iterations of such a system in one call.
pub(super) fn in_one_call<V: Scalar + Widen<T>, T: Scalar, B: SolverBackend>(
    backend: &B,
    rows: usize,
    nonzeros: usize,
) -> bool {
    backend.cg_persists::<V, T>(rows, nonzeros) || backend.cg_streams::<V, T>(rows, nonzeros)
}

/// A matrix in its format, with its preconditioner.
struct Kept<T: Scalar, B: SolverBackend, V: Scalar> {
    operator: Box<dyn SparseMatrix<T, B, V>>,
    setup: Setup<T, B>,
    /// What to go on with where the choice of the preconditioner was ours and it fails.
    rescue: Option<Setup<T, B>>,
    /// Why that choice, where it was ours.
    why: &'static str,
    name: Name,
    choice: Option<ChoiceReport>,
    /// Whether multigrid of a grid comes behind a factorisation.
    later: bool,
}

/// A matrix in the format that was chosen, and how.
type Chosen<T, B, V> = (Box<dyn SparseMatrix<T, B, V>>, Option<ChoiceReport>);

fn format_decision<T: Scalar, V: Scalar, B: SolverBackend>(
    a: &dyn SparseMatrix<T, B, V>,
    choice: Option<&ChoiceReport>,
    at_once: usize,
    seconds: f64,
) -> Decision {
    let why = match choice {
        Some(choice) => choice.to_string(),
        None if at_once > 1 => format!("{at_once} right-hand sides at once read the matrix once"),
        None => "named, or the one in which many iterations go in one call".into(),
    };
    let stored = a.storage_bytes();
    Decision {
        seconds: Some(seconds),
        bytes: Some(stored),
        ..Decision::new("format", a.format(), format!("{why} ({})", bytes(stored as u64)))
    }
}
