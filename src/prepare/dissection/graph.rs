//! The graphs that dissection works on. They are copies with weights, which are cut into smaller and smaller parts.

use crate::parallel::join;

/// An undirected graph without loops. Each edge is stored at both of its ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    /// Where the neighbours of each vertex start, and the total number of neighbours.
    pub(super) starts: Vec<usize>,
    pub(super) neighbours: Vec<u32>,
    /// The number of original edges that each edge stands for; empty if it is 1 for all.
    pub(super) ties: Vec<u32>,
    /// The number of original vertices that each vertex stands for.
    pub(super) weights: Vec<u32>,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    pub(super) fn row(&self, vertex: u32) -> &[u32] {
        &self.neighbours[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }

    pub(super) fn degree(&self, vertex: usize) -> usize {
        self.starts[vertex + 1] - self.starts[vertex]
    }

    /// The total weight.
    pub(super) fn total(&self) -> u64 {
        self.weights.iter().map(|&weight| u64::from(weight)).sum()
    }

    /// Returns the two graphs that remain without the separator, each with the names of its vertices.
    pub(super) fn cut(&self, sides: &[u8], names: &[u32]) -> [(Graph, Vec<u32>); 2] {
        let mut counts = [0_usize; 3];
        let mut edges = [0_usize; 3];
        let mut local = vec![0_u32; self.len()];
        for (vertex, &side) in sides.iter().enumerate() {
            local[vertex] = counts[side as usize] as u32;
            counts[side as usize] += 1;
            edges[side as usize] += self.degree(vertex);
        }
        let side = |side: usize| {
            let mut part = Graph {
                starts: Vec::with_capacity(counts[side] + 1),
                neighbours: Vec::with_capacity(edges[side]),
                ties: Vec::with_capacity(if self.ties.is_empty() { 0 } else { edges[side] }),
                weights: Vec::with_capacity(counts[side]),
            };
            let mut own = Vec::with_capacity(counts[side]);
            part.starts.push(0);
            for vertex in (0..self.len()).filter(|&vertex| sides[vertex] as usize == side) {
                let range = self.starts[vertex]..self.starts[vertex + 1];
                for at in range {
                    let other = self.neighbours[at] as usize;
                    // There is no edge between the sides.
                    if sides[other] as usize == side {
                        part.neighbours.push(local[other]);
                        part.ties.extend(self.ties.get(at));
                    }
                }
                part.starts.push(part.neighbours.len());
                part.weights.push(self.weights[vertex]);
                own.push(names[vertex]);
            }
            (part, own)
        };
        let (first, second) = join(|| side(0), || side(1));
        [first, second]
    }

    /// Returns the graph of some vertices in ascending order, which must not have other neighbours.
    pub(super) fn part(&self, vertices: &[u32]) -> Graph {
        let mut part = Graph::default();
        part.starts.push(0);
        for &vertex in vertices {
            let local = |other: &u32| vertices.binary_search(other).ok().map(|number| number as u32);
            part.neighbours.extend(self.row(vertex).iter().filter_map(local));
            part.starts.push(part.neighbours.len());
            part.weights.push(self.weights[vertex as usize]);
        }
        part
    }
}
