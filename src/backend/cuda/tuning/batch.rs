//! Constants and launch shapes of batches of small systems.

use super::{Chip, Shape, Unit};
use crate::backend::{BESIDE, ITERATIONS, NORM_UNITS, POWERS, REFINEMENTS};

/// The largest system whose rows fit the registers of a warp's lanes, and the largest of a block of threads.
pub(in crate::backend::cuda) const BATCH_LANES: usize = 32;
pub(in crate::backend::cuda) const BATCH_ROWS: usize = 256;
/// The largest system of one sparse pattern, and what a multiplication of its elimination costs in those of a dense one:
/// on an H200, 10 000 systems of 992 unknowns beside 2000 dense ones of 256.
pub(in crate::backend::cuda) const BATCH_SPARSE_ROWS: usize = 4096;
pub(in crate::backend::cuda) const BATCH_SPARSE_PRICE: f64 = 5.0;
/// Lanes of a system.
pub(in crate::backend::cuda) const LANES_CLASSES: [u32; 4] = [4, 8, 16, 32];
/// Rows up to which a unit's systems have.
pub(in crate::backend::cuda) const BLOCK_CLASSES: [u32; 3] = [64, 128, 256];

/// Threads of a block where each system has some lanes of a warp.
const LANES_THREADS: u32 = 128;
/// A matrix with more bytes is stored in global memory that belongs to its block of threads: with it in shared memory,
/// fewer than three blocks would fit a multiprocessor.
const SHARED: usize = 74 << 10;

/// The largest system that is solved by iteration, and rows up to which a unit's systems have.
pub(in crate::backend::cuda) const BATCH_KRYLOV_ROWS: usize = 4096;
pub(in crate::backend::cuda) const KRYLOV_CLASSES: [u32; 3] = [256, 1024, 4096];
/// Systems of one sparse pattern that a warp solves together: how many depends on the pattern alone, so that a system
/// has the same bits in any company.
pub(in crate::backend::cuda) const SPARSE_CLASSES: [u32; 2] = [4, 1];
/// Threads of a block there, and blocks of a multiprocessor.
const SPARSE_THREADS: u32 = 64;
const SPARSE_BLOCKS: u32 = 10;
/// Bytes of factors and vectors of all systems that are solved at a time, at most.
const SPARSE_ROOM: usize = 4 << 30;

/// Threads, columns of a panel, columns of a tile, and blocks of a multiprocessor.
fn block(rows: u32) -> [u32; 4] {
    match rows {
        64 => [128, 8, 2, 4],
        128 => [128, 8, 4, 3],
        _ => [256, 16, 4, 2],
    }
}

/// Threads, and blocks of a multiprocessor, if systems are solved by iteration: vectors lie in registers.
fn krylov(rows: u32, complex: bool) -> [u32; 2] {
    match (rows, complex) {
        (256, _) => [128, 4],
        (1024, false) => [256, 2],
        (1024, true) => [512, 1],
        _ => [1024, 1],
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
    let own = match unit.source() {
        "batch_lanes.cu" => {
            let complex = unit.type_of("SCALAR").starts_with('c');
            vec![("LANES", class), ("THREADS", LANES_THREADS), ("BLOCKS", if complex { 2 } else { 4 })]
        }
        "batch_krylov.cu" => {
            let [threads, blocks] = krylov(class, unit.type_of("SCALAR").starts_with('c'));
            vec![("ROWS", class), ("THREADS", threads), ("BLOCKS", blocks), ("ITERATIONS", ITERATIONS)]
        }
        "batch_sparse.cu" => {
            vec![("TOGETHER", class), ("THREADS", SPARSE_THREADS), ("BLOCKS", SPARSE_BLOCKS)]
        }
        _ => {
            let [threads, panel, columns, blocks] = block(class);
            let tile = [("PANEL", panel), ("TILE_COLUMNS", columns), ("BLOCKS", blocks)];
            [vec![("ROWS", class), ("THREADS", threads)], tile.to_vec()].concat()
        }
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

/// Warps that take systems of one sparse pattern, with numbers of so many bytes, and how many numbers all of them keep;
/// none where a row of the factors is too long for shared memory.
pub(in crate::backend::cuda) fn batch_sparse(
    chip: Chip,
    systems: usize,
    (size, entries, longest): (usize, usize, usize),
    bytes: usize,
) -> Option<(Shape, usize)> {
    let warps = SPARSE_THREADS as usize / 32;
    let shared = |together: u32| warps * (longest * together as usize * bytes + 2 * size.next_multiple_of(8));
    let all = (chip.shared_a_multiprocessor / SPARSE_BLOCKS - chip.shared_reserved) as usize;
    let [several, one] = SPARSE_CLASSES;
    let together = if shared(several) <= all { several } else { one };
    if shared(together) > chip.shared_a_block as usize {
        return None;
    }
    // As the kernel says.
    let kept = (entries + 6 * size) * together as usize;
    let at_most =
        (SPARSE_ROOM / (kept * bytes * warps)).clamp(1, (chip.multiprocessors * SPARSE_BLOCKS) as usize);
    let blocks = systems.div_ceil(together as usize * warps).min(at_most);
    let shape = Shape::new(blocks as u32, SPARSE_THREADS).shared(shared(together));
    Some((shape.class(together), blocks * warps * kept))
}

/// A block of threads a system with so many rows and entries, and numbers of so many bytes; and whether matrices are
/// copied to shared memory. No entries are told of systems with patterns of their own. None where vectors don't fit in
/// shared memory.
pub(in crate::backend::cuda) fn batch_krylov(
    chip: Chip,
    systems: usize,
    (size, entries): (usize, usize),
    bytes: usize,
) -> Option<(Shape, bool)> {
    let class = KRYLOV_CLASSES.into_iter().find(|rows| size <= *rows as usize).unwrap_or(KRYLOV_CLASSES[2]);
    let [threads, blocks] = krylov(class, bytes > 8);
    // Sums of each warp lie there too.
    let sums = threads / 32 * 48 + 16;
    let all = (chip.shared_a_multiprocessor / blocks - chip.shared_reserved).min(chip.shared_a_block) - sums;
    let vectors = size * (bytes + 16);
    let matrix = entries * (bytes + 2);
    if vectors > all as usize {
        return None;
    }
    let staged = entries > 0 && vectors + matrix <= all as usize;
    let shape = Shape::resident(systems, threads).shared(vectors + if staged { matrix } else { 0 });
    Some((shape.class(class), staged))
}
