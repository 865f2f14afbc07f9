//! Orders the parts of a graph that are not cut any further, by minimum degree.

use super::graph::Graph;
use super::minimum_degree::{Most, Quotient};
use crate::parallel::prelude::*;
use crate::work::Meter;
use std::ops::Range;

/// Sorts the vertices of each leaf into their order of elimination. All other vertices must be in place, and those that
/// are coupled with a leaf must come after it.
pub(super) fn order_leaves(graph: &Graph, leaves: &[Range<usize>], order: &mut [u32], meter: &Meter) {
    let mut places = vec![0_u32; graph.len()];
    order.iter().zip(0..).for_each(|(&vertex, place)| places[vertex as usize] = place);
    let mut parts = Vec::with_capacity(leaves.len());
    let (mut rest, mut at) = (order, 0);
    for leaf in leaves {
        let (part, behind) = rest[leaf.start - at..].split_at_mut(leaf.len());
        parts.push((leaf.start, part));
        (rest, at) = (behind, leaf.end);
    }
    parts.into_par_iter().for_each(|(start, part)| {
        meter.advance(part.len() as u64);
        order_leaf(graph, &places, start, part);
    });
}

fn order_leaf(graph: &Graph, places: &[u32], start: usize, order: &mut [u32]) {
    let inner = order.len();
    let end = start + inner;
    let mut halo = Vec::new();
    let mut entries = 0;
    for &vertex in order.iter() {
        let row = graph.row(vertex);
        entries += row.len();
        halo.extend(row.iter().copied().filter(|&other| places[other as usize] as usize >= end));
    }
    let crossings = halo.len();
    halo.sort_unstable();
    halo.dedup();
    let all = inner + halo.len();
    let mut starts = Vec::with_capacity(all + 1);
    let mut lists = Vec::with_capacity(entries + crossings);
    let mut counts = vec![0_usize; halo.len()];
    for &vertex in order.iter() {
        starts.push(lists.len());
        for &other in graph.row(vertex) {
            let place = places[other as usize] as usize;
            if place < end {
                lists.push((place - start) as u32);
            } else if let Ok(number) = halo.binary_search(&other) {
                counts[number] += 1;
                lists.push((inner + number) as u32);
            }
        }
    }
    let mut next = Vec::with_capacity(halo.len());
    let inside = lists.len();
    let mut at = inside;
    for count in counts {
        starts.push(at);
        next.push(at);
        at += count;
    }
    starts.push(at);
    lists.resize(at, 0);
    for vertex in 0..inner {
        for k in starts[vertex]..starts[vertex + 1] {
            if let Some(number) = (lists[k] as usize).checked_sub(inner) {
                lists[next[number]] = vertex as u32;
                next[number] += 1;
            }
        }
    }
    let weights = order.iter().chain(&halo).map(|&vertex| graph.weights[vertex as usize]).collect();
    let names = order.to_vec();
    let mut places = order.iter_mut();
    let found = Quotient::new(inner, starts, lists, weights).order(Most::ANY, |vertex| {
        if let Some(place) = places.next() {
            *place = names[vertex as usize];
        }
    });
    debug_assert!(found.is_ok());
}
