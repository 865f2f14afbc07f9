//! Constants of bands that are swept, and the shapes of their launches.

use super::grid::blocks;
use super::{Chip, Shape};
use crate::backend::cuda::compile::Unit;
use crate::backend::{
    SWEPT_BINS, SWEPT_LONGEST, SWEPT_OF_ENTRY, SWEPT_ROWS, SWEPT_SHARE, SWEPT_SPREAD, SWEPT_STEP,
    swept_bin_shift, swept_row_bits,
};
use crate::scalar::{Element, Scalar};

/// Threads of a block, and where sums take 16 bytes: then a thread has twice as many entries of a step, and registers.
const THREADS: [u32; 2] = [SWEPT_STEP as u32 / 2, SWEPT_STEP as u32 / 4];
/// Steps of the matrix under way.
const AHEAD: u32 = 2;
/// The class of bands of no more rows than a block may have threads, which then has a thread a row, and steps of the
/// matrix under way there.
pub(in crate::backend::cuda) const NARROW_BANDS: u32 = 1;
const MOST_THREADS: u32 = 1024;
const NARROW_AHEAD: u32 = 4;
/// Threads of a block that writes rows of a band.
const BACK_THREADS: u32 = 1024;
/// Threads of a block that hands a band's entries out to steps, and entries at a time, which it numbers by 16 bits at
/// most.
const SWEEP_THREADS: u32 = 1024;
const TILE: u32 = 8192;
/// Words of a block for counting and for a tile; what is left of shared memory is the first-level cache's.
const COUNTERS: u32 = 28672;
/// Threads of a block that puts steps in order, blocks of a multiprocessor, and keys of a bin that are shared out
/// again.
const SORT_THREADS: u32 = 256;
const SORT_RESIDENT: u32 = 4;
const MANY: u32 = 24;
/// Entries of a step that a warp puts in order, and threads of a block of such warps.
pub(in crate::backend::cuda) const SWEPT_FEW: u32 = 256;
const FEW_THREADS: u32 = 256;
/// Rows of a band at least: where there are few, not every multiprocessor gets one.
const LEAST: usize = 32;
/// Bytes of a sum at most, of real numbers and of complex ones: wide enough for vectors wider than the values.
const SUM: [usize; 2] = [8, 16];

/// Of the product, and of conversions.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "swept_fill.cu" => vec![
            ("STEP", SWEPT_STEP as u32),
            ("BINS", SWEPT_BINS as u32),
            ("SHARE", SWEPT_SHARE as u32),
            ("OF_ENTRY", SWEPT_OF_ENTRY as u32),
            ("LONGEST", SWEPT_LONGEST as u32),
            ("THREADS", SWEEP_THREADS),
            ("TILE", TILE),
            ("SPREAD", SWEPT_SPREAD as u32),
        ],
        "swept_order.cu" => vec![
            ("STEP", SWEPT_STEP as u32),
            ("FEW", SWEPT_FEW),
            ("SORT_THREADS", SORT_THREADS),
            ("SORT_RESIDENT", SORT_RESIDENT),
            ("MANY", MANY),
            ("FEW_THREADS", FEW_THREADS),
        ],
        "swept_restore.cu" => vec![("STEP", SWEPT_STEP as u32), ("BACK_THREADS", BACK_THREADS)],
        _ => {
            let threads = THREADS[usize::from(unit.type_of("SCALAR") == "c64")];
            let narrow = unit.size_class() == NARROW_BANDS;
            let [threads, items, ahead] = if narrow {
                [MOST_THREADS, 1, NARROW_AHEAD]
            } else {
                [threads, SWEPT_STEP as u32 / threads, AHEAD]
            };
            vec![("THREADS", threads), ("ITEMS", items), ("AHEAD", ahead)]
        }
    }
}

/// As few bands as have room for their sums in shared memory, but one for each multiprocessor, or two, three...: the
/// more rows a band has, the more of its entries share a sector of x.
pub(in crate::backend::cuda) fn band_height<V: Scalar>(chip: Chip, rows: usize) -> usize {
    let most = (chip.shared_a_block as usize / SUM[usize::from(V::COMPLEX)]).min(SWEPT_ROWS);
    let bands = rows.div_ceil(most).next_multiple_of(chip.multiprocessors as usize).max(1);
    rows.div_ceil(bands).max(LEAST)
}

/// A block a band.
pub(in crate::backend::cuda) fn swept<T: Element>(bands: usize, height: usize) -> Shape {
    let shape = if height <= MOST_THREADS as usize {
        Shape::new(blocks(bands), (height as u32).next_multiple_of(32)).class(NARROW_BANDS)
    } else {
        Shape::new(blocks(bands), THREADS[usize::from(size_of::<T>() > 8)])
    };
    shape.shared(height * size_of::<T>())
}

/// How `sweep` is launched, a block a band, and words in which a block counts, and puts a tile of entries in order
/// where these are enough.
pub(in crate::backend::cuda) fn sweep(chip: Chip, bands: usize) -> (Shape, u32) {
    // Two and a half words for each bin, a short number for each entry of a tile, and what the kernel declares.
    let (always, declared) = (10 * SWEPT_BINS + 2 * TILE as usize, 2 << 10);
    let counters = COUNTERS.min(chip.shared_a_block.saturating_sub((always + declared) as u32) / 4);
    (Shape::new(blocks(bands), SWEEP_THREADS).shared(always + 4 * counters as usize), counters)
}

/// Steps that there is room to note: what bands ask for (`most_steps` in `swept_chunks.cuh`), where the longest rows of
/// all bands do not come to too much.
pub(in crate::backend::cuda) fn room_for_notes(
    nonzeros: usize,
    bands: usize,
    height: usize,
    columns: usize,
) -> usize {
    let (window, reach) = (SWEPT_BINS << swept_bin_shift(columns), 1 << (32 - swept_row_bits(height)));
    let a_band = columns.div_ceil(window) * (window / (reach / 8 * 3) + 2);
    nonzeros / 512 + bands * a_band + (nonzeros / 8).min(1 << 16).max(nonzeros / 128)
}

/// A warp a step.
pub(in crate::backend::cuda) fn put_few_in_order(steps: usize) -> Shape {
    Shape::new(blocks(steps.div_ceil(FEW_THREADS as usize / 32)), FEW_THREADS)
}

/// Blocks that take step after step of those that are not a warp's.
pub(in crate::backend::cuda) fn put_in_order<V: Element>(chip: Chip, steps: usize) -> Shape {
    let blocks_each = SORT_RESIDENT.min(chip.threads_per_multiprocessor / SORT_THREADS);
    let resident = (chip.multiprocessors * blocks_each) as usize;
    Shape::new(blocks(steps.min(resident)), SORT_THREADS).shared(SWEPT_STEP * size_of::<V>())
}

/// Blocks of a band that take pieces of it, as many as a band that is a quarter larger than the mean has; what entries
/// and rows of a piece take of shared memory at most, but for its last row, and what there is.
pub(in crate::backend::cuda) fn swept_to_csr<V: Element>(
    chip: Chip,
    nonzeros: usize,
    bands: usize,
    height: usize,
) -> (Shape, u32, u32, u32) {
    // But for what the kernel declares: a list of steps, two words each.
    let room = (chip.shared_a_block as usize - 4 * BACK_THREADS as usize - (1 << 10)) / 16 * 16;
    let most = room - room / 16;
    let mean = nonzeros.div_ceil(bands.max(1)) * (4 + size_of::<V>()) + 8 * height;
    let split = (mean + mean / 4).div_ceil(most).max(1);
    let shape = Shape::new(blocks(bands * split), BACK_THREADS).shared(room);
    (shape, split as u32, most as u32, room as u32)
}
