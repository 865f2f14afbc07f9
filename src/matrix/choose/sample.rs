//! A sample of a few runs of rows: their lengths, the clustering of columns, the variety of values, and a fingerprint
//! of the pattern. Examining all rows would take a device longer than many products.

use super::super::{Csr, RowLengths, windows};
use crate::backend::{BASES, Backend, RANGE, SECTION};
use crate::cache::Hash;
use crate::error::Result;
use crate::scalar::{Real, Scalar};
use std::collections::HashSet;
use std::ops::Range;

/// Runs of rows in the sample.
const RUNS: usize = 8;
/// Rows of a run whose lengths are read: a multiple of the formats' slices and windows.
const LENGTHS: usize = 8192;
/// Rows at the start of a run whose entries are read, and the maximum number of entries that are read.
const ROWS: usize = 128;
const ENTRIES: usize = 2048;
/// The number of one-byte codes.
const CODES: usize = 256;

/// The clustering of columns and the variety of values, in a sample of rows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Variety {
    /// Entries in the sample.
    pub entries: usize,
    /// The largest number of distinct distances of a column from its row in one run of rows.
    pub distances: usize,
    /// The fraction of entries in slices of neighbouring rows whose columns fit 16 bits
    /// ([`Compressed`](crate::matrix::Compressed)).
    pub held: f64,
    /// The fraction of entries in such slices or within 2^15 columns of their row: their x comes from near caches.
    pub near: f64,
    /// Distinct values; counting ends above 256.
    pub values: usize,
    /// Rows in the sample.
    pub rows: usize,
    /// The number of different kinds of rows, by the distances of their columns.
    pub kinds: usize,
    /// The number of different kinds of rows; two rows are of a kind if their distances and values are equal.
    pub lines: usize,
    /// Runs of neighbouring rows of the same kind by distances and values.
    pub runs: usize,
}

impl Variety {
    /// Bytes of `nonzeros` entries in `rows` rows if repetitions in the sample are stored as short codes: a row by its
    /// kind, an entry by its distance, a value by its index in a list.
    pub(super) fn bytes(&self, rows: usize, nonzeros: usize, value: usize) -> f64 {
        let (rows, nonzeros) = (rows as f64, nonzeros as f64);
        if self.few(self.lines) {
            return rows;
        }
        let values = nonzeros * if self.values <= CODES { 1.0 } else { value as f64 };
        values
            + match self {
                _ if self.few(self.kinds) => rows,
                _ if self.distances < CODES => nonzeros,
                _ => (4.0 - 2.0 * self.held) * nonzeros,
            }
    }

    /// If few rows share a kind, the sample has probably not seen all kinds.
    fn few(&self, kinds: usize) -> bool {
        kinds < CODES && 8 * kinds <= self.rows
    }

    /// Returns whether one byte can replace a whole row, in runs of at least `run` equal rows on average.
    pub(super) fn repeats(&self, run: usize) -> bool {
        self.few(self.lines) && run * self.runs <= self.rows
    }
}

/// The result of sampling.
pub(super) struct Sample {
    pub(super) variety: Variety,
    /// Lengths of the rows of all runs.
    pub(super) lengths: RowLengths,
    /// A hash of the positions of the sampled entries.
    pub(super) fingerprint: Hash,
}

/// The counters of a sample, run by run. They are not generic, so that they are compiled once and not for every type
/// and backend.
struct Look {
    variety: Variety,
    hash: Hash,
    lengths: Vec<u32>,
    held: usize,
    near: usize,
    values: HashSet<Bits>,
    kinds: HashSet<Vec<i64>>,
    lines: HashSet<(Vec<i64>, Vec<Bits>)>,
    diagonals: HashSet<i64>,
}

/// A value's real and imaginary part.
type Bits = [u64; 2];

impl Look {
    fn new() -> Self {
        let variety = Variety {
            entries: 0,
            distances: 0,
            held: 0.0,
            near: 0.0,
            values: 0,
            rows: 0,
            kinds: 0,
            lines: 0,
            runs: 0,
        };
        let (values, kinds, lines, diagonals) = Default::default();
        Self {
            variety,
            hash: Hash::new(),
            lengths: Vec::new(),
            held: 0,
            near: 0,
            values,
            kinds,
            lines,
            diagonals,
        }
    }

    /// Adds the lengths of the rows of a run.
    fn lengths(&mut self, offsets: &[usize]) {
        let before = self.lengths.len();
        let length = |pair: &[usize]| u32::try_from(pair[1] - pair[0]).unwrap_or(u32::MAX);
        self.lengths.extend(offsets.windows(2).map(length));
        self.hash.add_numbers(&self.lengths[before..]);
    }

    /// Adds the entries `range` of the run that starts at row `start`.
    fn entries(
        &mut self,
        start: usize,
        offsets: &[usize],
        range: Range<usize>,
        columns: &[u32],
        numbers: &[Bits],
    ) {
        self.hash.add_numbers(columns);
        let counts = self.values.len() <= CODES;
        let (mut distances, mut section) = (HashSet::new(), Vec::new());
        let (mut line, mut above) = (Vec::new(), None);
        for row in 0..ROWS.min(offsets.len() - 1) {
            let seen =
                offsets[row].min(range.end) - range.start..offsets[row + 1].min(range.end) - range.start;
            line.clear();
            line.extend(columns[seen.clone()].iter().map(|&column| i64::from(column) - (start + row) as i64));
            section.extend_from_slice(&line);
            if row % SECTION == SECTION - 1 {
                self.section(&mut section);
            }
            // A row cut off at the end of the run does not count as a kind of its own.
            let whole = offsets[row + 1] <= range.end;
            self.variety.rows += usize::from(whole);
            // A row equal to the one above adds nothing new.
            let like = |(distances, numbers_there): &(Vec<i64>, &[Bits])| {
                *distances == line && *numbers_there == &numbers[seen.clone()]
            };
            if whole && above.as_ref().is_some_and(like) {
                continue;
            }
            distances.extend(line.iter().copied());
            if counts {
                self.values.extend(&numbers[seen.clone()]);
            }
            if whole {
                self.variety.runs += 1;
                self.lines.insert((line.clone(), numbers[seen.clone()].to_vec()));
                self.kinds.insert(line.clone());
                above = Some((line.clone(), &numbers[seen]));
            }
        }
        self.section(&mut section);
        self.variety.entries += columns.len();
        self.variety.distances = self.variety.distances.max(distances.len());
        self.diagonals.extend(distances);
    }

    /// Adds the distances of a slice, and clears them.
    fn section(&mut self, distances: &mut Vec<i64>) {
        distances.sort_unstable();
        let near = |distance: &&i64| distance.abs() < 1 << 15;
        if are_held(distances) {
            self.held += distances.len();
            self.near += distances.len();
        } else {
            self.near += distances.iter().filter(near).count();
        }
        distances.clear();
    }

    /// The result for a matrix of this size.
    fn told(mut self, rows: usize, columns: usize) -> Sample {
        let variety = &mut self.variety;
        [variety.held, variety.near] =
            [self.held, self.near].map(|count| count as f64 / variety.entries.max(1) as f64);
        variety.values = self.values.len().min(CODES + 1);
        (variety.kinds, variety.lines) = (self.kinds.len(), self.lines.len());
        // The columns are scaled like the rows, so that the storage of every format scales with the rows.
        let columns = (columns as f64 * self.lengths.len() as f64 / rows.max(1) as f64) as usize;
        let lengths = RowLengths::sampled(columns, self.diagonals.len(), self.lengths);
        Sample { variety: self.variety, lengths, fingerprint: self.hash }
    }
}

/// Returns whether ascending distances fit 16 bits: near each other, or in as many ranges as a compressed slice has
/// bases.
fn are_held(distances: &[i64]) -> bool {
    let [low, .., high] = distances else { return true };
    let mut rest = distances;
    for _ in 0..BASES {
        let Some(first) = rest.first() else { break };
        rest = &rest[rest.partition_point(|distance| distance - first < RANGE)..];
    }
    rest.is_empty() || high - low < 65535
}

/// The entries of a run that are read.
fn looked_at(offsets: &[usize]) -> Range<usize> {
    let rows = ROWS.min(offsets.len() - 1);
    offsets[0]..offsets[rows].min(offsets[0] + ENTRIES)
}

/// Samples a matrix.
pub(super) fn sample<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Result<Sample> {
    let mut look = Look::new();
    for size in [a.rows(), a.columns(), a.nonzeros()] {
        look.hash.add(&(size as u64).to_le_bytes());
    }
    let runs = RUNS.min(a.rows().div_ceil(ROWS));
    let windows = windows(a.rows(), runs, LENGTHS.min(a.rows().div_ceil(runs.max(1))));
    let places: Vec<Range<usize>> = windows.into_iter().map(|rows| rows.start..rows.end + 1).collect();
    let offsets = a.parts().offsets.windows(backend, &places)?;
    let (mut of_runs, mut rest) = (Vec::with_capacity(runs), &offsets[..]);
    for places in &places {
        let (here, behind) = rest.split_at(places.len());
        of_runs.push(here);
        rest = behind;
    }
    let entries: Vec<Range<usize>> = of_runs.iter().map(|offsets| looked_at(offsets)).collect();
    let count = entries.iter().map(Range::len).sum();
    let (mut columns, mut numbers) = (vec![0; count], vec![V::zero(); count]);
    backend.read_parts(a.parts().indices, &entries, &mut columns)?;
    backend.read_parts(a.parts().values, &entries, &mut numbers)?;
    let bits = |v: &V| [v.re(), v.im()].map(|part| part.to_f64().to_bits());
    let numbers: Vec<Bits> = numbers.iter().map(bits).collect();
    let (mut columns, mut numbers) = (&columns[..], &numbers[..]);
    for ((places, offsets), range) in places.iter().zip(of_runs).zip(entries) {
        let (own_columns, other_columns) = columns.split_at(range.len());
        let (own_numbers, other_numbers) = numbers.split_at(range.len());
        look.lengths(offsets);
        look.entries(places.start, offsets, range, own_columns, own_numbers);
        (columns, numbers) = (other_columns, other_numbers);
    }
    Ok(look.told(a.rows(), a.columns()))
}
