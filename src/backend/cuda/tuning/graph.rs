//! Constants of graph traversals, measured on an H200, and launch shapes.

use super::Shape;
use crate::backend::cuda::chip::{Chip, LARGEST_CLUSTER};
use crate::backend::cuda::compile::Unit;
use crate::backend::cuda::shape::Together;

const BFS_THREADS: u32 = 1024;
/// Neighbours per entry of the queue.
pub(in crate::backend::cuda) const BFS_CHUNK: u32 = 256;
const ORDER_THREADS: u32 = 512;
const THREADS: u32 = 256;
/// Blocks per cluster, in order of preference. Every chip with clusters supports eight; one block means no cluster.
pub(in crate::backend::cuda) const CLUSTERS: [u32; 4] = [LARGEST_CLUSTER, 8, 4, 1];
/// The maximum number of vertices in a frontier that one cluster processes in a Cuthill-McKee ordering, and how many of
/// them fit a block.
const NARROW: u32 = 8192;
const NARROW_OF_BLOCK: u32 = 512;
/// Threads per row if each row is read once.
const LANES: u32 = 8;

/// Seconds to load the kernels of an ordering from the cache, once in a process, and seconds to compile them, once on a
/// machine.
pub(in crate::backend::cuda) const ORDER_LOADING: f64 = 2.5e-3;
pub(in crate::backend::cuda) const ORDER_COMPILING: f64 = 3.0;

/// The maximum number of entries in a row that a block can sort in shared memory.
pub(in crate::backend::cuda) const PERMUTE_LONGEST: usize = 4096;

pub(super) fn constants(unit: &Unit) -> Option<Vec<(&'static str, u32)>> {
    Some(match unit.source() {
        "bfs.cu" => vec![
            ("THREADS", BFS_THREADS),
            ("CHUNK", BFS_CHUNK),
            ("CLUSTER", unit.size_class().max(1)),
            ("PIECE", 1024),
            ("ROOM", 2048),
            ("STAYS", 64),
            ("LONG", 8),
            ("BY_ITSELF", 32),
        ],
        "bfs_part.cu" => {
            vec![("THREADS", THREADS), ("CHUNK", BFS_CHUNK), ("ROOM", 1024), ("BY_ITSELF", 32)]
        }
        "cuthill_mckee.cu" => vec![
            ("THREADS", ORDER_THREADS),
            ("ALONE", 256),
            ("STAGE", 64),
            ("CLUSTER", unit.size_class().max(1)),
            ("HELD", 8),
            ("NARROW", NARROW.min(unit.size_class().max(1) * NARROW_OF_BLOCK)),
        ],
        "pattern.cu" | "components.cu" | "grid_order.cu" => vec![("THREADS", THREADS), ("LANES", LANES)],
        "permute.cu" => {
            vec![
                ("THREADS", THREADS),
                ("LANES", unit.size_class().max(8)),
                ("LONGEST", PERMUTE_LONGEST as u32),
            ]
        }
        "colour.cu" => vec![("THREADS", THREADS)],
        _ => return None,
    })
}

/// Returns launches with one block per multiprocessor, in clusters. More blocks would take longer to synchronise.
pub(in crate::backend::cuda) fn bfs(chip: Chip) -> impl Iterator<Item = Shape> {
    let blocks = chip.multiprocessors as usize;
    in_clusters(chip, Shape::resident(blocks, BFS_THREADS))
}

/// Returns a launch with as many blocks as can be resident, for a level on one of several ranks.
pub(in crate::backend::cuda) fn bfs_part(chip: Chip) -> Shape {
    Shape::new(8 * chip.multiprocessors, THREADS)
}

/// Returns a launch with a thread per vertex, for the kernels before and after the search.
pub(in crate::backend::cuda) fn bfs_parents(n: usize) -> Shape {
    Shape::new(n.div_ceil(BFS_THREADS as usize) as u32, BFS_THREADS)
}

/// Returns launches with one block per multiprocessor, but at most as many as a team may have, in clusters if the chip
/// has them, in order of preference.
pub(in crate::backend::cuda) fn cuthill_mckee(chip: Chip) -> impl Iterator<Item = Shape> {
    let blocks = chip.multiprocessors.min(255) as usize;
    in_clusters(chip, Shape::resident(blocks, ORDER_THREADS))
}

/// Returns the shape in clusters of each size that the chip supports.
fn in_clusters(chip: Chip, shape: Shape) -> impl Iterator<Item = Shape> {
    let sizes = CLUSTERS.into_iter().filter(move |&size| size <= chip.cluster);
    sizes.map(move |size| shape.class(size).together(Together::Clusters(size)))
}

/// Returns the maximum number of tiles of a level with `n` vertices.
pub(in crate::backend::cuda) fn cuthill_mckee_tiles(chip: Chip, n: usize) -> usize {
    n / ORDER_THREADS as usize + chip.multiprocessors as usize + 1
}

/// Returns a launch with a thread per vertex.
pub(in crate::backend::cuda) fn per_vertex(chip: Chip, n: usize) -> Shape {
    strided(chip, n.div_ceil(THREADS as usize))
}

/// Returns a launch with [`LANES`] threads per row.
pub(in crate::backend::cuda) fn per_row(chip: Chip, rows: usize) -> Shape {
    strided(chip, rows.div_ceil((THREADS / LANES) as usize))
}

/// Returns a launch with several threads per row: about as many as its mean number of entries, within limits.
pub(in crate::backend::cuda) fn permute(chip: Chip, rows: usize, nonzeros: usize) -> Shape {
    let lanes = if nonzeros / rows.max(1) > 24 { 32 } else { 8 };
    strided(chip, rows.div_ceil((THREADS / lanes) as usize)).class(lanes)
}

/// Returns a launch with a block per row.
pub(in crate::backend::cuda) fn permute_long(chip: Chip, rows: usize) -> Shape {
    strided(chip, rows)
}

fn strided(chip: Chip, blocks: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS);
    Shape::new(blocks.min(4 * resident as usize) as u32, THREADS)
}
