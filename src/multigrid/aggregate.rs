//! Aggregates: the nodes that one node of the next level stands for.

use super::independent::independent_at_distance_two;
use super::strength::Graph;
use crate::parallel::prelude::*;

/// In no aggregate: nodes without strong couplings, which smoothing alone solves.
pub(super) const NONE: u32 = u32::MAX;

/// Nodes that are worth another thread.
const AT_LEAST: usize = 1 << 10;

/// How often those who are left look for an aggregate among their neighbours'.
const SWEEPS: usize = 3;

/// Sums of weights that differ by less are the same: couplings that are equal on paper.
const ALIKE: f32 = 1e-5;

/// The aggregate of each node.
#[derive(Debug, Clone)]
pub(super) struct Aggregates {
    pub(super) of: Vec<u32>,
    pub(super) count: usize,
}

impl Aggregates {
    /// Each member of an independent set at distance two with its neighbours is an aggregate. Among those who are left
    /// (they have a neighbour in one) the same is done once more, where at least three come together. The others join
    /// the aggregate to which they are coupled most strongly, the smaller one of two alike, and none that has twice the
    /// mean size already where there is another.
    pub(super) fn new(graph: &Graph) -> Self {
        let n = graph.nodes();
        let coupled = |node: usize| !graph.of(node).is_empty();
        let roots = independent_at_distance_two(graph, &coupled);
        let mut this = Self { of: vec![NONE; n], count: 0 };
        this.number(&roots);
        this.gather(graph, &roots, &|_| true);
        let before = this.of.clone();
        let left = |node: usize| before[node] == NONE && coupled(node);
        let mut roots = independent_at_distance_two(graph, &left);
        for (node, root) in roots.iter_mut().enumerate().filter(|(_, root)| **root) {
            *root = graph.of(node).iter().filter(|&&other| before[other as usize] == NONE).count() >= 2;
        }
        this.number(&roots);
        this.gather(graph, &roots, &left);
        this.join(graph);
        let alone: Vec<bool> = (0..n).map(|node| this.of[node] == NONE && coupled(node)).collect();
        this.number(&alone);
        this
    }

    /// Roots become aggregates in their order.
    fn number(&mut self, roots: &[bool]) {
        for (of, _) in self.of.iter_mut().zip(roots).filter(|(_, root)| **root) {
            *of = self.count as u32;
            self.count += 1;
        }
    }

    /// Who is no root joins the root beside it: at distance two there is one at most.
    fn gather(&mut self, graph: &Graph, roots: &[bool], free: &(dyn Fn(usize) -> bool + Sync)) {
        let numbered = self.of.clone();
        self.of.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(node, of)| {
            if *of == NONE && free(node) {
                let root = graph.of(node).iter().find(|&&other| roots[other as usize]);
                *of = root.map_or(NONE, |&root| numbered[root as usize]);
            }
        });
    }

    /// Who is left joins a neighbour's aggregate.
    fn join(&mut self, graph: &Graph) {
        for _ in 0..SWEEPS {
            let before = self.of.clone();
            let mut sizes = vec![0_u32; self.count];
            let mut members = 0_usize;
            for &of in before.iter().filter(|&&of| of != NONE) {
                sizes[of as usize] += 1;
                members += 1;
            }
            if members == before.len() {
                return;
            }
            let most = (2 * members).div_ceil(self.count.max(1)) as u32;
            self.of.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(node, of)| {
                if *of == NONE {
                    *of = strongest(graph, node, &before, &sizes, most);
                }
            });
        }
    }
}

/// The aggregate to which a node is coupled most strongly, as [`Aggregates::new`] says.
fn strongest(graph: &Graph, node: usize, of: &[u32], sizes: &[u32], most: u32) -> u32 {
    let (neighbours, weights) = (graph.of(node), graph.weights_of(node));
    let (mut best, mut best_weight, mut best_full) = (NONE, 0.0_f32, true);
    for (place, &other) in neighbours.iter().enumerate() {
        let aggregate = of[other as usize];
        let seen = |other: &u32| of[*other as usize] == aggregate;
        if aggregate == NONE || neighbours[..place].iter().any(seen) {
            continue;
        }
        let own = neighbours.iter().zip(weights).filter(|(other, _)| seen(other));
        let weight: f32 = own.map(|(_, weight)| weight).sum();
        let full = sizes[aggregate as usize] >= most;
        let better = best == NONE
            || (best_full && !full)
            || (best_full == full
                && (weight > best_weight * (1.0 + ALIKE)
                    || (weight >= best_weight * (1.0 - ALIKE)
                        && sizes[aggregate as usize] < sizes[best as usize])));
        if better {
            (best, best_weight, best_full) = (aggregate, weight, full);
        }
    }
    best
}
