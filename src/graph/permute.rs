//! P A P^T.

use super::Permutation;
use super::chunks::{row_chunks, split_rows};
use crate::backend::{Backend, CsrParts, Host, Offsets, with_offsets};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};
use rayon::prelude::*;

/// Up to this many entries of a row are sorted by insertion.
const INSERTION_UP_TO: usize = 32;

/// P A P^T: rows and columns renumbered alike, each row's columns ascending again. Several threads, one pass over the
/// nonzeros.
///
/// # Errors
/// Unless A is square and the permutation as long as it has rows, or without memory.
pub fn permute_symmetric<V: Scalar>(a: &Csr<V>, permutation: &Permutation) -> Result<Csr<V>> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    Error::check_dimension("length of the permutation", a.rows(), permutation.len())?;
    let parts = a.parts();
    with_offsets!(parts.offsets, offsets => {
        let new_offsets = offsets_after(offsets, permutation)?;
        let (indices, values) = gather_rows(parts, offsets, &new_offsets, permutation)?;
        let new_offsets = wrap(new_offsets);
        Ok(Csr::from_parts_unchecked(a.rows(), a.columns(), new_offsets, indices, values))
    })
}

/// Both widths of offsets keep theirs.
fn wrap<O: Offset>(offsets: Vec<O>) -> Offsets<Host> {
    if O::MAX == <u32 as Offset>::MAX {
        Offsets::Narrow(offsets.into_iter().map(|o| o.to_usize() as u32).collect())
    } else {
        Offsets::Wide(offsets.into_iter().map(|o| o.to_usize() as u64).collect())
    }
}

fn offsets_after<O: Offset>(offsets: &[O], permutation: &Permutation) -> Result<Vec<O>> {
    let mut after: Vec<O> = Host.zeros(offsets.len())?;
    let mut sum = 0;
    for (after, &old) in after[1..].iter_mut().zip(permutation.new_to_old()) {
        sum += offsets[old as usize + 1].to_usize() - offsets[old as usize].to_usize();
        *after = O::from_usize(sum);
    }
    Ok(after)
}

fn gather_rows<V: Scalar, O: Offset>(
    a: CsrParts<'_, V, Host>,
    offsets: &[O],
    new_offsets: &[O],
    permutation: &Permutation,
) -> Result<(Vec<u32>, Vec<V>)> {
    let place = |row: usize| new_offsets[row].to_usize();
    let mut indices: Vec<u32> = Host.zeros(a.indices.len())?;
    let mut values: Vec<V> = Host.zeros(a.values.len())?;
    let chunks = row_chunks(place, a.rows);
    let parts = split_rows(&chunks, place, &mut indices)
        .into_iter()
        .zip(split_rows(&chunks, place, &mut values))
        .map(|((rows, indices), (_, values))| (rows, indices, values))
        .collect::<Vec<_>>();
    parts.into_par_iter().for_each(|(rows, mut indices, mut values)| {
        let mut scratch = Vec::new();
        for old in &permutation.new_to_old()[rows] {
            let old = *old as usize;
            let range = offsets[old].to_usize()..offsets[old + 1].to_usize();
            let (row_indices, rest) = indices.split_at_mut(range.len());
            indices = rest;
            let (row_values, rest) = values.split_at_mut(range.len());
            values = rest;
            let from = a.indices[range.clone()].iter().zip(&a.values[range]);
            let from = from.map(|(&column, &value)| (permutation.old_to_new()[column as usize], value));
            if row_indices.len() <= INSERTION_UP_TO {
                insert_sorted(from, row_indices, row_values);
            } else {
                scratch.clear();
                scratch.extend(from);
                scratch.sort_unstable_by_key(|&(column, _)| column);
                for ((index, value), &(column, v)) in row_indices.iter_mut().zip(row_values).zip(&scratch) {
                    (*index, *value) = (column, v);
                }
            }
        }
    });
    Ok((indices, values))
}

fn insert_sorted<V: Scalar>(entries: impl Iterator<Item = (u32, V)>, indices: &mut [u32], values: &mut [V]) {
    for (k, (column, value)) in entries.enumerate() {
        let mut hole = k;
        while hole > 0 && indices[hole - 1] > column {
            indices[hole] = indices[hole - 1];
            values[hole] = values[hole - 1];
            hole -= 1;
        }
        indices[hole] = column;
        values[hole] = value;
    }
}
