//! From a graph to a small separator: coarsen, separate, refine on the way back.

use super::coarsen::{Visit, coarsen};
use super::graph::Graph;
use super::separator::{BETWEEN, Separator};
use crate::parallel::prelude::*;
use crate::random::Random;
use crate::work::Meter;

/// Vertices of the coarsest graph.
const COARSEST: usize = 60;
/// Separators that are grown there.
const GROWN: usize = 3;
/// A graph of so many vertices is large.
const LARGE: usize = 5000;
/// Large graphs are made smaller by this factor, ...
const MIDDLE: usize = 10;
/// ... but not below so many vertices, ...
const LEAST_MIDDLE: usize = 500;
/// ... and separated several times from there on.
const ATTEMPTS: usize = 5;
/// Moves without a gain after which a pass of refinement ends.
const PATIENCE: usize = 250;
/// A side may weigh so much of all, in percent.
const HEAVIEST_SIDE: u64 = 60;
/// Sides of less than a twentieth of all vertices are worth nothing.
const LEAST_SIDE: usize = 20;

/// Whether both sides have so many vertices that cutting them apart pays.
pub(super) fn is_worth_a_cut(sides: &[u8]) -> bool {
    let mut counts = [0; 3];
    sides.iter().for_each(|&side| counts[side as usize] += 1);
    counts[0].min(counts[1]) >= sides.len() / LEAST_SIDE && counts[BETWEEN as usize] <= sides.len() / 2
}

/// The side of each vertex: 0, 1 or between. Random choices are drawn from the streams of `seed`.
pub(super) fn bisect(graph: &Graph, seed: u64, meter: &Meter) -> Vec<u8> {
    let limit = graph.total() * HEAVIEST_SIDE / 100;
    let middle = (graph.len() / MIDDLE).max(LEAST_MIDDLE);
    let levels = coarsened(graph, middle, None, meter);
    let small = levels.last().map_or(graph, |level| &level.0);
    let attempts = if graph.len() > LARGE { ATTEMPTS } else { 1 };
    let separators = (0..attempts).into_par_iter().map(|number| {
        let separator = attempt(small, limit, &mut Random::stream(seed, number as u64), meter);
        (separator.cost(), separator.sides)
    });
    // The first of the best.
    let best = separators.collect().into_iter().min_by_key(|(cost, _)| *cost);
    let sides = best.map(|(_, sides)| sides).unwrap_or_default();
    back(graph, &levels, sides, limit, meter)
}

/// Coarser and coarser graphs, down to about so many vertices, each with what becomes of the vertices of the one
/// before.
pub(super) fn coarsened(
    graph: &Graph,
    down_to: usize,
    mut random: Option<&mut Random>,
    meter: &Meter,
) -> Vec<(Graph, Vec<u32>)> {
    let heaviest = (3 * graph.total() / (2 * COARSEST as u64)).max(1) as u32;
    let mut levels: Vec<(Graph, Vec<u32>)> = Vec::new();
    loop {
        let finest = levels.last().map_or(graph, |level| &level.0);
        let n = finest.len();
        // Whether an end was asked for.
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

/// The sides of a coarse graph taken to the finest one, refined at each step.
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
