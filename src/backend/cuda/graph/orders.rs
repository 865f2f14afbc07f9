//! Cuthill and McKee's orders.

use super::{check_size, components, kernels};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, policy};
use crate::backend::{Backend, GraphParts, GraphSteps, PEERS_ONE_IN, Primitives, Roots, Sweep, with_offsets};
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

/// The state of a traversal, as its kernel left it.
pub(super) struct Header([u64; HEADER]);

impl Header {
    /// Vertices in the order.
    pub(super) fn vertices(&self) -> usize {
        self.0[TAIL] as usize
    }

    fn sweep(&self, root: u32) -> Sweep {
        Sweep {
            root,
            complete: self.0[STATUS] == FINISHED,
            vertices: self.vertices(),
            height: self.0[LEVEL] as usize,
            width: self.0[WIDTH] as usize,
            bandwidth: self.0[BANDWIDTH] as usize,
            end: self.0[END] as u32,
            peers: [None; 3],
        }
    }
}

/// What traversals side by side left behind: as many vertices of order and marks as the graph has, for each.
pub(super) struct Traversal {
    pub(super) order: DeviceVec<u32>,
    pub(super) marks: DeviceVec<u32>,
    pub(super) headers: Vec<Header>,
}

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
    // A vertex alone is not all, as a rule.
    if degree == 0 && n > 1 {
        return components::all(cuda, graph, order);
    }
    let roots = cuda.upload(vec![root])?;
    let traversal = traverse(cuda, graph, &[(&roots, usize::MAX)])?;
    if traversal.headers[0].vertices() < n {
        drop(traversal);
        return components::all(cuda, graph, order);
    }
    let mut sweep = hand_over(cuda, &traversal, 0, root, order)?;
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
        let root = check_roots(cuda, graph, roots, limits)?[0];
        let other = check_roots(cuda, graph, others, other_limits)?[0];
        let both = traverse(cuda, graph, &[(roots, limits[0]), (others, other_limits[0])])?;
        return Ok((
            vec![hand_over(cuda, &both, 0, root, first.1)?],
            vec![hand_over(cuda, &both, 1, other, second.1)?],
        ));
    }
    Ok((cuda.cuthill_mckee(graph, first.0, first.1)?, cuda.cuthill_mckee(graph, second.0, second.1)?))
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
            Err(Error::InvalidArgument(format!("vertex {root} of a graph with {n} vertices")))
        }
    }
}

/// Copies the order of one of several traversals to where it was asked for.
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

/// Traversals side by side, each from some roots in different components and with a largest bandwidth of use.
pub(super) fn traverse(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    starts: &[(&Slice<u32>, usize)],
) -> Result<Traversal> {
    let (n, teams) = (graph.vertices, starts.len());
    let (shape, tiles) = policy::cuthill_mckee(cuda.0.chip, n);
    let words = HEADER + tiles;
    let mut marks = cuda.uninitialised(teams * n)?;
    let mut orders = cuda.uninitialised(teams * n)?;
    let mut rows = cuda.uninitialised(teams * n)?;
    let mut states = cuda.zeros::<u64>(teams * words)?;
    let mut headers = Vec::with_capacity(teams);
    for (team, &(roots, limit)) in starts.iter().enumerate() {
        let mut header = [0; HEADER];
        header[TAIL] = roots.len() as u64;
        header[LIMIT] = limit as u64;
        Error::check_dimension("number of roots in different components", n.min(roots.len()), roots.len())?;
        cuda.copy(roots, orders.part_mut(team * n..team * n + roots.len()))?;
        cuda.write(&header, states.part_mut(team * words..team * words + HEADER))?;
        headers.push(Header(header));
    }
    loop {
        with_offsets!(graph.offsets, offsets => kernels::cuthill_mckee(
            cuda, shape, n as u32, offsets, graph.indices, graph.degrees, teams as u32, &mut marks,
            &mut orders, &mut rows, &mut states, words as u64,
        ))?;
        for (team, Header(header)) in headers.iter_mut().enumerate() {
            cuda.read(states.part(team * words..team * words + HEADER), header)?;
        }
        if headers.iter().all(|Header(header)| header[STATUS] != SORT) {
            return Ok(Traversal { order: orders, marks, headers });
        }
        for (team, Header(header)) in headers.iter_mut().enumerate() {
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
