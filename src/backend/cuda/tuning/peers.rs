//! Windows between GPUs: how much a launch does.

use super::Shape;

const THREADS: u32 = 256;
/// Scalars of a sum over all ranks at most.
pub(in crate::backend::cuda) const PEERS_MOST: usize = 64;
/// Seconds that one rank waits for another.
const PATIENCE: u32 = 60;
/// Ranks whose words fit the shared memory of a step of conjugate gradients (`MOST_RANKS`).
pub(in crate::backend::cuda) const PART_RANKS: usize = 32;
/// Blocks at most: few, since what limits is the way between GPUs.
const PEERS_BLOCKS: usize = 64;

/// The constants of a unit of these kernels.
pub(super) fn constants() -> Vec<(&'static str, u32)> {
    vec![("THREADS", THREADS), ("MOST", PEERS_MOST as u32), ("PATIENCE", PATIENCE)]
}

/// Blocks of the rows that need a halo, at most: as many as are resident.
pub(in crate::backend::cuda) const ROWS_BLOCKS: usize = 512;

/// A thread for each of so many rows that need a halo: what they read lies in this GPU's own memory.
pub(in crate::backend::cuda) fn peers_rows(rows: usize) -> Shape {
    Shape::new(rows.div_ceil(THREADS as usize).clamp(1, ROWS_BLOCKS) as u32, THREADS)
}

/// Blocks that send or receive so many words: enough to fill the way between two GPUs.
pub(in crate::backend::cuda) fn peers_words(words: usize) -> Shape {
    Shape::new(words.div_ceil(4 * THREADS as usize).clamp(1, ROWS_BLOCKS) as u32, THREADS)
}

/// Blocks that send or receive so many entries.
pub(in crate::backend::cuda) fn peers(entries: usize) -> Shape {
    Shape::new(entries.div_ceil(4 * THREADS as usize).clamp(1, PEERS_BLOCKS) as u32, THREADS)
}
