//! Launch shapes that products of all formats share.

use super::{Chip, Shape};

/// Threads per block of every product unless stated otherwise.
pub(super) const THREADS: u32 = 256;

/// Returns a launch with a thread per row. If there are many rows, a thread processes several.
pub(in crate::backend::cuda) fn row_shape(chip: Chip, rows: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS);
    Shape::new(blocks(rows.div_ceil(THREADS as usize)).min(2 * resident), THREADS)
}

/// Converts a number of tiles to a number of blocks. A grid has at most 2^31 - 1 blocks, and no matrix in a device's
/// memory has more tiles.
pub(super) fn blocks(tiles: usize) -> u32 {
    u32::try_from(tiles).unwrap_or(u32::MAX).min(i32::MAX as u32)
}
