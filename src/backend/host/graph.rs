//! Traversals on the CPU, one vertex of the queue at a time.

use super::Host;
use crate::backend::{Backend, GraphParts, GraphSteps, Roots, Sweep, UNREACHED, with_offsets};
use crate::error::{Error, Result};
use crate::scalar::Offset;

/// Up to this many children of one vertex are sorted by insertion.
const INSERTION_UP_TO: usize = 24;

impl GraphSteps for Host {
    fn bfs(&self, graph: GraphParts<'_, Self>, sources: &[u32], levels: &mut [u32]) -> Result<usize> {
        Error::check_dimension("number of levels", graph.vertices, levels.len())?;
        self.fill(UNREACHED, levels)?;
        let mut queue = self.zeros(graph.vertices)?;
        with_offsets!(graph.offsets, offsets => breadth_first(offsets, graph.indices, sources, levels, &mut queue))
    }

    fn cuthill_mckee(
        &self,
        graph: GraphParts<'_, Self>,
        roots: Roots<'_, Self>,
        order: &mut [u32],
    ) -> Result<Vec<Sweep>> {
        let reached = self.zeros(graph.vertices)?;
        let longest = graph.degrees.iter().max().map_or(0, |&d| d as usize);
        let children = self.zeros(longest + 2)?;
        with_offsets!(graph.offsets, offsets => {
            let mut traversal = Traversal { offsets, graph, reached, children };
            match roots {
                Roots::LowestDegree => traversal.all(order),
                Roots::Given(roots) => traversal.given(roots, order),
            }
        })
    }
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
    /// The vertices that the vertex at hand reaches first; one place more than it has neighbours, itself among them.
    children: Vec<u32>,
}

impl<O: Offset> Traversal<'_, O> {
    fn given(&mut self, roots: &[u32], order: &mut [u32]) -> Result<Vec<Sweep>> {
        let mut sweeps = Vec::with_capacity(roots.len());
        let mut placed = 0;
        for &root in roots {
            check_vertex(root, self.graph.vertices)?;
            if self.reached[root as usize] != 0 {
                return Err(Error::InvalidArgument(format!(
                    "root {root} lies in the component of an earlier root"
                )));
            }
            let sweep = self.component(root, &mut order[placed..])?;
            placed += sweep.vertices;
            sweeps.push(sweep);
        }
        Ok(sweeps)
    }

    fn all(&mut self, order: &mut [u32]) -> Result<Vec<Sweep>> {
        let mut sweeps = Vec::new();
        let mut placed = 0;
        for root in by_degree(self.graph.degrees)? {
            if self.reached[root as usize] == 0 {
                let sweep = self.component(root, &mut order[placed..])?;
                placed += sweep.vertices;
                sweeps.push(sweep);
                if placed == self.graph.vertices {
                    break;
                }
            }
        }
        Ok(sweeps)
    }

    fn component(&mut self, root: u32, order: &mut [u32]) -> Result<Sweep> {
        if order.is_empty() {
            return Err(Error::InvalidArgument("the order has no room for the root's component".into()));
        }
        let degrees = self.graph.degrees;
        order[0] = root;
        self.reached[root as usize] = 1;
        let (mut head, mut tail) = (0, 1);
        let mut sweep = Sweep { root, vertices: 0, height: 0, width: 1, last: 1, end: root, bandwidth: 0 };
        loop {
            let level_end = tail;
            for place in head..level_end {
                let found = self.visit(order[place]);
                if found == 0 {
                    continue;
                }
                let children = &mut self.children[..found];
                sort_by_degree(children, degrees);
                let Some(room) = order.get_mut(tail..tail + found) else {
                    return Err(Error::InvalidArgument(
                        "the order has no room for the root's component".into(),
                    ));
                };
                room.copy_from_slice(children);
                tail += found;
                // Every later neighbour of the vertex at `place` stands before `tail`, and every neighbour of a
                // vertex without children stands before a child of an earlier vertex: this maximum is the bandwidth.
                sweep.bandwidth = sweep.bandwidth.max(tail - 1 - place);
            }
            if tail == level_end {
                break;
            }
            sweep.height += 1;
            sweep.width = sweep.width.max(tail - level_end);
            head = level_end;
        }
        sweep.vertices = tail;
        sweep.last = tail - head;
        sweep.end =
            order[head..tail].iter().copied().min_by_key(|&v| (degrees[v as usize], v)).unwrap_or(root);
        Ok(sweep)
    }

    /// Collects the neighbours of `v` that nothing reached before, and returns how many. Without a branch on that:
    /// it would be mispredicted about once a vertex, which costs more than the superfluous stores.
    #[inline(always)]
    fn visit(&mut self, v: u32) -> usize {
        let v = v as usize;
        let (start, end) = (self.offsets[v].to_usize(), self.offsets[v + 1].to_usize());
        let mut found = 0;
        for &w in &self.graph.indices[start..end] {
            let reached = &mut self.reached[w as usize];
            self.children[found] = w;
            found += usize::from(*reached == 0);
            *reached = 1;
        }
        found
    }
}

/// Sorts ascending vertices by (degree, number).
#[inline(always)]
fn sort_by_degree(vertices: &mut [u32], degrees: &[u32]) {
    if vertices.len() <= INSERTION_UP_TO {
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
    } else {
        vertices.sort_unstable_by_key(|&v| (degrees[v as usize], v));
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
