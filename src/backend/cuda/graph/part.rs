//! Breadth-first search on one of several parts, level by level.

use super::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, Frontier, GraphRows, OffsetsRef, with_offsets};
use crate::error::{Error, Result};

pub(super) fn frontier(cuda: Cuda, rows: GraphRows<'_, Cuda>) -> Result<Frontier<Cuda>> {
    super::check_counts(rows.vertices, rows.indices.len())?;
    let entries = rows.rows + rows.neighbours / tuning::BFS_CHUNK as usize + 1;
    Ok(Frontier { entries: cuda.uninitialised(entries)?, count: cuda.zeros(1)? })
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
    frontier: &Frontier<Cuda>,
    (seen, reached): (&Slice<u32>, &mut Slice<u32>),
) -> Result<()> {
    check(rows, seen.len(), reached.len())?;
    let shape = tuning::bfs_part(cuda.0.chip);
    if pull {
        let (first, own) = (rows.first as u32, rows.rows as u32);
        return with_offsets!(rows.offsets, offsets => {
            kernels::part_pull(cuda, shape, first, own, offsets, rows.indices, seen, reached)
        });
    }
    // Pushing reads no offsets; the kernel's file is that of their type.
    let (entries, count) = (&frontier.entries, &frontier.count);
    match rows.offsets {
        OffsetsRef::Narrow(_) => {
            kernels::part_push::<u32>(cuda, shape, rows.indices, entries, count, seen, reached)
        }
        OffsetsRef::Wide(_) => {
            kernels::part_push::<u64>(cuda, shape, rows.indices, entries, count, seen, reached)
        }
    }
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
    cuda.fill(0, &mut frontier.count)?;
    cuda.fill(0.0, figures)?;
    let (shape, n) = (tuning::bfs_part(cuda.0.chip), rows.vertices as u32);
    let (first, own) = (rows.first as u32, rows.rows as u32);
    with_offsets!(rows.offsets, offsets => kernels::part_settle(
        cuda, shape, n, first, own, offsets, level, reached, seen, levels, &mut frontier.entries, &mut frontier.count,
        figures,
    ))
}
