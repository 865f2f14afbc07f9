//! Constants and launch shapes of linear updates with their scalar programs, and of steps with a basis.

use super::{PARTIALS, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;

/// Threads per block of a linear update, with or without inner products.
const UPDATE_THREADS: u32 = 256;
/// Blocks per multiprocessor with up to four vectors, and with more vectors, which take more registers.
const UPDATE_BLOCKS: [u32; 2] = [3, 2];

/// Threads of the block that runs a program.
const SCALARS_THREADS: u32 = 64;

/// Threads per block of products with a basis, with one block per multiprocessor: fewer partial sums take less time to
/// add up at the end.
const BASIS_SUM_THREADS: u32 = 512;
/// Threads per block that adds up vectors of a basis, and blocks per multiprocessor.
const BASIS_THREADS: u32 = 256;
const BASIS_BLOCKS: u32 = 3;
/// Threads per block that updates w and multiplies the basis by it, and the number of blocks for which a multiprocessor
/// has registers.
const PROJECT_THREADS: u32 = 128;
const PROJECT_BLOCKS: u32 = 3;
/// Maximum number of bytes of a row of the basis that a thread keeps in registers.
const PROJECT_BYTES: usize = 256;
/// Maximum number of vectors of each unit of `basis_project.cu`. Its loops have this length, whatever the number of
/// vectors is.
const PROJECT_VECTORS: [u32; 3] = [8, 16, 32];
/// Maximum number of vectors (a slice) that a block multiplies by w: shared memory has a place for each vector and
/// warp.
const SLICE: u32 = 64;
/// Elements of h in shared memory at a time.
const FACTORS: u32 = 256;
/// Maximum number of slices of a launch; each has a counter.
const MOST_SLICES: usize = 32;
/// Maximum number of vectors of a launch.
pub(in crate::backend::cuda) const MOST_VECTORS: usize = MOST_SLICES * SLICE as usize;
/// The class of units for short vectors, where the other class would have less than one tile for each multiprocessor: a
/// thread has one element, and more vectors at a time.
pub(in crate::backend::cuda) const FEW_ROWS: u32 = 1;

/// Constants of a pair of Arnoldi steps: threads per block; blocks per multiprocessor that multiply the basis, each of
/// which writes partial sums, and that update it; bytes of a vector per thread in a tile in shared memory, and in
/// registers; vectors of the basis that are read at a time.
const PAIR_THREADS: u32 = 256;
const PAIR_SUM_BLOCKS: u32 = 2;
const PAIR_BLOCKS: u32 = 3;
const PAIR_ROW_BYTES: u32 = 16;
const PAIR_ITEM_BYTES: u32 = 32;
const PAIR_AT_ONCE: u32 = 4;

/// Rotations in shared memory at a time.
const STEPS: u32 = 128;
/// Number of unknowns of a triangular system that are solved at a time, one per thread, and of columns whose entries a
/// thread has in flight.
const SOLVE_THREADS: u32 = 256;
const SOLVE_AT_ONCE: u32 = 8;

/// Returns the constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "linear_update.cu" => {
            let count = |name| unit.type_of(name).parse::<usize>().unwrap_or(usize::MAX);
            let (blocks, unroll) = update_room(count("INPUTS") + count("OUTPUTS"));
            vec![("THREADS", UPDATE_THREADS), ("MIN_BLOCKS", blocks), ("UNROLL", unroll)]
        }
        "scalars.cu" => vec![("THREADS", SCALARS_THREADS)],
        "hessenberg.cu" => {
            vec![("STEPS", STEPS), ("THREADS", SOLVE_THREADS), ("AT_ONCE", SOLVE_AT_ONCE)]
        }
        "pair_scalars.cu" => Vec::new(),
        "pair_products.cu" => vec![
            ("THREADS", PAIR_THREADS),
            ("BLOCKS", PAIR_SUM_BLOCKS),
            ("ROWS", PAIR_ROW_BYTES / unit.scalar_bytes() as u32),
        ],
        "pair_update.cu" => vec![
            ("THREADS", PAIR_THREADS),
            ("BLOCKS", PAIR_BLOCKS),
            ("ITEMS", PAIR_ITEM_BYTES / unit.scalar_bytes() as u32),
            ("AT_ONCE", PAIR_AT_ONCE),
        ],
        "basis_project.cu" => vec![("THREADS", PROJECT_THREADS), ("VECTORS", unit.size_class().max(1))],
        _ => {
            let (items, at_once) = basis_items(unit.scalar_bytes(), unit.size_class());
            vec![
                ("THREADS", BASIS_THREADS),
                ("SUM_THREADS", BASIS_SUM_THREADS),
                ("ITEMS", items),
                ("AT_ONCE", at_once),
                ("SLICE", SLICE),
                ("FACTORS", FACTORS),
            ]
        }
    }
}

/// Returns the blocks per multiprocessor of a linear update of this number of vectors, and the loads of sixteen bytes
/// in flight per thread and vector.
fn update_room(vectors: usize) -> (u32, u32) {
    let unroll = match vectors {
        0..=2 => 4,
        3..=4 => 2,
        _ => 1,
    };
    (UPDATE_BLOCKS[usize::from(vectors > 4)], unroll)
}

/// Returns the number of elements of w per thread, and the number of vectors of the basis that it reads at a time: 128
/// bytes of these together if there are enough elements.
fn basis_items(bytes: usize, class: u32) -> (u32, u32) {
    match (bytes, class) {
        (4, 0) => (8, 4),
        (8, 0) => (4, 4),
        (_, 0) => (2, 4),
        (16, _) => (1, 8),
        _ => (1, 16),
    }
}

/// Returns the launch of a linear update with these numbers of inputs, outputs and inner products, followed by
/// `program`. If work follows after all blocks, blocks loop with a grid stride: the fewer there are, the sooner the
/// last one is known.
pub(in crate::backend::cuda) fn linear_update(
    chip: Chip,
    n: usize,
    element_bytes: usize,
    [inputs, outputs, products]: [usize; 3],
    program: bool,
) -> Shape {
    const COUNTS: [&str; 5] = ["0", "1", "2", "3", "4"];
    let (blocks, unroll) = update_room(inputs + outputs);
    let tiles = n.div_ceil((UPDATE_THREADS * unroll) as usize * (16 / element_bytes));
    let most = if products > 0 || program {
        ((blocks * chip.multiprocessors) as usize).min(PARTIALS / products.max(1))
    } else {
        i32::MAX as usize
    };
    Shape::new(tiles.clamp(1, most) as u32, UPDATE_THREADS)
        .variant("INPUTS", COUNTS[inputs])
        .variant("OUTPUTS", COUNTS[outputs])
        .variant("PRODUCTS", COUNTS[products])
}

/// Returns the launch of a scalar program without an update.
pub(in crate::backend::cuda) fn scalars() -> Shape {
    Shape::new(1, SCALARS_THREADS)
}

/// How products with a basis are divided among blocks: `rows` blocks for each `slice` of vectors.
pub(in crate::backend::cuda) struct BasisProducts {
    pub(in crate::backend::cuda) shape: Shape,
    pub(in crate::backend::cuda) slice: u32,
    pub(in crate::backend::cuda) rows: u32,
}

/// Returns the launch of products with up to [`MOST_VECTORS`] vectors of n elements. Long vectors have one slice if
/// possible, so that w is read once; short vectors have enough slices to keep all multiprocessors busy. This depends
/// only on sizes and the chip.
pub(in crate::backend::cuda) fn basis_products(
    chip: Chip,
    count: usize,
    n: usize,
    bytes: usize,
) -> BasisProducts {
    let (class, tiles) = basis_tiles(chip, n, bytes, BASIS_SUM_THREADS, 1);
    let at_once = basis_items(bytes, class).1 as usize;
    let resident = chip.multiprocessors as usize;
    let least = count.div_ceil(SLICE as usize);
    let most = count.div_ceil(at_once).min(MOST_SLICES);
    let slice = count.div_ceil((resident / tiles).clamp(least, most.max(least)));
    let slices = count.div_ceil(slice);
    let rows = tiles.min((resident / slices).max(1));
    let shape = Shape::new((slices * rows) as u32, BASIS_SUM_THREADS).class(class);
    BasisProducts { shape, slice: slice as u32, rows: rows as u32 }
}

/// Returns the launch of an update of w with the products of the next pass; `None` if there are more vectors than a
/// thread has registers for. Each block processes one piece of w after another.
pub(in crate::backend::cuda) fn basis_project(
    chip: Chip,
    count: usize,
    n: usize,
    bytes: usize,
) -> Option<Shape> {
    let class = project_classes(bytes).find(|&vectors| count <= vectors as usize)?;
    let most = (PROJECT_BLOCKS * chip.multiprocessors) as usize;
    let blocks = n.div_ceil(PROJECT_THREADS as usize).clamp(1, most);
    Some(Shape::new(blocks as u32, PROJECT_THREADS).class(class))
}

/// Returns the classes of units of `basis_project.cu` for elements of this number of bytes, which are their maximum
/// numbers of vectors.
pub(in crate::backend::cuda) fn project_classes(bytes: usize) -> impl Iterator<Item = u32> {
    PROJECT_VECTORS.into_iter().filter(move |&vectors| vectors as usize * bytes <= PROJECT_BYTES)
}

/// Returns a launch whose blocks loop over tiles of w with a grid stride.
pub(in crate::backend::cuda) fn basis_update(chip: Chip, n: usize, bytes: usize) -> Shape {
    let (class, tiles) = basis_tiles(chip, n, bytes, BASIS_THREADS, BASIS_BLOCKS);
    let most = ((BASIS_BLOCKS * chip.multiprocessors) as usize).min(PARTIALS);
    Shape::new(tiles.min(most) as u32, BASIS_THREADS).class(class)
}

/// Returns the launch of the products of a pair of Arnoldi steps. Blocks loop over tiles of rows with a grid stride.
pub(in crate::backend::cuda) fn pair_products(chip: Chip, n: usize, bytes: usize) -> Shape {
    pair_shape(chip, n, PAIR_ROW_BYTES as usize / bytes, PAIR_SUM_BLOCKS)
}

/// Returns the launch that computes the next vectors of a pair of Arnoldi steps, or a linear combination of the basis.
pub(in crate::backend::cuda) fn pair_update(chip: Chip, n: usize, bytes: usize) -> Shape {
    pair_shape(chip, n, PAIR_ITEM_BYTES as usize / bytes, PAIR_BLOCKS)
}

fn pair_shape(chip: Chip, n: usize, rows: usize, blocks: u32) -> Shape {
    let tiles = n.div_ceil(PAIR_THREADS as usize * rows).max(1);
    let most = ((blocks * chip.multiprocessors) as usize).min(PARTIALS / 2);
    Shape::new(tiles.min(most) as u32, PAIR_THREADS)
}

/// Returns the class of the unit for vectors of n elements, and the number of tiles, at least one.
fn basis_tiles(chip: Chip, n: usize, bytes: usize, threads: u32, blocks: u32) -> (u32, usize) {
    let tiles = |class| n.div_ceil((threads * basis_items(bytes, class).0) as usize).max(1);
    let class = if tiles(0) < (blocks * chip.multiprocessors) as usize { FEW_ROWS } else { 0 };
    (class, tiles(class))
}

/// Returns the launch of a step of the Hessenberg matrix, with one warp.
pub(in crate::backend::cuda) fn hessenberg() -> Shape {
    Shape::new(1, 32)
}

/// Returns the launch of a triangular solve, with one block.
pub(in crate::backend::cuda) fn triangular_solve() -> Shape {
    Shape::new(1, SOLVE_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every vector is in a slice, the slices fit shared memory and counters, and long vectors have as few slices as
    /// possible.
    #[test]
    fn slices_cover_the_basis() {
        let chip = Chip {
            capability: (9, 0),
            cluster: 1,
            multiprocessors: 132,
            threads_per_multiprocessor: 2048,
            shared_a_block: 232_448,
            shared_a_multiprocessor: 233_472,
            shared_reserved: 1024,
        };
        for count in [1, 2, 7, 8, 9, 31, 64, 65, 257, MOST_VECTORS] {
            for n in [0, 1, 1000, 10_000, 262_144, 1 << 24] {
                for bytes in [4, 8, 16] {
                    let BasisProducts { shape, slice, rows } = basis_products(chip, count, n, bytes);
                    let slices = count.div_ceil(slice as usize);
                    assert!((1..=SLICE).contains(&slice) && slices <= MOST_SLICES && rows > 0);
                    assert_eq!(shape.blocks as usize, slices * rows as usize);
                    if n == 1 << 24 {
                        assert_eq!(slices, count.div_ceil(SLICE as usize), "{count}");
                    }
                }
            }
        }
        assert_eq!(basis_products(chip, 30, 1 << 24, 8).rows, 132);
        // Two vectors at a time would leave three of four multiprocessors idle.
        assert_eq!(basis_products(chip, 30, 10_000, 8).shape.blocks, 40);
    }
}
