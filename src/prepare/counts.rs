//! The elimination tree of a graph in some order, and the number of entries in each column of its factor.
//!
//! If the order comes from dissection, it has long ranges of consecutive vertices ("stretches") that are coupled with
//! no vertex before them: the sides of separators. The tree and the counts within such a stretch depend on the stretch
//! alone, so all threads work on stretches. For the vertices between stretches, a whole tree of a stretch acts like one
//! vertex, its root, which is coupled with everything that the tree is coupled with outside; elimination creates these
//! couplings.

use super::renumbered::Renumbered;
use crate::parallel::Cut;
use crate::parallel::prelude::*;
use crate::work::look_at;
use std::ops::Range;

/// No vertex.
const NONE: u32 = u32::MAX;

/// A stretch has at least 1 / `PART` of all vertices, and at least `LEAST`; only the last one of a kind may be shorter.
const PART: usize = 64;
const LEAST: usize = 1 << 10;

/// Returns for each column of L the first row below the diagonal, `u32::MAX` if there is none, and the number of
/// entries including the diagonal.
pub(crate) fn tree_and_counts(graph: &Renumbered) -> (Vec<u32>, Vec<u32>) {
    let stretches = stretches(graph);
    let parents = tree(graph, &stretches);
    let counts = counts(graph, &parents, &stretches);
    (parents, counts)
}

/// Computes only the elimination tree.
pub(crate) fn elimination_tree(graph: &Renumbered) -> Vec<u32> {
    tree(graph, &stretches(graph))
}

/// A division of all vertices into stretches, and whether each is independent: coupled with no vertex before it.
struct Stretches {
    starts: Vec<u64>,
    independent: Vec<bool>,
    vertices: usize,
}

impl Stretches {
    fn range(&self, k: usize) -> Range<usize> {
        self.starts[k] as usize..self.starts.get(k + 1).map_or(self.vertices, |&end| end as usize)
    }

    /// The vertices of all stretches that are not independent.
    fn others(&self) -> impl Iterator<Item = u32> + '_ {
        let others = (0..self.starts.len()).filter(|&k| !self.independent[k]);
        others.flat_map(|k| self.range(k)).map(|vertex| vertex as u32)
    }
}

fn stretches(graph: &Renumbered) -> Stretches {
    let n = graph.len();
    let mut first = vec![0_u32; n];
    first.par_iter_mut().enumerate().with_min_len(LEAST).for_each(|(vertex, first)| {
        *first = graph.row(vertex).iter().fold(vertex as u32, |least, &other| least.min(other));
    });
    let least = (n / PART).max(LEAST) as u64;
    let (mut starts, mut independent) = (Vec::<u64>::new(), Vec::<bool>::new());
    for (vertex, &first) in (0_u64..).zip(&first) {
        let (start, is_independent) =
            (starts.last().copied().unwrap_or(0), independent.last().copied().unwrap_or(false));
        // The very first vertex begins a stretch.
        let begins = u64::from(first) == vertex;
        let next = match is_independent {
            true if u64::from(first) < start => Some(false),
            true => (begins && vertex - start >= least).then_some(true),
            false => begins.then_some(true),
        };
        if let Some(next) = next {
            starts.push(vertex);
            independent.push(next);
        }
    }
    Stretches { starts, independent, vertices: n }
}

/// Liu, "A compact row storage scheme for Cholesky factors using elimination trees", ACM Trans. Math. Softw. 12 (1986).
fn tree(graph: &Renumbered, stretches: &Stretches) -> Vec<u32> {
    let n = graph.len();
    let (mut parents, mut ancestors) = (vec![NONE; n], vec![NONE; n]);
    let cut = |vector| Cut::new(vector, &stretches.starts).expect("starts ascend");
    cut(&mut parents).zip(cut(&mut ancestors)).enumerate().for_each(|(k, (parents, ancestors))| {
        if stretches.independent[k] {
            let range = stretches.range(k);
            let first = range.start as u32;
            range.for_each(|row| climb(graph, row as u32, first, parents, ancestors));
        }
    });
    for row in stretches.others() {
        climb(graph, row, 0, &mut parents, &mut ancestors);
    }
    parents
}

/// Climbs from each neighbour before a row up to the row, which becomes the parent of the last vertex without one. The
/// arrays begin with vertex `first`.
fn climb(graph: &Renumbered, row: u32, first: u32, parents: &mut [u32], ancestors: &mut [u32]) {
    look_at(row as usize);
    for &neighbour in graph.row(row as usize) {
        let mut column = neighbour;
        while column < row {
            let next = std::mem::replace(&mut ancestors[(column - first) as usize], row);
            if next == NONE {
                parents[(column - first) as usize] = row;
                break;
            }
            column = next;
        }
    }
}

/// For the root of each tree, the vertices outside of its stretch with which the tree is coupled.
type Coupled = Vec<(u32, Vec<u32>)>;

fn counts(graph: &Renumbered, parents: &[u32], stretches: &Stretches) -> Vec<u32> {
    let n = graph.len();
    let mut counts = vec![0_u32; n];
    let coupled: Vec<Coupled> = {
        let parts = Cut::new(&mut counts, &stretches.starts).expect("starts ascend");
        let of_stretch = |(k, counts): (usize, &mut [u32])| {
            if stretches.independent[k] {
                of_stretch(graph, parents, stretches.range(k), counts)
            } else {
                vec![]
            }
        };
        parts.enumerate().map(of_stretch).collect()
    };
    // Numbers the roots and the vertices between stretches, so that their couplings form a small graph.
    let mut found: Vec<(u32, Vec<u32>)> = coupled.into_iter().flatten().collect();
    found.extend(stretches.others().map(|vertex| (vertex, Vec::new())));
    found.sort_unstable_by_key(|(vertex, _)| *vertex);
    let others = |k: usize| match &found[k] {
        (vertex, coupled) if coupled.is_empty() => graph.row(*vertex as usize),
        (_, coupled) => coupled,
    };
    let mut numbers = vec![NONE; n];
    found.iter().zip(0..).for_each(|((vertex, _), number)| numbers[*vertex as usize] = number);
    let above: Vec<u32> = found
        .iter()
        .map(|(vertex, _)| match parents[*vertex as usize] {
            NONE => NONE,
            parent => numbers[parent as usize],
        })
        .collect();
    let numbers = &numbers;
    let behind = |k: usize| {
        let vertex = found[k].0;
        let others = others(k).iter().filter(move |&&other| other > vertex);
        others.map(move |&other| numbers[other as usize])
    };
    let all = of_forest(&above, found.len(), behind, |_, _| {});
    for ((vertex, coupled), count) in found.iter().zip(all) {
        // The counts of roots are known from their stretches.
        if coupled.is_empty() {
            counts[*vertex as usize] = count;
        }
    }
    counts
}

/// Writes the counts of an independent stretch. Returns the vertices outside with which its trees are coupled.
fn of_stretch(graph: &Renumbered, parents: &[u32], range: Range<usize>, counts: &mut [u32]) -> Coupled {
    let (first, end) = (range.start as u32, range.end as u32);
    let local: Vec<u32> =
        parents[range.clone()].iter().map(|&p| if p < end { p - first } else { NONE }).collect();
    let mut halo: Vec<u32> =
        range.clone().flat_map(|vertex| graph.row(vertex)).copied().filter(|&other| other >= end).collect();
    halo.sort_unstable();
    halo.dedup();
    let place =
        |other: u32| halo.binary_search(&other).map_or(NONE, |place| range.len() as u32 + place as u32);
    let place = &place;
    let behind = |column: usize| {
        let vertex = first + column as u32;
        let others = graph.row(range.start + column).iter().filter(move |&&other| other > vertex);
        others.map(move |&other| if other < end { other - first } else { place(other) })
    };
    let mut coupled = Vec::new();
    let all = of_forest(&local, range.len() + halo.len(), behind, |root, rows| {
        coupled.push((first + root, rows.iter().map(|&row| halo[row as usize - range.len()]).collect()));
    });
    counts.copy_from_slice(&all);
    coupled
}

/// Counts the entries of each column from the leaves of the row subtrees (Gilbert, Ng and Peyton, "An efficient
/// algorithm to compute row and column counts for sparse Cholesky factorization", SIAM J. Matrix Anal. Appl. 15, 1994).
/// There may be more rows than columns; `behind` gives the rows after a column that it is coupled with. `tell` receives
/// each root with the rows beyond all columns that its tree is coupled with.
fn of_forest<I: Iterator<Item = u32>>(
    parents: &[u32],
    rows: usize,
    behind: impl Fn(usize) -> I,
    mut tell: impl FnMut(u32, &[u32]),
) -> Vec<u32> {
    let n = parents.len();
    let post = postorder(parents);
    // The place of each vertex's first descendant in the postorder.
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
    let mut latest = vec![NONE; rows];
    let mut previous_leaf = vec![NONE; rows];
    let mut sets: Vec<u32> = (0..n as u32).collect();
    // Where the current tree begins, and the rows beyond all columns that it has met.
    let (mut tree, mut met) = (0, Vec::new());
    for (step, &column) in post.iter().enumerate() {
        look_at(step);
        let (parent, start) = (parents[column as usize], first[column as usize]);
        if parent != NONE {
            counts[parent as usize] -= 1;
        }
        for row in behind(column as usize) {
            let known = latest[row as usize];
            let is_met = known != NONE && known >= tree;
            if is_met && start <= known {
                continue;
            }
            // This column is a leaf of the row's subtree.
            latest[row as usize] = start;
            counts[column as usize] += 1;
            let before = std::mem::replace(&mut previous_leaf[row as usize], column);
            if is_met {
                counts[common_ancestor(&mut sets, before) as usize] -= 1;
            } else if row as usize >= n {
                met.push(row);
            }
        }
        if parent == NONE {
            tell(column, &met);
            met.clear();
            tree = step as u32 + 1;
        } else {
            sets[column as usize] = parent;
        }
    }
    for column in 0..n {
        // Parents come after their children.
        if parents[column] != NONE {
            counts[parents[column] as usize] += counts[column];
        }
    }
    counts.into_iter().map(|count| count as u32).collect()
}

/// Returns the vertices with children before parents, one subtree after the other.
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

/// Returns the root of a vertex's set, and shortens the path there.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::graph::{Adjacency, Permutation};
    use crate::matrix::Csr;
    use crate::prepare::{minimum_degree, nested_dissection};

    /// Checks that stretches change no result, and returns the number of independent ones.
    fn checked(a: &Csr<f64>, order: &Permutation) -> usize {
        let graph = Renumbered::new(&Adjacency::new(a).unwrap(), order);
        let n = graph.len();
        let (parents, counts) = tree_and_counts(&graph);
        let (mut known, mut ancestors) = (vec![NONE; n], vec![NONE; n]);
        (0..n as u32).for_each(|row| climb(&graph, row, 0, &mut known, &mut ancestors));
        assert_eq!(parents, known);
        let behind = |k: usize| graph.row(k).iter().copied().filter(move |&other| other as usize > k);
        assert_eq!(counts, of_forest(&known, n, behind, |_, _| {}));
        stretches(&graph).independent.iter().filter(|&&is_independent| is_independent).count()
    }

    #[test]
    fn stretches_change_neither_the_tree_nor_counts() {
        let plane = generate::poisson2d(160, 150).unwrap();
        assert!(checked(&plane, &nested_dissection(&plane).unwrap()) > 8);
        let space = generate::poisson3d(24, 25, 26).unwrap();
        assert!(checked(&space, &nested_dissection(&space).unwrap()) > 4);
        for a in [&plane, &space] {
            assert!(checked(a, &minimum_degree(a).unwrap()) > 0);
            checked(a, &Permutation::random(a.rows(), 5).unwrap());
            checked(a, &Permutation::identity(a.rows()).unwrap());
        }
        // Several trees in a stretch, and vertices without neighbours.
        let copies = generate::along_the_diagonal(&generate::poisson2d(9, 9).unwrap(), 70).unwrap();
        assert!(checked(&copies, &Permutation::identity(copies.rows()).unwrap()) > 3);
        checked(&copies, &Permutation::random(copies.rows(), 6).unwrap());
        let none = Csr::<f64>::from_parts(0, 0, vec![0], vec![], vec![]).unwrap();
        checked(&none, &Permutation::identity(0).unwrap());
    }
}
