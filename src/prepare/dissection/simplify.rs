//! Makes a graph smaller before it is cut.

use super::graph::Graph;
use crate::backend::{Backend, Host};
use crate::error::Result;
use crate::graph::Adjacency;
use crate::mixing::mixed;
use crate::parallel::Cut;
use crate::parallel::prelude::*;

/// A vertex is set aside if it has more neighbours than `DENSE` times the root of n, and more than `LEAST_DENSE`.
const DENSE: f64 = 10.0;
const LEAST_DENSE: usize = 16;

/// No number.
const NONE: u32 = u32::MAX;

/// Fewer vertices are not worth another thread.
const FEW: usize = 4096;

/// A smaller graph, and what its vertices stand for.
pub(super) struct Simple {
    pub(super) graph: Graph,
    pub(super) names: Names,
}

/// The original vertices that each vertex of a simplified graph stands for.
pub(super) struct Names {
    /// Where the members of each vertex start, and the total number of members.
    starts: Vec<u32>,
    members: Vec<u32>,
    /// Vertices with so many neighbours that they come last in any order, by degree.
    dense: Vec<u32>,
}

impl Names {
    /// Returns the order of all original vertices for an order of the simplified graph.
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

/// Sets aside vertices of high degree, and merges vertices that have the same neighbours and are neighbours of each
/// other.
pub(super) fn simplify(graph: &Adjacency<'_>) -> Result<Simple> {
    let n = graph.vertices();
    let most = ((DENSE * (n as f64).sqrt()) as usize).max(LEAST_DENSE);
    let is_dense = |vertex: usize| graph.degree(vertex) > most;
    let vertices = || (0..n).into_par_iter().with_min_len(FEW);
    let leaders = leaders(graph, &is_dense)?;
    let all_stay = vertices().all(|vertex| leaders[vertex] as usize == vertex && !is_dense(vertex));
    let Vertices { numbers, found, weights, names } = match all_stay {
        true => Vertices::all(n)?,
        false => Vertices::some(graph, &leaders, &is_dense)?,
    };
    // Vertices that are alike have the same neighbours, so the leader's row stands for all.
    let others = |vertex: u32| graph.neighbours(vertex as usize).filter(|&other| numbers[other] != NONE);
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
    Ok(Simple { graph: simple, names })
}

/// The vertices of a simplified graph.
struct Vertices {
    /// The number of each leader among the original vertices; [`NONE`] for the others.
    numbers: Vec<u32>,
    /// The original vertex of each number, and the number of vertices that it leads, including itself.
    found: Vec<u32>,
    weights: Vec<u32>,
    names: Names,
}

impl Vertices {
    /// All original vertices, which are all different.
    fn all(n: usize) -> Result<Self> {
        let counted = |n: usize| -> Result<Vec<u32>> {
            let mut numbers = Host.zeros::<u32>(n)?;
            let places = numbers.par_iter_mut().enumerate().with_min_len(FEW);
            places.for_each(|(number, place)| *place = number as u32);
            Ok(numbers)
        };
        let names = Names { starts: counted(n + 1)?, members: counted(n)?, dense: Vec::new() };
        Ok(Self { numbers: counted(n)?, found: counted(n)?, weights: vec![1; n], names })
    }

    /// The leaders among the original vertices that are not dense.
    fn some(graph: &Adjacency<'_>, leaders: &[u32], is_dense: &dyn Fn(usize) -> bool) -> Result<Self> {
        let n = leaders.len();
        let mut dense: Vec<u32> = (0..n as u32).filter(|&vertex| is_dense(vertex as usize)).collect();
        dense.sort_by_key(|&vertex| graph.degree(vertex as usize));
        let mut sizes = Host.zeros::<u32>(n)?;
        let kept = || (0..n).filter(|&vertex| !is_dense(vertex));
        kept().for_each(|vertex| sizes[leaders[vertex] as usize] += 1);
        let mut numbers = vec![NONE; n];
        let (mut starts, mut weights, mut found) = (vec![0], Vec::new(), Vec::new());
        for vertex in (0..n).filter(|&vertex| sizes[vertex] > 0) {
            numbers[vertex] = weights.len() as u32;
            weights.push(sizes[vertex]);
            found.push(vertex as u32);
            starts.push(starts[starts.len() - 1] + sizes[vertex]);
        }
        let mut members = Host.zeros::<u32>(n - dense.len())?;
        let mut next = starts.clone();
        for vertex in kept() {
            let place = &mut next[numbers[leaders[vertex] as usize] as usize];
            members[*place as usize] = vertex as u32;
            *place += 1;
        }
        Ok(Self { numbers, found, weights, names: Names { starts, members, dense } })
    }
}

/// Returns for each vertex the first one with the same neighbours, where each vertex counts as a neighbour of itself.
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
        // The first of several alike vertices has all others as neighbours after it.
        let mut before = graph.neighbours(vertex).take_while(|&other| other < vertex);
        let first = if is_dense(vertex) { None } else { before.find(same) };
        *leader = first.unwrap_or(vertex) as u32;
    });
    Ok(leaders)
}
