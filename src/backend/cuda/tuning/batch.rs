//! Constants and launch shapes of batches of small systems.

use super::{Chip, Shape, Unit};
use crate::backend::{BESIDE, ITERATIONS, LIMITED, NORM_UNITS, POWERS, REFINEMENTS, UNSCALED};

/// The largest system whose rows fit the registers of a warp's lanes, and the largest of a block of threads.
pub(in crate::backend::cuda) const BATCH_LANES: usize = 32;
pub(in crate::backend::cuda) const BATCH_ROWS: usize = 256;
/// The largest system of one sparse pattern, and the price of a multiplication of its elimination relative to that of
/// dense elimination: measured on an H200 with 10 000 systems of 992 unknowns and 2000 dense ones of 256.
pub(in crate::backend::cuda) const BATCH_SPARSE_ROWS: usize = 4096;
pub(in crate::backend::cuda) const BATCH_SPARSE_PRICE: f64 = 5.0;
/// The maximum number of rows of a system in each unit.
pub(in crate::backend::cuda) const LANES_CLASSES: [u32; 4] = [4, 8, 16, 32];
pub(in crate::backend::cuda) const BLOCK_CLASSES: [u32; 3] = [64, 128, 256];

/// Threads of a block if each system has some lanes of a warp.
const LANES_THREADS: u32 = 64;
/// A matrix with more bytes is stored in global memory that belongs to its block of threads: with it in shared memory,
/// fewer than three blocks would fit a multiprocessor.
const SHARED: usize = 74 << 10;

/// The largest system that is solved by iteration.
pub(in crate::backend::cuda) const BATCH_KRYLOV_ROWS: usize = 1024;
/// The number of each unit in [`KRYLOV`].
pub(in crate::backend::cuda) const KRYLOV_CLASSES: [u32; 5] = [1, 2, 3, 4, 5];
/// A unit: threads of a block, blocks of a multiprocessor with real and with complex numbers, eliminated and kept rows
/// of a thread, and the maximum number of entries in a row that threads hold in registers; if that is 0, rows may be
/// longer. The first one that fits is taken. 10 000 stencils of 992 rows took 7.5 ms on an H200 with two blocks of 256
/// threads, 9.0 with three, 12.2 with one of 512, 8.1 with three of 128, and 15.4 with the matrix in shared memory.
struct Krylov {
    threads: u32,
    blocks: [u32; 2],
    gone: u32,
    kept: u32,
    held: u32,
}
const KRYLOV: [Krylov; 5] = [
    Krylov { threads: 128, blocks: [4, 4], gone: 1, kept: 2, held: 5 },
    Krylov { threads: 128, blocks: [4, 4], gone: 1, kept: 2, held: 0 },
    Krylov { threads: 256, blocks: [2, 1], gone: 2, kept: 2, held: 5 },
    Krylov { threads: 256, blocks: [2, 1], gone: 1, kept: 3, held: 5 },
    Krylov { threads: 256, blocks: [2, 1], gone: 1, kept: 4, held: 0 },
];
/// Systems of one sparse pattern that a warp solves together: how many depends on the pattern alone, so that a system
/// has the same bits in any company.
pub(in crate::backend::cuda) const SPARSE_CLASSES: [u32; 2] = [4, 1];
/// Threads of a block there, and blocks of a multiprocessor.
const SPARSE_THREADS: u32 = 64;
const SPARSE_BLOCKS: u32 = 10;
/// Bytes of factors and vectors of all systems that are solved at a time, at most.
const SPARSE_ROOM: usize = 4 << 30;

/// Threads, columns of a panel, columns of a tile, and blocks of a multiprocessor.
fn block(rows: u32) -> [u32; 4] {
    match rows {
        64 => [128, 8, 2, 4],
        128 => [128, 8, 4, 3],
        _ => [256, 16, 4, 2],
    }
}

/// Lanes of a system with at most `rows` rows, and blocks of a multiprocessor: the fastest of 2 to 5 pairs each on an
/// H200, for 100 000 systems (10 000 of 32). With more rows a lane's registers overflow.
fn lanes(rows: u32, complex: bool) -> [u32; 2] {
    match (rows, complex) {
        (4, _) => [2, 8],
        (8, true) => [8, 8],
        (8, false) => [4, 8],
        (16, false) => [8, 6],
        _ => [rows, 8],
    }
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = unit.size_class();
    let common = [
        ("POWERS", POWERS as u32),
        ("REFINEMENTS", REFINEMENTS),
        ("BESIDE", BESIDE),
        ("NORM_UNITS", NORM_UNITS),
        ("LIMITED", LIMITED),
    ];
    let complex = unit.type_of("SCALAR").starts_with('c');
    let own = match unit.source() {
        "batch_lanes.cu" => {
            let [lanes, blocks] = lanes(class, complex);
            vec![("ROWS", class), ("LANES", lanes), ("THREADS", LANES_THREADS), ("BLOCKS", blocks)]
        }
        "batch_krylov.cu" => {
            let Krylov { threads, blocks, gone, kept, held } = KRYLOV[class as usize - 1];
            let rows = [("GONE", gone), ("KEPT", kept), ("HELD", held)];
            let launch = [("THREADS", threads), ("BLOCKS", blocks[usize::from(complex)])];
            let own = [("ITERATIONS", ITERATIONS), ("UNSCALED", UNSCALED as u32)];
            [rows.to_vec(), launch.to_vec(), own.to_vec()].concat()
        }
        "batch_sparse.cu" => {
            vec![("TOGETHER", class), ("THREADS", SPARSE_THREADS), ("BLOCKS", SPARSE_BLOCKS)]
        }
        _ => {
            let [threads, panel, columns, blocks] = block(class);
            let tile = [("PANEL", panel), ("TILE_COLUMNS", columns), ("BLOCKS", blocks)];
            [vec![("ROWS", class), ("THREADS", threads)], tile.to_vec()].concat()
        }
    };
    [common.to_vec(), own].concat()
}

/// Some lanes of a warp for each system, with numbers of `bytes` bytes.
pub(in crate::backend::cuda) fn batch_lanes(systems: usize, size: usize, bytes: usize) -> Shape {
    let rows = (size.next_power_of_two() as u32).max(LANES_CLASSES[0]);
    let [lanes, _] = lanes(rows, bytes > 8);
    let blocks = systems.div_ceil((LANES_THREADS / lanes) as usize);
    Shape::new(blocks as u32, LANES_THREADS).class(rows)
}

/// One block of threads per system with numbers of `bytes` bytes, and the number of elements of all blocks' matrices if
/// these are not in shared memory.
pub(in crate::backend::cuda) fn batch_block(
    chip: Chip,
    systems: usize,
    size: usize,
    bytes: usize,
) -> (Shape, usize) {
    let class = BLOCK_CLASSES.into_iter().find(|rows| size <= *rows as usize).unwrap_or(BLOCK_CLASSES[2]);
    let [threads, _, _, blocks] = block(class);
    let matrix = size * (size | 1);
    // Four vectors, norms, exponents and three lists of rows.
    let vectors = size * (4 * bytes + 8 + 4 * 4);
    if matrix * bytes + vectors <= SHARED.min(chip.shared_a_block as usize) {
        let shape = Shape::resident(systems, threads).shared(matrix * bytes + vectors);
        return (shape.class(class), 0);
    }
    let blocks = systems.min((chip.multiprocessors * blocks) as usize);
    (Shape::new(blocks as u32, threads).shared(vectors).class(class), blocks * matrix)
}

/// Warps that take systems of one sparse pattern, with numbers of `bytes` bytes, and how many numbers all of them keep;
/// none where a row of the factors is too long for shared memory.
pub(in crate::backend::cuda) fn batch_sparse(
    chip: Chip,
    systems: usize,
    (size, entries, longest): (usize, usize, usize),
    bytes: usize,
) -> Option<(Shape, usize)> {
    let warps = SPARSE_THREADS as usize / 32;
    let shared = |together: u32| warps * (longest * together as usize * bytes + 2 * size.next_multiple_of(8));
    let all = (chip.shared_a_multiprocessor / SPARSE_BLOCKS - chip.shared_reserved) as usize;
    let [several, one] = SPARSE_CLASSES;
    let together = if shared(several) <= all { several } else { one };
    if shared(together) > chip.shared_a_block as usize {
        return None;
    }
    // As the kernel says.
    let kept = (entries + 6 * size) * together as usize;
    let at_most =
        (SPARSE_ROOM / (kept * bytes * warps)).clamp(1, (chip.multiprocessors * SPARSE_BLOCKS) as usize);
    let blocks = systems.div_ceil(together as usize * warps).min(at_most);
    let shape = Shape::new(blocks as u32, SPARSE_THREADS).shared(shared(together));
    Some((shape.class(together), blocks * warps * kept))
}

/// One block of threads per system with these numbers of rows, of rows that can be eliminated, of entries, and of
/// entries of the longest row, and with numbers of `bytes` bytes; and whether matrices are copied to shared memory.
/// Systems with patterns of their own have 0 entries here. None if vectors don't fit in shared memory.
pub(in crate::backend::cuda) fn batch_krylov(
    chip: Chip,
    systems: usize,
    (size, gone, entries, longest): (usize, usize, usize, usize),
    bytes: usize,
) -> Option<(Shape, bool)> {
    // With complex numbers these units have not run on a device since unknowns are eliminated beforehand.
    if bytes > 8 {
        return None;
    }
    let fits = |unit: &Krylov| {
        let [threads, held] = [unit.threads, unit.held].map(|number| number as usize);
        let most = |rows: u32| rows as usize * threads;
        (held == 0 || longest <= held) && size - gone.min(most(unit.gone)) <= most(unit.kept)
    };
    let class = KRYLOV.iter().position(fits)?;
    let Krylov { threads, blocks, held, .. } = KRYLOV[class];
    // Sums of each warp lie there too.
    let sums = threads / 32 * 48 + 16;
    let blocks = blocks[usize::from(bytes > 8)];
    let all = (chip.shared_a_multiprocessor / blocks - chip.shared_reserved).min(chip.shared_a_block) - sums;
    let vectors = size * (2 * bytes + 16);
    let matrix = entries * (bytes + 2);
    if vectors > all as usize {
        return None;
    }
    let staged = held == 0 && entries > 0 && vectors + matrix <= all as usize;
    let shape = Shape::resident(systems, threads).shared(vectors + if staged { matrix } else { 0 });
    Some((shape.class(class as u32 + 1), staged))
}
