//! Constants for products of small matrices whose rows are sorted into bins by length (`csr_binned.cu`).

use super::grid::blocks;
use super::{Shape, Unit};
use crate::backend::RowExtent;

/// The maximum number of nonzeros per lane, and threads per block.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct BinnedShape {
    pub(in crate::backend::cuda) each: usize,
    pub(in crate::backend::cuda) threads: usize,
}

/// Blocks have few threads, because the finished warps of a block keep their place while its other warps still wait for
/// parts of a row or work on the longest part.
pub(in crate::backend::cuda) const BINNED: BinnedShape = BinnedShape { each: 8, threads: 128 };
/// Blocks that a multiprocessor should be able to hold if sums take 4 bytes: two more than the compiler would leave
/// registers for.
const BLOCKS: u32 = 10;
/// A matrix whose rows have very different lengths is binned if it has fewer nonzeros than this. The second number
/// applies if x is read in places that are scattered at random.
const NONZEROS: [usize; 2] = [1 << 22, 1 << 23];
/// The longest row that is binned. The block that adds up the sums of its parts has a thread for each part.
const LONGEST: u64 = (BINNED.each * BINNED.threads * BINNED.threads) as u64;

/// Returns whether bins are better than tiles of equal work, for rows of very different lengths.
pub(super) fn suits(extent: RowExtent, nonzeros: usize, scattered: bool) -> bool {
    nonzeros < NONZEROS[usize::from(scattered)] && extent.longest <= LONGEST
}

/// Returns the constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let blocks = if unit.type_of("SCALAR") == "f32" { BLOCKS } else { 1 };
    vec![("THREADS", BINNED.threads as u32), ("EACH", BINNED.each as u32), ("MIN_BLOCKS", blocks)]
}

/// A launch with `parts` blocks for parts of bins, followed by blocks for `warps` warps.
pub(in crate::backend::cuda) fn binned(parts: u32, warps: u32) -> Shape {
    let of_warps = (warps as usize).div_ceil(BINNED.threads / 32);
    Shape::new(blocks(parts as usize + of_warps), BINNED.threads as u32)
}
