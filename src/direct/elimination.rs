//! An order of elimination for LU with pivots on the diagonal, and the factors that it leads to.

use super::analysis::FRONTAL_FROM;
use super::factor::{as_reason, caught, columns_of_transpose, within};
use super::foreign::{self, Columns, Order};
use super::frontal::{Frontal, Tree};
use super::lu::{Limits, Lu};
use super::options::DirectOptions;
use super::report::Reason;
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

/// An order of columns, and what the factors of a matrix with this pattern take.
pub(super) struct Elimination {
    /// The old index of each new one.
    pub(super) order: Vec<u32>,
    /// How it was found.
    pub(super) kind: OrderKind,
    /// Entries of L below its diagonal.
    pub(super) entries: f64,
    /// Multiplications.
    pub(super) flops: f64,
    /// The elimination tree and counts of columns, where they are known, until they are needed.
    counted: Mutex<Option<Counted>>,
    /// The structure of fronts, once it was needed.
    tree: OnceLock<Arc<Tree>>,
}

/// An order by minimum degree of a large matrix, where the work is limited.
pub(super) fn minimum_degree<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
) -> Result<Option<Permutation>, Reason> {
    found(options, || limited_minimum_degree(a, options.flop_limit))
}

/// The order of a large matrix whose graph has small separators, which all threads find, and what a factor in it takes.
pub(super) fn large_order<T: Factorable>(
    a: &Csr<T>,
    options: &DirectOptions,
) -> Result<Option<(Permutation, Counted)>, Reason> {
    found(options, || order_of_large(a, options.flop_limit))
}

/// What a search has found, or why no other kind of order serves either.
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
    /// For a square matrix whose columns are the rows of `columns`: dissection where that is large and has small
    /// separators, else the better of minimum degree and, where that has much to do, nested dissection.
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
            None => caught(|| foreign::minimum_degree(columns_of_transpose(columns)?))?,
        };
        // Half of them are those of a Cholesky factorisation.
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

    /// The order of a matrix so small that any does: it is as good as dense.
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

    /// Whether factors in dense fronts are made sooner than column by column.
    pub(super) fn suits_fronts(&self) -> bool {
        self.flops > FRONTAL_FROM
    }

    /// L and U column by column, with these pivots: see [`Lu::new`].
    pub(super) fn by_columns<T: Factorable>(
        &self,
        columns: Columns<'_>,
        values: &[T],
        pivots: (f64, f64),
        options: &DirectOptions,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Lu<T>, Reason> {
        // Columns one by one need no tree.
        lock(&self.counted).take();
        let entry = size_of::<T>() as u64 + 4;
        within((self.entries * 2.0) as u64 * entry, self.flops, options)?;
        let most = (options.memory_limit / entry) as usize;
        // An order for pivots on the diagonal is of no use where they are found elsewhere.
        let expected = (8.0 * (2.0 * self.entries + columns.columns as f64)) as usize + 100_000;
        let flops = COLUMN_BY_COLUMN * options.flop_limit;
        let first = Limits { entries: most.min(expected), flops, going: &mut *going };
        match Lu::new(columns, values, &self.order, first, pivots) {
            Err(Reason::TooLarge { .. }) if most > expected => {
                let order = foreign::column_minimum_degree(columns)?;
                Lu::new(columns, values, &order, Limits { entries: most, flops, going }, pivots)
            }
            lu => lu,
        }
    }

    /// The structure of fronts, which is found once, for a matrix whose columns are the rows of `columns`.
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

    /// The structure of L D L^T of a symmetric matrix with this graph.
    pub(super) fn symmetric_tree(self, graph: &Adjacency<'_>) -> Result<Tree, Reason> {
        if let Some(counted) = lock(&self.counted).take() {
            return Ok(Tree::of_counted(&counted, &self.order, true));
        }
        Tree::symmetric(graph, &Permutation::from_new_to_old(self.order).map_err(as_reason)?)
    }

    /// The same in dense fronts, for a matrix whose columns are the rows of `columns`.
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
