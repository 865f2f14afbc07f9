//! Builds a matrix from arrays in the memory of a backend: compressed rows, compressed columns or triplets, with
//! indices of 32 or 64 bits that start from 0 or 1.
//!
//! All checks run on the backend; only a few numbers are copied to the host. The arrays are copied once, with indices
//! as 32 bits.
//!
//! ```text
//! compressed rows    first   0   2   3   5      second  0 2 | 2 | 1 2      values  1 7 | 8 | 4 3
//! triplets           first   0 0 1 2 2          second  0 2   2   1 2      values  1 7   8   4 3
//! ```

use super::{Assemble, Assembler, Assembly, ResidentTriplets};
use crate::backend::{Conversions, NARROW_LIMIT, Offsets, copied};
use crate::error::{Error, Result};
use crate::matrix::{Csr, Triplets};
use crate::scalar::{Key, Max, Scalar};

/// The layout of the first array of [`Arrays`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Row offsets; the second array holds columns.
    Rows,
    /// Column offsets; the second array holds rows.
    Columns,
    /// Rows of entries in any order; the second array holds their columns.
    Triplets,
}

/// Offsets or indices. Signed integers are passed as the same bits, so that a negative one becomes too large to be
/// valid.
#[derive(Debug)]
pub enum Integers<'a, B: Assemble> {
    /// 32 bits.
    Short(&'a B::Slice<u32>),
    /// 64 bits.
    Long(&'a B::Slice<u64>),
}

impl<B: Assemble> Clone for Integers<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Assemble> Copy for Integers<'_, B> {}

/// The borrowed arrays of a matrix.
#[derive(Debug)]
pub struct Arrays<'a, T: Scalar, B: Assemble> {
    /// The layout of `first` and `second`.
    pub layout: Layout,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// The first index and offset: 0 or 1.
    pub base: u32,
    /// Offsets, or the rows of entries.
    pub first: Integers<'a, B>,
    /// The columns of entries; for compressed columns, the rows.
    pub second: Integers<'a, B>,
    /// The values of entries.
    pub values: &'a B::Slice<T>,
}

/// A matrix, and the map that writes new values into it.
pub type Kept<T, B> = (Csr<T, B>, Assembly<B>);

/// A matrix; and a copy of it with the map for new values, if these come in another order than that of the matrix.
pub type Built<T, B> = (Csr<T, B>, Option<Kept<T, B>>);

impl<'a, B: Assemble> Integers<'a, B> {
    pub(super) fn len(self) -> usize {
        match self {
            Integers::Short(all) => B::len::<u32>(all),
            Integers::Long(all) => B::len::<u64>(all),
        }
    }

    /// One element, as a signed number.
    fn at(self, backend: &B, place: usize) -> Result<i64> {
        Ok(match self {
            Integers::Short(all) => i64::from(backend.value(B::part::<u32>(all, place..place + 1))? as i32),
            Integers::Long(all) => backend.value(B::part::<u64>(all, place..place + 1))? as i64,
        })
    }

    /// The low 32 bits of each element minus `base`, and the high bits of the largest element.
    fn narrowed(self, backend: &B, base: u32) -> Result<(B::Vec<u32>, u32)> {
        let mut low = backend.buffer(self.len())?;
        let mut beyond = 0;
        match self {
            Integers::Short(all) => backend.copy(all, &mut low)?,
            Integers::Long(all) => {
                let mut high = backend.buffer(self.len())?;
                backend.unpack(all, 32, &mut high, &mut low)?;
                beyond = largest(backend, &high)?;
            }
        }
        if base != 0 {
            // The addition wraps around, so that an index below the base becomes one that is too large.
            backend.add_constant(base.wrapping_neg(), &mut low)?;
        }
        Ok((low, beyond))
    }

    /// Each element minus `base`, as 32 bits.
    ///
    /// # Errors
    /// If one of them is not below `limit`.
    fn indices(self, backend: &B, what: &str, base: u32, limit: usize) -> Result<B::Vec<u32>> {
        let (low, beyond) = self.narrowed(backend, base)?;
        let most = largest(backend, &low)?;
        if self.len() > 0 && (beyond > 0 || most as usize >= limit) {
            // As unsigned bits, a negative number is the largest.
            let bits = most.wrapping_add(base);
            let index = match self {
                Integers::Short(_) => (bits as i32).to_string(),
                Integers::Long(_) if beyond == 0 => bits.to_string(),
                Integers::Long(all) => (largest(backend, all)? as i64).to_string(),
            };
            return Err(Error::InvalidMatrix(format!(
                "an entry has {what} {index}, but {what}s count from {base}, and there are {limit}"
            )));
        }
        Ok(low)
    }

    /// Each element minus `base`, as the offsets of `lines` rows or columns.
    ///
    /// # Errors
    /// If they do not ascend from `base` to `base + entries`.
    fn offsets(self, backend: &B, base: u32, lines: usize, entries: usize) -> Result<Offsets<B>> {
        if self.len() != lines.saturating_add(1) {
            let text = format!(
                "there are {} offsets for {lines} rows or columns, but one more than these is needed",
                self.len()
            );
            return Err(Error::InvalidMatrix(text));
        }
        let ascend = match self {
            Integers::Short(all) => backend.is_sorted(all, false)?,
            Integers::Long(all) => backend.is_sorted(all, false)?,
        };
        let (first, last) = (self.at(backend, 0)?, self.at(backend, lines)?);
        let (from, to) = (i128::from(first), i128::from(last) - i128::from(base));
        if !ascend || from != i128::from(base) || to != entries as i128 {
            return Err(Error::InvalidMatrix(format!(
                "offsets go from {first} to {last}, but must ascend from {base}, by {entries} entries in all"
            )));
        }
        Ok(match self {
            Integers::Long(all) if entries > NARROW_LIMIT => {
                let mut wide = copied(backend, all)?;
                if base != 0 {
                    backend.add_constant(u64::from(base).wrapping_neg(), &mut wide)?;
                }
                Offsets::Wide(wide)
            }
            _ => Offsets::Lower(self.narrowed(backend, base)?.0),
        })
    }
}

/// The largest element, or 0 if there is none.
fn largest<K: Key, B: Assemble>(backend: &B, all: &B::Slice<K>) -> Result<K> {
    if B::len(all) == 0 {
        return Ok(K::default());
    }
    let mut cell = backend.buffer(1)?;
    backend.reduce(Max, all, &mut cell)?;
    backend.value(&cell)
}

impl<T: Scalar, B: Assemble + Conversions> Arrays<'_, T, B> {
    /// Builds the matrix. Duplicate entries are summed in their order, and rows need not be sorted.
    ///
    /// With `keep`, new values will come in the order of `values`. If that is not the order of the matrix, the second
    /// result is a copy of the matrix with the map for new values ([`Assembly::update`]).
    ///
    /// # Errors
    /// If the arrays are invalid for this shape, memory is insufficient, or the device fails.
    pub fn build(&self, backend: &B, keep: bool) -> Result<Built<T, B>> {
        let (rows, columns) = self.shape;
        Triplets::<T>::new(rows, columns)?;
        let given = B::len(self.values);
        if self.second.len() != given {
            return Err(Error::InvalidMatrix(format!(
                "there are {} indices for {given} values, but equally many are needed",
                self.second.len()
            )));
        }
        if self.layout == Layout::Triplets {
            Error::check_dimension("number of rows of entries", given, self.first.len())?;
            let down = self.first.indices(backend, "row", self.base, rows)?;
            let across = self.second.indices(backend, "column", self.base, columns)?;
            return self.assembled(backend, (down, across), keep);
        }
        let by_rows = self.layout == Layout::Rows;
        let (lines, length, what) = if by_rows { (rows, columns, "column") } else { (columns, rows, "row") };
        let offsets = self.first.offsets(backend, self.base, lines, given)?;
        let within = self.second.indices(backend, what, self.base, length)?;
        let mut line_of = backend.buffer(given)?;
        match &offsets {
            Offsets::Lower(all) => backend.expand_offsets(all, &mut line_of)?,
            Offsets::Wide(all) => backend.expand_offsets(all, &mut line_of)?,
        }
        if (by_rows || !keep) && ascends(backend, &line_of, &within)? {
            drop(line_of);
            let values = copied(backend, self.values)?;
            let a = Csr::from_parts_unchecked(lines, length, offsets, within, values);
            return Ok((if by_rows { a } else { a.transpose(backend)? }, None));
        }
        let places = if by_rows { (line_of, within) } else { (within, line_of) };
        self.assembled(backend, places, keep)
    }

    /// Builds the matrix, without a map for new values.
    ///
    /// # Errors
    /// As [`Arrays::build`].
    pub fn to_csr(&self, backend: &B) -> Result<Csr<T, B>> {
        Ok(self.build(backend, false)?.0)
    }

    fn assembled(
        &self,
        backend: &B,
        (down, across): (B::Vec<u32>, B::Vec<u32>),
        keep: bool,
    ) -> Result<Built<T, B>> {
        let values = copied(backend, self.values)?;
        let (rows, columns) = self.shape;
        let triplets = ResidentTriplets::from_parts(backend, rows, columns, down, across, values)?;
        if keep {
            let (a, assembly) = Assembler::default().resident_assembly(backend, &triplets)?;
            return Ok((a.copied(backend)?, Some((a, assembly))));
        }
        Ok((Assembler::default().resident_to_csr(backend, triplets)?, None))
    }
}

/// Returns whether the indices of each row or column ascend strictly; `lines` itself ascends.
fn ascends<B: Assemble>(backend: &B, lines: &B::Slice<u32>, indices: &B::Slice<u32>) -> Result<bool> {
    let mut keys = backend.buffer::<u64>(B::len(lines))?;
    backend.pack(lines, indices, 32, &mut keys)?;
    backend.is_sorted(&keys, true)
}
