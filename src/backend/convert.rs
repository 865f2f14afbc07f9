//! How entries move between CSR and the other layouts. What goes where (lengths, order, offsets, widths) is worked
//! out in `matrix`, once for all backends, with [`Primitives`]; here entries are only copied, so values keep every bit.

use super::{CsrParts, EllParts, JdsParts, OffsetsRef, Primitives, RowOrderRef, SellParts};
use crate::error::{Error, Result};
use crate::scalar::Element;

/// Copies of entries between layouts. Targets have the right lengths already and, where they have padding, hold zeros.
///
/// The provided methods say that the backend has no kernel for a layout yet.
#[allow(unused_variables)]
pub trait Conversions: Primitives {
    /// Entries `skip..` of every row, written at `offsets` (hybrid's overflow; the whole matrix where `skip` is 0).
    ///
    /// # Errors
    /// Where the backend has no kernel, or when the device fails.
    fn csr_tails<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        skip: usize,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("hybrid")
    }

    /// The rows of `head` followed by those of `tail`, written at `offsets`.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn join_rows<V: Element>(
        &self,
        head: CsrParts<'_, V, Self>,
        tail: CsrParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("hybrid")
    }

    /// The transpose, whose offsets are known, with columns ascending.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn csr_transpose<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("csc")
    }

    /// The first `width` entries of every row, laid out as [`EllParts`] says.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn csr_to_ell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        width: usize,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("ell")
    }

    /// The rows of an ELL matrix, written at `offsets`.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn ell_to_csr<V: Element>(
        &self,
        a: EllParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("ell")
    }

    /// Every entry, laid out as [`JdsParts`] says.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn csr_to_jds<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        order: RowOrderRef<'_, Self>,
        diagonals: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("jds")
    }

    /// The rows of a JDS matrix, written at `offsets`.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn jds_to_csr<V: Element>(
        &self,
        a: JdsParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("jds")
    }

    /// Every entry, laid out as [`SellParts`] says.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn csr_to_sell<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        height: usize,
        order: Option<RowOrderRef<'_, Self>>,
        sections: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("sell")
    }

    /// The rows of a SELL matrix, written at `offsets`.
    ///
    /// # Errors
    /// As [`Conversions::csr_tails`].
    fn sell_to_csr<V: Element>(
        &self,
        a: SellParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Self::Slice<u32>,
        values: &mut Self::Slice<V>,
    ) -> Result<()> {
        self.no_conversion("sell")
    }

    /// The refusal of the provided methods.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    #[doc(hidden)]
    fn no_conversion(&self, format: &str) -> Result<()> {
        Err(Error::Unsupported(format!(
            "conversion to or from {format} on {}; use format csr, or the cpu",
            self.description()
        )))
    }
}
