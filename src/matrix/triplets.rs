//! Triplets, as files and element loops produce them.

use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// Entries (row, column, value) in any order; entries at the same position are added. They are in the memory of the
/// host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Triplets<T> {
    rows: usize,
    columns: usize,
    row_indices: Vec<u32>,
    column_indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Triplets<T> {
    /// An empty matrix.
    ///
    /// # Errors
    /// If a dimension exceeds 2^32: indices have 32 bits.
    pub fn new(rows: usize, columns: usize) -> Result<Self> {
        check_dimensions(rows, columns)?;
        Ok(Self { rows, columns, row_indices: Vec::new(), column_indices: Vec::new(), values: Vec::new() })
    }

    /// A matrix from three arrays of equal length, with indices from zero.
    ///
    /// # Errors
    /// If lengths differ, or an index is outside of the matrix (the message has its position).
    pub fn from_parts(
        rows: usize,
        columns: usize,
        row_indices: Vec<u32>,
        column_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self> {
        check_dimensions(rows, columns)?;
        Error::check_dimension("number of column indices", row_indices.len(), column_indices.len())?;
        Error::check_dimension("number of values", row_indices.len(), values.len())?;
        for (what, indices, limit) in [("row", &row_indices, rows), ("column", &column_indices, columns)] {
            if let Some(k) = indices.iter().position(|&i| i as usize >= limit) {
                let index = indices[k];
                return Err(Error::InvalidMatrix(format!(
                    "triplet {k} has {what} {index}, but there are {limit} {what}s"
                )));
            }
        }
        Ok(Self { rows, columns, row_indices, column_indices, values })
    }

    /// A matrix from entries that have already been checked.
    pub(crate) fn from_parts_unchecked(
        rows: usize,
        columns: usize,
        row_indices: Vec<u32>,
        column_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self> {
        check_dimensions(rows, columns)?;
        debug_assert!(row_indices.len() == column_indices.len() && row_indices.len() == values.len());
        debug_assert!(row_indices.iter().all(|&i| (i as usize) < rows));
        debug_assert!(column_indices.iter().all(|&j| (j as usize) < columns));
        Ok(Self { rows, columns, row_indices, column_indices, values })
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// If the position is outside of the matrix.
    pub fn push(&mut self, row: usize, column: usize, value: T) -> Result<()> {
        if row >= self.rows || column >= self.columns {
            return Err(Error::InvalidMatrix(format!(
                "entry ({row}, {column}) is outside of a {} x {} matrix",
                self.rows, self.columns
            )));
        }
        self.row_indices.push(row as u32);
        self.column_indices.push(column as u32);
        self.values.push(value);
        Ok(())
    }

    /// Reserves memory for `additional` entries.
    pub fn reserve(&mut self, additional: usize) {
        self.row_indices.reserve(additional);
        self.column_indices.reserve(additional);
        self.values.reserve(additional);
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of entries, including duplicates.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Row indices, column indices and values.
    pub fn parts(&self) -> (&[u32], &[u32], &[T]) {
        (&self.row_indices, &self.column_indices, &self.values)
    }

    /// Takes the arrays out.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        (self.row_indices, self.column_indices, self.values)
    }
}

pub(super) fn check_dimensions(rows: usize, columns: usize) -> Result<()> {
    let limit = 1usize << 32;
    if rows > limit || columns > limit {
        return Err(Error::InvalidMatrix(format!(
            "{rows} x {columns} is too large: indices have 32 bits, so each size is at most {limit}"
        )));
    }
    Ok(())
}
