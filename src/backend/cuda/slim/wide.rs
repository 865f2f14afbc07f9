//! Products with sections whose columns are wide and whose values are stored.

use super::{Target, with_section_offsets};
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, policy};
use crate::backend::{OffsetsRef, Products, SectionParts, SlimValues};
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
}

impl Cuda {
    /// `bases` are those of the sections; none where values are codes, which have another kernel.
    pub(super) fn slim_wide<V: Scalar + Widen<T>, T: Scalar>(
        self,
        rows: usize,
        sections: SectionParts<'_, V, Self>,
        bases: &Slice<u32>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        let shape = policy::slim_wide(rows, matches!(target, Target::Dot(_)));
        match sections.values {
            SlimValues::Narrow(values) => {
                self.slim_wide_of(shape, rows, sections, bases, values, x, y, target)
            }
            SlimValues::Full(values) => self.slim_wide_of(shape, rows, sections, bases, values, x, y, target),
            SlimValues::Codes(_) => self.no_kernel("stored values that are codes"),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn slim_wide_of<V: Scalar, S: Element, T: Scalar>(
        self,
        shape: Shape,
        rows: usize,
        s: SectionParts<'_, V, Self>,
        bases: &Slice<u32>,
        values: &Slice<S>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        target: Target<'_, T>,
    ) -> Result<()> {
        let (order, count, words) = (s.order.map(|order| order.as_slice()), rows as u64, s.words);
        with_section_offsets!(self, s, (entries, offsets) => match target {
            Target::Product { .. } if rows == 0 => Ok(()),
            Target::Product { conjugate, alpha, beta } => kernel::slim_wide(
                self, shape, count, order, offsets, bases, words, entries, values, conjugate, alpha, x, beta, y,
            ),
            Target::Dot(xy) => {
                let (partials, finished) = self.0.reduction();
                kernel::slim_wide_dot(
                    self, shape, count, order, offsets, bases, words, entries, values, x, y, xy, partials, finished,
                )
            }
        })
    }
}
