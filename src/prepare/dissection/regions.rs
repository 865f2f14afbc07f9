//! Orders a large graph with small separators: it is cut into a few dozen regions, and each of them is ordered by
//! minimum degree on one thread.
//!
//! Minimum degree of a whole graph runs on one thread, and dissection down to its leaves builds every graph of the tree
//! again. Here the graph is coarsened once, all cuts are made in the small graph, and on the way back each separator is
//! refined within a band of few vertices around it. The cuts therefore take less time than minimum degree in the
//! regions, and each region stays in a cache.
//!
//! ```text
//!                 1                  each vertex has a label, its place in the tree of cuts: regions are leaves (4 to
//!             /       \              7), separators the other nodes. A vertex is coupled only with vertices above and
//!           2           3            below it in the tree; its neighbours that come after it in the order are above it
//!         /   \       /   \
//!        4     5     6     7
//! ```

use super::bisect::{Levels, bisect, coarsened, is_worth_a_cut};
use super::graph::Graph;
use super::leaf::order_leaves;
use super::separator::{BETWEEN, Separator};
use crate::mixing::mixed;
use crate::parallel::{join, prelude::*};
use crate::work::Meter;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A region has about 1 / `PART` of all vertices, so that the threads of any processor get equal shares, but at least
/// `LEAST`.
const PART: u64 = 48;
/// The minimum number of vertices of a region, so that ordering one is worth a task.
const LEAST: u64 = 1000;
/// The graph that is cut is smaller by this factor.
const SMALLER: usize = 16;
/// The band around a separator has this many layers of neighbours on each side.
const LAYERS: usize = 2;
/// A pass of refinement ends after this many moves without a gain: with 250 it took twice as long and saved 1 % of the
/// work.
const PATIENCE: usize = 120;
/// The weight of a side is at most this percentage of both.
const HEAVIEST_SIDE: u64 = 60;

/// No vertex.
const NONE: u32 = u32::MAX;

/// The place of each vertex in the tree of cuts.
pub(super) struct Regions {
    labels: Vec<u32>,
    /// The vertices of each separator, by label.
    separators: Vec<Vec<u32>>,
    /// Whether each label is that of a separator.
    is_cut: Vec<bool>,
}

/// The number of levels of the tree above a label.
fn depth(label: u32) -> u32 {
    label.ilog2()
}

/// Returns whether a label is `top` or below it.
fn is_below(label: u32, top: u32) -> bool {
    depth(label) >= depth(top) && label >> (depth(label) - depth(top)) == top
}

/// Returns the side of a label that is below `top`, or [`BETWEEN`] for `top` itself.
fn side(label: u32, top: u32) -> u8 {
    if label == top { BETWEEN } else { (label >> (depth(label) - depth(top) - 1) & 1) as u8 }
}

/// Returns the lowest place that a vertex can have if its neighbours have these labels: the lowest of them, or, if they
/// are on different sides of a separator, the highest such separator.
fn meet(labels: impl Iterator<Item = u32>) -> Option<u32> {
    let (mut place, mut is_between) = (None, false);
    for label in labels {
        let Some(at) = place else {
            place = Some(label);
            continue;
        };
        let (mut lower, mut upper) = if depth(at) >= depth(label) { (at, label) } else { (label, at) };
        if is_below(lower, upper) {
            place = Some(if is_between { at } else { lower });
            continue;
        }
        lower >>= depth(lower) - depth(upper);
        while lower != upper {
            (lower, upper) = (lower / 2, upper / 2);
        }
        (place, is_between) = (Some(upper), true);
    }
    place
}

/// The result of the first cuts.
pub(super) struct Cuts<'a> {
    graph: &'a Graph,
    levels: Levels,
    /// The regions of the coarsest graph.
    regions: Regions,
}

impl<'a> Cuts<'a> {
    /// Coarsens the graph and cuts the coarsest one.
    pub(super) fn new(graph: &'a Graph, meter: &Meter) -> Self {
        let heaviest = (graph.total() / PART).max(LEAST);
        let levels = coarsened(graph, graph.len() / SMALLER, None, meter);
        let smallest = levels.last().map_or(graph, |level| &level.0);
        let labels = labels(smallest, 1, heaviest, meter);
        let mut is_cut = vec![false; 2 * labels.iter().max().map_or(1, |&most| most as usize) + 2];
        for &label in &labels {
            (1..=depth(label)).for_each(|up| is_cut[(label >> up) as usize] = true);
        }
        let mut regions = Regions { labels, separators: Vec::new(), is_cut };
        regions.collect();
        Self { graph, levels, regions }
    }

    /// The number of regions: the leaves of a tree in which each separator has two sides.
    pub(super) fn count(&self) -> usize {
        1 + self.regions.is_cut.iter().filter(|&&is_cut| is_cut).count()
    }

    /// Estimates the number of vertices of each separator, that of the first cut first. The estimate is right for
    /// graphs in space, and too high for those in the plane.
    pub(super) fn separators(&self) -> impl Iterator<Item = f64> {
        let smallest = self.levels.last().map_or(self.graph, |level| &level.0);
        let each = (self.graph.total() as f64 / smallest.len().max(1) as f64).powf(2.0 / 3.0);
        self.regions.separators.iter().skip(1).map(move |vertices| each * vertices.len() as f64)
    }

    /// Returns the coarser graphs.
    pub(super) fn into_levels(self) -> Levels {
        self.levels
    }

    /// Carries the regions to the finest graph, and refines their separators at each level.
    pub(super) fn regions(self, meter: &Meter) -> Regions {
        let Self { graph, levels, mut regions } = self;
        for (number, (_, map)) in levels.iter().enumerate().rev() {
            meter.advance(0);
            let finer = if number == 0 { graph } else { &levels[number - 1].0 };
            let coarse = std::mem::take(&mut regions.labels);
            regions.labels = map.into_par_iter().map(|&vertex| coarse[vertex as usize]).collect();
            regions.collect();
            regions.refine(finer, meter);
        }
        regions
    }
}

/// Returns the label of each vertex of a graph that has this place in the tree.
fn labels(graph: &Graph, place: u32, heaviest: u64, meter: &Meter) -> Vec<u32> {
    let n = graph.len();
    if graph.total() <= heaviest {
        return vec![place; n];
    }
    let sides = bisect(graph, Levels::new(), mixed(u64::from(place)), meter);
    if !is_worth_a_cut(&sides) {
        return vec![place; n];
    }
    let names: Vec<u32> = (0..n as u32).collect();
    let [left, right] = graph.cut(&sides, &names);
    let below = |(graph, _): &(Graph, Vec<u32>), place| labels(graph, place, heaviest, meter);
    let (first, second) = join(|| below(&left, 2 * place), || below(&right, 2 * place + 1));
    let mut all = vec![place; n];
    for (names, labels) in [(left.1, first), (right.1, second)] {
        names.iter().zip(labels).for_each(|(&name, label)| all[name as usize] = label);
    }
    all
}

impl Regions {
    fn collect(&mut self) {
        self.separators = vec![Vec::new(); self.is_cut.len()];
        for (vertex, &label) in (0..).zip(&self.labels) {
            if self.is_cut[label as usize] {
                self.separators[label as usize].push(vertex);
            }
        }
    }

    /// Refines all separators, those of the first cuts first.
    fn refine(&mut self, graph: &Graph, meter: &Meter) {
        // The weight of each label and everything below it, before any move.
        let mut weights = vec![0_u64; 2 * self.is_cut.len()];
        for (&label, &weight) in self.labels.iter().zip(&graph.weights) {
            weights[label as usize] += u64::from(weight);
        }
        for label in (2..weights.len()).rev() {
            weights[label / 2] += weights[label];
        }
        let mut local: Vec<AtomicU32> = Vec::new();
        local.resize_with(graph.len(), || AtomicU32::new(NONE));
        for level in 0..=depth(self.is_cut.len() as u32) {
            let tops = (1_u32 << level..1 << (level + 1)).filter(|&top| {
                self.is_cut.get(top as usize) == Some(&true) && !self.separators[top as usize].is_empty()
            });
            let tops: Vec<u32> = tops.collect();
            let moves = tops.into_par_iter().map(|top| {
                meter.advance(0);
                (top, self.improved(graph, top, &weights, &local))
            });
            for (top, moves) in moves.collect() {
                self.apply(graph, top, moves);
            }
        }
    }

    /// Refines the separator at `top`, and returns the vertices that change their side, with the new side. The entries
    /// of `local` for vertices below `top` are used and left as they were.
    fn improved(&self, graph: &Graph, top: u32, weights: &[u64], local: &[AtomicU32]) -> Vec<(u32, u8)> {
        let label = |vertex: u32| self.labels[vertex as usize];
        let mut band = Vec::new();
        let mut layer = 0..0;
        for number in 0..=LAYERS {
            let begin = band.len();
            let meet = |vertex: u32, band: &mut Vec<u32>| {
                if local[vertex as usize].load(Relaxed) == NONE {
                    local[vertex as usize].store(band.len() as u32, Relaxed);
                    band.push(vertex);
                }
            };
            if number == 0 {
                let members = self.separators[top as usize].iter().filter(|&&vertex| label(vertex) == top);
                members.for_each(|&vertex| meet(vertex, &mut band));
            }
            for at in layer {
                for &other in graph.row(band[at]) {
                    if is_below(label(other), top) {
                        meet(other, &mut band);
                    }
                }
            }
            layer = begin..band.len();
        }
        // All vertices beyond the band on one side become one vertex.
        let inner = band.len();
        let mut rest = [weights[2 * top as usize], weights[2 * top as usize + 1]];
        let all = weights[top as usize];
        let mut part = Graph::default();
        part.starts.push(0);
        let mut beyond = [Vec::new(), Vec::new()];
        let mut sides = Vec::with_capacity(inner + 2);
        for (number, &vertex) in (0..).zip(&band) {
            let mut outside = [false; 2];
            for &other in graph.row(vertex) {
                match local[other as usize].load(Relaxed) {
                    NONE if is_below(label(other), top) => {
                        outside[usize::from(side(label(other), top) & 1)] = true
                    }
                    NONE => {}
                    other => part.neighbours.push(other),
                }
            }
            for (which, beyond) in beyond.iter_mut().enumerate().filter(|(which, _)| outside[*which]) {
                part.neighbours.push((inner + which) as u32);
                beyond.push(number);
            }
            part.starts.push(part.neighbours.len());
            part.weights.push(graph.weights[vertex as usize]);
            let side = side(label(vertex), top);
            if side != BETWEEN {
                let rest = &mut rest[side as usize];
                *rest = rest.saturating_sub(u64::from(graph.weights[vertex as usize]));
            }
            sides.push(side);
        }
        for (beyond, rest) in beyond.into_iter().zip(rest) {
            part.neighbours.extend(beyond);
            part.starts.push(part.neighbours.len());
            part.weights.push(rest.min(u64::from(u32::MAX / 4)) as u32);
        }
        sides.extend([0, 1]);
        band.iter().for_each(|&vertex| local[vertex as usize].store(NONE, Relaxed));
        let mut separator = Separator::new(&part, sides, all * HEAVIEST_SIDE / 100);
        separator.refine(PATIENCE);
        let new = separator.sides;
        if new[inner] != 0 || new[inner + 1] != 1 {
            return Vec::new();
        }
        band.into_iter().zip(new).filter(|&(vertex, new)| side(label(vertex), top) != new).collect()
    }

    /// Moves vertices to other sides. A vertex that leaves a separator goes down in the tree as far as its neighbours
    /// there allow.
    fn apply(&mut self, graph: &Graph, top: u32, moves: Vec<(u32, u8)>) {
        let mut leaving = Vec::new();
        for (vertex, side) in moves {
            if side == BETWEEN {
                self.labels[vertex as usize] = top;
                self.separators[top as usize].push(vertex);
            } else {
                leaving.push((vertex, 2 * top + u32::from(side)));
            }
        }
        while !leaving.is_empty() {
            let before = leaving.len();
            leaving.retain(|&(vertex, below)| {
                let labels = graph.row(vertex).iter().map(|&other| self.labels[other as usize]);
                match meet(labels.filter(|&label| is_below(label, below))) {
                    Some(label) => self.put(vertex, label),
                    None => return true,
                }
                false
            });
            if leaving.len() == before {
                // It has no neighbours there, so any place will do.
                let (vertex, mut label) = leaving.remove(0);
                while self.is_cut[label as usize] {
                    label *= 2;
                }
                self.put(vertex, label);
            }
        }
    }

    fn put(&mut self, vertex: u32, label: u32) {
        self.labels[vertex as usize] = label;
        if self.is_cut[label as usize] {
            self.separators[label as usize].push(vertex);
        }
    }

    /// Returns the vertices in the order of elimination: regions by minimum degree, and each separator after its sides.
    pub(super) fn order(&self, graph: &Graph, meter: &Meter) -> Vec<u32> {
        let mut members = vec![Vec::new(); self.is_cut.len()];
        for (vertex, &label) in (0..).zip(&self.labels) {
            members[label as usize].push(vertex);
        }
        let (mut order, mut leaves) = (Vec::with_capacity(graph.len()), Vec::new());
        // Each label comes twice: before and after everything below it.
        let mut stack = vec![(1_u32, false)];
        while let Some((label, is_behind)) = stack.pop() {
            if self.is_cut[label as usize] && !is_behind {
                stack.extend([(label, true), (2 * label + 1, false), (2 * label, false)]);
                continue;
            }
            let start = order.len();
            order.append(&mut members[label as usize]);
            if !self.is_cut[label as usize] && order.len() > start {
                leaves.push(start..order.len());
            }
        }
        order_leaves(graph, &leaves, &mut order, meter);
        order
    }
}
