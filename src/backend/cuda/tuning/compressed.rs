//! Constants of the compressed format, and launch shapes.

use super::convert::TILE_ITEMS;
use super::{PARTIALS, Shape, compressed_grid, compressed_march};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::backend::{BALANCED_TILE, COMPRESSED_WINDOW, SECTION};
use crate::scalar::{Element, Scalar};

/// Threads per block.
const PRODUCT_THREADS: u32 = 256;
/// Rows per thread if all rows of a kind are equal, including their values.
const KIND_ROWS: u32 = 2;
/// From this mean row length on, a row keeps a thread busy, so blocks need not be persistent.
const LONG_ROWS: usize = 16;
/// The number of consecutive rows whose kinds a warp determines; only the kind of the first is looked up. The second
/// number is used up to `FEW_ROWS`, where there are too few rows for all warps.
const CHUNK: [u32; 2] = [128, 16];
const FEW_ROWS: usize = 1 << 20;
/// Blocks per multiprocessor in the survey, which fills shared memory, and their threads. Up to `SURVEYED_BY_FEW`
/// nonzeros there is a block per multiprocessor, with twice as many threads and half as many lanes per row: the tables
/// of all blocks are merged at the end, and fewer blocks have fewer keys in common.
const SURVEY_BLOCKS: u32 = 3;
const SURVEYED_BY_FEW: usize = 1 << 22;
const SURVEY_THREADS: [u32; 2] = [512, 1024];

/// Threads per block that measures slices. Up to `MEASURED_ALONG` rows this is done before the host has the result of
/// the survey.
const SIZES_THREADS: u32 = 256;
const MEASURED_ALONG: usize = 1 << 20;
/// Threads per block that adds up the sizes of slices, one slice per thread at a time, and the maximum number of
/// blocks: each adds up all slices before its own.
const OFFSETS_THREADS: u32 = 1024;
const OFFSETS_BLOCKS: usize = 128;
/// Number of warps that fill or restore slices, if there are enough slices or quads of entries for them, and the
/// maximum number of warps that share a slice.
const FILLING: usize = 1 << 14;
const SPLITS: usize = 16;
/// Number of entries of a row of mean length that one warp writes when slices are filled, or reads when rows are
/// restored. More warps share a wide slice, so that the widest ones do not determine the time.
const FILLED: usize = 12;
const RESTORED: usize = 4;
/// Up to this mean row length, blocks should be persistent: rows are short compared with the tables that a block loads.
const SHORT_ROWS: usize = 8;

/// Rows are short if they have at most this number of quads of entries on average. `LONG` is the class of units for
/// longer rows.
const SHORT_QUADS: usize = 3;
pub(in crate::backend::cuda) const LONG: u32 = 1;
/// Threads per block if there is one for each row of a window.
const WINDOW_THREADS: u32 = COMPRESSED_WINDOW as u32;

/// Threads per block that processes a window. Usually a warp processes two slices, so that blocks do not wait for their
/// widest slice. It processes one if rows are long, because x of more windows at a time would not fit the first-level
/// cache, and for stored f64, which keep memory busy anyway.
fn window_threads(scalar: &str, stored: bool, class: u32) -> u32 {
    match scalar {
        "f64" if stored => WINDOW_THREADS,
        "f32" | "f64" if class == LONG => WINDOW_THREADS,
        _ => WINDOW_THREADS / 2,
    }
}

/// Entries per row in flight in such a block, and windows per multiprocessor with one thread per row: for a product,
/// and for a product with x.y. Short rows of codes are limited by instructions, long ones by loads in flight.
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

/// Entries per row in flight if values are stored and the kinds of rows determine the columns, and blocks per
/// multiprocessor.
fn kinds_stored(scalar: &str) -> (u32, u32) {
    match scalar {
        "c64" => (4, 4),
        "c32" => (4, 6),
        "f64" => (8, 5),
        _ => (8, 6),
    }
}

/// Threads per block if all rows are parts of one stencil.
const STENCIL_THREADS: u32 = 128;
/// Maximum number of rows per thread.
pub(in crate::backend::cuda) const STENCIL_ROWS: usize = 4;
/// Up to this number of stencil points, the elements of x take few registers.
const FEW_PLACES: u32 = 9;

/// The stencils that have kernels: 5 and 9 points in a plane, 7 and 27 points in space. The class of a unit is the bit
/// mask of its stencil points, so any other stencil would need a unit that no package has. Other matrices with a
/// stencil are multiplied by kinds of rows.
pub(in crate::backend::cuda) const STENCILS: [u32; 4] = [0x1_7400, 0x41_7410, 0x3_fe00, (1 << 27) - 1];

/// Rows per thread.
fn stencil_rows(bytes: usize) -> usize {
    if bytes > 8 { STENCIL_ROWS / 2 } else { STENCIL_ROWS }
}

/// Blocks per multiprocessor, limited so that there are registers for all elements of x.
fn stencil_blocks(places: u32, bytes: usize) -> u32 {
    match (places.count_ones() > FEW_PLACES, bytes > 8) {
        (false, false) => 6,
        (false, true) | (true, false) => 4,
        (true, true) => 2,
    }
}

/// Blocks per multiprocessor that fill slices. If values are stored and a table takes part of shared memory, the
/// remaining first-level cache matters, because each cache line of CSR is used in several iterations.
fn fill_blocks(unit: &Unit) -> u32 {
    match (unit.type_of("VALUE"), unit.type_of("COLUMNS"), unit.type_of("VALUES")) {
        ("c64", ..) => 4,
        (_, "COMPRESSED_CODES", "COMPRESSED_STORED") => 5,
        _ => 6,
    }
}

/// The class of a unit of `compressed_fill.cu` or `compressed_survey.cu`: lanes per row, whether kinds have values, and
/// whether there are few rows.
fn class(lanes: u32, lines: bool) -> u32 {
    lanes | u32::from(lines) << 8
}
pub(in crate::backend::cuda) const FEW: u32 = 1 << 9;

/// Blocks per multiprocessor with tiles of equal work, limited so that there are registers for the loads for the next
/// tile.
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

/// Returns the launch of a product with `items` rows or places per block. Blocks are persistent if `stay` is set, for a
/// product with x.y.
fn product(rows: usize, nonzeros: usize, items: usize, stay: bool) -> Shape {
    let tiles = rows.div_ceil(items);
    if stay || nonzeros < LONG_ROWS * rows {
        Shape::resident(tiles, PRODUCT_THREADS)
    } else {
        Shape::new(tiles as u32, PRODUCT_THREADS)
    }
}

/// Returns the launch of a product with kinds of rows that include values.
pub(in crate::backend::cuda) fn compressed_lines(rows: usize, nonzeros: usize, dot: bool) -> Shape {
    product(rows, nonzeros, (PRODUCT_THREADS * KIND_ROWS) as usize, dot)
}

/// Returns the launch of a product with kinds of rows that are parts of one stencil, and the number of rows per thread.
/// Blocks are persistent: their warps continue without waiting for each other.
pub(in crate::backend::cuda) fn compressed_stencil<T: Element>(
    rows: usize,
    (places, line): (u32, u32),
) -> (Shape, usize) {
    let count = stencil_rows(size_of::<T>());
    let threads = rows.div_ceil(count * line as usize) * line as usize;
    let shape = Shape::resident(threads.div_ceil(STENCIL_THREADS as usize), STENCIL_THREADS);
    (shape.class(places), count)
}

/// Returns the launch that checks whether rows form a grid. A thread checks several rows, one after another.
pub(in crate::backend::cuda) fn compressed_is_grid(rows: usize) -> Shape {
    Shape::resident(rows.div_ceil(PRODUCT_THREADS as usize), PRODUCT_THREADS)
}

/// Returns the launch of a product with slices that have this number of quads of entries, with a block per window. With
/// x.y, blocks are persistent.
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

/// Returns the launch of a product with slices of `places` places, kinds of rows and stored values, with a thread per
/// row.
pub(in crate::backend::cuda) fn compressed_kinds_stored(
    rows: usize,
    places: usize,
    ordered: bool,
    dot: bool,
) -> Shape {
    let scattered = if ordered { LONG_ROWS * rows } else { places };
    product(rows, scattered, PRODUCT_THREADS as usize, dot)
}

/// Returns the launch of a product with tiles of equal numbers of entries, and the number of tiles per block. There is
/// one wave of blocks, and each loads its next tile in advance.
pub(in crate::backend::cuda) fn compressed_balanced<T: Element, S: Element>(
    chip: Chip,
    tiles: u32,
) -> (Shape, u32) {
    const { assert!(BALANCED_TILE == 8 * PRODUCT_THREADS as usize) };
    let each = tiles.div_ceil(chip.multiprocessors * balanced_blocks(T::NAME, S::NAME)).max(1);
    (Shape::new(tiles.div_ceil(each), PRODUCT_THREADS), each)
}

/// Returns the launch of a matrix's survey.
pub(in crate::backend::cuda) fn compressed_survey(chip: Chip, rows: usize, nonzeros: usize) -> Shape {
    let few = nonzeros <= SURVEYED_BY_FEW;
    let threads = SURVEY_THREADS[usize::from(few)];
    let mut lanes = (lanes(rows, nonzeros) / if few { 2 } else { 1 }).max(2);
    // If there are few rows, they don't occupy all multiprocessors, and the longest row determines the time.
    let blocks = |lanes: u32| rows.div_ceil((threads / lanes) as usize);
    while lanes < 32 && blocks(2 * lanes) <= chip.multiprocessors as usize {
        lanes *= 2;
    }
    let most = if few { chip.multiprocessors } else { SURVEY_BLOCKS * chip.multiprocessors };
    let needed = blocks(lanes).max(1);
    Shape::new(needed.min(most as usize) as u32, threads).class(lanes | if few { FEW } else { 0 })
}

/// Returns the number of lanes that read a row: one for about four entries, because the rest of the work for a row
/// takes as long.
fn lanes(rows: usize, nonzeros: usize) -> u32 {
    (nonzeros.div_ceil(rows.max(1)).next_power_of_two() / 4).clamp(2, 32) as u32
}

/// Returns the launch that determines the kind of each row.
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

/// Returns a launch with `n` blocks.
pub(in crate::backend::cuda) fn compressed_blocks(n: usize, lines: bool) -> Shape {
    Shape::new(n as u32, PRODUCT_THREADS).class(class(2, lines))
}

/// Returns a launch with a thread per row, which means a warp per slice.
pub(in crate::backend::cuda) fn compressed_places(rows: usize, lines: bool) -> Shape {
    compressed_blocks((rows.div_ceil(SECTION) * SECTION).div_ceil(PRODUCT_THREADS as usize), lines)
}

/// Returns a launch with a warp per window of rows. Blocks are persistent, so that each adds to the totals once.
pub(in crate::backend::cuda) fn compressed_sizes(rows: usize) -> Shape {
    by_warps(rows.div_ceil(COMPRESSED_WINDOW))
}

/// Returns a launch with a warp per slice.
pub(in crate::backend::cuda) fn compressed_bases(rows: usize) -> Shape {
    by_warps(rows.div_ceil(SECTION))
}

fn by_warps(warps: usize) -> Shape {
    Shape::resident(warps.div_ceil((SIZES_THREADS / 32) as usize), SIZES_THREADS)
}

/// Returns whether slices are measured before it is known whether they are needed.
pub(in crate::backend::cuda) fn compressed_measures_along(rows: usize) -> bool {
    rows <= MEASURED_ALONG
}

/// Returns the launch that computes where slices start, and the number of slices per block.
pub(in crate::backend::cuda) fn compressed_offsets(sections: usize) -> (Shape, usize) {
    let blocks = sections.div_ceil(OFFSETS_THREADS as usize).clamp(1, OFFSETS_BLOCKS);
    // The kernel reads the sizes of the preceding slices four at a time.
    (Shape::new(blocks as u32, OFFSETS_THREADS), sections.div_ceil(blocks).next_multiple_of(4))
}

/// Returns the launch that fills slices, and the number of warps per slice. Blocks are persistent if they load lookup
/// tables and rows are short.
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

/// Returns the launch that restores rows from slices, and the number of warps per slice.
pub(in crate::backend::cuda) fn compressed_restores(rows: usize, nonzeros: usize) -> (Shape, u32) {
    let (blocks, splits) = shared_sections(rows, nonzeros, RESTORED);
    (compressed_blocks(blocks, false), splits)
}

/// Returns the number of blocks for all slices, and the number of warps per slice if each takes `each` entries of a row
/// of mean length.
fn shared_sections(rows: usize, nonzeros: usize, each: usize) -> (usize, u32) {
    let sections = rows.div_ceil(SECTION);
    let wide = nonzeros.div_ceil(each * rows.max(1));
    let splits = (FILLING / sections.max(1)).max(wide).clamp(1, SPLITS);
    ((sections * splits * SECTION).div_ceil(PRODUCT_THREADS as usize), splits as u32)
}

/// Returns the launch for tiles of entries, for kinds that include values or for long rows.
pub(in crate::backend::cuda) fn compressed_tiles(tiles: Shape, lines: bool) -> Shape {
    tiles.class(class(2, lines))
}
