//! Assembly for any backend: sort the triplets' numbers stably by column, then by row, and find where runs of
//! duplicates start. A run becomes a nonzero, and its triplets are in order of appearance.
//!
//! Temporary memory is 24 bytes per triplet, including 8 bytes for its indices if they may be overwritten: the
//! triplets' numbers and one index are sorted twice, with a second buffer each, and the other index is gathered by
//! number. With many triplets, two cases are sorted differently. If rows ascend already, each row is sorted by itself.
//! If triplets come from all over the matrix, a gather would load a memory sector for each index, so both indices are
//! sorted as one key and nothing is gathered.

use super::map::Runs;
use super::{Assembly, ResidentTriplets, Symmetry};
use crate::backend::{Backend, NARROW_LIMIT, Offsets, RUN_TILE, RunSums, sources_at};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Element, Offset, Scalar};
use std::ops::Deref;

/// With this many triplets or more it is worthwhile to examine their order, since their indices no longer fit a cache
/// (64 MiB). Sorting fewer, with a gather by number, costs little.
const MANY: usize = 1 << 24;

/// The number of samples of the indices, and the length of each.
const SAMPLES: usize = 16;
const STRETCH: usize = 128;
/// Consecutive indices that memory delivers together, approximately one cache line.
const LINE: u32 = 16;

/// Assembles the matrix.
pub(super) fn assemble<T: Scalar, B: RunSums>(
    backend: &B,
    triplets: ResidentTriplets<T, B>,
    symmetry: Symmetry,
) -> Result<Csr<T, B>> {
    let ResidentTriplets { rows, columns, row_indices, column_indices, values, .. } = triplets;
    let pattern = Pattern { rows, columns, symmetry };
    let places = if pattern.half() {
        pattern.mirrored(backend, &row_indices, &column_indices)?
    } else {
        (Indices::Own(row_indices), Indices::Own(column_indices))
    };
    Ok(build(backend, pattern, places, &values, Use::Once)?.0)
}

/// Assembles the matrix and its map.
pub(super) fn analyse<T: Scalar, B: RunSums>(
    backend: &B,
    triplets: &ResidentTriplets<T, B>,
    symmetry: Symmetry,
) -> Result<(Csr<T, B>, Assembly<B>)> {
    let pattern = Pattern { rows: triplets.rows, columns: triplets.columns, symmetry };
    let (is, js) = (&*triplets.row_indices, &*triplets.column_indices);
    let places = if pattern.half() {
        pattern.mirrored(backend, is, js)?
    } else {
        (Indices::Lent(is), Indices::Lent(js))
    };
    build(backend, pattern, places, &triplets.values, Use::Again)
}

/// Whether the map is used once or kept.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Once,
    Again,
}

/// The shape and symmetry of the matrix to assemble.
struct Pattern {
    rows: usize,
    columns: usize,
    symmetry: Symmetry,
}

/// Row or column indices of all entries. Owned ones are freed as soon as they are no longer needed.
enum Indices<'a, B: Backend> {
    Lent(&'a B::Slice<u32>),
    Own(B::Vec<u32>),
}

impl<B: Backend> Indices<'_, B> {
    fn own(self, backend: &B) -> Result<B::Vec<u32>> {
        match self {
            Self::Own(indices) => Ok(indices),
            Self::Lent(indices) => {
                let mut own = backend.buffer(B::len(indices))?;
                backend.copy(indices, &mut own)?;
                Ok(own)
            }
        }
    }
}

impl<B: Backend> Deref for Indices<'_, B> {
    type Target = B::Slice<u32>;

    fn deref(&self) -> &B::Slice<u32> {
        match self {
            Self::Lent(indices) => indices,
            Self::Own(indices) => indices,
        }
    }
}

/// Row and column indices.
type Places<'a, B> = (Indices<'a, B>, Indices<'a, B>);

impl Pattern {
    fn half(&self) -> bool {
        self.symmetry != Symmetry::General
    }

    /// Adds the mirror image of each entry. The mirror images of diagonal entries are not used: they go to an extra row
    /// after the last.
    fn mirrored<B: RunSums>(
        &self,
        backend: &B,
        is: &B::Slice<u32>,
        js: &B::Slice<u32>,
    ) -> Result<Places<'static, B>> {
        let Ok(beyond) = u32::try_from(self.rows) else {
            return Err(Error::Unsupported(
                "one stored half of a matrix with 2^32 rows on this device; use the cpu".into(),
            ));
        };
        let (mut rows, mut columns) = (backend.buffer(2 * B::len(is))?, backend.buffer(2 * B::len(is))?);
        backend.mirror(is, js, beyond, (&mut rows, &mut columns))?;
        Ok((Indices::Own(rows), Indices::Own(columns)))
    }
}

fn build<T: Scalar, B: RunSums>(
    backend: &B,
    pattern: Pattern,
    places: Places<'_, B>,
    values: &B::Slice<T>,
    times: Use,
) -> Result<(Csr<T, B>, Assembly<B>)> {
    let triplets = B::len(values);
    let entries = if pattern.half() { triplets.saturating_mul(2) } else { triplets };
    let all_stored = (times == Use::Again && !pattern.half()).then_some(triplets);
    // The highest bit of a source is its mark, so half of the range remains for numbers.
    let (structure, runs) = if entries <= NARROW_LIMIT / 2 {
        sort(backend, &pattern, places, |starts, nonzeros, sources| {
            let firsts = B::part(&*starts, 0..nonzeros);
            let (sources, before) = mark(backend, firsts, sources)?;
            match all_stored {
                Some(triplets) => keep(backend, triplets, firsts, sources, before),
                None => Ok(Runs::Lower(sources, before)),
            }
        })?
    } else {
        sort::<B, u64, _>(backend, &pattern, places, |starts, nonzeros, sources| {
            let (sources, before) = mark(backend, B::part(&*starts, 0..nonzeros), sources)?;
            Ok(Runs::Wide(sources, before))
        })?
    };
    let (Pattern { rows, columns, symmetry }, (indices, offsets)) = (pattern, structure);
    let nonzeros = B::len(&*indices);
    let assembly = Assembly { rows, columns, triplets, symmetry, nonzeros, runs };
    let mut summed = backend.buffer(nonzeros)?;
    assembly.sum(backend, values, &mut summed)?;
    Ok((Csr::from_parts_unchecked(rows, columns, offsets, indices, summed), assembly))
}

/// Returns the runs in the form that this backend sums fastest if they are used repeatedly; `firsts` holds the starts
/// of runs.
fn keep<B: RunSums>(
    backend: &B,
    triplets: usize,
    firsts: &B::Slice<u32>,
    sources: B::Vec<u32>,
    before: B::Vec<u32>,
) -> Result<Runs<B>> {
    if backend.stages_runs(B::len(&*sources))
        && let Some(staged) = backend.stage_runs(triplets, firsts, &sources)?
    {
        return Ok(Runs::Staged(staged));
    }
    Ok(Runs::Lower(sources, before))
}

/// Column indices and row offsets.
type Structure<B> = (<B as Backend>::Vec<u32>, Offsets<B>);

/// Sorts the triplets. Returns the structure of the matrix and the result of `keep`, which is called with the starts of
/// runs, the number of runs that are nonzeros, and the sources.
fn sort<B: RunSums, W: Offset, R>(
    backend: &B,
    pattern: &Pattern,
    places: Places<'_, B>,
    keep: impl FnOnce(B::Vec<W>, usize, B::Vec<W>) -> Result<R>,
) -> Result<(Structure<B>, R)> {
    let (half, rows) = (pattern.half(), pattern.rows);
    let (row_of, columns, sources) =
        order::<B, W>(backend, (rows + usize::from(half), pattern.columns), places)?;
    let n = B::len(&*row_of);
    let starts = backend.pair_starts::<W>(&row_of, &columns)?;
    let mut nonzeros = B::len(&*starts) - 1;
    if half && nonzeros > 0 {
        // The mirror images of diagonal entries are the last run, which is not a nonzero.
        let last = backend.value(B::part(&*row_of, n - 1..n))? as usize;
        nonzeros -= usize::from(last == rows);
    }
    let entries = backend.value(B::part(&*starts, nonzeros..nonzeros + 1))?;
    let sources = shorten(backend, sources, entries.to_usize())?;
    let firsts = B::part(&*starts, 0..nonzeros);
    // If each run has one source, the sorted indices are those of the runs already.
    let of_firsts = |of_all: B::Vec<u32>| {
        if nonzeros == n {
            return Ok::<_, Error>(of_all);
        }
        let mut of_runs = backend.buffer::<u32>(nonzeros)?;
        backend.gather(&of_all, firsts, &mut of_runs)?;
        Ok(of_runs)
    };
    let (indices, row_of_run) = (of_firsts(columns)?, of_firsts(row_of)?);
    let offsets = if nonzeros <= NARROW_LIMIT {
        let mut offsets = backend.buffer::<u32>(rows + 1)?;
        backend.offsets_of_sorted(&row_of_run, &mut offsets)?;
        Offsets::Lower(offsets)
    } else {
        let mut offsets = backend.buffer::<u64>(rows + 1)?;
        backend.offsets_of_sorted(&row_of_run, &mut offsets)?;
        Offsets::Wide(offsets)
    };
    drop(row_of_run);
    let kept = keep(starts, nonzeros, sources)?;
    Ok(((indices, offsets), kept))
}

/// Rows, columns and numbers of triplets.
type Ordered<B, W> = (<B as Backend>::Vec<u32>, <B as Backend>::Vec<u32>, <B as Backend>::Vec<W>);

/// Sorts the triplets by row and column, and duplicates by order of appearance.
fn order<B: RunSums, W: Offset>(
    backend: &B,
    (rows, columns): (usize, usize),
    places: Places<'_, B>,
) -> Result<Ordered<B, W>> {
    let bits = (significant_bits(rows), significant_bits(columns));
    let n = B::len(&*places.0);
    let mut sources = backend.buffer::<W>(n)?;
    backend.sequence(&mut sources)?;
    let by_column = backend.is_sorted(&*places.1, false)?;
    let (is, js) = match places {
        places if by_column || n < MANY => places,
        (is, js) if backend.is_sorted(&*is, false)? => {
            return order_in_rows(backend, rows, (is, js), sources);
        }
        (Indices::Own(is), Indices::Own(js)) if bits.0 + bits.1 <= u64::BITS && scattered(backend, &is)? => {
            return order_packed(backend, bits, (is, js), sources);
        }
        places => places,
    };
    let mut keys = backend.buffer::<u32>(n)?;
    if by_column {
        backend.copy(&*is, &mut keys)?;
    } else {
        backend.copy(&*js, &mut keys)?;
        backend.sort_pairs(&mut keys, &mut sources, 0..bits.1)?;
        backend.gather(&*is, &sources, &mut keys)?;
    }
    drop(is);
    backend.sort_pairs(&mut keys, &mut sources, 0..bits.0)?;
    let mut columns = backend.buffer::<u32>(n)?;
    backend.gather(&*js, &sources, &mut columns)?;
    Ok((keys, columns, sources))
}

/// [`order`] if rows ascend: sorts each row by itself.
fn order_in_rows<B: RunSums, W: Offset>(
    backend: &B,
    rows: usize,
    (is, js): Places<'_, B>,
    mut sources: B::Vec<W>,
) -> Result<Ordered<B, W>> {
    let mut offsets = backend.buffer::<W>(rows + 1)?;
    backend.offsets_of_sorted(&*is, &mut offsets)?;
    let mut js = js.own(backend)?;
    backend.segmented_sort_pairs(&offsets, &mut js, &mut sources)?;
    drop(offsets);
    Ok((is.own(backend)?, js, sources))
}

/// [`order`] with both indices as one key. Frees the indices before the sort allocates its second buffers.
fn order_packed<B: RunSums, W: Offset>(
    backend: &B,
    bits: (u32, u32),
    (is, js): (B::Vec<u32>, B::Vec<u32>),
    mut sources: B::Vec<W>,
) -> Result<Ordered<B, W>> {
    let n = B::len(&*sources);
    let mut keys = backend.buffer::<u64>(n)?;
    backend.pack(&is, &js, bits.1, &mut keys)?;
    drop((is, js));
    backend.sort_pairs(&mut keys, &mut sources, 0..bits.0 + bits.1)?;
    let (mut rows, mut columns) = (backend.buffer(n)?, backend.buffer(n)?);
    backend.unpack(&keys, bits.1, &mut rows, &mut columns)?;
    Ok((rows, columns, sources))
}

/// Returns whether consecutive indices are mostly in different cache lines, based on samples.
fn scattered<B: RunSums>(backend: &B, indices: &B::Slice<u32>) -> Result<bool> {
    let n = B::len(indices);
    let length = STRETCH.min(n);
    let starts = (0..SAMPLES).map(|k| k * ((n - length) / SAMPLES));
    let at = starts.flat_map(|start| start..start + length).map(|at| at as u32).collect();
    let found = sources_at(backend, indices, &*backend.upload(at)?)?;
    let lines: usize = found
        .chunks(length.max(1))
        .map(|tile| {
            let mut lines: Vec<u32> = tile.iter().map(|index| index / LINE).collect();
            lines.sort_unstable();
            lines.dedup();
            lines.len()
        })
        .sum();
    Ok(2 * lines > found.len())
}

/// Marks the first source of each run, and counts the runs before each tile of sources.
fn mark<B: RunSums, W: Offset>(
    backend: &B,
    starts: &B::Slice<W>,
    mut sources: B::Vec<W>,
) -> Result<(B::Vec<W>, B::Vec<W>)> {
    let mut before = backend.buffer::<W>(B::len(&*sources).div_ceil(RUN_TILE))?;
    backend.mark_runs(starts, &mut sources, &mut before)?;
    Ok((sources, before))
}

/// The number of bits of the largest index below `count`.
pub(super) fn significant_bits(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// Copies the first `length` elements to a buffer of their own.
fn shorten<T: Element, B: RunSums>(backend: &B, from: B::Vec<T>, length: usize) -> Result<B::Vec<T>> {
    if B::len(&*from) == length {
        return Ok(from);
    }
    let mut to = backend.buffer(length)?;
    backend.copy(B::part(&*from, 0..length), &mut to)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::matrix::Triplets;

    /// Triplets with many duplicates, some on the diagonal, unordered or sorted by column.
    fn triplets(rows: usize, columns: usize, n: usize, by_column: bool) -> Triplets<f64> {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % below
        };
        let mut places: Vec<(u32, u32)> =
            (0..n).map(|_| (random(rows) as u32, random(columns) as u32)).collect();
        if by_column {
            places.sort_by_key(|&(_, j)| j);
        }
        let values = (0..n).map(|_| random(1 << 30) as f64 / 3.0).collect();
        let (is, js) = places.into_iter().unzip();
        Triplets::from_parts(rows, columns, is, js, values).unwrap()
    }

    /// Checks, on small inputs, the code paths that only large inputs take.
    #[test]
    fn all_ways_give_the_same_order() {
        for (rows, columns, n) in [(1, 1, 0), (1, 1, 9), (300, 1, 700), (40, 40, 3000)] {
            let (mut is, js, _) = triplets(rows, columns, n, false).into_parts();
            let bits = (significant_bits(rows), significant_bits(columns));
            let sources = || (0..n as u32).collect::<Vec<_>>();
            let two = |is: &[u32]| {
                let places = (Indices::Lent(is), Indices::Lent(&js[..]));
                order::<Host, u32>(&Host, (rows, columns), places).unwrap()
            };
            let one = order_packed::<Host, u32>(&Host, bits, (is.clone(), js.clone()), sources());
            assert_eq!(one.unwrap(), two(&is));
            is.sort_unstable();
            let lent = || (Indices::Lent(&is[..]), Indices::Lent(&js[..]));
            assert_eq!(order_in_rows::<Host, u32>(&Host, rows, lent(), sources()).unwrap(), two(&is));
            let own = (Indices::Own(is.clone()), Indices::Own(js.clone()));
            assert_eq!(order_in_rows::<Host, u32>(&Host, rows, own, sources()).unwrap(), two(&is));
        }
    }

    /// The host has its own assembly; the sorting that devices use must give the same bits.
    #[test]
    fn the_sorting_way_gives_the_bits_of_the_hosts_own() {
        let same = |a: &Csr<f64>, b: &Csr<f64>| {
            let (x, y) = (a.parts(), b.parts());
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(format!("{:?}", x.offsets), format!("{:?}", y.offsets));
            assert_eq!((x.indices, bits(x.values)), (y.indices, bits(y.values)));
        };
        for (rows, columns, n) in
            [(0, 0, 0), (5, 3, 0), (1, 1, 9), (1, 300, 700), (300, 1, 700), (40, 40, 3000)]
        {
            for by_column in [false, true] {
                for symmetry in [Symmetry::General, Symmetry::Symmetric] {
                    if symmetry != Symmetry::General && rows != columns {
                        continue;
                    }
                    let t = ResidentTriplets::from(triplets(rows, columns, n, by_column));
                    let (own, _) = crate::assemble::Assemble::analyse(&Host, &t, symmetry).unwrap();
                    let (mut a, map) = analyse(&Host, &t, symmetry).unwrap();
                    same(&a, &own);
                    a.values_mut().fill(0.0);
                    map.update(&Host, t.parts().2, &mut a).unwrap();
                    same(&a, &own);
                    same(&assemble(&Host, t, symmetry).unwrap(), &own);
                }
            }
        }
    }
}
