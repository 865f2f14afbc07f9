//! A look at a few runs of rows: their lengths, how clustered columns are, how varied values are, and a fingerprint of
//! the pattern. To look at all rows would cost a device more than many products.

use super::super::{Csr, RowLengths};
use crate::backend::{BASES, Backend, RANGE, SECTION};
use crate::cache::Hash;
use crate::error::Result;
use crate::scalar::{Real, Scalar};
use std::collections::HashSet;
use std::ops::Range;

/// Runs of rows that are looked at, spread evenly.
const RUNS: usize = 8;
/// Rows of a run whose lengths are taken: a multiple of the formats' sections and windows.
const LENGTHS: usize = 8192;
/// Rows at the start of a run whose entries are looked at, and entries at most.
const ROWS: usize = 128;
const ENTRIES: usize = 2048;
/// Codes of one byte.
const CODES: usize = 256;

/// How clustered the columns of a matrix and how varied its values are, by a sample of its rows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Variety {
    /// Entries looked at.
    pub entries: usize,
    /// Most distinct distances of a column from its row in one run of rows.
    pub distances: usize,
    /// Share of the entries in sections of neighbouring rows whose columns 16 bits hold
    /// ([`Compressed`](crate::matrix::Compressed)).
    pub held: f64,
    /// Share of the entries that are in such sections or within 2^15 columns of their row: x of these comes from near
    /// caches.
    pub near: f64,
    /// Distinct values; counting ends above 256.
    pub values: usize,
    /// Rows looked at, and how many kinds of them there are by the distances of their columns.
    pub rows: usize,
    /// See `rows`.
    pub kinds: usize,
    /// Kinds of rows by distances and values.
    pub lines: usize,
    /// Runs of neighbouring rows of one such kind.
    pub runs: usize,
}

impl Variety {
    /// Bytes of `nonzeros` entries in `rows` rows, where what repeats in the sample is stored as short codes: a row by
    /// its kind, an entry by its distance, a value by its place in a list.
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

    /// A kind that few rows share was probably not seen whole in the sample.
    fn few(&self, kinds: usize) -> bool {
        kinds < CODES && 8 * kinds <= self.rows
    }

    /// Returns whether a byte a row stands for all of it, in runs of so many alike on average.
    pub(super) fn repeats(&self, run: usize) -> bool {
        self.few(self.lines) && run * self.runs <= self.rows
    }
}

/// What a sample tells.
pub(super) struct Sample {
    pub(super) variety: Variety,
    /// Lengths of the rows of all runs.
    pub(super) lengths: RowLengths,
    /// A hash of the places that were seen.
    pub(super) fingerprint: Hash,
}

/// What is gathered run by run. Apart from [`sample`], so that it is compiled once, not for every type and backend.
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

    /// Takes the lengths of a run's rows.
    fn lengths(&mut self, offsets: &[usize]) {
        let before = self.lengths.len();
        let length = |pair: &[usize]| u32::try_from(pair[1] - pair[0]).unwrap_or(u32::MAX);
        self.lengths.extend(offsets.windows(2).map(length));
        self.hash.add_numbers(&self.lengths[before..]);
    }

    /// Looks at the entries `range` of the run that starts at row `start`.
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
            // A row cut off at the end of the run is no kind of its own.
            let whole = offsets[row + 1] <= range.end;
            self.variety.rows += usize::from(whole);
            // Of what is like the row above it, nothing is new.
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

    /// Takes the distances of a section, and leaves none.
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

    /// What the runs tell of a matrix of that many rows and columns.
    fn told(mut self, rows: usize, columns: usize) -> Sample {
        let variety = &mut self.variety;
        [variety.held, variety.near] =
            [self.held, self.near].map(|count| count as f64 / variety.entries.max(1) as f64);
        variety.values = self.values.len().min(CODES + 1);
        (variety.kinds, variety.lines) = (self.kinds.len(), self.lines.len());
        // As many columns as belong to these rows, so that all that a format stores scales with the rows.
        let columns = (columns as f64 * self.lengths.len() as f64 / rows.max(1) as f64) as usize;
        let lengths = RowLengths::sampled(columns, self.diagonals.len(), self.lengths);
        Sample { variety: self.variety, lengths, fingerprint: self.hash }
    }
}

/// Returns whether 16 bits hold ascending distances: near each other, or in as many ranges as a section of compressed
/// has bases.
fn are_held(distances: &[i64]) -> bool {
    let [low, .., high] = distances else { return true };
    let mut rest = distances;
    for _ in 0..BASES {
        let Some(first) = rest.first() else { break };
        rest = &rest[rest.partition_point(|distance| distance - first < RANGE)..];
    }
    rest.is_empty() || high - low < 65535
}

/// The places of those entries of a run that are looked at.
fn looked_at(offsets: &[usize]) -> Range<usize> {
    let rows = ROWS.min(offsets.len() - 1);
    offsets[0]..offsets[rows].min(offsets[0] + ENTRIES)
}

/// Looks at a matrix.
pub(super) fn sample<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Result<Sample> {
    let mut look = Look::new();
    for size in [a.rows(), a.columns(), a.nonzeros()] {
        look.hash.add(&(size as u64).to_le_bytes());
    }
    let runs = RUNS.min(a.rows().div_ceil(ROWS));
    let bounds = (0..runs).map(|run| (a.rows() * run / runs, a.rows() * (run + 1) / runs));
    let places: Vec<Range<usize>> = bounds.map(|(start, end)| start..end.min(start + LENGTHS) + 1).collect();
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
