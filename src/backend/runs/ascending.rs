//! Sums of runs whose values are fetched in the order of their addresses.

use crate::backend::Backend;
use crate::error::{Error, Result};

/// Slots of a tile, one more than it fills at most.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA makes tiles
pub(crate) const SLOTS: usize = 1 << 13;
/// Sources at which the runs of a tile start. A run has at most [`SLOTS`] minus this many.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) const LENGTH: usize = SLOTS - 256;

/// The encoding of codes.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) struct Form {
    /// Bits for the distance of a source from the one before.
    pub(crate) gap_bits: &'static str,
    /// The most groups of 512 codes of a tile, and words of each.
    pub(crate) groups: usize,
    pub(crate) words: usize,
}

/// The encodings, the narrower one first. It has no more codes than slots: if many sources are far from each other, the
/// other takes fewer bytes and less work.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) const FORMS: [Form; 2] = [
    Form { gap_bits: "5", groups: SLOTS / 512, words: 18 * 16 },
    Form { gap_bits: "7", groups: SLOTS / 512 * 9 / 8, words: 20 * 16 },
];

/// Runs of sources in tiles of neighbouring runs ([`RunSums::ascend_runs`](super::RunSums::ascend_runs)): the sources
/// of a tile are sorted, each with the slot of its value in fast memory, where the runs are stored one after another.
///
/// ```text
/// runs  0 3 6 | 1 4 7 | 2    ascending  0 1 2 3 4 6 7    slots  0 3 6 1 4 2 5
/// ```
///
/// It takes 2.3 or 2.9 bytes a source, and an eighth more if runs have more than one source.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA makes them
pub struct AscendingRuns<B: Backend> {
    pub(crate) form: Form,
    /// For each source its distance from the one before, and its slot, packed (`ascending.cuh`).
    pub(crate) codes: B::Vec<u32>,
    /// The source at which each group starts.
    pub(crate) bases: B::Vec<u32>,
    /// A bit for each slot that says whether a run starts there. None if every run has one source.
    pub(crate) heads: Option<B::Vec<u32>>,
    /// The groups of each tile, and its slots above 16 bits.
    pub(crate) shapes: B::Vec<u32>,
    /// The number of runs before each tile, and of all.
    pub(crate) before: B::Vec<u32>,
    /// The number of values to which sources refer.
    pub(crate) values: usize,
    pub(crate) runs: usize,
    /// The most slots of a tile.
    pub(crate) slots: usize,
}

impl<B: Backend> AscendingRuns<B> {
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA sums by them
    pub(crate) fn check(&self, values: usize, runs: usize) -> Result<()> {
        Error::check_dimension("number of values", self.values, values)?;
        Error::check_dimension("number of runs", self.runs, runs)
    }
}
