//! The mean width of the levels of a matrix's graph, which gives the cost of a factorisation before an order is
//! computed.

use super::Adjacency;
use std::collections::VecDeque;

/// A vertex with more than this many times the mean number of neighbours is a hub. Hubs are left out, because orders of
/// minimum degree leave dense rows out until the end, and because all vertices are close to each other through a hub.
pub(crate) const HUB: usize = 50;

/// The mean number of vertices per breadth-first level, from one end of the graph to the other; for a mesh this is
/// about the size of a separator. It is computed for the component of the first vertex, or of the middle one if the
/// former has less than half of all vertices; hubs are left out. If more than half of the vertices belong to trees that
/// hang on the rest, only the rest counts, since trees are eliminated without fill. 0 if there are no vertices.
///
/// ```
/// use residua::{generate, graph};
///
/// // Levels of a grid of 30 x 30 points are its diagonals, 59 of them.
/// let a = generate::poisson2d(30, 30)?;
/// let width = graph::level_width(&graph::Adjacency::new(&a)?);
/// assert_eq!(width, 900.0 / 59.0);
/// # Ok::<(), residua::Error>(())
/// ```
pub fn level_width(graph: &Adjacency<'_>) -> f64 {
    let vertices = graph.vertices();
    if vertices == 0 {
        return 0.0;
    }
    let most = HUB * (2 * graph.edges() / vertices + 1);
    let mut search = Search { graph, most, marks: vec![0; vertices], round: 0, queue: VecDeque::new() };
    let hanging = hanging_trees(graph);
    let hang = hanging.iter().filter(|&&hangs| hangs).count();
    if 2 * hang > vertices {
        if hang == vertices {
            return 1.0;
        }
        search
            .marks
            .iter_mut()
            .zip(&hanging)
            .filter(|(_, hangs)| **hangs)
            .for_each(|(mark, _)| *mark = LEFT_OUT);
    }
    let mut from = search.search(search.first_from(0));
    if 2 * from.reached < vertices - if 2 * hang > vertices { hang } else { 0 } {
        let middle = search.search(search.first_from(vertices / 2));
        if middle.reached > from.reached {
            from = middle;
        }
    }
    let across = search.search(from.last);
    from.reached.max(across.reached) as f64 / (from.height.max(across.height) + 1) as f64
}

/// The vertices of trees that hang on the rest of the graph: those that are removed if vertices with at most one
/// neighbour are, again and again.
fn hanging_trees(graph: &Adjacency<'_>) -> Vec<bool> {
    let vertices = graph.vertices();
    let mut degrees: Vec<u32> = (0..vertices).map(|vertex| graph.degree(vertex) as u32).collect();
    let mut leaves: Vec<u32> = (0..vertices as u32).filter(|&vertex| degrees[vertex as usize] <= 1).collect();
    let mut hangs = vec![false; vertices];
    while let Some(leaf) = leaves.pop() {
        hangs[leaf as usize] = true;
        for next in graph.neighbours(leaf as usize).filter(|&next| next != leaf as usize) {
            degrees[next] = degrees[next].saturating_sub(1);
            if degrees[next] == 1 && !hangs[next] {
                leaves.push(next as u32);
            }
        }
    }
    hangs
}

/// The mark of a vertex that no search visits.
const LEFT_OUT: u8 = u8::MAX;

/// The result of a search: the number of vertices, the number of levels after the first one, and the last vertex.
struct Found {
    reached: usize,
    height: usize,
    last: usize,
}

/// Breadth-first searches of one graph, with their memory.
struct Search<'a, 'g> {
    graph: &'a Adjacency<'g>,
    /// Maximum number of neighbours of a vertex that is not a hub.
    most: usize,
    /// The number of the last search that found each vertex.
    marks: Vec<u8>,
    round: u8,
    queue: VecDeque<(usize, usize)>,
}

impl Search<'_, '_> {
    /// The first vertex from `vertex` on that is not a hub; `vertex` if there is none.
    fn first_from(&self, vertex: usize) -> usize {
        let may = |other: usize| self.marks[other] != LEFT_OUT && self.graph.degree(other) <= self.most;
        (vertex..self.marks.len()).find(|&other| may(other)).unwrap_or(vertex)
    }

    /// A breadth-first search from `start` that does not pass through hubs.
    fn search(&mut self, start: usize) -> Found {
        self.round += 1;
        self.marks[start] = self.round;
        self.queue.push_back((start, 0));
        let mut found = Found { reached: 0, height: 0, last: start };
        while let Some((vertex, level)) = self.queue.pop_front() {
            found = Found { reached: found.reached + 1, height: level, last: vertex };
            for next in self.graph.neighbours(vertex) {
                let is_new = self.marks[next] != self.round && self.marks[next] != LEFT_OUT;
                if is_new && self.graph.degree(next) <= self.most {
                    self.marks[next] = self.round;
                    self.queue.push_back((next, level + 1));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::matrix::{Csr, Triplets};

    fn width(a: &Csr<f64>) -> f64 {
        level_width(&Adjacency::new(a).unwrap())
    }

    #[test]
    fn a_space_is_wider_than_a_plane_and_a_plane_than_a_line() {
        // From corner to corner there are 3 * 19 + 1 levels, with 20^3 points in total.
        assert_eq!(width(&generate::poisson3d(20, 20, 20).unwrap()), 8000.0 / 58.0);
        assert_eq!(width(&generate::poisson2d(400, 20).unwrap()), 8000.0 / 419.0);
        assert_eq!(width(&Csr::identity(0).unwrap()), 0.0);
        assert_eq!(width(&Csr::identity(5).unwrap()), 1.0);
    }

    #[test]
    fn trees_are_as_narrow_as_what_they_hang_on() {
        // A tree in which vertex k has the neighbour k / 2: half of the vertices are in its last level.
        let tree = |from: usize| (from..2000).map(|k| (k, k / 2, 1.0)).chain((0..2000).map(|k| (k, k, 4.0)));
        let a = |entries: Vec<(usize, usize, f64)>| {
            let (rows, columns) = entries.iter().map(|&(i, j, _)| (i as u32, j as u32)).unzip();
            let values = entries.iter().map(|entry| entry.2).collect();
            Csr::from_triplets(Triplets::from_parts(2000, 2000, rows, columns, values).unwrap()).unwrap()
        };
        assert_eq!(width(&a(tree(1).collect())), 1.0);
        // The first 100 vertices are a circle.
        let circle = (0..100).map(|k| (k, (k + 1) % 100, 1.0));
        assert!(width(&a(tree(100).chain(circle).collect())) < 3.0);
    }

    #[test]
    fn a_hub_does_not_make_a_line_wide() {
        // Row 0 and column 0 are full, and so is the diagonal: without the hub only isolated vertices are left.
        assert_eq!(width(&generate::arrow(3000).unwrap()), 1.0);
    }
}
