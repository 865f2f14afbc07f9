//! What a Cholesky factor takes in a given order, counted without making it.

use crate::error::{Error, Result};
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::parallel::Cut;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use crate::work::look_at;

/// No vertex.
const NONE: u32 = u32::MAX;

/// The size of the factor L of a symmetric matrix, and the work of its factorisation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct OrderSize {
    /// Entries of L, its diagonal among them.
    pub entries: f64,
    /// Multiplications of the Cholesky factorisation: for a column of c entries c (c + 1) / 2.
    pub multiplications: f64,
    /// Multiplications of an LU factorisation with the same pattern, its pivots on the diagonal: (c - 1)^2.
    pub multiplications_lu: f64,
}

/// What a Cholesky factorisation of a matrix with the pattern of A + A^T takes where rows are eliminated in this order.
/// Time and memory are those of a few passes over A, however large L is.
///
/// # Errors
/// On a matrix that is not square, an order of another length, or without memory.
pub fn order_size<T: Scalar>(a: &Csr<T>, order: &Permutation) -> Result<OrderSize> {
    graph_order_size(&Adjacency::new(a)?, order)
}

/// The same for a graph that is there already.
///
/// # Errors
/// On an order of another length.
pub fn graph_order_size(graph: &Adjacency<'_>, order: &Permutation) -> Result<OrderSize> {
    Ok(Counted::new(graph, order)?.size())
}

/// A graph in an order of elimination, its elimination tree, and the entries of each column of its factor.
pub(crate) struct Counted {
    pub(crate) graph: Renumbered,
    pub(crate) parents: Vec<u32>,
    pub(crate) counts: Vec<u32>,
}

impl Counted {
    /// Counts what a factor in this order has.
    ///
    /// # Errors
    /// On an order of another length.
    pub(crate) fn new(graph: &Adjacency<'_>, order: &Permutation) -> Result<Self> {
        Error::check_dimension("length of the order of elimination", graph.vertices(), order.len())?;
        let graph = Renumbered::new(graph, order);
        let parents = elimination_tree(&graph);
        let counts = column_counts(&graph, &parents);
        Ok(Self { graph, parents, counts })
    }

    pub(crate) fn size(&self) -> OrderSize {
        let mut size = OrderSize::default();
        for &count in &self.counts {
            let count = f64::from(count);
            size.entries += count;
            size.multiplications += count * (count + 1.0) / 2.0;
            size.multiplications_lu += (count - 1.0) * (count - 1.0);
        }
        size
    }
}

/// Vertices that are not worth another thread.
const FEW: usize = 1 << 12;

/// A graph whose vertices have their places in an order of elimination for numbers. What is eliminated together lies
/// together in memory then, however the matrix was numbered.
pub(crate) struct Renumbered {
    starts: Vec<u64>,
    neighbours: Vec<u32>,
}

impl Renumbered {
    pub(crate) fn new(graph: &Adjacency<'_>, order: &Permutation) -> Self {
        let old = |place: usize| order.new_to_old()[place] as usize;
        let others = |place: usize| graph.neighbours(old(place)).map(|other| order.old_to_new()[other]);
        Self::of(order.len(), |place| graph.degree(old(place)), others)
    }

    /// The same graph in another order, given by numbers of this one.
    pub(crate) fn again(&self, order: &[u32]) -> Self {
        let mut places = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&old, place)| places[old as usize] = place);
        let row = |place: usize| self.row(order[place] as usize);
        Self::of(
            order.len(),
            |place| row(place).len(),
            |place| row(place).iter().map(|&old| places[old as usize]),
        )
    }

    fn of<I: Iterator<Item = u32>>(
        n: usize,
        degree: impl Fn(usize) -> usize,
        others: impl Fn(usize) -> I + Sync,
    ) -> Self {
        let mut starts = vec![0_u64; n + 1];
        for place in 0..n {
            starts[place + 1] = starts[place] + degree(place) as u64;
        }
        let mut neighbours = vec![0_u32; starts[n] as usize];
        let rows = Cut::new(&mut neighbours, &starts[..n]).expect("sums ascend");
        rows.enumerate().with_min_len(FEW).for_each(|(place, row)| {
            row.iter_mut().zip(others(place)).for_each(|(place, other)| *place = other);
        });
        Self { starts, neighbours }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The neighbours of a vertex, in no order.
    pub(crate) fn row(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }
}

/// The first row below the diagonal of each column of L: Liu, "A compact row storage scheme for Cholesky factors using
/// elimination trees", ACM Trans. Math. Softw. 12 (1986).
///
/// `u32::MAX` where there is none.
pub(crate) fn elimination_tree(graph: &Renumbered) -> Vec<u32> {
    let n = graph.len();
    let (mut parents, mut ancestors) = (vec![NONE; n], vec![NONE; n]);
    for row in 0..n as u32 {
        look_at(row as usize);
        for &neighbour in graph.row(row as usize) {
            let mut column = neighbour;
            while column < row {
                let next = std::mem::replace(&mut ancestors[column as usize], row);
                if next == NONE {
                    parents[column as usize] = row;
                    break;
                }
                column = next;
            }
        }
    }
    parents
}

/// Children before parents, subtree by subtree.
pub(crate) fn postorder(parents: &[u32]) -> Vec<u32> {
    let n = parents.len();
    let (mut first, mut next) = (vec![NONE; n], vec![NONE; n]);
    for (child, &parent) in parents.iter().enumerate().rev() {
        if parent != NONE {
            next[child] = std::mem::replace(&mut first[parent as usize], child as u32);
        }
    }
    let mut order = Vec::with_capacity(n);
    let mut stack = Vec::new();
    for root in (0..n as u32).filter(|&root| parents[root as usize] == NONE) {
        stack.push(root);
        while let Some(&vertex) = stack.last() {
            let child = first[vertex as usize];
            if child == NONE {
                order.push(vertex);
                stack.pop();
            } else {
                first[vertex as usize] = next[child as usize];
                stack.push(child);
            }
        }
    }
    order
}

/// Entries of each column of L, the diagonal among them, from the leaves of the row subtrees: Gilbert, Ng and Peyton,
/// "An efficient algorithm to compute row and column counts for sparse Cholesky factorization", SIAM J. Matrix Anal.
/// Appl. 15 (1994).
fn column_counts(graph: &Renumbered, parents: &[u32]) -> Vec<u32> {
    let n = parents.len();
    let post = postorder(parents);
    // The first descendant of each vertex, by its place in the postorder.
    let mut first = vec![NONE; n];
    let mut counts = vec![0_i64; n];
    for (place, &leaf) in post.iter().enumerate() {
        counts[leaf as usize] = i64::from(first[leaf as usize] == NONE);
        let mut vertex = leaf;
        while vertex != NONE && first[vertex as usize] == NONE {
            first[vertex as usize] = place as u32;
            vertex = parents[vertex as usize];
        }
    }
    let mut latest = vec![NONE; n];
    let mut previous_leaf = vec![NONE; n];
    let mut sets: Vec<u32> = (0..n as u32).collect();
    for (step, &column) in post.iter().enumerate() {
        look_at(step);
        let parent = parents[column as usize];
        if parent != NONE {
            counts[parent as usize] -= 1;
        }
        for &row in graph.row(column as usize) {
            let (known, start) = (latest[row as usize], first[column as usize]);
            if row < column || (known != NONE && start <= known) {
                continue;
            }
            // A leaf of the subtree of this row.
            latest[row as usize] = start;
            counts[column as usize] += 1;
            let before = std::mem::replace(&mut previous_leaf[row as usize], column);
            if before != NONE {
                counts[common_ancestor(&mut sets, before) as usize] -= 1;
            }
        }
        if parent != NONE {
            sets[column as usize] = parent;
        }
    }
    for column in 0..n {
        // A parent stands behind its children.
        if parents[column] != NONE {
            counts[parents[column] as usize] += counts[column];
        }
    }
    counts.into_iter().map(|count| count as u32).collect()
}

/// The root of a vertex's set; the path there is shortened.
fn common_ancestor(sets: &mut [u32], vertex: u32) -> u32 {
    let mut root = vertex;
    while sets[root as usize] != root {
        root = sets[root as usize];
    }
    let mut at = vertex;
    while at != root {
        at = std::mem::replace(&mut sets[at as usize], root);
    }
    root
}
