//! The places of a matrix's entries.

use crate::backend::{Backend, Host};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use crate::work::look_at;
use std::borrow::Cow;

/// The places of a matrix's entries, row by row, from which matchings and block forms are computed. The column indices
/// of the matrix are borrowed if every stored entry counts.
#[derive(Debug, Clone)]
pub struct Pattern<'a> {
    columns: usize,
    starts: Vec<usize>,
    indices: Cow<'a, [u32]>,
}

impl<'a> Pattern<'a> {
    /// All stored entries, including explicit zeros. Results hold for all values on this structure.
    ///
    /// # Errors
    /// If there are 2^32 - 1 rows or columns or more, or if memory runs out.
    pub fn stored<T: Scalar>(a: &'a Csr<T>) -> Result<Self> {
        check_sizes(a.rows(), a.columns())?;
        let parts = a.parts();
        let starts = parts.offsets.download(&Host)?;
        Ok(Self { columns: parts.columns, starts, indices: Cow::Borrowed(parts.indices) })
    }

    /// The entries that are not zero; those that are not finite count. Results hold for the current values.
    ///
    /// # Errors
    /// As [`Pattern::stored`].
    pub fn nonzero<T: Scalar>(a: &'a Csr<T>) -> Result<Self> {
        let mut pattern = Self::stored(a)?;
        let values = a.parts().values;
        if values.iter().all(|&value| value != T::default()) {
            return Ok(pattern);
        }
        let mut kept = Vec::with_capacity(values.len());
        let mut start = 0;
        for row in 0..pattern.rows() {
            look_at(row);
            let end = pattern.starts[row + 1];
            kept.extend((start..end).filter(|&k| values[k] != T::default()).map(|k| pattern.indices[k]));
            (start, pattern.starts[row + 1]) = (end, kept.len());
        }
        pattern.indices = Cow::Owned(kept);
        Ok(pattern)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.indices.len()
    }

    /// The columns of a row's entries, ascending.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.indices[self.starts[row]..self.starts[row + 1]]
    }

    /// Where the entries of each row start, and the total number of entries.
    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The columns of all entries.
    pub(super) fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The pattern of the transpose.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn transposed(&self) -> Result<Pattern<'static>> {
        let mut starts = Host.zeros::<u64>(self.columns + 2)?;
        self.indices.iter().for_each(|&column| starts[column as usize + 2] += 1);
        for column in 2..starts.len() {
            starts[column] += starts[column - 1];
        }
        // starts[j + 1] is the next free place of column j, and in the end the start of column j + 1.
        let mut indices = Host.zeros::<u32>(self.entries())?;
        for row in 0..self.rows() {
            look_at(row);
            for &column in self.row(row) {
                let next = &mut starts[column as usize + 1];
                indices[*next as usize] = row as u32;
                *next += 1;
            }
        }
        starts.pop();
        let starts = starts.into_iter().map(|start| start as usize).collect();
        Ok(Pattern { columns: self.rows(), starts, indices: Cow::Owned(indices) })
    }
}

/// Rows and columns are numbered with 32 bits here, and the largest number stands for none.
fn check_sizes(rows: usize, columns: usize) -> Result<()> {
    if rows.max(columns) < u32::MAX as usize {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "a pattern of {rows} x {columns}, where 2^32 - 2 rows and columns are the most"
    )))
}
