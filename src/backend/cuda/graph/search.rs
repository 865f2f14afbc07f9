//! Breadth-first search, colouring and independent sets.

use super::{check_size, kernels};
use crate::backend::cuda::compile::Unit;
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, GraphParts};
use crate::error::{Error, Result};

/// The number of words of the kernel's state.
const STATE: usize = 16;
/// The positions of two counters: of invalid sources, and of levels.
const BAD_SOURCES: usize = 7;
const LEVELS: usize = 8;

pub(super) fn bfs(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    sources: &Slice<u32>,
    levels: &mut Slice<u32>,
) -> Result<usize> {
    Error::check_dimension("number of levels", graph.vertices, levels.len())?;
    check_size(graph)?;
    let (n, m) = (graph.vertices, graph.indices.len());
    let source_count = u32::try_from(sources.len())
        .map_err(|_| Error::Unsupported(format!("{} sources: at most 2^32 - 1", sources.len())))?;
    let mut seen = cuda.uninitialised(2 * n.div_ceil(32))?;
    let mut queue = cuda.uninitialised(n + m / tuning::BFS_CHUNK as usize + 1)?;
    let mut state = cuda.zeros::<u64>(STATE)?;
    // Blocks are in clusters of a size that this device can run.
    let unit = Unit::new("bfs.cu").with("OFFSET", graph.offsets.type_name());
    let shape = cuda.first_held(unit, "bfs", tuning::bfs(cuda.0.chip))?;
    kernels::bfs(
        cuda,
        shape,
        n as u32,
        m,
        graph,
        sources,
        source_count,
        levels,
        &mut seen,
        &mut queue,
        &mut state,
    )?;
    let mut figures = [0; STATE];
    cuda.read(&state, &mut figures)?;
    if figures[BAD_SOURCES] > 0 {
        let bad = figures[BAD_SOURCES];
        return Err(Error::InvalidArgument(format!(
            "{bad} sources are no vertices: the graph has {n}, numbered from 0"
        )));
    }
    Ok(figures[LEVELS] as usize)
}

pub(super) fn parents(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    levels: &Slice<u32>,
    parents: &mut Slice<u32>,
) -> Result<()> {
    Error::check_dimension("number of levels", graph.vertices, levels.len())?;
    Error::check_dimension("number of parents", graph.vertices, parents.len())?;
    let n = graph.vertices;
    kernels::parents(cuda, tuning::bfs_parents(n), n as u32, graph, levels, parents)
}

/// Marks undecided vertices in colourings and independent sets.
const OPEN: u32 = u32::MAX;
/// The number of rounds between two checks for undecided vertices.
const ROUNDS: usize = 4;

pub(super) fn colour(cuda: Cuda, graph: GraphParts<'_, Cuda>, colours: &mut Slice<u32>) -> Result<()> {
    Error::check_dimension("number of colours", graph.vertices, colours.len())?;
    let (n, shape) = (graph.vertices as u32, tuning::per_vertex(cuda.0.chip, graph.vertices));
    until_decided(cuda, colours, |colours, left| kernels::colour(cuda, shape, n, graph, colours, left))
}

pub(super) fn independent_set(cuda: Cuda, graph: GraphParts<'_, Cuda>, set: &mut Slice<u32>) -> Result<()> {
    Error::check_dimension("length of the set", graph.vertices, set.len())?;
    let (n, shape) = (graph.vertices as u32, tuning::per_vertex(cuda.0.chip, graph.vertices));
    until_decided(cuda, set, |set, left| kernels::independent(cuda, shape, n, graph, set, left))
}

/// Repeats a round until no vertex is undecided. Every round decides at least the undecided vertex of highest priority.
fn until_decided(
    cuda: Cuda,
    out: &mut Slice<u32>,
    mut round: impl FnMut(&mut Slice<u32>, &mut Slice<u32>) -> Result<()>,
) -> Result<()> {
    cuda.fill(OPEN, out)?;
    let mut left = cuda.zeros(1)?;
    let mut open = [out.len() as u32];
    while open[0] > 0 {
        for _ in 0..ROUNDS {
            cuda.fill(0, &mut left)?;
            round(out, &mut left)?;
        }
        cuda.read(&left, &mut open)?;
    }
    Ok(())
}
