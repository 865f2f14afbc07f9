//! Right-hand sides and solutions: a full n x k array.

use super::entries;
use super::header::{Format, Header};
use super::parallel;
use super::read::{ReadOptions, places};
use super::source::Source;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::scalar::Symmetry;
use std::path::Path;

/// A full matrix from a file, stored by columns.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseFile<T> {
    header: Header,
    values: Vec<T>,
}

impl<T: Scalar> DenseFile<T> {
    /// From a file of any format; there are rows times columns values.
    pub(crate) fn new(header: Header, values: Vec<T>) -> Self {
        debug_assert_eq!(values.len(), header.rows * header.columns);
        Self { header, values }
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.header.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.header.columns
    }

    /// All values; entry (i, j) is at `j * rows + i`.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Column `j`.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, j: usize) -> &[T] {
        &self.values[j * self.header.rows..(j + 1) * self.header.rows]
    }

    /// Takes the values out.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}

/// Reads a full matrix: an array, or coordinates, in which missing entries are zero and duplicates are added. `-` is
/// standard input.
///
/// # Errors
/// As [`read_triplets`](super::read_triplets); also if the full array of a coordinate file would have far more values
/// than the file has entries (the options have the limit).
pub fn read_dense<T: Scalar>(path: impl AsRef<Path>, options: &ReadOptions) -> Result<DenseFile<T>> {
    dense_of(Source::open(path.as_ref(), options.metered())?, options)
}

/// [`read_dense`] for an open source.
pub(crate) fn dense_of<T: Scalar>(source: Source, options: &ReadOptions) -> Result<DenseFile<T>> {
    let path = source.path().to_owned();
    let entries = parallel::entries::<T>(source, |header, line| options.check_dense(&path, header, line))?;
    let header = entries.header;
    if header.format == Format::Array && header.symmetry == Symmetry::General {
        return Ok(DenseFile { header, values: entries.values });
    }
    let length = header.rows * header.columns;
    let mut values = Vec::new();
    values.try_reserve_exact(length).map_err(|_| Error::OutOfMemory {
        device: "host".to_owned(),
        bytes: (length as u64).saturating_mul(size_of::<T>() as u64),
    })?;
    values.resize(length, T::zero());
    let mut put = |row: usize, column: usize, value: T| {
        values[column * header.rows + row] += value;
        if row != column && header.symmetry != Symmetry::General {
            values[row * header.rows + column] += header.symmetry.mirror(value);
        }
    };
    match header.format {
        Format::Array => {
            for (k, (row, column)) in places(&header).enumerate() {
                if row == column {
                    let check = entries::diagonal(header.symmetry, entries.values[k]);
                    check.map_err(|cause| entries.lines.error(k, cause.message("")))?;
                }
                put(row, column, entries.values[k]);
            }
        }
        Format::Coordinate => {
            for (k, &value) in entries.values.iter().enumerate() {
                let column = entries.columns.get(k).map_or(0, |&c| c as usize);
                put(entries.rows[k] as usize, column, value);
            }
        }
    }
    Ok(DenseFile { header, values })
}
