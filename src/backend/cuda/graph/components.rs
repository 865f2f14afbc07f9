//! Cuthill-McKee orders of many components in one traversal.
//!
//! All roots start together, so that a level takes the same time for any number of components. The result is
//! interleaved, level by level; a stable sort by component separates them.

use super::traversal::traverse;
use super::{kernels, search};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, GraphParts, PEERS_ONE_IN, Primitives, Sweep};
use crate::error::{Error, Result};

/// Marks a missing component or peer.
const NONE: u32 = u32::MAX;

/// Computes the smallest vertex in each vertex's component.
pub(super) fn label(cuda: Cuda, graph: GraphParts<'_, Cuda>, labels: &mut Slice<u32>) -> Result<()> {
    let n = graph.vertices;
    cuda.sequence::<u32>(labels)?;
    let shape = tuning::per_row(cuda.0.chip, n);
    kernels::hook(cuda, shape, n as u32, graph, labels)?;
    kernels::flatten(cuda, tuning::per_vertex(cuda.0.chip, n), n as u32, labels)
}

fn labels(cuda: Cuda, graph: GraphParts<'_, Cuda>) -> Result<DeviceVec<u32>> {
    let mut labels = cuda.uninitialised(graph.vertices)?;
    label(cuda, graph, &mut labels)?;
    Ok(labels)
}

/// Traverses every component from its vertex of lowest degree.
pub(super) fn all(cuda: Cuda, graph: GraphParts<'_, Cuda>, order: &mut Slice<u32>) -> Result<Vec<Sweep>> {
    let n = graph.vertices;
    let labels = labels(cuda, graph)?;
    let (mut lowest, mut flags) = (cuda.uninitialised(n)?, cuda.uninitialised(n)?);
    cuda.fill(u64::MAX, &mut lowest)?;
    let shape = tuning::per_vertex(cuda.0.chip, n);
    kernels::lowest_of_each(cuda, shape, n as u32, &labels, graph.degrees, &mut lowest, &mut flags)?;
    let mut kept = cuda.uninitialised(n)?;
    let count = cuda.compact(&lowest, &flags, &mut kept)?;
    drop((lowest, flags));
    let mut keys = cuda.uninitialised(count)?;
    cuda.copy(kept.part(0..count), &mut keys)?;
    cuda.sort::<u64>(&mut keys, 0..64)?;
    let (mut degrees, mut roots) = (cuda.uninitialised(count)?, cuda.uninitialised(count)?);
    cuda.unpack(&keys, 32, &mut degrees, &mut roots)?;
    sweep(cuda, graph, &labels, &roots, None, order)
}

/// Traverses the components of these roots.
pub(super) fn given(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    roots: &Slice<u32>,
    limits: &[usize],
    order: &mut Slice<u32>,
) -> Result<Vec<Sweep>> {
    sweep(cuda, graph, &labels(cuda, graph)?, roots, Some(limits), order)
}

/// An order with components one after another: the vertex at each position, its component, and the start of each
/// component.
struct Sorted {
    order: DeviceVec<u32>,
    components: DeviceVec<u32>,
    starts: DeviceVec<u32>,
}

/// The properties in [`Sweep`] for each component. An end is a key whose lower half is the vertex.
struct Figures {
    height: DeviceVec<u32>,
    width: DeviceVec<u32>,
    bandwidth: DeviceVec<u32>,
    ends: DeviceVec<u64>,
}

fn sweep(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    labels: &Slice<u32>,
    roots: &Slice<u32>,
    limits: Option<&[usize]>,
    order: &mut Slice<u32>,
) -> Result<Vec<Sweep>> {
    let count = roots.len();
    let traversal = traverse(cuda, graph, &[(roots, usize::MAX)])?;
    let places = traversal.headers[0].vertices();
    let interleaved = traversal.order.part(0..places);
    let sorted = sort(cuda, interleaved, labels, roots)?;
    if order.len() < places {
        return Err(Error::InvalidArgument(format!(
            "the order has room for {} of {places} vertices",
            order.len()
        )));
    }
    let Figures { height, width, bandwidth, ends } =
        figures(cuda, graph, roots, &sorted, interleaved, &traversal.marks)?;
    let peers = match limits {
        None => cuda.download(&*peers(cuda, graph, &sorted)?)?,
        Some(_) => vec![NONE; 3 * count],
    };
    cuda.copy(&sorted.order, order.part_mut(0..places))?;

    let (roots, starts, ends) =
        (cuda.download(roots)?, cuda.download(&*sorted.starts)?, cuda.download(&*ends)?);
    let (height, width) = (cuda.download(&*height)?, cuda.download(&*width)?);
    let bandwidth = cuda.download(&*bandwidth)?;
    let known = |peer: u32| Some(peer).filter(|&peer| peer != NONE);
    Ok((0..count)
        .map(|c| Sweep {
            root: roots[c],
            complete: limits.is_none_or(|limits| bandwidth[c] as usize <= limits[c]),
            vertices: (starts[c + 1] - starts[c]) as usize,
            height: height[c] as usize,
            width: width[c] as usize,
            bandwidth: bandwidth[c] as usize,
            end: ends[c] as u32,
            peers: [known(peers[3 * c]), known(peers[3 * c + 1]), known(peers[3 * c + 2])],
        })
        .collect())
}

/// Separates the components of an interleaved order. They are sorted by their roots, which must be in different
/// components.
fn sort(cuda: Cuda, interleaved: &Slice<u32>, labels: &Slice<u32>, roots: &Slice<u32>) -> Result<Sorted> {
    let (n, places, count, chip) = (labels.len(), interleaved.len(), roots.len(), cuda.0.chip);
    let mut rank = cuda.uninitialised(n)?;
    cuda.fill(NONE, &mut rank)?;
    let each_root = tuning::per_vertex(chip, count);
    kernels::rank_roots(cuda, each_root, count, roots, labels, &mut rank)?;
    let (mut components, mut doubled) = (cuda.uninitialised(places)?, cuda.zeros(1)?);
    kernels::rank_places(
        cuda,
        tuning::per_vertex(chip, n),
        places,
        count,
        interleaved,
        labels,
        &rank,
        &mut components,
        &mut doubled,
    )?;
    let doubled = cuda.value(&doubled)?;
    if doubled > 0 {
        return Err(Error::InvalidArgument(format!(
            "{doubled} roots lie in the component of an earlier root"
        )));
    }
    let mut order = cuda.uninitialised(places)?;
    cuda.copy(interleaved, &mut order)?;
    cuda.sort_pairs(&mut components, &mut order, 0..32)?;
    let mut starts = cuda.uninitialised::<u32>(count + 1)?;
    cuda.offsets_of_sorted(&components, &mut starts)?;
    Ok(Sorted { order, components, starts })
}

fn figures(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    roots: &Slice<u32>,
    sorted: &Sorted,
    interleaved: &Slice<u32>,
    marks: &Slice<u32>,
) -> Result<Figures> {
    let Sorted { order, components, starts } = sorted;
    let (n, count, total) = (graph.vertices, roots.len(), order.len());
    let shape = tuning::per_vertex(cuda.0.chip, n);
    let mut levels = cuda.uninitialised(n)?;
    search::bfs(cuda, graph, roots, &mut levels)?;
    let mut place_of = cuda.uninitialised(n)?;
    kernels::invert(cuda, shape, total, order, &mut place_of)?;
    let (mut height, mut width, mut bandwidth) = (cuda.zeros(count)?, cuda.zeros(count)?, cuda.zeros(count)?);
    kernels::figures(
        cuda,
        shape,
        total,
        order,
        components,
        starts,
        interleaved,
        marks,
        &levels,
        &place_of,
        &mut height,
        &mut width,
        &mut bandwidth,
    )?;
    let mut ends = cuda.uninitialised(count)?;
    cuda.fill(u64::MAX, &mut ends)?;
    kernels::last_levels(cuda, shape, total, order, components, &levels, &height, graph.degrees, &mut ends)?;
    Ok(Figures { height, width, bandwidth, ends })
}

/// Finds three [`Sweep::peers`] for each component, [`NONE`] if there are fewer.
fn peers(cuda: Cuda, graph: GraphParts<'_, Cuda>, sorted: &Sorted) -> Result<DeviceVec<u32>> {
    let Sorted { order, components, starts } = sorted;
    let (n, count) = (order.len(), starts.len() - 1);
    let (mut flags, mut sums) = (cuda.uninitialised(n)?, cuda.uninitialised::<u32>(n + 1)?);
    let shape = tuning::per_vertex(cuda.0.chip, n);
    kernels::alike(cuda, shape, n, order, components, starts, graph.degrees, &mut flags)?;
    cuda.exclusive_scan(&flags, &mut sums)?;
    let mut peers = cuda.uninitialised(3 * count)?;
    let shape = tuning::per_vertex(cuda.0.chip, count);
    kernels::pick_peers(cuda, shape, count, order, starts, &sums, PEERS_ONE_IN as u32, &mut peers)?;
    Ok(peers)
}
