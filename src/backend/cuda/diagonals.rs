//! Diagonals on the device: which there are, and their values to and from CSR.

use super::launch::kernels;
use super::shape::Shape;
use super::slice::Slice;
use super::{Cuda, policy};
use crate::backend::{Backend, CsrParts, DiaParts, Diagonals, OffsetsRef, with_offsets};
use crate::error::Result;
use crate::scalar::{Element, Offset};

mod kernel {
    use super::*;
    kernels! {
        "diagonals.cu", types(I: Offset as OFFSET);
        fn mark_diagonals(
            rows: u64, offsets: &Slice<I>, n: u64, starts: &Slice<u64>, columns: &Slice<u32>, marks: &mut Slice<u32>,
        );
        fn list_diagonals(
            marks: &Slice<u32>, words: u64, most: u64, list: &mut Slice<u64>, counts: &mut Slice<u64>,
        );
    }
    kernels! {
        "convert_dia.cu", types(V: Element as _, I: Offset as OFFSET);
        fn csr_to_dia(
            rows: u64, offsets: &Slice<I>, columns: &Slice<u32>, values: &Slice<V>,
            diagonals: u32, distances: &Slice<i64>, places: &mut Slice<V>, lost: &mut Slice<u32>,
        );
        fn dia_to_csr(
            rows: u64, offsets: &Slice<I>, columns: &mut Slice<u32>, values: &mut Slice<V>,
            diagonals: u32, distances: &Slice<i64>, places: &Slice<V>,
        );
    }
    kernels! {
        "convert_dia.cu", types(V: Element as _);
        fn dia_lengths(rows: u64, diagonals: u32, places: &Slice<V>, lengths: &mut Slice<u32>);
    }
}

/// Words of diagonals that come to the host with their number.
const ALONG: usize = 1 << 10;

fn shape<V: Element>(rows: usize, diagonals: usize) -> Shape {
    policy::convert_dia(rows, diagonals).for_values::<V>()
}

/// Which diagonals have an entry.
pub(super) fn find(
    cuda: Cuda,
    (rows, columns): (usize, usize),
    offsets: OffsetsRef<'_, Cuda>,
    indices: &Slice<u32>,
    most: usize,
) -> Result<Diagonals> {
    let (n, words) = (indices.len(), (rows + columns).div_ceil(32));
    // How many words and diagonals there are, and the words.
    let (mut marks, mut told) = (cuda.zeros(words)?, cuda.zeros(2 + most.min(words))?);
    let (counts, list) = told.split_mut(2);
    with_offsets!(offsets, offsets => cuda.by_tiles(offsets, n, |shape, starts| {
        kernel::mark_diagonals(cuda, shape, rows as u64, offsets, n as u64, starts, indices, &mut marks)
    }))?;
    let each = policy::elementwise(cuda.0.chip, words);
    let room = list.len() as u64;
    kernel::list_diagonals::<u32>(cuda, each, &marks, words as u64, room, list, counts)?;
    // Mostly all words come along with their number.
    let mut list = cuda.download(told.part(0..told.len().min(2 + ALONG)))?;
    let (used, count) = (list[0] as usize, list[1] as usize);
    if count > most {
        return Ok(Diagonals { count, ..Diagonals::default() });
    }
    if used > ALONG {
        list = cuda.download(told.part(0..2 + used))?;
    }
    let list = &mut list[2..2 + used];
    list.sort_unstable();
    Ok(Diagonals::from_words(count, list, 1 - rows as i64))
}

/// Whether every value could be told from no entry.
pub(super) fn from_csr<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    distances: &Slice<i64>,
    values: &mut Slice<V>,
) -> Result<bool> {
    let count = distances.len() as u32;
    let rows = a.rows as u64;
    let shape = policy::fill_dia(a.rows, distances.len()).for_values::<V>();
    let mut lost = cuda.zeros(1)?;
    with_offsets!(a.offsets, offsets => kernel::csr_to_dia(
        cuda, shape, rows, offsets, a.indices, a.values, count, distances, values, &mut lost,
    ))?;
    Ok(cuda.value(&lost)? == 0)
}

pub(super) fn lengths<V: Element>(
    cuda: Cuda,
    a: DiaParts<'_, V, Cuda>,
    lengths: &mut Slice<u32>,
) -> Result<()> {
    let count = a.distances.len();
    let shape = shape::<V>(a.rows, count).variant("OFFSET", "u32");
    kernel::dia_lengths(cuda, shape, a.rows as u64, count as u32, a.values, lengths)
}

pub(super) fn to_csr<V: Element>(
    cuda: Cuda,
    a: DiaParts<'_, V, Cuda>,
    offsets: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let count = a.distances.len() as u32;
    let (shape, rows) = (shape::<V>(a.rows, a.distances.len()), a.rows as u64);
    with_offsets!(offsets, offsets => kernel::dia_to_csr(
        cuda, shape, rows, offsets, indices, values, count, a.distances, a.values,
    ))
}
