//! The balanced form of a compressed matrix in the layout of `compressed_balanced.cuh`, for rows of any lengths.

use super::super::launch::kernels;
use super::super::slice::{Slice, Vec as DeviceVec};
use super::super::{Cuda, tuning};
use crate::backend::{
    BALANCED_TILE, Backend, CompressedValues, CsrParts, CsrPattern, Products, ValuesMut, balanced_places,
};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "compressed_balanced.cu", types(T: Scalar as SCALAR, S: Element as STORED);
        /// `tiles` has four words for each tile. `posts` is the address of a small structure for each block; all its
        /// bytes are zero.
        fn compressed_balanced(
            rows: u32, count: u32, each: u32, tiles: &Slice<u32>, starts: &Slice<u16>, row_bits: &Slice<u8>,
            codes: &Slice<u16>, values: &Slice<S>, conjugate: u32, alpha: T, x: &Slice<T>, beta: T,
            y: &mut Slice<T>, posts: u64,
        );
    }
    kernels! {
        "compressed_deal.cu", types(V: Element as VALUE, S: Element as STORED; a as OFFSET);
        fn compressed_tiles(
            rows: usize, entries: usize, count: u32, a: CsrPattern<'_, Cuda>, tiles: &mut Slice<u32>,
            far: &mut Slice<u32>,
        );
        fn compressed_deal(
            tiles: &Slice<u32>, a: CsrParts<'_, V, Cuda>, starts: &mut Slice<u16>, row_bits: &mut Slice<u8>,
            codes: &mut Slice<u16>, values: &mut Slice<S>,
        );
    }
    kernels! {
        "compressed_deal.cu", types(V: Element as VALUE, S: Element as STORED; "u32" as OFFSET);
        fn balanced_lengths(
            rows: u32, count: u32, tiles: &Slice<u32>, starts: &Slice<u16>, lengths: &mut Slice<u32>,
        );
        fn balanced_to_csr(
            tiles: &Slice<u32>, codes: &Slice<u16>, values: &Slice<S>, columns: &mut Slice<u32>,
            to: &mut Slice<V>,
        );
    }
}

/// The rows and columns of the balanced form.
#[derive(Debug)]
pub struct Balanced {
    /// Four words for each tile, and at the end: the first row that starts in the tile, the start of the row that
    /// continues from the previous tile, the base of the tile's codes, and the number of its entries.
    tiles: DeviceVec<u32>,
    /// The start of each row within its tile.
    starts: DeviceVec<u16>,
    /// A bit for each entry, set if a row starts with the entry.
    row_bits: DeviceVec<u8>,
    codes: DeviceVec<u16>,
}

impl Balanced {
    fn count(&self) -> u32 {
        (self.tiles.len() / 4 - 1) as u32
    }
}

impl Cuda {
    pub(super) fn tiles_to_deal<V: Scalar>(self, a: CsrParts<'_, V, Self>) -> Result<Option<Balanced>> {
        let (rows, entries) = (a.rows, a.indices.len());
        let places = balanced_places(entries);
        let count = places / BALANCED_TILE;
        let mut tiles = self.uninitialised(4 * (count + 1))?;
        let mut far = self.zeros::<u32>(1)?;
        let shape = tuning::compressed_blocks(count, false).class(0);
        kernel::compressed_tiles::<V, V>(
            self,
            shape,
            rows,
            entries,
            count as u32,
            a.pattern(),
            &mut tiles,
            &mut far,
        )?;
        if self.value(&far)? != 0 {
            return Ok(None);
        }
        Ok(Some(Balanced {
            tiles,
            starts: self.uninitialised(a.rows)?,
            row_bits: self.uninitialised(places / 8)?,
            codes: self.uninitialised(places)?,
        }))
    }

    pub(super) fn deal<V: Scalar>(
        self,
        a: CsrParts<'_, V, Self>,
        to: &mut Balanced,
        values: ValuesMut<'_, V, Self>,
    ) -> Result<()> {
        let shape = tuning::compressed_blocks(to.count() as usize, false).class(0);
        let Balanced { tiles, starts, row_bits, codes } = to;
        macro_rules! deal {
            ($values:expr) => {
                kernel::compressed_deal(self, shape, tiles, a, starts, row_bits, codes, $values)
            };
        }
        match values {
            ValuesMut::Codes => self.no_kernel("entries dealt out evenly with values as codes"),
            ValuesMut::Lower(values) => deal!(values),
            ValuesMut::Full(values) => deal!(values),
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn balanced_product<V: Scalar + Promote<T>, T: Scalar>(
        self,
        rows: usize,
        a: &Balanced,
        values: CompressedValues<'_, V, Self>,
        conjugate: u32,
        alpha: T,
        x: &Slice<T>,
        beta: T,
        y: &mut Slice<T>,
    ) -> Result<()> {
        let count = a.count();
        macro_rules! multiply {
            ($stored:ty, $values:expr) => {{
                let (shape, each) = tuning::compressed_balanced::<T, $stored>(self.0.chip, count);
                let (_guard, posts) = self.0.workspaces.posts(shape.blocks as usize * size_of::<T>() / 4)?;
                kernel::compressed_balanced(
                    self,
                    shape,
                    rows as u32,
                    count,
                    each,
                    &a.tiles,
                    &a.starts,
                    &a.row_bits,
                    &a.codes,
                    $values,
                    conjugate,
                    alpha,
                    x,
                    beta,
                    y,
                    posts,
                )
            }};
        }
        match values {
            CompressedValues::Codes(_) => self.no_kernel("entries dealt out evenly with values as codes"),
            CompressedValues::Lower(values) => multiply!(V::Lower, values),
            CompressedValues::Full(values) => multiply!(V, values),
        }
    }

    pub(super) fn balanced_lengths<V: Scalar>(self, a: &Balanced, lengths: &mut Slice<u32>) -> Result<()> {
        let shape = tuning::compressed_places(lengths.len(), false).class(0);
        let rows = lengths.len() as u32;
        kernel::balanced_lengths::<V, V>(self, shape, rows, a.count(), &a.tiles, &a.starts, lengths)
    }

    pub(super) fn balanced_to_csr<V: Scalar>(
        self,
        a: &Balanced,
        from: CompressedValues<'_, V, Self>,
        columns: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let shape = tuning::compressed_blocks(a.count() as usize, false).class(0);
        match from {
            CompressedValues::Codes(_) => self.no_kernel("entries dealt out evenly with values as codes"),
            CompressedValues::Lower(from) => {
                kernel::balanced_to_csr::<V, V::Lower>(self, shape, &a.tiles, &a.codes, from, columns, values)
            }
            CompressedValues::Full(from) => {
                kernel::balanced_to_csr::<V, V>(self, shape, &a.tiles, &a.codes, from, columns, values)
            }
        }
    }
}
