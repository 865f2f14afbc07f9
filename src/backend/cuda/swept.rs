//! Bands of rows that are swept in the order of columns, to and from CSR on the device: two launches, and one wait in between for the
//! number of steps, which the host has to know to ask for their memory.

use super::launch::kernels;
use super::shape::bytes_of;
use super::slice::Slice;
use super::{Cuda, policy};
use crate::backend::{Backend, CsrParts, OffsetsRef, SweptArrays, SweptParts, swept_bin_shift, with_offsets};
use crate::error::Result;
use crate::scalar::{Element, Offset};

mod kernel {
    use super::*;
    kernels! {
        "swept_fill.cu", types(V: Element as _, I: Offset as OFFSET);
        fn sweep(
            rows: u64, all_columns: u64, height: u32, shift: u32, offsets: &Slice<I>, columns: &Slice<u32>,
            from: &Slice<V>, lengths: &mut Slice<u32>, places: &mut Slice<u32>, values: &mut Slice<V>,
            noted_starts: &mut Slice<u32>, noted_bases: &mut Slice<u32>, each: u32, counters: u32, by_tiles: u32, in_rounds: u32,
            firsts: &mut Slice<u32>, told: &mut Slice<u32>,
        );
    }
    kernels! {
        "swept_order.cu", types(V: Element as _, I: Offset as OFFSET);
        fn put_in_order(
            rows: u64, height: u32, split: u32, offsets: &Slice<I>, firsts: &Slice<u32>,
            noted_starts: &Slice<u32>, noted_bases: &Slice<u32>, each: u32, starts: &mut Slice<u64>,
            bases: &mut Slice<u32>, places: &mut Slice<u32>, values: &mut Slice<V>,
        );
    }
    kernels! {
        "swept_restore.cu", types(V: Element as _, I: Offset as OFFSET);
        fn swept_to_csr(
            rows: u64, height: u32, firsts: &Slice<u32>, starts: &Slice<u64>, bases: &Slice<u32>,
            places: &Slice<u32>, values: &Slice<V>,
            offsets: &Slice<I>, columns: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
}

pub(super) fn from_csr<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    height: usize,
    lengths: &mut Slice<u32>,
) -> Result<std::result::Result<SweptArrays<V, Cuda>, usize>> {
    with_offsets!(a.offsets, offsets => sweep(cuda, a, offsets, height, lengths))
}

fn sweep<V: Element, I: Offset>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    offsets: &Slice<I>,
    height: usize,
    lengths: &mut Slice<u32>,
) -> Result<std::result::Result<SweptArrays<V, Cuda>, usize>> {
    let (n, bands) = (a.values.len(), a.rows.div_ceil(height));
    let (rows, columns) = (a.rows as u64, a.columns as u64);
    if n == 0 {
        cuda.fill(0, lengths)?;
        let (firsts, starts) = (cuda.zeros(bands + 1)?, cuda.zeros(1)?);
        let (bases, places, values) = (cuda.buffer(0)?, cuda.buffer(0)?, cuda.buffer(0)?);
        return Ok(Ok(SweptArrays { firsts, starts, bases, places, values }));
    }
    let (mut places, mut values) = (cuda.uninitialised(n)?, cuda.uninitialised(n)?);
    let mut firsts = cuda.uninitialised(bands + 1)?;
    let (mut each, mut asked) = (policy::steps_noted(a.columns), None);
    loop {
        let noted = policy::room_for_steps(n, bands, each as usize);
        let (mut noted_starts, mut noted_bases) = (cuda.uninitialised(noted)?, cuda.uninitialised(noted)?);
        let mut told = cuda.zeros(5)?;
        let policy::Sweep { shape, counters, by_tiles, in_rounds } = policy::sweep(cuda.0.chip, bands, asked);
        let (height, shift) = (height as u32, swept_bin_shift(a.columns));
        kernel::sweep(
            cuda,
            shape.variant("VALUE_BYTES", bytes_of::<V>()),
            rows,
            columns,
            height,
            shift,
            offsets,
            a.indices,
            a.values,
            lengths,
            &mut places,
            &mut values,
            &mut noted_starts,
            &mut noted_bases,
            each,
            counters,
            u32::from(by_tiles),
            u32::from(in_rounds),
            &mut firsts,
            &mut told,
        )?;
        let mut words = [0; 5];
        cuda.read(&told, &mut words)?;
        let [_, longest, steps, most, counters] = words;
        if longest > 0 {
            return Ok(Err(longest as usize));
        }
        if counters > 0 || most > 0 {
            // A band has more steps than there was room to count, or to note.
            asked = if counters > 0 { Some(counters) } else { asked };
            each = each.max(most);
            continue;
        }
        let (mut starts, mut bases) =
            (cuda.uninitialised(steps as usize + 1)?, cuda.uninitialised(steps as usize)?);
        let (shape, split) = policy::put_in_order::<V>(cuda.0.chip, bands, steps as usize);
        kernel::put_in_order(
            cuda,
            shape.variant("VALUE_BYTES", bytes_of::<V>()),
            rows,
            height,
            split,
            offsets,
            &firsts,
            &noted_starts,
            &noted_bases,
            each,
            &mut starts,
            &mut bases,
            &mut places,
            &mut values,
        )?;
        return Ok(Ok(SweptArrays { firsts, starts, bases, places, values }));
    }
}

pub(super) fn to_csr<V: Element>(
    cuda: Cuda,
    a: SweptParts<'_, V, Cuda>,
    offsets: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let bands = a.firsts.len() - 1;
    let shape = policy::swept_to_csr(bands, a.height).variant("VALUE_BYTES", bytes_of::<V>());
    let (rows, height) = (a.rows as u64, a.height as u32);
    with_offsets!(offsets, offsets => kernel::swept_to_csr(
        cuda, shape, rows, height, a.firsts, a.starts, a.bases, a.places, a.values, offsets, indices, values,
    ))
}
