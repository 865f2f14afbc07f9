//! Bands of rows swept in the order of columns, on the CPU: a task a band. By the same rule as on a device
//! (`swept_chunks.cuh` tells it), entry for entry.

use super::blocks::fill_rows;
use super::sizes::row_lengths;
use crate::backend::{
    CsrParts, Host, OffsetsRef, SWEPT_BINS, SWEPT_OF_ENTRY, SWEPT_SHARE, SWEPT_SPREAD, SWEPT_STEP,
    SweptArrays, SweptParts, swept_bin_shift, swept_refusal, swept_row_bits, with_offsets,
};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset};
use std::ops::Range;

/// What an entry takes of a chunk, and what a chunk is meant to take.
const OF_ENTRY: u64 = SWEPT_OF_ENTRY as u64;
const CHUNK: u64 = SWEPT_SHARE as u64 * OF_ENTRY;

/// Columns of one sweep, cut into chunks of about the same number of a band's entries.
struct Chunks {
    begin: usize,
    shift: u32,
    of_bin: Vec<u32>,
    /// What the columns of each chunk's step are counted from.
    bases: Vec<usize>,
    /// Columns of bins in which there are entries.
    filled: usize,
}

impl Chunks {
    /// `columns` are those of the band's entries; `None` where none is swept. A step reaches `reach` columns.
    fn of(begin: usize, all: usize, reach: usize, columns: impl Iterator<Item = usize>) -> Option<Self> {
        let shift = swept_bin_shift(all);
        let extent = (all - begin).min(SWEPT_BINS << shift);
        let mut counts = [0; SWEPT_BINS];
        columns.for_each(|column| counts[(column - begin) >> shift] += 1);
        if counts.iter().all(|&count| count == 0) {
            return None;
        }
        // Three eighths of what a step reaches are a chunk too, so that entries of the two before are mostly in its
        // reach.
        let of_column = CHUNK / (reach as u64 / 8 * 3);
        let (mut taken, mut last) = (0, u64::MAX);
        let (mut of_bin, mut ends): (Vec<u32>, Vec<usize>) = (Vec::with_capacity(SWEPT_BINS), Vec::new());
        for (bin, &count) in counts.iter().enumerate() {
            // Chunks without entries are left out.
            if count > 0 && taken / CHUNK == last {
                ends.pop();
            }
            if count > 0 {
                last = taken / CHUNK;
                ends.push(bin + 1);
            }
            of_bin.push((ends.len() as u32).saturating_sub(1));
            taken += (count * OF_ENTRY).max(of_column << shift);
        }
        let base = |&end: &usize| begin + (end << shift).min(extent).saturating_sub(reach);
        let bases = ends.iter().map(base).collect();
        let filled = counts.iter().filter(|&&count| count > 0).count() << shift;
        Some(Self { begin, shift, of_bin, bases, filled })
    }

    fn of_column(&self, column: usize) -> usize {
        self.of_bin[(column - self.begin) >> self.shift] as usize
    }

    /// Of a chunk's step, or of one behind the last.
    fn base(&self, step: usize) -> usize {
        self.bases[step.min(self.bases.len() - 1)]
    }

    /// Step and level of an entry behind that of the entry before it in its row.
    fn behind(&self, last: Option<(usize, usize)>, column: usize) -> (usize, usize) {
        let chunk = self.of_column(column);
        match last {
            Some((step, level)) if step >= chunk => {
                if column >= self.base(step + 1) {
                    (step + 1, 0)
                } else {
                    (step, level + 1)
                }
            }
            _ => (chunk, 0),
        }
    }
}

/// An entry of a band, and its number in CSR.
struct Entry {
    step: (usize, usize),
    row: usize,
    column: usize,
    number: usize,
}

impl Entry {
    /// Rows are cut into parts that fill a step at most, where a step would have too many entries.
    fn part(&self) -> (usize, usize, usize) {
        (self.step.0, self.step.1, self.row / SWEPT_STEP)
    }
}

/// A step: its base and its entries.
type Step = (usize, Vec<Entry>);

/// Adds the steps of some columns. `rows` are the numbers of each row's entries there.
fn sweep(chunks: &Chunks, rows: &[Range<usize>], columns: &[u32], steps: &mut Vec<Step>) {
    let mut entries = Vec::new();
    for (row, numbers) in rows.iter().enumerate() {
        let mut last = None;
        for number in numbers.clone() {
            let column = columns[number] as usize;
            let step = chunks.behind(last, column);
            entries.push(Entry { step, row, column, number });
            last = Some(step);
        }
    }
    // Stable: within a part by row.
    entries.sort_by_key(Entry::part);
    let (mut last, before) = (None, steps.len());
    let mut entries = entries.into_iter().peekable();
    while let Some(first) = entries.peek() {
        let (step, part) = (first.step, first.part());
        let part: Vec<Entry> = std::iter::from_fn(|| entries.next_if(|entry| entry.part() == part)).collect();
        match steps.last_mut() {
            Some((_, before)) if last == Some(step) && before.len() + part.len() <= SWEPT_STEP => {
                before.extend(part);
            }
            _ => steps.push((chunks.base(step.0), part)),
        }
        last = Some(step);
    }
    // Where columns are not many more than rows, entries that follow each other by rows are mostly close to each other
    // by columns, too.
    if chunks.filled > SWEPT_SPREAD * rows.len() {
        steps[before..]
            .iter_mut()
            .for_each(|(_, step)| step.sort_unstable_by_key(|entry| (entry.column, entry.row)));
    }
}

/// The steps of rows from `offsets[0]` to the last of `offsets`.
fn band<I: Offset>(offsets: &[I], columns: &[u32], all: usize, reach: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for begin in (0..all).step_by(SWEPT_BINS << swept_bin_shift(all)) {
        let end = begin + (SWEPT_BINS << swept_bin_shift(all));
        let there = |row: &[I]| {
            let (from, line) = (row[0].to_usize(), &columns[row[0].to_usize()..row[1].to_usize()]);
            let before = |end: usize| from + line.partition_point(|&column| (column as usize) < end);
            before(begin)..before(end)
        };
        let rows: Vec<Range<usize>> = offsets.windows(2).map(there).collect();
        let of_rows = rows.iter().flat_map(|row| &columns[row.clone()]).map(|&column| column as usize);
        if let Some(chunks) = Chunks::of(begin, all, reach, of_rows) {
            sweep(&chunks, &rows, columns, &mut steps);
        }
    }
    steps
}

/// Writes the lengths of rows, too.
pub(super) fn from_csr<V: Element>(
    a: CsrParts<'_, V, Host>,
    height: usize,
    lengths: &mut [u32],
) -> Result<SweptArrays<V, Host>> {
    row_lengths(a.offsets, 0, usize::MAX, lengths);
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    if let Some(reason) = swept_refusal(longest) {
        return Err(Error::Refused { format: "swept", reason });
    }
    let bits = swept_row_bits(height);
    let of_band = |number: usize| {
        let rows = number * height..((number + 1) * height).min(a.rows);
        with_offsets!(a.offsets, offsets => band(&offsets[rows.start..=rows.end], a.indices, a.columns, 1 << (32 - bits)))
    };
    let bands: Vec<Vec<Step>> = (0..a.rows.div_ceil(height)).into_par_iter().map(of_band).collect();
    let (mut firsts, mut starts, mut bases) = (vec![0], vec![0], Vec::new());
    let (mut places, mut values) = (Vec::with_capacity(a.values.len()), Vec::with_capacity(a.values.len()));
    for band in bands {
        for (base, step) in band {
            places.extend(step.iter().map(|entry| ((entry.column - base) << bits | entry.row) as u32));
            values.extend(step.iter().map(|entry| a.values[entry.number]));
            bases.push(base as u32);
            starts.push(values.len() as u64);
        }
        firsts.push(bases.len() as u32);
    }
    Ok(SweptArrays { firsts, starts, bases, places, values })
}

pub(super) fn to_csr<V: Element>(
    a: SweptParts<'_, V, Host>,
    offsets: OffsetsRef<'_, Host>,
    indices: &mut [u32],
    values: &mut [V],
) {
    let (mut rows, bits): (Vec<Vec<(u32, V)>>, u32) = (vec![Vec::new(); a.rows], swept_row_bits(a.height));
    rows.par_chunks_mut(a.height).enumerate().for_each(|(band, rows)| {
        for step in a.firsts[band] as usize..a.firsts[band + 1] as usize {
            let entries = a.starts[step] as usize..a.starts[step + 1] as usize;
            for (&place, &value) in a.places[entries.clone()].iter().zip(&a.values[entries]) {
                rows[(place & ((1 << bits) - 1)) as usize].push((a.bases[step] + (place >> bits), value));
            }
        }
    });
    fill_rows(offsets, indices, values, |row, columns, numbers| {
        for (place, &entry) in columns.iter_mut().zip(numbers).zip(&rows[row]) {
            (*place.0, *place.1) = entry;
        }
    });
}
