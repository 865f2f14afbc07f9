//! Products with slices if values are stored and the kinds of rows determine the columns.

use super::{Target, check_widths};
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::workspace::Reduction;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{CompressedValues, KindParts, OffsetsRef, Products, SectionParts};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "compressed_kinds_stored.cu", types(T: Scalar as SCALAR, S: Element as STORED; entries as OFFSET);
        fn compressed_kinds_stored(
            rows: usize, order: Option<&Slice<u8>>, kind_of: &Slice<u8>, kinds: u32, table: u32,
            starts: &Slice<u32>, distances: &Slice<u32>, entries: OffsetsRef<'_, Cuda>, values: &Slice<S>,
            conjugate: u32, alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>,
        );
        fn compressed_kinds_stored_dot(
            rows: usize, order: Option<&Slice<u8>>, kind_of: &Slice<u8>, kinds: u32, table: u32,
            starts: &Slice<u32>, distances: &Slice<u32>, entries: OffsetsRef<'_, Cuda>, values: &Slice<S>,
            x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>, reduction: Reduction,
        );
    }
}

impl Cuda {
    pub(super) fn compressed_kinds_stored<V: Scalar + Promote<T>, T: Scalar>(
        self,
        rows: usize,
        (sections, kinds): (SectionParts<'_, V, Self>, KindParts<'_, Self>),
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        match sections.values {
            CompressedValues::Lower(values) => {
                self.compressed_kinds_stored_of(rows, (sections, kinds), values, x, y, target)
            }
            CompressedValues::Full(values) => {
                self.compressed_kinds_stored_of(rows, (sections, kinds), values, x, y, target)
            }
            CompressedValues::Codes(_) => self.no_kernel("stored values that are codes"),
        }
    }

    fn compressed_kinds_stored_of<V: Scalar, S: Element, T: Scalar>(
        self,
        rows: usize,
        (s, k): (SectionParts<'_, V, Self>, KindParts<'_, Self>),
        values: &Slice<S>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        let (order, count) = (s.order.map(|order| order.as_slice()), rows);
        let reduction = self.0.workspaces.reduction();
        let (kinds, table) = (k.starts.len() as u32 - 1, k.distances.len() as u32);
        let (of, starts, distances) = (k.of_row, k.starts, k.distances);
        let dot = matches!(target, Target::Dot(_));
        let shape = tuning::compressed_kinds_stored(rows, values.len(), order.is_some(), dot);
        let shape = shape.shared(4 * (starts.len() + distances.len()));
        check_widths(self, s)?;
        match target {
            Target::Product { conjugate, alpha, beta } => kernel::compressed_kinds_stored(
                self, shape, count, order, of, kinds, table, starts, distances, s.entries, values, conjugate,
                alpha, x, beta, y,
            ),
            Target::Dot(xy) => kernel::compressed_kinds_stored_dot(
                self, shape, count, order, of, kinds, table, starts, distances, s.entries, values, x, y, xy,
                reduction,
            ),
        }
    }
}
