//! Diagonals on the device: finding them, and converting their values from and to CSR.

use super::launch::kernels;
use super::shape::Shape;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{Backend, CsrParts, DiaFill, DiaParts, Diagonals, OffsetsRef};
use crate::error::Result;
use crate::scalar::Element;

mod kernel {
    use super::*;
    kernels! {
        "diagonals.cu", types(; offsets as OFFSET);
        fn mark_diagonals(
            rows: usize, offsets: OffsetsRef<'_, Cuda>, n: usize, starts: &Slice<u64>, columns: &Slice<u32>,
            marks: &mut Slice<u32>,
        );
    }
    kernels! {
        "diagonals.cu", types(; "u32" as OFFSET);
        fn list_diagonals(
            marks: &Slice<u32>, words: usize, most: usize, list: &mut Slice<u64>, counts: &mut Slice<u64>,
        );
    }
    kernels! {
        "convert_dia.cu", types(V: Element as _; a as OFFSET);
        fn csr_to_dia(
            rows: usize, a: CsrParts<'_, V, Cuda>, stored: u32, mirrored: u32, distances: &Slice<i64>,
            places: &mut Slice<V>, lost: &mut Slice<u32>,
        );
        fn compare_images(
            rows: usize, a: CsrParts<'_, V, Cuda>, stored: u32, mirrored: u32, distances: &Slice<i64>,
            places: &Slice<V>, lost: &mut Slice<u32>, unlike: &mut Slice<u32>,
        );
        fn compare_rows(rows: usize, apart: usize, a: CsrParts<'_, V, Cuda>, unlike: &mut Slice<u32>);
    }
    kernels! {
        "convert_dia.cu", types(V: Element as _; offsets as OFFSET);
        fn dia_to_csr(
            rows: usize, offsets: OffsetsRef<'_, Cuda>, columns: &mut Slice<u32>, values: &mut Slice<V>,
            stored: u32, mirrored: u32, distances: &Slice<i64>, places: &Slice<V>,
        );
    }
    kernels! {
        "convert_dia.cu", types(V: Element as _);
        fn dia_lengths(
            rows: usize, stored: u32, mirrored: u32, distances: &Slice<i64>, places: &Slice<V>,
            lengths: &mut Slice<u32>,
        );
    }
}

/// The number of words that are copied to the host together with the number of diagonals.
const ALONG: usize = 1 << 10;

fn shape<V: Element>(rows: usize, diagonals: usize) -> Shape {
    tuning::convert_dia(rows, diagonals).for_values::<V>()
}

/// Finds the diagonals that have at least one entry.
pub(super) fn find(
    cuda: Cuda,
    (rows, columns): (usize, usize),
    offsets: OffsetsRef<'_, Cuda>,
    indices: &Slice<u32>,
    most: usize,
) -> Result<Diagonals> {
    let (n, words) = (indices.len(), (rows + columns).div_ceil(32));
    // The number of words, the number of diagonals, and then the words.
    let (mut marks, mut told) = (cuda.zeros(words)?, cuda.zeros(2 + most.min(words))?);
    let (counts, list) = told.split_mut(2);
    cuda.by_tiles(offsets, n, |shape, starts| {
        kernel::mark_diagonals(cuda, shape, rows, offsets, n, starts, indices, &mut marks)
    })?;
    let each = tuning::elementwise(cuda.0.chip, words);
    let room = list.len();
    kernel::list_diagonals(cuda, each, &marks, words, room, list, counts)?;
    // This copy usually contains all words already.
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

pub(super) fn seems_symmetric<V: Element>(cuda: Cuda, a: CsrParts<'_, V, Cuda>) -> Result<bool> {
    let (shape, apart) = tuning::compare_rows(a.rows);
    let mut unlike = cuda.zeros(1)?;
    kernel::compare_rows(cuda, shape.for_values::<V>(), a.rows, apart, a, &mut unlike)?;
    Ok(cuda.value(&unlike)? == 0)
}

pub(super) fn from_csr<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    mirrored: usize,
    distances: &Slice<i64>,
    values: &mut Slice<V>,
) -> Result<DiaFill> {
    let (rows, stored, images) = (a.rows, distances.len() as u32, mirrored as u32);
    let shape = |diagonals| tuning::fill_dia(a.rows, diagonals).for_values::<V>();
    let mut found = cuda.zeros(2)?;
    let (lost, unlike) = found.split_mut(1);
    let all = shape(distances.len());
    kernel::csr_to_dia(cuda, all, rows, a, stored, images, distances, values, lost)?;
    if mirrored > 0 {
        let left = shape(mirrored);
        kernel::compare_images(cuda, left, rows, a, stored, images, distances, values, lost, unlike)?;
    };
    let mut told = [0_u32; 2];
    cuda.read(&found, &mut told)?;
    Ok(DiaFill::of(told[0] != 0, told[1] != 0))
}

pub(super) fn lengths<V: Element>(
    cuda: Cuda,
    a: DiaParts<'_, V, Cuda>,
    lengths: &mut Slice<u32>,
) -> Result<()> {
    // The macro OFFSET comes first, as for the file's other kernels: with another order the file would be compiled
    // again.
    let shape = tuning::convert_dia(a.rows, a.diagonals()).variant("OFFSET", "u32").for_values::<V>();
    let (stored, mirrored) = (a.distances.len() as u32, a.mirrored as u32);
    kernel::dia_lengths(cuda, shape, a.rows, stored, mirrored, a.distances, a.values, lengths)
}

pub(super) fn to_csr<V: Element>(
    cuda: Cuda,
    a: DiaParts<'_, V, Cuda>,
    offsets: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let (stored, mirrored) = (a.distances.len() as u32, a.mirrored as u32);
    let shape = shape::<V>(a.rows, a.diagonals());
    kernel::dia_to_csr(cuda, shape, a.rows, offsets, indices, values, stored, mirrored, a.distances, a.values)
}
