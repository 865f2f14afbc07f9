//! Constants and launch shapes of factorisations in dense fronts.

use super::{Shape, Unit};
use crate::backend::cuda::chip::Chip;

/// Threads of a block for large fronts. The tiles of products are divided among them.
const THREADS: u32 = 256;
/// The maximum number of rows in a front that one block of threads eliminates in shared memory, by class, and the
/// threads of such a block. For complex doubles the last class would not fit.
const SMALL: [usize; 3] = [16, 32, 64];
const SMALL_THREADS: [u32; 3] = [32, 64, 256];
/// Threads of a block in solves: for small fronts of all classes but the last; for other fronts if there are several
/// right-hand sides, whose blocks fill the chip; and for these if there is one, where 256 threads save a tenth.
pub(in crate::backend::cuda) const FRONT_SOLVES: [u32; 3] = [32, 128, 256];
/// The classes of the units for small fronts.
pub(in crate::backend::cuda) const FRONT_CLASSES: [u32; 3] = [16, 32, 64];
/// The number of blocks of pivots whose triangles are inverted together for solves with large fronts; a power of two.
/// With all blocks of a front, the top of a cube would take one step instead of eight, but rounding errors would grow
/// with the condition of larger triangles.
pub(in crate::backend::cuda) const FRONT_GROUP: usize = 8;

/// Returns the number of right-hand sides for which a block of threads loads an entry of a large front once.
fn together(bytes: usize) -> usize {
    if bytes > 8 { 4 } else { 8 }
}

/// Returns the maximum number of rows of small fronts, by class, for numbers of `bytes` bytes.
pub(in crate::backend::cuda) fn small_fronts(bytes: usize) -> &'static [usize] {
    if bytes > 8 { &SMALL[..2] } else { &SMALL }
}

/// Returns whether all kernels of a file wait for the previous launch themselves: those of solves, with many short
/// launches one after another.
pub(super) fn starts_early(source: &str) -> bool {
    matches!(source, "fronts_solve.cu" | "fronts_solve_large.cu")
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = unit.size_class();
    match unit.source() {
        "fronts_small.cu" => {
            let known = SMALL.iter().position(|&rows| rows == class as usize).unwrap_or(0);
            vec![("ROWS", SMALL[known] as u32), ("THREADS", SMALL_THREADS[known])]
        }
        "fronts_solve.cu" => vec![("THREADS", class)],
        "fronts_solve_large.cu" => vec![
            ("THREADS", THREADS),
            ("GROUP", FRONT_GROUP as u32),
            ("VECTORS", together(unit.scalar_bytes()) as u32),
        ],
        _ => vec![("THREADS", THREADS), ("PIVOTS", if unit.scalar_bytes() > 8 { 32 } else { 64 })],
    }
}

/// Returns a launch with a block of threads for each of `fronts` small fronts of a class, with numbers of `bytes`
/// bytes. Shared memory has space for the front, and for its V, which takes at most a quarter of that.
pub(in crate::backend::cuda) fn fronts_small(bytes: usize, class: usize, fronts: usize) -> Shape {
    let rows = SMALL[class];
    Shape::new(fronts as u32, SMALL_THREADS[class]).class(rows as u32).shared(rows * rows * 5 / 4 * bytes)
}

/// Returns a launch with a block of threads for each of `tiles` tiles of large fronts.
pub(in crate::backend::cuda) fn fronts_large(tiles: usize) -> Shape {
    Shape::new(tiles as u32, THREADS)
}

/// Returns a launch with a block of threads for each of `parts` parts of large fronts, and for each group of vectors
/// that are solved for together.
pub(in crate::backend::cuda) fn fronts_by_parts(bytes: usize, parts: usize, vectors: usize) -> Shape {
    Shape::new((parts * vectors.div_ceil(together(bytes))) as u32, THREADS)
}

/// Returns the launch for the entries of a matrix.
pub(in crate::backend::cuda) fn front_entries(chip: Chip, bytes: usize, entries: usize) -> Shape {
    let class = small_fronts(bytes).len() - 1;
    let shape = super::elementwise(chip, entries);
    let threads = SMALL_THREADS[class];
    Shape::new(shape.blocks * THREADS / threads, threads).class(SMALL[class] as u32)
}

/// Returns the launch for the entries of vectors.
pub(in crate::backend::cuda) fn front_vectors(chip: Chip, entries: usize) -> Shape {
    super::elementwise(chip, entries).threads(THREADS)
}

#[cfg(test)]
mod tests {
    use super::starts_early;
    use crate::backend::cuda::compile::SOURCES;

    #[test]
    fn every_kernel_of_a_solve_waits_for_the_previous_launch() {
        for (name, text) in SOURCES.iter().filter(|(name, _)| starts_early(name)) {
            for kernel in text.split("__global__").skip(1) {
                assert!(
                    kernel.contains("after_predecessors();") || kernel.contains("add_up("),
                    "{name}: {kernel}"
                );
            }
        }
    }
}
