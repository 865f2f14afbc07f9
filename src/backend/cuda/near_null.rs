//! Near-null vectors on groups of unknowns, on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::sparse::alike;
use super::{Cuda, tuning};
use crate::backend::{CsrPattern, NearNullSteps, OffsetsRef};
use crate::error::Result;
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "near_null.cu", types(T: Scalar as SCALAR; offsets as OFFSET, "u32" as TARGET);
        fn group_bases(
            groups: usize,
            count: u32,
            offsets: OffsetsRef<'_, Cuda>,
            members: &Slice<u32>,
            vectors: &Slice<T>,
            q: &mut Slice<T>,
            r: &mut Slice<T>,
            ranks: &mut Slice<u32>,
        );
    }
    kernels! {
        "near_null.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, "u32" as TARGET);
        fn basis_lengths(n: usize, group: &Slice<u32>, first: &Slice<u32>, lengths: &mut Slice<u32>);
        fn basis_rows(
            groups: usize,
            count: u32,
            first: &Slice<u32>,
            r: &Slice<T>,
            rows: &mut Slice<T>,
            group: &mut Slice<u32>,
        );
    }
    kernels! {
        "near_null.cu", types(T: Scalar as SCALAR; "u32" as OFFSET, starts as TARGET);
        fn basis_entries(
            n: usize,
            count: u32,
            group: &Slice<u32>,
            first: &Slice<u32>,
            q: &Slice<T>,
            starts: OffsetsRef<'_, Cuda>,
            indices: &mut Slice<u32>,
            values: &mut Slice<T>,
        );
        fn basis_corrections(
            n: usize,
            count: u32,
            group: &Slice<u32>,
            first: &Slice<u32>,
            r: &Slice<T>,
            scale: &Slice<T>,
            missing: &mut Slice<T>,
            starts: OffsetsRef<'_, Cuda>,
            values: &mut Slice<T>,
        );
    }
    kernels! {
        "near_null.cu", types(T: Scalar as SCALAR; a as OFFSET, strong as TARGET);
        fn strong_blocks(
            n: usize,
            a: CsrPattern<'_, Cuda>,
            node: &Slice<u32>,
            strong: CsrPattern<'_, Cuda>,
            kept: &mut Slice<u8>,
            lengths: &mut Slice<u32>,
        );
    }
}

impl NearNullSteps for Cuda {
    fn group_bases<T: Scalar>(
        &self,
        count: usize,
        starts: OffsetsRef<'_, Self>,
        members: &Slice<u32>,
        vectors: &Slice<T>,
        q: &mut Slice<T>,
        r: &mut Slice<T>,
        ranks: &mut Slice<u32>,
    ) -> Result<()> {
        let groups = starts.len() - 1;
        let shape = tuning::near_null_rows(self.0.chip, groups);
        let count = count as u32;
        kernel::group_bases(*self, shape, groups, count, starts, members, vectors, q, r, ranks)
    }

    fn basis_lengths(&self, group: &Slice<u32>, first: &Slice<u32>, lengths: &mut Slice<u32>) -> Result<()> {
        kernel::basis_lengths::<f32>(
            *self,
            tuning::near_null_rows(self.0.chip, group.len() + 1),
            group.len(),
            group,
            first,
            lengths,
        )
    }

    fn basis_entries<T: Scalar>(
        &self,
        count: usize,
        group: &Slice<u32>,
        first: &Slice<u32>,
        q: &Slice<T>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<T>,
    ) -> Result<()> {
        let (shape, n, count) =
            (tuning::near_null_rows(self.0.chip, group.len() + 1), group.len(), count as u32);
        kernel::basis_entries(*self, shape, n, count, group, first, q, offsets, indices, values)
    }

    fn basis_rows<T: Scalar>(
        &self,
        count: usize,
        first: &Slice<u32>,
        r: &Slice<T>,
        rows: &mut Slice<T>,
        group: &mut Slice<u32>,
    ) -> Result<()> {
        let groups = first.len() - 1;
        let (shape, count) = (tuning::near_null_rows(self.0.chip, groups), count as u32);
        kernel::basis_rows(*self, shape, groups, count, first, r, rows, group)
    }

    fn basis_corrections<T: Scalar>(
        &self,
        count: usize,
        group: &Slice<u32>,
        first: &Slice<u32>,
        r: &Slice<T>,
        scale: &Slice<T>,
        missing: &mut Slice<T>,
        offsets: OffsetsRef<'_, Self>,
        values: &mut Slice<T>,
    ) -> Result<()> {
        let (shape, n, count) =
            (tuning::near_null_rows(self.0.chip, group.len() + 1), group.len(), count as u32);
        kernel::basis_corrections(*self, shape, n, count, group, first, r, scale, missing, offsets, values)
    }

    fn strong_blocks(
        &self,
        a: CsrPattern<'_, Self>,
        node: &Slice<u32>,
        strong: CsrPattern<'_, Self>,
        kept: &mut Slice<u8>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        let shape = tuning::near_null_rows(self.0.chip, a.rows + 1);
        alike(*self, a.offsets, strong.offsets, |of_a, of_strong| {
            let (a, strong) = (a.with_offsets(of_a), strong.with_offsets(of_strong));
            kernel::strong_blocks::<f32>(*self, shape, a.rows, a, node, strong, kept, lengths)
        })
    }
}
