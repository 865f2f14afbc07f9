//! Reverse Cuthill-McKee of a distributed graph: each rank gets the order of the whole graph.
//!
//! ```text
//! frontier, in order, known to all     each rank: (place, neighbour) of its own vertices that are not reached yet
//! gathered by all                      sorted by (first place, degree, number): the next frontier, the same on all
//! ```
//!
//! Each level costs one exchange of the vertices that it finds. Each rank stores an order, a degree and a mark for
//! every vertex, 9 bytes, and the neighbours of its own vertices only. Each rank sorts all vertices of a level, so only
//! reading the neighbours is divided among the ranks. After A. Azad, M. Jacquelin, A. Buluc and E. G. Ng, "The reverse
//! Cuthill-McKee algorithm in distributed-memory", IPDPS 2017, who also divide communication and sorting.

use super::Permutation;
use super::cuthill_mckee::{Sweeps, order_by};
use super::spread::told_by_all;
use crate::backend::{Communicator, FirstSweeps, Host, PEERS_ONE_IN, Roots, Space, Sweep};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::ops::Range;

/// The reverse Cuthill-McKee ordering of a square matrix with a symmetric pattern, of which this rank has the rows
/// `own`; other rows may be empty. All ranks call this together, and get the same order as
/// [`reverse_cuthill_mckee`](super::reverse_cuthill_mckee) returns for the whole matrix.
///
/// # Errors
/// If the matrix is not square; if the ranks' rows do not follow one another from the first to the last; if memory runs
/// out, and if another rank has failed.
pub fn spread_reverse_cuthill_mckee<V: Scalar, C: Communicator<Host>>(
    space: &Space<Host, C>,
    a: &Csr<V>,
    own: Range<usize>,
) -> Result<Permutation> {
    let graph = Graph::new(space, a, own)?;
    let order = order_by(&Host, &graph)?;
    Permutation::reversed(&Host, &order)
}

/// One rank's part of the graph.
struct Graph<'a, V: Scalar, C> {
    space: &'a Space<Host, C>,
    a: &'a Csr<V>,
    own: Range<usize>,
    /// The degree of every vertex, without loops.
    degrees: Vec<u32>,
    neighbours: usize,
}

/// The marks of vertices: unvisited; found by a rank on the current level; placed in the order.
const UNSEEN: u8 = 0;
const FOUND: u8 = 1;
const PLACED: u8 = 2;

impl<'a, V: Scalar, C: Communicator<Host>> Graph<'a, V, C> {
    fn new(space: &'a Space<Host, C>, a: &'a Csr<V>, own: Range<usize>) -> Result<Self> {
        let n = a.rows();
        let square = Error::check_dimension("columns of a square matrix", n, a.columns());
        let good = square.is_ok() && own.start <= own.end && own.end <= n && n < u32::MAX as usize;
        let rows = if good { own.clone() } else { 0..0 };
        let stored = rows.clone().map(|row| a.row(row).0.len()).sum::<usize>();
        // A rank with invalid input still takes part in this exchange, since the others would wait for it.
        let told = [u64::from(!good), n as u64, own.start as u64, own.end as u64, stored as u64];
        let all = told_by_all(space, told)?;
        square?;
        let mut next = 0;
        for [bad, vertices, first, end, _] in &all {
            if *bad != 0 || *vertices != n as u64 || *first != next {
                return Err(Error::InvalidArgument(format!(
                    "parts of a graph of {n} vertices, of which one has {first}..{end} of {vertices}: they follow one another"
                )));
            }
            next = *end;
        }
        Error::check_dimension("vertices of all parts", n, next as usize)?;
        let degree = |row: usize| {
            let columns = a.row(row).0;
            (columns.len() - columns.iter().filter(|&&column| column as usize == row).count()) as u32
        };
        let degrees: Vec<u32> = rows.map(degree).collect();
        let degrees = gathered(space, &degrees)?;
        Error::check_dimension("degrees of all parts", n, degrees.len())?;
        let neighbours = all.iter().map(|told| told[4] as usize).sum();
        Ok(Self { space, a, own, degrees, neighbours })
    }

    /// The order of vertices within a level.
    fn key(&self, vertex: u32) -> (u32, u32) {
        (self.degrees[vertex as usize], vertex)
    }

    /// Orders the component of `root` into the beginning of `order`.
    fn component(&self, marks: &mut [u8], root: u32, limit: usize, order: &mut [u32]) -> Result<Sweep> {
        let none =
            || Error::InvalidArgument(format!("the order has no room for the component of root {root}"));
        *order.first_mut().ok_or_else(none)? = root;
        marks[root as usize] = PLACED;
        let (mut head, mut tail) = (0, 1);
        let (mut height, mut width, mut bandwidth, mut complete) = (0, 1, 0, true);
        // All ranks notice by themselves when a component has no neighbours left.
        while complete && tail < order.len() && self.degrees[root as usize] > 0 {
            let mut children = self.children(marks, &order[head..tail], head)?;
            let mut end = tail;
            children.sort_unstable_by_key(|&[place, vertex]| (place, self.key(vertex)));
            for [place, vertex] in children {
                if marks[vertex as usize] == PLACED {
                    continue;
                }
                marks[vertex as usize] = PLACED;
                *order.get_mut(end).ok_or_else(none)? = vertex;
                bandwidth = bandwidth.max(end - place as usize);
                end += 1;
            }
            complete = bandwidth <= limit;
            if end == tail {
                break;
            }
            height += 1;
            width = width.max(end - tail);
            (head, tail) = (tail, end);
        }
        let last = order[head..tail].iter().copied().min_by_key(|&vertex| self.key(vertex)).unwrap_or(root);
        let vertices = tail;
        Ok(Sweep { root, complete, vertices, height, width, bandwidth, end: last, peers: [None; 3] })
    }

    /// The neighbours of a level that have no position yet, each with the position of the first vertex of the level
    /// that it is adjacent to. The level begins at position `head`.
    fn children(&self, marks: &mut [u8], level: &[u32], head: usize) -> Result<Vec<[u32; 2]>> {
        let mut found = Vec::new();
        for (place, &vertex) in (head as u32..).zip(level) {
            if !self.own.contains(&(vertex as usize)) {
                continue;
            }
            for &neighbour in self.a.row(vertex as usize).0 {
                if marks[neighbour as usize] == UNSEEN {
                    marks[neighbour as usize] = FOUND;
                    found.extend([place, neighbour]);
                }
            }
        }
        Ok(gathered(self.space, &found)?.as_chunks().0.to_vec())
    }

    /// The vertices to try next that have the same degree as the root, as in [`Sweep::peers`].
    fn peers(&self, sweep: &Sweep, order: &[u32]) -> [Option<u32>; 3] {
        let degree = |vertex: u32| self.degrees[vertex as usize];
        let alike = order[1..sweep.vertices].iter().copied();
        let alike: Vec<u32> = alike.filter(|&vertex| degree(vertex) == degree(sweep.root)).collect();
        let count = alike.len();
        if count > sweep.vertices / PEERS_ONE_IN {
            return [None; 3];
        }
        let peer = |k: usize, from: usize| (count >= from).then(|| alike[k]);
        [peer(count / 2, 1), peer(count / 4, 2), peer(3 * count / 4, 3)]
    }
}

/// The numbers `own` of all ranks, in the order of the ranks.
fn gathered<C: Communicator<Host>>(space: &Space<Host, C>, own: &[u32]) -> Result<Vec<u32>> {
    if C::ALONE {
        return Ok(own.to_vec());
    }
    let bytes = own.iter().flat_map(|number| number.to_le_bytes()).collect();
    let all = space.communicator().gather(bytes)?;
    let numbers = all.iter().flat_map(|bytes| bytes.as_chunks().0);
    Ok(numbers.map(|word| u32::from_le_bytes(*word)).collect())
}

impl<V: Scalar, C: Communicator<Host>> Sweeps<Host> for Graph<'_, V, C> {
    const AT_ONCE: usize = 1;

    fn vertices(&self) -> usize {
        self.degrees.len()
    }

    fn neighbours(&self) -> usize {
        self.neighbours
    }

    fn first(&self, mut order: &mut [u32]) -> Result<FirstSweeps<Host>> {
        let mut marks = vec![UNSEEN; self.degrees.len()];
        let mut roots: Vec<u32> = (0..self.degrees.len() as u32).collect();
        roots.sort_unstable_by_key(|&vertex| self.key(vertex));
        let mut sweeps = Vec::new();
        for root in roots {
            if marks[root as usize] == UNSEEN {
                let mut sweep = self.component(&mut marks, root, usize::MAX, order)?;
                sweep.peers = self.peers(&sweep, order);
                order = &mut order[sweep.vertices..];
                sweeps.push(sweep);
            }
        }
        Ok(FirstSweeps { sweeps, others: Vec::new() })
    }

    fn several(&self, calls: Vec<(Roots<'_, Host>, &mut [u32])>) -> Result<Vec<Vec<Sweep>>> {
        let sweep = |(roots, mut order): (Roots<'_, Host>, &mut [u32])| {
            let Roots::Given { roots, limits } = roots else {
                return Ok(self.first(order)?.sweeps);
            };
            let mut marks = vec![UNSEEN; self.degrees.len()];
            let mut sweeps = Vec::with_capacity(roots.len());
            for (&root, &limit) in roots.iter().zip(limits) {
                let sweep = self.component(&mut marks, root, limit, order)?;
                order = &mut order[sweep.vertices..];
                sweeps.push(sweep);
            }
            Ok(sweeps)
        };
        calls.into_iter().map(sweep).collect()
    }
}
