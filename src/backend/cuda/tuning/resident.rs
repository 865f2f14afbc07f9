//! Constants of the persistent kernels, which keep a system on the chip, or everything except the matrix.

use super::super::chip::Chip;
use super::super::shape::Shape;

/// Threads per block of the layout kernel.
const LAYOUT_THREADS: u32 = 1024;
/// Maximum number of bytes of shared memory that the kernels declare and the system uses.
const DECLARED: u32 = 6 << 10;
/// Maximum number of rows per thread.
const MOST_ROWS: u32 = 8;
/// Threads per block with one or two rows per thread. The last number is also used for more rows per thread.
const THREADS: [u32; 4] = [128, 256, 320, 512];

/// How a system is divided among the blocks of a launch.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct Resident {
    /// The number of blocks in the only cluster; 1 for a single block, 0 for blocks without a cluster.
    pub(in crate::backend::cuda) cluster: u32,
    pub(in crate::backend::cuda) blocks: u32,
    pub(in crate::backend::cuda) threads: u32,
    pub(in crate::backend::cuda) rows_a_block: u32,
    pub(in crate::backend::cuda) class: u32,
}

/// Returns the class of a unit: `cluster`, `threads` and rows per thread.
const fn class(cluster: u32, threads: u32, rows: u32) -> u32 {
    cluster << 24 | rows << 16 | threads
}

/// Returns the number of blocks in the cluster of a class; 0 without a cluster.
pub(super) const fn cluster(class: u32) -> u32 {
    class >> 24
}

/// Classes for which the kernel is compiled in advance. Tests compile the last one for every chip: it has clusters, and
/// on chips without clusters these are replaced by blocks that synchronise through memory.
pub(in crate::backend::cuda) const RESIDENT: [u32; 3] =
    [class(1, 512, 2), class(0, 512, 4), class(16, 320, 2)];

/// Returns the macros for a class.
pub(super) fn constants(class: u32) -> Vec<(&'static str, u32)> {
    vec![("CLUSTER", cluster(class)), ("ROWS", class >> 16 & 0xff), ("THREADS", class & 0xffff)]
}

/// Returns ways to keep a system of `n` rows on the chip, the fastest first (measured on an H200:
/// docs/internals/benchmarks/cg.md). A single block needs no synchronisation between blocks, a cluster synchronises in
/// hardware, and the whole chip has the most memory.
pub(in crate::backend::cuda) fn resident(chip: Chip, n: usize, nonzeros: usize) -> Vec<Resident> {
    let mut ways = Vec::new();
    let mut way = |cluster: u32, most_blocks: u32| {
        let Ok(rows) = u32::try_from(n) else { return };
        let rows_a_block = rows.div_ceil(most_blocks).next_multiple_of(32);
        let enough = THREADS.iter().find(|&&threads| cluster > 0 && 2 * threads >= rows_a_block);
        let threads = *enough.unwrap_or(&THREADS[3]);
        let rows_a_thread = rows_a_block.div_ceil(threads).next_power_of_two();
        if rows_a_thread <= MOST_ROWS {
            let blocks = if cluster > 0 { cluster } else { rows.div_ceil(rows_a_block) };
            let class = class(cluster, threads, rows_a_thread);
            ways.push(Resident { cluster, blocks, threads, rows_a_block, class });
        }
    };
    if nonzeros <= 12_000 {
        way(1, 1);
    }
    if nonzeros <= 160_000 {
        let clusters = if nonzeros <= 30_000 { [8, 16] } else { [16, 8] };
        clusters.into_iter().filter(|&blocks| blocks <= chip.cluster).for_each(|blocks| way(blocks, blocks));
    }
    way(0, chip.multiprocessors);
    ways
}

/// Threads per block if the matrix is streamed from memory, and entries per row that a thread has in flight.
const STREAM_THREADS: u32 = 1024;
const STREAM_UNROLL: u32 = 4;

/// Maximum number of bytes of a matrix for which streaming is faster than steps with a compressed matrix: the size that
/// stays in the second-level cache.
const STREAM_MATRIX: usize = 44 << 20;

/// Classes for which the streaming kernel is compiled in advance.
pub(in crate::backend::cuda) const STREAMED: [u32; 2] =
    [class(0, STREAM_THREADS, 8), class(0, STREAM_THREADS, 2)];

/// Returns the macros for a class of the streaming kernel.
pub(super) fn streamed_constants(class: u32) -> Vec<(&'static str, u32)> {
    vec![("ROWS", class >> 16 & 0xff), ("THREADS", class & 0xffff), ("UNROLL", STREAM_UNROLL)]
}

/// Returns how a system of `n` rows is divided among blocks while its matrix is streamed; vectors have `scalar` bytes
/// per element. `row` bytes of each row are in shared memory, and two vectors in registers: each has at most 64 bytes
/// in a thread. `None` if there is not enough memory.
pub(in crate::backend::cuda) fn streamed(
    chip: Chip,
    n: usize,
    scalar: usize,
    row: usize,
) -> Option<Resident> {
    let rows = u32::try_from(n).ok()?;
    let rows_a_block = rows.div_ceil(chip.multiprocessors).next_multiple_of(32);
    let rows_a_thread = rows_a_block.div_ceil(STREAM_THREADS).next_power_of_two();
    let fits = rows_a_thread as usize * scalar <= 64
        && rows_a_block as usize * row <= resident_shared(chip)
        && chip.threads_per_multiprocessor >= STREAM_THREADS;
    fits.then(|| Resident {
        cluster: 0,
        blocks: rows.div_ceil(rows_a_block),
        threads: STREAM_THREADS,
        rows_a_block,
        class: class(0, STREAM_THREADS, rows_a_thread),
    })
}

/// Returns whether streaming the matrix is likely to be fastest for a system of this size.
pub(in crate::backend::cuda) fn likely_streamed(
    chip: Chip,
    rows: usize,
    nonzeros: usize,
    value: usize,
    scalar: usize,
) -> bool {
    let fits = || streamed(chip, rows, scalar, 3 * scalar).is_some();
    nonzeros.saturating_mul(value + 4) <= STREAM_MATRIX && fits()
}

/// Returns whether a system is likely to fit the whole chip. It is assumed that its halos have twice as many entries as
/// it has rows, and that an eighth of its entries is padding, as with stencils in three dimensions.
pub(in crate::backend::cuda) fn likely_resident(
    chip: Chip,
    rows: usize,
    nonzeros: usize,
    value: usize,
    scalar: usize,
) -> bool {
    let bytes = nonzeros.saturating_mul(value + 2) / 8 * 9 + rows.saturating_mul(3 * scalar + 8);
    bytes <= resident_shared(chip) * chip.multiprocessors as usize
}

/// Returns the number of bytes of shared memory that a launch can request for a block.
pub(in crate::backend::cuda) fn resident_shared(chip: Chip) -> usize {
    chip.shared_a_block.saturating_sub(DECLARED) as usize
}

/// Returns the launch of the layout kernel. Shared memory has two words for every 32 rows.
pub(in crate::backend::cuda) fn layout(n: usize, blocks: u32) -> Shape {
    Shape::new(blocks, LAYOUT_THREADS).shared(8 * n.div_ceil(32))
}

/// Returns the threads of the layout kernel, as a constant of its unit.
pub(super) fn layout_constants() -> Vec<(&'static str, u32)> {
    vec![("THREADS", LAYOUT_THREADS)]
}
