//! CSR to CSC. A symmetric pattern is its own transpose, and values change places. Else entries are sorted by windows of columns, and the
//! target is the memory for that. Where values are too narrow for it, or entries too many, stretches of entries are sorted by column and put
//! behind each other, so that sorting needs memory for one stretch only. The sort is stable and stretches come in order: rows of a
//! column ascend either way.

use super::launch::kernels;
use super::primitives::{Pair, bits_to, passes};
use super::shape::{Shape, bytes_of};
use super::slice::Slice;
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
        );
    }
    kernels! {
        "transpose_windows.cu", types(V: Element as _, I: Offset as OFFSET, C: Offset as CURSOR);
        fn piece_rows(offsets: &Slice<I>, rows: u64, n: u64, row_of: &mut Slice<u32>, pieces: u64);
        fn window_starts(starts: &Slice<C>, columns: u64, begin: &mut Slice<u32>, windows: u32);
        fn windows_of(
            starts: &Slice<C>, columns: &Slice<u32>, n: u64, windows: &mut Slice<u16>, numbers: &mut Slice<u32>,
        );
        fn finish(
            offsets: &Slice<I>, row_of: &Slice<u32>, starts: &Slice<C>, columns: &Slice<u32>, values: &Slice<V>,
            n: u64, begin: &Slice<u32>, windows: u32, entries: &mut Slice<u32>, to_values: &mut Slice<V>,
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
        match policy::Windows::of::<V>(a.indices.len()) {
            Some(windows) => by_windows(cuda, windows, a, from, to, indices, values),
            None => by_stretches(cuda, a, from, to, indices, values),
        }
    }))
}

/// Whether the pattern is symmetric; then all is done.
pub(super) fn mirror<V: Element, I: Offset>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    from: &Slice<I>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<bool> {
    let n = a.indices.len();
    let mut missing = cuda.zeros(1)?;
    cuda.by_tiles(from, n, |shape, starts| {
        let shape = shape.variant("VALUE_BYTES", bytes_of::<V>());
        let n = n as u64;
        kernel::mirror(cuda, shape, from, a.indices, a.values, n, starts, indices, values, &mut missing)
    })?;
    Ok(cuda.download(&*missing)?[0] == 0)
}

/// Entries of a piece in `transpose_windows.cu`.
const PIECE: usize = 256;

fn by_windows<V: Element, I: Offset, C: Offset>(
    cuda: Cuda,
    plan: policy::Windows,
    a: CsrParts<'_, V, Cuda>,
    from: &Slice<I>,
    to: &Slice<C>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    let (n, windows) = (a.indices.len(), plan.count as u32);
    if n == 0 {
        return Ok(());
    }
    let pieces = n.div_ceil(PIECE);
    let (count, rows, columns) = (n as u64, a.rows as u64, a.columns as u64);
    let mut row_of = cuda.uninitialised(pieces + 1)?;
    let shape = plan.each(pieces + 1);
    kernel::piece_rows::<V, I, C>(cuda, shape, from, rows, count, &mut row_of, pieces as u64)?;
    let mut begin = cuda.uninitialised(plan.count + 1)?;
    let shape = plan.each(plan.count + 1);
    kernel::window_starts::<V, I, C>(cuda, shape, to, columns, &mut begin, windows)?;
    // The target's values have room for the entries' second numbers, and for their windows twice.
    let room = values.address();
    let at = |bytes: usize| room + (bytes * n) as u64;
    let keys = (Slice::<u16>::at_mut(at(4), n), Slice::<u16>::at(at(6), n));
    kernel::windows_of::<V, I, C>(cuda, plan.tiles(n), to, a.indices, count, keys.0, indices)?;
    // Two passes: the result is where it was.
    let pair = Pair { keys: (&*keys.0, keys.1), values: (indices.address(), room), value_bytes: ("4", 4) };
    passes(cuda, &pair, 0..u16::BITS)?;
    kernel::finish(
        cuda,
        plan.finish,
        from,
        &row_of,
        to,
        a.indices,
        a.values,
        count,
        &begin,
        windows,
        indices,
        values,
    )
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
