//! Exchange of matrix rows and numbers between ranks.

use crate::backend::{Communicator, Host, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::{Csr, add};
use crate::scalar::Scalar;
use crate::spread::{asked_for, halo_beyond};
use std::ops::Range;

/// The halo: the unknowns of other ranks that a rank's rows need.
pub(super) struct Halo {
    /// The unknowns of this rank.
    pub(super) own: Range<usize>,
    /// The needed unknowns of others, ascending.
    pub(super) numbers: Vec<u32>,
    /// The unknowns of this rank that each other rank needs.
    pub(super) asked: Vec<Vec<u32>>,
}

impl Halo {
    /// The halo of this rank's rows `a`, which have global column indices; `parts` are the columns of each rank.
    pub(super) fn of<T: Scalar, B: VectorOps, C: Communicator<B>>(
        communicator: &C,
        a: &Csr<T>,
        parts: &[Range<usize>],
    ) -> Result<Self> {
        let own = parts[communicator.part()].clone();
        let numbers = halo_beyond(a, &(0..a.rows()), &own);
        let asked = asked_for(communicator, &numbers, parts)?;
        Ok(Self { own, numbers, asked })
    }

    /// The entries of a vector at the unknowns of the halo; `own` are this rank's entries.
    pub(super) fn values<B: VectorOps, C: Communicator<B>>(
        &self,
        communicator: &C,
        own: &[f64],
    ) -> Result<Vec<f64>> {
        let asked = self.asked.iter().map(|numbers| {
            let values = numbers.iter().map(|&number| own[number as usize - self.own.start]);
            values.flat_map(f64::to_le_bytes).collect()
        });
        let got = communicator.deliver(asked.collect())?;
        Ok(got.iter().flat_map(|bytes| bytes.as_chunks().0).map(|word| f64::from_le_bytes(*word)).collect())
    }

    /// The rows of the unknowns of the halo; `a` has this rank's rows.
    pub(super) fn rows<T: Scalar, B: VectorOps, C: Communicator<B>>(
        &self,
        communicator: &C,
        a: &Csr<T>,
    ) -> Result<Csr<T>> {
        let asked = self.asked.iter().map(|numbers| packed(a, numbers, self.own.start as u32));
        let got = communicator.deliver(asked.collect())?;
        let parts: Vec<Csr<T>> =
            got.iter().map(|bytes| Ok(unpacked(bytes, a.columns())?.1)).collect::<Result<_>>()?;
        stacked(a.columns(), &parts)
    }

    /// This rank's rows with its own columns first and those of the halo after them, and a row for each unknown of the
    /// halo with the entries that `below` returns.
    pub(super) fn extended<T: Scalar>(
        &self,
        a: &Csr<T>,
        below: impl Fn(usize) -> Vec<(u32, T)>,
    ) -> Result<Csr<T>> {
        let (n, h) = (a.rows(), self.numbers.len());
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..n {
            let (columns, entries) = a.row(row);
            let ours = |column: u32| self.own.contains(&(column as usize));
            let mut keep = |mine: bool| {
                for (&column, &value) in
                    columns.iter().zip(entries).filter(|&(&column, _)| ours(column) == mine)
                {
                    indices.push(match self.numbers.binary_search(&column) {
                        Ok(place) => (n + place) as u32,
                        Err(_) => column - self.own.start as u32,
                    });
                    values.push(value);
                }
            };
            keep(true);
            keep(false);
            offsets.push(values.len());
        }
        for place in 0..h {
            for (column, value) in below(place) {
                indices.push(column);
                values.push(value);
            }
            offsets.push(values.len());
        }
        Csr::from_parts(n + h, n + h, offsets, indices, values)
    }
}

/// The first rows and columns of a matrix.
pub(super) fn leading<V: Scalar>(a: &Csr<V>, n: usize) -> Result<Csr<V>> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..n {
        let (columns, entries) = a.row(row);
        let count = columns.partition_point(|&column| (column as usize) < n);
        indices.extend_from_slice(&columns[..count]);
        values.extend_from_slice(&entries[..count]);
        offsets.push(values.len());
    }
    Csr::from_parts(n, n, offsets, indices, values)
}

/// The same entries with columns shifted to begin at `first`, in a matrix of `columns` columns.
pub(super) fn moved_columns<T: Scalar>(a: Csr<T>, first: usize, columns: usize) -> Csr<T> {
    let rows = a.rows();
    let (offsets, mut indices, values) = a.into_arrays(&Host).expect("memory of the host");
    indices.iter_mut().for_each(|column| *column += first as u32);
    Csr::from_parts_unchecked(rows, columns, offsets, indices, values)
}

/// Matrices stacked vertically.
pub(super) fn stacked<T: Scalar>(columns: usize, parts: &[Csr<T>]) -> Result<Csr<T>> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for a in parts {
        for row in 0..a.rows() {
            let (line, entries) = a.row(row);
            indices.extend_from_slice(line);
            values.extend_from_slice(entries);
            offsets.push(values.len());
        }
    }
    Csr::from_parts(offsets.len() - 1, columns, offsets, indices, values)
}

/// Sends the rows of `a`, a matrix with all rows of a level, to the ranks that own them, which add them in the order of
/// ranks. Returns this rank's rows of the sum.
pub(super) fn sent_home<T: Scalar, B: VectorOps, C: Communicator<B>>(
    communicator: &C,
    a: &Csr<T>,
    parts: &[Range<usize>],
) -> Result<Csr<T>> {
    let part = communicator.part();
    let of_owner = |(owner, rows): (usize, &Range<usize>)| {
        let full = rows.clone().filter(|&row| owner != part && !a.row(row).0.is_empty());
        packed(a, &full.map(|row| row as u32).collect::<Vec<u32>>(), 0)
    };
    let got = communicator.deliver(parts.iter().enumerate().map(of_owner).collect())?;
    let own = &parts[part];
    let mut sum = a.window(&Host, own.clone())?;
    for bytes in &got {
        let (numbers, rows) = unpacked(bytes, a.columns())?;
        if numbers.is_empty() {
            continue;
        }
        let here: Vec<u32> = numbers.iter().map(|&number| number - own.start as u32).collect();
        let theirs = placed(&here, rows, own.len())?;
        sum = add(&Host, T::one(), &sum, T::one(), &theirs)?;
    }
    Ok(sum)
}

/// A matrix of `count` rows whose rows with these (ascending) indices are the rows of `a`; the others are empty.
pub(super) fn placed<T: Scalar>(numbers: &[u32], a: Csr<T>, count: usize) -> Result<Csr<T>> {
    let (mut offsets, mut last) = (Vec::with_capacity(count + 1), 0);
    offsets.push(0);
    for (row, &number) in numbers.iter().enumerate() {
        offsets.resize(number as usize + 1, last);
        last += a.row(row).0.len();
        offsets.push(last);
    }
    offsets.resize(count + 1, last);
    let columns = a.columns();
    let (_, indices, values) = a.into_arrays(&Host)?;
    Csr::from_parts(count, columns, offsets, indices, values)
}

/// Gathers the whole matrix from the rows of all ranks, on all ranks.
pub(super) fn gathered<T: Scalar, B: VectorOps, C: Communicator<B>>(
    communicator: &C,
    own: &Csr<T>,
) -> Result<Csr<T>> {
    let all: Vec<u32> = (0..own.rows() as u32).collect();
    let parts = communicator.gather(packed(own, &all, 0))?;
    let parts: Vec<Csr<T>> =
        parts.iter().map(|bytes| Ok(unpacked(bytes, own.columns())?.1)).collect::<Result<_>>()?;
    stacked(own.columns(), &parts)
}

/// Gathers one number of each rank, on all ranks.
pub(super) fn numbers<B: VectorOps, C: Communicator<B>>(communicator: &C, own: usize) -> Result<Vec<usize>> {
    let all = communicator.gather((own as u64).to_le_bytes().to_vec())?;
    Ok(all.iter().map(|bytes| bytes[..].try_into().map_or(0, u64::from_le_bytes) as usize).collect())
}

/// The range of each rank's unknowns, from the number of them.
pub(super) fn ranges(counts: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let next = |&count: &usize| {
        end += count;
        end - count..end
    };
    counts.iter().map(next).collect()
}

/// The number of reals in a value.
const fn words<T: Scalar>() -> usize {
    if T::COMPLEX { 2 } else { 1 }
}

/// Packs some rows into bytes: their number, indices, lengths, columns and values. Row `number` is row `number - first`
/// of `a`.
fn packed<T: Scalar>(a: &Csr<T>, numbers: &[u32], first: u32) -> Vec<u8> {
    let row = |number: u32| a.row((number - first) as usize);
    let entries: usize = numbers.iter().map(|&number| row(number).0.len()).sum();
    let mut bytes = Vec::with_capacity(8 + 8 * numbers.len() + entries * (4 + 8 * words::<T>()));
    bytes.extend((numbers.len() as u64).to_le_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend(numbers.iter().flat_map(|&number| (row(number).0.len() as u32).to_le_bytes()));
    for &number in numbers {
        row(number).0.iter().for_each(|column| bytes.extend(column.to_le_bytes()));
    }
    for &number in numbers {
        let words = row(number).1.iter().flat_map(|value| value.bits().into_iter().take(words::<T>()));
        words.for_each(|word| bytes.extend(word.to_le_bytes()));
    }
    bytes
}

/// Unpacks rows from bytes. Returns their indices and the rows.
fn unpacked<T: Scalar>(bytes: &[u8], columns: usize) -> Result<(Vec<u32>, Csr<T>)> {
    let cut = || Error::InvalidMatrix("rows that another part has sent end early".into());
    let (count, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
    let count = u64::from_le_bytes(*count) as usize;
    let words_of = |bytes: &[u8]| -> Vec<u32> {
        bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    };
    let (numbers, rest) = rest.split_at_checked(4 * count).ok_or_else(cut)?;
    let (lengths, rest) = rest.split_at_checked(4 * count).ok_or_else(cut)?;
    let mut offsets = vec![0];
    for length in words_of(lengths) {
        offsets.push(offsets[offsets.len() - 1] + length as usize);
    }
    let entries = offsets[count];
    let (indices, rest) = rest.split_at_checked(4 * entries).ok_or_else(cut)?;
    let values: Vec<u64> = rest.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let values = values
        .chunks_exact(words::<T>())
        .map(|value| T::from_bits([value[0], value.get(1).copied().unwrap_or(0)]));
    let rows = Csr::from_parts(count, columns, offsets, words_of(indices), values.collect())?;
    Ok((words_of(numbers), rows))
}
