//! Decompresses a matrix to CSR on the device.

use super::super::launch::kernels;
use super::super::shape::Shape;
use super::super::slice::Slice;
use super::super::{Cuda, tuning};
use super::{Flat, with_stored};
use crate::backend::{CompressedBody, CompressedParts, CompressedValues, LongParts, OffsetsRef};
use crate::error::Result;
use crate::scalar::{Element, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "compressed_restore.cu", types(V: Scalar as VALUE, S: Element as STORED; a as OFFSET, "u32" as TARGET);
        fn compressed_lengths(
            rows: usize, a: Flat<'_, V>, values: Option<&Slice<S>>, lengths: &mut Slice<u32>,
        );
    }
    kernels! {
        "compressed_restore.cu", types(V: Scalar as VALUE, S: Element as STORED; a as OFFSET, to as TARGET);
        fn compressed_to_csr(
            rows: usize, a: Flat<'_, V>, values: Option<&Slice<S>>, to: OffsetsRef<'_, Cuda>, splits: u32,
            columns: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
    kernels! {
        "compressed_restore.cu", types(V: Element as VALUE, S: Element as STORED; "u32" as OFFSET, to as TARGET);
        fn lines_to_csr(
            kind_of: &Slice<u8>, starts: &Slice<u32>, distances: &Slice<u32>, numbers: &Slice<V>,
            to: OffsetsRef<'_, Cuda>, n: usize, starts_of_tiles: &Slice<u64>, columns: &mut Slice<u32>,
            values: &mut Slice<V>,
        );
    }
    kernels! {
        "compressed_restore.cu", types(V: Element as VALUE, S: Element as STORED; starts as OFFSET, "u32" as TARGET);
        fn long_lengths(n: usize, long_rows: &Slice<u32>, starts: OffsetsRef<'_, Cuda>, lengths: &mut Slice<u32>);
    }
    kernels! {
        "compressed_restore.cu", types(V: Element as VALUE, S: Element as STORED; from as OFFSET, to as TARGET);
        fn long_to_csr(
            long_rows: &Slice<u32>, from: OffsetsRef<'_, Cuda>, n: usize, starts: &Slice<u64>,
            from_columns: &Slice<u32>, from_values: &Slice<V>, to: OffsetsRef<'_, Cuda>,
            columns: &mut Slice<u32>, values: &mut Slice<V>,
        );
    }
}

/// Returns the shape for kernels of long rows.
fn long(shape: Shape) -> Shape {
    shape.variant("COLUMNS", "COMPRESSED_WIDE").variant("VALUES", "COMPRESSED_STORED")
}

pub(super) fn lengths<V: Scalar>(
    cuda: Cuda,
    a: CompressedParts<'_, V, Cuda>,
    lengths: &mut Slice<u32>,
) -> Result<()> {
    match a.body {
        CompressedBody::Lines(kinds, numbers, _) => {
            let f = Flat::lines(kinds, numbers);
            let shape = f.variant(tuning::compressed_places(a.rows, true));
            kernel::compressed_lengths::<V, V>(cuda, shape, a.rows, f, None, lengths)?;
        }
        CompressedBody::Sections(s) => {
            let f = Flat::new(cuda, s)?;
            let shape = f.variant(tuning::compressed_places(a.rows, false));
            with_stored!(s.values, values => {
                kernel::compressed_lengths(cuda, shape, a.rows, f, values, lengths)
            })?;
        }
        CompressedBody::Balanced(balanced, _) => cuda.balanced_lengths::<V>(balanced, lengths)?,
    }
    let Some(LongParts { rows, offsets, .. }) = a.long else { return Ok(()) };
    let shape = long(tuning::compressed_places(rows.len(), false));
    kernel::long_lengths::<V, V>(cuda, shape, rows.len(), rows, offsets, lengths)
}

pub(super) fn fill<V: Scalar>(
    cuda: Cuda,
    a: CompressedParts<'_, V, Cuda>,
    to: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    out: &mut Slice<V>,
) -> Result<()> {
    match a.body {
        CompressedBody::Lines(kinds, numbers, _) => {
            let n = indices.len();
            cuda.by_tiles(to, n, |shape, starts| {
                let shape = tuning::compressed_tiles(shape, true);
                let shape =
                    shape.variant("COLUMNS", "COMPRESSED_KINDS").variant("VALUES", "COMPRESSED_STORED");
                let (of, first, distances) = (kinds.of_row, kinds.starts, kinds.distances);
                kernel::lines_to_csr::<V, V>(
                    cuda, shape, of, first, distances, numbers, to, n, starts, indices, out,
                )
            })?;
        }
        CompressedBody::Balanced(balanced, values) => cuda.balanced_to_csr(balanced, values, indices, out)?,
        CompressedBody::Sections(s) => {
            let f = Flat::new(cuda, s)?;
            let (shape, splits) = tuning::compressed_restores(a.rows, indices.len());
            let shape = f.variant(shape);
            with_stored!(s.values, values => {
                kernel::compressed_to_csr(cuda, shape, a.rows, f, values, to, splits, indices, out)
            })?;
        }
    }
    let Some(LongParts { rows, offsets, indices: from_columns, values: from_values }) = a.long else {
        return Ok(());
    };
    let n = from_columns.len();
    cuda.by_tiles(offsets, n, |shape, starts| {
        kernel::long_to_csr::<V, V>(
            cuda,
            long(tuning::compressed_tiles(shape, false)),
            rows,
            offsets,
            n,
            starts,
            from_columns,
            from_values,
            to,
            indices,
            out,
        )
    })
}
