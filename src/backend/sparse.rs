//! Sparse products and sums of matrices in compressed rows.

use super::{Backend, CsrParts, NARROW_LIMIT, Offsets, OffsetsRef, Primitives};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

/// The pattern of a matrix in compressed rows.
#[derive(Debug)]
pub struct CsrPattern<'a, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The start of each row.
    pub offsets: OffsetsRef<'a, B>,
    /// Column of each entry, ascending within a row.
    pub indices: &'a B::Slice<u32>,
}

impl<B: Backend> Clone for CsrPattern<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for CsrPattern<'_, B> {}

impl<'a, V: Element, B: Backend> CsrParts<'a, V, B> {
    /// The pattern of the matrix.
    pub fn pattern(&self) -> CsrPattern<'a, B> {
        CsrPattern { rows: self.rows, columns: self.columns, offsets: self.offsets, indices: self.indices }
    }
}

/// Offsets, columns and values of a computed matrix.
pub type CsrArrays<V, B> = (Offsets<B>, <B as Backend>::Vec<u32>, <B as Backend>::Vec<V>);

/// C = A B by Gustavson's row-wise algorithm (ACM Transactions on Mathematical Software 4, 1978): row i of C is the sum
/// over the entries of row i of A, each times the row of B with the index of its column.
///
/// The pattern of C follows from the patterns alone: an entry is stored even if it is zero. Products of one entry are
/// rounded and added one by one in the order of A's row, so that every backend gets the same bits, for any number of
/// threads. The callers in `matrix` check sizes.
///
/// Every method fails if the device fails, and without temporary memory.
#[allow(clippy::missing_errors_doc)]
pub trait SparseProducts: Primitives {
    /// The values of C = A B, whose pattern is known.
    fn multiply_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        c: CsrPattern<'_, Self>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// C = A B, pattern and values. If `known` has the row starts and the number of entries, the backend need not
    /// compute row lengths.
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        known: Option<(OffsetsRef<'_, Self>, usize)>,
    ) -> Result<CsrArrays<V, Self>>;

    /// Adds to `count[0]` the number of positions in which two lists of the same length differ.
    fn count_differing(
        &self,
        list: &Self::Slice<u32>,
        other: &Self::Slice<u32>,
        count: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Sets `lengths[i]` to the number of columns that row i has in A, in B or in both. `lengths` has one element more
    /// than A has rows; the last is set to 0.
    fn add_lengths(
        &self,
        a: CsrPattern<'_, Self>,
        b: CsrPattern<'_, Self>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Columns and values of alpha A + beta B, whose rows start at `offsets`. If only one of both has an entry, the
    /// other is not added as a zero.
    fn add_rows<V: Scalar>(
        &self,
        alpha_a: (V, CsrParts<'_, V, Self>),
        beta_b: (V, CsrParts<'_, V, Self>),
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;
}

/// Offsets of rows with these lengths (the last length is 0 and belongs to no row), and their sum.
pub(crate) fn offsets_of<B: Primitives>(backend: &B, lengths: &B::Slice<u32>) -> Result<(Offsets<B>, usize)> {
    let len = B::len(lengths);
    let mut wide = backend.buffer::<u64>(len)?;
    backend.exclusive_scan(lengths, &mut wide)?;
    let total = backend.value(B::part(&wide, len - 1..len))? as usize;
    drop(wide);
    Ok((offsets_up_to(backend, lengths, total)?, total))
}

/// Offsets if their sum is known: the width follows from it, and the host does not wait.
pub(crate) fn offsets_up_to<B: Primitives>(
    backend: &B,
    lengths: &B::Slice<u32>,
    total: usize,
) -> Result<Offsets<B>> {
    fn scan<O: Offset, B: Primitives>(backend: &B, lengths: &B::Slice<u32>) -> Result<B::Vec<O>> {
        let mut offsets = backend.buffer(B::len(lengths))?;
        backend.exclusive_scan(lengths, &mut offsets)?;
        Ok(offsets)
    }
    Ok(match total {
        0..=NARROW_LIMIT => Offsets::Narrow(scan(backend, lengths)?),
        _ => Offsets::Wide(scan(backend, lengths)?),
    })
}
