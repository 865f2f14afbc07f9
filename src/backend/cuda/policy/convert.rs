//! Constants of the conversions, and the shapes of their launches.

use super::{ELEMENTWISE_THREADS, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::backend::cuda::shape::bytes_of;
use crate::scalar::Element;

/// Threads of a block that turns rows over: its shared memory is a tile a warp.
const ROWS_THREADS: u32 = 128;
/// Threads of a block that shares out the elements of segments, and elements of each.
const TILE_THREADS: u32 = ELEMENTWISE_THREADS;
pub(super) const TILE_ITEMS: u32 = 8;
/// Entries a thread whose mirror images are looked up at a time.
const MIRRORED: u32 = 4;
/// Lanes a row of a conversion by rows, at least and at most.
const LANES: (usize, usize) = (4, 16);
/// Jagged diagonals that are turned over, in mean lengths of rows.
const NEAR: usize = 4;
/// Entries a thread of diagonals behind those, while there are not enough blocks to fill the chip.
const FAR_ENTRIES: usize = 4;
/// Blocks a multiprocessor that share them out.
const FAR_BLOCKS: usize = 16;
/// Rows of a window that a block orders.
const MOST_WINDOW: u32 = 1024;
/// Warps that a conversion should have at least, where it has that many pieces.
const WARPS: u64 = 1 << 20;

/// Entries of a stretch that is sorted at a time at least, where memory is no matter, and what sorting takes an entry: column,
/// source, and a second place of each.
const STRETCH: usize = 1 << 20;
const STRETCH_BYTES: usize = 16;

/// Bits of a place within a window of columns: the fewest for which numbers of windows suffice.
const WINDOW_BITS: std::ops::RangeInclusive<u32> = 10..=12;
/// Windows have numbers of 16 bits.
const WINDOWS: usize = 1 << 16;
/// Bytes of an entry's numbers and windows, twice, which the target has room for.
const NUMBERED: usize = 12;
/// Threads a multiprocessor should have room for there: the more, the fewer registers each has.
const WINDOW_RESIDENT: [u32; 2] = [1536, 1024];

/// Threads of a block that puts a window in order: no more warps than there are barriers.
fn window_threads(bits: u32) -> u32 {
    (1 << bits >> 2).clamp(128, 512)
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "convert_dia.cu" | "convert_rows.cu" => {
            vec![("THREADS", ROWS_THREADS), ("LANES", unit.size_class().clamp(4, 16))]
        }
        "convert_tails.cu" | "diagonals.cu" | "index.cu" | "transpose.cu" => {
            vec![("THREADS", TILE_THREADS), ("ITEMS", TILE_ITEMS)]
        }
        "convert_swept.cu" => {
            let back = super::swept::BACK_THREADS;
            vec![("THREADS", TILE_THREADS), ("ITEMS", TILE_ITEMS), ("BACK_THREADS", back)]
        }
        "length_order.cu" => vec![("THREADS", MOST_WINDOW)],
        "mirror.cu" => vec![("THREADS", TILE_THREADS), ("ITEMS", TILE_ITEMS), ("AT_ONCE", MIRRORED)],
        "transpose_windows.cu" => vec![
            ("THREADS", window_threads(unit.size_class())),
            ("ITEMS", TILE_ITEMS),
            ("WINDOW_BITS", unit.size_class()),
            ("RESIDENT", WINDOW_RESIDENT[usize::from(unit.size_class() >= *WINDOW_BITS.end())]),
        ],
        _ => vec![("THREADS", ELEMENTWISE_THREADS)],
    }
}

/// A conversion by rows, and into how many parts each group of 32 positions is split: lanes a row by the mean length of
/// rows, parts so that long rows do not wait for one warp.
pub(in crate::backend::cuda) fn convert_rows(
    positions: usize,
    nonzeros: usize,
    longest: usize,
) -> (Shape, u32) {
    let lanes = nonzeros.div_ceil(positions.max(1)).next_power_of_two().clamp(LANES.0, LANES.1);
    let groups = (positions as u64).div_ceil(32);
    let splits = (WARPS / groups.max(1)).clamp(1, longest.div_ceil(lanes).clamp(1, 1 << 15) as u64);
    let blocks = (groups * splits).div_ceil(u64::from(ROWS_THREADS / 32));
    (Shape::new(blocks as u32, ROWS_THREADS).class(lanes as u32), splits as u32)
}

/// How many jagged diagonals are turned over, and how many blocks share out the entries of the others.
pub(in crate::backend::cuda) fn far_diagonals(
    chip: Chip,
    rows: usize,
    nonzeros: usize,
    diagonals: usize,
) -> (usize, usize) {
    let near = (NEAR * nonzeros.div_ceil(rows.max(1))).next_multiple_of(LANES.1);
    if near >= diagonals {
        return (diagonals, 0);
    }
    let blocks = nonzeros.div_ceil(ROWS_THREADS as usize * FAR_ENTRIES);
    (near, blocks.min(FAR_BLOCKS * chip.multiprocessors as usize))
}

/// A block for each window of rows; `None` where a block can't hold one.
pub(in crate::backend::cuda) fn order_windows(rows: usize, window: usize) -> Option<Shape> {
    let threads = window.checked_next_multiple_of(32).filter(|&threads| threads <= MOST_WINDOW as usize)?;
    Some(Shape::new(rows.div_ceil(window) as u32, threads as u32))
}

/// A thread each, for what takes a thread long.
pub(in crate::backend::cuda) fn one_each(n: usize) -> Shape {
    Shape::new(n.div_ceil(ELEMENTWISE_THREADS as usize) as u32, ELEMENTWISE_THREADS)
}

/// A warp a section of diagonals: lanes a row by the number of diagonals.
pub(in crate::backend::cuda) fn convert_dia(rows: usize, diagonals: usize) -> Shape {
    let lanes = diagonals.next_power_of_two().clamp(4, 16);
    let blocks = rows.div_ceil(ROWS_THREADS as usize);
    Shape::new(blocks as u32, ROWS_THREADS).class(lanes as u32)
}

/// Work on the `n` elements of segments by even tiles: a block a tile, the number of tiles, and the launch that finds
/// where each starts.
pub(in crate::backend::cuda) fn by_tiles(n: usize) -> (Shape, usize, Shape) {
    let tiles = n.div_ceil((TILE_THREADS * TILE_ITEMS) as usize);
    let find = Shape::new((tiles + 1).div_ceil(TILE_THREADS as usize) as u32, TILE_THREADS);
    (Shape::new(tiles as u32, TILE_THREADS), tiles, find)
}

/// Entries that a transposition sorts at a time: as many as a tenth of source and target has room for beside the columns'
/// cursors, in stretches of equal size.
pub(in crate::backend::cuda) fn transpose_stretch<V: Element>(nonzeros: usize, cursors: usize) -> usize {
    let room = (2 * nonzeros * (4 + size_of::<V>()) / 10).saturating_sub(cursors);
    let most = (room / STRETCH_BYTES).clamp(STRETCH, 1 << 30);
    nonzeros.div_ceil(nonzeros.div_ceil(most).max(1)).max(1)
}

/// How entries are carried to the windows of their columns (`transpose_windows.cu`).
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct Windows {
    /// Their number.
    pub(in crate::backend::cuda) count: usize,
    /// A block a window.
    pub(in crate::backend::cuda) finish: Shape,
}

impl Windows {
    /// `None` where the target has no room for the numbers of entries, or windows are too many.
    pub(in crate::backend::cuda) fn of<V: Element>(nonzeros: usize) -> Option<Self> {
        let count = |bits: u32| (nonzeros >> bits) + 2;
        let bits = WINDOW_BITS.into_iter().find(|&bits| count(bits) <= WINDOWS)?;
        let shape = Shape::new(count(bits) as u32, window_threads(bits)).class(bits);
        let has_room = 4 + size_of::<V>() >= NUMBERED;
        has_room
            .then(|| Windows { count: count(bits), finish: shape.variant("VALUE_BYTES", bytes_of::<V>()) })
    }

    /// A thread for each of so many.
    pub(in crate::backend::cuda) fn each(&self, n: usize) -> Shape {
        self.finish.blocks(n.div_ceil(self.finish.threads as usize))
    }

    /// [`TILE_ITEMS`] a thread.
    pub(in crate::backend::cuda) fn tiles(&self, n: usize) -> Shape {
        self.each(n.div_ceil(TILE_ITEMS as usize))
    }
}
