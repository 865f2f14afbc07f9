//! Several simultaneous Cuthill-McKee traversals by `kernels/cuthill_mckee.cu`. The modules `orders` and `components`
//! evaluate the results.

use super::kernels;
use crate::backend::cuda::compile::Unit;
use crate::backend::cuda::modules::Readiness;
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, tuning};
use crate::backend::{Backend, GraphParts, OrderingPrice, Primitives, Sweep};
use crate::error::{Error, Result};
use crate::scalar::Element;

/// The layout of a team's header, as in the kernel.
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
/// The status of a traversal that has ended, and of one that waits for the host to sort its frontier.
const FINISHED: u64 = 1;
const SORT: u64 = 3;

/// The state of a traversal after its kernel has ended.
pub(super) struct Header([u64; HEADER]);

impl Header {
    /// The number of vertices in the order.
    pub(super) fn vertices(&self) -> usize {
        self.0[TAIL] as usize
    }

    /// Returns the properties of the traversal of one component.
    pub(super) fn sweep(&self, root: u32) -> Sweep {
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

/// The results of simultaneous traversals. Each has an order and marks for all vertices of the graph.
pub(super) struct Traversal {
    pub(super) order: DeviceVec<u32>,
    pub(super) marks: DeviceVec<u32>,
    pub(super) headers: Vec<Header>,
}

/// Returns the cost of an ordering. It includes the time to load kernels, which is estimated from one: the kernel for
/// 32-bit offsets with the cluster size that is tried first.
pub(super) fn price(cuda: Cuda) -> OrderingPrice {
    let price = OrderingPrice::GPU;
    let Some(shape) = tuning::cuthill_mckee(cuda.0.chip).next() else { return price };
    let first = match cuda.readiness(&shape.unit(unit(u32::NAME))) {
        Readiness::Loaded => 0.0,
        Readiness::Compiled => tuning::ORDER_LOADING,
        Readiness::Source => tuning::ORDER_COMPILING,
    };
    OrderingPrice { start: price.start + first, ..price }
}

fn unit(offsets: &'static str) -> Unit {
    Unit::new("cuthill_mckee.cu").with("OFFSET", offsets)
}

/// Runs simultaneous traversals, each from roots in different components, and with a limit on the useful bandwidth.
pub(super) fn traverse(
    cuda: Cuda,
    graph: GraphParts<'_, Cuda>,
    starts: &[(&Slice<u32>, usize)],
) -> Result<Traversal> {
    let (n, teams, chip) = (graph.vertices, starts.len(), cuda.0.chip);
    // A cluster size with which this device can run one cluster for each team at the same time.
    let (shapes, offsets) = (tuning::cuthill_mckee(chip), graph.offsets.type_name());
    let shape = cuda.first_of_clusters(unit(offsets), "cuthill_mckee", shapes, teams as u32)?;
    let shape = shape.variant("OFFSET", offsets);
    let tiles = tuning::cuthill_mckee_tiles(chip, n);
    let mut vertices = cuda.uninitialised(n)?;
    kernels::describe(cuda, tuning::per_vertex(chip, n), n, graph.offsets, graph.degrees, &mut vertices)?;
    let mut marks = cuda.uninitialised(teams * n)?;
    let mut orders = cuda.uninitialised(teams * n)?;
    let mut rows = cuda.uninitialised(teams * n)?;
    // All headers are contiguous, so that one copy reads them; the tiles follow.
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
        kernels::cuthill_mckee(
            cuda,
            shape,
            n as u32,
            graph.indices,
            &vertices,
            teams as u32,
            &mut marks,
            &mut orders,
            &mut rows,
            &mut states,
            tiles,
        )?;
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
            // Teams that have finished do not synchronise again, so their counters are reset here.
            header[..MEETINGS].fill(0);
        }
        cuda.write(&headers, states.part_mut(headers_of_all.clone()))?;
    }
}

/// Sorts a level by (position of the parent, degree, number). The level is already sorted by parent, and the children
/// of each parent by number or by (degree, number).
fn sort_level(cuda: Cuda, level: &mut Slice<u32>, degrees: &Slice<u32>, marks: &Slice<u32>) -> Result<()> {
    let n = level.len();
    let mut keys = cuda.uninitialised(n)?;
    let shape = tuning::per_vertex(cuda.0.chip, n);
    kernels::level_keys(cuda, shape, n, level, degrees, marks, &mut keys)?;
    let mut sorted = cuda.uninitialised(n)?;
    cuda.copy(level, &mut sorted)?;
    cuda.sort_pairs(&mut keys, &mut sorted, 0..64)?;
    cuda.copy(&sorted, level)
}
