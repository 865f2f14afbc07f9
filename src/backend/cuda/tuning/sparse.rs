//! Sparse products of matrices: how rows are dealt to lanes.

use super::{Shape, Unit};
use crate::backend::MOST_OF_BLOCK;
use crate::backend::cuda::chip::Chip;

const THREADS: u32 = 256;
/// Threads of a block where entries of C wait in shared memory for their sums.
const VALUE_THREADS: u32 = 128;

/// The class of units of which there is one.
pub(in crate::backend::cuda) const ONE_CLASS: u32 = 1;
/// Classes of rows whose products are sorted, by how many they are.
pub(in crate::backend::cuda) const SORTED_CLASSES: [u32; 5] = [1, 2, 3, 4, 5];
/// Lanes a row, products a lane and threads of a block of each. Larger rows would be longer in tables of hashes as
/// well: 27 points times 27 points are 729 products.
const SORTED: [(u32, u32, u32); 5] = [(4, 8, 128), (8, 8, 128), (32, 8, 128), (32, 16, 64), (32, 32, 64)];

/// Lanes that take a node, or the products of a row, together.
const NODE_LANES: u32 = 8;

/// Warps of a block where each inverts a small dense matrix.
const WARPS: u32 = 4;
/// Lanes a row that is not sorted, and has not more products than the first number when its length is found, entries
/// than the second when columns and values are, and than the third where columns are known. Tables have twice as many
/// slots.
const GROUP: u32 = 32;
const PRODUCTS: u32 = 512;
const ENTRIES: u32 = 256;
const VALUES: u32 = 512;
/// Slots of a block's table, and products of a row that it takes.
const BLOCK_SLOTS: u32 = 8192;
const OF_BLOCK: u32 = BLOCK_SLOTS / 2;
/// Entries of a row of C from which on it is long.
pub(in crate::backend::cuda) const LONG_ROW: u32 = ENTRIES + 1;
pub(in crate::backend::cuda) const LONG_VALUES: u32 = VALUES + 1;
/// Words of 32 columns of a window over a long row.
const WORDS: u32 = 8192;
/// Blocks that share the pieces of a long row.
const PARTS: u32 = 16;

/// The constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "spadd.cu" => vec![("THREADS", THREADS)],
        "aggregate.cu" => {
            vec![("THREADS", THREADS), ("MOST_OF_BLOCK", MOST_OF_BLOCK), ("LANES", NODE_LANES)]
        }
        "coarsen.cu" => vec![("THREADS", THREADS), ("WARPS", WARPS), ("MOST_OF_BLOCK", MOST_OF_BLOCK)],
        "spgemm_long.cu" => vec![("THREADS", THREADS), ("WORDS", WORDS)],
        "spgemm_values.cu" => {
            vec![("THREADS", VALUE_THREADS), ("GROUP", GROUP), ("ROOM", VALUES), ("PARTS", PARTS)]
        }
        "spgemm_rows.cu" => vec![("THREADS", VALUE_THREADS), ("GROUP", GROUP), ("SLOTS", 2 * ENTRIES)],
        "spgemm_sorted.cu" | "spgemm_sorted_lengths.cu" => {
            let (group, each, threads) = SORTED[unit.size_class().saturating_sub(1) as usize];
            vec![("GROUP", group), ("EACH", each), ("THREADS", threads)]
        }
        _ => vec![
            ("THREADS", THREADS),
            ("GROUP", GROUP),
            ("SLOTS", 2 * PRODUCTS),
            ("BLOCK_SLOTS", BLOCK_SLOTS),
            ("LARGE", PRODUCTS + 1),
            ("LONG", OF_BLOCK + 1),
            ("CLASS_LANES", NODE_LANES),
        ],
    }
}

/// The most products of a row of each class that is sorted, in a matrix of so many columns; 0 where a key of 32 bits
/// has no room for the largest column and the number of a product.
pub(in crate::backend::cuda) fn most_sorted(columns: usize) -> [u32; 5] {
    SORTED.map(|(group, each, _)| {
        let room = group * each;
        if columns as u64 >= 1 << (32 - room.trailing_zeros()) { 0 } else { room }
    })
}

/// The lanes of a class whose products are sorted for each of so many rows.
pub(in crate::backend::cuda) fn sorted_rows(chip: Chip, class: u32, rows: usize) -> Shape {
    let (group, _, threads) = SORTED[class as usize - 1];
    striding(chip, rows, group, threads).class(class)
}

/// A thread a row.
pub(in crate::backend::cuda) fn row_threads(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, 1, THREADS).class(ONE_CLASS)
}

/// Some lanes of a warp a node or row.
pub(in crate::backend::cuda) fn node_lanes(chip: Chip, nodes: usize) -> Shape {
    striding(chip, nodes, NODE_LANES, THREADS).class(ONE_CLASS)
}

/// A thread a row, where a block brings some entries a thread to shared memory at a time.
pub(in crate::backend::cuda) fn row_entries(chip: Chip, rows: usize, entries: usize) -> Shape {
    const A_THREAD: usize = 4;
    row_threads(chip, rows.max(entries / A_THREAD))
}

/// A warp for each of so many small dense matrices.
pub(in crate::backend::cuda) fn group_blocks(chip: Chip, blocks: usize) -> Shape {
    striding(chip, blocks, 32, 32 * WARPS).class(ONE_CLASS)
}

/// A warp for each of so many rows, for their lengths.
pub(in crate::backend::cuda) fn product_lengths(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, GROUP, THREADS).class(ONE_CLASS)
}

/// The same for their columns and values, or values alone.
pub(in crate::backend::cuda) fn product_values(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, GROUP, VALUE_THREADS).class(ONE_CLASS)
}

/// A block for each of so many rows.
pub(in crate::backend::cuda) fn block_of_rows(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, THREADS, THREADS).class(ONE_CLASS)
}

/// Several blocks for each of so many long rows.
pub(in crate::backend::cuda) fn long_values(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows * PARTS as usize, VALUE_THREADS, VALUE_THREADS).class(ONE_CLASS)
}

/// So many lanes for each of `items`, at most what the chip holds 16 times over.
fn striding(chip: Chip, items: usize, lanes: u32, threads: u32) -> Shape {
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / threads)) as usize;
    let needed = items.div_ceil((threads / lanes) as usize);
    Shape::new(needed.min(16 * resident) as u32, threads)
}
