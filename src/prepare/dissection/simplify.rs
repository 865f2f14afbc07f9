//! What makes a graph smaller before it is cut.

use super::graph::Graph;
use crate::backend::{Backend, Host};
use crate::error::Result;
use crate::graph::Adjacency;
use crate::mixing::mixed;
use crate::parallel::Cut;
use crate::parallel::prelude::*;

/// Neighbours of a vertex that is set aside, in units of the root of n, and at least.
const DENSE: f64 = 10.0;
const LEAST_DENSE: usize = 16;

/// Vertices that are not worth another thread.
const FEW: usize = 4096;

/// A graph whose vertices stand for some of another's.
pub(super) struct Simple {
    pub(super) graph: Graph,
    pub(super) names: Names,
}

/// What the vertices of a simple graph stand for.
pub(super) struct Names {
    /// Where the members of each vertex start among all, and at the end how many there are.
    starts: Vec<u32>,
    members: Vec<u32>,
    /// Vertices that are coupled with so many that they come last in any order, by degree.
    dense: Vec<u32>,
}

impl Names {
    /// The order of all vertices that an order of this graph's stands for.
    pub(super) fn expand(&self, order: &[u32]) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.members.len() + self.dense.len());
        for &vertex in order {
            let range = self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize;
            all.extend_from_slice(&self.members[range]);
        }
        all.extend_from_slice(&self.dense);
        all
    }
}

/// The graph without vertices of high degree, and with those made one that have the same neighbours and each other.
pub(super) fn simplify(graph: &Adjacency<'_>) -> Result<Simple> {
    let n = graph.vertices();
    let most = ((DENSE * (n as f64).sqrt()) as usize).max(LEAST_DENSE);
    let is_dense = |vertex: usize| graph.degree(vertex) > most;
    let mut dense: Vec<u32> = (0..n as u32).filter(|&vertex| is_dense(vertex as usize)).collect();
    dense.sort_by_key(|&vertex| graph.degree(vertex as usize));
    let leaders = leaders(graph, &is_dense)?;
    let mut sizes = Host.zeros::<u32>(n)?;
    let vertices = |vertex: &usize| !is_dense(*vertex);
    (0..n).filter(vertices).for_each(|vertex| sizes[leaders[vertex] as usize] += 1);
    let mut numbers = Host.zeros::<u32>(n)?;
    let (mut starts, mut weights, mut found) = (vec![0], Vec::new(), Vec::new());
    for vertex in (0..n).filter(|&vertex| sizes[vertex] > 0) {
        numbers[vertex] = weights.len() as u32;
        weights.push(sizes[vertex]);
        found.push(vertex as u32);
        starts.push(starts[starts.len() - 1] + sizes[vertex]);
    }
    let mut members = Host.zeros::<u32>(n - dense.len())?;
    let mut next = starts.clone();
    for vertex in (0..n).filter(vertices) {
        let place = &mut next[numbers[leaders[vertex] as usize] as usize];
        members[*place as usize] = vertex as u32;
        *place += 1;
    }
    // Those that are alike are all neighbours or none: their leader speaks for them.
    let others = |vertex: u32| graph.neighbours(vertex as usize).filter(|&other| sizes[other] > 0);
    let mut row_starts = Host.zeros::<u64>(found.len() + 1)?;
    row_starts[1..].par_iter_mut().zip(&found).with_min_len(FEW).for_each(|(count, &vertex)| {
        *count = others(vertex).count() as u64;
    });
    for row in 0..found.len() {
        row_starts[row + 1] += row_starts[row];
    }
    let mut neighbours = Host.zeros::<u32>(row_starts[found.len()] as usize)?;
    let rows = Cut::new(&mut neighbours, &row_starts[..found.len()]).expect("sums ascend");
    rows.zip(&found).with_min_len(FEW).for_each(|(row, &vertex)| {
        row.iter_mut().zip(others(vertex)).for_each(|(place, other)| *place = numbers[other]);
    });
    let row_starts = row_starts.into_iter().map(|start| start as usize).collect();
    let simple = Graph { starts: row_starts, neighbours, weights, ..Graph::default() };
    Ok(Simple { graph: simple, names: Names { starts, members, dense } })
}

/// For each vertex the first that has the same neighbours, both of them counted among these.
fn leaders(graph: &Adjacency<'_>, is_dense: &(dyn Fn(usize) -> bool + Sync)) -> Result<Vec<u32>> {
    let n = graph.vertices();
    let mut hashes = Host.zeros::<u64>(n)?;
    hashes.par_iter_mut().enumerate().with_min_len(FEW).for_each(|(vertex, hash)| {
        let all = graph.neighbours(vertex).map(|other| mixed(other as u64));
        *hash = all.fold(mixed(vertex as u64), u64::wrapping_add);
    });
    let mut leaders = Host.zeros::<u32>(n)?;
    leaders.par_iter_mut().enumerate().with_min_len(FEW).for_each(|(vertex, leader)| {
        let same = |&other: &usize| {
            let without = |of: usize, but: usize| graph.neighbours(of).filter(move |&next| next != but);
            hashes[other] == hashes[vertex] && without(vertex, other).eq(without(other, vertex))
        };
        // The first of all that are alike is before all of them.
        let mut before = graph.neighbours(vertex).take_while(|&other| other < vertex);
        let first = if is_dense(vertex) { None } else { before.find(same) };
        *leader = first.unwrap_or(vertex) as u32;
    });
    Ok(leaders)
}
