//! Assembly for any backend: pack each place into one key, sort the keys stably and with them the triplets' numbers,
//! and find where runs of equal keys start. A run is a nonzero, and its triplets stand in order of appearance.
//!
//! Temporary memory: about 12 bytes a triplet for keys and numbers, and the sort's second buffers.

use super::map::Runs;
use super::near::Near;
use super::{Assembly, ResidentTriplets, Symmetry};
use crate::backend::{Backend, NARROW_LIMIT, Offsets, Primitives, RUN_TILE};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Element, Offset, Scalar};
use std::ops::Range;

/// The matrix.
pub(super) fn assemble<T: Scalar, B: Primitives>(
    backend: &B,
    triplets: ResidentTriplets<T, B>,
    symmetry: Symmetry,
) -> Result<Csr<T, B>> {
    let ResidentTriplets { rows, columns, row_indices, column_indices, values, .. } = triplets;
    let pattern = Pattern { rows, columns, symmetry };
    let keys = pattern.keys(backend, &row_indices, &column_indices)?;
    drop((row_indices, column_indices));
    Ok(build(backend, pattern, keys, &values, Use::Once)?.0)
}

/// The matrix and its map.
pub(super) fn analyse<T: Scalar, B: Primitives>(
    backend: &B,
    triplets: &ResidentTriplets<T, B>,
    symmetry: Symmetry,
) -> Result<(Csr<T, B>, Assembly<B>)> {
    let pattern = Pattern { rows: triplets.rows, columns: triplets.columns, symmetry };
    let keys = pattern.keys(backend, &triplets.row_indices, &triplets.column_indices)?;
    build(backend, pattern, keys, &triplets.values, Use::Again)
}

/// Whether the map is kept.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Once,
    Again,
}

struct Pattern {
    rows: usize,
    columns: usize,
    symmetry: Symmetry,
}

/// Packed places, and the bits by which they are not in order yet.
struct Keys<B: Backend> {
    keys: B::Vec<u64>,
    bits: Range<u32>,
}

impl Pattern {
    fn half(&self) -> bool {
        self.symmetry != Symmetry::General
    }

    /// Bits of a column.
    fn shift(&self) -> u32 {
        significant_bits(self.columns)
    }

    fn keys<B: Primitives>(&self, backend: &B, is: &B::Slice<u32>, js: &B::Slice<u32>) -> Result<Keys<B>> {
        let shift = self.shift();
        if self.half() {
            if shift == 32 && self.rows == 1 << 32 {
                return Err(Error::Unsupported("a stored half of 2^32 rows on this device".into()));
            }
            let mut keys = backend.buffer(2 * B::len(is))?;
            backend.pack_mirrored(is, js, shift, &mut keys)?;
            return Ok(Keys { keys, bits: 0..(2 * shift + 1).min(64) });
        }
        let mut keys = backend.buffer(B::len(is))?;
        backend.pack(is, js, shift, &mut keys)?;
        let low = if backend.is_sorted(js, false)? { shift } else { 0 };
        Ok(Keys { keys, bits: low..significant_bits(self.rows) + shift })
    }
}

fn build<T: Scalar, B: Primitives>(
    backend: &B,
    pattern: Pattern,
    keys: Keys<B>,
    values: &B::Slice<T>,
    times: Use,
) -> Result<(Csr<T, B>, Assembly<B>)> {
    let triplets = B::len(values);
    let entries = if pattern.half() { triplets.saturating_mul(2) } else { triplets };
    let mut near = None;
    // A source has a bit for its mark.
    let (structure, runs) = if entries <= NARROW_LIMIT / 2 {
        let again = times == Use::Again && !pattern.half();
        sort(backend, &pattern, keys, |starts, mut sources| {
            if again {
                (sources, near) = Near::plan(backend, sources, B::len(starts))?;
            }
            let (sources, before) = mark(backend, starts, sources)?;
            if again
                && near.is_none()
                && backend.stages_runs(B::len(&*sources))
                && let Some(staged) = backend.stage_runs(triplets, starts, &sources)?
            {
                return Ok(Runs::Staged(staged));
            }
            Ok(Runs::Narrow(sources, before))
        })?
    } else {
        sort::<B, u64>(backend, &pattern, keys, |starts, sources| {
            let (sources, before) = mark(backend, starts, sources)?;
            Ok(Runs::Wide(sources, before))
        })?
    };
    let (Pattern { rows, columns, symmetry }, (indices, offsets)) = (pattern, structure);
    let nonzeros = B::len(&*indices);
    let assembly = Assembly { rows, columns, triplets, symmetry, nonzeros, runs, near };
    let mut summed = backend.buffer(nonzeros)?;
    assembly.sum(backend, values, &mut summed)?;
    Ok((Csr::from_parts_unchecked(rows, columns, offsets, indices, summed), assembly))
}

/// Column indices and row offsets.
type Structure<B> = (<B as Backend>::Vec<u32>, Offsets<B>);

/// The structure of the matrix, and what `keep` makes of where runs start and of the sources.
fn sort<B: Primitives, W: Offset>(
    backend: &B,
    pattern: &Pattern,
    keys: Keys<B>,
    keep: impl FnOnce(&B::Slice<W>, B::Vec<W>) -> Result<Runs<B>>,
) -> Result<(Structure<B>, Runs<B>)> {
    let (shift, half, rows) = (pattern.shift(), pattern.half(), pattern.rows);
    let Keys { mut keys, bits } = keys;
    let n = B::len(&*keys);
    let mut sources = backend.buffer::<W>(n)?;
    backend.sequence(&mut sources)?;
    backend.sort_pairs(&mut keys, &mut sources, bits)?;

    let mut starts = backend.buffer::<W>(n + 1)?;
    let mut nonzeros = backend.run_starts(&keys, &mut starts)?;
    if half && nonzeros > 0 {
        // The mirror images of the diagonal, which do not count, are the last run.
        let mut last = [0];
        backend.read(B::part(&*keys, n - 1..n), &mut last)?;
        nonzeros -= usize::from(last[0] == 1u64.checked_shl(2 * shift).unwrap_or(u64::MAX));
    }
    let mut entries = [W::default()];
    backend.read(B::part(&*starts, nonzeros..nonzeros + 1), &mut entries)?;
    let sources = shorten(backend, sources, entries[0].to_usize())?;

    let mut places = backend.buffer::<u64>(nonzeros)?;
    backend.gather(&keys, B::part(&*starts, 0..nonzeros), &mut places)?;
    drop(keys);
    let runs = keep(B::part(&*starts, 0..nonzeros), sources)?;
    drop(starts);
    let mut row_of = backend.buffer::<u32>(nonzeros)?;
    let mut indices = backend.buffer::<u32>(nonzeros)?;
    backend.unpack(&places, shift, &mut row_of, &mut indices)?;
    drop(places);
    let offsets = if nonzeros <= NARROW_LIMIT {
        let mut offsets = backend.buffer::<u32>(rows + 1)?;
        backend.offsets_of_sorted(&row_of, &mut offsets)?;
        Offsets::Narrow(offsets)
    } else {
        let mut offsets = backend.buffer::<u64>(rows + 1)?;
        backend.offsets_of_sorted(&row_of, &mut offsets)?;
        Offsets::Wide(offsets)
    };
    Ok(((indices, offsets), runs))
}

/// Marked sources, and the runs before each of their tiles.
fn mark<B: Primitives, W: Offset>(
    backend: &B,
    starts: &B::Slice<W>,
    mut sources: B::Vec<W>,
) -> Result<(B::Vec<W>, B::Vec<W>)> {
    let mut before = backend.buffer::<W>(B::len(&*sources).div_ceil(RUN_TILE))?;
    backend.mark_runs(starts, &mut sources, &mut before)?;
    Ok((sources, before))
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
    let mut to = backend.buffer(length)?;
    backend.copy(B::part(&*from, 0..length), &mut to)?;
    Ok(to)
}
