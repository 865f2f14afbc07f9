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
/// over the entries a_ik of row i of A, each times row k of B.
///
/// The patterns of A and B determine the pattern of C: an entry is stored even if it is zero. The products for an entry
/// are rounded and added one by one in the order of A's row, so every backend gets the same bits, for any number of
/// threads. The callers in `matrix` check sizes.
///
/// Every method fails if the device fails, or if there is no temporary memory.
#[allow(clippy::missing_errors_doc)]
pub trait SparseProducts: Primitives {
    /// Computes the values of C = A B, whose pattern is known.
    fn multiply_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        c: CsrPattern<'_, Self>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;

    /// Computes C = A B, both pattern and values; `None` if C would have more than `most` entries. `known` has the row
    /// starts and the number of entries of C if the caller knows them; then the backend need not compute row lengths.
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        known: Option<(OffsetsRef<'_, Self>, usize)>,
        most: usize,
    ) -> Result<Option<CsrArrays<V, Self>>>;

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

    /// Computes the columns and values of alpha A + beta B, whose rows start at `offsets`. If only one of the two has
    /// an entry, no zero is added to it.
    fn add_rows<V: Scalar>(
        &self,
        alpha_a: (V, CsrParts<'_, V, Self>),
        beta_b: (V, CsrParts<'_, V, Self>),
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;
}

/// Returns the offsets of rows with these lengths, and their sum. The last length is 0 and belongs to no row.
pub(crate) fn offsets_of<B: Primitives>(backend: &B, lengths: &B::Slice<u32>) -> Result<(Offsets<B>, usize)> {
    let len = B::len(lengths);
    let mut wide = backend.buffer::<u64>(len)?;
    backend.exclusive_scan(lengths, &mut wide)?;
    let total = backend.value(B::part(&wide, len - 1..len))? as usize;
    drop(wide);
    Ok((offsets_up_to(backend, lengths, total)?, total))
}

/// As [`offsets_of`] for a known sum: it determines the width of the offsets, so the host does not wait for the device.
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
        0..=NARROW_LIMIT => Offsets::Lower(scan(backend, lengths)?),
        _ => Offsets::Wide(scan(backend, lengths)?),
    })
}
