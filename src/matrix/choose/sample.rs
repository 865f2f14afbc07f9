//! A look at a few runs of rows: their lengths, how clustered columns are, how varied values are, and a fingerprint of the
//! pattern. To look at all rows would cost a device more than many products.

use super::super::{Csr, RowLengths};
use crate::backend::{Backend, OffsetsRef};
use crate::cache::Hash;
use crate::error::Result;
use crate::scalar::{Offset, Scalar};
use std::collections::HashSet;

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
    /// Share of the entries within 2^15 columns of their row.
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
    /// Bytes of `nonzeros` entries in `rows` rows, where what repeats in the sample is stored as short codes: a row by its
    /// kind, an entry by its distance, a value by its place in a list.
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
                _ if self.near > 0.98 => 2.0 * nonzeros,
                _ => 4.0 * nonzeros,
            }
    }

    /// A kind that few rows share was probably not seen whole in the sample.
    fn few(&self, kinds: usize) -> bool {
        kinds < CODES && 8 * kinds <= self.rows
    }

    /// Whether a byte a row stands for all of it, in runs of so many alike on average.
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

/// Looks at a matrix.
pub(super) fn sample<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>) -> Result<Sample> {
    let mut variety =
        Variety { entries: 0, distances: 0, near: 0.0, values: 0, rows: 0, kinds: 0, lines: 0, runs: 0 };
    let mut hash = Hash::new();
    for size in [a.rows(), a.columns(), a.nonzeros()] {
        hash.add(&(size as u64).to_le_bytes());
    }
    let (mut near, mut values, mut lengths) = (0, HashSet::new(), Vec::new());
    let (mut kinds, mut lines, mut diagonals) = (HashSet::new(), HashSet::new(), HashSet::new());
    let runs = RUNS.min(a.rows().div_ceil(ROWS));
    for run in 0..runs {
        let (start, end) = (a.rows() * run / runs, a.rows() * (run + 1) / runs);
        let offsets = match a.parts().offsets {
            OffsetsRef::Narrow(o) => read(backend, B::part(o, start..end.min(start + LENGTHS) + 1))?,
            OffsetsRef::Wide(o) => read(backend, B::part(o, start..end.min(start + LENGTHS) + 1))?,
        };
        let before = lengths.len();
        lengths.extend(offsets.windows(2).map(|pair| u32::try_from(pair[1] - pair[0]).unwrap_or(u32::MAX)));
        let seen: Vec<u8> = lengths[before..].iter().flat_map(|length| length.to_le_bytes()).collect();
        hash.add(&seen);
        let rows = ROWS.min(offsets.len() - 1);
        let range = offsets[0]..offsets[rows].min(offsets[0] + ENTRIES);
        let columns = backend.download(B::part(a.parts().indices, range.clone()))?;
        let numbers = backend.download(B::part(a.parts().values, range.clone()))?;
        let seen: Vec<u8> = columns.iter().flat_map(|column| column.to_le_bytes()).collect();
        hash.add(&seen);
        let bits = |v: &V| [v.re(), v.im()].map(|part| crate::scalar::Real::to_f64(part).to_bits());
        values.extend(numbers.iter().map(bits).take(if values.len() > CODES { 0 } else { ENTRIES }));
        let (mut distances, mut above) = (HashSet::new(), None);
        for row in 0..rows {
            let seen =
                offsets[row].min(range.end) - range.start..offsets[row + 1].min(range.end) - range.start;
            let line: Vec<i64> = columns[seen.clone()]
                .iter()
                .map(|&column| i64::from(column) - (start + row) as i64)
                .collect();
            near += line.iter().filter(|distance| distance.abs() < 1 << 15).count();
            distances.extend(line.iter().copied());
            // A row cut off at the end of the run is no kind of its own.
            if offsets[row + 1] <= range.end {
                variety.rows += 1;
                let whole = (line.clone(), numbers[seen].iter().map(bits).collect::<Vec<_>>());
                variety.runs += usize::from(above.as_ref() != Some(&whole));
                lines.insert(whole.clone());
                above = Some(whole);
                kinds.insert(line);
            }
        }
        variety.entries += columns.len();
        variety.distances = variety.distances.max(distances.len());
        diagonals.extend(distances);
    }
    variety.near = near as f64 / variety.entries.max(1) as f64;
    variety.values = values.len().min(CODES + 1);
    (variety.kinds, variety.lines) = (kinds.len(), lines.len());
    // As many columns as belong to these rows, so that all that a format stores scales with the rows.
    let columns = (a.columns() as f64 * lengths.len() as f64 / a.rows().max(1) as f64) as usize;
    Ok(Sample { variety, lengths: RowLengths::sampled(columns, diagonals.len(), lengths), fingerprint: hash })
}

fn read<O: Offset, B: Backend>(backend: &B, offsets: &B::Slice<O>) -> Result<Vec<usize>> {
    Ok(backend.download(offsets)?.into_iter().map(Offset::to_usize).collect())
}
