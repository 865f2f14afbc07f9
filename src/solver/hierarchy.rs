//! Sets up multigrid for the solver: for values of full or half width, in full or half the precision, and for nodes of
//! several unknowns.

use super::SolverBackend;
use super::names::{Method, MultigridChoice};
use super::near_null::NearNull;
use crate::backend::{Communicator, Diagonals, OrderingPrice, Space};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::multigrid::{Coarsening, LevelFacts, Multigrid, MultigridOptions, PartOf};
use crate::operator::LinearOperator;
use crate::precondition::{BlockJacobi, Narrowed, Preconditioner};
use crate::prices::multigrid::{
    GRID_DENSE, GRID_HANDING, GRID_ITERATIONS, GRID_LAUNCHES, GRID_PLAIN_ITERATIONS,
    GRID_PLAIN_ITERATIONS_DENSE, GRID_PRODUCTS, GRID_SETUP, GRID_SMALL_SETUP, GRID_VECTORS,
};
use crate::scalar::{Promote, Scalar};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// The caller's units of a matrix that was scaled so that rows have rounding errors of similar size. Multigrid is set up
/// for A itself: next to a jump of coefficients, rows of D A D look like rows at a Dirichlet
/// boundary, and coarse levels would follow a boundary that does not exist. With levels made for D A D, a grid with
/// jumps of 10^6 between blocks of 5 took 173 iterations.
pub(super) use crate::verdict::CallersUnits as Units;

/// What is known of a matrix, beyond its entries, that multigrid can use.
#[derive(Clone, Copy, Default)]
pub(super) struct Known<'a> {
    /// The caller's near-null vectors.
    pub(super) near_null: Option<&'a Arc<NearNull>>,
    /// The caller's units, if the matrix was scaled.
    pub(super) units: Option<&'a Units>,
}

/// A hierarchy, and its description.
pub(super) struct Levels<T: Scalar, B: SolverBackend> {
    m: Made<T, B>,
    /// The caller's near-null vectors, for a later setup.
    pub(super) near_null: Option<Arc<NearNull>>,
    pub(super) told: String,
    /// Its levels, finest first; empty if each rank has its own levels.
    pub(super) facts: Vec<LevelFacts>,
}

/// The hierarchy in one of two types.
enum Made<T: Scalar, B: SolverBackend> {
    /// Made from values of full width.
    Full(Box<Multigrid<T, B>>),
    /// Made from values of half the width.
    Narrowed(Box<dyn Preconditioner<T, B>>),
}

impl<T: Scalar, B: SolverBackend> Levels<T, B> {
    /// Sets up multigrid for a Hermitian A with values of type `T` or half as wide. If the choice does not give the
    /// number of unknowns in a node, it follows from `near_null` or the pattern.
    pub(super) fn new<V: Scalar + Promote<T>>(
        backend: &B,
        a: &Csr<V, B>,
        (choice, method): (MultigridChoice, Method),
        Known { near_null, units }: Known<'_>,
    ) -> Result<Self> {
        let known = near_null.and_then(|near_null| near_null.unknowns_a_node(a.rows()));
        let unknowns = match (choice.unknowns, known) {
            // Classical coarsening needs nodes of one unknown, so the pattern is not examined.
            (0, _) if choice.coarsening == Coarsening::Classical => 1,
            (0, Some(known)) => known,
            (0, None) => unknowns_a_node::<T, V, B>(backend, a)?,
            (named, _) => named,
        };
        let made = Self::of_width(
            a,
            &Wanted {
                backend,
                options: options_of(choice, method).unknowns_a_node(unknowns),
                kind: Kind::Any,
                near_null: near_null.map(|near_null| &**near_null),
                units,
            },
        )?;
        let made = made.ok_or_else(|| Error::Unsupported("multigrid for this matrix".into()))?;
        Ok(Self { near_null: near_null.cloned(), ..made })
    }

    /// [`Levels::new`] for a matrix on a grid with these diagonals; `None` if there is no such grid.
    pub(super) fn of_grid<V: Scalar + Promote<T>>(
        backend: &B,
        a: &Csr<V, B>,
        (choice, method): (MultigridChoice, Method),
        diagonals: &Diagonals,
        units: Option<&Units>,
    ) -> Result<Option<Self>> {
        let options = options_of(choice, method).unknowns_a_node(1);
        let kind = Kind::Grid(diagonals);
        Self::of_width(a, &Wanted { backend, options, kind, near_null: None, units })
    }

    /// [`Levels::new`] for a matrix that is not Hermitian but becomes so if its rows are scaled; `None` for any other,
    /// or if `is_wanted`, which is called for such a matrix alone, returns false.
    pub(super) fn symmetrized<V: Scalar + Promote<T>>(
        backend: &B,
        a: &Csr<V, B>,
        (choice, method): (MultigridChoice, Method),
        is_wanted: &dyn Fn() -> Result<bool>,
    ) -> Result<Option<Self>> {
        let options = options_of(choice, method).unknowns_a_node(unknowns_a_node::<T, V, B>(backend, a)?);
        let kind = Kind::Symmetrized(is_wanted);
        Self::of_width(a, &Wanted { backend, options, kind, near_null: None, units: None })
    }

    fn of_width<V: Scalar + Promote<T>>(a: &Csr<V, B>, wanted: &Wanted<'_, B>) -> Result<Option<Self>> {
        let a: &dyn Any = a;
        if let Some(a) = a.downcast_ref::<Csr<T, B>>() {
            let Some(m) = made(a, wanted)? else { return Ok(None) };
            let (told, facts) = (told(&m, wanted.options.unknowns_a_node), m.facts().levels.clone());
            return Ok(Some(Self { m: Made::Full(Box::new(m)), near_null: None, told, facts }));
        }
        let Some(a) = a.downcast_ref::<Csr<T::Lower, B>>() else {
            return Err(Error::Unsupported("multigrid from values of another type".into()));
        };
        let Some(m) = made(a, wanted)? else { return Ok(None) };
        let (told, facts) = (told(&m, wanted.options.unknowns_a_node), m.facts().levels.clone());
        let m = Made::Narrowed(Box::new(Narrowed::new::<T, B>(m)?));
        Ok(Some(Self { m, near_null: None, told, facts }))
    }

    /// Sets up multigrid for a distributed matrix, of which this rank has its block and the entries beside it, and on
    /// the host if `rows` is called. If each node has one unknown, there is one hierarchy over all ranks; else each rank
    /// has a hierarchy for its own block, without a description. With `grids_only`, returns `None` unless ranks have
    /// whole planes of a grid.
    pub(super) fn spread<C: Communicator<B>>(
        space: &Space<B, C>,
        (own, edge, rows): PartOf<'_, T, B>,
        parts: &[Range<usize>],
        (choice, method): (MultigridChoice, Method),
        grids_only: bool,
    ) -> Result<Option<Self>> {
        let unknowns = match choice.unknowns {
            0 if grids_only => 1,
            0 => unknowns_a_node::<T, T, B>(space.backend(), own)?,
            named => named,
        };
        if space.count(unknowns > 1)? > 0 {
            let alone = Self::new(space.backend(), own, (choice, method), Known::default())?;
            return Ok(Some(Self { told: String::new(), facts: Vec::new(), ..alone }));
        }
        let options = options_of(choice, method);
        let made = Multigrid::spread_with(space, (own, edge, rows), parts, &options, grids_only)?;
        Ok(made.map(|m| {
            let (told, facts) = (format!("{}, of all ranks together", told(&m, 1)), m.facts().levels.clone());
            Self { m: Made::Full(Box::new(m)), near_null: None, told, facts }
        }))
    }

    pub(super) fn get(&self) -> &dyn Preconditioner<T, B> {
        match &self.m {
            Made::Full(m) => &**m,
            Made::Narrowed(m) => &**m,
        }
    }

    /// Uses the solver's matrix instead of a copy.
    pub(super) fn share(&mut self, a: &Arc<dyn LinearOperator<T, B>>) -> Result<()> {
        match &mut self.m {
            Made::Full(m) => m.share(Arc::clone(a)),
            Made::Narrowed(_) => Ok(()),
        }
    }

    /// Takes new values of the same pattern.
    pub(super) fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        match &mut self.m {
            Made::Full(m) => m.update(backend, a),
            Made::Narrowed(m) => m.update(backend, a),
        }
    }
}

fn options_of(choice: MultigridChoice, method: Method) -> MultigridOptions {
    choice.options().real_eigenvalues(matches!(method, Method::Cg | Method::Minres))
}

/// The required kind of hierarchy.
enum Kind<'a> {
    Any,
    /// Multigrid on a grid, for a matrix with these diagonals.
    Grid(&'a Diagonals),
    /// Multigrid for a matrix that becomes Hermitian if its rows are scaled, if this returns true.
    Symmetrized(&'a dyn Fn() -> Result<bool>),
}

/// The parameters of a hierarchy.
struct Wanted<'a, B> {
    backend: &'a B,
    options: MultigridOptions,
    kind: Kind<'a>,
    near_null: Option<&'a NearNull>,
    units: Option<&'a Units>,
}

fn made<T: Scalar, B: SolverBackend>(
    a: &Csr<T, B>,
    wanted: &Wanted<'_, B>,
) -> Result<Option<Multigrid<T, B>>> {
    let Some(units) = wanted.units else { return made_of(a, wanted) };
    let same: &dyn Any = &units.inverse;
    let inverse = match same.downcast_ref::<Arc<[T]>>() {
        Some(inverse) => {
            let mut there = wanted.backend.buffer(inverse.len())?;
            wanted.backend.write(inverse, &mut there)?;
            there
        }
        None => wanted.backend.upload(units.inverse.iter().map(|&unit| T::from_f64(unit)).collect())?,
    };
    Multigrid::in_units_of(wanted.backend, a, (inverse, units.columns), |a| made_of(a, wanted))
}

fn made_of<T: Scalar, B: SolverBackend>(
    a: &Csr<T, B>,
    &Wanted { backend, ref options, ref kind, near_null, .. }: &Wanted<'_, B>,
) -> Result<Option<Multigrid<T, B>>> {
    match kind {
        Kind::Grid(diagonals) => return Multigrid::on_grid(backend, a, options, Some(diagonals)),
        Kind::Symmetrized(is_wanted) => return Multigrid::symmetrized(backend, a, options, is_wanted),
        Kind::Any => {}
    }
    match near_null.map_or(Ok(None), |near_null| near_null.vectors(a.rows()))? {
        Some((count, vectors)) => Multigrid::with_near_null(backend, a, count, vectors, options),
        None => Multigrid::new(backend, a, options),
    }
    .map(Some)
}

/// The number of rows that are examined before the others, and the maximum number of unknowns in a node.
const FIRST_ROWS: usize = 1000;
const MOST_UNKNOWNS: usize = 6;

/// Returns the number of unknowns in each node of a mesh. Rows of one node are consecutive and have the same columns.
/// Returns one if nodes have different numbers of unknowns.
pub(super) fn unknowns_a_node<T: Scalar, V: Scalar + Promote<T>, B: SolverBackend>(
    backend: &B,
    a: &Csr<V, B>,
) -> Result<usize> {
    // With two unknowns in each node, half of the rows have the same columns as the row before. The first rows usually
    // show that there are no such nodes.
    let first = a.rows().min(FIRST_ROWS);
    let window = a.window(backend, 0..first)?;
    let like = (1..first).filter(|&i| window.row(i - 1).0 == window.row(i).0).count();
    if 3 * like < first {
        return Ok(1);
    }
    let sizes = BlockJacobi::<T, B>::natural_blocks(backend, a, MOST_UNKNOWNS)?;
    let size = sizes.first().copied().unwrap_or(1);
    Ok(if sizes.iter().all(|&other| other == size) { size } else { 1 })
}

/// Describes the levels, for the report.
fn told<T: Scalar, B: SolverBackend>(m: &Multigrid<T, B>, unknowns: usize) -> String {
    let facts = m.facts();
    let rows: Vec<String> = facts.levels.iter().map(|level| level.rows.to_string()).collect();
    let kind = match (facts.grid, facts.scaled) {
        (true, false) => " on grids",
        (true, true) => " on grids, for the scaled matrix",
        (false, true) => " for the scaled matrix",
        (false, false) => "",
    };
    let nodes = if unknowns > 1 { format!(", with {unknowns} unknowns per node") } else { String::new() };
    let complexity = facts.operator_complexity();
    format!("levels{kind}: {} rows, {complexity:.2} times the entries{nodes}", rows.join(", "))
}

/// Returns whether multigrid on a grid is likely to be faster than iterations alone.
pub(super) fn grids_pay<T: Scalar>(
    sizes: [usize; 3],
    nonzeros: usize,
    price: OrderingPrice,
    kind: (bool, bool),
) -> bool {
    grids_save::<T>(sizes, nonzeros, price, kind, 0.0) > 0.0
}

/// Returns the seconds that multigrid on grids saves. An iteration without it takes `longer` seconds more than moving
/// its bytes takes.
pub(super) fn grids_save<T: Scalar>(
    sizes: [usize; 3],
    nonzeros: usize,
    price: OrderingPrice,
    (on_device, hermitian): (bool, bool),
    longer: f64,
) -> f64 {
    let n = sizes.iter().product::<usize>() as f64;
    let (wide, narrow) = (size_of::<T>() as f64, size_of::<T::Lower>() as f64);
    let longest = sizes.into_iter().max().unwrap_or(1) as f64;
    let matrix = nonzeros as f64;
    let plain = matrix * wide + 10.0 * n * wide;
    let cycle = GRID_PRODUCTS * matrix * narrow + GRID_VECTORS * n * narrow;
    let boxes = usize::from(!hermitian);
    let (each, small) =
        if on_device { (GRID_LAUNCHES[boxes], GRID_SMALL_SETUP) } else { (GRID_HANDING, 0.0) };
    let setup = GRID_SETUP * matrix * (wide + 4.0) / price.bandwidth + small;
    let with = GRID_ITERATIONS[boxes] * ((plain + cycle) / price.bandwidth + each) + setup;
    let without = if matrix > GRID_DENSE * n { GRID_PLAIN_ITERATIONS_DENSE } else { GRID_PLAIN_ITERATIONS };
    without * longest * (plain / price.bandwidth + longer) - with
}
