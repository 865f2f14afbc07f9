//! A graph in an order of elimination.

use crate::graph::{Adjacency, Permutation};
use crate::parallel::Cut;
use crate::parallel::prelude::*;

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
