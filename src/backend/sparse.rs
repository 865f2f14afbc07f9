//! Sparse products and sums of matrices in compressed rows.

use super::{Backend, CsrParts, NARROW_LIMIT, Offsets, OffsetsRef, Primitives};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

/// Where the entries of a matrix in compressed rows are, without their values.
#[derive(Debug)]
pub struct CsrPattern<'a, B: Backend> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Where each row starts.
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
    /// The parts without the values.
    pub fn pattern(&self) -> CsrPattern<'a, B> {
        CsrPattern { rows: self.rows, columns: self.columns, offsets: self.offsets, indices: self.indices }
    }
}

/// Offsets, columns and values of a matrix that was computed.
pub type CsrArrays<V, B> = (Offsets<B>, <B as Backend>::Vec<u32>, <B as Backend>::Vec<V>);

/// C = A B by Gustavson's rows (ACM Transactions on Mathematical Software 4, 1978): row i of C is the sum of the rows
/// of B that row i of A names, each times the entry that names it.
///
/// The pattern of C follows from the patterns alone: an entry that comes out zero is stored. Products of one entry are
/// rounded and added one by one in the order of A's row, so that every backend gets the same bits, whatever the number
/// of threads. Sizes are checked by the callers in `matrix`.
///
/// Every method fails when the device fails, and without temporary memory.
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

    /// A B, all of it. A backend that asks for the lengths of rows first need not where `known` tells where rows start
    /// and how many entries all have.
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        known: Option<(OffsetsRef<'_, Self>, usize)>,
    ) -> Result<CsrArrays<V, Self>>;

    /// Adds to `count[0]` how many elements of two lists of the same length differ.
    fn count_differing(
        &self,
        list: &Self::Slice<u32>,
        other: &Self::Slice<u32>,
        count: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `lengths[i]` = columns that row i of A or row i of B has; `lengths` has one element more than A has rows;
    /// the last becomes 0.
    fn add_lengths(
        &self,
        a: CsrPattern<'_, Self>,
        b: CsrPattern<'_, Self>,
        lengths: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Columns and values of alpha A + beta B, whose rows start at `offsets`. Where only one of both has an entry, the
    /// other counts as zero and is not added.
    fn add_rows<V: Scalar>(
        &self,
        alpha_a: (V, CsrParts<'_, V, Self>),
        beta_b: (V, CsrParts<'_, V, Self>),
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()>;
}

/// Offsets of rows with these lengths, of which the last is 0 and no row's, and their sum.
pub(crate) fn offsets_of<B: Primitives>(backend: &B, lengths: &B::Slice<u32>) -> Result<(Offsets<B>, usize)> {
    let len = B::len(lengths);
    let mut wide = backend.buffer::<u64>(len)?;
    backend.exclusive_scan(lengths, &mut wide)?;
    let total = backend.value(B::part(&wide, len - 1..len))? as usize;
    drop(wide);
    Ok((offsets_up_to(backend, lengths, total)?, total))
}

/// The same where their sum is known: as wide as it asks for, and the host waits for nothing.
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
