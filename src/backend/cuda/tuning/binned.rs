//! Rows of small matrices in bins of their lengths (`csr_binned.cu`).

use super::grid::blocks;
use super::{Shape, Unit};
use crate::backend::RowExtent;

/// How rows are dealt: nonzeros of a lane at most, and threads of a block.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct BinnedShape {
    pub(in crate::backend::cuda) each: usize,
    pub(in crate::backend::cuda) threads: usize,
}

/// Few threads a block: where some wait for others' pieces, or for the longest part, fewer places are taken by warps
/// that are done.
pub(in crate::backend::cuda) const BINNED: BinnedShape = BinnedShape { each: 8, threads: 128 };
/// Blocks that a multiprocessor shall hold where sums take 4 bytes: two more than the compiler would leave room for.
const BLOCKS: u32 = 10;
/// Nonzeros below which a matrix of unlike rows is dealt in bins, and where x is read all over the vector.
const NONZEROS: [usize; 2] = [1 << 22, 1 << 23];
/// And the longest row: so many that each thread of the block that adds up its pieces takes one.
const LONGEST: u64 = (BINNED.each * BINNED.threads * BINNED.threads) as u64;

/// Whether rows that are not alike are better dealt in bins than in tiles of equal work.
pub(super) fn suits(extent: RowExtent, nonzeros: usize, scattered: bool) -> bool {
    nonzeros < NONZEROS[usize::from(scattered)] && extent.longest <= LONGEST
}

/// The constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let blocks = if unit.type_of("SCALAR") == "f32" { BLOCKS } else { 1 };
    vec![("THREADS", BINNED.threads as u32), ("EACH", BINNED.each as u32), ("MIN_BLOCKS", blocks)]
}

/// So many parts of blocks, a block each, and so many warps behind them.
pub(in crate::backend::cuda) fn binned(parts: u32, warps: u32) -> Shape {
    let of_warps = (warps as usize).div_ceil(BINNED.threads / 32);
    Shape::new(blocks(parts as usize + of_warps), BINNED.threads as u32)
}
