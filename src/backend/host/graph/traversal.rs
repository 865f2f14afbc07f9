//! Breadth-first traversals, which compute levels or the Cuthill-McKee order.

use super::Host;
use crate::backend::{Backend, GraphParts, PEERS_ONE_IN, Sweep, UNREACHED};
use crate::error::{Error, Result};
use crate::scalar::Offset;
use crate::work::look_at;
use std::mem::take;

/// With at least this many vertices, a graph does not fit the cache of a core.
const FAR_FROM: usize = 1 << 15;

/// Neighbours are prefetched this many vertices before they are used.
const AHEAD: usize = 8;

/// At most this many children of a vertex are sorted by insertion.
const INSERTION_UP_TO: usize = 24;

fn check_vertex(vertex: u32, vertices: usize) -> Result<()> {
    if (vertex as usize) < vertices {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "there is no vertex {vertex}: the graph has {vertices} vertices, numbered from 0"
    )))
}

/// Computes the levels, which must be [`UNREACHED`] before. `queue` has space for all vertices and one more, see
/// [`collect`].
pub(super) fn breadth_first<O: Offset>(
    offsets: &[O],
    indices: &[u32],
    sources: &[u32],
    levels: &mut [u32],
    queue: &mut [u32],
) -> Result<usize> {
    let (mut tail, far) = (0, levels.len() >= FAR_FROM);
    for &source in sources {
        check_vertex(source, levels.len())?;
        if levels[source as usize] == UNREACHED {
            levels[source as usize] = 0;
            queue[tail] = source;
            tail += 1;
        }
    }
    let (mut head, mut depth) = (0, 0);
    while head < tail {
        let level_end = tail;
        depth += 1;
        for place in head..level_end {
            look_at(place);
            if far {
                ask_ahead((offsets, indices), &queue[..tail], place);
            }
            let v = queue[place] as usize;
            // Branch-free, as in `collect`, because no one can predict whether a neighbour is new.
            for &w in &indices[offsets[v].to_usize()..offsets[v + 1].to_usize()] {
                let level = &mut levels[w as usize];
                let is_new = *level == UNREACHED;
                queue[tail] = w;
                tail += usize::from(is_new);
                *level = if is_new { depth as u32 } else { *level };
            }
        }
        head = level_end;
    }
    Ok(depth)
}

/// A breadth-first traversal of a graph, with its queue and the set of reached vertices.
pub(super) struct Traversal<'a, O> {
    offsets: &'a [O],
    graph: GraphParts<'a, Host>,
    /// 1 for each vertex that has a position in the order.
    reached: Vec<u8>,
    /// The order of one component, with one more element for [`collect`].
    queue: Vec<u32>,
}

impl<'a, O: Offset> Traversal<'a, O> {
    /// Creates a traversal that has reached no vertex yet.
    pub(super) fn new(offsets: &'a [O], graph: GraphParts<'a, Host>) -> Result<Self> {
        let (reached, queue) = (Host.zeros(graph.vertices)?, Host.zeros(graph.vertices + 1)?);
        Ok(Traversal { offsets, graph, reached, queue })
    }

    /// Traverses from these roots, each in a different component.
    pub(super) fn given(
        &mut self,
        roots: &[u32],
        limits: &[usize],
        mut order: &mut [u32],
    ) -> Result<Vec<Sweep>> {
        Error::check_dimension("number of limits", roots.len(), limits.len())?;
        let mut sweeps = Vec::with_capacity(roots.len());
        for (&root, &limit) in roots.iter().zip(limits) {
            check_vertex(root, self.graph.vertices)?;
            if self.reached[root as usize] != 0 {
                return Err(Error::InvalidArgument(format!(
                    "root {root} lies in the component of an earlier root"
                )));
            }
            let sweep = self.component(root, limit, order)?;
            order = &mut order[sweep.vertices..];
            sweeps.push(sweep);
        }
        Ok(sweeps)
    }

    /// Traverses every component, starting with the vertices of lowest degree, and finds the peers of their roots
    /// ([`Sweep::peers`]).
    pub(super) fn all(&mut self, mut order: &mut [u32]) -> Result<Vec<Sweep>> {
        let degrees = self.graph.degrees;
        Error::check_dimension("length of the order", degrees.len(), order.len())?;
        let Some(first) = (0..degrees.len() as u32).min_by_key(|&v| degrees[v as usize]) else {
            return Ok(Vec::new());
        };
        let mut sweeps = vec![self.with_peers(first, order)?];
        order = &mut order[sweeps[0].vertices..];
        if !order.is_empty() {
            for root in by_degree(degrees)? {
                if self.reached[root as usize] == 0 {
                    let sweep = self.with_peers(root, order)?;
                    order = &mut order[sweep.vertices..];
                    sweeps.push(sweep);
                }
            }
        }
        Ok(sweeps)
    }

    fn with_peers(&mut self, root: u32, order: &mut [u32]) -> Result<Sweep> {
        let mut sweep = self.component(root, usize::MAX, order)?;
        let degree = |v: u32| self.graph.degrees[v as usize];
        let alike = order[1..sweep.vertices].iter().copied().filter(|&v| degree(v) == degree(root));
        // The queue is unused between sweeps. If there are too many such vertices, the rest need not be examined.
        let most = sweep.vertices / PEERS_ONE_IN;
        let mut count = 0;
        for v in alike.take(most + 1) {
            self.queue[count] = v;
            count += 1;
        }
        if count > most {
            return Ok(sweep);
        }
        let peer = |k: usize, from: usize| (count >= from).then(|| self.queue[k]);
        sweep.peers = [peer(count / 2, 1), peer(count / 4, 2), peer(3 * count / 4, 3)];
        Ok(sweep)
    }

    /// Writes the order of `root`'s component to the beginning of `order`, which has space only for this and later
    /// components.
    fn component(&mut self, root: u32, limit: usize, order: &mut [u32]) -> Result<Sweep> {
        let degrees = self.graph.degrees;
        let far = degrees.len() >= FAR_FROM;
        let (mut queue, mut reached) = (take(&mut self.queue), take(&mut self.reached));
        queue[0] = root;
        reached[root as usize] = 1;
        let (mut head, mut tail) = (0, 1);
        let mut sweep = Sweep {
            root,
            complete: true,
            vertices: 0,
            height: 0,
            width: 1,
            bandwidth: 0,
            end: root,
            peers: [None; 3],
        };
        'levels: loop {
            let level_end = tail;
            for place in head..level_end {
                look_at(place);
                if tail == order.len() {
                    break; // all vertices were found
                }
                if far {
                    ask_ahead((self.offsets, self.graph.indices), &queue[..tail], place);
                }
                let v = queue[place] as usize;
                let neighbours =
                    &self.graph.indices[self.offsets[v].to_usize()..self.offsets[v + 1].to_usize()];
                let found = collect(neighbours, &mut reached, &mut queue[tail..]);
                if found > 1 {
                    sort_by_degree(&mut queue[tail..tail + found], degrees);
                }
                tail += found;
                // Every neighbour of the vertex at `place` that comes after it is before `tail`, and its last child, if
                // it has children, is right before `tail`. The last child of an earlier vertex is there if it has none.
                // Therefore the maximum over all vertices is the bandwidth.
                sweep.bandwidth = sweep.bandwidth.max(tail - 1 - place);
                if sweep.bandwidth > limit {
                    sweep.complete = false;
                    break 'levels;
                }
            }
            if tail == level_end {
                break;
            }
            sweep.height += 1;
            sweep.width = sweep.width.max(tail - level_end);
            head = level_end;
        }
        sweep.vertices = tail;
        sweep.end =
            queue[head..tail].iter().copied().min_by_key(|&v| (degrees[v as usize], v)).unwrap_or(root);
        let Some(order) = order.get_mut(..tail) else {
            return Err(Error::InvalidArgument(format!(
                "the order has no room for the component of root {root}"
            )));
        };
        order.copy_from_slice(&queue[..tail]);
        (self.queue, self.reached) = (queue, reached);
        Ok(sweep)
    }
}

/// Prefetches the data of vertices further on in the queue, because the hardware can't predict them.
#[inline(always)]
fn ask_ahead<O: Offset>((offsets, indices): (&[O], &[u32]), queue: &[u32], place: usize) {
    if let Some(&v) = queue.get(place + 2 * AHEAD) {
        prefetch(offsets, v as usize);
    }
    if let Some(&v) = queue.get(place + AHEAD) {
        prefetch(indices, offsets[v as usize].to_usize());
    }
}

#[inline(always)]
fn prefetch<T>(data: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < data.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is inside of `data`, every x86-64 processor has the instruction, and it changes only the
        // cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(data.as_ptr().add(index).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, index);
}

/// Copies the unreached neighbours to the beginning of `room`, and returns their number. It does not branch on whether
/// a vertex is reached: the branch would be mispredicted about once for each vertex, which costs more than superfluous
/// stores. The last of these goes one element beyond the last child.
#[inline(always)]
fn collect(neighbours: &[u32], reached: &mut [u8], room: &mut [u32]) -> usize {
    let mut found = 0;
    for &w in neighbours {
        let mark = &mut reached[w as usize];
        room[found] = w;
        found += usize::from(*mark == 0);
        *mark = 1;
    }
    found
}

/// Sorts vertices, which are given in ascending order, by (degree, number).
#[inline(always)]
fn sort_by_degree(vertices: &mut [u32], degrees: &[u32]) {
    if vertices.len() > INSERTION_UP_TO {
        vertices.sort_unstable_by_key(|&v| (degrees[v as usize], v));
        return;
    }
    for k in 1..vertices.len() {
        let v = vertices[k];
        let degree = degrees[v as usize];
        let mut hole = k;
        while hole > 0 && degrees[vertices[hole - 1] as usize] > degree {
            vertices[hole] = vertices[hole - 1];
            hole -= 1;
        }
        vertices[hole] = v;
    }
}

/// Returns all vertices, sorted by (degree, number).
fn by_degree(degrees: &[u32]) -> Result<Vec<u32>> {
    let longest = degrees.iter().max().map_or(0, |&d| d as usize);
    let mut starts: Vec<u32> = Host.zeros(longest + 2)?;
    for &d in degrees {
        starts[d as usize + 1] += 1;
    }
    for d in 0..=longest {
        starts[d + 1] += starts[d];
    }
    let mut sorted = Host.zeros(degrees.len())?;
    for (v, &d) in degrees.iter().enumerate() {
        sorted[starts[d as usize] as usize] = v as u32;
        starts[d as usize] += 1;
    }
    Ok(sorted)
}
