//! Coarsens a graph: pairs of neighbours become one vertex.
//!
//! This is heavy-edge matching (Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning
//! irregular graphs", SIAM J. Sci. Comput. 20, 1998): each vertex is paired with the neighbour with which it shares the
//! most edges of the first graph, so that few edges are left between pairs. Most vertices of a star find no partner;
//! two that have the same neighbour are then paired with each other (LaSalle and others, "Improving graph partitioning
//! for modern graphs and architectures", IA3 2015).
//!
//! Large graphs are contracted by all threads, each of which takes blocks of rows.

use super::graph::Graph;
use crate::parallel::Cut;
use crate::parallel::prelude::*;
use crate::random::Random;
use crate::work::look_at;

/// The minimum number of rows in a block, and the maximum number of blocks. Each block needs an array as long as the
/// coarser graph, so there are few.
const LEAST_BLOCK: usize = 1 << 13;
const BLOCKS: usize = 16;

/// The order in which vertices of the same degree choose their partners.
pub(super) enum Visit<'a> {
    /// In the order of their numbers: vertices with close numbers are mostly near each other in memory.
    InOrder,
    /// In random order.
    Random(&'a mut Random),
}

/// No vertex.
const NONE: u32 = u32::MAX;

/// Returns the coarser graph and, for each vertex of `graph`, the vertex that it becomes part of. Pairs weigh at most
/// `heaviest`.
pub(super) fn coarsen(graph: &Graph, heaviest: u32, visit: Visit<'_>) -> (Graph, Vec<u32>) {
    let mut partner = pairs(graph, heaviest, visit);
    let n = graph.len();
    // In place, `partner` becomes the map. The smaller number of each pair is its leader.
    let mut leaders = Vec::with_capacity(n / 2 + 1);
    let mut weights = Vec::with_capacity(n / 2 + 1);
    let mut mates = Vec::with_capacity(n / 2 + 1);
    for vertex in 0..n {
        let mate = partner[vertex];
        if (mate as usize) < vertex {
            partner[vertex] = partner[mate as usize];
            continue;
        }
        partner[vertex] = leaders.len() as u32;
        leaders.push(vertex as u32);
        mates.push(mate);
        let both = if mate as usize == vertex { 0 } else { graph.weights[mate as usize] };
        weights.push(graph.weights[vertex] + both);
    }
    (contract(graph, &partner, &leaders, &mates, weights), partner)
}

/// Returns the partner of each vertex, or the vertex itself if it has none. This runs on one thread: with a matching of
/// each block of vertices by itself, coarser grids were less regular and factors took 17 % more multiplications.
fn pairs(graph: &Graph, heaviest: u32, visit: Visit<'_>) -> Vec<u32> {
    let n = graph.len();
    let mut partner = vec![NONE; n];
    let mut alone = Vec::new();
    for (step, vertex) in by_degree(graph, visit).into_iter().enumerate() {
        look_at(step);
        if partner[vertex as usize] != NONE {
            continue;
        }
        let room = heaviest.saturating_sub(graph.weights[vertex as usize]);
        let (mut best, mut most, mut lightest) = (NONE, 0, u32::MAX);
        for at in graph.starts[vertex as usize]..graph.starts[vertex as usize + 1] {
            let other = graph.neighbours[at];
            let weight = graph.weights[other as usize];
            if partner[other as usize] != NONE || weight > room {
                continue;
            }
            let tie = graph.ties.get(at).copied().unwrap_or(1);
            if tie > most || (tie == most && weight < lightest) {
                (best, most, lightest) = (other, tie, weight);
            }
        }
        if best == NONE {
            alone.push(vertex);
            continue;
        }
        partner[vertex as usize] = best;
        partner[best as usize] = vertex;
    }
    if alone.len() > n / 10 {
        pair_over_two(graph, heaviest, &alone, &mut partner);
    }
    for (vertex, partner) in partner.iter_mut().enumerate() {
        if *partner == NONE {
            *partner = vertex as u32;
        }
    }
    partner
}

/// Returns all vertices, those of low degree first because they have the least choice. Vertices of the same degree come
/// in the order that `visit` requests.
fn by_degree(graph: &Graph, visit: Visit<'_>) -> Vec<u32> {
    let n = graph.len();
    let mut all: Vec<u32> = (0..n as u32).collect();
    if let Visit::Random(random) = visit {
        for k in (1..n).rev() {
            all.swap(k, random.below(k as u64 + 1) as usize);
        }
    }
    let cap = 2 * graph.neighbours.len() / n.max(1) + 1;
    let mut starts = vec![0_u32; cap + 2];
    for vertex in 0..n {
        starts[graph.degree(vertex).min(cap) + 1] += 1;
    }
    for degree in 0..=cap {
        starts[degree + 1] += starts[degree];
    }
    let mut order = vec![0; n];
    for vertex in all {
        let next = &mut starts[graph.degree(vertex as usize).min(cap)];
        order[*next as usize] = vertex;
        *next += 1;
    }
    order
}

/// Pairs vertices that found no partner with each other if they have the same neighbour, or no neighbour at all.
fn pair_over_two(graph: &Graph, heaviest: u32, alone: &[u32], partner: &mut [u32]) {
    let mut waiting = vec![NONE; graph.len() + 1];
    for &vertex in alone {
        if partner[vertex as usize] != NONE {
            continue;
        }
        // Of all neighbours, the one of lowest degree says most about which vertices are alike.
        let hub = graph.row(vertex).iter().min_by_key(|&&other| (graph.degree(other as usize), other));
        let place = &mut waiting[hub.map_or(graph.len(), |&hub| hub as usize)];
        let weight = graph.weights[vertex as usize];
        if *place != NONE && weight.saturating_add(graph.weights[*place as usize]) <= heaviest {
            partner[vertex as usize] = *place;
            partner[*place as usize] = vertex;
            *place = NONE;
        } else {
            *place = vertex;
        }
    }
}

/// Builds the graph whose vertices are the pairs.
fn contract(graph: &Graph, map: &[u32], leaders: &[u32], mates: &[u32], weights: Vec<u32>) -> Graph {
    let block = leaders.len().div_ceil(BLOCKS).max(LEAST_BLOCK);
    let firsts: Vec<usize> = (0..leaders.len()).step_by(block).collect();
    let blocks = firsts.into_par_iter().map(|first| {
        let range = first..leaders.len().min(first + block);
        contract_rows(graph, map, first, &leaders[range.clone()], &mates[range], weights.len())
    });
    let mut blocks = blocks.collect();
    if blocks.len() == 1 {
        return Graph { weights, ..blocks.remove(0) };
    }
    let (mut all, mut starts) = (0, vec![0]);
    let mut places = Vec::new();
    for block in &blocks {
        starts.extend(block.starts[1..].iter().map(|&end| all + end));
        places.push(all as u64);
        all += block.neighbours.len();
    }
    let (mut neighbours, mut ties) = (vec![0_u32; all], vec![0_u32; all]);
    let cut = "sums ascend";
    let parts = Cut::new(&mut neighbours, &places).expect(cut).zip(Cut::new(&mut ties, &places).expect(cut));
    parts.zip(&blocks).for_each(|((neighbours, ties), block)| {
        neighbours.copy_from_slice(&block.neighbours);
        ties.copy_from_slice(&block.ties);
    });
    Graph { starts, neighbours, ties, weights }
}

/// Builds the rows of consecutive pairs, from number `first`, of a graph with `n` pairs; weights are left out.
fn contract_rows(
    graph: &Graph,
    map: &[u32],
    first: usize,
    leaders: &[u32],
    mates: &[u32],
    n: usize,
) -> Graph {
    let mut coarse = Graph { starts: Vec::with_capacity(leaders.len() + 1), ..Graph::default() };
    let expected = graph.neighbours.len() * leaders.len() / n.max(1);
    coarse.neighbours.reserve(expected);
    coarse.ties.reserve(expected);
    coarse.starts.push(0);
    // The number of entries up to each neighbour's; one that is not beyond the start of the current row is out of date.
    // Only the pages that rows refer to are touched.
    let mut places = vec![0_u32; n];
    for (number, (&leader, &mate)) in leaders.iter().zip(mates).enumerate() {
        look_at(number);
        let start = coarse.neighbours.len() as u32;
        let both = [leader, mate];
        for &vertex in if leader == mate { &both[..1] } else { &both[..] } {
            for at in graph.starts[vertex as usize]..graph.starts[vertex as usize + 1] {
                let other = map[graph.neighbours[at] as usize];
                if other as usize == first + number {
                    continue;
                }
                let tie = graph.ties.get(at).copied().unwrap_or(1);
                let place = &mut places[other as usize];
                if *place > start {
                    coarse.ties[*place as usize - 1] += tie;
                } else {
                    coarse.neighbours.push(other);
                    coarse.ties.push(tie);
                    *place = coarse.neighbours.len() as u32;
                }
            }
        }
        coarse.starts.push(coarse.neighbours.len());
    }
    coarse
}
