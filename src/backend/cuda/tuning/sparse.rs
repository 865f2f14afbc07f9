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
pub(in crate::backend::cuda) const SORTED_CLASSES: [u32; 2] = [1, 2];
/// Lanes a row, products a lane and threads of a block of each. Larger rows take less time in tables of hashes (H200,
/// 2026-11-26: R (A P) of 7 points 160^3, 480 products a row, 5.8 ms sorted and 2.1 so; A P, 25 products, 2.3 and 2.5).
const SORTED: [(u32, u32, u32); 2] = [(4, 8, 128), (8, 8, 128)];

/// The most entries of a row of A, and of a row of B, for which a thread merges rows of B.
pub(in crate::backend::cuda) const MERGED_RUNS: u64 = 8;
pub(in crate::backend::cuda) const MERGED_LENGTH: u64 = 128;
/// Entries of rows of C that a warp keeps, and the classes of these units. H200, 2026-11-26, merged and sorted, lengths +
/// rows in ms: A P of 7 points 256^3, single precision, with room for 512, 0.96 + 2.2 and 2.4 + 4.8 (2.9 with room for
/// 1024); A A of 160^3, double precision, with room for 1024, 0.25 + 1.5 and 1.4 + 2.5 (2.0 with room for 512).
const MERGED_ROOM: [u32; 2] = [512, 1024];
pub(in crate::backend::cuda) const MERGED_UNITS: [u32; 2] = [1, 2];
const MERGED_THREADS: u32 = 64;

/// The same where each entry of a row of A is a product, and the classes of these units.
const SMOOTHED: [(u32, u32, u32); 2] = [(8, 8, 128), (32, 8, 128)];
pub(in crate::backend::cuda) const SMOOTHED_UNITS: [u32; 2] = [1, 2];
/// The mean length of rows from which on lanes share them: of rows that are shorter, as many as a block has threads lie
/// in its shared memory, a thread a row (H200, 2026-11-26: 2.9 ms for 7 entries a row, 2.9 to 3.4 by lanes; 3.2 for 26
/// and 1.3 by lanes).
const SHARED_FROM: usize = 13;

/// What a kernel keeps a row in: lanes that share a table of hashes, its slots, and threads of a block.
type Table = (u32, u32, u32);
/// Tables for the lengths of rows, each for rows of B that are longer.
const FOR_LENGTHS: [Table; 3] = [(8, 256, 128), (16, 512, 128), (32, 512, 128)];
/// Tables for rows of a product. A row has half as many entries as its table has slots at most; where there are several
/// with as many slots, each is for rows of B that are longer. Blocks of 64 threads take four fifths of the time of those
/// of 128 (H200, 2026-11-26, R (A P) of 7 points 256^3: 5.1 and 6.3 ms).
const FOR_ROWS: [Table; 11] = [
    (8, 64, 64),
    (4, 128, 64),
    (8, 128, 64),
    (16, 128, 64),
    (32, 128, 64),
    (8, 256, 64),
    (16, 256, 64),
    (32, 256, 128),
    (16, 512, 64),
    (32, 512, 128),
    (32, 2048, 32),
];
/// Tables for values of rows whose columns are known: lanes a row, entries of a row at most, threads of a block. Half of
/// the lanes may be idle, since each step is short (H200, 2026-11-26: R (A P) of 7 points 256^3, 9 entries a row of B,
/// 3.5 ms by 16 lanes and 4.4 by 8; 4.6 in tables with collisions).
const FOR_KNOWN: [Table; 4] = [(16, 32, 64), (16, 64, 64), (32, 128, 64), (32, 256, 64)];
/// Places of such a table for each entry of a row, up to 64 entries and beyond: one factor of the hash in three has no
/// collision in a full row of 64 or 128 columns, one in seven in a row of 256.
const PLACES_AN_ENTRY: [u32; 2] = [32, 64];
pub(in crate::backend::cuda) const KNOWN_UNITS: [u32; 4] = [1, 2, 3, 4];
/// The classes of units with these tables.
pub(in crate::backend::cuda) const LENGTH_UNITS: [u32; 3] = [1, 2, 3];
pub(in crate::backend::cuda) const ROW_UNITS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
/// So few rows of a class that a launch for them alone takes as long as for many.
pub(in crate::backend::cuda) const TOO_FEW: usize = 512;
/// The most entries of a row of C of each class that has a table.
pub(in crate::backend::cuda) const LENGTHS_OF_CLASSES: [u32; 5] = [32, 64, 128, 256, 1024];

/// Lanes that take a node, or the products of a row, together.
const NODE_LANES: u32 = 8;

/// Warps of a block where each inverts a small dense matrix.
const WARPS: u32 = 4;
/// Slots of a block's table, and products of a row that it takes.
const BLOCK_SLOTS: u32 = 8192;
const OF_BLOCK: u32 = BLOCK_SLOTS / 2;
/// Rows of which a block looks for those with too many columns for the tables of warps.
const LOOKED_AT: u32 = 32;
/// Entries of a long row of C that a warp takes at a time.
const PIECE: u32 = 512;
/// Words of 32 columns of a window over a long row.
const WORDS: u32 = 8192;
/// Blocks that share the pieces of a long row (H200, 2026-11-26: 9.2 ms with 8, 11.4 with 16, 27.7 with 64, 13.5 with 2).
const PARTS: u32 = 8;

/// Lanes of a small dense matrix in a product: most have 8 rows.
const BLOCK_LANES: u32 = 8;

/// The constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "spadd.cu" => vec![("THREADS", THREADS)],
        "aggregate.cu" => {
            vec![("THREADS", THREADS), ("MOST_OF_BLOCK", MOST_OF_BLOCK), ("LANES", NODE_LANES)]
        }
        "coarsen.cu" => vec![("THREADS", THREADS)],
        "group_inverses.cu" => vec![
            ("THREADS", THREADS),
            ("WARPS", WARPS),
            ("MOST_OF_BLOCK", MOST_OF_BLOCK),
            ("LANES", BLOCK_LANES),
        ],
        "spgemm_long.cu" => vec![("THREADS", THREADS), ("WORDS", WORDS)],
        "spgemm_values.cu" => vec![("THREADS", VALUE_THREADS), ("ROOM", PIECE), ("PARTS", PARTS)],
        "spgemm_merged.cu" | "spgemm_merged_lengths.cu" => vec![
            ("RUNS", MERGED_RUNS as u32),
            ("ROOM", MERGED_ROOM[unit.size_class().saturating_sub(1) as usize]),
            ("THREADS", MERGED_THREADS),
        ],
        "spgemm_sorted.cu" | "spgemm_sorted_lengths.cu" => {
            of_sorted(SORTED[unit.size_class().saturating_sub(1) as usize])
        }
        "smoothed_rows.cu" => of_sorted(SMOOTHED[unit.size_class().saturating_sub(1) as usize]),
        "spgemm_lengths.cu" => of_table(FOR_LENGTHS[unit.size_class().saturating_sub(1) as usize]),
        "spgemm_known.cu" => {
            let (group, most, threads) = FOR_KNOWN[unit.size_class().saturating_sub(1) as usize];
            vec![
                ("GROUP", group),
                ("MOST", most),
                ("PLACES", PLACES_AN_ENTRY[usize::from(most > 64)] * most),
                ("THREADS", threads),
            ]
        }
        "spgemm_rows.cu" => of_table(FOR_ROWS[unit.size_class().saturating_sub(1) as usize]),
        _ => vec![
            ("THREADS", THREADS),
            ("BLOCK_SLOTS", BLOCK_SLOTS),
            ("LONG", OF_BLOCK + 1),
            ("LOOKED_AT", LOOKED_AT),
            ("CLASS_LANES", NODE_LANES),
        ],
    }
}

fn of_sorted((group, each, threads): (u32, u32, u32)) -> Vec<(&'static str, u32)> {
    vec![("GROUP", group), ("EACH", each), ("LONG", OF_BLOCK + 1), ("THREADS", threads)]
}

/// Whether a key of 32 bits has room for the largest of so many columns and the number of one of `room` products.
fn keys_fit(columns: usize, room: u32) -> bool {
    (columns as u64) < 1 << (32 - room.trailing_zeros())
}

fn of_table((group, slots, threads): Table) -> Vec<(&'static str, u32)> {
    vec![("GROUP", group), ("SLOTS", slots), ("THREADS", threads)]
}

/// Lanes for a row of B with so many entries in the mean, where C has so many rows. Fewer lanes than entries are better
/// than more (H200, 2026-11-26: 0.88 and 1.08 ms with 8 and 16 lanes for 8.6 entries, 1.02 and 1.43 with 4 and 8 for
/// 3.6), unless rows are so few that a chip waits for each.
fn lanes(chip: Chip, mean: usize, rows: usize) -> u32 {
    if rows < 8 * chip.multiprocessors as usize {
        return 32;
    }
    match mean {
        0..=6 => 4,
        7..=14 => 8,
        15..=40 => 16,
        _ => 32,
    }
}

/// Of some tables the one with so many lanes, or with the number next to it.
fn with_lanes(tables: &[Table], lanes: u32) -> usize {
    tables.iter().rposition(|table| table.0 <= lanes).unwrap_or(0)
}

/// The most products of a row of each class that is sorted, in a matrix of so many columns; 0 where a key of 32 bits
/// has no room for the largest column and the number of a product.
pub(in crate::backend::cuda) fn most_sorted(columns: usize) -> [u32; 2] {
    SORTED.map(|(group, each, _)| {
        let room = group * each;
        if keys_fit(columns, room) { room } else { 0 }
    })
}

/// A thread for each of so many rows of C that is merged, where rows of C have `mean` entries (0 where that is not known,
/// and does not matter).
pub(in crate::backend::cuda) fn merged_rows(chip: Chip, rows: usize, mean: usize) -> Shape {
    // A tenth more than the mean, so that most warps have room.
    let place = usize::from(mean * 32 * 11 / 10 > MERGED_ROOM[0] as usize);
    striding(chip, rows, 1, MERGED_THREADS).class(MERGED_UNITS[place])
}

/// The lanes of a class whose products are sorted for each of so many rows.
pub(in crate::backend::cuda) fn sorted_rows(chip: Chip, class: u32, rows: usize) -> Shape {
    let (group, _, threads) = SORTED[class as usize - 1];
    striding(chip, rows, group, threads).class(class)
}

/// The lanes of a row of a prolongation that is smoothed, with so many columns, for rows of A with `mean` entries and
/// `longest` at most, and one for a diagonal; none where a thread takes a row.
pub(in crate::backend::cuda) fn smoothed_rows(
    chip: Chip,
    rows: usize,
    (mean, longest): (usize, usize),
    columns: usize,
) -> Option<Shape> {
    let place = SMOOTHED.iter().position(|(group, each, _)| longest < (group * each) as usize)?;
    let (group, each, threads) = SMOOTHED[place];
    (mean >= SHARED_FROM && keys_fit(columns, group * each))
        .then(|| striding(chip, rows, group, threads).class(SMOOTHED_UNITS[place]))
}

/// The lanes of a table for each of so many rows whose lengths are sought, where rows of B have `mean` entries.
pub(in crate::backend::cuda) fn product_lengths(chip: Chip, mean: usize, rows: usize) -> Shape {
    let place = with_lanes(&FOR_LENGTHS, lanes(chip, mean, rows));
    let (group, _, threads) = FOR_LENGTHS[place];
    striding(chip, rows, group, threads).class(LENGTH_UNITS[place])
}

/// The same for the columns and values of rows of C that have at most so many entries, or values alone.
pub(in crate::backend::cuda) fn product_rows(chip: Chip, most: u32, mean: usize, rows: usize) -> Shape {
    let fits = |table: &Table| table.1 == 2 * most;
    let first = FOR_ROWS.iter().position(fits).expect("there is a table for each class");
    let count = FOR_ROWS.iter().filter(|&table| fits(table)).count();
    let place = first + with_lanes(&FOR_ROWS[first..first + count], lanes(chip, mean, rows));
    let (group, _, threads) = FOR_ROWS[place];
    striding(chip, rows, group, threads).class(ROW_UNITS[place])
}

/// The same for values alone, of rows of C whose columns are known; none where rows may be longer than the tables are
/// made for.
pub(in crate::backend::cuda) fn known_values(chip: Chip, most: u32, rows: usize) -> Option<Shape> {
    let place = FOR_KNOWN.iter().position(|table| table.1 == most)?;
    let (group, _, threads) = FOR_KNOWN[place];
    Some(striding(chip, rows, group, threads).class(KNOWN_UNITS[place]))
}

/// Blocks that look for rows whose length is unknown among so many.
pub(in crate::backend::cuda) fn block_lengths(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, THREADS / LOOKED_AT, THREADS).class(ONE_CLASS)
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

/// Some lanes of a warp for each of so many small dense matrices, in a product with a vector.
pub(in crate::backend::cuda) fn group_rows(chip: Chip, blocks: usize) -> Shape {
    striding(chip, blocks, BLOCK_LANES, THREADS).class(ONE_CLASS)
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
