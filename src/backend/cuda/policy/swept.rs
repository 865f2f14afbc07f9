//! Constants of bands that are swept, and the shapes of their launches.

use super::grid::blocks;
use super::{Chip, Shape};
use crate::backend::cuda::compile::Unit;
use crate::backend::{SWEPT_REACH, SWEPT_STEP};
use crate::scalar::{Element, Scalar};

/// Threads of a block, and where sums take 16 bytes: then a thread has twice as many entries of a step, and registers.
const THREADS: [u32; 2] = [SWEPT_STEP as u32 / 2, SWEPT_STEP as u32 / 4];
/// Steps of the matrix under way.
const AHEAD: u32 = 2;
/// Threads of a block that writes a band's rows.
pub(super) const BACK_THREADS: u32 = 1024;
/// Rows of a band at least: where there are few, not every multiprocessor gets one.
const LEAST: usize = 1 << 11;
/// Bytes of a sum at most, of real numbers and of complex ones: wide enough for vectors wider than the values.
const SUM: [usize; 2] = [8, 16];

/// Of the product.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let wide = usize::from(unit.type_of("SCALAR") == Some("c64"));
    vec![("THREADS", THREADS[wide]), ("AHEAD", AHEAD)]
}

/// As few bands as have room for their sums in shared memory, but one for each multiprocessor, or two, three...: the more rows a band
/// has, the more of its entries share a sector of x.
pub(in crate::backend::cuda) fn band_height<V: Scalar>(chip: Chip, rows: usize) -> usize {
    let most = (chip.shared_a_block as usize / SUM[usize::from(V::COMPLEX)]).min(SWEPT_REACH);
    let bands = rows.div_ceil(most).next_multiple_of(chip.multiprocessors as usize).max(1);
    rows.div_ceil(bands).max(LEAST)
}

/// A block a band.
pub(in crate::backend::cuda) fn swept<T: Element>(bands: usize, height: usize) -> Shape {
    let threads = THREADS[usize::from(size_of::<T>() > 8)];
    Shape::new(blocks(bands), threads).shared(height * size_of::<T>())
}

/// A warp a band, which keeps a word a row.
pub(in crate::backend::cuda) fn hand_out(bands: usize, height: usize) -> Shape {
    Shape::new(blocks(bands), 32).shared(4 * height)
}

/// A block a band, which keeps a word a row.
pub(in crate::backend::cuda) fn swept_to_csr(bands: usize, height: usize) -> Shape {
    Shape::new(blocks(bands), BACK_THREADS).shared(4 * height)
}
