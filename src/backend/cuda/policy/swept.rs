//! Constants of bands that are swept, and the shapes of their launches.

use super::grid::blocks;
use super::{Chip, Shape};
use crate::backend::cuda::compile::Unit;
use crate::backend::{SWEPT_BINS, SWEPT_ROWS, SWEPT_STEP};
use crate::scalar::{Element, Scalar};

/// Threads of a block, and where sums take 16 bytes: then a thread has twice as many entries of a step, and registers.
const THREADS: [u32; 2] = [SWEPT_STEP as u32 / 2, SWEPT_STEP as u32 / 4];
/// Steps of the matrix under way.
const AHEAD: u32 = 2;
/// Threads of a block that writes a band's rows.
const BACK_THREADS: u32 = 1024;
/// Threads of a block that hands a band's entries out to steps, lanes a row, and words in which it counts.
const SWEEP_THREADS: u32 = 1024;
const LANES: u32 = 8;
const COUNTERS: u32 = 8192;
/// Entries that a block writes at a time, which is as many as it numbers by 16 bits at most, and a row at least.
const TILE: u32 = 8 * SWEEP_THREADS;
/// Threads of a block that puts steps in order.
const SORT_THREADS: u32 = 512;
/// Steps of a band that there is room to note, beside one for each 2^14 columns and for each ROOM entries.
const NOTED: u32 = 96;
const ROOM: usize = 512;
/// Rows of a band at least: where there are few, not every multiprocessor gets one.
const LEAST: usize = 1 << 11;
/// Bytes of a sum at most, of real numbers and of complex ones: wide enough for vectors wider than the values.
const SUM: [usize; 2] = [8, 16];

/// Of the product, and of conversions.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "swept_fill.cu" => {
            vec![("LANES", LANES), ("THREADS", SWEEP_THREADS), ("TILE", TILE), ("ROOM", ROOM as u32)]
        }
        "swept_order.cu" => vec![("SORT_THREADS", SORT_THREADS), ("ROOM", ROOM as u32)],
        "swept_restore.cu" => vec![("BACK_THREADS", BACK_THREADS)],
        _ => {
            let wide = usize::from(unit.type_of("SCALAR") == Some("c64"));
            vec![("THREADS", THREADS[wide]), ("AHEAD", AHEAD)]
        }
    }
}

/// As few bands as have room for their sums in shared memory, but one for each multiprocessor, or two, three...: the more rows a band
/// has, the more of its entries share a sector of x.
pub(in crate::backend::cuda) fn band_height<V: Scalar>(chip: Chip, rows: usize) -> usize {
    let most = (chip.shared_a_block as usize / SUM[usize::from(V::COMPLEX)]).min(SWEPT_ROWS);
    let bands = rows.div_ceil(most).next_multiple_of(chip.multiprocessors as usize).max(1);
    rows.div_ceil(bands).max(LEAST)
}

/// A block a band.
pub(in crate::backend::cuda) fn swept<T: Element>(bands: usize, height: usize) -> Shape {
    let threads = THREADS[usize::from(size_of::<T>() > 8)];
    Shape::new(blocks(bands), threads).shared(height * size_of::<T>())
}

/// How `sweep` is launched: a block a band.
pub(in crate::backend::cuda) struct Sweep {
    pub(in crate::backend::cuda) shape: Shape,
    /// Words in which a block counts.
    pub(in crate::backend::cuda) counters: u32,
    /// Whether there is room for a tile of entries, which are written together then.
    pub(in crate::backend::cuda) by_tiles: bool,
    /// Whether a block goes on where counters are too few, in rounds.
    pub(in crate::backend::cuda) in_rounds: bool,
}

/// With counters for most matrices, and room for a tile where blocks would write at once all over the memory; where that was tried, with as many counters as were
/// `asked` for, or as there are.
pub(in crate::backend::cuda) fn sweep(chip: Chip, bands: usize, asked: Option<u32>) -> Sweep {
    // Two and a half words for each bin, and what the kernel declares. An entry of a tile has a place, a step and a number there.
    let (bins, declared, tile) = (10 * SWEPT_BINS, 2 << 10, 8 * TILE as usize);
    let room = (chip.shared_a_block as usize).saturating_sub(bins + declared);
    let counters = asked.unwrap_or(COUNTERS).min((room / 4) as u32);
    let (counted, in_rounds) = (4 * counters as usize, asked.is_some());
    let by_tiles = !in_rounds && bands >= chip.multiprocessors as usize && counted + tile <= room;
    let shared = bins + counted + if by_tiles { tile } else { 0 };
    Sweep { shape: Shape::new(blocks(bands), SWEEP_THREADS).shared(shared), counters, by_tiles, in_rounds }
}

/// Steps of a band that there is room to note, beside what its entries have.
pub(in crate::backend::cuda) fn steps_noted(columns: usize) -> u32 {
    NOTED + (columns >> 14) as u32
}

/// The same of all bands.
pub(in crate::backend::cuda) fn room_for_steps(nonzeros: usize, bands: usize, each: usize) -> usize {
    nonzeros / ROOM + bands * each + 1
}

/// Some blocks a band, and how many.
pub(in crate::backend::cuda) fn put_in_order<V: Element>(
    chip: Chip,
    bands: usize,
    steps: usize,
) -> (Shape, u32) {
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / SORT_THREADS)) as usize;
    let split = resident.div_ceil(bands).clamp(1, steps.div_ceil(bands).max(1));
    let shape = Shape::new(blocks(bands * split), SORT_THREADS).shared(SWEPT_STEP * size_of::<V>());
    (shape, split as u32)
}

/// A block a band, which keeps a word a row.
pub(in crate::backend::cuda) fn swept_to_csr(bands: usize, height: usize) -> Shape {
    Shape::new(blocks(bands), BACK_THREADS).shared(4 * height)
}
