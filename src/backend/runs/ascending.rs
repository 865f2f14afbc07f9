//! Runs of sources whose values are fetched in the order in which they lie in memory.

use crate::backend::Backend;
use crate::error::{Error, Result};

/// Slots of a tile, one more than it fills at most.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA makes tiles
pub(crate) const SLOTS: usize = 1 << 13;
/// Sources that a tile starts runs of. A run has at most [`SLOTS`] less these.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) const LENGTH: usize = SLOTS - 256;

/// How codes are written.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) struct Form {
    /// Bits of how far a source lies behind the one before.
    pub(crate) gap_bits: &'static str,
    /// Groups of 512 codes that a tile has room for, and words of each.
    pub(crate) groups: usize,
    pub(crate) words: usize,
}

/// The forms, the narrower one first. It has room for no more codes than slots: where many sources lie far from each
/// other, the other takes fewer bytes and less work.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) const FORMS: [Form; 2] = [
    Form { gap_bits: "5", groups: SLOTS / 512, words: 18 * 16 },
    Form { gap_bits: "7", groups: SLOTS / 512 * 9 / 8, words: 20 * 16 },
];

/// Runs of sources in tiles of neighbouring runs ([`RunSums::ascend_runs`](super::RunSums::ascend_runs)): a tile's
/// sources ascend, each with the slot that its value takes in fast memory, where the runs lie one after another.
///
/// ```text
/// runs  0 3 6 | 1 4 7 | 2    ascending  0 1 2 3 4 6 7    slots  0 3 6 1 4 2 5
/// ```
///
/// Bytes: 2.3 or 2.9 a source, and an eighth of one where runs have more than one source.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA makes them
pub struct AscendingRuns<B: Backend> {
    pub(crate) form: Form,
    /// Of each source how far it lies behind the one before, and its slot, packed (`ascending.cuh`).
    pub(crate) codes: B::Vec<u32>,
    /// The source from which on each group counts.
    pub(crate) bases: B::Vec<u32>,
    /// A bit a slot: whether a run starts there. None where every run has one source.
    pub(crate) heads: Option<B::Vec<u32>>,
    /// Groups of each tile, and its slots above 16 bits.
    pub(crate) shapes: B::Vec<u32>,
    /// Runs before each tile, and all.
    pub(crate) before: B::Vec<u32>,
    /// Values that sources name.
    pub(crate) values: usize,
    pub(crate) runs: usize,
    /// Slots of a tile at most.
    pub(crate) slots: usize,
}

impl<B: Backend> AscendingRuns<B> {
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA sums by them
    pub(crate) fn check(&self, values: usize, runs: usize) -> Result<()> {
        Error::check_dimension("number of values", self.values, values)?;
        Error::check_dimension("number of runs", self.runs, runs)
    }
}
