//! What makes a graph smaller before it is cut.

use super::graph::Graph;
use crate::backend::{Backend, Host};
use crate::error::Result;
use crate::graph::Adjacency;
use crate::mixing::mixed;
use crate::parallel::prelude::*;
use crate::work::look_at;

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
    let (mut starts, mut weights, mut entries) = (vec![0], Vec::new(), 0);
    for vertex in (0..n).filter(|&vertex| sizes[vertex] > 0) {
        numbers[vertex] = weights.len() as u32;
        weights.push(sizes[vertex]);
        entries += graph.degree(vertex);
        starts.push(starts[starts.len() - 1] + sizes[vertex]);
    }
    let mut simple = Graph { starts: Vec::with_capacity(weights.len() + 1), weights, ..Graph::default() };
    simple.neighbours.reserve_exact(entries);
    simple.starts.push(0);
    let mut members = Host.zeros::<u32>(n - dense.len())?;
    let mut next = starts.clone();
    for vertex in (0..n).filter(vertices) {
        look_at(vertex);
        let leader = leaders[vertex] as usize;
        let place = &mut next[numbers[leader] as usize];
        members[*place as usize] = vertex as u32;
        *place += 1;
        if leader == vertex {
            // Those that are alike are all neighbours or none: their leader speaks for them.
            let others = graph.neighbours(vertex).filter(|&other| sizes[other] > 0);
            simple.neighbours.extend(others.map(|other| numbers[other]));
            simple.starts.push(simple.neighbours.len());
        }
    }
    Ok(Simple { graph: simple, names: Names { starts, members, dense } })
}

/// For each vertex the first that has the same neighbours, both of them counted among these.
fn leaders(graph: &Adjacency<'_>, is_dense: &dyn Fn(usize) -> bool) -> Result<Vec<u32>> {
    let n = graph.vertices();
    let mut hashes = Host.zeros::<u64>(n)?;
    hashes.par_iter_mut().enumerate().with_min_len(FEW).for_each(|(vertex, hash)| {
        let all = graph.neighbours(vertex).map(|other| mixed(other as u64));
        *hash = all.fold(mixed(vertex as u64), u64::wrapping_add);
    });
    let mut leaders = Host.zeros::<u32>(n)?;
    for vertex in 0..n {
        look_at(vertex);
        let alike = |&other: &usize| {
            hashes[other] == hashes[vertex] && leaders[other] as usize == other && !is_dense(vertex)
        };
        let same = |other: &usize| {
            let without = |of: usize, but: usize| graph.neighbours(of).filter(move |&next| next != but);
            without(vertex, *other).eq(without(*other, vertex))
        };
        let before = graph.neighbours(vertex).take_while(|&other| other < vertex);
        let leader = before.filter(alike).find(same).unwrap_or(vertex);
        leaders[vertex] = leader as u32;
    }
    Ok(leaders)
}
