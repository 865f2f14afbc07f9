//! Tiles of equal work through CSR matrices whose rows have any lengths: of one product (`csr_balanced.cu`), and of several vectors at
//! once (`csr_block_tiles.cu`).

use super::grid::{THREADS, blocks, row_shape};
use super::{Chip, Shape, Unit};

/// How a tile of one product is worked off: threads of a block, steps and nonzeros under way a thread, nonzeros that the last row may
/// have beyond the tile, blocks that a multiprocessor shall hold, and whether the first nonzeros are asked for ahead of the launch before.
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
const TILES: [Tile; 3] = [
    // Where rows are short, what counts is how much is under way, ...
    Tile { threads: 128, items: 8, unroll: 4, slack: 256, blocks: 12, ahead: false },
    // ... and in matrices that lie in the second-level cache, that one wave of blocks is nearly enough.
    Tile { threads: 128, items: 5, unroll: 5, slack: 128, blocks: 12, ahead: true },
    Tile { threads: 512, items: 4, unroll: 4, slack: 512, blocks: 3, ahead: false },
];
/// The class of matrices beyond the second-level cache.
pub(in crate::backend::cuda) const LARGE_TILES: u32 = 2;
/// Nonzeros of matrices in the second-level cache.
const CACHED: usize = 1 << 23;
/// Mean nonzeros a row below which rows are short.
const SHORT: usize = 4;
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
            let wide = unit.type_of("SCALAR") == Some("c64");
            vec![
                ("THREADS", tile.threads),
                ("ITEMS", tile.items),
                ("SLACK", tile.slack),
                ("UNROLL", tile.unroll),
                ("AHEAD", u32::from(tile.ahead)),
                ("MIN_BLOCKS", if wide { WIDE_BLOCKS } else { tile.blocks }),
            ]
        }
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

fn class(rows: usize, nonzeros: usize) -> u32 {
    if nonzeros / SHORT < rows {
        0
    } else if nonzeros < CACHED {
        1
    } else {
        LARGE_TILES
    }
}

/// Tiles of one product with whatever rows there are, and the launch that finds where they begin.
pub(in crate::backend::cuda) fn balanced_tiles(chip: Chip, rows: usize, nonzeros: usize) -> (usize, Shape) {
    let class = class(rows, nonzeros);
    let tiles = (rows + nonzeros).div_ceil(TILES[class as usize].steps() as usize);
    (tiles, row_shape(chip, tiles + 1).class(FIRST_TILE + class))
}

/// A block a tile.
pub(super) fn balanced(rows: usize, nonzeros: usize) -> Shape {
    let class = class(rows, nonzeros);
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
