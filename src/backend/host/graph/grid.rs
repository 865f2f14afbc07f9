//! Numbers the points of a grid from their distances to its corners.

use super::{Host, PARALLEL_FROM};
use crate::backend::{Backend, GraphParts, UNREACHED};
use crate::parallel::prelude::*;
use crate::scalar::Offset;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the number of the point with these distances from three corners, or `None` if there is no such point.
fn number_of([first, across_y, across_z]: [u32; 3], [x_size, y_size, z_size]: [usize; 3]) -> Option<usize> {
    if [first, across_y, across_z].contains(&UNREACHED) {
        return None;
    }
    // Twice the coordinate along an axis follows from the distances to both ends.
    let along = |across: u32, size: usize| {
        let twice = (first as usize + size - 1).checked_sub(across as usize)?;
        (twice % 2 == 0 && twice / 2 < size).then_some(twice / 2)
    };
    let (y, z) = (along(across_y, y_size)?, along(across_z, z_size)?);
    let x = (first as usize).checked_sub(y + z)?;
    (x < x_size).then_some(x + x_size * (y + y_size * z))
}

/// Numbers all points, and returns whether each number belongs to one point.
pub(super) fn number(
    levels: [&[u32]; 3],
    sizes: [usize; 3],
    new_to_old: &mut [u32],
    old_to_new: &mut [u32],
) -> bool {
    let least = if old_to_new.len() < PARALLEL_FROM { old_to_new.len().max(1) } else { 1 << 12 };
    let found = AtomicBool::new(true);
    old_to_new.par_iter_mut().enumerate().with_min_len(least).for_each(|(vertex, number)| {
        match number_of(levels.map(|levels| levels[vertex]), sizes) {
            Some(found) => *number = found as u32,
            None => found.store(false, Ordering::Relaxed),
        }
    });
    if !found.into_inner() || Host.fill(UNREACHED, new_to_old).is_err() {
        return false;
    }
    // There are as many vertices as numbers, so if no number occurs twice, all occur.
    (0..).zip(&*old_to_new).all(|(vertex, &number)| {
        let before = std::mem::replace(&mut new_to_old[number as usize], vertex);
        before == UNREACHED
    })
}

/// Returns whether each edge of a graph joins two points that are neighbours along an axis.
pub(super) fn joins_neighbours<O: Offset>(
    (graph, offsets): (GraphParts<'_, Host>, &[O]),
    [x_size, y_size, z_size]: [usize; 3],
    numbers: &[u32],
) -> bool {
    let plane = x_size * y_size;
    let least = if graph.indices.len() < PARALLEL_FROM { graph.vertices.max(1) } else { 1 << 12 };
    (0..graph.vertices).into_par_iter().with_min_len(least).all(|vertex| {
        let here = numbers[vertex] as usize;
        let [x, y, z] = [here % x_size, here / x_size % y_size, here / plane];
        let row = &graph.indices[offsets[vertex].to_usize()..offsets[vertex + 1].to_usize()];
        row.iter().filter(|&&neighbour| neighbour as usize != vertex).all(|&neighbour| {
            let there = numbers[neighbour as usize] as usize;
            (x + 1 < x_size && there == here + 1)
                || (x > 0 && there + 1 == here)
                || (y + 1 < y_size && there == here + x_size)
                || (y > 0 && there + x_size == here)
                || (z + 1 < z_size && there == here + plane)
                || (z > 0 && there + plane == here)
        })
    })
}
