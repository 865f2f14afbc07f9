//! Constants of the compressed format, and the shapes of its launches.

use super::convert::TILE_ITEMS;
use super::{PARTIALS, Shape, compressed_grid, compressed_march};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::backend::{BALANCED_TILE, COMPRESSED_WINDOW, SECTION};
use crate::scalar::{Element, Scalar};

/// Threads of a block.
const PRODUCT_THREADS: u32 = 256;
/// Rows a thread where rows of a kind are all alike.
const KIND_ROWS: u32 = 2;
/// Mean length from which a row keeps a thread busy by itself, so that blocks need not stay for the next rows.
const LONG_ROWS: usize = 16;
/// Rows that a warp numbers one after another: the first of them is looked up. Fewer, where there are few rows for all
/// warps.
const CHUNK: [u32; 2] = [128, 16];
const FEW_ROWS: usize = 1 << 20;
/// Blocks a multiprocessor of the survey, which fills shared memory, and their threads. Up to so many nonzeros one
/// block, of twice the threads, and half of the lanes a row: what blocks collect is put together at the end, and then
/// each has more of it.
const SURVEY_BLOCKS: u32 = 3;
const SURVEYED_BY_FEW: usize = 1 << 22;
const SURVEY_THREADS: [u32; 2] = [512, 1024];

/// Threads of a block that measures sections; up to so many rows this is done while the survey is under way.
const SIZES_THREADS: u32 = 256;
const MEASURED_ALONG: usize = 1 << 20;
/// Threads of a block that adds up sections' sizes, a section each at a time, and blocks at most: each adds up all
/// before its own.
const OFFSETS_THREADS: u32 = 1024;
const OFFSETS_BLOCKS: usize = 128;
/// Warps that fill or restore sections, where there are enough sections or quads of entries in them, and how many share
/// one at most.
const FILLING: usize = 1 << 14;
const SPLITS: usize = 16;
/// Entries of a row of mean length that a warp fills a section with, and that it restores: the wider sections are, the
/// more warps share one, lest the widest take the time of all.
const FILLED: usize = 12;
const RESTORED: usize = 4;
/// Mean length up to which a row has so few entries that what a block brings to look them up in is worth further
/// sections.
const SHORT_ROWS: usize = 8;

/// Quads of entries up to which a row is short, on average; class of units for longer ones.
const SHORT_QUADS: usize = 3;
pub(in crate::backend::cuda) const LONG: u32 = 1;
/// Threads of a block with a thread a row of a window.
const WINDOW_THREADS: u32 = COMPRESSED_WINDOW as u32;

/// Threads of a block that takes a window: a warp takes a section, or two, so that a block does not wait for its widest
/// one. Not where rows are long, for what more windows at a time have of x leaves the first-level cache, nor of stored
/// f64, with which memory is busy enough.
fn window_threads(scalar: &str, stored: bool, class: u32) -> u32 {
    match scalar {
        "f64" if stored => WINDOW_THREADS,
        "f32" | "f64" if class == LONG => WINDOW_THREADS,
        _ => WINDOW_THREADS / 2,
    }
}

/// Entries of a row under way there and windows of a multiprocessor of a thread a row, of a product and of one with
/// dot. Short rows of codes wait for instructions, long ones for what they have under way.
fn under_way(scalar: &str, values: &str, class: u32) -> [(u32, u32); 2] {
    match (scalar, values) {
        ("c64", _) => [(4, 4); 2],
        ("c32", _) => [(4, 6); 2],
        (_, "COMPRESSED_STORED") => [(16, 8), (12, 8)],
        _ if class != LONG => [(8, 8); 2],
        (_, "COMPRESSED_ONE") => [(16, 6); 2],
        ("f64", _) => [(8, 8), (16, 6)],
        _ => [(8, 6), (16, 6)],
    }
}

/// Entries of a row under way where values are stored and columns kinds of rows, and blocks of a multiprocessor.
fn kinds_stored(scalar: &str) -> (u32, u32) {
    match scalar {
        "c64" => (4, 4),
        "c32" => (4, 6),
        "f64" => (8, 5),
        _ => (8, 6),
    }
}

/// Threads of a block where rows are parts of a stencil.
const STENCIL_THREADS: u32 = 128;
/// Rows a thread, at most.
pub(in crate::backend::cuda) const STENCIL_ROWS: usize = 4;
/// Up to so many places, the elements of x take few registers.
const FEW_PLACES: u32 = 9;

/// Classes for 5, 7 and 27 points: a unit's class are its places.
pub(in crate::backend::cuda) const STENCILS: [u32; 3] = [0x1_7400, 0x41_7410, (1 << 27) - 1];

/// Rows a thread.
fn stencil_rows(bytes: usize) -> usize {
    if bytes > 8 { STENCIL_ROWS / 2 } else { STENCIL_ROWS }
}

/// Blocks a multiprocessor, so that there are registers for all elements of x.
fn stencil_blocks(places: u32, bytes: usize) -> u32 {
    match (places.count_ones() > FEW_PLACES, bytes > 8) {
        (false, false) => 6,
        (false, true) | (true, false) => 4,
        (true, true) => 2,
    }
}

/// Blocks of a multiprocessor that fill sections. What shared memory leaves of the first-level cache counts where
/// values are stored and a table takes its part: of a line of CSR, several turns take theirs.
fn fill_blocks(unit: &Unit) -> u32 {
    match (unit.type_of("VALUE"), unit.type_of("COLUMNS"), unit.type_of("VALUES")) {
        ("c64", ..) => 4,
        (_, "COMPRESSED_CODES", "COMPRESSED_STORED") => 5,
        _ => 6,
    }
}

/// The class of a unit of `compressed_fill.cu` or `compressed_survey.cu`: lanes a row, whether kinds have values, and
/// whether rows are few.
fn class(lanes: u32, lines: bool) -> u32 {
    lanes | u32::from(lines) << 8
}
pub(in crate::backend::cuda) const FEW: u32 = 1 << 9;

/// Blocks of a multiprocessor where entries are dealt out, so that what is asked for of the next tile stays in
/// registers.
fn balanced_blocks(scalar: &str, stored: &str) -> u32 {
    match (scalar, stored) {
        ("c64", "c64") => 2,
        ("c64", _) => 3,
        ("c32", _) => 4,
        ("f64", "f64") => 5,
        _ => 6,
    }
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let threads = ("THREADS", PRODUCT_THREADS);
    match unit.source() {
        "compressed_grid.cu" => compressed_grid::constants(unit),
        "compressed_march.cu" => compressed_march::constants(unit),
        "compressed_kinds.cu" => vec![threads, ("ROWS", KIND_ROWS)],
        "compressed_stencil.cu" => {
            let (class, bytes) = (unit.size_class(), unit.scalar_bytes());
            vec![
                ("THREADS", STENCIL_THREADS),
                ("PLACES", class),
                ("ROWS", stencil_rows(bytes) as u32),
                ("BLOCKS", stencil_blocks(class, bytes)),
            ]
        }
        "compressed.cu" => {
            let [scalar, values] = ["SCALAR", "VALUES"].map(|name| unit.type_of(name));
            let threads = window_threads(scalar, values == "COMPRESSED_STORED", unit.size_class());
            let [(unroll, blocks), (dot_unroll, dot_blocks)] = under_way(scalar, values, unit.size_class());
            vec![
                ("THREADS", threads),
                ("UNROLL", unroll),
                ("MIN_BLOCKS", blocks * WINDOW_THREADS / threads),
                ("DOT_UNROLL", dot_unroll),
                ("DOT_BLOCKS", dot_blocks),
            ]
        }
        "compressed_balanced.cu" => {
            let [scalar, stored] = ["SCALAR", "STORED"].map(|name| unit.type_of(name));
            vec![threads, ("MIN_BLOCKS", balanced_blocks(scalar, stored))]
        }
        "compressed_kinds_stored.cu" => {
            let (unroll, blocks) = kinds_stored(unit.type_of("SCALAR"));
            vec![threads, ("UNROLL", unroll), ("MIN_BLOCKS", blocks)]
        }
        "compressed_survey.cu" => vec![
            ("THREADS", SURVEY_THREADS[usize::from(unit.size_class() & FEW != 0)]),
            ("BLOCKS", if unit.size_class() & FEW != 0 { 1 } else { SURVEY_BLOCKS }),
            ("LANES", (unit.size_class() & 255).clamp(2, 32)),
        ],
        "compressed_sizes.cu" => vec![("THREADS", OFFSETS_THREADS)],
        "compressed_fill.cu" | "compressed_restore.cu" => {
            vec![
                threads,
                ("LANES", (unit.size_class() & 255).clamp(2, 32)),
                ("LINES", unit.size_class() >> 8 & 1),
                ("CHUNK", CHUNK[usize::from(unit.size_class() & FEW != 0)]),
                ("ITEMS", TILE_ITEMS),
                ("MIN_BLOCKS", fill_blocks(unit)),
            ]
        }
        _ => vec![threads],
    }
}

/// A product with `items` of rows or places a block; a dot product is summed by blocks that stay.
fn product(rows: usize, nonzeros: usize, items: usize, stay: bool) -> Shape {
    let tiles = rows.div_ceil(items);
    if stay || nonzeros < LONG_ROWS * rows {
        Shape::resident(tiles, PRODUCT_THREADS)
    } else {
        Shape::new(tiles as u32, PRODUCT_THREADS)
    }
}

/// A product with kinds of rows that have their values.
pub(in crate::backend::cuda) fn compressed_lines(rows: usize, nonzeros: usize, dot: bool) -> Shape {
    product(rows, nonzeros, (PRODUCT_THREADS * KIND_ROWS) as usize, dot)
}

/// A product with kinds of rows that are parts of one stencil, and rows a thread. Blocks stay: their warps go on
/// without waiting for each other.
pub(in crate::backend::cuda) fn compressed_stencil<T: Element>(
    rows: usize,
    (places, line): (u32, u32),
) -> (Shape, usize) {
    let count = stencil_rows(size_of::<T>());
    let threads = rows.div_ceil(count * line as usize) * line as usize;
    let shape = Shape::resident(threads.div_ceil(STENCIL_THREADS as usize), STENCIL_THREADS);
    (shape.class(places), count)
}

/// A thread takes several rows, one after the other, to tell whether they are a grid.
pub(in crate::backend::cuda) fn compressed_is_grid(rows: usize) -> Shape {
    Shape::resident(rows.div_ceil(PRODUCT_THREADS as usize), PRODUCT_THREADS)
}

/// A product with sections of so many quads of entries, a block a window; a dot product is summed by blocks that stay.
pub(in crate::backend::cuda) fn compressed_sections<T: Scalar>(
    rows: usize,
    quads: usize,
    stored: bool,
    dot: bool,
) -> Shape {
    let (tiles, class) = (rows.div_ceil(COMPRESSED_WINDOW), u32::from(quads > SHORT_QUADS * rows) * LONG);
    let shape = if dot {
        Shape::resident(tiles.min(PARTIALS), WINDOW_THREADS)
    } else {
        Shape::new(tiles as u32, window_threads(T::NAME, stored, class))
    };
    shape.class(class)
}

/// A product with sections of `places` places, kinds of rows and stored values, a thread a row.
pub(in crate::backend::cuda) fn compressed_kinds_stored(
    rows: usize,
    places: usize,
    ordered: bool,
    dot: bool,
) -> Shape {
    let scattered = if ordered { LONG_ROWS * rows } else { places };
    product(rows, scattered, PRODUCT_THREADS as usize, dot)
}

/// A product with so many tiles of entries that are dealt out, and tiles of a block: one wave of blocks, that each has
/// the next tile on its way.
pub(in crate::backend::cuda) fn compressed_balanced<T: Element, S: Element>(
    chip: Chip,
    tiles: u32,
) -> (Shape, u32) {
    const { assert!(BALANCED_TILE == 8 * PRODUCT_THREADS as usize) };
    let each = tiles.div_ceil(chip.multiprocessors * balanced_blocks(T::NAME, S::NAME)).max(1);
    (Shape::new(tiles.div_ceil(each), PRODUCT_THREADS), each)
}

/// The survey of a matrix.
pub(in crate::backend::cuda) fn compressed_survey(chip: Chip, rows: usize, nonzeros: usize) -> Shape {
    let few = nonzeros <= SURVEYED_BY_FEW;
    let threads = SURVEY_THREADS[usize::from(few)];
    let mut lanes = (lanes(rows, nonzeros) / if few { 2 } else { 1 }).max(2);
    // Few rows do not keep each multiprocessor busy, and the longest ones take the time of all.
    let blocks = |lanes: u32| rows.div_ceil((threads / lanes) as usize);
    while lanes < 32 && blocks(2 * lanes) <= chip.multiprocessors as usize {
        lanes *= 2;
    }
    let most = if few { chip.multiprocessors } else { SURVEY_BLOCKS * chip.multiprocessors };
    let needed = blocks(lanes).max(1);
    Shape::new(needed.min(most as usize) as u32, threads).class(lanes | if few { FEW } else { 0 })
}

/// Lanes that read a row, each about four of its entries: what a row takes besides is worth as much.
fn lanes(rows: usize, nonzeros: usize) -> u32 {
    (nonzeros.div_ceil(rows.max(1)).next_power_of_two() / 4).clamp(2, 32) as u32
}

/// The kind of each row.
pub(in crate::backend::cuda) fn compressed_rows(
    chip: Chip,
    rows: usize,
    nonzeros: usize,
    lines: bool,
) -> Shape {
    let few = rows < FEW_ROWS;
    let needed = rows.div_ceil((PRODUCT_THREADS / 32 * CHUNK[usize::from(few)]) as usize);
    Shape::new(needed.min(8 * chip.multiprocessors as usize) as u32, PRODUCT_THREADS)
        .class(class(lanes(rows, nonzeros), lines) | if few { FEW } else { 0 })
}

/// A block for each of `n`.
pub(in crate::backend::cuda) fn compressed_blocks(n: usize, lines: bool) -> Shape {
    Shape::new(n as u32, PRODUCT_THREADS).class(class(2, lines))
}

/// A thread a row, or a warp a section, which is the same.
pub(in crate::backend::cuda) fn compressed_places(rows: usize, lines: bool) -> Shape {
    compressed_blocks((rows.div_ceil(SECTION) * SECTION).div_ceil(PRODUCT_THREADS as usize), lines)
}

/// A warp a window of rows, on blocks that stay: each adds to the totals once.
pub(in crate::backend::cuda) fn compressed_sizes(rows: usize) -> Shape {
    by_warps(rows.div_ceil(COMPRESSED_WINDOW))
}

/// A warp a section.
pub(in crate::backend::cuda) fn compressed_bases(rows: usize) -> Shape {
    by_warps(rows.div_ceil(SECTION))
}

fn by_warps(warps: usize) -> Shape {
    Shape::resident(warps.div_ceil((SIZES_THREADS / 32) as usize), SIZES_THREADS)
}

/// Whether sections are measured before it is known whether there will be any.
pub(in crate::backend::cuda) fn compressed_measures_along(rows: usize) -> bool {
    rows <= MEASURED_ALONG
}

/// Where sections start, and how many of them a block takes.
pub(in crate::backend::cuda) fn compressed_offsets(sections: usize) -> (Shape, usize) {
    let blocks = sections.div_ceil(OFFSETS_THREADS as usize).clamp(1, OFFSETS_BLOCKS);
    // Four at a time are read of those before.
    (Shape::new(blocks as u32, OFFSETS_THREADS), sections.div_ceil(blocks).next_multiple_of(4))
}

/// Warps that fill sections, and how many share one. Blocks stay where each brings tables to look entries up in, and
/// rows are short.
pub(in crate::backend::cuda) fn compressed_fills(
    rows: usize,
    nonzeros: usize,
    looks_up: bool,
) -> (Shape, u32) {
    let (blocks, splits) = shared_sections(rows, nonzeros, FILLED);
    let stay = looks_up && nonzeros < SHORT_ROWS * rows;
    let shape = if stay {
        Shape::resident(blocks, PRODUCT_THREADS)
    } else {
        Shape::new(blocks as u32, PRODUCT_THREADS)
    };
    (shape.class(class(2, false)), splits)
}

/// Warps that restore rows from sections, and how many share one.
pub(in crate::backend::cuda) fn compressed_restores(rows: usize, nonzeros: usize) -> (Shape, u32) {
    let (blocks, splits) = shared_sections(rows, nonzeros, RESTORED);
    (compressed_blocks(blocks, false), splits)
}

/// Blocks for all sections, and how many warps share one that take `each` entries of a row of mean length.
fn shared_sections(rows: usize, nonzeros: usize, each: usize) -> (usize, u32) {
    let sections = rows.div_ceil(SECTION);
    let wide = nonzeros.div_ceil(each * rows.max(1));
    let splits = (FILLING / sections.max(1)).max(wide).clamp(1, SPLITS);
    ((sections * splits * SECTION).div_ceil(PRODUCT_THREADS as usize), splits as u32)
}

/// Tiles of entries: by kinds that have values, or of long rows.
pub(in crate::backend::cuda) fn compressed_tiles(tiles: Shape, lines: bool) -> Shape {
    tiles.class(class(2, lines))
}
