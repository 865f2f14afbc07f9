//! Operations on patterns for orderings, and P A P^T.

use super::kernels;
use crate::backend::cuda::shape::bytes_of;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, CsrParts, CsrPattern, GraphParts, OffsetsRef, Primitives};
use crate::error::{Error, Result};
use crate::scalar::Element;

pub(super) fn degrees(
    cuda: Cuda,
    offsets: OffsetsRef<'_, Cuda>,
    indices: &Slice<u32>,
    degrees: &mut Slice<u32>,
) -> Result<bool> {
    let rows = offsets.len() - 1;
    Error::check_dimension("number of degrees", rows, degrees.len())?;
    let mut asymmetry = cuda.zeros(1)?;
    let shape = tuning::per_row(cuda.0.chip, rows);
    let pattern = CsrPattern { rows, columns: rows, offsets, indices };
    kernels::degrees(cuda, shape, rows, pattern, degrees, &mut asymmetry)?;
    Ok(cuda.value(&asymmetry)? == 0)
}

pub(super) fn number_grid(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    [first, across_y, across_z]: [&Slice<u32>; 3],
    sizes: [usize; 3],
    new_to_old: &mut Slice<u32>,
    old_to_new: &mut Slice<u32>,
) -> Result<bool> {
    graph.check_grid([first, across_y, across_z], sizes, new_to_old, old_to_new)?;
    let (n, chip, [sx, sy, sz]) = (graph.vertices, cuda.0.chip, sizes.map(|size| size as u32));
    let mut faults = cuda.zeros(1)?;
    let shape = tuning::per_vertex(chip, n);
    kernels::grid_numbers(
        cuda,
        shape,
        n,
        first,
        across_y,
        across_z,
        sx,
        sy,
        sz,
        new_to_old,
        old_to_new,
        &mut faults,
    )?;
    let shape = tuning::per_row(chip, n);
    kernels::grid_edges(cuda, shape, n, graph, sx, sy, sz, new_to_old, old_to_new, &mut faults)?;
    Ok(cuda.value(&faults)? == 0)
}

pub(super) fn envelope(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    numbers: Option<&Slice<u32>>,
) -> Result<(usize, u64)> {
    let rows = graph.vertices;
    Error::check_dimension("length of the numbering", rows, numbers.map_or(rows, Slice::len))?;
    let mut envelope = cuda.zeros(2)?;
    let shape = tuning::per_row(cuda.0.chip, rows);
    kernels::envelope(cuda, shape, rows, graph, numbers, &mut envelope)?;
    let mut figures = [0; 2];
    cuda.read(&envelope, &mut figures)?;
    Ok((figures[0] as usize, figures[1]))
}

pub(super) fn reverse_order(
    cuda: Cuda,
    order: &Slice<u32>,
    new_to_old: &mut Slice<u32>,
    old_to_new: &mut Slice<u32>,
) -> Result<()> {
    Error::check_dimension("length of the numbering", order.len(), new_to_old.len())?;
    Error::check_dimension("length of the inverse numbering", order.len(), old_to_new.len())?;
    let shape = tuning::per_vertex(cuda.0.chip, order.len());
    kernels::reverse(cuda, shape, order.len(), order, new_to_old, old_to_new)
}

pub(super) fn permuted_lengths(
    cuda: Cuda,
    offsets: OffsetsRef<'_, Cuda>,
    new_to_old: &Slice<u32>,
    lengths: &mut Slice<u32>,
) -> Result<()> {
    let rows = new_to_old.len();
    Error::check_dimension("number of row lengths", rows + 1, lengths.len())?;
    let shape = tuning::per_vertex(cuda.0.chip, rows + 1).variant("ITEM_BYTES", "1");
    kernels::lengths::<u8>(cuda, shape, rows, offsets, new_to_old, lengths)
}

pub(super) fn permute_rows<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    (new_to_old, old_to_new): (&Slice<u32>, &Slice<u32>),
    new_offsets: OffsetsRef<'_, Cuda>,
    indices: &mut Slice<u32>,
    values: &mut Slice<V>,
) -> Result<()> {
    Error::check_dimension("length of the numbering", a.rows, new_to_old.len())?;
    Error::check_dimension("length of the inverse numbering", a.columns, old_to_new.len())?;
    if a.offsets.type_name() != new_offsets.type_name() {
        return Err(Error::InvalidArgument("offsets of different widths".into()));
    }
    let chip = cuda.0.chip;
    let mut long_rows = cuda.uninitialised(a.rows + 1)?;
    cuda.fill(0, long_rows.part_mut(0..1))?;
    let shape = tuning::permute(chip, a.rows, a.indices.len()).variant("ITEM_BYTES", bytes_of::<V>());
    kernels::permute_rows(
        cuda,
        shape,
        a.rows,
        a,
        new_to_old,
        old_to_new,
        new_offsets,
        indices,
        values,
        &mut long_rows,
    )?;
    let count = cuda.value(long_rows.part(0..1))? as usize;
    if count == 0 {
        return Ok(());
    }
    let shape = tuning::permute_long(chip, count).variant("ITEM_BYTES", bytes_of::<V>());
    kernels::permute_long_rows(
        cuda,
        shape,
        &long_rows,
        a,
        new_to_old,
        old_to_new,
        new_offsets,
        indices,
        values,
    )?;
    // Longer rows do not fit the shared memory in which a block sorts.
    if a.indices.len() <= tuning::PERMUTE_LONGEST {
        return Ok(());
    }
    for row in cuda.download(long_rows.part(1..1 + count))? {
        let row = row as usize..row as usize + 2;
        let ends = new_offsets.windows(&cuda, std::slice::from_ref(&row))?;
        let range = ends[0]..ends[1];
        if range.len() > tuning::PERMUTE_LONGEST {
            let (mut keys, mut carried) =
                (cuda.uninitialised(range.len())?, cuda.uninitialised(range.len())?);
            cuda.copy(indices.part(range.clone()), &mut keys)?;
            cuda.copy(values.part(range.clone()), &mut carried)?;
            cuda.sort_pairs(&mut keys, &mut carried, 0..32)?;
            cuda.copy(&keys, indices.part_mut(range.clone()))?;
            cuda.copy(&carried, values.part_mut(range))?;
        }
    }
    Ok(())
}
