//! What is found out about a matrix to compress it, and how its sections will be held.

use super::{SECTION, WindowOrder};
use crate::backend::{Backend, Offsets};
use crate::scalar::{Element, Scalar};

/// A few distinct keys, ascending, and the code of each as the backend looks it up.
#[derive(Debug)]
pub struct Keys<K: Element> {
    /// What each code stands for.
    pub keys: Vec<K>,
    /// The backend's way from a key to its code.
    pub lookup: Lookup,
}

/// The way from a key to its code. The host looks distances and values up by bisection and leaves it empty.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The number of the hash table on a device ([`Survey::sets`]).
    pub set: usize,
    /// On the host, the hashes of rows, ascending.
    pub hashes: Vec<u64>,
    /// The code of each slot of the table, or of each hash.
    pub codes: Vec<u8>,
}

/// Kinds of rows that a survey found: the first row of each, ascending, and its length. Not yet compared entry by
/// entry.
#[derive(Debug)]
pub struct FoundKinds {
    /// First row of each kind.
    pub first_rows: Vec<u32>,
    /// Entries of each kind.
    pub lengths: Vec<u32>,
    /// From a row's hash to its kind.
    pub lookup: Lookup,
}

/// What repeats in a matrix. Rows with more than so many entries were left out. `None` stands for too many.
#[derive(Debug)]
pub struct Survey<V: Element, B: Backend> {
    /// Distances, ascending as signed numbers; 255 at most.
    pub distances: Option<Keys<u32>>,
    /// Values, told apart by their bits and ascending as those; 256 at most.
    pub values: Option<Keys<V>>,
    /// Whether every value can be held in the narrower type.
    pub narrow: bool,
    /// Kinds of rows by distances; 255 at most.
    pub kinds: Option<FoundKinds>,
    /// Kinds of rows by distances and values; 255 at most.
    pub lines: Option<FoundKinds>,
    /// Rows that are longer than that.
    pub long_rows: LongRows<B>,
    /// The hash tables of a device, and what
    /// [`CompressedSteps::compressed_wrong`](super::CompressedSteps::compressed_wrong) tells.
    pub sets: B::Vec<u64>,
    /// Sizes of sections, columns looked at, where they were found along the way.
    pub sizes: Option<SectionSizes<B>>,
}

/// Long rows that a survey found, ascending.
#[derive(Debug)]
pub enum LongRows<B: Backend> {
    /// Each with its length.
    Told(Vec<(u32, u32)>),
    /// Too many to tell the host of each: which rows, where the entries of each start behind each other, and how many
    /// there are of all.
    Held(B::Vec<u32>, Offsets<B>, usize),
}

impl<B: Backend> LongRows<B> {
    /// How many entries they have.
    pub fn entries(&self) -> usize {
        match self {
            LongRows::Told(rows) => rows.iter().map(|&(_, length)| length as usize).sum(),
            LongRows::Held(.., entries) => *entries,
        }
    }
}

/// Sizes of sections, and the order of their rows.
#[derive(Debug)]
pub struct SectionSizes<B: Backend> {
    /// The rows of each window of 256 from longest to shortest, those that are too long as empty ones, rows of equal
    /// length in their order; `None` where sections of rows in their order pad little enough.
    pub order: Option<WindowOrder<B>>,
    /// Entries of each section's longest row, and in the highest bit whether its columns are wide.
    pub widths: B::Vec<u32>,
    /// The four bases of each section; of no use where columns were not looked at or are wide.
    pub bases: B::Vec<u32>,
    /// The sums of all widths, of their quads, and of the quads of those with wide columns.
    pub totals: [u64; 3],
}

impl<B: Backend> SectionSizes<B> {
    /// Places of all sections.
    pub fn places(&self) -> u64 {
        self.totals[0] * SECTION as u64
    }

    /// Words of all sections, so many for a row and quad as [`CompressedPlan::quad_words`] says.
    pub fn words(&self, [near, far]: [u32; 2]) -> u64 {
        let [_, quads, wide] = self.totals;
        SECTION as u64 * ((quads - wide) * u64::from(near) + wide * u64::from(far))
    }
}

/// Whether sections of rows in their order pad more than rows ordered by length are worth.
pub(crate) fn wants_order(rows: usize, places: u64, entries: u64) -> bool {
    rows > SECTION && places - entries > entries / 20
}

/// Kinds of rows, compared entry by entry: of each row, then start, distance and, if asked for, value of each entry.
#[derive(Debug)]
pub struct Kinds<V: Element, B: Backend> {
    /// Kind of each row.
    pub of_row: B::Vec<u8>,
    /// Where each kind starts.
    pub starts: B::Vec<u32>,
    /// Distances of all kinds.
    pub distances: B::Vec<u32>,
    /// Values of all kinds; empty where values do not count.
    pub values: B::Vec<V>,
}

/// How columns and values of sections will be held.
#[derive(Debug)]
pub struct CompressedPlan<'a, V: Element> {
    /// Longer rows are not in sections.
    pub longest: usize,
    /// By the kinds of rows.
    pub kinds: bool,
    /// Otherwise by codes of these distances, or, where there are none, in 16 or 32 bits.
    pub distances: Option<&'a Keys<u32>>,
    /// By codes of these values.
    pub values: Option<&'a Keys<V>>,
}

impl<V: Element> CompressedPlan<'_, V> {
    /// Words of a row and quad where distances are near enough for 16 bits, and where they are not.
    pub fn quad_words(&self) -> [u32; 2] {
        let columns = match self.distances {
            _ if self.kinds => [0, 0],
            Some(_) => [1, 1],
            None => [2, 4],
        };
        columns.map(|words| words + u32::from(self.values.is_some()))
    }
}

/// Where sections' values go.
#[derive(Debug)]
pub enum ValuesMut<'a, V: Scalar, B: Backend> {
    /// Into codes.
    Codes,
    /// To the narrower type.
    Narrow(&'a mut B::Slice<V::Narrow>),
    /// As they are.
    Full(&'a mut B::Slice<V>),
}
