//! Cuthill and McKee's orders.

use super::{check_size, components, kernels};
use crate::backend::cuda::compile::Unit;
use crate::backend::cuda::loaded::Readiness;
use crate::backend::cuda::shape::Shape;
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, policy};
use crate::backend::{
    Backend, FirstSweeps, GraphParts, GraphSteps, OrderingPrice, PEERS_ONE_IN, Primitives, Roots, Sweep,
    with_offsets,
};
use crate::error::{Error, Result};
use crate::scalar::Offset;

/// Words of a team's header, and what they hold: see the kernel.
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
/// Peers that are copied to the host all at once.
const FEW: usize = 1024;
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

/// With what this process has to do first: the kernel for offsets of 32 bits, in the clusters tried first, tells for all.
pub(super) fn price(cuda: Cuda) -> OrderingPrice {
    let price = OrderingPrice::GPU;
    let Some(shape) = policy::cuthill_mckee(cuda.0.chip).next() else { return price };
    let first = match cuda.readiness(&shape.unit(unit::<u32>())) {
        Readiness::Loaded => 0.0,
        Readiness::Compiled => policy::ORDER_LOADING,
        Readiness::Source => policy::ORDER_COMPILING,
    };
    OrderingPrice { start: price.start + first, ..price }
}

fn unit<I: Offset>() -> Unit {
    Unit::new("cuthill_mckee.cu").with("OFFSET", I::NAME)
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
    Ok(from_lowest_degree(cuda, graph, order, 1)?.sweeps)
}

/// All components from their vertices of lowest degree; and, where the graph is connected, from the others of its lowest
/// degree, as long as they all together are at most `most`.
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
    let shape = policy::per_vertex(cuda.0.chip, n);
    kernels::lowest::<u32>(cuda, shape, n as u64, None, graph.degrees, &mut lowest)?;
    let mut key = [0];
    cuda.read(&lowest, &mut key)?;
    let (degree, root) = ((key[0] >> 32) as u32, key[0] as u32);
    // A vertex alone is not all, as a rule.
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
    // Those of one component each go side by side.
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
    let (n, teams, chip) = (graph.vertices, starts.len(), cuda.0.chip);
    let shape = with_offsets!(graph.offsets, offsets => resident_shape(cuda, offsets, teams))?;
    let tiles = policy::cuthill_mckee_tiles(chip, n);
    let mut vertices = cuda.uninitialised(n)?;
    with_offsets!(graph.offsets, offsets => {
        kernels::describe(cuda, policy::per_vertex(chip, n), n as u64, offsets, graph.degrees, &mut vertices)
    })?;
    let mut marks = cuda.uninitialised(teams * n)?;
    let mut orders = cuda.uninitialised(teams * n)?;
    let mut rows = cuda.uninitialised(teams * n)?;
    // All headers side by side, so that one copy brings them; then the tiles.
    let mut states = cuda.zeros::<u64>(teams * (HEADER + tiles))?;
    let headers_of_all = 0..teams * HEADER;
    let mut headers = vec![0; teams * HEADER];
    for (team, (header, &(roots, limit))) in headers.chunks_exact_mut(HEADER).zip(starts).enumerate() {
        header[TAIL] = roots.len() as u64;
        header[LIMIT] = limit as u64;
        Error::check_dimension("number of roots in different components", n.min(roots.len()), roots.len())?;
        cuda.copy(roots, orders.part_mut(team * n..team * n + roots.len()))?;
    }
    cuda.write(&headers, states.part_mut(headers_of_all.clone()))?;
    loop {
        with_offsets!(graph.offsets, offsets => launch(
            cuda, shape, offsets, graph, &vertices, teams, (&mut marks, &mut orders, &mut rows), &mut states, tiles,
        ))?;
        cuda.read(states.part(headers_of_all.clone()), &mut headers)?;
        if headers.chunks_exact(HEADER).all(|header| header[STATUS] != SORT) {
            let headers = headers
                .chunks_exact(HEADER)
                .map(|header| Header(header.try_into().expect("words of a header")));
            return Ok(Traversal { order: orders, marks, headers: headers.collect() });
        }
        for (team, header) in headers.chunks_exact_mut(HEADER).enumerate() {
            if header[STATUS] == SORT {
                let level = team * n + header[HEAD] as usize..team * n + header[TAIL] as usize;
                let marks = marks.part(team * n..team * n + n);
                sort_level(cuda, orders.part_mut(level), graph.degrees, marks)?;
            }
            // Teams that are over do not meet again.
            header[..MEETINGS].fill(0);
        }
        cuda.write(&headers, states.part_mut(headers_of_all.clone()))?;
    }
}

/// Blocks in clusters of a size of which this device can run one a team.
fn resident_shape<I: Offset>(cuda: Cuda, _: &Slice<I>, teams: usize) -> Result<Shape> {
    cuda.first_of_clusters(unit::<I>(), "cuthill_mckee", policy::cuthill_mckee(cuda.0.chip), teams as u32)
}

/// The kernel for offsets of this type.
#[allow(clippy::too_many_arguments)]
fn launch<I: Offset>(
    cuda: Cuda,
    shape: Shape,
    _: &Slice<I>,
    graph: GraphParts<'_, Cuda>,
    vertices: &Slice<u64>,
    teams: usize,
    (marks, orders, rows): (&mut Slice<u32>, &mut Slice<u32>, &mut Slice<u64>),
    states: &mut Slice<u64>,
    tiles: usize,
) -> Result<()> {
    let (n, teams) = (graph.vertices as u32, teams as u32);
    let indices = graph.indices;
    kernels::cuthill_mckee::<I>(
        cuda,
        shape,
        n,
        indices,
        vertices,
        teams,
        marks,
        orders,
        rows,
        states,
        tiles as u64,
    )
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

/// Those of some vertices (or of all) that have this degree, in their order, and how many they are.
fn of_degree(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    vertices: Option<&Slice<u32>>,
    degree: u32,
) -> Result<(DeviceVec<u32>, usize)> {
    let n = vertices.map_or(graph.vertices, Slice::len);
    let mut flags = cuda.uninitialised(n)?;
    let shape = policy::per_vertex(cuda.0.chip, n);
    kernels::of_degree::<u32>(cuda, shape, n as u64, vertices, graph.degrees, degree, &mut flags)?;
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
    // As a rule there are so few that one copy of all is the fastest.
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
