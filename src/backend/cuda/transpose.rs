//! Transposition, from CSR to CSC. If the pattern is symmetric, it is its own transpose, and only values are moved.
//! Otherwise entries are sorted by windows of columns, with the target's memory as workspace. If there are more columns
//! than entries, or too many entries, they are processed in stretches of consecutive entries: each stretch is sorted by
//! column and appended to the columns, so that sorting needs memory for only one stretch. In either case, rows ascend
//! within a column, because the sort is stable and stretches are taken in order.

use super::launch::kernels;
use super::primitives::bits_to;
use super::shape::Shape;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{Backend, CsrParts, Offsets, OffsetsRef, Primitives};
use crate::error::Result;
use crate::scalar::Element;

mod kernel {
    use super::*;
    kernels! {
        "mirror.cu", types(V: Element as _; a as OFFSET);
        fn mirror(
            a: CsrParts<'_, V, Cuda>, n: usize, starts: &Slice<u64>, to_columns: &mut Slice<u32>,
            to_values: &mut Slice<V>, missing: &mut Slice<u32>,
        );
        fn mirror_few(
            a: CsrParts<'_, V, Cuda>, n: usize, starts: &Slice<u64>, apart: u64, to_columns: &mut Slice<u32>,
            to_values: &mut Slice<V>, missing: &mut Slice<u32>, steps: &mut Slice<u32>,
        );
    }
    kernels! {
        "transpose_sort.cu", types(; starts as CURSOR);
        fn window_starts(
            starts: OffsetsRef<'_, Cuda>, columns: usize, begin: &mut Slice<u32>,
            first_columns: &mut Slice<u32>, windows: u32, counts: &mut Slice<u32>, low: &mut Slice<u32>,
            high: &mut Slice<u32>, words: usize,
        );
        fn column_keys(
            starts: OffsetsRef<'_, Cuda>, columns: usize, first_columns: &Slice<u32>, keys: &mut Slice<u32>,
        );
    }
    kernels! {
        "transpose_sort.cu", types(; "u32" as CURSOR);
        fn digit_starts(begin: &Slice<u32>, windows: u32, digits: &mut Slice<u32>);
        fn sort_low(
            keys: &Slice<u32>, columns: &Slice<u32>, n: usize, digits: &Slice<u32>, workspace: &mut Slice<u32>,
            words: &mut Slice<u32>, sources: &mut Slice<u32>, first_sources: &mut Slice<u32>,
        );
        fn sort_high(
            words: &Slice<u32>, n: usize, sources: &Slice<u32>, first_sources: &Slice<u32>, digits: &Slice<u32>,
            workspace: &mut Slice<u32>, to_numbers: &mut Slice<u32>, to_names: &mut Slice<u8>,
        );
    }
    kernels! {
        "transpose_windows.cu", types(V: Element as _; offsets as OFFSET, "u32" as CURSOR);
        fn mark_rows(offsets: OffsetsRef<'_, Cuda>, rows: usize, marks: &mut Slice<u64>, pieces: usize);
    }
    kernels! {
        "transpose_windows.cu", types(V: Element as _; offsets as OFFSET, starts as CURSOR);
        fn finish(
            offsets: OffsetsRef<'_, Cuda>, marks: &Slice<u64>, starts: OffsetsRef<'_, Cuda>, values: &Slice<V>,
            names: &Slice<u8>, n: usize, begin: &Slice<u32>, first_columns: &Slice<u32>, windows: u32,
            entries: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
    kernels! {
        "transpose.cu", types(V: Element as _; "u32" as OFFSET, cursors as CURSOR);
        fn place(
            columns: &Slice<u32>, sources: &Slice<u32>, row_of: &Slice<u32>, values: &Slice<V>, n: usize,
            cursors: OffsetsRef<'_, Cuda>, to_rows: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
    kernels! {
        "transpose.cu", types(; offsets as OFFSET, "u32" as CURSOR);
        fn rows_of(offsets: OffsetsRef<'_, Cuda>, rows: usize, first: usize, n: usize, row_of: &mut Slice<u32>);
    }
    kernels! {
        "transpose.cu", types(; "u32" as OFFSET, cursors as CURSOR);
        fn run_heads(columns: &Slice<u32>, n: usize, cursors: &mut Offsets<Cuda>);
        fn run_tails(columns: &Slice<u32>, n: usize, cursors: &mut Offsets<Cuda>);
    }
}

/// Writes the row indices and values column by column. `offsets` are the starts of the columns.
pub(super) fn csr_to_csc<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    offsets: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    match tuning::Windows::of::<V>(a.indices.len(), a.columns) {
        Some(windows) => by_windows(cuda, windows, a, offsets, indices, values),
        None => by_stretches(cuda, a, offsets, indices, values),
    }
}

/// Transposes by moving values, if the pattern is symmetric and looking up mirror images is faster than sorting.
/// Returns whether it did.
pub(super) fn mirror<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<bool> {
    let n = a.indices.len();
    let (mut found, mut told, mut symmetric) = (cuda.zeros::<u32>(2)?, [0; 2], true);
    let from = a.offsets;
    cuda.by_tiles(from, n, |_, starts| {
        let entries = n;
        let typed = |shape: Shape| shape.for_values::<V>();
        // Most unsymmetric patterns are recognised after a few entries. If long rows have to be searched, sorting is
        // faster.
        if let Some((few, apart)) = tuning::mirrored_first(n).map(|(few, apart)| (typed(few), apart)) {
            let (missing, steps) = found.split_mut(1);
            kernel::mirror_few(cuda, few, a, entries, starts, apart, indices, values, missing, steps)?;
            cuda.read(&found, &mut told)?;
            symmetric = told[0] == 0 && !tuning::searches_far(told[1]);
            if !symmetric {
                return Ok(());
            }
        }
        let all = typed(tuning::mirror(n));
        kernel::mirror(cuda, all, a, entries, starts, indices, values, &mut found)?;
        cuda.read(&found, &mut told)?;
        symmetric = told[0] == 0;
        Ok(())
    })?;
    Ok(symmetric)
}

/// The number of entries for which one warp of `transpose_windows.cu` marks the starts of rows, 32 at a time.
const MARKED: usize = 1024;
/// The number of digits in `transpose_sort.cu`.
const RADIX: usize = 256;

/// Sorts the indices of entries by windows of columns. At first the target's `indices` contain the columns' keys,
/// followed by the first pass's workspace if there is space. Its values contain the words between the passes.
fn by_windows<V: Element>(
    cuda: Cuda,
    plan: tuning::Windows,
    a: CsrParts<'_, V, Cuda>,
    to: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let n = a.indices.len();
    if n == 0 {
        return Ok(());
    }
    let (each, [low, high]) = (plan.sort_each(a.columns), plan.sort_passes());
    let tiles = low.blocks as usize;
    let (sources, looks, heads) = (RADIX * tiles, RADIX * tiles + 1, plan.count + 1);
    let inside = a.columns + looks <= n;
    let sorting = sources + tiles + looks * if inside { 1 } else { 2 };
    // The array of names has an even number of 32-bit words, because the marks after it have 64 bits.
    let (named, pieces) = (n.div_ceil(8) * 2, (n.div_ceil(MARKED) + 1) * 32);
    let room = 2 * RADIX + 2 * heads + named + sorting.max(2 * pieces);
    let mut room = cuda.uninitialised::<u32>(room)?;
    let (digits, rest) = room.split_mut(2 * RADIX);
    let (begin, rest) = rest.split_mut(heads);
    let (first_columns, rest) = rest.split_mut(heads);
    let (named, rest) = rest.split_mut(named);
    let (names, marks) = (Slice::at_mut(named.address(), n), Slice::at_mut(rest.address(), pieces));
    let (sources, rest) = rest.split_mut(sources);
    let (first_sources, rest) = rest.split_mut(tiles);
    let (high_looks, rest) = rest.split_mut(looks);
    let low_looks = if inside { indices.address() + 4 * a.columns as u64 } else { rest.address() };
    let (low_looks, words) = (Slice::at_mut(low_looks, looks), Slice::at_mut(values.address(), n));

    let (count, columns, windows) = (n, a.columns, plan.count as u32);
    cuda.fill(0, digits)?;
    kernel::window_starts(
        cuda,
        plan.starts(),
        to,
        columns,
        begin,
        first_columns,
        windows,
        digits,
        low_looks,
        high_looks,
        looks,
    )?;
    kernel::column_keys(cuda, each, to, columns, first_columns, indices)?;
    kernel::digit_starts(cuda, each.blocks(1), begin, windows, digits)?;
    kernel::sort_low(cuda, low, indices, a.indices, count, digits, low_looks, words, sources, first_sources)?;
    kernel::sort_high(cuda, high, words, count, sources, first_sources, digits, high_looks, indices, names)?;
    // The marks reuse the workspace of the sort.
    kernel::mark_rows::<V>(cuda, plan.each(pieces), a.offsets, a.rows, marks, pieces)?;
    kernel::finish(
        cuda,
        plan.finish,
        a.offsets,
        marks,
        to,
        a.values,
        names,
        count,
        begin,
        first_columns,
        windows,
        indices,
        values,
    )
}

fn by_stretches<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    to: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let (n, bits) = (a.indices.len(), bits_to(a.columns.saturating_sub(1)));
    let mut cursors = to.copied(&cuda)?;
    let stretch = tuning::transpose_stretch::<V>(n, to.bytes());
    for first in (0..n).step_by(stretch) {
        let range = first..(first + stretch).min(n);
        let count = range.len();
        let mut columns = cuda.uninitialised(range.len())?;
        cuda.copy(Cuda::part(a.indices, range.clone()), &mut columns)?;
        let mut sources = cuda.uninitialised::<u32>(range.len())?;
        cuda.sequence(&mut sources)?;
        cuda.sort_pairs(&mut columns, &mut sources, 0..bits)?;
        let mut row_of = cuda.uninitialised(range.len())?;
        let tiles = tuning::by_tiles(range.len()).0.variant("VALUE_BYTES", "4");
        kernel::rows_of(cuda, tiles, a.offsets, a.rows, first, count, &mut row_of)?;
        let each = tuning::elementwise(cuda.0.chip, range.len());
        let placed: Shape = each.for_values::<V>();
        let each = each.variant("VALUE_BYTES", "4");
        kernel::run_heads(cuda, each, &columns, count, &mut cursors)?;
        let from = Cuda::part(a.values, range);
        kernel::place::<V>(
            cuda,
            placed,
            &columns,
            &sources,
            &row_of,
            from,
            count,
            cursors.as_ref(),
            indices,
            values,
        )?;
        kernel::run_tails(cuda, each, &columns, count, &mut cursors)?;
    }
    Ok(())
}
