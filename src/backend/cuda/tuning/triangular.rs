//! Constants and launch shapes of incomplete factorisations and triangular solves.

use super::{ONE_CLASS, Shape, Unit};
use crate::backend::cuda::chip::Chip;

const THREADS: u32 = 256;
/// Lanes per row of a triangular matrix, by class.
const LANES: [u32; 3] = [1, 4, 32];
/// The classes of a triangular solve. Its first pass has the class that all passes over rows have.
pub(in crate::backend::cuda) const TRIANGULAR: [u32; 3] = [ONE_CLASS, 2, 3];
/// Maximum mean number of entries per row, for each class but the last.
const MEANS: [usize; 2] = [8, 64];
/// Number of levels whose rows are in flight at the same time. Rows of later levels would only load again and again
/// unknowns that have not been computed.
const LEVELS_AHEAD: usize = 8;

/// Returns the constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = TRIANGULAR.iter().position(|&class| class == unit.size_class());
    match (unit.source(), class) {
        ("triangular.cu", Some(class)) => vec![("THREADS", THREADS), ("LANES", LANES[class])],
        _ => vec![("THREADS", THREADS)],
    }
}

/// Returns the launch of a triangular solve with this number of rows, entries and levels. Blocks need not be resident
/// at the same time, because rows are taken in order.
pub(in crate::backend::cuda) fn triangular(chip: Chip, rows: usize, entries: usize, levels: usize) -> Shape {
    let mean = entries / rows.max(1);
    let class = MEANS.iter().filter(|&&most| mean > most).count();
    let shape = rows_in_turn(chip, rows, LANES[class]);
    let ahead = LEVELS_AHEAD * rows / levels.max(1) * LANES[class] as usize;
    let wanted = ahead.div_ceil(THREADS as usize).max(chip.multiprocessors as usize);
    shape.blocks(wanted.min(shape.blocks as usize)).class(TRIANGULAR[class])
}

/// Returns a launch with `lanes` lanes per row, where rows are taken in order, and with at most as many blocks as are
/// resident.
pub(in crate::backend::cuda) fn rows_in_turn(chip: Chip, rows: usize, lanes: u32) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS);
    let needed = rows.div_ceil((THREADS / lanes) as usize);
    Shape::new(needed.min(resident as usize) as u32, THREADS).class(ONE_CLASS)
}
