//! Aggregates: the nodes that one node of the next level stands for.

use super::independent::independent_at_distance_two;
use crate::backend::{Backend, GroupingSteps, NO_GROUP};
use crate::error::Result;
use crate::matrix::Csr;

/// How often those who are left look for an aggregate among their neighbours'.
const SWEEPS: usize = 3;

/// The aggregate of each node; [`NO_GROUP`] for nodes without strong couplings, which smoothing alone solves.
#[derive(Debug)]
pub(super) struct Aggregates<B: Backend> {
    pub(super) of: B::Vec<u32>,
    pub(super) count: usize,
}

impl<B: GroupingSteps> Aggregates<B> {
    /// Each member of an independent set at distance two with its neighbours is an aggregate. Among those who are left
    /// (they have a neighbour in one) the same is done once more, where at least three come together. The others join
    /// the aggregate to which they are coupled most strongly, the smaller one of two alike, and none that has twice the
    /// mean size already where there is another.
    pub(super) fn new(backend: &B, graph: &Csr<f32, B>) -> Result<Self> {
        let (n, pattern) = (graph.rows(), graph.parts().pattern());
        let mut of = backend.buffer::<u32>(n)?;
        backend.fill(NO_GROUP, &mut of)?;
        let mut flags = backend.buffer(n + 1)?;
        let mut places = backend.buffer(n + 1)?;
        let mut count = 0;
        for neighbours in [0, 2] {
            backend.ungrouped(pattern, &of, &mut flags)?;
            let state = independent_at_distance_two(backend, pattern, B::part(&flags, 0..n))?;
            backend.group_roots(pattern, &of, &state, neighbours, &mut flags)?;
            backend.exclusive_scan(&flags, &mut places)?;
            backend.gather_groups(pattern, &flags, &places, count, &mut of)?;
            count += backend.value(B::part(&places, n..n + 1))?;
        }
        let mut sizes = backend.buffer(count as usize + 1)?;
        let mut before = backend.buffer(n)?;
        for _ in 0..SWEEPS {
            backend.group_sizes(&of, None, &mut sizes)?;
            backend.copy(&of, &mut before)?;
            backend.join_groups(graph.parts(), &before, &sizes, &mut of)?;
        }
        backend.ungrouped(pattern, &of, &mut flags)?;
        backend.exclusive_scan(&flags, &mut places)?;
        backend.number_groups(&flags, &places, count, &mut of)?;
        count += backend.value(B::part(&places, n..n + 1))?;
        Ok(Self { of, count: count as usize })
    }
}
