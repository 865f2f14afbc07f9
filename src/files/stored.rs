//! A matrix or an array as it is stored in a file, with numbers in the caller's type.

use super::bytes::content;
use super::resident::Resident;
use crate::assemble::ResidentTriplets;
use crate::backend::{Backend, Host, OffsetsRef, Primitives};
use crate::error::Result;
use crate::market::{DenseFile, Header, MatrixFile, Order, ReadOptions};
use crate::matrix::{Csr, Triplets};
use crate::scalar::Scalar;
use std::path::Path;

/// The content of a file, before it is assembled. CSR in the file stays CSR.
///
/// ```
/// use residua::{Csr, Triplets, files, market::ReadOptions};
/// let path = std::env::temp_dir().join(format!("residua-stored-{}.npz", std::process::id()));
/// let a = Csr::from_triplets(Triplets::from_parts(2, 2, vec![0, 1], vec![0, 0], vec![4.0, 1.0])?)?;
/// files::write_npz(&path, &a)?;
/// let stored = files::read_stored::<f64>(&path, &ReadOptions::default())?;
/// assert_eq!(stored.header().entries(), 2);
/// assert_eq!(stored.into_csr()?.parts().values, [4.0, 1.0]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug)]
pub struct Stored<T: Scalar> {
    header: Header,
    entries: Entries<T>,
}

/// The entries in the form of the file.
#[derive(Debug)]
pub(super) enum Entries<T: Scalar> {
    Triplets(Triplets<T>, Order),
    /// CSR, with ascending columns.
    Rows(Csr<T>),
    /// Compressed columns with ascending rows: the transpose in CSR.
    Columns(Csr<T>),
    /// A full array, by columns.
    Array(Vec<T>),
}

impl<T: Scalar> Stored<T> {
    pub(super) fn new(header: Header, entries: Entries<T>) -> Self {
        Self { header, entries }
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The matrix: entries implied by symmetry are added, duplicates are summed.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn into_csr(self) -> Result<Csr<T>> {
        self.into_resident(&Host)?.into_csr(&Host)
    }

    /// The same entries in the memory of a backend; moved if that is the host's.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn into_resident<B: Backend>(self, backend: &B) -> Result<Resident<T, B>> {
        Ok(match self.entries {
            Entries::Rows(a) => Resident::Rows(self.header, a.into_backend(backend)?),
            Entries::Columns(a) => Resident::Columns(self.header, a.into_backend(backend)?),
            _ => {
                let (header, triplets, _) = self.into_triplets()?.into_parts();
                let (is, js, values) = triplets.into_parts();
                let (is, js, values) = (backend.upload(is)?, backend.upload(js)?, backend.upload(values)?);
                let size = (header.rows(), header.columns());
                let triplets = ResidentTriplets::from_parsed(size, header.symmetry(), is, js, values)?;
                Resident::Triplets(header, triplets)
            }
        })
    }

    /// The stored entries, in the order of the file; for an array the nonzero ones.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn into_triplets(self) -> Result<MatrixFile<T>> {
        let header = self.header;
        let size = (header.rows(), header.columns());
        let (triplets, order) = match self.entries {
            Entries::Triplets(triplets, order) => (triplets, order),
            Entries::Rows(a) => (expanded(size, a, false)?, Order::Rows),
            Entries::Columns(a) => (expanded(size, a, true)?, Order::Columns),
            Entries::Array(values) => {
                let mut triplets = Triplets::new(size.0, size.1)?;
                for (k, &value) in values.iter().enumerate().filter(|(_, value)| !value.is_zero()) {
                    triplets.push(k % size.0, k / size.0, value)?;
                }
                (triplets, Order::Columns)
            }
        };
        Ok(MatrixFile::new(header, triplets, order))
    }

    /// The full array, including the zeros of a sparse matrix.
    pub(super) fn into_dense(self, path: &Path, options: &ReadOptions) -> Result<DenseFile<T>> {
        if let Some(cause) = options.refuse_dense(&self.header) {
            return Err(content(path, 0, cause));
        }
        if let Entries::Array(values) = self.entries {
            return Ok(DenseFile::new(self.header, values));
        }
        let (header, triplets, _) = self.into_triplets()?.into_parts();
        let mut values = Host.zeros(header.rows() * header.columns())?;
        let (rows, columns, given) = triplets.parts();
        for ((&row, &column), &value) in rows.iter().zip(columns).zip(given) {
            values[column as usize * header.rows() + row as usize] += value;
        }
        Ok(DenseFile::new(header, values))
    }

    /// Returns it unless the options refuse a matrix of this size.
    pub(super) fn accepted(self, path: &Path, options: &ReadOptions) -> Result<Self> {
        match options.refuse(&self.header) {
            Some(cause) => Err(content(path, 0, cause)),
            None => Ok(self),
        }
    }
}

impl<T: Scalar> From<MatrixFile<T>> for Stored<T> {
    fn from(file: MatrixFile<T>) -> Self {
        let (header, triplets, order) = file.into_parts();
        Self::new(header, Entries::Triplets(triplets, order))
    }
}

/// The entries of compressed lines as triplets.
fn expanded<T: Scalar>(size: (usize, usize), lines: Csr<T>, by_columns: bool) -> Result<Triplets<T>> {
    let (offsets, across, values) = lines.into_arrays(&Host)?;
    spelled_out(size, offsets.as_ref(), across, values, by_columns)
}

/// Triplets of lines whose indices need not ascend, but are inside of the matrix.
pub(super) fn spelled_out<T: Scalar>(
    (rows, columns): (usize, usize),
    offsets: OffsetsRef<'_, Host>,
    across: Vec<u32>,
    values: Vec<T>,
    by_columns: bool,
) -> Result<Triplets<T>> {
    let mut down = Host.zeros::<u32>(across.len())?;
    match offsets {
        OffsetsRef::Lower(offsets) => Host.expand_offsets(offsets, &mut down)?,
        OffsetsRef::Wide(offsets) => Host.expand_offsets(offsets, &mut down)?,
    }
    let (row_indices, column_indices) = if by_columns { (across, down) } else { (down, across) };
    Triplets::from_parts_unchecked(rows, columns, row_indices, column_indices, values)
}
