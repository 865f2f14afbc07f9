//! Cuthill and McKee's orders.

use super::{check_size, kernels};
use crate::backend::cuda::slice::Slice;
use crate::backend::cuda::{Cuda, policy};
use crate::backend::{
    Backend, GraphParts, GraphSteps, Host, OffsetsRef, PEERS_ONE_IN, Primitives, Roots, Sweep, with_offsets,
};
use crate::error::{Error, Result};

/// Words of a team's state before those of its tiles, and what they hold: see the kernel.
const HEADER: usize = 16;
const MEETINGS: usize = 4;
const HEAD: usize = 4;
const TAIL: usize = 5;
const LEVEL: usize = 6;
const WIDTH: usize = 7;
const BANDWIDTH: usize = 8;
const LIMIT: usize = 9;
const STATUS: usize = 10;
const END: usize = 11;
/// The status of a traversal that is over, and of one whose frontier is to be sorted.
const FINISHED: u64 = 1;
const SORT: u64 = 3;

/// Where traversals start, and their largest bandwidths of use.
type Starts = Vec<(u32, usize)>;

pub(super) fn cuthill_mckee(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    roots: Roots<'_, Cuda>,
    order: &mut Slice<u32>,
) -> Result<Vec<Sweep>> {
    check_size(graph)?;
    if let Roots::Given { roots, limits } = roots {
        let starts = starts(cuda, graph, roots, limits)?;
        return match starts[..] {
            [] => Ok(Vec::new()),
            [one] => traverse(cuda, graph, &[one], [order].into()),
            _ => on_host(cuda, graph, Some((roots, limits)), order),
        };
    }
    let n = graph.vertices;
    Error::check_dimension("length of the order", n, order.len())?;
    if n == 0 {
        return Ok(Vec::new());
    }
    let mut lowest = cuda.uninitialised(1)?;
    cuda.fill(u64::MAX, &mut lowest)?;
    let shape = policy::per_vertex(cuda.0.chip, n);
    kernels::lowest::<u32>(cuda, shape, n as u64, None, graph.degrees, &mut lowest)?;
    let mut key = [0];
    cuda.read(&lowest, &mut key)?;
    let (degree, root) = ((key[0] >> 32) as u32, key[0] as u32);
    let mut sweep = traverse(cuda, graph, &[(root, usize::MAX)], [&mut *order].into())?[0];
    if sweep.vertices < n {
        return on_host(cuda, graph, None, order);
    }
    sweep.peers = peers(cuda, graph, order, degree)?;
    Ok(vec![sweep])
}

pub(super) fn pair(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    first: (Roots<'_, Cuda>, &mut Slice<u32>),
    second: (Roots<'_, Cuda>, &mut Slice<u32>),
) -> Result<(Vec<Sweep>, Vec<Sweep>)> {
    if let (Roots::Given { roots, limits }, Roots::Given { roots: others, limits: other_limits }) =
        (first.0, second.0)
        && roots.len() == 1
        && others.len() == 1
    {
        check_size(graph)?;
        let both = [starts(cuda, graph, roots, limits)?, starts(cuda, graph, others, other_limits)?].concat();
        let sweeps = traverse(cuda, graph, &both, vec![first.1, second.1])?;
        return Ok((vec![sweeps[0]], vec![sweeps[1]]));
    }
    Ok((cuda.cuthill_mckee(graph, first.0, first.1)?, cuda.cuthill_mckee(graph, second.0, second.1)?))
}

fn starts(cuda: Cuda, graph: GraphParts<'_, Cuda>, roots: &Slice<u32>, limits: &[usize]) -> Result<Starts> {
    Error::check_dimension("number of limits", roots.len(), limits.len())?;
    let roots = cuda.download(roots)?;
    if let Some(root) = roots.iter().find(|&&root| root as usize >= graph.vertices) {
        let n = graph.vertices;
        return Err(Error::InvalidArgument(format!("vertex {root} of a graph with {n} vertices")));
    }
    Ok(roots.into_iter().zip(limits.iter().copied()).collect())
}

/// Traversals of one component each, side by side, each into the front of its order.
fn traverse(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    starts: &[(u32, usize)],
    into: Vec<&mut Slice<u32>>,
) -> Result<Vec<Sweep>> {
    let (n, teams) = (graph.vertices, starts.len());
    let (shape, tiles) = policy::cuthill_mckee(cuda.0.chip, n);
    let words = HEADER + tiles;
    let mut marks = cuda.uninitialised(teams * n)?;
    let mut orders = cuda.uninitialised(teams * n)?;
    let mut rows = cuda.uninitialised(teams * n)?;
    let mut states = cuda.zeros::<u64>(teams * words)?;
    let mut headers = vec![[0; HEADER]; teams];
    for (team, &(root, limit)) in starts.iter().enumerate() {
        headers[team][TAIL] = 1;
        headers[team][LIMIT] = limit as u64;
        cuda.write(&[root], orders.part_mut(team * n..team * n + 1))?;
        cuda.write(&headers[team], states.part_mut(team * words..team * words + HEADER))?;
    }
    loop {
        with_offsets!(graph.offsets, offsets => kernels::cuthill_mckee(
            cuda, shape, n as u32, offsets, graph.indices, graph.degrees, teams as u32, &mut marks,
            &mut orders, &mut rows, &mut states, words as u64,
        ))?;
        for (team, header) in headers.iter_mut().enumerate() {
            cuda.read(states.part(team * words..team * words + HEADER), header)?;
        }
        if headers.iter().all(|header| header[STATUS] != SORT) {
            break;
        }
        for (team, header) in headers.iter_mut().enumerate() {
            if header[STATUS] == SORT {
                let level = team * n + header[HEAD] as usize..team * n + header[TAIL] as usize;
                let marks = marks.part(team * n..team * n + n);
                sort_level(cuda, orders.part_mut(level), graph.degrees, marks)?;
            }
            // Teams that are over do not meet again.
            header[..MEETINGS].fill(0);
            cuda.write(&header[..MEETINGS], states.part_mut(team * words..team * words + MEETINGS))?;
        }
    }
    let mut sweeps = Vec::with_capacity(teams);
    for (team, order) in into.into_iter().enumerate() {
        let (root, header) = (starts[team].0, &headers[team]);
        let found = header[TAIL] as usize;
        if order.len() < found {
            return Err(Error::InvalidArgument(format!(
                "the order has no room for the component of root {root}"
            )));
        }
        cuda.copy(orders.part(team * n..team * n + found), order.part_mut(0..found))?;
        sweeps.push(Sweep {
            root,
            complete: header[STATUS] == FINISHED,
            vertices: found,
            height: header[LEVEL] as usize,
            width: header[WIDTH] as usize,
            bandwidth: header[BANDWIDTH] as usize,
            end: header[END] as u32,
            peers: [None; 3],
        });
    }
    Ok(sweeps)
}

/// Sorts a level by (place of the parent, degree, number). It comes sorted by parent, and the children of each by
/// number or by (degree, number).
fn sort_level(cuda: Cuda, level: &mut Slice<u32>, degrees: &Slice<u32>, marks: &Slice<u32>) -> Result<()> {
    let n = level.len();
    let mut keys = cuda.uninitialised(n)?;
    let shape = policy::per_vertex(cuda.0.chip, n);
    kernels::level_keys::<u32>(cuda, shape, n as u64, level, degrees, marks, &mut keys)?;
    let mut sorted = cuda.uninitialised(n)?;
    cuda.copy(level, &mut sorted)?;
    cuda.sort_pairs(&mut keys, &mut sorted, 0..64)?;
    cuda.copy(&sorted, level)
}

/// See [`Sweep::peers`].
fn peers(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    order: &Slice<u32>,
    degree: u32,
) -> Result<[Option<u32>; 3]> {
    let others = order.part(1..order.len());
    let n = others.len();
    let mut flags = cuda.uninitialised(n)?;
    let shape = policy::per_vertex(cuda.0.chip, n);
    kernels::of_degree::<u32>(cuda, shape, n as u64, others, graph.degrees, degree, &mut flags)?;
    let mut alike = cuda.uninitialised(n)?;
    let count = cuda.compact(others, &flags, &mut alike)?;
    let mut peers = [None; 3];
    if count > order.len() / PEERS_ONE_IN {
        return Ok(peers);
    }
    let places = [(count / 2, 0), (count / 4, 1), (3 * count / 4, 2)];
    for (peer, (place, fewer)) in peers.iter_mut().zip(places) {
        if count > fewer {
            let mut vertex = [0];
            cuda.read(alike.part(place..place + 1), &mut vertex)?;
            *peer = Some(vertex[0]);
        }
    }
    Ok(peers)
}

/// Several components: on the CPU.
fn on_host(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    given: Option<(&Slice<u32>, &[usize])>,
    order: &mut Slice<u32>,
) -> Result<Vec<Sweep>> {
    let (indices, degrees) = (cuda.download(graph.indices)?, cuda.download(graph.degrees)?);
    let mut host_order = cuda.download(order)?;
    let roots = given.map(|(roots, _)| cuda.download(roots)).transpose()?;
    let roots = match (&roots, given) {
        (Some(roots), Some((_, limits))) => Roots::Given { roots: roots.as_slice(), limits },
        _ => Roots::LowestDegree,
    };
    let run = |offsets: OffsetsRef<'_, Host>, order: &mut [u32]| {
        let graph = GraphParts { vertices: graph.vertices, offsets, indices: &indices, degrees: &degrees };
        Host.cuthill_mckee(graph, roots, order)
    };
    let sweeps = match graph.offsets {
        OffsetsRef::Narrow(offsets) => run(OffsetsRef::Narrow(&cuda.download(offsets)?[..]), &mut host_order),
        OffsetsRef::Wide(offsets) => run(OffsetsRef::Wide(&cuda.download(offsets)?[..]), &mut host_order),
    }?;
    cuda.write(&host_order, order)?;
    Ok(sweeps)
}
