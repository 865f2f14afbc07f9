//! From the compressed format back to CSR, on the device.

use super::super::launch::kernels;
use super::super::slice::Slice;
use super::super::{Cuda, policy};
use super::{Flat, with_section_offsets, with_stored};
use crate::backend::{OffsetsRef, Products, SlimBody, SlimParts, SlimValues, with_offsets};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "slim_restore.cu", types(V: Element as VALUE, S: Element as STORED, I: Offset as OFFSET, O: Offset as TARGET);
        /// What a storage does not have is null.
        fn slim_lengths(
            rows: u64, order: Option<&Slice<u32>>, kind_of: Option<&Slice<u8>>, starts: Option<&Slice<u32>>,
            distances: Option<&Slice<u32>>, offsets: Option<&Slice<I>>, bases: Option<&Slice<u32>>,
            words: Option<&Slice<u32>>, numbers: Option<&Slice<V>>, entries: Option<&Slice<I>>,
            values: Option<&Slice<S>>, lengths: &mut Slice<u32>,
        );
        fn slim_to_csr(
            rows: u64, order: Option<&Slice<u32>>, kind_of: Option<&Slice<u8>>, starts: Option<&Slice<u32>>,
            distances: Option<&Slice<u32>>, offsets: Option<&Slice<I>>, bases: Option<&Slice<u32>>,
            words: Option<&Slice<u32>>, numbers: Option<&Slice<V>>, entries: Option<&Slice<I>>,
            values: Option<&Slice<S>>, to: &Slice<O>, columns: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
        fn long_lengths(long_rows: &Slice<u32>, starts: &Slice<I>, lengths: &mut Slice<u32>);
        fn long_to_csr(
            long_rows: &Slice<u32>, starts: &Slice<I>, from_columns: &Slice<u32>, from_values: &Slice<V>,
            to: &Slice<O>, columns: &mut Slice<u32>, values: &mut Slice<V>,
        );
    }
}

pub(super) fn lengths<V: Scalar>(
    cuda: Cuda,
    a: SlimParts<'_, V, Cuda>,
    lengths: &mut Slice<u32>,
) -> Result<()> {
    let rows = a.rows as u64;
    match a.body {
        SlimBody::Lines(k, values) => {
            let shape = policy::slim_places(a.rows, true)
                .variant("COLUMNS", "SLIM_KINDS")
                .variant("VALUES", "SLIM_STORED");
            let (of, starts, distances) = (Some(k.of_row), Some(k.starts), Some(k.distances));
            kernel::slim_lengths::<V, V, u32, u32>(
                cuda,
                shape,
                rows,
                None,
                of,
                starts,
                distances,
                None,
                None,
                None,
                Some(values),
                None,
                None,
                lengths,
            )?;
        }
        SlimBody::Sections(s) => {
            let f = Flat::new(s);
            let shape = f.variant(policy::slim_places(a.rows, false));
            with_section_offsets!(cuda, s, (entries, offsets) => with_stored!(s.values, values => {
                kernel::slim_lengths::<V, _, _, u32>(
                    cuda, shape, rows, f.order, f.kind_of, f.starts, f.distances, Some(offsets), f.bases,
                    Some(s.words), f.numbers, Some(entries), values, lengths,
                )
            }))?;
        }
    }
    let Some(long) = a.long else { return Ok(()) };
    let shape = policy::slim_blocks(long.rows.len(), false)
        .variant("COLUMNS", "SLIM_WIDE")
        .variant("VALUES", "SLIM_STORED");
    with_offsets!(long.offsets, starts => {
        kernel::long_lengths::<V, V, _, u32>(cuda, shape, long.rows, starts, lengths)
    })
}

pub(super) fn fill<V: Scalar, O: Offset>(
    cuda: Cuda,
    a: SlimParts<'_, V, Cuda>,
    to: &Slice<O>,
    indices: &mut Slice<u32>,
    out: &mut Slice<V>,
) -> Result<()> {
    let rows = a.rows as u64;
    match a.body {
        SlimBody::Lines(k, values) => {
            let shape = policy::slim_places(a.rows, true)
                .variant("COLUMNS", "SLIM_KINDS")
                .variant("VALUES", "SLIM_STORED");
            let (of, starts, distances) = (Some(k.of_row), Some(k.starts), Some(k.distances));
            kernel::slim_to_csr::<V, V, u32, O>(
                cuda,
                shape,
                rows,
                None,
                of,
                starts,
                distances,
                None,
                None,
                None,
                Some(values),
                None,
                None,
                to,
                indices,
                out,
            )?;
        }
        SlimBody::Sections(s) => {
            let f = Flat::new(s);
            let shape = f.variant(policy::slim_places(a.rows, false));
            with_section_offsets!(cuda, s, (entries, offsets) => with_stored!(s.values, values => {
                kernel::slim_to_csr(
                    cuda, shape, rows, f.order, f.kind_of, f.starts, f.distances, Some(offsets), f.bases,
                    Some(s.words), f.numbers, Some(entries), values, to, indices, out,
                )
            }))?;
        }
    }
    let Some(long) = a.long else { return Ok(()) };
    let shape = policy::slim_blocks(long.rows.len(), false)
        .variant("COLUMNS", "SLIM_WIDE")
        .variant("VALUES", "SLIM_STORED");
    with_offsets!(long.offsets, starts => kernel::long_to_csr::<V, V, _, O>(
        cuda, shape, long.rows, starts, long.indices, long.values, to, indices, out,
    ))
}
