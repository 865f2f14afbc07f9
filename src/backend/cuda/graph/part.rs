//! Distributed breadth-first search on one of several ranks, level by level.

use super::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, Frontier, GraphRows};
use crate::error::{Error, Result};

pub(super) fn frontier(cuda: Cuda, rows: GraphRows<'_, Cuda>) -> Result<Frontier<Cuda>> {
    super::check_counts(rows.vertices, rows.indices.len())?;
    let entries = rows.rows + rows.neighbours / tuning::BFS_CHUNK as usize + 1;
    let vertices = cuda.uninitialised(rows.rows.div_ceil(u32::BITS as usize))?;
    Ok(Frontier { vertices, queue: cuda.uninitialised(entries)?, queued: cuda.zeros(1)? })
}

fn check(rows: GraphRows<'_, Cuda>, seen: usize, reached: usize) -> Result<()> {
    let words = rows.vertices.div_ceil(u32::BITS as usize);
    Error::check_dimension("words of what was seen", words, seen)?;
    Error::check_dimension("words of what is reached", words, reached)
}

pub(super) fn reach(
    cuda: Cuda,
    rows: GraphRows<'_, Cuda>,
    pull: bool,
    frontier: &mut Frontier<Cuda>,
    (seen, reached): (&Slice<u32>, &mut Slice<u32>),
) -> Result<()> {
    check(rows, seen.len(), reached.len())?;
    let shape = tuning::bfs_part(cuda.0.chip);
    if pull {
        let (first, own) = (rows.first as u32, rows.rows as u32);
        return kernels::part_pull(cuda, shape, first, own, rows, seen, reached);
    }
    let Frontier { vertices, queue, queued } = frontier;
    cuda.fill(0, queued)?;
    kernels::part_queue(cuda, shape, rows.rows as u32, rows.offsets, vertices, queue, queued)?;
    let shape = shape.variant("OFFSET", rows.offsets.type_name());
    kernels::part_push(cuda, shape, rows.indices, queue, queued, seen, reached)
}

pub(super) fn settle(
    cuda: Cuda,
    rows: GraphRows<'_, Cuda>,
    level: u32,
    (reached, seen, levels): (&mut Slice<u32>, &mut Slice<u32>, &mut Slice<u32>),
    frontier: &mut Frontier<Cuda>,
    figures: &mut Slice<f64>,
) -> Result<()> {
    check(rows, seen.len(), reached.len())?;
    Error::check_dimension("number of levels", rows.rows, levels.len())?;
    Error::check_dimension("figures", 2, figures.len())?;
    cuda.fill(0.0, figures)?;
    let (shape, n) = (tuning::bfs_part(cuda.0.chip), rows.vertices as u32);
    let (first, own) = (rows.first as u32, rows.rows as u32);
    let last = &mut frontier.vertices;
    kernels::part_settle(
        cuda,
        shape,
        n,
        first,
        own,
        rows.offsets,
        level,
        reached,
        seen,
        levels,
        last,
        figures,
    )
}
