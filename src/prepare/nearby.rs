//! Renumbers a graph so that neighbours have numbers near each other.
//!
//! Orderings and counts make many passes over a graph. If a mesh generator has numbered the points at random, each
//! entry is in a cache line of its own, and everything takes two to three times as long.

use crate::error::Result;
use crate::graph::{Adjacency, Permutation};
use crate::work::look_at;

/// The number of windows that are sampled, and the number of vertices in each.
const WINDOWS: usize = 16;
const WINDOW: usize = 1024;
/// Numbers of vertices that share the cache lines that a processor fetches together.
const LINE: usize = 64;
/// Neighbours are scattered if those of a window occupy more lines than 1 / `SCATTERED` of its vertices. A grid has a
/// hundredth of that, and points in random order ten times as many.
const SCATTERED: usize = 4;

/// Returns the graph numbered by breadth-first search, and that order, if neighbours are scattered.
///
/// # Errors
/// If memory runs out.
pub(super) fn nearby(graph: &Adjacency<'_>) -> Result<Option<(Adjacency<'static>, Permutation)>> {
    if !is_scattered(graph) {
        return Ok(None);
    }
    let order = Permutation::from_new_to_old(search(graph))?;
    Ok(Some((graph.renumbered(&order)?, order)))
}

fn is_scattered(graph: &Adjacency<'_>) -> bool {
    let n = graph.vertices();
    let mut lines = Vec::new();
    let (mut met, mut vertices) = (0, 0);
    for window in 0..WINDOWS {
        let first = window * n / WINDOWS;
        lines.clear();
        for vertex in first..n.min(first + WINDOW) {
            lines.extend(graph.neighbours(vertex).map(|other| other / LINE));
            vertices += 1;
        }
        lines.sort_unstable();
        lines.dedup();
        met += lines.len();
    }
    met * SCATTERED > vertices
}

/// Returns the vertices in the order of a breadth-first search.
fn search(graph: &Adjacency<'_>) -> Vec<u32> {
    let n = graph.vertices();
    let mut order = Vec::with_capacity(n);
    let mut is_met = vec![false; n];
    for first in 0..n {
        if std::mem::replace(&mut is_met[first], true) {
            continue;
        }
        let mut at = order.len();
        order.push(first as u32);
        while let Some(&vertex) = order.get(at) {
            look_at(at);
            at += 1;
            for other in graph.neighbours(vertex as usize) {
                if !std::mem::replace(&mut is_met[other], true) {
                    order.push(other as u32);
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::poisson3d;
    use crate::graph::permute_symmetric;

    #[test]
    fn random_numbers_are_scattered_and_those_of_grids_are_not() {
        let grid = poisson3d(40, 40, 40).unwrap();
        let graph = Adjacency::new(&grid).unwrap();
        assert!(!is_scattered(&graph));
        let shuffled = permute_symmetric(&grid, &Permutation::random(grid.rows(), 1).unwrap()).unwrap();
        let graph = Adjacency::new(&shuffled).unwrap();
        let (near, order) = nearby(&graph).unwrap().unwrap();
        assert!(!is_scattered(&near));
        // The renumbered graph has the same edges.
        for vertex in 0..near.vertices() {
            let old = order.new_to_old()[vertex] as usize;
            let mut others: Vec<u32> = graph.neighbours(old).map(|other| order.old_to_new()[other]).collect();
            others.sort_unstable();
            assert!(near.neighbours(vertex).map(|other| other as u32).eq(others));
        }
    }
}
