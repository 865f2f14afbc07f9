//! Sparse products and sums of matrices on the CPU: a hash table a task, rows in tasks of about equally many entries.

use super::Host;
use crate::backend::{CsrArrays, CsrParts, CsrPattern, Offsets, OffsetsRef, SparseProducts, with_offsets};
use crate::error::Result;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

/// What no column is: these have 32 bits.
const EMPTY: u64 = u64::MAX;

/// Columns met in a row with what belongs to them, in the order of their first meeting: open addressing, linear probing
/// (Knuth, The Art of Computer Programming 3, 6.4).
struct Table<S> {
    keys: Vec<u64>,
    items: Vec<S>,
    /// The slots that are taken, each below its column: sorted, they are in the order of columns.
    met: Vec<u64>,
    shift: u32,
}

impl<S: Copy + Default> Table<S> {
    fn new() -> Self {
        Self { keys: Vec::new(), items: Vec::new(), met: Vec::new(), shift: 63 }
    }

    /// Makes room for so many columns, of which at most half of the slots are taken. The table is empty before.
    fn fit(&mut self, columns: usize) {
        let slots = (2 * columns).next_power_of_two().max(16);
        if slots > self.keys.len() {
            self.keys.resize(slots, EMPTY);
            self.items.resize(slots, S::default());
        }
        // Small rows stay in the first-level cache, whatever the largest one was.
        self.shift = 64 - slots.trailing_zeros();
    }

    /// The slot of a column, made where there is none.
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

    /// Hands out columns with what belongs to them, columns ascending, and empties the table.
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

/// Rows of a pattern, offsets of either width.
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

/// The most entries that a row of a product may have: as many as there are products, or columns.
fn bound(named: &[u32], b: &Rows<'_>, columns: usize) -> usize {
    named.iter().map(|&k| b.range(k as usize).len()).sum::<usize>().min(columns)
}

/// Adds the products of row `row` of A B up.
#[inline(always)]
fn accumulate<V: Scalar>(
    table: &mut Table<V>,
    row: usize,
    (a, a_values): (&Rows<'_>, &[V]),
    (b, b_values): (&Rows<'_>, &[V]),
) {
    let range = a.range(row);
    for (&k, &factor) in both(&a.indices[range.clone()], &a_values[range]) {
        let entries = b.range(k as usize);
        for (&column, &value) in both(&b.indices[entries.clone()], &b_values[entries]) {
            let slot = table.slot(column);
            table.items[slot] += factor * value;
        }
    }
}

/// Rows that a task computed, to be put together.
struct Computed<V> {
    lengths: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<V>,
}

/// Puts the rows of all tasks together.
fn joined<V: Scalar>(rows: usize, tasks: &[Computed<V>]) -> CsrArrays<V, Host> {
    let nonzeros = tasks.iter().map(|task| task.indices.len()).sum::<usize>();
    let lengths = tasks.iter().flat_map(|task| &task.lengths);
    let offsets = if nonzeros <= crate::backend::NARROW_LIMIT {
        Offsets::Narrow(summed::<u32>(rows, lengths))
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
        let chunks = row_chunks(|row| left.start(row), a.rows);
        let parts = split_rows(&chunks, |row| c.start(row), values);
        parts.into_par_iter().for_each(|(rows, values)| {
            let (mut table, mut place) = (Table::<V>::new(), 0);
            for row in rows {
                table.fit(c.range(row).len());
                accumulate(&mut table, row, (&left, a.values), (&right, b.values));
                table.drain(|_, value| {
                    values[place] = value;
                    place += 1;
                });
            }
        });
        Ok(())
    }

    /// One pass: each task keeps its rows, which are copied to their places at the end.
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        _known: Option<(OffsetsRef<'_, Self>, usize)>,
    ) -> Result<CsrArrays<V, Self>> {
        let (left, right) = (Rows::of(a.pattern()), Rows::of(b.pattern()));
        let chunks = row_chunks(|row| left.start(row), a.rows);
        let tasks = chunks.into_par_iter().map(|rows| {
            let mut table = Table::<V>::new();
            let lengths = Vec::with_capacity(rows.len());
            let mut task = Computed { lengths, indices: Vec::new(), values: Vec::new() };
            for row in rows {
                table.fit(bound(left.columns(row), &right, b.columns));
                accumulate(&mut table, row, (&left, a.values), (&right, b.values));
                task.lengths.push(table.met.len() as u32);
                table.drain(|column, value| {
                    task.indices.push(column);
                    task.values.push(value);
                });
            }
            task
        });
        Ok(joined(a.rows, &tasks.collect()))
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
                merged(&left.indices[from_a], &right.indices[from_b], |column, i, j| {
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

/// Calls `each` for every column of either list, ascending, with its places in them.
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
