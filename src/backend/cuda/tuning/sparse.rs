//! Constants and launch shapes of sparse products of matrices.

use super::{Shape, Unit};
use crate::backend::MOST_OF_BLOCK;
use crate::backend::cuda::chip::Chip;

const THREADS: u32 = 256;
/// Threads per block of kernels that keep entries of C in shared memory until their sums are complete.
const VALUE_THREADS: u32 = 128;

/// The class of units of a file that has only one class.
pub(in crate::backend::cuda) const ONE_CLASS: u32 = 1;
/// Classes of rows whose products are sorted, by the number of products.
pub(in crate::backend::cuda) const SORTED_CLASSES: [u32; 2] = [1, 2];
/// Lanes per row, products per lane and threads per block of each of these classes. For rows with more products, hash
/// tables are faster (H200, 2026-11-26: R (A P) of 7 points 160^3, 480 products per row, 5.8 ms sorted and 2.1 ms
/// hashed; A P, 25 products, 2.3 and 2.5 ms).
const SORTED: [(u32, u32, u32); 2] = [(4, 8, 128), (8, 8, 128)];

/// A thread merges rows of B if rows of A have at most the first and rows of B at most the second number of entries.
pub(in crate::backend::cuda) const MERGED_RUNS: u64 = 8;
pub(in crate::backend::cuda) const MERGED_LENGTH: u64 = 128;
/// The number of entries of rows of C for which a warp has space, and the classes of these units. H200, 2026-11-26,
/// merged and sorted, lengths + rows in ms: A P of 7 points 256^3, single precision, with space for 512, 0.96 + 2.2 and
/// 2.4 + 4.8 (2.9 with space for 1024); A A of 160^3, double precision, with space for 1024, 0.25 + 1.5 and 1.4 + 2.5
/// (2.0 with space for 512).
const MERGED_ROOM: [u32; 2] = [512, 1024];
pub(in crate::backend::cuda) const MERGED_UNITS: [u32; 2] = [1, 2];
const MERGED_THREADS: u32 = 64;

/// As `SORTED`, if each entry of a row of A is one product (a smoothed prolongation), and the classes of these units.
const SMOOTHED: [(u32, u32, u32); 2] = [(8, 8, 128), (32, 8, 128)];
pub(in crate::backend::cuda) const SMOOTHED_UNITS: [u32; 2] = [1, 2];
/// From this mean row length on, several lanes share a row. Shorter rows have a thread each, and a block keeps a row
/// for each of its threads in shared memory (H200, 2026-11-26: 7 entries per row, 2.9 ms with one thread and 2.9 to 3.4
/// ms with several lanes; 26 entries, 3.2 and 1.3 ms).
const SHARED_FROM: usize = 13;

/// The hash table in which a kernel keeps a row: the number of lanes that share it, its slots, and threads per block.
type Table = (u32, u32, u32);
/// Tables for the lengths of rows of C, in ascending order of the row length of B.
const FOR_LENGTHS: [Table; 3] = [(8, 256, 128), (16, 512, 128), (32, 512, 128)];
/// Tables for the rows of a product. A row has at most half as many entries as the table has slots. Of several tables
/// with the same number of slots, later ones are for longer rows of B. Blocks of 64 threads take four fifths of the
/// time of blocks of 128 (H200, 2026-11-26, R (A P) of 7 points 256^3: 5.1 and 6.3 ms).
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
/// Tables for the values of rows whose columns are known: lanes per row, maximum number of entries in a row, threads
/// per block. Half of the lanes may be idle, because each step is short (H200, 2026-11-26: R (A P) of 7 points 256^3, 9
/// entries per row of B, 3.5 ms with 16 lanes and 4.4 with 8; 4.6 in tables with collisions).
const FOR_KNOWN: [Table; 4] = [(16, 32, 64), (16, 64, 64), (32, 128, 64), (32, 256, 64)];
/// The number of slots of such a table for each entry of a row, for up to 64 entries and for more. Factors of the hash
/// are tried until one has no collision: one in three has none in a full row of 64 or 128 columns, one in seven in a
/// row of 256.
const PLACES_AN_ENTRY: [u32; 2] = [32, 64];
pub(in crate::backend::cuda) const KNOWN_UNITS: [u32; 4] = [1, 2, 3, 4];
/// The classes of the units with these tables.
pub(in crate::backend::cuda) const LENGTH_UNITS: [u32; 3] = [1, 2, 3];
pub(in crate::backend::cuda) const ROW_UNITS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
/// If a class has fewer rows than this, a separate launch for it takes as long as for many rows.
pub(in crate::backend::cuda) const TOO_FEW: usize = 512;
/// If this many rows have too many products for the table of a block, the warps that take one each fill a chip, so that
/// only rows with too many entries for the table of a warp are shared by blocks.
pub(in crate::backend::cuda) const MANY_LONG: usize = 1024;
/// Maximum number of entries of a row of C for each class with a table.
pub(in crate::backend::cuda) const LENGTHS_OF_CLASSES: [u32; 5] = [32, 64, 128, 256, 1024];

/// Number of lanes that process a node, or the products of a row.
const NODE_LANES: u32 = 8;

/// If rows have that many entries, a lane of a node reads about this many.
const ENTRIES_A_LANE: usize = 4;

/// Warps per block in which each warp inverts a small dense matrix.
const WARPS: u32 = 4;
/// Number of slots of a block's table, and the maximum number of products of a row that uses it.
const BLOCK_SLOTS: u32 = 8192;
const OF_BLOCK: u32 = BLOCK_SLOTS / 2;
/// Number of rows among which a block searches for those with too many columns for the tables of warps.
const LOOKED_AT: u32 = 32;
/// Entries of a long row of C that a warp processes at a time.
const PIECE: u32 = 512;
/// Number of words in a window of a long row; a word has a bit for each of 32 columns.
const WORDS: u32 = 8192;
/// Number of blocks that share the pieces of a long row (H200, 2026-11-26: 9.2 ms with 8, 11.4 with 16, 27.7 with 64,
/// 13.5 with 2).
const PARTS: u32 = 8;

/// Number of coarse unknowns around a row for which there are places, lanes that share the row and keep a weight each,
/// and threads of a block. Rows of grids have 7 entries and about 10 coarse unknowns around them; on levels below the
/// finest, rows rarely need more than 128 places. Rows that share a warp wait for memory at the same time.
const CLASSICAL: [Table; 3] = [(8, 64, 128), (16, 128, 128), (32, 1024, 32)];
pub(in crate::backend::cuda) const CLASSICAL_UNITS: [u32; 3] = [1, 2, 3];

/// Threads of a block in which each takes a group of unknowns: there are some thousands of groups, and each waits for its
/// memory.
const NEAR_NULL_THREADS: u32 = 64;

/// Lanes per small dense matrix in a product. Most matrices have 8 rows.
const BLOCK_LANES: u32 = 8;

/// Returns the constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "spadd.cu" => vec![("THREADS", THREADS)],
        "aggregate.cu" => {
            vec![("THREADS", THREADS), ("MOST_OF_BLOCK", MOST_OF_BLOCK), ("LANES", NODE_LANES)]
        }
        "coarsen.cu" => vec![("THREADS", THREADS)],
        "near_null.cu" => vec![("THREADS", NEAR_NULL_THREADS)],
        "classical.cu" => {
            let (lanes, places, threads) = CLASSICAL[unit.size_class().saturating_sub(1) as usize];
            vec![("THREADS", threads), ("PLACES", places), ("GROUP", lanes)]
        }
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

/// Returns whether 32 bits are enough for a column of a matrix with this many columns together with the number of one
/// of `room` products.
fn keys_fit(columns: usize, room: u32) -> bool {
    (columns as u64) < 1 << (32 - room.trailing_zeros())
}

fn of_table((group, slots, threads): Table) -> Vec<(&'static str, u32)> {
    vec![("GROUP", group), ("SLOTS", slots), ("THREADS", threads)]
}

/// Returns the number of lanes for a row of B with `mean` entries, if C has `rows` rows. Fewer lanes than entries are
/// better than more (H200, 2026-11-26: 8.6 entries, 0.88 and 1.08 ms with 8 and 16 lanes; 3.6 entries, 1.02 and 1.43 ms
/// with 4 and 8), unless there are so few rows that the latency of each counts.
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

/// Returns the index of the table with this number of lanes, or with the next smaller number.
fn with_lanes(tables: &[Table], lanes: u32) -> usize {
    tables.iter().rposition(|table| table.0 <= lanes).unwrap_or(0)
}

/// Returns the maximum number of products of a row for each sorted class, in a matrix with this many columns; 0 if 32
/// bits are not enough for the largest column and the number of a product.
pub(in crate::backend::cuda) fn most_sorted(columns: usize) -> [u32; 2] {
    SORTED.map(|(group, each, _)| {
        let room = group * each;
        if keys_fit(columns, room) { room } else { 0 }
    })
}

/// Returns a launch with a thread for each row of C that is merged. Rows of C have `mean` entries (0 if this is neither
/// known nor needed).
pub(in crate::backend::cuda) fn merged_rows(chip: Chip, rows: usize, mean: usize) -> Shape {
    // A tenth more than the mean, so that most warps have enough space.
    let place = usize::from(mean * 32 * 11 / 10 > MERGED_ROOM[0] as usize);
    striding(chip, rows, 1, MERGED_THREADS).class(MERGED_UNITS[place])
}

/// Returns the launch of a class with sorted products, for this number of rows.
pub(in crate::backend::cuda) fn sorted_rows(chip: Chip, class: u32, rows: usize) -> Shape {
    let (group, _, threads) = SORTED[class as usize - 1];
    striding(chip, rows, group, threads).class(class)
}

/// Returns the launch for the rows of a smoothed prolongation with this many columns. Rows of A have `mean` entries, at
/// most `longest`, and one more for a diagonal. `None` if a thread takes a whole row.
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

/// Returns the launch that counts the lengths of rows in hash tables. Rows of B have `mean` entries.
pub(in crate::backend::cuda) fn product_lengths(chip: Chip, mean: usize, rows: usize) -> Shape {
    let place = with_lanes(&FOR_LENGTHS, lanes(chip, mean, rows));
    let (group, _, threads) = FOR_LENGTHS[place];
    striding(chip, rows, group, threads).class(LENGTH_UNITS[place])
}

/// Returns the launch for the columns and values (or only the values) of rows of C with at most `most` entries.
pub(in crate::backend::cuda) fn product_rows(chip: Chip, most: u32, mean: usize, rows: usize) -> Shape {
    let fits = |table: &Table| table.1 == 2 * most;
    let first = FOR_ROWS.iter().position(fits).expect("there is a table for each class");
    let count = FOR_ROWS.iter().filter(|&table| fits(table)).count();
    let place = first + with_lanes(&FOR_ROWS[first..first + count], lanes(chip, mean, rows));
    let (group, _, threads) = FOR_ROWS[place];
    striding(chip, rows, group, threads).class(ROW_UNITS[place])
}

/// Returns the launch for the values of rows of C whose columns are known; `None` if rows may be too long for the
/// tables.
pub(in crate::backend::cuda) fn known_values(chip: Chip, most: u32, rows: usize) -> Option<Shape> {
    let place = FOR_KNOWN.iter().position(|table| table.1 == most)?;
    let (group, _, threads) = FOR_KNOWN[place];
    Some(striding(chip, rows, group, threads).class(KNOWN_UNITS[place]))
}

/// Returns the launch that searches for rows whose length is still unknown.
pub(in crate::backend::cuda) fn block_lengths(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, THREADS / LOOKED_AT, THREADS).class(ONE_CLASS)
}

/// Returns a launch with a thread per row.
pub(in crate::backend::cuda) fn row_threads(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, 1, THREADS).class(ONE_CLASS)
}

/// Returns a launch with several lanes of a warp per node or row.
pub(in crate::backend::cuda) fn node_lanes(chip: Chip, nodes: usize) -> Shape {
    striding(chip, nodes, NODE_LANES, THREADS).class(ONE_CLASS)
}

/// Returns the logarithm of the number of lanes that share a node with `mean` neighbours, in steps where lanes read
/// neighbouring entries of a row.
pub(in crate::backend::cuda) fn log_node_lanes(mean: usize) -> u32 {
    if mean < SHARED_FROM { 0 } else { (mean / ENTRIES_A_LANE).min(32).ilog2() }
}

/// Returns a launch with a thread per row, for classical coarsening.
pub(in crate::backend::cuda) fn classical_rows(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, 1, CLASSICAL[0].2).class(CLASSICAL_UNITS[0])
}

/// Returns a launch with a thread per row or group of unknowns, for near-null vectors.
pub(in crate::backend::cuda) fn near_null_rows(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, 1, NEAR_NULL_THREADS).class(ONE_CLASS)
}

/// Returns a launch with several lanes per row, for strong dependences.
pub(in crate::backend::cuda) fn strong_lanes(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, CLASSICAL[0].0, CLASSICAL[0].2).class(CLASSICAL_UNITS[0])
}

/// Returns the launches for the interpolation of classical coarsening with at most `weights` entries a row, if rows of A
/// have `mean` entries: each is for the rows for which those before had too few places.
pub(in crate::backend::cuda) fn classical_lanes(
    chip: Chip,
    rows: usize,
    mean: usize,
    weights: usize,
) -> impl Iterator<Item = Shape> {
    let fits = move |&(lanes, places, _): &Table| {
        lanes as usize >= weights && (places > CLASSICAL[0].1 || mean < SHARED_FROM)
    };
    let first = CLASSICAL.iter().position(fits).unwrap_or(CLASSICAL.len() - 1);
    let of =
        move |(&(lanes, _, threads), class): (&Table, u32)| striding(chip, rows, lanes, threads).class(class);
    CLASSICAL.iter().zip(CLASSICAL_UNITS).skip(first).map(of)
}

/// Returns a launch with a thread per row, for blocks that load `A_THREAD` entries per thread to shared memory at a
/// time.
pub(in crate::backend::cuda) fn row_entries(chip: Chip, rows: usize, entries: usize) -> Shape {
    const A_THREAD: usize = 4;
    row_threads(chip, rows.max(entries / A_THREAD))
}

/// Returns a launch with a warp per small dense matrix.
pub(in crate::backend::cuda) fn group_blocks(chip: Chip, blocks: usize) -> Shape {
    striding(chip, blocks, 32, 32 * WARPS).class(ONE_CLASS)
}

/// Returns a launch with several lanes of a warp per small dense matrix, for a product with a vector.
pub(in crate::backend::cuda) fn group_rows(chip: Chip, blocks: usize) -> Shape {
    striding(chip, blocks, BLOCK_LANES, THREADS).class(ONE_CLASS)
}

/// Returns a launch with a block per group of rows.
pub(in crate::backend::cuda) fn block_of_rows(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows, THREADS, THREADS).class(ONE_CLASS)
}

/// Returns a launch with several blocks per long row.
pub(in crate::backend::cuda) fn long_values(chip: Chip, rows: usize) -> Shape {
    striding(chip, rows * PARTS as usize, VALUE_THREADS, VALUE_THREADS).class(ONE_CLASS)
}

/// Returns a launch with `lanes` lanes for each of `items`, but at most 16 times as many as the chip holds.
fn striding(chip: Chip, items: usize, lanes: u32, threads: u32) -> Shape {
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / threads)) as usize;
    let needed = items.div_ceil((threads / lanes) as usize);
    Shape::new(needed.min(16 * resident) as u32, threads)
}
