//! The repetitions that were found in a matrix, and the resulting layout of its slices.

use super::{SECTION, WindowOrder};
use crate::backend::{Backend, Offsets};
use crate::scalar::{Element, Scalar};

/// A few distinct keys in ascending order, and the backend's table to look up their codes.
#[derive(Debug)]
pub struct Keys<K: Element> {
    /// The keys. The index of a key is its code.
    pub keys: Vec<K>,
    /// The backend's table from keys to codes.
    pub lookup: Lookup,
}

/// A table from keys to codes. On the host it is empty for distances and values, which are found by binary search.
#[derive(Debug, Default)]
pub struct Lookup {
    /// On a device, the number of the hash table ([`Survey::sets`]).
    pub set: usize,
    /// On the host, the hashes of rows, ascending.
    pub hashes: Vec<u64>,
    /// The code in each slot of the table, or of each hash.
    pub codes: Vec<u8>,
}

/// Kinds of rows that a survey found. Rows of the same kind have equal hashes, but were not yet compared entry by
/// entry.
#[derive(Debug)]
pub struct FoundKinds {
    /// The first row of each kind, ascending.
    pub first_rows: Vec<u32>,
    /// The number of entries in a row of each kind.
    pub lengths: Vec<u32>,
    /// The table from a row's hash to its kind.
    pub lookup: Lookup,
}

/// The repetitions in a matrix, apart from its long rows. `None` means that there are too many different ones.
#[derive(Debug)]
pub struct Survey<V: Element, B: Backend> {
    /// The distinct distances, ascending as signed numbers; at most 255.
    pub distances: Option<Keys<u32>>,
    /// The distinct values, compared and sorted by their bits; at most 256.
    pub values: Option<Keys<V>>,
    /// True if half the precision represents every value exactly.
    pub narrow: bool,
    /// Kinds of rows with equal distances; at most 255.
    pub kinds: Option<FoundKinds>,
    /// Kinds of rows with equal distances and values; at most 255.
    pub lines: Option<FoundKinds>,
    /// The long rows.
    pub long_rows: LongRows<B>,
    /// On a device, the hash tables, and the flag that
    /// [`CompressedSteps::compressed_wrong`](super::CompressedSteps::compressed_wrong) reads.
    pub sets: B::Vec<u64>,
    /// The sizes of slices including their columns, if the survey has determined them.
    pub sizes: Option<SectionSizes<B>>,
}

/// The long rows that a survey found, ascending.
#[derive(Debug)]
pub enum LongRows<B: Backend> {
    /// On the host: each row and its length.
    Told(Vec<(u32, u32)>),
    /// In the backend's memory, if they are too many for the host: the rows, the start of each row's entries, and the
    /// number of all entries.
    Held(B::Vec<u32>, Offsets<B>, usize),
}

impl<B: Backend> LongRows<B> {
    /// Returns the number of entries of all long rows.
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
    /// The rows of each window of 256, from longest to shortest. Long rows count as empty, and rows of equal length
    /// keep their order. `None` if slices need little padding without sorting.
    pub order: Option<WindowOrder<B>>,
    /// The number of entries in each slice's longest row. The highest bit is set if the slice's columns are wide.
    pub widths: B::Vec<u32>,
    /// The four bases of each slice; undefined if columns were not examined, or if they are wide.
    pub bases: B::Vec<u32>,
    /// Three sums: of all widths, of all widths in quads (groups of four entries), and of the quads of slices with wide
    /// columns.
    pub totals: [u64; 3],
}

impl<B: Backend> SectionSizes<B> {
    /// Returns the number of entries in all slices, including padding.
    pub fn places(&self) -> u64 {
        self.totals[0] * SECTION as u64
    }

    /// Returns the number of words in all slices; the argument is [`CompressedPlan::quad_words`].
    pub fn words(&self, [near, far]: [u32; 2]) -> u64 {
        let [_, quads, wide] = self.totals;
        SECTION as u64 * ((quads - wide) * u64::from(near) + wide * u64::from(far))
    }
}

/// Returns whether slices of unsorted rows have so much padding that sorting the rows by length pays.
pub(crate) fn wants_order(rows: usize, places: u64, entries: u64) -> bool {
    rows > SECTION && places - entries > entries / 20
}

/// Kinds of rows, compared entry by entry, and the kind of each row.
#[derive(Debug)]
pub struct Kinds<V: Element, B: Backend> {
    /// The kind of each row.
    pub of_row: B::Vec<u8>,
    /// The start of each kind in the two tables.
    pub starts: B::Vec<u32>,
    /// The distances of all kinds.
    pub distances: B::Vec<u32>,
    /// The values of all kinds; empty if rows of the same kind may have different values.
    pub values: B::Vec<V>,
}

/// How slices store columns and values.
#[derive(Debug)]
pub struct CompressedPlan<'a, V: Element> {
    /// Rows with more entries are not stored in slices.
    pub longest: usize,
    /// True if the kinds of rows determine the columns.
    pub kinds: bool,
    /// If they do not: columns are codes of these distances or, without distances, have 16 or 32 bits.
    pub distances: Option<&'a Keys<u32>>,
    /// If given, values are codes of these; otherwise they are stored as numbers.
    pub values: Option<&'a Keys<V>>,
}

impl<V: Element> CompressedPlan<'_, V> {
    /// Returns the number of words for a row and quad: if distances fit 16 bits, and if they do not.
    pub fn quad_words(&self) -> [u32; 2] {
        let columns = match self.distances {
            _ if self.kinds => [0, 0],
            Some(_) => [1, 1],
            None => [2, 4],
        };
        columns.map(|words| words + u32::from(self.values.is_some()))
    }
}

/// Where the values of slices are written.
#[derive(Debug)]
pub enum ValuesMut<'a, V: Scalar, B: Backend> {
    /// The values are stored as codes.
    Codes,
    /// The values are stored in half the precision.
    Lower(&'a mut B::Slice<V::Lower>),
    /// The values are stored in their own type.
    Full(&'a mut B::Slice<V>),
}
