//! Bands of rows that are swept in the order of columns, to and from CSR on the device.

use super::launch::kernels;
use super::primitives::bits_to;
use super::shape::bytes_of;
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, policy};
use crate::backend::{Backend, CsrParts, OffsetsRef, Primitives, SweptArrays, SweptParts, with_offsets};
use crate::error::Result;
use crate::scalar::{Element, Key, Offset};

mod kernel {
    use super::*;
    kernels! {
        "convert_swept.cu", types(V: Element as _, I: Offset as OFFSET, K: Key as KEY);
        fn place_swept(
            n: u64, bits: u32, keys: &Slice<K>, numbers: &Slice<u32>, rows_in_band: &Slice<u16>, steps: &Slice<u64>,
            firsts: &Slice<u32>, starts: &Slice<u64>, bases: &Slice<u32>, from: &Slice<V>,
            places: &mut Slice<u32>, values: &mut Slice<V>,
        );
        fn swept_to_csr(
            rows: u64, height: u32, firsts: &Slice<u32>, starts: &Slice<u64>, bases: &Slice<u32>,
            places: &Slice<u32>, values: &Slice<V>,
            offsets: &Slice<I>, columns: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
    kernels! {
        "convert_swept.cu", types(I: Offset as OFFSET, K: Key as KEY);
        fn swept_keys(
            offsets: &Slice<I>, n: u64, starts: &Slice<u64>, columns: &Slice<u32>, height: u32, bits: u32,
            keys: &mut Slice<K>, rows_in_band: &mut Slice<u16>,
        );
        fn hand_out(
            rows: u64, height: u32, bits: u32, offsets: &Slice<I>, keys: &Slice<K>, numbers: &Slice<u32>,
            rows_in_band: &Slice<u16>, counts: &mut Slice<u32>, bases: &mut Slice<u32>, steps: &mut Slice<u64>,
            band_steps: &mut Slice<u32>,
        );
        fn close_up(
            rows: u64, height: u32, offsets: &Slice<I>, firsts: &Slice<u32>, counts: &Slice<u32>,
            bases: &Slice<u32>, to_counts: &mut Slice<u32>, to_bases: &mut Slice<u32>,
        );
    }
}

pub(super) fn from_csr<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    height: usize,
) -> Result<SweptArrays<V, Cuda>> {
    let bits = bits_to(a.columns.saturating_sub(1));
    // Keys of 32 bits take half the time and memory to sort.
    let narrow = bits + bits_to(a.rows.div_ceil(height)) < u32::BITS;
    with_offsets!(a.offsets, offsets => if narrow {
        sweep::<V, _, u32>(cuda, a, offsets, height, bits)
    } else {
        sweep::<V, _, u64>(cuda, a, offsets, height, bits)
    })
}

fn sweep<V: Element, I: Offset, K: Key>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    offsets: &Slice<I>,
    height: usize,
    bits: u32,
) -> Result<SweptArrays<V, Cuda>> {
    let (rows, n, bands) = (a.rows as u64, a.values.len(), a.rows.div_ceil(height));
    let (each, size) =
        (policy::elementwise(cuda.0.chip, n).variant("VALUE_BYTES", bytes_of::<V>()), n as u64);
    let (mut keys, mut rows_in_band) = (cuda.uninitialised::<K>(n)?, cuda.uninitialised::<u16>(n)?);
    cuda.by_tiles(offsets, n, |shape, starts| {
        let shape = shape.variant("VALUE_BYTES", bytes_of::<V>());
        let height = height as u32;
        kernel::swept_keys(
            cuda,
            shape,
            offsets,
            size,
            starts,
            a.indices,
            height,
            bits,
            &mut keys,
            &mut rows_in_band,
        )
    })?;
    let mut numbers = cuda.uninitialised(n)?;
    cuda.sequence(&mut numbers)?;
    // By band, then column; equal ones keep the order of rows.
    cuda.sort_pairs(&mut keys, &mut numbers, 0..bits + bits_to(bands.saturating_sub(1)))?;
    let mut steps = cuda.uninitialised(n)?;
    let mut firsts: DeviceVec<u32> = cuda.uninitialised(bands + 1)?;
    let (counts, bases) = {
        let (mut counts, mut bases) = (cuda.uninitialised(n)?, cuda.uninitialised(n)?);
        let mut band_steps = cuda.uninitialised(bands)?;
        let shape = policy::hand_out(bands, height).variant("VALUE_BYTES", bytes_of::<V>());
        kernel::hand_out(
            cuda,
            shape,
            rows,
            height as u32,
            bits,
            offsets,
            &keys,
            &numbers,
            &rows_in_band,
            &mut counts,
            &mut bases,
            &mut steps,
            &mut band_steps,
        )?;
        cuda.exclusive_scan(&band_steps, &mut firsts)?;
        let total = cuda.download(firsts.part(bands..bands + 1))?[0] as usize;
        let (mut to_counts, mut to_bases) = (cuda.uninitialised(total)?, cuda.uninitialised(total)?);
        let shape = each.blocks(bands);
        kernel::close_up::<I, K>(
            cuda,
            shape,
            rows,
            height as u32,
            offsets,
            &firsts,
            &counts,
            &bases,
            &mut to_counts,
            &mut to_bases,
        )?;
        (to_counts, to_bases)
    };
    let mut starts = cuda.uninitialised(counts.len() + 1)?;
    cuda.exclusive_scan(&counts, &mut starts)?;
    let (mut places, mut values) = (cuda.uninitialised(n)?, cuda.uninitialised(n)?);
    kernel::place_swept::<V, I, K>(
        cuda,
        each,
        size,
        bits,
        &keys,
        &numbers,
        &rows_in_band,
        &steps,
        &firsts,
        &starts,
        &bases,
        a.values,
        &mut places,
        &mut values,
    )?;
    Ok(SweptArrays { firsts, starts, bases, places, values })
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
    with_offsets!(offsets, offsets => kernel::swept_to_csr::<V, _, u32>(
        cuda, shape, rows, height, a.firsts, a.starts, a.bases, a.places, a.values, offsets, indices, values,
    ))
}
