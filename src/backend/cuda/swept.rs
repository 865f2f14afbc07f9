//! Bands of rows that are swept in the order of columns, to and from CSR on the device: two or three launches, and one
//! wait behind the first for the number of steps, which the host has to know to ask for their memory, and whether any
//! is to be put in order.

use super::launch::kernels;
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, policy};
use crate::backend::{
    Backend, CsrParts, OffsetsRef, SweptArrays, SweptParts, swept_bin_shift, swept_refusal, with_offsets,
};
use crate::error::{Error, Result};
use crate::scalar::{Element, Offset};

mod kernel {
    use super::*;
    kernels! {
        "swept_fill.cu", types(V: Element as _, I: Offset as OFFSET);
        fn sweep(
            rows: u64, all_columns: u64, height: u32, shift: u32, offsets: &Slice<I>, columns: &Slice<u32>,
            from: &Slice<V>, lengths: &mut Slice<u32>, places: &mut Slice<u32>, values: &mut Slice<V>,
            notes: &mut Slice<u64>, noted_starts: &mut Slice<u32>, noted_bases: &mut Slice<u32>, room: u64, an_entry: u32,
            counters: u32, firsts: &mut Slice<u32>, told: &mut Slice<u32>,
        );
    }
    kernels! {
        "swept_order.cu", types(V: Element as _, I: Offset as OFFSET);
        fn put_few_in_order(
            rows: u64, height: u32, bands: u32, offsets: &Slice<I>, firsts: &Slice<u32>, notes: &Slice<u64>,
            noted_starts: &Slice<u32>, noted_bases: &Slice<u32>, starts: &mut Slice<u64>,
            bases: &mut Slice<u32>, places: &mut Slice<u32>, values: &mut Slice<V>, large: &mut Slice<u32>,
            told: &mut Slice<u32>,
        );
    }
    kernels! {
        "swept_order.cu", types(V: Element as _, I: Offset as OFFSET);
        fn put_in_order(
            steps: u32, height: u32, starts: &Slice<u64>, large: &Slice<u32>, told: &Slice<u32>,
            places: &mut Slice<u32>, values: &mut Slice<V>,
        );
    }
    kernels! {
        "swept_restore.cu", types(V: Element as _, I: Offset as OFFSET);
        fn swept_to_csr(
            rows: u64, height: u32, split: u32, most: u32, room: u32, firsts: &Slice<u32>, starts: &Slice<u64>,
            bases: &Slice<u32>, places: &Slice<u32>, values: &Slice<V>,
            offsets: &Slice<I>, columns: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
}

pub(super) fn from_csr<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    height: usize,
    lengths: &mut Slice<u32>,
) -> Result<SweptArrays<V, Cuda>> {
    with_offsets!(a.offsets, offsets => sweep(cuda, a, offsets, height, lengths))
}

/// What the first launch found: entries by bands, and notes of where each band's steps start and of their bases, from
/// which they are put together.
struct Noted<V: Element> {
    firsts: DeviceVec<u32>,
    notes: DeviceVec<u64>,
    noted_starts: DeviceVec<u32>,
    noted_bases: DeviceVec<u32>,
    places: DeviceVec<u32>,
    values: DeviceVec<V>,
    told: DeviceVec<u32>,
    /// The number of steps.
    steps: u32,
    /// Whether any is left to be put in order.
    unordered: bool,
}

fn sweep<V: Element, I: Offset>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    offsets: &Slice<I>,
    height: usize,
    lengths: &mut Slice<u32>,
) -> Result<SweptArrays<V, Cuda>> {
    if a.values.is_empty() {
        cuda.fill(0, lengths)?;
        let (firsts, starts) = (cuda.zeros(a.rows.div_ceil(height) + 1)?, cuda.zeros(1)?);
        let (bases, places, values) = (cuda.buffer(0)?, cuda.buffer(0)?, cuda.buffer(0)?);
        return Ok(SweptArrays { firsts, starts, bases, places, values });
    }
    let noted = note(cuda, a, offsets, height, lengths)?;
    put_in_order(cuda, a, offsets, height, noted)
}

/// The first launch, again where it had no room to note all steps.
fn note<V: Element, I: Offset>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    offsets: &Slice<I>,
    height: usize,
    lengths: &mut Slice<u32>,
) -> Result<Noted<V>> {
    let (n, bands) = (a.values.len(), a.rows.div_ceil(height));
    let (mut places, mut values) = (cuda.uninitialised(n)?, cuda.uninitialised(n)?);
    let (mut firsts, mut notes) = (cuda.uninitialised(bands + 1)?, cuda.uninitialised(bands)?);
    let (mut room, mut an_entry) = (policy::room_for_notes(n, bands, height, a.columns), 0);
    loop {
        let (mut noted_starts, mut noted_bases) = (cuda.uninitialised(room)?, cuda.uninitialised(room)?);
        let mut told = cuda.zeros(10)?;
        let (shape, counters) = policy::sweep(cuda.0.chip, bands);
        kernel::sweep(
            cuda,
            shape.for_values::<V>(),
            a.rows as u64,
            a.columns as u64,
            height as u32,
            swept_bin_shift(a.columns),
            offsets,
            a.indices,
            a.values,
            lengths,
            &mut places,
            &mut values,
            &mut notes,
            &mut noted_starts,
            &mut noted_bases,
            room as u64,
            an_entry,
            counters,
            &mut firsts,
            &mut told,
        )?;
        let mut words = [0; 10];
        cuda.read(&told, &mut words)?;
        let [low, high, _, longest, steps, more, unordered, ..] = words;
        if let Some(reason) = swept_refusal(longest as usize) {
            return Err(Error::Refused { format: "swept", reason });
        }
        let asked = (u64::from(high) << 32 | u64::from(low)) as usize;
        if asked <= room && more == 0 {
            let unordered = unordered > 0;
            return Ok(Noted {
                firsts,
                notes,
                noted_starts,
                noted_bases,
                places,
                values,
                told,
                steps,
                unordered,
            });
        }
        // There was no room to note all steps, or a band has more than it asked for.
        (room, an_entry) = (asked.max(if more > 0 { n } else { 0 }), more.max(an_entry));
    }
}

/// The other launches: steps with their starts and bases, and where a warp could not put one in order, a block does.
fn put_in_order<V: Element, I: Offset>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    offsets: &Slice<I>,
    height: usize,
    noted: Noted<V>,
) -> Result<SweptArrays<V, Cuda>> {
    let Noted {
        firsts,
        notes,
        noted_starts,
        noted_bases,
        mut places,
        mut values,
        mut told,
        steps,
        unordered,
    } = noted;
    let (count, bands, height) = (steps as usize, a.rows.div_ceil(height), height as u32);
    let (mut starts, mut bases) = (cuda.uninitialised(count + 1)?, cuda.uninitialised(count)?);
    let large = height > policy::SWEPT_FEW && unordered;
    let mut listed = cuda.uninitialised(if large { count } else { 0 })?;
    kernel::put_few_in_order(
        cuda,
        policy::put_few_in_order(count).for_values::<V>(),
        a.rows as u64,
        height,
        bands as u32,
        offsets,
        &firsts,
        &notes,
        &noted_starts,
        &noted_bases,
        &mut starts,
        &mut bases,
        &mut places,
        &mut values,
        &mut listed,
        &mut told,
    )?;
    if large {
        let shape = policy::put_in_order::<V>(cuda.0.chip, count).for_values::<V>();
        let (places, values) = (&mut places, &mut values);
        kernel::put_in_order::<V, I>(cuda, shape, steps, height, &starts, &listed, &told, places, values)?;
    }
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
    let (shape, split, most, room) = policy::swept_to_csr::<V>(cuda.0.chip, a.values.len(), bands, a.height);
    let (rows, height) = (a.rows as u64, a.height as u32);
    with_offsets!(offsets, offsets => kernel::swept_to_csr(
        cuda, shape.for_values::<V>(), rows, height, split, most, room, a.firsts, a.starts, a.bases, a.places,
        a.values, offsets, indices, values,
    ))
}
