//! Distributed breadth-first search on one of several ranks, level by level.

use super::Host;
use crate::backend::{Frontier, GraphRows};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::Offset;

const BITS: usize = u32::BITS as usize;

fn has(bits: &[u32], vertex: usize) -> bool {
    bits[vertex / BITS] >> (vertex % BITS) & 1 != 0
}

fn check(rows: GraphRows<'_, Host>, seen: &[u32], reached: &[u32]) -> Result<()> {
    let words = rows.vertices.div_ceil(BITS);
    Error::check_dimension("words of what was seen", words, seen.len())?;
    Error::check_dimension("words of what is reached", words, reached.len())
}

pub(super) fn reach<O: Offset>(
    (rows, offsets): (GraphRows<'_, Host>, &[O]),
    pull: bool,
    frontier: &Frontier<Host>,
    seen: &[u32],
    reached: &mut [u32],
) -> Result<()> {
    check(rows, seen, reached)?;
    let neighbours = |own: usize| &rows.indices[offsets[own].to_usize()..offsets[own + 1].to_usize()];
    if !pull {
        for own in (0..rows.rows).filter(|&own| has(&frontier.vertices, own)) {
            for &w in neighbours(own) {
                reached[w as usize / BITS] |= 1 << (w as usize % BITS) & !seen[w as usize / BITS];
            }
        }
        return Ok(());
    }
    let words = rows.first / BITS..(rows.first + rows.rows).div_ceil(BITS);
    reached[words].par_iter_mut().enumerate().with_min_len(1 << 8).for_each(|(word, bits)| {
        for own in BITS * word..(BITS * (word + 1)).min(rows.rows) {
            if !has(seen, rows.first + own) && neighbours(own).iter().any(|&w| has(seen, w as usize)) {
                *bits |= 1 << (own % BITS);
            }
        }
    });
    Ok(())
}

pub(super) fn settle<O: Offset>(
    (rows, offsets): (GraphRows<'_, Host>, &[O]),
    level: u32,
    [reached, seen, levels]: [&mut [u32]; 3],
    frontier: &mut Frontier<Host>,
    figures: &mut [f64],
) -> Result<()> {
    check(rows, seen, reached)?;
    Error::check_dimension("number of levels", rows.rows, levels.len())?;
    Error::check_dimension("figures", 2, figures.len())?;
    let words = rows.first / BITS..(rows.first + rows.rows).div_ceil(BITS);
    let (mut vertices, mut edges) = (0_u32, 0);
    for (word, (reached, seen)) in reached.iter_mut().zip(seen).enumerate() {
        let fresh = std::mem::take(reached) & !*seen;
        *seen |= fresh;
        if words.contains(&word) {
            frontier.vertices[word - words.start] = fresh;
        }
    }
    for own in (0..rows.rows).filter(|&own| has(&frontier.vertices, own)) {
        levels[own] = level;
        vertices += 1;
        edges += offsets[own + 1].to_usize() - offsets[own].to_usize();
    }
    figures.copy_from_slice(&[f64::from(vertices), edges as f64]);
    Ok(())
}
