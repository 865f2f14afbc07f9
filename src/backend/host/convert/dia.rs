//! Diagonals on the CPU: which there are, and their values to and from CSR.

use super::blocks::fill_rows;
use crate::backend::{
    CsrParts, DIA_SECTION, DiaParts, Diagonals, Host, OffsetsRef, is_no_entry, no_entry, with_offsets,
};
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Rows that one task takes, a multiple of a section's.
const ROWS: usize = 1 << 11;

pub(super) fn diagonals(
    (rows, columns): (usize, usize),
    offsets: OffsetsRef<'_, Host>,
    indices: &[u32],
    most: usize,
) -> Diagonals {
    // Bit column - row + rows - 1; a matrix without rows has none.
    let marks: Vec<AtomicU32> = (0..(rows + columns).div_ceil(32)).map(|_| AtomicU32::new(0)).collect();
    with_offsets!(offsets, offsets => (0..rows.div_ceil(ROWS)).into_par_iter().for_each(|task| {
        for row in task * ROWS..((task + 1) * ROWS).min(rows) {
            for &column in &indices[offsets[row].to_usize()..offsets[row + 1].to_usize()] {
                let place = column as usize + (rows - 1 - row);
                let (mark, bit) = (&marks[place / 32], 1 << (place % 32));
                if mark.load(Ordering::Relaxed) & bit == 0 {
                    mark.fetch_or(bit, Ordering::Relaxed);
                }
            }
        }
    }));
    let marks = || marks.iter().map(|mark| mark.load(Ordering::Relaxed));
    let count = marks().map(|mark| mark.count_ones() as usize).sum();
    if count > most {
        return Diagonals { count, distances: Vec::new() };
    }
    let words = marks().enumerate().filter(|(_, mark)| *mark != 0);
    let words: Vec<u64> = words.map(|(number, mark)| (number as u64) << 32 | u64::from(mark)).collect();
    Diagonals::from_words(count, &words, 1 - rows as i64)
}

pub(super) fn from_csr<V: Scalar>(a: CsrParts<'_, V, Host>, distances: &[i64], values: &mut [V]) -> bool {
    let section = distances.len() * DIA_SECTION;
    if section == 0 {
        return true;
    }
    let good = AtomicBool::new(true);
    with_offsets!(a.offsets, offsets => {
        values.par_chunks_mut(section * (ROWS / DIA_SECTION)).enumerate().for_each(|(task, values)| {
            values.fill(no_entry());
            for row in task * ROWS..((task + 1) * ROWS).min(a.rows) {
                let in_task = row % ROWS;
                let base = in_task / DIA_SECTION * section + in_task % DIA_SECTION;
                let (mut k, entries) = (0, offsets[row].to_usize()..offsets[row + 1].to_usize());
                for (&column, &value) in a.indices[entries.clone()].iter().zip(&a.values[entries]) {
                    let distance = i64::from(column) - row as i64;
                    k += distances[k..].iter().take_while(|&&d| d < distance).count();
                    values[base + k * DIA_SECTION] = value;
                    if is_no_entry(value) {
                        good.store(false, Ordering::Relaxed);
                    }
                }
            }
        });
    });
    good.into_inner()
}

/// Column and value of each entry of a row.
fn row<V: Scalar>(a: DiaParts<'_, V, Host>, row: usize) -> impl Iterator<Item = (u32, V)> + '_ {
    let base = row / DIA_SECTION * (a.distances.len() * DIA_SECTION) + row % DIA_SECTION;
    let values = a.values.iter().skip(base).step_by(DIA_SECTION);
    let entries = a.distances.iter().zip(values).filter(|(_, value)| !is_no_entry(**value));
    entries.map(move |(distance, &value)| ((row as i64 + distance) as u32, value))
}

pub(super) fn lengths<V: Scalar>(a: DiaParts<'_, V, Host>, lengths: &mut [u32]) {
    let lengths = lengths.par_iter_mut().with_min_len(ROWS).enumerate();
    lengths.for_each(|(i, length)| *length = row(a, i).count() as u32);
}

pub(super) fn to_csr<V: Scalar>(
    a: DiaParts<'_, V, Host>,
    offsets: OffsetsRef<'_, Host>,
    indices: &mut [u32],
    values: &mut [V],
) {
    fill_rows(offsets, indices, values, |i, columns, numbers| {
        for (place, entry) in columns.iter_mut().zip(numbers).zip(row(a, i)) {
            (*place.0, *place.1) = entry;
        }
    });
}
