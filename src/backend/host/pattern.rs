//! Operations on patterns for orderings, on the CPU.

use super::Host;
use crate::backend::{GraphParts, with_offsets};
use crate::parallel::prelude::*;
use crate::parallel::rows::{self, row_chunks, split_rows};
use crate::scalar::Offset;
use std::ops::Range;

/// Returns the entries of Freivalds' two random vectors at `index`.
#[inline(always)]
fn random_pair(index: u32) -> (u64, u64) {
    let mut z = (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let f = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let g = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (f ^ (f >> 31), g ^ (g >> 29))
}

/// With fewer nonzeros, a scan ends before another thread has woken up.
const PARALLEL_FROM: usize = 1 << 17;

/// With at most this many vertices, [`random_pair`] comes from a table, which stays in the cache.
const TABLE_UP_TO: usize = 1 << 16;

/// Computes the degrees of the rows. Returns whether the pattern is symmetric.
pub(crate) fn scan<O: Offset>(
    offsets: &[O],
    indices: &[u32],
    degrees: &mut [u32],
    known_symmetric: bool,
) -> bool {
    let rows = offsets.len() - 1;
    if known_symmetric {
        scan_with(offsets, indices, degrees, |_| (0, 0));
        true
    } else if rows <= TABLE_UP_TO && rows < indices.len() {
        let table: Vec<(u64, u64)> = (0..rows as u32).map(random_pair).collect();
        scan_with(offsets, indices, degrees, |v| table[v as usize])
    } else {
        scan_with(offsets, indices, degrees, random_pair)
    }
}

fn scan_with<O: Offset>(
    offsets: &[O],
    indices: &[u32],
    degrees: &mut [u32],
    random: impl Fn(u32) -> (u64, u64) + Sync,
) -> bool {
    let rows = offsets.len() - 1;
    // f^T (P - P^T) g for the pattern P and random f and g. It is zero if P is symmetric. The diagonal cancels.
    let scan_rows = |range: std::ops::Range<usize>, degrees: &mut [u32]| {
        let mut sum = 0u64;
        for (row, degree) in range.zip(degrees) {
            let line = &indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
            let (mut f_sum, mut g_sum, mut diagonal) = (0u64, 0u64, 0);
            for &w in line {
                let (f, g) = random(w);
                f_sum = f_sum.wrapping_add(f);
                g_sum = g_sum.wrapping_add(g);
                diagonal += u32::from(w as usize == row);
            }
            *degree = line.len() as u32 - diagonal;
            let (f, g) = random(row as u32);
            sum = sum.wrapping_add(f.wrapping_mul(g_sum)).wrapping_sub(g.wrapping_mul(f_sum));
        }
        sum
    };
    let sum = if indices.len() + rows < PARALLEL_FROM {
        scan_rows(0..rows, degrees)
    } else {
        let chunks = row_chunks(|row| offsets[row].to_usize(), rows);
        let parts = split_rows(&chunks, |row| row, degrees);
        parts.into_par_iter().map(|(range, part)| scan_rows(range, part)).reduce(|| 0, u64::wrapping_add)
    };
    sum == 0
}

/// Returns the bandwidth and the profile if vertex `v` has position `number(v)`.
pub(super) fn envelope(graph: GraphParts<'_, Host>, number: impl Fn(u32) -> u32 + Sync) -> (usize, u64) {
    with_offsets!(graph.offsets, offsets => over_rows(offsets, |rows| {
        rows.fold((0, 0), |(far, sum), row| {
            let line = &graph.indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
            let here = number(row as u32);
            let (low, high) = line.iter().map(|&w| number(w)).fold((here, here), |(low, high), w| (low.min(w), high.max(w)));
            (far.max((here - low).max(high - here) as usize), sum + u64::from(here - low))
        })
    }, |a: (usize, u64), b| (a.0.max(b.0), a.1 + b.1)))
}

/// Combines `term(rows)` over all rows, with several threads if there is enough work.
pub(crate) fn over_rows<O: Offset, T: Send + Default>(
    offsets: &[O],
    term: impl Fn(Range<usize>) -> T + Sync,
    combine: impl Fn(T, T) -> T + Sync,
) -> T {
    let rows = offsets.len() - 1;
    if offsets[rows].to_usize() + rows < rows::PARALLEL_FROM {
        return term(0..rows);
    }
    row_chunks(|row| offsets[row].to_usize(), rows).into_par_iter().map(&term).reduce(T::default, &combine)
}
