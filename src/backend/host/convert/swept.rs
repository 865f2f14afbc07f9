//! Bands of rows swept in the order of columns, on the CPU: a task a band.

use super::fill_rows;
use crate::backend::{
    CsrParts, Host, OffsetsRef, SWEPT_REACH, SWEPT_STEP, SweptArrays, SweptParts, with_offsets,
};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset};

/// An entry of a band: row within it, column, number in CSR.
#[derive(Clone, Copy)]
struct Entry {
    row: u32,
    column: u32,
    number: usize,
}

/// The steps of a band, from its entries in the order of columns: each goes to the first step that has room, whose base is near enough,
/// and that is behind the last step with an entry of its row. All steps before `open` are done with.
fn steps(entries: &[Entry], height: usize) -> Vec<Vec<Entry>> {
    let mut steps: Vec<Vec<Entry>> = Vec::new();
    let (mut behind, mut open) = (vec![0; height], 0);
    let closed = |step: &Vec<Entry>, column: u32| {
        step.len() == SWEPT_STEP || (column - step[0].column) as usize >= SWEPT_REACH
    };
    for &entry in entries {
        while open < steps.len() && closed(&steps[open], entry.column) {
            open += 1;
        }
        let mut at = open.max(behind[entry.row as usize]);
        while at < steps.len() && closed(&steps[at], entry.column) {
            at += 1;
        }
        if at == steps.len() {
            steps.push(Vec::new());
        }
        steps[at].push(entry);
        behind[entry.row as usize] = at + 1;
    }
    steps
}

pub(super) fn from_csr<V: Element>(a: CsrParts<'_, V, Host>, height: usize) -> SweptArrays<V, Host> {
    let band = |number: usize| {
        let rows = number * height..((number + 1) * height).min(a.rows);
        let mut entries = Vec::new();
        with_offsets!(a.offsets, offsets => for row in rows.clone() {
            entries.extend((offsets[row].to_usize()..offsets[row + 1].to_usize()).map(|number| Entry {
                row: (row - rows.start) as u32,
                column: a.indices[number],
                number,
            }));
        });
        // Stable, so that equal columns keep the order of rows.
        entries.sort_by_key(|entry| entry.column);
        steps(&entries, rows.len())
    };
    let bands: Vec<Vec<Vec<Entry>>> = (0..a.rows.div_ceil(height)).into_par_iter().map(band).collect();
    let (mut firsts, mut starts, mut bases) = (vec![0], vec![0], Vec::new());
    let (mut places, mut values) = (Vec::with_capacity(a.values.len()), Vec::with_capacity(a.values.len()));
    for band in bands {
        for step in band {
            let base = step[0].column;
            places.extend(step.iter().map(|entry| entry.row << 16 | (entry.column - base)));
            values.extend(step.iter().map(|entry| a.values[entry.number]));
            bases.push(base);
            starts.push(values.len() as u64);
        }
        firsts.push(bases.len() as u32);
    }
    SweptArrays { firsts, starts, bases, places, values }
}

pub(super) fn to_csr<V: Element>(
    a: SweptParts<'_, V, Host>,
    offsets: OffsetsRef<'_, Host>,
    indices: &mut [u32],
    values: &mut [V],
) {
    let mut rows: Vec<Vec<(u32, V)>> = vec![Vec::new(); a.rows];
    rows.par_chunks_mut(a.height).enumerate().for_each(|(band, rows)| {
        for step in a.firsts[band] as usize..a.firsts[band + 1] as usize {
            let entries = a.starts[step] as usize..a.starts[step + 1] as usize;
            for (&place, &value) in a.places[entries.clone()].iter().zip(&a.values[entries]) {
                rows[(place >> 16) as usize].push((a.bases[step] + (place & 0xffff), value));
            }
        }
    });
    fill_rows(offsets, indices, values, |row, columns, numbers| {
        for (place, &entry) in columns.iter_mut().zip(numbers).zip(&rows[row]) {
            (*place.0, *place.1) = entry;
        }
    });
}
