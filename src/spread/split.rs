//! The rows of a rank, divided into the block of its own columns and the entries beside it, in the memory of a backend.

use super::halo::in_order;
use crate::backend::{Backend, Conversions, Host, NARROW_LIMIT, Offsets, OffsetsRef};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use std::ops::Range;

/// The entries of some rows outside of a rank's own columns, on the host: few, unless the order is a bad one.
#[derive(Debug)]
pub(crate) struct Edge<T: Scalar> {
    /// The rows that have such entries, ascending.
    pub(crate) rows: Vec<u32>,
    /// The entries, with global column indices.
    pub(crate) a: Csr<T>,
}

impl<T: Scalar> Edge<T> {
    /// The columns of the entries, ascending.
    pub(crate) fn halo(&self) -> Vec<u32> {
        in_order(self.a.parts().indices.to_vec())
    }

    /// The entries of a row in other columns; none if the row has none.
    pub(crate) fn row(&self, row: usize) -> (&[u32], &[T]) {
        self.rows.binary_search(&(row as u32)).map_or((&[], &[]), |place| self.a.row(place))
    }
}

/// Some rows of a matrix: the block of the columns `own`, numbered from 0 then, and the other entries.
pub(crate) fn split<T: Scalar, B: Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    rows: &Range<usize>,
    own: &Range<usize>,
) -> Result<(Csr<T, B>, Edge<T>)> {
    let (parts, n) = (a.parts(), rows.len());
    let mut counts = backend.buffer::<u32>(n)?;
    backend.entries_beyond(parts.pattern(), rows.clone(), own.clone(), &mut counts)?;
    let mut before = backend.buffer::<u64>(n + 1)?;
    backend.exclusive_scan(&counts, &mut before)?;
    drop(counts);
    let ends = parts.offsets.windows(backend, &[rows.start..rows.start + 1, rows.end..rows.end + 1])?;
    let others = backend.value(B::part(&before, n..n + 1))? as usize;
    let owned = ends[1] - ends[0] - others;
    let mut offsets = if owned <= NARROW_LIMIT {
        Offsets::Lower(backend.buffer(n + 1)?)
    } else {
        Offsets::Wide(backend.buffer(n + 1)?)
    };
    let (mut indices, mut values) = (backend.buffer(owned)?, backend.buffer(owned)?);
    let (mut columns, mut numbers) = (backend.buffer(others)?, backend.buffer(others)?);
    let ours = (&mut offsets, &mut *indices, &mut *values);
    backend.split_columns(parts, rows.clone(), own.clone(), &before, ours, (&mut columns, &mut numbers))?;
    let block = Csr::from_parts_unchecked(n, own.len(), offsets, indices, values);
    let mut of_entries = backend.buffer::<u32>(others)?;
    backend.expand_offsets::<u64>(&before, &mut of_entries)?;
    drop(before);
    let (mut full, mut starts) = (Vec::new(), Vec::new());
    for (place, row) in backend.download(&of_entries)?.into_iter().enumerate() {
        if full.last() != Some(&row) {
            full.push(row);
            starts.push(place as u64);
        }
    }
    starts.push(others as u64);
    let (columns, numbers) = (backend.download(&columns)?, backend.download(&numbers)?);
    // Rows keep the order of their columns.
    let a = Csr::from_parts_unchecked(full.len(), a.columns(), Offsets::packed(starts), columns, numbers);
    Ok((block, Edge { rows: full, a }))
}

/// The entries of some rows in a rank's own columns, which are numbered from 0.
pub(crate) fn own_columns<T: Scalar>(a: &Csr<T>, rows: &Range<usize>, own: &Range<usize>) -> Result<Csr<T>> {
    Ok(split(&Host, a, rows, own)?.0)
}

/// Some rows of a matrix on the host, copied to a backend without a copy on the host.
pub(crate) fn rows_on<T: Scalar, B: Backend>(
    backend: &B,
    a: &Csr<T>,
    rows: &Range<usize>,
) -> Result<Csr<T, B>> {
    let parts = a.parts();
    let ends = parts.offsets.windows(&Host, &[rows.start..rows.start + 1, rows.end..rows.end + 1])?;
    let entries = ends[0]..ends[1];
    let mut values = backend.buffer(entries.len())?;
    backend.write(&parts.values[entries.clone()], &mut values)?;
    let mut indices = backend.buffer(entries.len())?;
    backend.write(&parts.indices[entries.clone()], &mut indices)?;
    let here = rows.start..rows.end + 1;
    let offsets = match parts.offsets {
        OffsetsRef::Lower(offsets) if entries.start == 0 => Offsets::Lower(written(backend, &offsets[here])?),
        OffsetsRef::Lower(offsets) => {
            let first = entries.start as u32;
            Offsets::Lower(backend.upload(mapped(&offsets[here], |offset| offset - first))?)
        }
        OffsetsRef::Wide(offsets) => {
            let first = entries.start as u64;
            if entries.len() <= NARROW_LIMIT {
                Offsets::Lower(backend.upload(mapped(&offsets[here], |offset| (offset - first) as u32))?)
            } else {
                Offsets::Wide(backend.upload(mapped(&offsets[here], |offset| offset - first))?)
            }
        }
    };
    Ok(Csr::from_parts_unchecked(rows.len(), a.columns(), offsets, indices, values))
}

fn written<B: Backend>(backend: &B, from: &[u32]) -> Result<B::Vec<u32>> {
    let mut to = backend.buffer(from.len())?;
    backend.write(from, &mut to)?;
    Ok(to)
}

fn mapped<O: Copy + Sync, R: Send>(from: &[O], f: impl Fn(O) -> R + Sync) -> Vec<R> {
    from.par_iter().with_min_len(1 << 14).map(|&offset| f(offset)).collect()
}

/// The inverse of [`split`], on the host: rows with the columns of the whole matrix, of which the first of the block is
/// `first`.
pub(crate) fn joined_rows<T: Scalar>(block: &Csr<T>, edge: &Edge<T>, first: usize) -> Result<Csr<T>> {
    let entries = block.nonzeros() + edge.a.nonzeros();
    let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
    let (mut offsets, mut place) = (Vec::with_capacity(block.rows() + 1), 0);
    offsets.push(0);
    for row in 0..block.rows() {
        let (columns, numbers) = block.row(row);
        let (others, theirs): (&[u32], &[T]) = if edge.rows.get(place) == Some(&(row as u32)) {
            place += 1;
            edge.a.row(place - 1)
        } else {
            (&[], &[])
        };
        let below = others.partition_point(|&column| (column as usize) < first);
        indices.extend_from_slice(&others[..below]);
        indices.extend(columns.iter().map(|&column| column + first as u32));
        indices.extend_from_slice(&others[below..]);
        values.extend_from_slice(&theirs[..below]);
        values.extend_from_slice(numbers);
        values.extend_from_slice(&theirs[below..]);
        offsets.push(values.len() as u64);
    }
    let offsets = Offsets::packed(offsets);
    Ok(Csr::from_parts_unchecked(block.rows(), edge.a.columns(), offsets, indices, values))
}

/// A matrix of the full size in which all rows but these are empty; `first` is the index of their first.
pub(crate) fn among_all<T: Scalar>(rows: Csr<T>, first: usize) -> Result<Csr<T>> {
    let (n, entries) = (rows.columns(), rows.nonzeros() as u64);
    let (offsets, indices, values) = rows.into_arrays(&Host)?;
    let mut all = vec![0; first];
    match offsets {
        Offsets::Lower(offsets) => all.extend(offsets.into_iter().map(u64::from)),
        Offsets::Wide(offsets) => all.extend(offsets),
    }
    all.resize(n + 1, entries);
    Ok(Csr::from_parts_unchecked(n, n, Offsets::packed(all), indices, values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    /// Rows of 0 to 6 entries in any columns, and a row without any.
    fn ragged(rows: usize, columns: usize) -> Csr<f64> {
        let mut random = Random::new(rows as u64);
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for _ in 0..rows {
            let mut line: Vec<u32> =
                (0..random.below(7)).map(|_| random.below(columns as u64) as u32).collect();
            line.sort_unstable();
            line.dedup();
            values.extend(line.iter().map(|_| random.unit()));
            indices.extend(line);
            offsets.push(values.len());
        }
        Csr::from_parts(rows, columns, offsets, indices, values).unwrap()
    }

    #[test]
    fn rows_are_divided_and_joined_again() {
        let a = ragged(700, 700);
        for (rows, own) in
            [(0..700, 0..700), (0..700, 100..340), (100..340, 100..340), (20..20, 20..20), (3..90, 5..5)]
        {
            let (block, edge) = split(&Host, &a, &rows, &own).unwrap();
            assert_eq!((block.rows(), block.columns()), (rows.len(), own.len()));
            for row in 0..rows.len() {
                let (columns, values) = a.row(rows.start + row);
                let entries = columns.iter().zip(values);
                let (ours, theirs): (Vec<_>, Vec<_>) =
                    entries.map(|(&c, &v)| (c as usize, v)).partition(|(column, _)| own.contains(column));
                let here = block
                    .row(row)
                    .0
                    .iter()
                    .map(|&c| own.start + c as usize)
                    .zip(block.row(row).1.iter().copied());
                assert_eq!(here.collect::<Vec<_>>(), ours);
                let beside = edge.row(row).0.iter().map(|&c| c as usize).zip(edge.row(row).1.iter().copied());
                assert_eq!(beside.collect::<Vec<_>>(), theirs);
            }
            let again = joined_rows(&block, &edge, own.start).unwrap();
            let window = rows_on(&Host, &a, &rows).unwrap();
            for row in 0..rows.len() {
                assert_eq!(again.row(row), a.row(rows.start + row));
                assert_eq!(window.row(row), a.row(rows.start + row));
            }
            let halo = edge.halo();
            assert!(halo.windows(2).all(|two| two[0] < two[1]));
            assert!(halo.iter().all(|&column| !own.contains(&(column as usize))));
        }
    }
}
