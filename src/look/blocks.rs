//! The number of unknowns per point.

use crate::prepare::Pattern;

/// A block size is accepted if entries are stored at this fraction of the positions in its blocks, or more.
const FULL: f64 = 0.9;

/// The number of block rows that are examined first, before all are counted.
const SAMPLE: usize = 200;

/// The largest size from 6 to 2 for which A consists of aligned square blocks that are nearly full; else 1. A matrix
/// whose rows are nearly full has no block structure.
pub(super) fn natural_size(pattern: &Pattern<'_>) -> usize {
    let (rows, columns) = (pattern.rows(), pattern.columns());
    if rows != columns || pattern.entries() as f64 > 0.5 * rows as f64 * columns as f64 {
        return 1;
    }
    let fits = |size: &usize| {
        rows % size == 0
            && fill(pattern, *size, (rows / size).div_ceil(SAMPLE).max(1)) >= FULL
            && fill(pattern, *size, 1) >= FULL
    };
    (2..=6).rev().find(fits).unwrap_or(1)
}

/// The fraction of positions with an entry, over all nonempty blocks in each `step`-th block row.
fn fill(pattern: &Pattern<'_>, size: usize, step: usize) -> f64 {
    let mut seen = vec![u32::MAX; pattern.columns() / size];
    let (mut entries, mut blocks) = (0, 0);
    for block_row in (0..pattern.rows() / size).step_by(step) {
        for row in block_row * size..(block_row + 1) * size {
            entries += pattern.row(row).len();
            for &column in pattern.row(row) {
                let last = &mut seen[column as usize / size];
                blocks += usize::from(*last != block_row as u32);
                *last = block_row as u32;
            }
        }
    }
    entries as f64 / (blocks * size * size).max(1) as f64
}
