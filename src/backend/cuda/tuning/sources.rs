//! Constants and launch shapes of sums of values from their sources. The values are read directly, or staged in pieces
//! if sources are close together.

use super::{Shape, elementwise};
use crate::backend::RUN_TILE;
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::backend::runs::staged::{BLOCK_PARTS, MOST_PIECES, PART, PIECE};

/// Threads per block that sums triplets to nonzeros and divide the sources of a tile evenly, and the number of blocks
/// that a multiprocessor should be able to hold; the second number is for elements of 16 bytes.
const GATHER_SUM_THREADS: u32 = 128;
const GATHER_SUM_BLOCKS: [u32; 2] = [12, 6];

/// Threads per block that computes codes of sources.
const STAGING_THREADS: u32 = 256;
/// For sources given by codes: the number of blocks that a multiprocessor should be able to hold, and copies per thread
/// in flight.
const STAGED_SUM: [(&str, u32, u32); 4] = [("f32", 16, 3), ("f64", 14, 5), ("c32", 12, 5), ("c64", 8, 5)];
/// From this number of sources on, codes are used. A smaller map is read from the second-level cache.
const STAGED_FROM: usize = 1 << 17;

/// Returns the constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "gather_sum.cu" => {
            let blocks = GATHER_SUM_BLOCKS[usize::from(unit.type_of("SCALAR") == "c64")];
            let items = RUN_TILE as u32 / GATHER_SUM_THREADS;
            vec![("THREADS", GATHER_SUM_THREADS), ("ITEMS", items), ("BLOCKS", blocks)]
        }
        "stage_runs.cu" => [&staged_form()[..], &[("THREADS", STAGING_THREADS)]].concat(),
        _ => {
            let own = STAGED_SUM.iter().find(|own| unit.type_of("SCALAR") == own.0);
            let (_, blocks, at_once) = *own.unwrap_or(&STAGED_SUM[3]);
            [&staged_form()[..], &[("BLOCKS", blocks), ("AT_ONCE", at_once)]].concat()
        }
    }
}

/// Returns the format of lists of pieces, for kernels that read them.
fn staged_form() -> [(&'static str, u32); 4] {
    [("PART", PART), ("BLOCK_PARTS", BLOCK_PARTS), ("PIECE", PIECE), ("MOST_PIECES", MOST_PIECES)]
        .map(|(name, value)| (name, value as u32))
}

/// Returns whether a map of this number of sources is stored as codes.
pub(in crate::backend::cuda) fn stages_runs(sources: usize) -> bool {
    (STAGED_FROM..=1 << 31).contains(&sources)
}

/// Returns a launch whose blocks loop over runs with a grid stride.
pub(in crate::backend::cuda) fn per_run(chip: Chip, runs: usize) -> Shape {
    elementwise(chip, runs).threads(STAGING_THREADS)
}

/// Returns a launch with a block per list of pieces.
pub(in crate::backend::cuda) fn stage_runs(parts: usize) -> Shape {
    Shape::new((parts / BLOCK_PARTS) as u32, STAGING_THREADS)
}

/// Returns a launch with a block per list. Shared memory has space for the pieces of the longest list, or for a sum for
/// each slot.
pub(in crate::backend::cuda) fn sum_staged(lists: usize, most: usize, bytes: usize) -> Shape {
    let elements = (most * PIECE).max(PART * BLOCK_PARTS);
    Shape::new(lists as u32, 32 * BLOCK_PARTS as u32).shared(elements * bytes)
}

/// Returns a launch with a block per tile of sources.
pub(in crate::backend::cuda) fn gather_sum(tiles: usize) -> Shape {
    Shape::new(tiles as u32, GATHER_SUM_THREADS)
}
