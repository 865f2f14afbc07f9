//! The recursion: the separator comes last, and each side before it is ordered in the same way.

use super::bisect::{Levels, bisect, is_worth_a_cut};
use super::graph::Graph;
use super::leaf::order_leaves;
use super::separator::BETWEEN;
use crate::mixing::mixed;
use crate::parallel::{join, prelude::*};
use crate::work::{self, Meter, Stage, look_at};
use std::ops::Range;

/// Graphs with at most this many vertices are not cut.
const LEAF: usize = 500;
/// Graphs with more vertices are worth a second thread.
const WORTH_A_THREAD: usize = 2000;

/// Returns the vertices of a graph in the order of elimination. `levels` has coarser graphs if these are known.
pub(super) fn order(graph: &Graph, levels: Levels) -> Vec<u32> {
    // For progress, each vertex counts once for each level of the tree, and once for its leaf.
    let depth = (graph.len() / LEAF).checked_ilog2().map_or(0, |depth| depth + 1);
    let meter = &work::begin(Stage::Ordering, graph.len() as u64 * u64::from(depth + 1), None);
    let components = components(graph);
    let mut order: Vec<u32> = components.iter().flat_map(|component| component.iter().copied()).collect();
    if let [all] = &components[..] {
        let leaves = dissect(graph, levels, all, (1, meter), 0, &mut order);
        order_leaves(graph, &leaves, &mut order, meter);
        return order;
    }
    let mut parts = Vec::new();
    let (mut rest, mut offset) = (&mut order[..], 0);
    for component in &components {
        let (part, behind) = rest.split_at_mut(component.len());
        parts.push((component, offset, part));
        (rest, offset) = (behind, offset + component.len());
    }
    let leaves = parts.into_par_iter().map(|(names, offset, part)| {
        if names.len() <= LEAF {
            std::iter::once(offset..offset + names.len()).collect()
        } else {
            dissect(&graph.part(names), Levels::new(), names, (1, meter), offset, part)
        }
    });
    let leaves: Vec<Vec<Range<usize>>> = leaves.collect();
    let leaves: Vec<_> = leaves.into_iter().flatten().collect();
    order_leaves(graph, &leaves, &mut order, meter);
    order
}

/// Returns the vertices of each connected component in ascending order; small components are put together.
fn components(graph: &Graph) -> Vec<Vec<u32>> {
    let mut found = vec![false; graph.len()];
    let mut components: Vec<Vec<u32>> = Vec::new();
    let mut small = Vec::new();
    for first in 0..graph.len() {
        if found[first] {
            continue;
        }
        found[first] = true;
        let mut component = vec![first as u32];
        let mut at = 0;
        while let Some(&vertex) = component.get(at) {
            look_at(at);
            at += 1;
            for &other in graph.row(vertex) {
                if !std::mem::replace(&mut found[other as usize], true) {
                    component.push(other);
                }
            }
        }
        component.sort_unstable();
        if component.len() > LEAF {
            components.push(component);
            continue;
        }
        if small.len() + component.len() > LEAF {
            components.push(std::mem::take(&mut small));
        }
        small.extend(component);
    }
    components.extend(Some(small).filter(|small| !small.is_empty()));
    components
}

/// Writes a graph's vertices to `order` by their `names`, in the order of elimination, except within leaves, whose
/// ranges are returned. `place` is the number of this graph in the tree, and `offset` the place of `order` in the order
/// of all vertices. `levels` has coarser graphs if these are known.
fn dissect(
    graph: &Graph,
    levels: Levels,
    names: &[u32],
    (place, meter): (u64, &Meter),
    offset: usize,
    order: &mut [u32],
) -> Vec<Range<usize>> {
    let n = graph.len();
    let mut leaf = |names: &[u32]| {
        order.copy_from_slice(names);
        std::iter::once(offset..offset + n).collect()
    };
    if n <= LEAF {
        return leaf(names);
    }
    let sides = bisect(graph, levels, mixed(place), meter);
    meter.advance(n as u64);
    let mut counts = [0; 3];
    sides.iter().for_each(|&side| counts[side as usize] += 1);
    if !is_worth_a_cut(&sides) {
        return leaf(names);
    }
    let (before, between) = order.split_at_mut(counts[0] + counts[1]);
    let last = names.iter().zip(&sides).filter(|(_, side)| **side == BETWEEN).map(|(&name, _)| name);
    between.iter_mut().zip(last).for_each(|(place, name)| *place = name);
    let [left, right] = graph.cut(&sides, names);
    drop(sides);
    let (first, second) = before.split_at_mut(counts[0]);
    let mut go_left = move || dissect(&left.0, Levels::new(), &left.1, (2 * place, meter), offset, first);
    let mut go_right = move || {
        dissect(&right.0, Levels::new(), &right.1, (2 * place + 1, meter), offset + counts[0], second)
    };
    let (mut leaves, others) =
        if n > WORTH_A_THREAD { join(go_left, go_right) } else { (go_left(), go_right()) };
    leaves.extend(others);
    leaves
}
