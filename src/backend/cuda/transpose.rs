//! CSR to CSC. A symmetric pattern is its own transpose, and values change places. Else entries are sorted by windows of columns, and the
//! target is the memory for that. Where there are more columns than entries, or entries too many, stretches of entries are sorted by column
//! and put behind each other, so that sorting needs memory for one stretch only. The sort is stable and stretches come in order: rows of a
//! column ascend either way.

use super::launch::kernels;
use super::primitives::bits_to;
use super::shape::{Shape, bytes_of};
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, policy};
use crate::backend::{Backend, CsrParts, OffsetsRef, Primitives, with_offsets};
use crate::error::Result;
use crate::scalar::{Element, Offset};

mod kernel {
    use super::*;
    kernels! {
        "mirror.cu", types(V: Element as _, I: Offset as OFFSET);
        fn mirror(
            offsets: &Slice<I>, columns: &Slice<u32>, values: &Slice<V>, n: u64, starts: &Slice<u64>,
            to_columns: &mut Slice<u32>, to_values: &mut Slice<V>, missing: &mut Slice<u32>,
            steps: Option<&mut Slice<u32>>,
        );
    }
    kernels! {
        "transpose_sort.cu", types(C: Offset as CURSOR);
        fn column_keys(starts: &Slice<C>, columns: u64, keys: &mut Slice<u32>);
        fn window_starts(
            starts: &Slice<C>, columns: u64, begin: &mut Slice<u32>, windows: u32, counts: &mut Slice<u32>,
            workspace: &mut Slice<u32>, words: u64,
        );
        fn digit_starts(begin: &Slice<u32>, windows: u32, digits: &mut Slice<u32>);
        fn sort_low(
            keys: &Slice<u32>, columns: &Slice<u32>, n: u64, digits: &Slice<u32>, workspace: &mut Slice<u32>,
            numbers: &mut Slice<u32>, upper: &mut Slice<u8>, places: Option<&mut Slice<u16>>,
        );
        fn sort_high(
            numbers: &Slice<u32>, upper: &Slice<u8>, places: Option<&Slice<u16>>, n: u64, digits: &Slice<u32>,
            workspace: &mut Slice<u32>, to_numbers: &mut Slice<u32>, to_places: Option<&mut Slice<u16>>,
        );
    }
    kernels! {
        "transpose_windows.cu", types(V: Element as _, I: Offset as OFFSET, C: Offset as CURSOR);
        fn mark_rows(offsets: &Slice<I>, rows: u64, marks: &mut Slice<u64>, pieces: u64);
        fn finish(
            offsets: &Slice<I>, marks: &Slice<u64>, starts: &Slice<C>, columns: &Slice<u32>, values: &Slice<V>,
            places: Option<&Slice<u16>>, n: u64, begin: &Slice<u32>, windows: u32, entries: &mut Slice<u32>,
            to_values: &mut Slice<V>,
        );
    }
    kernels! {
        "transpose.cu", types(V: Element as _, I: Offset as OFFSET, C: Offset as CURSOR);
        fn place(
            columns: &Slice<u32>, sources: &Slice<u32>, row_of: &Slice<u32>, values: &Slice<V>, n: u64,
            cursors: &Slice<C>, to_rows: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
    kernels! {
        "transpose.cu", types(I: Offset as OFFSET, C: Offset as CURSOR);
        fn rows_of(offsets: &Slice<I>, rows: u64, first: u64, n: u64, row_of: &mut Slice<u32>);
        fn run_heads(columns: &Slice<u32>, n: u64, cursors: &mut Slice<C>);
        fn run_tails(columns: &Slice<u32>, n: u64, cursors: &mut Slice<C>);
    }
}

/// Rows and values column by column; `offsets` are those of the columns.
pub(super) fn csr_to_csc<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    offsets: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    with_offsets!(a.offsets, from => with_offsets!(offsets, to => {
        match policy::Windows::of::<V>(a.indices.len(), a.columns) {
            Some(windows) => by_windows(cuda, windows, a, from, to, indices, values),
            None => by_stretches(cuda, a, from, to, indices, values),
        }
    }))
}

/// Whether the pattern is symmetric, and mirror images are found sooner than by sorting; then all is done.
pub(super) fn mirror<V: Element, I: Offset>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    from: &Slice<I>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<bool> {
    let n = a.indices.len();
    let (mut found, mut symmetric) = (cuda.zeros::<u32>(2)?, true);
    cuda.by_tiles(from, n, |shape, starts| {
        let shape = shape.variant("VALUE_BYTES", bytes_of::<V>());
        // Most patterns that are not symmetric show it at once; and where long rows are searched, sorting is faster.
        let first = policy::mirrored_first(shape);
        for (shape, few) in first.map(|shape| (shape, true)).into_iter().chain([(shape, false)]) {
            let (n, (missing, steps)) = (n as u64, found.split_mut(1));
            let steps = few.then_some(steps);
            kernel::mirror(
                cuda, shape, from, a.indices, a.values, n, starts, indices, values, missing, steps,
            )?;
            let mut told = [0; 2];
            cuda.read(&found, &mut told)?;
            symmetric = told[0] == 0 && !(few && policy::searches_far(shape, told[1]));
            if !symmetric {
                break;
            }
        }
        Ok(())
    })?;
    Ok(symmetric)
}

/// Entries whose rows a warp of `transpose_windows.cu` marks, 32 at a time.
const MARKED: usize = 1024;
/// Digits of `transpose_sort.cu`.
const RADIX: usize = 256;

/// What is left of sorting entries' numbers by windows, beside the numbers.
struct Sorted {
    /// Where windows start.
    begin: DeviceVec<u32>,
    /// The places of the entries' columns in their windows, where these go along.
    places: Option<DeviceVec<u16>>,
    /// Room for the marks of rows.
    marks: DeviceVec<u64>,
}

fn by_windows<V: Element, I: Offset, C: Offset>(
    cuda: Cuda,
    plan: policy::Windows,
    a: CsrParts<'_, V, Cuda>,
    from: &Slice<I>,
    to: &Slice<C>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let n = a.indices.len();
    if n == 0 {
        return Ok(());
    }
    let pieces = (n.div_ceil(MARKED) + 1) * 32;
    let mut sorted = sort_by_windows(cuda, plan, a, to, (indices, values.address()), pieces)?;
    let (marks, rows) = (&mut sorted.marks, a.rows as u64);
    kernel::mark_rows::<V, I, C>(cuda, plan.each(pieces), from, rows, marks, pieces as u64)?;
    let (shape, marks, places) = (plan.finish, &*sorted.marks, sorted.places.as_deref());
    let (columns, begin, windows) = (a.indices, &*sorted.begin, plan.count as u32);
    let n = n as u64;
    kernel::finish(
        cuda, shape, from, marks, to, columns, a.values, places, n, begin, windows, indices, values,
    )
}

/// Entries' numbers by windows in the target's `indices`, which hold the columns' keys before. In its values, at `room`, lie the numbers
/// after the first pass, and where they have 8 bytes what goes along and the workspace. What has no room there lies where rows are
/// marked afterwards, or for itself.
fn sort_by_windows<V: Element, C: Offset>(
    cuda: Cuda,
    plan: policy::Windows,
    a: CsrParts<'_, V, Cuda>,
    to: &Slice<C>,
    (indices, room): (&mut Slice<u32>, u64),
    pieces: usize,
) -> Result<Sorted> {
    let (n, windows) = (a.indices.len(), plan.count as u32);
    let (count, columns) = (n as u64, a.columns as u64);
    let (each, [low, high]) = (plan.sort_each(a.columns), plan.sort_passes());
    let words = 2 + 2 * RADIX * low.blocks as usize;
    let numbers = Slice::<u32>::at_mut(room, n);
    let marks = cuda.uninitialised::<u64>(if plan.carries { pieces } else { pieces.max(n.div_ceil(8)) })?;
    let upper = Slice::<u8>::at_mut(if plan.carries { room + 6 * count } else { marks.address() }, n);
    let mut unsorted = plan.carries.then(|| Slice::<u16>::at_mut(room + 4 * count, n));
    let mut places = plan.carries.then(|| cuda.uninitialised(n)).transpose()?;
    let behind = (7 * n).next_multiple_of(4);
    let inside = plan.carries && behind + 4 * words <= 8 * n;
    let mut outside = cuda.uninitialised(if inside { 0 } else { words })?;
    let workspace = if inside { Slice::at_mut(room + behind as u64, words) } else { &mut *outside };

    let (mut begin, mut digits) = (cuda.uninitialised(plan.count + 1)?, cuda.zeros(2 * RADIX)?);
    kernel::column_keys(cuda, each, to, columns, indices)?;
    let (starts, length) = (plan.starts(), words as u64);
    kernel::window_starts(cuda, starts, to, columns, &mut begin, windows, &mut digits, workspace, length)?;
    kernel::digit_starts::<C>(cuda, each.blocks(1), &begin, windows, &mut digits)?;
    let along = unsorted.as_deref_mut();
    kernel::sort_low::<C>(cuda, low, indices, a.indices, count, &digits, workspace, numbers, upper, along)?;
    let (along, result) = (unsorted.as_deref(), places.as_deref_mut());
    kernel::sort_high::<C>(cuda, high, numbers, upper, along, count, &digits, workspace, indices, result)?;
    Ok(Sorted { begin, places, marks })
}

fn by_stretches<V: Element, I: Offset, C: Offset>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    from: &Slice<I>,
    to: &Slice<C>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let (n, bits) = (a.indices.len(), bits_to(a.columns.saturating_sub(1)));
    let mut cursors = cuda.uninitialised(to.len())?;
    cuda.copy(to, &mut cursors)?;
    let stretch = policy::transpose_stretch::<V>(n, to.len() * size_of::<C>());
    for first in (0..n).step_by(stretch) {
        let range = first..(first + stretch).min(n);
        let count = range.len() as u64;
        let mut columns = cuda.uninitialised(range.len())?;
        cuda.copy(Cuda::part(a.indices, range.clone()), &mut columns)?;
        let mut sources = cuda.uninitialised::<u32>(range.len())?;
        cuda.sequence(&mut sources)?;
        cuda.sort_pairs(&mut columns, &mut sources, 0..bits)?;
        let mut row_of = cuda.uninitialised(range.len())?;
        let tiles = policy::by_tiles(range.len()).0.variant("VALUE_BYTES", "4");
        kernel::rows_of::<I, C>(cuda, tiles, from, a.rows as u64, first as u64, count, &mut row_of)?;
        let each = policy::elementwise(cuda.0.chip, range.len());
        let placed: Shape = each.variant("VALUE_BYTES", bytes_of::<V>());
        let each = each.variant("VALUE_BYTES", "4");
        kernel::run_heads::<I, C>(cuda, each, &columns, count, &mut cursors)?;
        let from = Cuda::part(a.values, range);
        kernel::place::<V, I, C>(
            cuda, placed, &columns, &sources, &row_of, from, count, &cursors, indices, values,
        )?;
        kernel::run_tails::<I, C>(cuda, each, &columns, count, &mut cursors)?;
    }
    Ok(())
}
