//! Sparse products and sums of matrices on the CPU. Tasks have rows with about equally many entries. A row's products
//! are accumulated in a window of columns if they fit one, else in a hash table.

use super::Host;
use crate::backend::{CsrArrays, CsrParts, CsrPattern, Offsets, OffsetsRef, SparseProducts, with_offsets};
use crate::error::Result;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

/// A key that differs from every column, because columns have 32 bits.
const EMPTY: u64 = u64::MAX;

/// The columns of a row with their items, in the order of first occurrence: open addressing with linear probing (Knuth,
/// The Art of Computer Programming 3, 6.4).
struct Table<S> {
    keys: Vec<u64>,
    items: Vec<S>,
    /// The used slots, combined with their columns so that sorting them sorts by column.
    met: Vec<u64>,
    shift: u32,
}

impl<S: Copy + Default> Table<S> {
    fn new() -> Self {
        Self { keys: Vec::new(), items: Vec::new(), met: Vec::new(), shift: 63 }
    }

    /// Resizes the table for up to this many columns, so that at most half of the slots are used. The table must be
    /// empty.
    fn fit(&mut self, columns: usize) {
        let slots = (2 * columns).next_power_of_two().max(16);
        if slots > self.keys.len() {
            self.keys.resize(slots, EMPTY);
            self.items.resize(slots, S::default());
        }
        // The hash is limited to this many slots, so that small rows stay in the L1 cache.
        self.shift = 64 - slots.trailing_zeros();
    }

    /// Returns the slot of a column. Creates it if there is none.
    #[inline(always)]
    fn slot(&mut self, column: u32) -> usize {
        let mask = (1_usize << (64 - self.shift)) - 1;
        let mut slot = (u64::from(column).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            let key = self.keys[slot];
            if key == u64::from(column) {
                return slot;
            }
            if key == EMPTY {
                self.keys[slot] = u64::from(column);
                self.met.push(u64::from(column) << 32 | slot as u64);
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Calls `take` with the columns and their items, columns ascending, and empties the table.
    fn drain(&mut self, mut take: impl FnMut(u32, S)) {
        self.met.sort_unstable();
        for &met in &self.met {
            let slot = met as u32 as usize;
            take((met >> 32) as u32, self.items[slot]);
            self.items[slot] = S::default();
            self.keys[slot] = EMPTY;
        }
        self.met.clear();
    }
}

/// The rows of a pattern, with offsets of either width.
pub(super) struct Rows<'a> {
    offsets: OffsetsRef<'a, Host>,
    pub(super) indices: &'a [u32],
}

impl<'a> Rows<'a> {
    pub(super) fn of(pattern: CsrPattern<'a, Host>) -> Self {
        Self { offsets: pattern.offsets, indices: pattern.indices }
    }

    #[inline(always)]
    pub(super) fn range(&self, row: usize) -> Range<usize> {
        with_offsets!(self.offsets, offsets => offsets[row].to_usize()..offsets[row + 1].to_usize())
    }

    #[inline(always)]
    pub(super) fn columns(&self, row: usize) -> &'a [u32] {
        &self.indices[self.range(row)]
    }

    pub(super) fn start(&self, row: usize) -> usize {
        with_offsets!(self.offsets, offsets => offsets[row].to_usize())
    }
}

/// The maximum number of bytes in a window, so that it stays in the caches of a core.
const WIDEST: usize = 1 << 20;

/// The number of bits in a word of marks, and the number of columns for a word of the second level of marks.
const WORD: usize = 64;
const WORDS: usize = WORD * WORD;

/// If a matrix has at most this many columns, the window contains all of them, and the range of a row's columns need
/// not be determined.
const ALL: usize = 16 * WORDS;

/// Items for consecutive columns, starting at or below the lowest of a row. A bit marks each used column, and a second
/// level of bits marks each nonzero word of the first, so that no search or sort is needed.
struct Window<S> {
    items: Vec<S>,
    met: Vec<u64>,
    words: Vec<u64>,
}

impl<S: Copy + Default> Window<S> {
    fn new() -> Self {
        Self { items: Vec::new(), met: Vec::new(), words: Vec::new() }
    }

    /// Resizes the window for this many columns. It must be empty.
    fn fit(&mut self, columns: usize) {
        let words = columns.div_ceil(WORDS);
        if words > self.words.len() {
            self.words.resize(words, 0);
            self.met.resize(WORD * words, 0);
            self.items.resize(WORDS * words, S::default());
        }
    }

    /// Calls `take` with the used positions, ascending, and their items, and empties the window. `columns` is the
    /// number for which it was resized.
    #[inline(always)]
    fn drain(&mut self, columns: usize, mut take: impl FnMut(u32, S)) {
        for (high, words) in self.words[..columns.div_ceil(WORDS)].iter_mut().enumerate() {
            while *words != 0 {
                let word = WORD * high + words.trailing_zeros() as usize;
                *words &= *words - 1;
                let mut met = std::mem::take(&mut self.met[word]);
                while met != 0 {
                    let place = WORD * word + met.trailing_zeros() as usize;
                    met &= met - 1;
                    take(place as u32, std::mem::take(&mut self.items[place]));
                }
            }
        }
    }
}

/// Returns an upper bound on the number of entries in a row of a product: the number of its products, or of columns if
/// there are fewer.
fn bound(named: &[u32], b: &Rows<'_>, columns: usize) -> usize {
    named.iter().map(|&k| b.range(k as usize).len()).sum::<usize>().min(columns)
}

/// Returns the range of columns in a row of a product. `named` are the columns in that row of A.
fn columns_of(named: &[u32], b: &Rows<'_>) -> Range<u32> {
    let (mut first, mut end) = (u32::MAX, 0);
    for &k in named {
        let row = b.columns(k as usize);
        if let (Some(&lowest), Some(&highest)) = (row.first(), row.last()) {
            (first, end) = (first.min(lowest), end.max(highest + 1));
        }
    }
    first.min(end)..end
}

/// The accumulators of a row. Both add products in the same order, so the bits are the same.
struct Sums<V> {
    table: Table<V>,
    window: Window<V>,
}

impl<V: Scalar> Sums<V> {
    fn new() -> Self {
        Self { table: Table::new(), window: Window::new() }
    }

    /// Computes the entries in row `row` of A B, columns ascending.
    #[inline(always)]
    fn row(
        &mut self,
        row: usize,
        (a, a_values): (&Rows<'_>, &[V]),
        (b, b_values, columns): (&Rows<'_>, &[V], usize),
        mut take: impl FnMut(u32, V),
    ) {
        let range = a.range(row);
        let named = &a.indices[range.clone()];
        let factors = both(named, &a_values[range]);
        let within = if columns <= ALL { 0..columns as u32 } else { columns_of(named, b) };
        if within.len() * size_of::<V>() <= WIDEST {
            let window = &mut self.window;
            window.fit(within.len());
            for (&k, &factor) in factors {
                let entries = b.range(k as usize);
                for (&column, &value) in both(&b.indices[entries.clone()], &b_values[entries]) {
                    let place = (column - within.start) as usize;
                    window.items[place] += factor * value;
                    window.met[place / WORD] |= 1 << (place % WORD);
                    window.words[place / WORDS] |= 1 << (place / WORD % WORD);
                }
            }
            window.drain(within.len(), |place, value| take(within.start + place, value));
        } else {
            let table = &mut self.table;
            table.fit(bound(named, b, columns));
            for (&k, &factor) in factors {
                let entries = b.range(k as usize);
                for (&column, &value) in both(&b.indices[entries.clone()], &b_values[entries]) {
                    let slot = table.slot(column);
                    table.items[slot] += factor * value;
                }
            }
            table.drain(take);
        }
    }
}

/// Returns the ranges of rows for the tasks of a product: larger than for other operations, so that accumulators are
/// allocated less often.
fn tasks(a: &Rows<'_>, rows: usize) -> Vec<Range<usize>> {
    let chunks = row_chunks(|row| a.start(row), rows);
    let (fours, rest) = chunks.as_chunks::<4>();
    let fours = fours.iter().map(|four| four[0].start..four[3].end);
    fours.chain(rest.iter().cloned()).collect()
}

/// The rows that one task has computed.
struct Computed<V> {
    lengths: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<V>,
}

/// Concatenates the rows of all tasks.
fn joined<V: Scalar>(rows: usize, tasks: &[Computed<V>]) -> CsrArrays<V, Host> {
    let nonzeros = tasks.iter().map(|task| task.indices.len()).sum::<usize>();
    let lengths = tasks.iter().flat_map(|task| &task.lengths);
    let offsets = if nonzeros <= crate::backend::NARROW_LIMIT {
        Offsets::Lower(summed::<u32>(rows, lengths))
    } else {
        Offsets::Wide(summed::<u64>(rows, lengths))
    };
    let (mut indices, mut values) = (vec![0; nonzeros], vec![V::zero(); nonzeros]);
    let places = super::chunks::split(&mut indices, tasks.iter().map(|task| task.indices.len()));
    let with_values = super::chunks::split(&mut values, tasks.iter().map(|task| task.indices.len()));
    places.into_par_iter().zip(with_values).zip(tasks).for_each(|((indices, values), task)| {
        indices.copy_from_slice(&task.indices);
        values.copy_from_slice(&task.values);
    });
    (offsets, indices, values)
}

fn summed<'a, O: Offset>(rows: usize, lengths: impl Iterator<Item = &'a u32>) -> Vec<O> {
    let (mut offsets, mut sum) = (Vec::with_capacity(rows + 1), 0);
    offsets.push(O::from_usize(0));
    for &length in lengths {
        sum += length as usize;
        offsets.push(O::from_usize(sum));
    }
    offsets
}

impl SparseProducts for Host {
    fn multiply_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        c: CsrPattern<'_, Self>,
        values: &mut [V],
    ) -> Result<()> {
        let (left, right, c) = (Rows::of(a.pattern()), Rows::of(b.pattern()), Rows::of(c));
        let chunks = tasks(&left, a.rows);
        let parts = split_rows(&chunks, |row| c.start(row), values);
        parts.into_par_iter().for_each(|(rows, values)| {
            let (mut sums, mut place) = (Sums::new(), 0);
            for row in rows {
                sums.row(row, (&left, a.values), (&right, b.values, b.columns), |_, value| {
                    values[place] = value;
                    place += 1;
                });
            }
        });
        Ok(())
    }

    /// Computes the product in one pass: each task keeps its rows, which are copied to their final positions at the
    /// end.
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        _known: Option<(OffsetsRef<'_, Self>, usize)>,
        most: usize,
    ) -> Result<Option<CsrArrays<V, Self>>> {
        let (left, right) = (Rows::of(a.pattern()), Rows::of(b.pattern()));
        let chunks = tasks(&left, a.rows);
        let tasks = chunks.into_par_iter().map(|rows| {
            let (mut sums, lengths) = (Sums::new(), Vec::with_capacity(rows.len()));
            let mut task = Computed { lengths, indices: Vec::new(), values: Vec::new() };
            for row in rows {
                let before = task.indices.len();
                sums.row(row, (&left, a.values), (&right, b.values, b.columns), |column, value| {
                    task.indices.push(column);
                    task.values.push(value);
                });
                task.lengths.push((task.indices.len() - before) as u32);
            }
            task
        });
        let done: Vec<Computed<V>> = tasks.collect();
        let entries: usize = done.iter().map(|task| task.indices.len()).sum();
        Ok((entries <= most).then(|| joined(a.rows, &done)))
    }

    fn count_differing(&self, list: &[u32], other: &[u32], count: &mut [u32]) -> Result<()> {
        let pairs = list.par_iter().zip(other).with_min_len(1 << 14);
        count[0] += pairs.map(|(a, b)| u32::from(a != b)).reduce(|| 0, |a, b| a + b);
        Ok(())
    }

    fn add_lengths(
        &self,
        a: CsrPattern<'_, Self>,
        b: CsrPattern<'_, Self>,
        lengths: &mut [u32],
    ) -> Result<()> {
        let rows = a.rows;
        let (a, b) = (Rows::of(a), Rows::of(b));
        let chunks = row_chunks(|row| a.start(row) + b.start(row), rows);
        let parts = split_rows(&chunks, |row| row, &mut lengths[..rows]);
        parts.into_par_iter().for_each(|(rows, lengths)| {
            for (row, length) in rows.zip(lengths) {
                *length = 0;
                merged(a.columns(row), b.columns(row), |_, _, _| *length += 1);
            }
        });
        lengths[rows] = 0;
        Ok(())
    }

    fn add_rows<V: Scalar>(
        &self,
        (alpha, a): (V, CsrParts<'_, V, Self>),
        (beta, b): (V, CsrParts<'_, V, Self>),
        offsets: OffsetsRef<'_, Self>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let (left, right) = (Rows::of(a.pattern()), Rows::of(b.pattern()));
        let start = |row: usize| with_offsets!(offsets, offsets => offsets[row].to_usize());
        let chunks = row_chunks(|row| left.start(row) + right.start(row), a.rows);
        let indices = split_rows(&chunks, start, indices);
        let parts = indices.into_par_iter().zip(split_rows(&chunks, start, values));
        parts.for_each(|((rows, indices), (_, values))| {
            let mut place = 0;
            for row in rows {
                let (from_a, from_b) = (left.range(row), right.range(row));
                let (a_values, b_values) = (&a.values[from_a.clone()], &b.values[from_b.clone()]);
                let (a_columns, b_columns) = (&left.indices[from_a], &right.indices[from_b]);
                merged(a_columns, b_columns, |column, i, j| {
                    indices[place] = column;
                    values[place] = match (i, j) {
                        (Some(i), Some(j)) => alpha * a_values[i] + beta * b_values[j],
                        (Some(i), None) => alpha * a_values[i],
                        (None, j) => j.map_or(V::zero(), |j| beta * b_values[j]),
                    };
                    place += 1;
                });
            }
        });
        Ok(())
    }
}

/// Calls `each` for every column that is in either list, ascending, with its positions in both.
fn merged(a: &[u32], b: &[u32], mut each: impl FnMut(u32, Option<usize>, Option<usize>)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (left, right) = (a.get(i), b.get(j));
        let from_a = left.is_some_and(|&left| right.is_none_or(|&right| left <= right));
        let from_b = right.is_some_and(|&right| left.is_none_or(|&left| right <= left));
        let column = if from_a { a[i] } else { b[j] };
        each(column, from_a.then_some(i), from_b.then_some(j));
        i += usize::from(from_a);
        j += usize::from(from_b);
    }
}
