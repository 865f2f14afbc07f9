//! Constants for the exchange of data between GPUs through windows.

use super::Shape;

const THREADS: u32 = 256;
/// Maximum number of scalars in a sum over all ranks.
pub(in crate::backend::cuda) const PEERS_MOST: usize = 64;
/// Seconds for which a rank waits for another.
const PATIENCE: u32 = 60;
/// Maximum number of ranks whose words fit the shared memory of a step of conjugate gradients (`MOST_RANKS`).
pub(in crate::backend::cuda) const PART_RANKS: usize = 32;
/// Maximum number of blocks. Few are enough, because the link between GPUs limits the speed.
const PEERS_BLOCKS: usize = 64;

/// Returns the constants of a unit of these kernels.
pub(super) fn constants() -> Vec<(&'static str, u32)> {
    vec![("THREADS", THREADS), ("MOST", PEERS_MOST as u32), ("PATIENCE", PATIENCE)]
}

/// The maximum number of blocks that multiply rows with a halo; all of them must be resident.
pub(in crate::backend::cuda) const ROWS_BLOCKS: usize = 512;

/// Returns the launch for rows with a halo, a thread each. By then the halo is in this GPU's memory.
pub(in crate::backend::cuda) fn peers_rows(rows: usize) -> Shape {
    Shape::new(rows.div_ceil(THREADS as usize).clamp(1, ROWS_BLOCKS) as u32, THREADS)
}

/// Returns the launch that sends or receives this number of words, with enough blocks to saturate the link between two
/// GPUs.
pub(in crate::backend::cuda) fn peers_words(words: usize) -> Shape {
    Shape::new(words.div_ceil(4 * THREADS as usize).clamp(1, ROWS_BLOCKS) as u32, THREADS)
}

/// Returns the launch that sends or receives this number of entries.
pub(in crate::backend::cuda) fn peers(entries: usize) -> Shape {
    Shape::new(entries.div_ceil(4 * THREADS as usize).clamp(1, PEERS_BLOCKS) as u32, THREADS)
}
