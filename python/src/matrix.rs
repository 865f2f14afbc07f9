//! Compressed rows, compressed columns or triplets of NumPy, as a matrix of the library. The arrays are read, copied
//! with indices of 32 bits, and never written to.

use numpy::{Element, PyReadonlyArray1};
use pyo3::prelude::*;
use residua::assemble::{Assembler, Assembly};
use residua::backend::OffsetsRef;
use residua::{Csr, Error, Host, Result, Scalar, Triplets};

/// Indices or offsets of either width.
#[derive(FromPyObject)]
pub(crate) enum Indices<'py> {
    Short(PyReadonlyArray1<'py, i32>),
    Long(PyReadonlyArray1<'py, i64>),
}

/// Indices as a slice.
#[derive(Clone, Copy)]
pub(crate) enum Slice<'a> {
    Short(&'a [i32]),
    Long(&'a [i64]),
}

impl Indices<'_> {
    /// The indices.
    ///
    /// # Errors
    /// Unless they lie one behind the other.
    pub(crate) fn slice(&self) -> PyResult<Slice<'_>> {
        Ok(match self {
            Indices::Short(array) => Slice::Short(array.as_slice()?),
            Indices::Long(array) => Slice::Long(array.as_slice()?),
        })
    }
}

impl Slice<'_> {
    fn len(self) -> usize {
        match self {
            Slice::Short(all) => all.len(),
            Slice::Long(all) => all.len(),
        }
    }

    /// Each as `N`, where it is one.
    fn narrowed<N: TryFrom<i32> + TryFrom<i64>>(self, what: &str) -> Result<Vec<N>> {
        fn each<I: Copy + std::fmt::Display, N: TryFrom<I>>(all: &[I], what: &str) -> Result<Vec<N>> {
            let wrong = |place: usize, value: I| {
                Error::InvalidMatrix(format!("{what} {value} at place {place} is below 0 or beyond 2^32 - 1"))
            };
            all.iter().enumerate().map(|(k, &i)| N::try_from(i).map_err(|_| wrong(k, i))).collect()
        }
        match self {
            Slice::Short(all) => each(all, what),
            Slice::Long(all) => each(all, what),
        }
    }
}

/// What the arrays of a matrix mean.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Layout {
    /// Offsets of rows, columns of entries.
    Rows,
    /// Offsets of columns, rows of entries.
    Columns,
    /// Rows of entries, columns of entries, in any order.
    Triplets,
}

impl std::str::FromStr for Layout {
    type Err = PyErr;

    fn from_str(text: &str) -> PyResult<Self> {
        match text {
            "csr" => Ok(Layout::Rows),
            "csc" => Ok(Layout::Columns),
            "coo" => Ok(Layout::Triplets),
            _ => Err(pyo3::exceptions::PyValueError::new_err(format!("no layout '{text}'"))),
        }
    }
}

/// The arrays of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Arrays<'a, T> {
    layout: Layout,
    shape: (usize, usize),
    /// Offsets, or rows.
    first: Slice<'a>,
    /// Columns; of compressed columns, rows.
    second: Slice<'a>,
    values: &'a [T],
}

/// How new values, in the order of the caller's entries, become those of the matrix: by this map, into this matrix.
pub(crate) type Map<T> = (Csr<T>, Assembly<Host>);

impl<'a, T: Scalar + Element> Arrays<'a, T> {
    /// The arrays that Python handed over.
    ///
    /// # Errors
    /// Where an array does not lie in one piece.
    pub(crate) fn of(
        (layout, shape): (Layout, (usize, usize)),
        (first, second): (&'a Indices<'_>, &'a Indices<'_>),
        values: &'a PyReadonlyArray1<'_, T>,
    ) -> PyResult<Self> {
        Ok(Self { layout, shape, first: first.slice()?, second: second.slice()?, values: values.as_slice()? })
    }

    /// The matrix, and the way of new values where it is not that of the caller's entries and `keep` asks for it.
    ///
    /// # Errors
    /// On arrays that belong to no matrix of this shape.
    pub(crate) fn build(&self, keep: bool) -> Result<(Csr<T>, Option<Map<T>>)> {
        let (rows, columns) = self.shape;
        if self.second.len() != self.values.len() {
            return Err(Error::InvalidMatrix(format!(
                "{} indices for {} values",
                self.second.len(),
                self.values.len()
            )));
        }
        let second: Vec<u32> = self.second.narrowed("index")?;
        let (row_indices, column_indices) = match self.layout {
            Layout::Triplets => (self.first.narrowed("row")?, second),
            Layout::Rows | Layout::Columns => {
                let lines = if self.layout == Layout::Rows { rows } else { columns };
                let across = if self.layout == Layout::Rows { columns } else { rows };
                let offsets: Vec<usize> = self.first.narrowed("offset")?;
                check_offsets(&offsets, lines, second.len())?;
                if (self.layout == Layout::Rows || !keep) && ascend(&offsets, &second) {
                    let a = Csr::from_parts(lines, across, offsets, second, self.values.to_vec())?;
                    let a = if self.layout == Layout::Rows { a } else { a.transpose(&Host)? };
                    return Ok((a, None));
                }
                let mut of_entries = vec![0_u32; second.len()];
                for (line, range) in offsets.windows(2).enumerate() {
                    of_entries[range[0]..range[1]].fill(line as u32);
                }
                if self.layout == Layout::Rows { (of_entries, second) } else { (second, of_entries) }
            }
        };
        let triplets =
            Triplets::from_parts(rows, columns, row_indices, column_indices, self.values.to_vec())?;
        if keep {
            let (a, assembly) = Assembly::new(&Host, &triplets)?;
            return Ok((a.copied(&Host)?, Some((a, assembly))));
        }
        Ok((Assembler::default().to_csr(&Host, triplets)?, None))
    }
}

fn check_offsets(offsets: &[usize], lines: usize, entries: usize) -> Result<()> {
    if offsets.len() != lines + 1 {
        return Err(Error::InvalidMatrix(format!("{} offsets for {lines} rows or columns", offsets.len())));
    }
    if offsets[0] != 0 || offsets[lines] != entries || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(Error::InvalidMatrix(format!("offsets do not ascend from 0 to the {entries} entries")));
    }
    Ok(())
}

/// Whether the indices of each line ascend, none twice.
fn ascend(offsets: &[usize], indices: &[u32]) -> bool {
    offsets.windows(2).all(|line| indices[line[0]..line[1]].windows(2).all(|pair| pair[0] < pair[1]))
}

/// Offsets as SciPy has them: of 32 bits where they fit.
pub(crate) fn offsets_of<T: Scalar>(a: &Csr<T>) -> Vec<i64> {
    match a.parts().offsets {
        OffsetsRef::Narrow(all) => all.iter().map(|&offset| i64::from(offset)).collect(),
        OffsetsRef::Wide(all) => all.iter().map(|&offset| offset as i64).collect(),
    }
}
