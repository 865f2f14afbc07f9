//! Tiles of equal work of CSR matrices with rows of any length, for a product with one vector (`csr_balanced.cu`) and
//! for several (`csr_block_tiles.cu`).

use super::grid::{THREADS, blocks, row_shape};
use super::{Chip, Shape, Unit};
use crate::backend::TILE_KINDS;
use crate::scalar::Element;

/// The constants of a tile for one vector: threads per block, steps and nonzeros in flight per thread, the number of
/// nonzeros by which the last row may exceed the tile, blocks that a multiprocessor should be able to hold, and whether
/// the first nonzeros are loaded before the previous launch has ended.
#[derive(Clone, Copy)]
struct Tile {
    threads: u32,
    items: u32,
    unroll: u32,
    slack: u32,
    blocks: u32,
    ahead: bool,
}

/// The tiles of each class.
const TILES: [Tile; TILE_KINDS] = [
    // If the matrix fits the L2 cache, almost all blocks should run in one wave.
    Tile { threads: 128, items: 5, unroll: 5, slack: 128, blocks: 12, ahead: true },
    // If x is in the L1 cache, the memory is kept busy by as many threads as a multiprocessor can hold.
    Tile { threads: 256, items: 8, unroll: 3, slack: 256, blocks: 8, ahead: false },
    // The same for values of 4 bytes: more nonzeros are loaded at the same time.
    Tile { threads: 256, items: 10, unroll: 5, slack: 256, blocks: 8, ahead: false },
    // Otherwise as much as possible of the L1 cache should be free for x.
    Tile { threads: 256, items: 4, unroll: 4, slack: 256, blocks: 6, ahead: false },
];
/// The class of matrices that fit the second-level cache.
const SMALL: u32 = 0;
/// The classes of matrices that exceed the second-level cache, if x is read in clusters and if it is scattered. The
/// first array is indexed by whether values take 4 bytes.
pub(in crate::backend::cuda) const CLUSTERED_TILES: [u32; 2] = [1, 2];
pub(in crate::backend::cuda) const SCATTERED_TILES: u32 = 3;
/// Blocks per multiprocessor if values of 4 bytes are promoted, because sums then take twice as many registers.
const WIDENED_BLOCKS: u32 = 6;
/// Matrices with fewer nonzeros fit the second-level cache.
const CACHED: usize = 1 << 22;
/// Rows are short if they have fewer nonzeros than this on average.
const SHORT: usize = 4;

/// How it is decided whether x stays in the first-level cache: the maximum number of windows of nonzeros that are
/// examined, nonzeros per window, columns per cache line, and the number of lines per window above which x does not
/// stay there. R-MAT matrices with 2^17 rows and more have 1560 to 2620 lines; the most scattered of fourteen meshes,
/// circuits and linear programs has 434.
const WINDOWS: usize = 64;
const WINDOW: usize = 4096;
const LINE: u32 = 16;
const SCATTERED: u64 = 800;
/// Blocks per multiprocessor with sums of 16 bytes, which take twice as many registers.
const WIDE_BLOCKS: u32 = 1;

/// Steps of a tile for several vectors, by the mean length of rows. They are compiled into the kernels.
const BLOCK_STEPS: [(u32, &str); 2] = [(2048, "2048"), (1024, "1024")];
/// From this mean number of nonzeros per row on, the smaller tiles are used: they gather more and write less.
const BLOCK_FULL: usize = 8;
/// From this number of nonzeros on, there are enough tiles of either size.
const BLOCK_MANY: usize = 1 << 23;

/// The first class of `row_shape.cu` for tiles for one vector. The lower classes are for several vectors.
const FIRST_TILE: u32 = BLOCK_STEPS.len() as u32;

/// Returns the constants of a unit of these kernels.
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

/// Returns whether the choice of tiles depends on whether x stays in a cache, which has to be measured.
pub(in crate::backend::cuda) fn asks_spread(rows: usize, nonzeros: usize) -> bool {
    nonzeros >= CACHED || nonzeros / SHORT < rows && nonzeros >= WINDOW
}

/// Returns the launch that measures how scattered columns are, with a block per window.
pub(in crate::backend::cuda) fn column_spread(nonzeros: usize) -> Shape {
    Shape::new((nonzeros / WINDOW).min(WINDOWS) as u32, THREADS)
}

/// Returns whether a product reads x in places that are scattered at random. `lines` is the number of cache lines of x
/// that each window uses, added up over all windows.
pub(in crate::backend::cuda) fn scattered(lines: u64, nonzeros: usize) -> bool {
    lines > SCATTERED * u64::from(column_spread(nonzeros).blocks)
}

/// Returns the class of the tiles for one vector.
pub(in crate::backend::cuda) fn balanced_class<V: Element>(scattered: Option<bool>) -> u32 {
    match scattered {
        None => SMALL,
        Some(false) => CLUSTERED_TILES[usize::from(size_of::<V>() == 4)],
        Some(true) => SCATTERED_TILES,
    }
}

/// Returns the number of tiles of a product with rows of any length, and the launch that computes where each tile
/// starts.
pub(in crate::backend::cuda) fn balanced_tiles(
    chip: Chip,
    class: u32,
    rows: usize,
    nonzeros: usize,
) -> (usize, Shape) {
    let tiles = (rows + nonzeros).div_ceil(TILES[class as usize].steps() as usize);
    (tiles, row_shape(chip, tiles + 1).class(FIRST_TILE + class))
}

/// One block per tile.
pub(super) fn balanced(class: u32, rows: usize, nonzeros: usize) -> Shape {
    let tile = TILES[class as usize];
    Shape::new(blocks((rows + nonzeros).div_ceil(tile.steps() as usize)), tile.threads).class(class)
}

/// Returns, for several vectors, the number of tiles, their steps, and the name of the latter in units.
pub(super) fn tiles_of_block(rows: usize, nonzeros: usize) -> (usize, u32, &'static str) {
    let (steps, name) = BLOCK_STEPS[block_class(rows, nonzeros) as usize];
    ((rows + nonzeros).div_ceil(steps as usize), steps, name)
}

/// [`balanced_tiles`] for several vectors.
pub(in crate::backend::cuda) fn block_tiles(chip: Chip, rows: usize, nonzeros: usize) -> (usize, Shape) {
    let (tiles, ..) = tiles_of_block(rows, nonzeros);
    (tiles, row_shape(chip, tiles + 1).class(block_class(rows, nonzeros)))
}

fn block_class(rows: usize, nonzeros: usize) -> u32 {
    u32::from(nonzeros >= BLOCK_FULL.saturating_mul(rows).max(BLOCK_MANY))
}
