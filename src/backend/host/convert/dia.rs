//! Diagonals on the CPU: finding them, and converting their values from and to CSR.

use super::blocks::fill_rows;
use crate::backend::{
    CsrParts, DIA_SECTION, DiaFill, DiaParts, Diagonals, Host, OffsetsRef, is_no_entry, no_entry,
    with_offsets,
};
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The number of rows in a task, a multiple of the rows in a slice.
const ROWS: usize = 1 << 11;

/// The number of rows that are compared with their mirror images, before half of a matrix is stored.
const LOOKED_AT: usize = 1 << 10;

pub(super) fn diagonals(
    (rows, columns): (usize, usize),
    offsets: OffsetsRef<'_, Host>,
    indices: &[u32],
    most: usize,
) -> Diagonals {
    // Bit `column - row + rows - 1` stands for a diagonal. Without rows there are none.
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

/// Compares the entries of a few evenly spaced rows with their mirror images.
pub(super) fn seems_symmetric<V: Scalar>(a: CsrParts<'_, V, Host>) -> bool {
    with_offsets!(a.offsets, offsets => {
        let entries = |row: usize| offsets[row].to_usize()..offsets[row + 1].to_usize();
        (0..a.rows).step_by((a.rows / LOOKED_AT).max(1)).all(|row| {
            entries(row).all(|at| {
                let beside = entries(a.indices[at] as usize);
                let found = a.indices[beside.clone()].binary_search(&(row as u32));
                found.is_ok_and(|place| a.values[beside.start + place].bits() == a.values[at].bits())
            })
        })
    })
}

pub(super) fn from_csr<V: Scalar>(
    a: CsrParts<'_, V, Host>,
    mirrored: usize,
    distances: &[i64],
    values: &mut [V],
) -> DiaFill {
    let section = distances.len() * DIA_SECTION;
    if section == 0 {
        return DiaFill::Whole;
    }
    let (lost, unlike) = (AtomicBool::new(false), AtomicBool::new(false));
    with_offsets!(a.offsets, offsets => {
        values.par_chunks_mut(section * (ROWS / DIA_SECTION)).enumerate().for_each(|(task, values)| {
            values.fill(no_entry());
            for row in task * ROWS..((task + 1) * ROWS).min(a.rows) {
                let in_task = row % ROWS;
                let base = in_task / DIA_SECTION * section + in_task % DIA_SECTION;
                let (mut k, entries) = (0, offsets[row].to_usize()..offsets[row + 1].to_usize());
                for (&column, &value) in both(&a.indices[entries.clone()], &a.values[entries]) {
                    let distance = i64::from(column) - row as i64;
                    if is_no_entry(value) {
                        lost.store(true, Ordering::Relaxed);
                    }
                    if mirrored > 0 && distance < 0 {
                        continue;
                    }
                    k += distances[k..].iter().take_while(|&&d| d < distance).count();
                    values[base + k * DIA_SECTION] = value;
                }
            }
        });
        if mirrored == 0 {
            return DiaFill::of(lost.into_inner(), false);
        }
        let none: &[i64] = &[];
        let half = DiaParts { rows: a.rows, columns: a.columns, mirrored, distances, steps: none, values: &*values };
        (0..a.rows.div_ceil(ROWS)).into_par_iter().for_each(|task| {
            let same = (task * ROWS..((task + 1) * ROWS).min(a.rows)).all(|row| {
                let entries = offsets[row].to_usize()..offsets[row + 1].to_usize();
                let own = a.indices[entries.clone()].iter().zip(&a.values[entries]);
                let own = own.map(|(&column, value)| (column as usize, value.bits()));
                let images = half.images(row).map(|(column, value)| (column, value.bits()));
                own.take_while(|(column, _)| *column < row).eq(images)
            });
            if !same {
                unlike.store(true, Ordering::Relaxed);
            }
        });
    });
    DiaFill::of(lost.into_inner(), unlike.into_inner())
}

pub(super) fn lengths<V: Scalar>(a: DiaParts<'_, V, Host>, lengths: &mut [u32]) {
    let lengths = lengths.par_iter_mut().with_min_len(ROWS).enumerate();
    lengths.for_each(|(i, length)| *length = a.row(i).count() as u32);
}

pub(super) fn to_csr<V: Scalar>(
    a: DiaParts<'_, V, Host>,
    offsets: OffsetsRef<'_, Host>,
    indices: &mut [u32],
    values: &mut [V],
) {
    fill_rows(offsets, indices, values, |i, columns, numbers| {
        for ((place, number), (column, value)) in columns.iter_mut().zip(numbers).zip(a.row(i)) {
            (*place, *number) = (column as u32, value);
        }
    });
}
