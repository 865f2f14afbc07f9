//! Counts the entries and multiplications of a Cholesky factor in a given order, without computing it.

use super::counts::tree_and_counts;
use crate::error::{Error, Result};
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::parallel::Cut;
use crate::parallel::prelude::*;
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

/// Fewer vertices are not worth another thread.
const FEW: usize = 1 << 12;

/// A graph whose vertices are numbered in the order of elimination, so that vertices that are eliminated together are
/// near in memory, however the matrix was numbered.
pub(crate) struct Renumbered {
    starts: Vec<u64>,
    neighbours: Vec<u32>,
}

impl Renumbered {
    pub(crate) fn new(graph: &Adjacency<'_>, order: &Permutation) -> Self {
        let old = |place: usize| order.new_to_old()[place] as usize;
        let others = |place: usize| graph.neighbours(old(place)).map(|other| order.old_to_new()[other]);
        Self::of(order.len(), |place| graph.degree(old(place)), others)
    }

    /// Returns the graph in another order, given by the current numbers.
    pub(crate) fn again(&self, order: &[u32]) -> Self {
        let mut places = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&old, place)| places[old as usize] = place);
        let row = |place: usize| self.row(order[place] as usize);
        Self::of(
            order.len(),
            |place| row(place).len(),
            |place| row(place).iter().map(|&old| places[old as usize]),
        )
    }

    fn of<I: Iterator<Item = u32>>(
        n: usize,
        degree: impl Fn(usize) -> usize + Sync,
        others: impl Fn(usize) -> I + Sync,
    ) -> Self {
        let mut starts = vec![0_u64; n + 1];
        let degrees = starts[1..].par_iter_mut().enumerate().with_min_len(FEW);
        degrees.for_each(|(place, end)| *end = degree(place) as u64);
        for place in 0..n {
            starts[place + 1] += starts[place];
        }
        let mut neighbours = vec![0_u32; starts[n] as usize];
        let rows = Cut::new(&mut neighbours, &starts[..n]).expect("sums ascend");
        rows.enumerate().with_min_len(FEW).for_each(|(place, row)| {
            row.iter_mut().zip(others(place)).for_each(|(place, other)| *place = other);
        });
        Self { starts, neighbours }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The neighbours of a vertex, in no particular order.
    pub(crate) fn row(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }
}
