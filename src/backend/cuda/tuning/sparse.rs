//! Sparse products of matrices: how rows are dealt to lanes.

use super::{Shape, Unit};
use crate::backend::MOST_OF_BLOCK;
use crate::backend::cuda::chip::Chip;

const THREADS: u32 = 256;
/// Threads of a block where entries of C wait in shared memory for their sums.
const VALUE_THREADS: u32 = 128;

/// Rows of a class of their own, by their products or entries: few, more. Those beyond are long.
pub(in crate::backend::cuda) const CLASSES: [u32; 2] = [1, 2];
/// Warps of a block where each inverts a small dense matrix.
const WARPS: u32 = 4;
/// Lanes a row of each class.
const GROUPS: [u32; 2] = [8, 32];
/// Products of a row of a class at most, when lengths are found: tables have twice as many slots.
const PRODUCTS: [u32; 2] = [64, 512];
/// Slots of a block's table, and products of a row that it takes.
const BLOCK_SLOTS: u32 = 8192;
const OF_BLOCK: u32 = BLOCK_SLOTS / 2;
/// Entries of a row of C at most, when columns and values are found: tables have twice as many slots.
const ENTRIES: [u32; 2] = [32, 256];
/// The same where columns are known.
const VALUES: [u32; 2] = [64, 512];
/// Entries of a row of C from which on it is of the second class, and of the third.
pub(in crate::backend::cuda) const ROWS_BY_LENGTH: [u32; 2] = [ENTRIES[0] + 1, ENTRIES[1] + 1];
pub(in crate::backend::cuda) const VALUES_BY_LENGTH: [u32; 2] = [VALUES[0] + 1, VALUES[1] + 1];
/// Words of 32 columns of a window over a long row.
const WORDS: u32 = 8192;
/// Blocks that share the pieces of a long row.
const PARTS: u32 = 16;

/// The constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = usize::from(unit.size_class() == CLASSES[1]);
    match unit.source() {
        "spadd.cu" => vec![("THREADS", THREADS)],
        "aggregate.cu" => vec![("THREADS", THREADS), ("MOST_OF_BLOCK", MOST_OF_BLOCK)],
        "coarsen.cu" => vec![("THREADS", THREADS), ("WARPS", WARPS), ("MOST_OF_BLOCK", MOST_OF_BLOCK)],
        "spgemm_long.cu" => vec![("THREADS", THREADS), ("WORDS", WORDS)],
        "spgemm_values.cu" => vec![
            ("THREADS", VALUE_THREADS),
            ("GROUP", GROUPS[class]),
            ("ROOM", VALUES[class]),
            ("PARTS", PARTS),
        ],
        "spgemm_rows.cu" => {
            vec![("THREADS", VALUE_THREADS), ("GROUP", GROUPS[class]), ("SLOTS", 2 * ENTRIES[class])]
        }
        _ => vec![
            ("THREADS", THREADS),
            ("GROUP", GROUPS[class]),
            ("SLOTS", 2 * PRODUCTS[class]),
            ("BLOCK_SLOTS", BLOCK_SLOTS),
            ("MEDIUM", PRODUCTS[0] + 1),
            ("LARGE", PRODUCTS[1] + 1),
            ("LONG", OF_BLOCK + 1),
        ],
    }
}

/// A thread a row.
pub(in crate::backend::cuda) fn row_threads(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, 1, THREADS).class(CLASSES[0])
}

/// A warp for each of so many small dense matrices.
pub(in crate::backend::cuda) fn group_blocks(chip: Chip, blocks: usize) -> Shape {
    striding(chip, blocks, 32, 32 * WARPS).class(CLASSES[0])
}

/// The lanes of a class for each of so many rows, for their lengths.
pub(in crate::backend::cuda) fn product_lengths(chip: Chip, class: u32, rows: usize) -> Shape {
    striding(chip, rows, GROUPS[usize::from(class == CLASSES[1])], THREADS).class(class)
}

/// The same for their columns and values, or values alone.
pub(in crate::backend::cuda) fn product_values(chip: Chip, class: u32, rows: usize) -> Shape {
    striding(chip, rows, GROUPS[usize::from(class == CLASSES[1])], VALUE_THREADS).class(class)
}

/// A block for each of so many rows.
pub(in crate::backend::cuda) fn block_of_rows(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, THREADS, THREADS).class(CLASSES[0])
}

/// Several blocks for each of so many long rows.
pub(in crate::backend::cuda) fn long_values(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows * PARTS as usize, VALUE_THREADS, VALUE_THREADS).class(CLASSES[1])
}

/// So many lanes for each of `items`, at most what the chip holds 16 times over.
fn striding(chip: Chip, items: usize, lanes: u32, threads: u32) -> Shape {
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / threads)) as usize;
    let needed = items.div_ceil((threads / lanes) as usize);
    Shape::new(needed.min(16 * resident) as u32, threads)
}
