//! The repetitions found in a matrix for its compression, and the layout of its slices.

use super::{SECTION, WindowOrder};
use crate::backend::{Backend, Offsets};
use crate::scalar::{Element, Scalar};

/// A few distinct keys, ascending, with the codes that the backend looks up.
#[derive(Debug)]
pub struct Keys<K: Element> {
    /// The key of each code.
    pub keys: Vec<K>,
    /// The backend's table from keys to codes.
    pub lookup: Lookup,
}

/// A table from keys to codes. The host leaves it empty for distances and values, which it finds by binary search.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The number of the hash table on a device ([`Survey::sets`]).
    pub set: usize,
    /// On the host, the hashes of rows, ascending.
    pub hashes: Vec<u64>,
    /// The code of each slot of the table, or of each hash.
    pub codes: Vec<u8>,
}

/// Kinds of rows that a survey found: the first row of each, ascending, and its length. They were distinguished by
/// hashes, and not yet compared entry by entry.
#[derive(Debug)]
pub struct FoundKinds {
    /// First row of each kind.
    pub first_rows: Vec<u32>,
    /// Entries of each kind.
    pub lengths: Vec<u32>,
    /// The table from a row's hash to its kind.
    pub lookup: Lookup,
}

/// The repetitions in a matrix, without its long rows. `None` means that there are too many different ones.
#[derive(Debug)]
pub struct Survey<V: Element, B: Backend> {
    /// Distances, ascending as signed numbers; at most 255.
    pub distances: Option<Keys<u32>>,
    /// Values, distinguished and sorted by their bits; at most 256.
    pub values: Option<Keys<V>>,
    /// True if the narrower type represents every value exactly.
    pub narrow: bool,
    /// Kinds of rows by distances; at most 255.
    pub kinds: Option<FoundKinds>,
    /// Kinds of rows by distances and values; at most 255.
    pub lines: Option<FoundKinds>,
    /// The long rows.
    pub long_rows: LongRows<B>,
    /// The hash tables of a device, and the flag that
    /// [`CompressedSteps::compressed_wrong`](super::CompressedSteps::compressed_wrong) reads.
    pub sets: B::Vec<u64>,
    /// Sizes of slices including their columns, if they were found at the same time.
    pub sizes: Option<SectionSizes<B>>,
}

/// The long rows that a survey found, ascending.
#[derive(Debug)]
pub enum LongRows<B: Backend> {
    /// The rows, each with its length.
    Told(Vec<(u32, u32)>),
    /// Too many for the host: the rows, the start of their entries, and the total number of entries.
    Held(B::Vec<u32>, Offsets<B>, usize),
}

impl<B: Backend> LongRows<B> {
    /// The number of their entries.
    pub fn entries(&self) -> usize {
        match self {
            LongRows::Told(rows) => rows.iter().map(|&(_, length)| length as usize).sum(),
            LongRows::Held(.., entries) => *entries,
        }
    }
}

/// Sizes of slices, and the order of their rows.
#[derive(Debug)]
pub struct SectionSizes<B: Backend> {
    /// The rows of each window of 256 from longest to shortest, where long rows count as empty and rows of equal length
    /// keep their order; `None` if slices need little padding without sorting.
    pub order: Option<WindowOrder<B>>,
    /// Entries of each slice's longest row; the highest bit says whether its columns are wide.
    pub widths: B::Vec<u32>,
    /// The four bases of each slice; undefined if columns were not examined or are wide.
    pub bases: B::Vec<u32>,
    /// The sums of all widths, of all widths in quads (groups of four), and of the quads of slices with wide columns.
    pub totals: [u64; 3],
}

impl<B: Backend> SectionSizes<B> {
    /// Entries of all slices, including padding.
    pub fn places(&self) -> u64 {
        self.totals[0] * SECTION as u64
    }

    /// Words of all slices, with as many for a row and quad as [`CompressedPlan::quad_words`] says.
    pub fn words(&self, [near, far]: [u32; 2]) -> u64 {
        let [_, quads, wide] = self.totals;
        SECTION as u64 * ((quads - wide) * u64::from(near) + wide * u64::from(far))
    }
}

/// Returns whether slices of unsorted rows have more padding than sorting rows by length would cost.
pub(crate) fn wants_order(rows: usize, places: u64, entries: u64) -> bool {
    rows > SECTION && places - entries > entries / 20
}

/// Kinds of rows, compared entry by entry: the kind of each row, and the start, the distances and, if requested, the
/// values of each kind.
#[derive(Debug)]
pub struct Kinds<V: Element, B: Backend> {
    /// Kind of each row.
    pub of_row: B::Vec<u8>,
    /// The start of each kind.
    pub starts: B::Vec<u32>,
    /// Distances of all kinds.
    pub distances: B::Vec<u32>,
    /// Values of all kinds; empty if values are not part of the kind.
    pub values: B::Vec<V>,
}

/// The layout of columns and values in slices.
#[derive(Debug)]
pub struct CompressedPlan<'a, V: Element> {
    /// Longer rows are not in slices.
    pub longest: usize,
    /// True if columns are given by the kinds of rows.
    pub kinds: bool,
    /// If not, columns are codes of these distances, or, if there are none, have 16 or 32 bits.
    pub distances: Option<&'a Keys<u32>>,
    /// If there are any, values are stored as codes of these.
    pub values: Option<&'a Keys<V>>,
}

impl<V: Element> CompressedPlan<'_, V> {
    /// Words of a row and quad if distances fit 16 bits, and if they do not.
    pub fn quad_words(&self) -> [u32; 2] {
        let columns = match self.distances {
            _ if self.kinds => [0, 0],
            Some(_) => [1, 1],
            None => [2, 4],
        };
        columns.map(|words| words + u32::from(self.values.is_some()))
    }
}

/// The destination of the slices' values.
#[derive(Debug)]
pub enum ValuesMut<'a, V: Scalar, B: Backend> {
    /// The values are stored as codes.
    Codes,
    /// The values are stored in the narrower type.
    Narrow(&'a mut B::Slice<V::Narrow>),
    /// The values are stored in their own type.
    Full(&'a mut B::Slice<V>),
}
