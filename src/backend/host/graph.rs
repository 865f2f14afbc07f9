//! Traversals on the CPU, one vertex of the queue at a time.

use super::Host;
use super::pattern::{envelope, scan};
use super::permute::gather_rows;
use crate::backend::{
    Backend, CsrParts, GraphParts, GraphSteps, OffsetsRef, OrderingPrice, PEERS_ONE_IN, Roots, Sweep,
    UNREACHED, priority, with_offsets,
};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset};
use rayon::slice::ParallelSliceMut;
use std::mem::take;

/// Traversals of a smaller graph (vertices and neighbours) are over before another thread has woken up.
const PARALLEL_FROM: usize = 1 << 16;

/// From this many vertices on a graph does not fit in the cache next to a core.
const FAR_FROM: usize = 1 << 15;

/// How many vertices ahead their neighbours are asked for.
const AHEAD: usize = 8;

/// Up to this many children of one vertex are sorted by insertion.
const INSERTION_UP_TO: usize = 24;

impl GraphSteps for Host {
    const ORDERING_PRICE: OrderingPrice = OrderingPrice::CPU;
    /// A traversal waits for memory: two threads wait at the same time.
    const TRAVERSALS_AT_ONCE: usize = 2;

    fn bfs(&self, graph: GraphParts<'_, Self>, sources: &[u32], levels: &mut [u32]) -> Result<usize> {
        Error::check_dimension("number of levels", graph.vertices, levels.len())?;
        self.fill(UNREACHED, levels)?;
        let mut queue = self.zeros(graph.vertices)?;
        with_offsets!(graph.offsets, offsets => breadth_first(offsets, graph.indices, sources, levels, &mut queue))
    }

    fn bfs_parents(&self, graph: GraphParts<'_, Self>, levels: &[u32], parents: &mut [u32]) -> Result<()> {
        Error::check_dimension("number of levels", graph.vertices, levels.len())?;
        Error::check_dimension("number of parents", graph.vertices, parents.len())?;
        with_offsets!(graph.offsets, offsets => {
            parents.par_iter_mut().enumerate().with_min_len(1 << 12).for_each(|(v, parent)| {
                let line = &graph.indices[offsets[v].to_usize()..offsets[v + 1].to_usize()];
                *parent = match levels[v] {
                    UNREACHED => UNREACHED,
                    0 => v as u32,
                    level => line.iter().copied().find(|&w| levels[w as usize] == level - 1).unwrap_or(UNREACHED),
                };
            });
        });
        Ok(())
    }

    fn cuthill_mckee(
        &self,
        graph: GraphParts<'_, Self>,
        roots: Roots<'_, Self>,
        order: &mut [u32],
    ) -> Result<Vec<Sweep>> {
        with_offsets!(graph.offsets, offsets => {
            let mut traversal = Traversal {
                offsets,
                graph,
                reached: self.zeros(graph.vertices)?,
                queue: self.zeros(graph.vertices + 1)?,
            };
            match roots {
                Roots::LowestDegree => traversal.all(order),
                Roots::Given { roots, limits } => traversal.given(roots, limits, order),
            }
        })
    }

    fn cuthill_mckee_several(
        &self,
        graph: GraphParts<'_, Self>,
        calls: Vec<(Roots<'_, Self>, &mut [u32])>,
    ) -> Result<Vec<Vec<Sweep>>> {
        let small = graph.indices.len() + graph.vertices < PARALLEL_FROM;
        let mut results: Vec<_> = calls.into_iter().map(|call| (call, Ok(Vec::new()))).collect();
        let least = if small { results.len() } else { 1 };
        results.par_iter_mut().with_min_len(least.max(1)).for_each(|((roots, order), result)| {
            *result = self.cuthill_mckee(graph, *roots, order);
        });
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn components(&self, graph: GraphParts<'_, Self>, smallest: &mut [u32]) -> Result<()> {
        Error::check_dimension("number of vertices", graph.vertices, smallest.len())?;
        self.fill(UNREACHED, smallest)?;
        let mut queue: Vec<u32> = self.zeros(graph.vertices)?;
        with_offsets!(graph.offsets, offsets => for first in 0..graph.vertices {
            if smallest[first] == UNREACHED {
                smallest[first] = first as u32;
                queue[0] = first as u32;
                let (mut head, mut tail) = (0, 1);
                while head < tail {
                    let v = queue[head] as usize;
                    head += 1;
                    for &w in &graph.indices[offsets[v].to_usize()..offsets[v + 1].to_usize()] {
                        if smallest[w as usize] == UNREACHED {
                            smallest[w as usize] = first as u32;
                            queue[tail] = w;
                            tail += 1;
                        }
                    }
                }
            }
        });
        Ok(())
    }

    fn degrees(&self, offsets: OffsetsRef<'_, Self>, indices: &[u32], degrees: &mut [u32]) -> Result<bool> {
        Error::check_dimension("number of degrees", offsets.len() - 1, degrees.len())?;
        Ok(with_offsets!(offsets, offsets => scan(offsets, indices, degrees, false)))
    }

    fn envelope(&self, graph: GraphParts<'_, Self>, numbers: Option<&[u32]>) -> Result<(usize, u64)> {
        match numbers {
            None => Ok(envelope(graph, |v| v)),
            Some(numbers) => {
                Error::check_dimension("length of the numbering", graph.vertices, numbers.len())?;
                Ok(envelope(graph, |v| numbers[v as usize]))
            }
        }
    }

    fn reverse_order(&self, order: &[u32], new_to_old: &mut [u32], old_to_new: &mut [u32]) -> Result<()> {
        Error::check_dimension("length of the numbering", order.len(), new_to_old.len())?;
        Error::check_dimension("length of the inverse numbering", order.len(), old_to_new.len())?;
        for (new, (old, &v)) in new_to_old.iter_mut().zip(order.iter().rev()).enumerate() {
            *old = v;
            old_to_new[v as usize] = new as u32;
        }
        Ok(())
    }

    fn permuted_lengths(
        &self,
        offsets: OffsetsRef<'_, Self>,
        new_to_old: &[u32],
        lengths: &mut [u32],
    ) -> Result<()> {
        Error::check_dimension("number of row lengths", new_to_old.len() + 1, lengths.len())?;
        with_offsets!(offsets, offsets => {
            for (length, &old) in lengths.iter_mut().zip(new_to_old) {
                *length = (offsets[old as usize + 1].to_usize() - offsets[old as usize].to_usize()) as u32;
            }
        });
        lengths[new_to_old.len()] = 0;
        Ok(())
    }

    fn permute_rows<V: Element>(
        &self,
        a: CsrParts<'_, V, Self>,
        new_to_old: &[u32],
        old_to_new: &[u32],
        new_offsets: OffsetsRef<'_, Self>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let numbers = (new_to_old, old_to_new);
        match (a.offsets, new_offsets) {
            (OffsetsRef::Narrow(old), OffsetsRef::Narrow(new)) => {
                gather_rows(a, old, numbers, new, indices, values);
            }
            (OffsetsRef::Wide(old), OffsetsRef::Wide(new)) => {
                gather_rows(a, old, numbers, new, indices, values);
            }
            _ => return Err(mixed_widths()),
        }
        Ok(())
    }

    fn colour(&self, graph: GraphParts<'_, Self>, colours: &mut [u32]) -> Result<()> {
        Error::check_dimension("number of colours", graph.vertices, colours.len())?;
        const NONE: u32 = u32::MAX;
        self.fill(NONE, colours)?;
        with_offsets!(graph.offsets, offsets => {
            // used[c] = the last vertex that found the colour c taken.
            let mut used: Vec<u32> = Vec::new();
            for v in by_priority(graph.vertices)? {
                let at = v as usize;
                for &w in &graph.indices[offsets[at].to_usize()..offsets[at + 1].to_usize()] {
                    let taken = colours[w as usize];
                    if taken != NONE {
                        used[taken as usize] = v;
                    }
                }
                let free = used.iter().position(|&by| by != v).unwrap_or(used.len());
                if free == used.len() {
                    used.push(NONE);
                }
                colours[at] = free as u32;
            }
        });
        Ok(())
    }

    fn independent_set(&self, graph: GraphParts<'_, Self>, set: &mut [u32]) -> Result<()> {
        Error::check_dimension("length of the set", graph.vertices, set.len())?;
        self.fill(0, set)?;
        with_offsets!(graph.offsets, offsets => {
            for v in by_priority(graph.vertices)? {
                let v = v as usize;
                let line = &graph.indices[offsets[v].to_usize()..offsets[v + 1].to_usize()];
                set[v] = u32::from(line.iter().all(|&w| w as usize == v || set[w as usize] == 0));
            }
        });
        Ok(())
    }
}

/// The vertices, highest priority first.
fn by_priority(vertices: usize) -> Result<Vec<u32>> {
    let mut order: Vec<u32> = Host.zeros(vertices)?;
    order.iter_mut().zip(0..).for_each(|(v, k)| *v = k);
    order.par_sort_unstable_by_key(|&v| std::cmp::Reverse(priority(v)));
    Ok(order)
}

fn mixed_widths() -> Error {
    Error::InvalidArgument("offsets of different widths".into())
}

fn check_vertex(vertex: u32, vertices: usize) -> Result<()> {
    if (vertex as usize) < vertices {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!("vertex {vertex} of a graph with {vertices} vertices")))
}

fn breadth_first<O: Offset>(
    offsets: &[O],
    indices: &[u32],
    sources: &[u32],
    levels: &mut [u32],
    queue: &mut [u32],
) -> Result<usize> {
    let mut tail = 0;
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
        for k in head..level_end {
            let v = queue[k] as usize;
            for &w in &indices[offsets[v].to_usize()..offsets[v + 1].to_usize()] {
                if levels[w as usize] == UNREACHED {
                    levels[w as usize] = depth as u32;
                    queue[tail] = w;
                    tail += 1;
                }
            }
        }
        head = level_end;
    }
    Ok(depth)
}

struct Traversal<'a, O> {
    offsets: &'a [O],
    graph: GraphParts<'a, Host>,
    /// 1 where a vertex has a place in the order.
    reached: Vec<u8>,
    /// The order of one component, and one place more: see [`collect`].
    queue: Vec<u32>,
}

impl<O: Offset> Traversal<'_, O> {
    fn given(&mut self, roots: &[u32], limits: &[usize], mut order: &mut [u32]) -> Result<Vec<Sweep>> {
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

    fn all(&mut self, mut order: &mut [u32]) -> Result<Vec<Sweep>> {
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
        // The queue is free between sweeps; once there are too many, the rest need not be looked at.
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

    /// Orders the component of `root` into the front of `order`, which holds nothing beyond this and later components.
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
                if tail == order.len() {
                    break; // nothing is left to be found
                }
                if far {
                    self.prefetch(&queue[..tail], place);
                }
                let v = queue[place] as usize;
                let neighbours =
                    &self.graph.indices[self.offsets[v].to_usize()..self.offsets[v + 1].to_usize()];
                let found = collect(neighbours, &mut reached, &mut queue[tail..]);
                if found > 1 {
                    sort_by_degree(&mut queue[tail..tail + found], degrees);
                }
                tail += found;
                // Every later neighbour of the vertex at `place` stands before `tail`, the last of them right before
                // it where the vertex has children. A vertex without children comes after one whose last child stands
                // there. So this maximum is the bandwidth.
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

    /// Asks for what vertices further on in the queue will need: the queue tells long before, the processor cannot.
    #[inline(always)]
    fn prefetch(&self, queue: &[u32], place: usize) {
        if let Some(&v) = queue.get(place + 2 * AHEAD) {
            prefetch(self.offsets, v as usize);
        }
        if let Some(&v) = queue.get(place + AHEAD) {
            prefetch(self.graph.indices, self.offsets[v as usize].to_usize());
        }
    }
}

#[inline(always)]
fn prefetch<T>(data: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < data.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies within `data`, every x86-64 processor has the instruction, and it changes nothing
        // but the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(data.as_ptr().add(index).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, index);
}

/// Copies the neighbours that nothing reached before to the front of `room`, and returns how many they are. Without a
/// branch on that: it would be mispredicted about once a vertex, which costs more than the superfluous stores, the
/// last of them one place behind the last child.
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

/// Sorts ascending vertices by (degree, number).
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

/// All vertices by (degree, number).
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
