//! Assembly for any backend: pack each place into one key, sort the keys stably and with them the triplets' numbers,
//! and find where runs of equal keys start. A run is a nonzero, and its triplets stand in order of appearance.
//!
//! Temporary memory: about 12 bytes a triplet for keys and numbers, and the sort's second buffers.

use super::{Assembly, Symmetry};
use crate::backend::{NARROW_LIMIT, Offsets, Primitives};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Triplets};
use crate::scalar::{Element, Offset, Scalar};

/// The matrix.
pub(super) fn assemble<T: Scalar, B: Primitives>(
    backend: &B,
    triplets: Triplets<T>,
    symmetry: Symmetry,
) -> Result<Csr<T, B>> {
    let (rows, columns) = (triplets.rows(), triplets.columns());
    let (row_indices, column_indices, values) = triplets.into_parts();
    let pattern = Pattern { rows, columns, symmetry, row_indices, column_indices };
    Ok(build(backend, pattern, values)?.0)
}

/// The matrix and its map.
pub(super) fn analyse<T: Scalar, B: Primitives>(
    backend: &B,
    triplets: &Triplets<T>,
    symmetry: Symmetry,
) -> Result<(Csr<T, B>, Assembly<B>)> {
    let (is, js, values) = triplets.parts();
    let (row_indices, column_indices) = (is.to_vec(), js.to_vec());
    let pattern =
        Pattern { rows: triplets.rows(), columns: triplets.columns(), symmetry, row_indices, column_indices };
    build(backend, pattern, values.to_vec())
}

struct Pattern {
    rows: usize,
    columns: usize,
    symmetry: Symmetry,
    row_indices: Vec<u32>,
    column_indices: Vec<u32>,
}

fn build<T: Scalar, B: Primitives>(
    backend: &B,
    pattern: Pattern,
    values: Vec<T>,
) -> Result<(Csr<T, B>, Assembly<B>)> {
    let (rows, columns, triplets, symmetry) = (pattern.rows, pattern.columns, values.len(), pattern.symmetry);
    let narrow = triplets <= NARROW_LIMIT / 2;
    let (indices, offsets, sources, starts) = if narrow {
        sort::<B, u32>(backend, pattern, Offsets::Narrow)?
    } else {
        sort::<B, u64>(backend, pattern, Offsets::Wide)?
    };
    let assembly = Assembly { rows, columns, triplets, symmetry, sources, starts };
    let values = backend.upload(values)?;
    let mut summed = backend.zeros(assembly.nonzeros())?;
    assembly.sum(backend, &values, &mut summed)?;
    Ok((Csr::from_parts_unchecked(rows, columns, offsets, indices, summed), assembly))
}

type Sorted<B> = (<B as crate::backend::Backend>::Vec<u32>, Offsets<B>, Offsets<B>, Offsets<B>);

/// Column indices and row offsets of the matrix, sources and starts of the map.
fn sort<B: Primitives, W: Offset>(
    backend: &B,
    pattern: Pattern,
    wrap: fn(B::Vec<W>) -> Offsets<B>,
) -> Result<Sorted<B>> {
    let Pattern { rows, columns, symmetry, row_indices, column_indices } = pattern;
    let shift = significant_bits(columns);
    let half = symmetry != Symmetry::General;
    if half && shift == 32 && rows == 1 << 32 {
        return Err(Error::Unsupported("a stored half of 2^32 rows on this device".into()));
    }
    let (is, js) = (backend.upload(row_indices)?, backend.upload(column_indices)?);
    let n = B::len(&*is) * if half { 2 } else { 1 };
    let mut keys = backend.zeros::<u64>(n)?;
    let mut low = 0;
    let high = if half {
        backend.pack_mirrored(&is, &js, shift, &mut keys)?;
        (2 * shift + 1).min(64)
    } else {
        backend.pack(&is, &js, shift, &mut keys)?;
        if backend.is_sorted(&*js, false)? {
            low = shift;
        }
        significant_bits(rows) + shift
    };
    drop((is, js));
    let mut sources = backend.zeros::<W>(n)?;
    backend.sequence(&mut sources)?;
    backend.sort_pairs(&mut keys, &mut sources, low..high)?;

    let mut starts = backend.zeros::<W>(n + 1)?;
    let mut nonzeros = backend.run_starts(&keys, &mut starts)?;
    if half && nonzeros > 0 {
        // The mirror images of the diagonal, which do not count, are the last run.
        let mut last = [0];
        backend.read(B::part(&*keys, n - 1..n), &mut last)?;
        nonzeros -= usize::from(last[0] == 1u64.checked_shl(2 * shift).unwrap_or(u64::MAX));
    }
    let starts = shorten(backend, starts, nonzeros + 1)?;
    let mut entries = [W::default()];
    backend.read(B::part(&*starts, nonzeros..nonzeros + 1), &mut entries)?;
    let sources = shorten(backend, sources, entries[0].to_usize())?;

    let mut places = backend.zeros::<u64>(nonzeros)?;
    backend.gather(&keys, B::part(&*starts, 0..nonzeros), &mut places)?;
    drop(keys);
    let mut row_of = backend.zeros::<u32>(nonzeros)?;
    let mut indices = backend.zeros::<u32>(nonzeros)?;
    backend.unpack(&places, shift, &mut row_of, &mut indices)?;
    drop(places);
    let offsets = if nonzeros <= NARROW_LIMIT {
        let mut offsets = backend.zeros::<u32>(rows + 1)?;
        backend.offsets_of_sorted(&row_of, &mut offsets)?;
        Offsets::Narrow(offsets)
    } else {
        let mut offsets = backend.zeros::<u64>(rows + 1)?;
        backend.offsets_of_sorted(&row_of, &mut offsets)?;
        Offsets::Wide(offsets)
    };
    Ok((indices, offsets, wrap(sources), wrap(starts)))
}

/// Bits of the largest index below `count`.
pub(super) fn significant_bits(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// The first `length` elements in a buffer of their own.
fn shorten<T: Element, B: Primitives>(backend: &B, from: B::Vec<T>, length: usize) -> Result<B::Vec<T>> {
    if B::len(&*from) == length {
        return Ok(from);
    }
    let mut to = backend.zeros(length)?;
    backend.copy(B::part(&*from, 0..length), &mut to)?;
    Ok(to)
}
