//! Tiles of equal work through CSR matrices whose rows have any lengths: of one product (`csr_balanced.cu`), and of
//! several vectors at once (`csr_block_tiles.cu`).

use super::grid::{THREADS, blocks, row_shape};
use super::{Chip, Shape, Unit};
use crate::backend::TILE_KINDS;
use crate::scalar::Element;

/// How a tile of one product is worked off: threads of a block, steps and nonzeros under way a thread, nonzeros that
/// the last row may have beyond the tile, blocks that a multiprocessor shall hold, and whether the first nonzeros are
/// asked for ahead of the launch before.
#[derive(Clone, Copy)]
struct Tile {
    threads: u32,
    items: u32,
    unroll: u32,
    slack: u32,
    blocks: u32,
    ahead: bool,
}

/// The tiles of a class.
const TILES: [Tile; TILE_KINDS] = [
    // In matrices that lie in the second-level cache what counts is that one wave of blocks is nearly enough, ...
    Tile { threads: 128, items: 5, unroll: 5, slack: 128, blocks: 12, ahead: true },
    // ... where x comes from the first-level cache, that memory is kept busy, by all threads that a multiprocessor
    // holds, ...
    Tile { threads: 256, items: 8, unroll: 3, slack: 256, blocks: 8, ahead: false },
    // ... (of values of 4 bytes more are under way) ...
    Tile { threads: 256, items: 10, unroll: 5, slack: 256, blocks: 8, ahead: false },
    // ... and elsewhere, that this cache is left to x.
    Tile { threads: 256, items: 4, unroll: 4, slack: 256, blocks: 6, ahead: false },
];
/// The class of matrices that the second-level cache holds.
const SMALL: u32 = 0;
/// The classes of matrices beyond the second-level cache, the first by whether values take 4 bytes.
pub(in crate::backend::cuda) const CLUSTERED_TILES: [u32; 2] = [1, 2];
pub(in crate::backend::cuda) const SCATTERED_TILES: u32 = 3;
/// Blocks where such values are widened: sums then take twice the registers.
const WIDENED_BLOCKS: u32 = 6;
/// Nonzeros of matrices in the second-level cache.
const CACHED: usize = 1 << 22;
/// Mean nonzeros a row below which rows are short: what is under way counts then too.
const SHORT: usize = 4;

/// Windows of nonzeros that are looked at to tell whether x comes from the first-level cache, at most, nonzeros of
/// each, columns of a line, and lines above which it does not. R-MAT of 2^17 rows and more has 1560 to 2620 of them,
/// the most scattered of fourteen meshes, circuits and linear programs 434.
const WINDOWS: usize = 64;
const WINDOW: usize = 4096;
const LINE: u32 = 16;
const SCATTERED: u64 = 800;
/// Sums of 16 bytes take twice the registers.
const WIDE_BLOCKS: u32 = 1;

/// Steps of a tile of several vectors, as its kernels are compiled for them, by the mean length of rows.
const BLOCK_STEPS: [(u32, &str); 2] = [(2048, "2048"), (1024, "1024")];
/// Mean nonzeros a row from which those tiles are the smaller ones: they gather more and write less.
const BLOCK_FULL: usize = 8;
/// And nonzeros from which there are enough tiles either way.
const BLOCK_MANY: usize = 1 << 23;

/// The class of `row_shape.cu` for the first tiles of one product; those of several vectors have the classes before.
const FIRST_TILE: u32 = BLOCK_STEPS.len() as u32;

/// The constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = unit.size_class();
    match unit.source() {
        "csr_balanced.cu" => {
            let tile = TILES[class as usize];
            let (scalar, stored) = (unit.type_of("SCALAR"), unit.type_of("STORED"));
            let widened = class == CLUSTERED_TILES[1] && scalar != stored;
            let blocks = if widened { WIDENED_BLOCKS } else { tile.blocks };
            vec![
                ("THREADS", tile.threads),
                ("ITEMS", tile.items),
                ("SLACK", tile.slack),
                ("UNROLL", tile.unroll),
                ("AHEAD", u32::from(tile.ahead)),
                ("MIN_BLOCKS", if scalar == "c64" { WIDE_BLOCKS } else { blocks }),
            ]
        }
        "column_spread.cu" => vec![("THREADS", THREADS), ("WINDOW", WINDOW as u32), ("LINE", LINE)],
        _ => {
            let (steps, slack) = match class.checked_sub(FIRST_TILE) {
                Some(class) => (TILES[class as usize].steps(), TILES[class as usize].slack),
                None => (BLOCK_STEPS[class as usize].0, 0),
            };
            vec![("THREADS", THREADS), ("TILE", steps), ("SLACK", slack)]
        }
    }
}

impl Tile {
    const fn steps(self) -> u32 {
        self.threads * self.items
    }
}

/// Whether it counts where x comes from.
pub(in crate::backend::cuda) fn asks_spread(rows: usize, nonzeros: usize) -> bool {
    nonzeros >= CACHED || nonzeros / SHORT < rows && nonzeros >= WINDOW
}

/// The launch that finds it out: a block a window.
pub(in crate::backend::cuda) fn column_spread(nonzeros: usize) -> Shape {
    Shape::new((nonzeros / WINDOW).min(WINDOWS) as u32, THREADS)
}

/// Whether x is read all over the vector, by the lines of all windows.
pub(in crate::backend::cuda) fn scattered(lines: u64, nonzeros: usize) -> bool {
    lines > SCATTERED * u64::from(column_spread(nonzeros).blocks)
}

/// The class of the tiles of one product.
pub(in crate::backend::cuda) fn balanced_class<V: Element>(scattered: Option<bool>) -> u32 {
    match scattered {
        None => SMALL,
        Some(false) => CLUSTERED_TILES[usize::from(size_of::<V>() == 4)],
        Some(true) => SCATTERED_TILES,
    }
}

/// Tiles of one product with whatever rows there are, and the launch that finds where they begin.
pub(in crate::backend::cuda) fn balanced_tiles(
    chip: Chip,
    class: u32,
    rows: usize,
    nonzeros: usize,
) -> (usize, Shape) {
    let tiles = (rows + nonzeros).div_ceil(TILES[class as usize].steps() as usize);
    (tiles, row_shape(chip, tiles + 1).class(FIRST_TILE + class))
}

/// A block a tile.
pub(super) fn balanced(class: u32, rows: usize, nonzeros: usize) -> Shape {
    let tile = TILES[class as usize];
    Shape::new(blocks((rows + nonzeros).div_ceil(tile.steps() as usize)), tile.threads).class(class)
}

/// Tiles of several vectors: how many, their steps, and the name of these.
pub(super) fn tiles_of_block(rows: usize, nonzeros: usize) -> (usize, u32, &'static str) {
    let (steps, name) = BLOCK_STEPS[block_class(rows, nonzeros) as usize];
    ((rows + nonzeros).div_ceil(steps as usize), steps, name)
}

/// As [`balanced_tiles`], for several vectors.
pub(in crate::backend::cuda) fn block_tiles(chip: Chip, rows: usize, nonzeros: usize) -> (usize, Shape) {
    let (tiles, ..) = tiles_of_block(rows, nonzeros);
    (tiles, row_shape(chip, tiles + 1).class(block_class(rows, nonzeros)))
}

fn block_class(rows: usize, nonzeros: usize) -> u32 {
    u32::from(nonzeros >= BLOCK_FULL.saturating_mul(rows).max(BLOCK_MANY))
}
