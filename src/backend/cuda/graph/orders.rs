//! Cuthill-McKee orders on the device.

use super::traversal::{Traversal, traverse};
use super::{check_size, components, kernels};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, FirstSweeps, GraphParts, GraphSteps, PEERS_ONE_IN, Primitives, Roots, Sweep};
use crate::error::{Error, Result};

/// At most this many candidates for peers are copied to the host.
const FEW: usize = 1024;

pub(super) fn cuthill_mckee(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    roots: Roots<'_, Cuda>,
    order: &mut Slice<u32>,
) -> Result<Vec<Sweep>> {
    check_size(graph)?;
    if let Roots::Given { roots, limits } = roots {
        let starts = check_roots(cuda, graph, roots, limits)?;
        return match starts[..] {
            [] => Ok(Vec::new()),
            [root] => {
                let traversal = traverse(cuda, graph, &[(roots, limits[0])])?;
                Ok(vec![hand_over(cuda, &traversal, 0, root, order)?])
            }
            _ => components::given(cuda, graph, roots, limits, order),
        };
    }
    Ok(from_lowest_degree(cuda, graph, order, 1)?.sweeps)
}

/// Traverses all components from their vertices of lowest degree. If the graph is connected and has at most `most`
/// vertices of lowest degree, also traverses it from the others.
pub(super) fn from_lowest_degree(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    order: &mut Slice<u32>,
    most: usize,
) -> Result<FirstSweeps<Cuda>> {
    check_size(graph)?;
    let n = graph.vertices;
    Error::check_dimension("length of the order", n, order.len())?;
    if n == 0 {
        return Ok(FirstSweeps { sweeps: Vec::new(), others: Vec::new() });
    }
    let mut lowest = cuda.uninitialised(1)?;
    cuda.fill(u64::MAX, &mut lowest)?;
    let shape = tuning::per_vertex(cuda.0.chip, n);
    kernels::lowest(cuda, shape, n, None, graph.degrees, &mut lowest)?;
    let key = cuda.value(&lowest)?;
    let (degree, root) = ((key >> 32) as u32, key as u32);
    // If the vertex of lowest degree is isolated, the graph has several components.
    if degree == 0 && n > 1 {
        return Ok(FirstSweeps { sweeps: components::all(cuda, graph, order)?, others: Vec::new() });
    }
    let mut roots = vec![root];
    if most > 1 {
        let (alike, count) = of_degree(cuda, graph, None, degree)?;
        if count <= most {
            roots = cuda.download(alike.part(0..count))?;
        }
    }
    let starts = cuda.upload(roots.clone())?;
    let starts: Vec<_> = (0..roots.len()).map(|k| (starts.part(k..k + 1), usize::MAX)).collect();
    let traversal = traverse(cuda, graph, &starts)?;
    if traversal.headers[0].vertices() < n {
        drop(traversal);
        return Ok(FirstSweeps { sweeps: components::all(cuda, graph, order)?, others: Vec::new() });
    }
    let mut sweep = hand_over(cuda, &traversal, 0, root, order)?;
    sweep.peers = peers(cuda, graph, order, degree)?;
    let others = roots.iter().enumerate().skip(1).map(|(k, &root)| {
        let mut order = cuda.uninitialised(n)?;
        let sweep = hand_over(cuda, &traversal, k, root, &mut order)?;
        Ok((sweep, order))
    });
    Ok(FirstSweeps { sweeps: vec![sweep], others: others.collect::<Result<_>>()? })
}

pub(super) fn several(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    calls: Vec<(Roots<'_, Cuda>, &mut Slice<u32>)>,
) -> Result<Vec<Vec<Sweep>>> {
    // Calls that have only one component are processed together.
    let mut starts = Vec::new();
    for (roots, _) in &calls {
        if let Roots::Given { roots, limits } = *roots
            && roots.len() == 1
        {
            starts.push((roots, limits));
        }
    }
    if starts.len() < calls.len() || calls.is_empty() {
        return calls.into_iter().map(|(roots, order)| cuda.cuthill_mckee(graph, roots, order)).collect();
    }
    check_size(graph)?;
    let checked = starts.iter().map(|&(roots, limits)| Ok(check_roots(cuda, graph, roots, limits)?[0]));
    let roots = checked.collect::<Result<Vec<_>>>()?;
    let starts: Vec<_> = starts.into_iter().map(|(roots, limits)| (roots, limits[0])).collect();
    let traversal = traverse(cuda, graph, &starts)?;
    let results = calls.into_iter().zip(roots).enumerate();
    results.map(|(k, ((_, order), root))| Ok(vec![hand_over(cuda, &traversal, k, root, order)?])).collect()
}

fn check_roots(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    roots: &Slice<u32>,
    limits: &[usize],
) -> Result<Vec<u32>> {
    Error::check_dimension("number of limits", roots.len(), limits.len())?;
    let roots = cuda.download(roots)?;
    match roots.iter().find(|&&root| root as usize >= graph.vertices) {
        None => Ok(roots),
        Some(root) => {
            let n = graph.vertices;
            Err(Error::InvalidArgument(format!(
                "there is no vertex {root}: the graph has {n} vertices, numbered from 0"
            )))
        }
    }
}

/// Copies the order of one of several traversals to its destination.
fn hand_over(
    cuda: Cuda,
    traversal: &Traversal,
    which: usize,
    root: u32,
    order: &mut Slice<u32>,
) -> Result<Sweep> {
    let sweep = traversal.headers[which].sweep(root);
    if order.len() < sweep.vertices {
        return Err(Error::InvalidArgument(format!(
            "the order has no room for the component of root {root}"
        )));
    }
    let start = which * (traversal.order.len() / traversal.headers.len());
    let from = traversal.order.part(start..start + sweep.vertices);
    cuda.copy(from, order.part_mut(0..sweep.vertices))?;
    Ok(sweep)
}

/// Returns the vertices of this degree among some vertices (or all), in their order, and their number.
pub(super) fn of_degree(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    vertices: Option<&Slice<u32>>,
    degree: u32,
) -> Result<(DeviceVec<u32>, usize)> {
    let n = vertices.map_or(graph.vertices, Slice::len);
    let mut flags = cuda.uninitialised(n)?;
    let shape = tuning::per_vertex(cuda.0.chip, n);
    kernels::of_degree(cuda, shape, n, vertices, graph.degrees, degree, &mut flags)?;
    let mut all = None;
    let from = match vertices {
        Some(vertices) => vertices,
        None => {
            let mut numbers = cuda.uninitialised(n)?;
            cuda.sequence::<u32>(&mut numbers)?;
            &**all.insert(numbers)
        }
    };
    let mut alike = cuda.uninitialised(n)?;
    let count = cuda.compact(from, &flags, &mut alike)?;
    Ok((alike, count))
}

/// See [`Sweep::peers`].
fn peers(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    order: &Slice<u32>,
    degree: u32,
) -> Result<[Option<u32>; 3]> {
    let (alike, count) = of_degree(cuda, graph, Some(order.part(1..order.len())), degree)?;
    let mut peers = [None; 3];
    if count > order.len() / PEERS_ONE_IN {
        return Ok(peers);
    }
    let places = [(count / 2, 0), (count / 4, 1), (3 * count / 4, 2)];
    // Usually there are so few candidates that a single copy of all of them is the fastest.
    let few = cuda.download(alike.part(0..if count <= FEW { count } else { 0 }))?;
    for (peer, (place, fewer)) in peers.iter_mut().zip(places) {
        if count > fewer {
            let mut vertex = [0];
            match few.get(place) {
                Some(&known) => vertex = [known],
                None => cuda.read(alike.part(place..place + 1), &mut vertex)?,
            }
            *peer = Some(vertex[0]);
        }
    }
    Ok(peers)
}
