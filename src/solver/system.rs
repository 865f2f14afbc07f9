//! The matrix of a solver, in the chosen format and order, with values in the narrowest type that loses nothing.

use super::SolverBackend;
use super::choice::AS_ASKED;
use super::forecast::of_factors;
use super::hierarchy::grids_save;
use super::names::{Method, Reorder};
use super::report::Decision;
use crate::backend::PreconditionSteps;
use crate::direct::least_seconds;
use crate::error::{Error, Result};
use crate::graph::{self, Adjacency, Benefit, GridOrder, Permutation};
use crate::matrix::{Csr, SparseMatrix};
use crate::operator::LinearOperator;
use crate::prepare::expected_order;
use crate::prices::multigrid::PRODUCTS_OF_LEVELS;
use crate::prices::order::OrderGuess;
use crate::report::{count, seconds};
use crate::scalar::{Element, Scalar};
use std::cell::Cell;
use std::sync::Arc;

/// A matrix in the storage that its products use.
pub(super) enum Stored<T: Scalar, B: SolverBackend> {
    /// CSR with values of full width, which can be replaced.
    Open(Box<Csr<T, B>>),
    /// Values of full width.
    Full(Arc<dyn SparseMatrix<T, B, T>>),
    /// Values of half the width.
    Lower(Arc<dyn SparseMatrix<T, B, T::Lower>>),
}

impl<T: Scalar, B: SolverBackend> Stored<T, B> {
    pub(super) fn operator(&self) -> &dyn LinearOperator<T, B> {
        match self {
            Stored::Open(a) => &**a,
            Stored::Full(a) => &**a,
            Stored::Lower(a) => &**a,
        }
    }

    /// The operator, if it can be shared; `None` if its values may be replaced.
    pub(super) fn shared(&self) -> Option<Arc<dyn LinearOperator<T, B>>> {
        match self {
            Stored::Open(_) => None,
            Stored::Full(a) => Some(Arc::clone(a) as Arc<dyn LinearOperator<T, B>>),
            Stored::Lower(a) => Some(Arc::clone(a) as Arc<dyn LinearOperator<T, B>>),
        }
    }

    pub(super) fn format(&self) -> &'static str {
        match self {
            Stored::Open(_) => Csr::<T, B>::NAME,
            Stored::Full(a) => a.format(),
            Stored::Lower(a) => a.format(),
        }
    }

    /// The type in which values are stored.
    pub(super) fn values(&self) -> &'static str {
        match self {
            Stored::Lower(_) => <T::Lower as Element>::NAME,
            _ => T::NAME,
        }
    }

    pub(super) fn nonzeros(&self) -> usize {
        match self {
            Stored::Open(a) => a.nonzeros(),
            Stored::Full(a) => a.nonzeros(),
            Stored::Lower(a) => a.nonzeros(),
        }
    }

    /// Returns the minimum seconds of a factorisation for a matrix that suits `method`.
    pub(super) fn least_seconds(&self, method: Method) -> f64 {
        let is_hermitian = !matches!(method, Method::Gmres | Method::BiCgStab);
        least_seconds::<T>(self.operator().rows(), self.nonzeros(), is_hermitian)
    }

    /// Returns the seconds that it takes to set up incomplete factors without fill, and the seconds of an iteration
    /// with them. An iteration without them moves `bytes`.
    pub(super) fn factors_seconds(&self, bytes: f64) -> (f64, f64) {
        of_factors::<T, B>((self.operator().rows(), self.nonzeros()), bytes)
    }

    /// Estimates the cost of a fill-reducing ordering of a square matrix and of its factorisation, once. If memory runs
    /// out, the estimate is the least one for any matrix of this size.
    pub(super) fn guess_of_order(&self, backend: &B, guess: &Cell<Option<OrderGuess>>) -> OrderGuess {
        let on_device = <B as PreconditionSteps>::IS_DEVICE;
        let look = || expected_order(&self.to_csr(backend)?.to_host(backend)?, on_device);
        let least = || OrderGuess::new([self.operator().rows(), self.nonzeros()], 0.0, || 0.0);
        let known = guess.get().unwrap_or_else(|| look().unwrap_or_else(|_| least()));
        guess.set(Some(known));
        known
    }

    /// A copy of the matrix in CSR, with values of full width.
    pub(super) fn to_csr(&self, backend: &B) -> Result<Csr<T, B>> {
        match self {
            Stored::Open(a) => a.copied(backend),
            Stored::Full(a) => a.to_csr(backend),
            Stored::Lower(a) => widened(backend, a.to_csr(backend)?),
        }
    }
}

/// The same pattern with values of full width.
fn widened<T: Scalar, B: PreconditionSteps>(backend: &B, a: Csr<T::Lower, B>) -> Result<Csr<T, B>> {
    let mut values = backend.buffer(a.nonzeros())?;
    backend.widen::<T>(a.parts().values, &mut values)?;
    Ok(a.with_values(values))
}

/// An order of the unknowns other than the caller's.
pub(super) struct Order<T: Scalar, B: SolverBackend> {
    pub(super) permutation: Permutation<B>,
    /// Workspaces for vectors in this order.
    pub(super) b: B::Vec<T>,
    pub(super) x: B::Vec<T>,
    /// For each entry of the renumbered matrix, its position among the caller's entries; computed when values are first
    /// replaced.
    entries: Option<B::Vec<u32>>,
}

/// A matrix, its order if that is not the caller's, and the decision about it.
type Ordered<T, B> = (Csr<T, B>, Option<Order<T, B>>, Decision);

/// Renumbers the unknowns on the backend if that was requested, or if it is likely to pay for `products` products with
/// A: in the order of a grid if the pattern is that of one, else by reverse Cuthill-McKee. Returns no order if the
/// caller's is kept. `levels` is `None` if multigrid may not be used; otherwise it says whether A is Hermitian, and the
/// order of a grid also pays by saving iterations. `of_levels` returns the gain of algebraic multigrid in products, if
/// that is going to be used; it is called only if the decision depends on it.
pub(super) fn reorder<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: Csr<T, B>,
    (how, levels): (Reorder, Option<bool>),
    products: usize,
    of_levels: impl FnOnce(&Csr<T, B>) -> Result<Option<usize>>,
) -> Result<Ordered<T, B>> {
    let mut benefit = match how {
        // The same permutation is applied to rows and columns.
        _ if a.rows() != a.columns() => {
            return Ok((a, None, Decision::new("order", "no", "the matrix is not square")));
        }
        Reorder::None => return Ok((a, None, Decision::new("order", "no", AS_ASKED))),
        Reorder::Auto => Some(graph::predicted_benefit_on(backend, &a, backend.ordering_price(), products)?),
        Reorder::Rcm => None,
    };
    let decide = |chosen: String, benefit: Option<Benefit>| Decision {
        predicted_seconds: benefit.map(|benefit| benefit.price()),
        ..Decision::new("order", chosen, benefit.map_or(String::new(), words))
    };
    if let Some(benefit) = &mut benefit {
        if let Some(order) = order_of_a_grid(backend, &a, benefit, levels)? {
            let [x, y, z] = order.sizes();
            let third = if z > 1 { format!(" x {z}") } else { String::new() };
            let told = format!("as a grid of {x} x {y}{third} points, found in the pattern");
            let (permuted, order) = permuted(backend, a, order.into_permutation())?;
            return Ok((permuted, Some(order), decide(told, Some(*benefit))));
        }
        if benefit.pays() && graph::has_few_diagonals(backend, &a)? {
            // Formats by diagonals, and multigrid on grids, save more than another order would.
            return Ok((a, None, Decision::new("order", "no", "its entries are on few diagonals")));
        }
        if !benefit.pays()
            && benefit.with_products(PRODUCTS_OF_LEVELS).pays()
            && let Some(products) = of_levels(&a)?
        {
            *benefit = benefit.with_products(products);
        }
        if !benefit.pays() {
            return Ok((a, None, decide("no".into(), Some(*benefit))));
        }
    }
    let ordering = graph::ordering_on(backend, &a)?;
    let (before, rcm) = (count(ordering.bandwidth_before() as u64), count(ordering.bandwidth_rcm() as u64));
    if ordering.keeps_natural_order() {
        let told =
            format!("no: reverse Cuthill-McKee gives bandwidth {rcm}, the file's order gives {before}");
        return Ok((a, None, decide(told, benefit)));
    }
    let (permuted, order) = permuted(backend, a, ordering.into_permutation())?;
    let told = format!("by reverse Cuthill-McKee: bandwidth {rcm} instead of {before}");
    Ok((permuted, Some(order), decide(told, benefit)))
}

fn words(benefit: Benefit) -> String {
    let price = seconds(benefit.price());
    let percent = 100.0 * benefit.saving();
    if percent < 0.5 {
        return format!("costs {price}, saves nothing");
    }
    let (products, gain) = (benefit.products(), seconds(benefit.gain()));
    format!("costs {price}, saves at most {percent:.0} % of {products:.0} products ({gain})")
}

/// Multigrid on a grid has to save at least this fraction of the cost of reordering, by a forecast that counts 1.7
/// iterations without it for each point of a side (1.9 to 2.5 were measured).
const OF_PRICE: f64 = 0.6;

/// Returns the order of a grid, if the matrix is one in a different order and reordering pays.
fn order_of_a_grid<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &Csr<T, B>,
    benefit: &Benefit,
    levels: Option<bool>,
) -> Result<Option<GridOrder<B>>> {
    if !(benefit.pays() || levels.is_some()) || !graph::may_be_a_grid(backend, a)? {
        return Ok(None);
    }
    let graph = Adjacency::on(backend, a)?;
    let Some(sizes) = graph::grid_sizes(backend, &graph)? else { return Ok(None) };
    let saves = levels.is_some_and(|hermitian| {
        let (price, on_device) = (backend.ordering_price(), <B as PreconditionSteps>::IS_DEVICE);
        // Iterations without multigrid would run in the matrix's current order.
        let longer = benefit.gain_of_a_product();
        let saved = grids_save::<T>(sizes, a.nonzeros(), price, (on_device, hermitian), longer);
        saved > OF_PRICE * benefit.price_once_loaded()
    });
    if benefit.pays() || saves { graph::grid_order_on(backend, &graph, sizes) } else { Ok(None) }
}

/// A matrix in another order, and the order.
fn permuted<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: Csr<T, B>,
    permutation: Permutation<B>,
) -> Result<(Csr<T, B>, Order<T, B>)> {
    let permuted = graph::permute_symmetric_on(backend, &a, &permutation)?;
    drop(a);
    let (b, x) = (backend.zeros(permuted.rows())?, backend.zeros(permuted.rows())?);
    Ok((permuted, Order { permutation, b, x, entries: None }))
}

impl<T: Scalar, B: SolverBackend> Order<T, B> {
    /// Writes values in the caller's order to their places in `a`, the renumbered matrix.
    pub(super) fn write_values(
        &mut self,
        backend: &B,
        values: &B::Slice<T>,
        a: &mut Csr<T, B>,
    ) -> Result<()> {
        let entries = match &self.entries {
            Some(entries) => entries,
            None => self.entries.insert(entries_of(backend, a, &self.permutation)?),
        };
        backend.gather(values, entries, a.values_mut())
    }
}

/// Returns, for each entry of the renumbered matrix `a`, its position in the original matrix.
fn entries_of<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &Csr<T, B>,
    permutation: &Permutation<B>,
) -> Result<B::Vec<u32>> {
    let nonzeros = a.nonzeros();
    if u32::try_from(nonzeros).is_err() {
        return Err(Error::Unsupported(format!(
            "new values for {nonzeros} entries that were reordered; build the solver with reorder none"
        )));
    }
    // Numbers the entries of the renumbered pattern, and permutes it back.
    let here = a.to_host(backend)?;
    let numbered = here.with_values((0..nonzeros).map(|k| k as f64).collect());
    let inverse = permutation.to_host(backend)?.into_inverse();
    let before = graph::permute_symmetric(&numbered, &inverse)?;
    let mut entries = vec![0; nonzeros];
    for (number, &place) in before.parts().values.iter().enumerate() {
        entries[place as usize] = number as u32;
    }
    backend.upload(entries)
}
