//! Products with sections whose values are stored and whose columns are wide or kinds of rows.

use super::{Flat, Target, with_section_offsets};
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, policy};
use crate::backend::{OffsetsRef, Products, SectionParts, SlimColumns, SlimValues};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar, Widen};

mod kernel {
    use super::*;
    kernels! {
        "slim_wide.cu", types(T: Scalar as SCALAR, S: Element as STORED, I: Offset as OFFSET);
        fn slim_wide(
            rows: u64, order: Option<&Slice<u8>>, offsets: &Slice<I>, bases: &Slice<u32>, words: &Slice<u32>,
            entries: &Slice<I>, values: &Slice<S>, conjugate: u32, alpha: T, x: &Slice<T>, beta: T,
            y: &mut Slice<T>,
        );
        fn slim_wide_dot(
            rows: u64, order: Option<&Slice<u8>>, offsets: &Slice<I>, bases: &Slice<u32>, words: &Slice<u32>,
            entries: &Slice<I>, values: &Slice<S>, x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>,
            partials: u64, finished: u64,
        );
    }
    kernels! {
        "slim_kinds_stored.cu", types(T: Scalar as SCALAR, S: Element as STORED, I: Offset as OFFSET);
        fn slim_kinds_stored(
            rows: u64, order: Option<&Slice<u8>>, kind_of: &Slice<u8>, kinds: u32, table: u32,
            starts: &Slice<u32>, distances: &Slice<u32>, entries: &Slice<I>, values: &Slice<S>,
            conjugate: u32, alpha: T, x: &Slice<T>, beta: T, y: &mut Slice<T>,
        );
        fn slim_kinds_stored_dot(
            rows: u64, order: Option<&Slice<u8>>, kind_of: &Slice<u8>, kinds: u32, table: u32,
            starts: &Slice<u32>, distances: &Slice<u32>, entries: &Slice<I>, values: &Slice<S>,
            x: &Slice<T>, y: &mut Slice<T>, xy: &mut Slice<T>, partials: u64, finished: u64,
        );
    }
}

impl Cuda {
    /// Values that are codes and columns that are codes of a byte have another kernel.
    pub(super) fn slim_stored<V: Scalar + Widen<T>, T: Scalar>(
        self,
        rows: usize,
        sections: SectionParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        match sections.values {
            _ if rows == 0 && matches!(target, Target::Product { .. }) => Ok(()),
            SlimValues::Narrow(values) => self.slim_stored_of(rows, sections, values, x, y, target),
            SlimValues::Full(values) => self.slim_stored_of(rows, sections, values, x, y, target),
            SlimValues::Codes(_) => self.no_kernel("stored values that are codes"),
        }
    }

    fn slim_stored_of<V: Scalar, S: Element, T: Scalar>(
        self,
        rows: usize,
        s: SectionParts<'_, V, Self>,
        values: &Slice<S>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        let (order, count, words) = (s.order.map(|order| order.as_slice()), rows as u64, s.words);
        let (partials, finished) = self.0.workspaces.reduction();
        let dot = matches!(target, Target::Dot(_));
        match s.columns {
            SlimColumns::Wide(bases) => {
                let shape = policy::slim_wide::<T>(rows, dot);
                with_section_offsets!(self, s, (entries, offsets) => match target {
                    Target::Product { conjugate, alpha, beta } => kernel::slim_wide(
                        self, shape, count, order, offsets, bases, words, entries, values, conjugate, alpha, x,
                        beta, y,
                    ),
                    Target::Dot(xy) => kernel::slim_wide_dot(
                        self, shape, count, order, offsets, bases, words, entries, values, x, y, xy, partials,
                        finished,
                    ),
                })
            }
            SlimColumns::Kinds(k) => {
                let flat = Flat::new(s);
                let shape = policy::slim_kinds_stored(rows, values.len(), order.is_some(), dot);
                let shape = shape.shared(flat.shared());
                let (of, starts, distances) = (k.of_row, k.starts, k.distances);
                with_section_offsets!(self, s, (entries, _offsets) => match target {
                    Target::Product { conjugate, alpha, beta } => kernel::slim_kinds_stored(
                        self, shape, count, order, of, flat.kinds, flat.table, starts, distances, entries,
                        values, conjugate, alpha, x, beta, y,
                    ),
                    Target::Dot(xy) => kernel::slim_kinds_stored_dot(
                        self, shape, count, order, of, flat.kinds, flat.table, starts, distances, entries,
                        values, x, y, xy, partials, finished,
                    ),
                })
            }
            SlimColumns::Codes(_) => self.no_kernel("columns that are codes"),
        }
    }
}
