//! Grids that products of all layouts share.

use super::{Chip, Shape};

/// Threads of a block of every product, where nothing else is said.
pub(super) const THREADS: u32 = 256;

/// A thread a row, blocks taking several.
pub(in crate::backend::cuda) fn row_shape(chip: Chip, rows: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS);
    Shape::new(blocks(rows.div_ceil(THREADS as usize)).min(2 * resident), THREADS)
}

/// A grid has at most 2^31 - 1 blocks; kernels take a tile a block, and no matrix in a device's memory has more tiles.
pub(super) fn blocks(tiles: usize) -> u32 {
    u32::try_from(tiles).unwrap_or(u32::MAX).min(i32::MAX as u32)
}
