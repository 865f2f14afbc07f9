//! Counts the entries and multiplications of a Cholesky factor in a given order, without computing it.

use super::counts::tree_and_counts;
use super::renumbered::Renumbered;
use crate::error::{Error, Result};
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// The size of the factor L of a symmetric matrix, and the work of its factorisation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct OrderSize {
    /// The number of entries of L, including the diagonal.
    pub entries: f64,
    /// Multiplications of the Cholesky factorisation: c (c + 1) / 2 for a column of c entries.
    pub multiplications: f64,
    /// Multiplications of an LU factorisation with the same pattern and pivots on the diagonal: (c - 1)^2.
    pub multiplications_lu: f64,
}

/// Counts the entries and multiplications of a Cholesky factorisation in this order of elimination, for a matrix with
/// the pattern of A + A^T. This needs the time and memory of a few passes over A, however large L is.
///
/// # Errors
/// If the matrix is not square, if the order has another length, or if memory runs out.
pub fn order_size<T: Scalar>(a: &Csr<T>, order: &Permutation) -> Result<OrderSize> {
    graph_order_size(&Adjacency::new(a)?, order)
}

/// [`order_size`] for an existing graph.
///
/// # Errors
/// If the order has another length.
pub fn graph_order_size(graph: &Adjacency<'_>, order: &Permutation) -> Result<OrderSize> {
    Ok(Counted::new(graph, order)?.size())
}

/// A graph in an order of elimination, its elimination tree, and the number of entries in each column of its factor.
pub(crate) struct Counted {
    pub(crate) graph: Renumbered,
    pub(crate) parents: Vec<u32>,
    pub(crate) counts: Vec<u32>,
}

impl Counted {
    /// Computes the elimination tree and the column counts of the factor in this order.
    ///
    /// # Errors
    /// If the order has another length.
    pub(crate) fn new(graph: &Adjacency<'_>, order: &Permutation) -> Result<Self> {
        Error::check_dimension("length of the order of elimination", graph.vertices(), order.len())?;
        let graph = Renumbered::new(graph, order);
        let (parents, counts) = tree_and_counts(&graph);
        Ok(Self { graph, parents, counts })
    }

    pub(crate) fn size(&self) -> OrderSize {
        let mut size = OrderSize::default();
        for &count in &self.counts {
            let count = f64::from(count);
            size.entries += count;
            size.multiplications += count * (count + 1.0) / 2.0;
            size.multiplications_lu += (count - 1.0) * (count - 1.0);
        }
        size
    }
}
