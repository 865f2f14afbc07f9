//! Constants and launch shapes of sums of values from their sources. Sources are read directly, staged in pieces, read
//! in ascending order, or sorted into buckets of the second-level cache or into tiles.

use super::{Shape, elementwise};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::backend::runs::ascending::{FORMS, LENGTH, SLOTS};
use crate::backend::runs::staged::{BLOCK_PARTS, MOST_PIECES, PART, PIECE};
use crate::backend::runs::tiled::MOST_TILED;
use crate::backend::{BUCKET_TILE, MOST_BUCKETS, RUN_TILE};

/// Threads per block that sums triplets to nonzeros, which share the sources of a tile evenly, and blocks for which a
/// multiprocessor should have room: fewer if elements have 16 bytes.
const GATHER_SUM_THREADS: u32 = 128;
const GATHER_SUM_BLOCKS: [u32; 2] = [12, 6];

/// Threads per block that computes codes of sources.
const STAGING_THREADS: u32 = 256;
/// For sources given by codes: blocks for which a multiprocessor should have room, and copies per thread in flight.
const STAGED_SUM: [(&str, u32, u32); 4] = [("f32", 16, 3), ("f64", 14, 5), ("c32", 12, 5), ("c64", 8, 5)];
/// Number of sources from which on codes are used: a smaller map is read from the second-level cache.
const STAGED_FROM: usize = 1 << 17;

/// Threads per block that sums a tile with ascending sources, and blocks for which a multiprocessor should have room,
/// by bytes per element.
const ASCENDING_SUM: [(usize, u32, u32); 3] = [(4, 512, 4), (8, 1024, 2), (16, 1024, 1)];
/// Maximum shared memory that the kernel declares statically.
const ASCENDING_STATIC: usize = 4 << 10;
/// Maximum number of windows that contain the sources of a tile, and places of a window. A tile with this many windows
/// has 62 sources per window in the mean; if sources are farther apart, each needs a sector of its own.
const ASCENDING_WINDOWS: u32 = 128;
const ASCENDING_SPAN: usize = 1 << 11;
/// Number of sources from which on they are put in ascending order: with fewer, values, result and map fit the
/// second-level cache.
const ASCENDING_FROM: usize = 1 << 22;

/// Threads per block that sorts a tile of elements into buckets, and blocks for which a multiprocessor should have
/// room: fewer if elements have 16 bytes.
const BUCKET_THREADS: u32 = 1024;
const BUCKET_BLOCKS: [u32; 2] = [2, 1];
/// Number of values from which on moving them close together pays: fewer stay in the second-level cache.
const BUCKETS_FROM: usize = 1 << 23;
/// Bits of a position in a bucket: the few buckets that sums read next fit the second-level cache, and a tile's values
/// for one bucket fill cache lines.
const BUCKET_BITS: u32 = 20;

/// Threads per block that orders or sums tiles; it has a multiprocessor to itself.
const TILED_THREADS: u32 = 1024;
/// Sums whose sources a thread holds while its bucket is loaded, and lanes that copy a run, by bytes per element:
/// enough for all sums if each has two sources.
const TILED_SUM: [(usize, u32, u32); 3] = [(4, 27, 16), (8, 14, 8), (16, 8, 8)];
/// Bytes that a tile should have for a bucket in the mean: a sector, since for less memory transfers more than is
/// requested, and four values if these are large (then buckets whose values are read through a cache should be as fast,
/// which was not measured).
const TILED_RUN: usize = 32;

/// The constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "gather_sum.cu" => {
            let blocks = GATHER_SUM_BLOCKS[usize::from(unit.type_of("SCALAR") == "c64")];
            let items = RUN_TILE as u32 / GATHER_SUM_THREADS;
            vec![("THREADS", GATHER_SUM_THREADS), ("ITEMS", items), ("BLOCKS", blocks)]
        }
        "buckets.cu" => {
            let blocks = BUCKET_BLOCKS[usize::from(unit.type_of("ITEM_BYTES") == "16")];
            let sizes = [("TILE", BUCKET_TILE as u32), ("BUCKETS", MOST_BUCKETS as u32)];
            [sizes, [("THREADS", BUCKET_THREADS), ("BLOCKS", blocks)]].concat()
        }
        "stage_runs.cu" => [&staged_form()[..], &[("THREADS", STAGING_THREADS)]].concat(),
        "staged_sum.cu" => {
            let (_, blocks, at_once) = own(unit, STAGED_SUM, |own| unit.type_of("SCALAR") == own.0);
            [&staged_form()[..], &[("BLOCKS", blocks), ("AT_ONCE", at_once)]].concat()
        }
        "ascend_runs.cu" => {
            let own = [("THREADS", SLOTS as u32 / 8), ("WINDOWS", ASCENDING_WINDOWS)];
            [&ascending_form(unit)[..], &own].concat()
        }
        "ascending_sum.cu" => {
            let (threads, blocks) = ascending_threads(unit.scalar_bytes());
            [&ascending_form(unit)[..], &[("THREADS", threads), ("BLOCKS", blocks)]].concat()
        }
        "tile_runs.cu" => vec![("THREADS", TILED_THREADS)],
        _ => {
            let bytes = unit.scalar_bytes();
            let (_, held, lanes) = own(unit, TILED_SUM, |own| own.0 == bytes);
            vec![("THREADS", TILED_THREADS), ("HELD", held), ("LANES", lanes)]
        }
    }
}

/// The row of a table for a unit.
fn own<Row, const ROWS: usize>(unit: &Unit, table: [Row; ROWS], is: impl Fn(&Row) -> bool) -> Row {
    table.into_iter().find(is).unwrap_or_else(|| unreachable!("no constants for {}", unit.describe()))
}

/// The format of tiles with ascending sources, for kernels that read them.
fn ascending_form(unit: &Unit) -> [(&'static str, u32); 3] {
    let groups = own(unit, FORMS, |form| unit.type_of("GAP_BITS") == form.gap_bits).groups;
    [("SLOTS", SLOTS), ("LENGTH", LENGTH), ("GROUPS", groups)].map(|(name, value)| (name, value as u32))
}

fn ascending_threads(bytes: usize) -> (u32, u32) {
    let own = ASCENDING_SUM.iter().find(|own| own.0 >= bytes).unwrap_or(&ASCENDING_SUM[2]);
    (own.1, own.2)
}

/// The format of lists of pieces, for kernels that read them.
fn staged_form() -> [(&'static str, u32); 4] {
    [("PART", PART), ("BLOCK_PARTS", BLOCK_PARTS), ("PIECE", PIECE), ("MOST_PIECES", MOST_PIECES)]
        .map(|(name, value)| (name, value as u32))
}

/// Returns whether a map of this number of sources is stored as codes.
pub(in crate::backend::cuda) fn stages_runs(sources: usize) -> bool {
    (STAGED_FROM..=1 << 31).contains(&sources)
}

/// Blocks that loop over runs with a grid stride.
pub(in crate::backend::cuda) fn per_run(chip: Chip, runs: usize) -> Shape {
    elementwise(chip, runs).threads(STAGING_THREADS)
}

/// One block per list of pieces.
pub(in crate::backend::cuda) fn stage_runs(parts: usize) -> Shape {
    Shape::new((parts / BLOCK_PARTS) as u32, STAGING_THREADS)
}

/// One block per list. Shared memory holds the pieces of the longest list, or the sums of as many runs as there are
/// slots.
pub(in crate::backend::cuda) fn sum_staged(lists: usize, most: usize, bytes: usize) -> Shape {
    let elements = (most * PIECE).max(PART * BLOCK_PARTS);
    Shape::new(lists as u32, 32 * BLOCK_PARTS as u32).shared(elements * bytes)
}

/// Returns whether this number of sources is put in ascending order, tile by tile.
pub(in crate::backend::cuda) fn ascends_runs(sources: usize) -> bool {
    (ASCENDING_FROM..=1 << 31).contains(&sources)
}

/// One block per tile, with the sources to be ordered, and the number of bits of their windows. `None` if a block has
/// no room for a tile of the largest elements.
pub(in crate::backend::cuda) fn ascend_runs(chip: Chip, tiles: usize) -> Option<Shape> {
    let room = chip.shared_a_block as usize >= 16 * SLOTS + ASCENDING_STATIC;
    let words = ASCENDING_WINDOWS as usize * ASCENDING_SPAN / 32;
    let shape = Shape::new(tiles as u32, SLOTS as u32 / 8).shared(8 * SLOTS + 6 * words);
    room.then_some(shape)
}

/// One block per tile, in an even number. Shared memory holds the tile's elements, padding so that the first element
/// has the alignment of the first sum modulo 16 bytes and, if there are heads, these and the runs before them.
pub(in crate::backend::cuda) fn ascending_sum(
    tiles: usize,
    slots: usize,
    bytes: usize,
    heads: bool,
) -> Shape {
    let marks = if heads { SLOTS / 4 } else { 0 };
    Shape::new(tiles.next_multiple_of(2) as u32, ascending_threads(bytes).0)
        .shared(slots * bytes + 16 + marks)
}

/// Bits of a position in a bucket ([`RunSums::bucket_bits`](crate::backend::RunSums::bucket_bits)); more if there would
/// be too many buckets. `None` if a block has no room for a tile of the largest elements.
pub(in crate::backend::cuda) fn bucket_bits(chip: Chip, n: usize) -> Option<u32> {
    let room = chip.shared_a_block as usize >= 16 * BUCKET_TILE;
    let needed = n.div_ceil(MOST_BUCKETS).next_power_of_two().ilog2();
    (room && (BUCKETS_FROM..=1 << 31).contains(&n)).then_some(needed.max(BUCKET_BITS))
}

/// Blocks that loop over elements with a grid stride, each with all bounds in shared memory.
pub(in crate::backend::cuda) fn rank_places(chip: Chip, n: usize, bounds: usize) -> Shape {
    elementwise(chip, n).threads(BUCKET_THREADS).shared(12 * bounds)
}

/// One block per tile, which it holds in shared memory.
pub(in crate::backend::cuda) fn to_buckets(n: usize, bytes: usize) -> Shape {
    Shape::new(n.div_ceil(BUCKET_TILE) as u32, BUCKET_THREADS).shared(bytes * BUCKET_TILE)
}

/// Values per tile and per bucket ([`RunSums::tile_sizes`](crate::backend::RunSums::tile_sizes)): as many as fit shared
/// memory with the padding of runs (half a unit each, and some more for its variation), and such that all
/// multiprocessors finish at the same time. `None` if runs would be short.
pub(in crate::backend::cuda) fn tile_sizes(chip: Chip, n: usize, bytes: usize) -> Option<(usize, usize)> {
    if ![4, 8, 16].contains(&bytes) || !(BUCKETS_FROM..=1 << 31).contains(&n) {
        return None;
    }
    let unit = 16 / bytes;
    let room = (chip.shared_a_block as usize / 16).min(usize::from(u16::MAX) / unit) * unit;
    let even = |most: usize| {
        let at_a_time = chip.multiprocessors as usize;
        n.div_ceil(at_a_time * n.div_ceil(at_a_time * most)).next_multiple_of(8)
    };
    let mut size = even(room);
    for _ in 0..4 {
        let runs = n.div_ceil(size);
        let left =
            room.checked_sub((unit - 1) * (runs / 2 + 4 * runs.isqrt()) + 8).filter(|&left| left > 0)?;
        size = size.min(even(left));
    }
    let buckets = n.div_ceil(size);
    let fits = buckets <= MOST_TILED && 12 * buckets <= chip.shared_a_block as usize;
    let run = (size as u64 * size as u64 / n as u64) as usize * bytes.min(8);
    (fits && run >= TILED_RUN).then_some((size, size))
}

/// One block per tile or bucket, with one word for each of the others.
pub(in crate::backend::cuda) fn order_tiles(blocks: usize, others: usize) -> Shape {
    Shape::new(blocks as u32, TILED_THREADS).shared(4 * others)
}

/// Blocks that loop over sums with a grid stride.
pub(in crate::backend::cuda) fn list_words(chip: Chip, runs: usize) -> Shape {
    elementwise(chip, runs).threads(TILED_THREADS)
}

/// Blocks that take one tile or bucket after another, each with so much shared memory that it is the only one on its
/// multiprocessor.
pub(in crate::backend::cuda) fn take_tiles(chip: Chip, tiles: usize, shared: usize) -> Shape {
    Shape::new(tiles.min(chip.multiprocessors as usize) as u32, TILED_THREADS).shared(shared)
}

/// One block per tile of sources.
pub(in crate::backend::cuda) fn gather_sum(tiles: usize) -> Shape {
    Shape::new(tiles as u32, GATHER_SUM_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles and buckets leave room for what pads their runs, and are as many as the multiprocessors do in whole turns.
    #[test]
    fn tiles_fit_where_they_pay() {
        let chip = |shared_a_block| Chip {
            capability: (9, 0),
            cluster: 1,
            multiprocessors: 132,
            threads_per_multiprocessor: 2048,
            shared_a_block,
            shared_a_multiprocessor: 233_472,
            shared_reserved: 1024,
        };
        let hopper = |n, bytes| tile_sizes(chip(232_448), n, bytes);
        assert_eq!(hopper(100_000_000, 4), Some((54_120, 54_120)));
        assert_eq!(hopper(100_000_000, 8), Some((26_128, 26_128)));
        assert!(hopper(10_000_000, 16).is_some() && hopper(100_000_000, 16).is_none());
        assert_eq!(hopper(300_000_000, 8), None);
        assert!(hopper(100_000_000, 2).is_none() && hopper(1 << 20, 8).is_none());
        assert!(tile_sizes(chip(65_536), 100_000_000, 8).is_none());
    }
}
