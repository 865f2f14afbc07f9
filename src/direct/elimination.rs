//! A fill-reducing ordering for LU with pivots on the diagonal, and the factors in this ordering.

use super::faer_wrapper::{self, Columns, Order};
use super::frontal::{Frontal, Tree};
use super::lu::{Limits, Lu};
use super::options::DirectOptions;
use super::report::Reason;
use super::steps::{as_reason, caught, columns_of_transpose, within};
use crate::direct::Factorable;
use crate::graph::{Adjacency, Permutation};
use crate::lock::lock;
use crate::matrix::Csr;
use crate::prepare::{
    Counted, OrderKind, Sought, better_dissection, graph_order_size, limited_minimum_degree, order_of_large,
};
use crate::prices::factors::COLUMN_BY_COLUMN;
use crate::scalar::Real;
use num_traits::Float;
use std::sync::{Arc, Mutex, OnceLock};

/// LU with more multiplications than this uses dense fronts. With up to ten times as many, fronts take half to two
/// thirds of the time of LU column by column (docs/internals/benchmarks/python.md).
pub(super) const FRONTAL_FROM: f64 = 1e6;

/// An ordering of columns, and the size and cost of the factors in it.
pub(super) struct Elimination {
    /// The old index of each new one.
    pub(super) order: Vec<u32>,
    /// The method that found it.
    pub(super) kind: OrderKind,
    /// Entries of L below its diagonal.
    pub(super) entries: f64,
    /// Multiplications of the factorisation.
    pub(super) flops: f64,
    /// The elimination tree and column counts if they are known; the first user takes them.
    counted: Mutex<Option<Counted>>,
    /// The structure of fronts, computed when it is first needed.
    tree: OnceLock<Arc<Tree>>,
}

/// A minimum degree ordering of a large matrix, ended if it takes too much work.
pub(super) fn minimum_degree<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
) -> Result<Option<Permutation>, Reason> {
    found(options, || limited_minimum_degree(a, options.flop_limit))
}

/// A nested dissection ordering, computed by all threads, and the size of its factors, if the graph has small
/// separators.
pub(super) fn large_order<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
) -> Result<Option<(Permutation, Counted)>, Reason> {
    found(options, || order_of_large(a, options.flop_limit, options.by_coordinates))
}

/// The result of a search for an ordering, or the reason why no ordering is cheap enough.
fn found<F>(
    options: &DirectOptions,
    search: impl FnOnce() -> crate::Result<Sought<F>>,
) -> Result<Option<F>, Reason> {
    match caught(|| search().map_err(as_reason))? {
        Sought::Found(found) => Ok(Some(found)),
        Sought::Nothing => Ok(None),
        Sought::Ended(entries) => Err(Reason::OrderTooLong { entries }),
        Sought::TooLong(flops) => Err(Reason::TooLong { flops, limit: options.flop_limit }),
    }
}

impl Elimination {
    /// For a square matrix given as the rows of `columns`: nested dissection if it is large with small separators, else
    /// minimum degree. If that has much fill, nested dissection is tried too, and the better one is taken.
    pub(super) fn new<T: Factorable>(columns: &Csr<T>, options: &DirectOptions) -> Result<Self, Reason> {
        if let Some((order, counted)) = large_order(columns, options)? {
            let size = counted.size();
            return Ok(Self {
                order: order.into_parts().0,
                kind: OrderKind::NestedDissection,
                entries: size.entries - columns.rows() as f64,
                flops: size.multiplications_lu,
                counted: Mutex::new(Some(counted)),
                tree: OnceLock::new(),
            });
        }
        let degree = match minimum_degree(columns, options)? {
            Some(order) => {
                let graph = Adjacency::new(columns).map_err(as_reason)?;
                let size = graph_order_size(&graph, &order).map_err(as_reason)?;
                let (entries, flops) = (size.entries - columns.rows() as f64, size.multiplications_lu);
                Order { order: order.into_parts().0, entries, flops }
            }
            None => caught(|| faer_wrapper::minimum_degree(columns_of_transpose(columns)?))?,
        };
        // A Cholesky factorisation takes half the multiplications of LU.
        let better = better_dissection(columns, degree.flops / 2.0, options.flop_limit);
        let (order, kind, entries, flops) = match better.map_err(as_reason)? {
            Some((order, size)) => {
                let entries = size.entries - columns.rows() as f64;
                (order.into_parts().0, OrderKind::NestedDissection, entries, size.multiplications_lu)
            }
            None => (degree.order, OrderKind::MinimumDegree, degree.entries, degree.flops),
        };
        Ok(Self { order, kind, entries, flops, counted: Mutex::default(), tree: OnceLock::new() })
    }

    /// The natural ordering of a matrix so small that it is treated as dense.
    pub(super) fn natural(n: usize) -> Self {
        let size = n as f64;
        Self {
            order: (0..n as u32).collect(),
            kind: OrderKind::MinimumDegree,
            entries: size * (size - 1.0) / 2.0,
            flops: size * size * size / 3.0,
            counted: Mutex::default(),
            tree: OnceLock::new(),
        }
    }

    /// Returns whether LU in dense fronts is faster than LU column by column.
    pub(super) fn suits_fronts(&self) -> bool {
        self.flops > FRONTAL_FROM
    }

    /// L and U, computed column by column with these pivot thresholds: see [`Lu::new`].
    pub(super) fn by_columns<T: Factorable>(
        &self,
        columns: Columns<'_>,
        values: &[T],
        pivots: (f64, f64),
        options: &DirectOptions,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Lu<T>, Reason> {
        // LU column by column does not use the elimination tree, so its memory is freed.
        lock(&self.counted).take();
        let entry = size_of::<T>() as u64 + 4;
        within((self.entries * 2.0) as u64 * entry, self.flops, options)?;
        let most = (options.memory_limit / entry) as usize;
        // The ordering assumes pivots on the diagonal. If they are chosen elsewhere there is much more fill, and the
        // factorisation is ended here.
        let expected = (8.0 * (2.0 * self.entries + columns.columns as f64)) as usize + 100_000;
        let flops = COLUMN_BY_COLUMN * options.flop_limit;
        let first = Limits { entries: most.min(expected), flops, going: &mut *going };
        match Lu::new(columns, values, &self.order, first, pivots) {
            Err(Reason::TooLarge { .. }) if most > expected => {
                let order = faer_wrapper::column_minimum_degree(columns)?;
                Lu::new(columns, values, &order, Limits { entries: most, flops, going }, pivots)
            }
            lu => lu,
        }
    }

    /// The structure of fronts of a matrix given as the rows of `columns`, computed once.
    pub(super) fn tree<T: Factorable>(&self, columns: &Csr<T>) -> Result<Arc<Tree>, Reason> {
        let tree = match self.tree.get() {
            Some(tree) => return Ok(tree.clone()),
            None => match lock(&self.counted).take() {
                Some(counted) => Arc::new(Tree::of_counted(&counted, &self.order, false)),
                None => Arc::new(Tree::new(columns, &self.order)?),
            },
        };
        Ok(self.tree.get_or_init(|| tree).clone())
    }

    /// The structure of fronts for L D L^T of a symmetric matrix with this graph.
    pub(super) fn symmetric_tree(self, graph: &Adjacency<'_>) -> Result<Tree, Reason> {
        if let Some(counted) = lock(&self.counted).take() {
            return Ok(Tree::of_counted(&counted, &self.order, true));
        }
        Tree::symmetric(graph, &Permutation::from_new_to_old(self.order).map_err(as_reason)?)
    }

    /// L and U in dense fronts, for a matrix given as the rows of `columns`.
    pub(super) fn in_fronts<T: Factorable>(
        &self,
        columns: &Csr<T>,
        options: &DirectOptions,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Frontal<T>, Reason> {
        let tree = self.tree(columns)?;
        within((tree.all_entries() * size_of::<T>()) as u64, tree.all_work(), options)?;
        let least = <T::Real as Float>::epsilon().to_f64().sqrt();
        Frontal::new(columns_of_transpose(columns)?, columns.parts().values, (&tree, least), going)
    }
}
