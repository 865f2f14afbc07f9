//! Finds a small vertex separator: the graph is coarsened, the coarsest graph is separated, and the separator is
//! refined on the way back.

use super::coarsen::{Visit, coarsen};
use super::graph::Graph;
use super::separator::{BETWEEN, Separator};
use crate::parallel::prelude::*;
use crate::random::Random;
use crate::work::Meter;

/// Coarsening for a separator ends at this number of vertices.
const COARSEST: usize = 60;
/// The number of separators that are grown in the coarsest graph.
const GROWN: usize = 3;
/// A graph with more vertices is separated several times.
const LARGE: usize = 5000;
/// Attempts start from a graph that is smaller by this factor, but has at least `LEAST_MIDDLE` vertices.
const MIDDLE: usize = 10;
/// The minimum number of vertices of the graph from which attempts start.
const LEAST_MIDDLE: usize = 500;
/// The number of attempts.
const ATTEMPTS: usize = 5;
/// A pass of refinement ends after this many moves without a gain.
const PATIENCE: usize = 250;
/// The weight of a side is at most this percentage of the total.
const HEAVIEST_SIDE: u64 = 60;
/// A cut is worthless if a side has less than 1 / `LEAST_SIDE` of all vertices.
const LEAST_SIDE: usize = 20;

/// Returns whether a cut is worthwhile: both sides have enough vertices, and the separator has few.
pub(super) fn is_worth_a_cut(sides: &[u8]) -> bool {
    let mut counts = [0; 3];
    sides.iter().for_each(|&side| counts[side as usize] += 1);
    counts[0].min(counts[1]) >= sides.len() / LEAST_SIDE && counts[BETWEEN as usize] <= sides.len() / 2
}

/// Coarser and coarser graphs. Each has, for each vertex of the graph before, the vertex that it became part of.
pub(super) type Levels = Vec<(Graph, Vec<u32>)>;

/// Returns the side of each vertex: 0, 1 or [`BETWEEN`]. Random choices are drawn from streams of `seed`. `levels` has
/// coarser graphs if these are known, down to a size that is small enough.
pub(super) fn bisect(graph: &Graph, mut levels: Levels, seed: u64, meter: &Meter) -> Vec<u8> {
    let limit = graph.total() * HEAVIEST_SIDE / 100;
    let middle = (graph.len() / MIDDLE).max(LEAST_MIDDLE);
    if levels.is_empty() {
        levels = coarsened(graph, middle, None, meter);
    } else if let Some(last) = levels.iter().position(|(coarser, _)| coarser.len() <= middle) {
        levels.truncate(last + 1);
    }
    let small = levels.last().map_or(graph, |level| &level.0);
    let attempts = if graph.len() > LARGE { ATTEMPTS } else { 1 };
    let separators = (0..attempts).into_par_iter().map(|number| {
        let separator = attempt(small, limit, &mut Random::stream(seed, number as u64), meter);
        (separator.cost(), separator.sides)
    });
    // If several are equally good, the first is taken, so that the result does not depend on the number of threads.
    let best = separators.collect().into_iter().min_by_key(|(cost, _)| *cost);
    let sides = best.map(|(_, sides)| sides).unwrap_or_default();
    back(graph, &levels, sides, limit, meter)
}

/// Coarsens a graph repeatedly until it has about `down_to` vertices.
pub(super) fn coarsened(
    graph: &Graph,
    down_to: usize,
    mut random: Option<&mut Random>,
    meter: &Meter,
) -> Levels {
    let heaviest = (3 * graph.total() / (2 * COARSEST as u64)).max(1) as u32;
    let mut levels = Levels::new();
    loop {
        let finest = levels.last().map_or(graph, |level| &level.0);
        let n = finest.len();
        // Work can be cancelled here.
        meter.advance(0);
        if n <= down_to {
            return levels;
        }
        let visit = match &mut random {
            Some(random) => Visit::Random(random),
            None => Visit::InOrder,
        };
        let level = coarsen(finest, heaviest, visit);
        let slow = level.0.len() * 20 > n * 19;
        levels.push(level);
        if slow {
            return levels;
        }
    }
}

/// Carries the sides of the coarsest graph to the finest one, and refines the separator at each level.
fn back(
    graph: &Graph,
    levels: &[(Graph, Vec<u32>)],
    mut sides: Vec<u8>,
    limit: u64,
    meter: &Meter,
) -> Vec<u8> {
    for (number, (_, map)) in levels.iter().enumerate().rev() {
        meter.advance(0);
        let finer = if number == 0 { graph } else { &levels[number - 1].0 };
        let fine: Vec<u8> = map.iter().map(|&vertex| sides[vertex as usize]).collect();
        let mut separator = Separator::new(finer, fine, limit);
        separator.refine(PATIENCE);
        sides = separator.sides;
    }
    sides
}

fn attempt<'a>(graph: &'a Graph, limit: u64, random: &mut Random, meter: &Meter) -> Separator<'a> {
    let levels = coarsened(graph, COARSEST, Some(random), meter);
    let coarsest = levels.last().map_or(graph, |level| &level.0);
    let mut best: Option<Separator<'_>> = None;
    for _ in 0..GROWN {
        let start = random.below(coarsest.len() as u64) as u32;
        let mut grown = Separator::grow(coarsest, start, limit);
        grown.refine(PATIENCE);
        if best.as_ref().is_none_or(|best| grown.cost() < best.cost()) {
            best = Some(grown);
        }
    }
    let sides = best.map(|best| best.sides).unwrap_or_default();
    Separator::new(graph, back(graph, &levels, sides, limit, meter), limit)
}
