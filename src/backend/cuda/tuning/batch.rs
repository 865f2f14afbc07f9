//! Constants and launch shapes of batches of small systems.

use super::{Chip, Shape, Unit};
use crate::backend::{BESIDE, NORM_UNITS, POWERS, REFINEMENTS};

/// The largest system whose rows fit the registers of a warp's lanes, and the largest of a block of threads.
pub(in crate::backend::cuda) const BATCH_LANES: usize = 32;
pub(in crate::backend::cuda) const BATCH_ROWS: usize = 256;
/// Lanes of a system.
pub(in crate::backend::cuda) const LANES_CLASSES: [u32; 4] = [4, 8, 16, 32];
/// Rows up to which a unit's systems have.
pub(in crate::backend::cuda) const BLOCK_CLASSES: [u32; 3] = [64, 128, 256];

/// Threads of a block where each system has some lanes of a warp.
const LANES_THREADS: u32 = 128;
/// A matrix with more bytes is stored in global memory that belongs to its block of threads: with it in shared memory,
/// fewer than three blocks would fit a multiprocessor.
const SHARED: usize = 74 << 10;

/// Threads, columns of a panel, columns of a tile, and blocks of a multiprocessor.
fn block(rows: u32) -> [u32; 4] {
    match rows {
        64 => [128, 8, 2, 4],
        128 => [128, 8, 4, 3],
        _ => [256, 16, 4, 2],
    }
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = unit.size_class();
    let common = [
        ("POWERS", POWERS as u32),
        ("REFINEMENTS", REFINEMENTS),
        ("BESIDE", BESIDE),
        ("NORM_UNITS", NORM_UNITS),
    ];
    let own = if unit.source() == "batch_lanes.cu" {
        let complex = unit.type_of("SCALAR").starts_with('c');
        vec![("LANES", class), ("THREADS", LANES_THREADS), ("BLOCKS", if complex { 2 } else { 4 })]
    } else {
        let [threads, panel, columns, blocks] = block(class);
        let tile = [("PANEL", panel), ("TILE_COLUMNS", columns), ("BLOCKS", blocks)];
        [vec![("ROWS", class), ("THREADS", threads)], tile.to_vec()].concat()
    };
    [common.to_vec(), own].concat()
}

/// Some lanes of a warp a system.
pub(in crate::backend::cuda) fn batch_lanes(systems: usize, size: usize) -> Shape {
    let lanes = (size.next_power_of_two() as u32).max(LANES_CLASSES[0]);
    let blocks = (systems * lanes as usize).div_ceil(LANES_THREADS as usize);
    Shape::new(blocks as u32, LANES_THREADS).class(lanes)
}

/// One block of threads per system with numbers of `bytes` bytes, and the number of elements of all blocks' matrices if
/// these are not in shared memory.
pub(in crate::backend::cuda) fn batch_block(
    chip: Chip,
    systems: usize,
    size: usize,
    bytes: usize,
) -> (Shape, usize) {
    let class = BLOCK_CLASSES.into_iter().find(|rows| size <= *rows as usize).unwrap_or(BLOCK_CLASSES[2]);
    let [threads, _, _, blocks] = block(class);
    let matrix = size * (size | 1);
    // Four vectors, norms, exponents and three lists of rows.
    let vectors = size * (4 * bytes + 8 + 4 * 4);
    if matrix * bytes + vectors <= SHARED.min(chip.shared_a_block as usize) {
        let shape = Shape::resident(systems, threads).shared(matrix * bytes + vectors);
        return (shape.class(class), 0);
    }
    let blocks = systems.min((chip.multiprocessors * blocks) as usize);
    (Shape::new(blocks as u32, threads).shared(vectors).class(class), blocks * matrix)
}
