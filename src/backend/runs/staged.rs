//! Sums of runs whose values are staged in fast memory in whole pieces.

use crate::backend::{Backend, Primitives};
use crate::error::{Error, Result};

/// The number of slots in a part. Each part is summed separately.
pub(crate) const PART: usize = 256;
/// The number of parts that share a list of pieces.
pub(crate) const BLOCK_PARTS: usize = 4;
/// The number of elements in a piece.
pub(crate) const PIECE: usize = 16;
/// The maximum number of pieces in a list.
pub(crate) const MOST_PIECES: usize = 128;
/// The highest bit of a code. It marks the start of a run.
pub(crate) const CODE_HEAD: u16 = 1 << 11;
/// The number of codes that are packed together, and the number of words that they take. The words of a part's lanes
/// are interleaved.
const LANE: usize = 8;
const WORDS: usize = 3;
/// The number of words for the codes of a part.
pub(crate) const PART_WORDS: usize = PART / LANE * WORDS;

/// Packs the codes of a part into words: for each lane a word of four low bytes, another four, and a word with the
/// eight upper halves.
pub(crate) fn pack(codes: &[u16; PART], words: &mut [u32]) {
    words.fill(0);
    for (slot, &code) in codes.iter().enumerate() {
        let (lane, k, code) = (slot / LANE, slot % LANE, u32::from(code));
        words[k / 4 * (PART / LANE) + lane] |= (code & 0xff) << (8 * (k % 4));
        words[2 * (PART / LANE) + lane] |= code >> 8 << (4 * k);
    }
}

/// The code of a slot of a part.
pub(crate) fn code(words: &[u32], slot: usize) -> u16 {
    let (lane, k) = (slot / LANE, slot % LANE);
    let low = words[k / 4 * (PART / LANE) + lane] >> (8 * (k % 4)) & 0xff;
    (low | (words[2 * (PART / LANE) + lane] >> (4 * k) & 0xf) << 8) as u16
}

/// Runs of sources ([`RunSums::stage_runs`](super::RunSums::stage_runs)) in parts of 256 slots. Four parts share a list
/// of pieces, which have 16 elements each. A code is the index of a piece in the list times 16, plus the position in
/// the piece; its highest bit says whether a run starts. No run crosses parts. Slots after the last run of a part are
/// empty runs.
///
/// ```text
/// runs     0 17 | 1 16 | 2        pieces of 4   0 4        codes  0* 5 | 1* 4 | 2* | * ...        (* highest bit)
/// ```
///
/// Codes have 12 bits and are packed.
///
/// A source takes 1.5 bytes, and up to 0.5 bytes more for the lists; only the used part of a list is read.
#[derive(Debug)]
pub struct StagedRuns<B: Backend> {
    pub(crate) codes: B::Vec<u32>,
    /// The lists, with space for 128 pieces each.
    pub(crate) pieces: B::Vec<u32>,
    /// The number of pieces in each list.
    pub(crate) counts: B::Vec<u32>,
    /// The number of runs before each part, and the number of all runs at the end.
    pub(crate) before: B::Vec<u32>,
    /// The number of values; sources are below it.
    pub(crate) values: usize,
    pub(crate) runs: usize,
    /// True if each run has only one source.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))] // the host sums both forms in the same way
    pub(crate) single: bool,
    /// The number of pieces in the longest list.
    pub(crate) most: usize,
}

/// Returns the number of sources per part, and the number of parts, a multiple of [`BLOCK_PARTS`]. A run belongs to the
/// part with its first source, so a part also needs slots for the rest of the longest run; it has [`PART`] slots in
/// all. `None` if runs are so long that many slots would be unused.
pub(crate) fn parts(sources: usize, longest: usize) -> Option<(usize, usize)> {
    let length = PART + 1 - longest.clamp(1, PART);
    (length >= PART / 4 * 3).then(|| (length, sources.div_ceil(length).next_multiple_of(BLOCK_PARTS)))
}

impl<B: Primitives> StagedRuns<B> {
    /// Allocates memory for this number of values, runs and parts. `single` is true if each run has one source.
    pub(crate) fn room(backend: &B, values: usize, runs: usize, single: bool, parts: usize) -> Result<Self> {
        let lists = parts / BLOCK_PARTS;
        Ok(Self {
            codes: backend.buffer(parts * PART_WORDS)?,
            pieces: backend.buffer(lists * MOST_PIECES)?,
            counts: backend.buffer(lists)?,
            before: backend.buffer(parts + 1)?,
            values,
            runs,
            single,
            most: 0,
        })
    }

    pub(crate) fn check(&self, values: usize, runs: usize) -> Result<()> {
        Error::check_dimension("number of values", self.values, values)?;
        Error::check_dimension("number of runs", self.runs, runs)
    }
}
