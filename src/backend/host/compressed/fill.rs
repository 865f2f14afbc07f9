//! Writes the codes and values of slices, in parallel tasks.

use super::{Rows, at};
use crate::backend::host::chunks;
use crate::backend::{
    BASES, CompressedPlan, Host, NO_ENTRY, OffsetsRef, RANGE, SECTION, SectionSizes, ValuesMut, WIDE_COLUMNS,
    WindowOrder, WindowOrderRef, code_of,
};
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of slices in a task.
const BLOCK: usize = 1 << 8;

/// Returns the rows at the positions of a slice.
fn rows_of(
    section: usize,
    rows: usize,
    order: Option<WindowOrderRef<'_, Host>>,
) -> impl Iterator<Item = usize> {
    let positions = section * SECTION..((section + 1) * SECTION).min(rows);
    positions.map(move |p| order.map_or(p, |order| order.row(p)))
}

/// Returns the sizes of slices for rows in this order. If `columns` is set, also examines their distances.
pub(super) fn sections<O: Offset, V: Scalar>(
    a: Rows<'_, O, V>,
    longest: usize,
    columns: bool,
    order: Option<WindowOrder<Host>>,
) -> SectionSizes<Host> {
    let in_order = order.as_ref().map(WindowOrder::as_ref);
    let sizes: Vec<(u32, [u32; BASES])> = (0..a.a.rows.div_ceil(SECTION))
        .into_par_iter()
        .with_min_len(BLOCK)
        .map(|section| {
            let rows = || rows_of(section, a.a.rows, in_order);
            let columns_of = |row: usize| a.entries(a.short(row, longest)).0;
            let width = rows().map(|row| columns_of(row).len()).max().unwrap_or(0) as u32;
            let high = rows().filter_map(|row| Some(i64::from(*columns_of(row).last()?) - row as i64)).max();
            let (Some(high), true) = (high, columns) else { return (width, [0; BASES]) };
            // Returns the smallest distance in the slice that is at least `from`.
            let next = |from: i64| {
                let of_row = |row: usize| {
                    let (entries, row) = (columns_of(row), row as i64);
                    let k = entries.partition_point(|&column| i64::from(column) - row < from);
                    entries.get(k).map(|&column| i64::from(column) - row)
                };
                rows().filter_map(of_row).min()
            };
            let low = next(i64::MIN).unwrap_or(high);
            let (mut bases, mut rest) = ([low as u32; BASES], None);
            if high - low >= 65535 {
                rest = Some(low);
                for (b, base) in bases.iter_mut().enumerate() {
                    let Some(start) = rest else { break };
                    *base = (start as u32).wrapping_sub((b as u32) << 14);
                    rest = next(start + RANGE);
                }
            }
            (width | if rest.is_some() { WIDE_COLUMNS } else { 0 }, bases)
        })
        .collect();
    let totals = sizes.iter().fold([0; 3], |[widths, quads, wide], &(width, _)| {
        let (entries, far) = (width & !WIDE_COLUMNS, width & WIDE_COLUMNS != 0);
        let here = u64::from(entries.div_ceil(4));
        [widths + u64::from(entries), quads + here, wide + if far { here } else { 0 }]
    });
    let (widths, bases): (_, Vec<_>) = sizes.into_iter().unzip();
    SectionSizes { order, widths, bases: bases.into_flattened(), totals }
}

/// Finds the code of a key in an ascending list. It first tries the code of the entry at the same place in the previous
/// row.
struct Guess<K, F> {
    keys: Vec<K>,
    last: Vec<u8>,
    search: F,
}

impl<K: PartialEq + Copy, F: Fn(&[K], K) -> Option<usize>> Guess<K, F> {
    fn code(&mut self, k: usize, key: K) -> Option<u32> {
        if k >= self.last.len() {
            self.last.resize(k + 1, 0);
        }
        let guess = usize::from(self.last[k]);
        let code = if self.keys.get(guess) == Some(&key) { guess } else { (self.search)(&self.keys, key)? };
        self.last[k] = code as u8;
        Some(code as u32)
    }
}

/// Returns the range of slices for each task.
fn blocks_of(sections: usize) -> Vec<Range<usize>> {
    (0..sections).step_by(BLOCK).map(|first| first..(first + BLOCK).min(sections)).collect()
}

/// Returns the number of elements in each block.
fn sizes(offsets: OffsetsRef<'_, Host>, blocks: &[Range<usize>]) -> Vec<usize> {
    blocks.iter().map(|b| at(offsets, b.end) - at(offsets, b.start)).collect()
}

/// Writes codes and values. Returns whether every distance and value was found in its table.
pub(super) fn fill<O: Offset, V: Scalar>(
    a: Rows<'_, O, V>,
    plan: &CompressedPlan<'_, V>,
    order: Option<WindowOrderRef<'_, Host>>,
    (entries, word_offsets): (OffsetsRef<'_, Host>, OffsetsRef<'_, Host>),
    bases: &[u32],
    words: &mut [u32],
    values: ValuesMut<'_, V, Host>,
) -> bool {
    let sections = entries.len() - 1;
    let blocks = blocks_of(sections);
    let good = AtomicBool::new(true);
    let word_parts = chunks::split(words, sizes(word_offsets, &blocks));
    let code = |(block, words): (&Range<usize>, &mut [u32])| {
        if !codes(a, plan, order, (entries, word_offsets), bases, block.clone(), words) {
            good.store(false, Ordering::Relaxed);
        }
    };
    blocks.par_iter().zip(word_parts).for_each(code);
    match values {
        ValuesMut::Codes => {}
        ValuesMut::Full(values) => {
            let parts = chunks::split(values, sizes(entries, &blocks));
            blocks
                .par_iter()
                .zip(parts)
                .for_each(|(b, out)| copy(a, plan, order, entries, b.clone(), out, |v| v));
        }
        ValuesMut::Lower(values) => {
            let parts = chunks::split(values, sizes(entries, &blocks));
            let narrowed = |v: V| v.narrow().unwrap_or_default();
            blocks
                .par_iter()
                .zip(parts)
                .for_each(|(b, out)| copy(a, plan, order, entries, b.clone(), out, narrowed));
        }
    }
    good.into_inner()
}

/// Writes the words of a block of slices.
fn codes<O: Offset, V: Scalar>(
    a: Rows<'_, O, V>,
    plan: &CompressedPlan<'_, V>,
    order: Option<WindowOrderRef<'_, Host>>,
    (entries, word_offsets): (OffsetsRef<'_, Host>, OffsetsRef<'_, Host>),
    bases: &[u32],
    block: Range<usize>,
    words: &mut [u32],
) -> bool {
    let search = |keys: &[u32], d: u32| keys.binary_search_by_key(&(d as i32), |&k| k as i32).ok();
    let distances = plan.distances.map_or(Vec::new(), |d| d.keys.clone());
    let mut distances = Guess { keys: distances, last: Vec::new(), search };
    let search = |keys: &[[u64; 2]], v: [u64; 2]| keys.binary_search(&v).ok();
    let numbers = plan.values.map_or(Vec::new(), |v| v.keys.iter().map(|v| v.bits()).collect());
    let mut numbers = Guess { keys: numbers, last: Vec::new(), search };
    let base = at(word_offsets, block.start);
    let (bases, _) = bases.as_chunks();
    for section in block {
        let quads = ((at(entries, section + 1) - at(entries, section)) / SECTION).div_ceil(4);
        let words = &mut words[at(word_offsets, section) - base..at(word_offsets, section + 1) - base];
        if words.is_empty() {
            continue;
        }
        let per_quad = words.len() / (quads * SECTION);
        let of_columns = per_quad - usize::from(plan.values.is_some());
        let bits = 8 * of_columns as u32;
        for quad in words.chunks_exact_mut(per_quad * SECTION) {
            quad[..of_columns * SECTION].fill(NO_ENTRY);
            quad[of_columns * SECTION..].fill(0);
        }
        for (lane, row) in rows_of(section, a.a.rows, order).enumerate() {
            let (columns, values) = a.entries(a.short(row, plan.longest));
            for (k, (&column, value)) in columns.iter().zip(values).enumerate() {
                let quad = &mut words[k / 4 * per_quad * SECTION..(k / 4 + 1) * per_quad * SECTION];
                let distance = column.wrapping_sub(row as u32);
                let code = match of_columns {
                    0 => Some(0),
                    1 => distances.code(k, distance),
                    2 => code_of(&bases[section], distance),
                    _ => Some(column),
                };
                let Some(code) = code else { return false };
                if of_columns > 0 {
                    let (word, shift) = (k % 4 * of_columns / 4, bits * (k % 4) as u32 % 32);
                    let kept = !((NO_ENTRY >> (32 - bits)) << shift);
                    let word = &mut quad[word * SECTION + lane];
                    *word = (*word & kept) | code << shift;
                }
                if plan.values.is_some() {
                    let Some(code) = numbers.code(k, value.bits()) else { return false };
                    quad[of_columns * SECTION + lane] |= code << (8 * (k % 4));
                }
            }
        }
    }
    true
}

/// Writes the values of a block of slices.
fn copy<O: Offset, V: Scalar, W: Copy>(
    a: Rows<'_, O, V>,
    plan: &CompressedPlan<'_, V>,
    order: Option<WindowOrderRef<'_, Host>>,
    entries: OffsetsRef<'_, Host>,
    block: Range<usize>,
    out: &mut [W],
    convert: impl Fn(V) -> W,
) {
    let base = at(entries, block.start);
    for section in block {
        let out = &mut out[at(entries, section) - base..];
        for (lane, row) in rows_of(section, a.a.rows, order).enumerate() {
            let (_, values) = a.entries(a.short(row, plan.longest));
            values.iter().enumerate().for_each(|(k, &v)| out[k * SECTION + lane] = convert(v));
        }
    }
}
