//! The fill-reducing ordering that is passed to a library on a device, and its separator tree.
//!
//! A library with thousands of threads has to know which unknowns can be eliminated in parallel. The elimination tree
//! shows it (Liu, "The role of elimination trees in sparse factorization", SIAM J. Matrix Anal. Appl. 11, 1990):
//! unknown k depends only on those in its subtree. Unknowns are removed from the top of the tree until it falls apart
//! into trees that can be divided between two sides. The removed unknowns are the separator of these sides, and each
//! side is cut in the same way. The result has the parts of the nested dissection from which the ordering came,
//! whichever program computed it.

use crate::backend::Elimination;
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::prepare::{Renumbered, dissection_order, elimination_tree};
use crate::scalar::Scalar;
use std::collections::BinaryHeap;

/// The maximum depth of the separator tree, and the smallest average size of its leaves.
const LEVELS: u32 = 10;
const LEAF: usize = 200;

/// The largest share, in percent, of the unknowns below a separator that one side may have, and of all unknowns that a
/// separator may have.
const HEAVIEST: usize = 60;
const WIDEST: usize = 50;

/// No vertex, or no part.
const NONE: u32 = u32::MAX;

/// An ordering of A with its separator tree; `None` if the library should compute its own.
pub(super) fn order_of_elimination<T: Scalar>(a: &Csr<T>) -> Option<Elimination> {
    let graph = Adjacency::new(a).ok()?;
    let order = dissection_order(&graph).ok()?;
    let levels = LEVELS.min((order.len() / LEAF).checked_ilog2().map_or(0, |levels| levels + 1));
    Some(in_parts(&graph, &order, levels))
}

/// Cuts the vertices into 2^`levels` - 1 parts and sorts them by part; within a part their order stays.
fn in_parts(graph: &Adjacency<'_>, order: &Permutation, levels: u32) -> Elimination {
    let found =
        if levels > 1 { parts(&elimination_tree(&Renumbered::new(graph, order)), levels) } else { None };
    let order = order.new_to_old();
    let Some(part) = found else { return Elimination { order: order.to_vec(), parts: Vec::new() } };
    let mut sizes = vec![0_u32; (1 << levels) - 1];
    part.iter().for_each(|&part| sizes[part as usize] += 1);
    let mut next: Vec<u32> = sizes
        .iter()
        .scan(0, |sum, &size| {
            let start = *sum;
            *sum += size;
            Some(start)
        })
        .collect();
    let mut sorted = vec![0; order.len()];
    for (&old, &part) in order.iter().zip(&part) {
        let place = &mut next[part as usize];
        sorted[*place as usize] = old;
        *place += 1;
    }
    Elimination { order: sorted, parts: sizes }
}

/// Returns the part of each vertex; `None` if the first separator would be too large.
fn parts(parent: &[u32], levels: u32) -> Option<Vec<u32>> {
    let n = parent.len();
    let mut size = vec![1_u32; n];
    let mut starts = vec![0_u32; n + 2];
    for (vertex, &above) in parent.iter().enumerate() {
        if above != NONE {
            size[above as usize] += size[vertex];
            starts[above as usize + 2] += 1;
        }
    }
    for vertex in 0..n {
        starts[vertex + 2] += starts[vertex + 1];
    }
    let mut children = vec![0_u32; n];
    for (vertex, &above) in parent.iter().enumerate().filter(|(_, above)| **above != NONE) {
        let place = &mut starts[above as usize + 1];
        children[*place as usize] = vertex as u32;
        *place += 1;
    }
    let below =
        |vertex: u32| &children[starts[vertex as usize] as usize..starts[vertex as usize + 1] as usize];
    let roots: Vec<u32> = (0..n as u32).filter(|&vertex| parent[vertex as usize] == NONE).collect();
    let mut part = vec![NONE; n];
    // Each item has trees, the position of their part in a binary heap (from 1), and its level.
    let mut waiting = vec![(roots, 1_u32, 0_u32)];
    while let Some((trees, place, level)) = waiting.pop() {
        // Parts are numbered leaves first, then level by level; the top separator is last.
        let number = (1 << levels) - (2 << level) + place - (1 << level);
        if level + 1 == levels {
            trees.iter().for_each(|&tree| part[tree as usize] = number);
            continue;
        }
        match cut(&trees, &size, below) {
            Some((separator, sides)) => {
                separator.iter().for_each(|&vertex| part[vertex as usize] = number);
                let [left, right] = sides;
                waiting.push((left, 2 * place, level + 1));
                waiting.push((right, 2 * place + 1, level + 1));
            }
            None if level == 0 => return None,
            None => waiting.push((trees, 2 * place, level + 1)),
        }
    }
    for vertex in (0..n).rev() {
        if part[vertex] == NONE {
            part[vertex] = part[parent[vertex] as usize];
        }
    }
    Some(part)
}

/// Removes vertices from the tops of trees, and divides the remaining trees between two sides.
fn cut<'a>(
    trees: &[u32],
    size: &[u32],
    below: impl Fn(u32) -> &'a [u32],
) -> Option<(Vec<u32>, [Vec<u32>; 2])> {
    let all: usize = trees.iter().map(|&tree| size[tree as usize] as usize).sum();
    let mut heap: BinaryHeap<(u32, u32)> = trees.iter().map(|&tree| (size[tree as usize], tree)).collect();
    let mut separator = Vec::new();
    while let Some(&(largest, tree)) = heap.peek() {
        let left = all - separator.len();
        if largest as usize * 100 <= HEAVIEST * left {
            break;
        }
        if separator.len() * 100 >= WIDEST * all {
            return None;
        }
        heap.pop();
        separator.push(tree);
        heap.extend(below(tree).iter().map(|&child| (size[child as usize], child)));
    }
    if heap.len() < 2 {
        return None;
    }
    let (mut sides, mut weights) = ([Vec::new(), Vec::new()], [0_u64; 2]);
    // Assigns the largest tree first, each to the lighter side.
    for (weight, tree) in heap.into_sorted_vec().into_iter().rev() {
        let lighter = usize::from(weights[1] < weights[0]);
        sides[lighter].push(tree);
        weights[lighter] += u64::from(weight);
    }
    Some((separator, sides))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::poisson2d;
    use crate::random::Random;

    /// Computes the parts of an ordering, and checks that no entry couples two parts unless one is above the other.
    fn checked(a: &Csr<f64>, order: Vec<u32>, levels: u32) -> Elimination {
        let graph = Adjacency::new(a).unwrap();
        let found = in_parts(&graph, &Permutation::from_new_to_old(order).unwrap(), levels);
        found.check(a.rows()).unwrap();
        if found.parts.is_empty() {
            return found;
        }
        let (leaves, count) = (1_usize << (levels - 1), found.parts.len());
        // Positions in a binary heap; the root has 1.
        let heap = |number: usize| {
            let mut first = 0;
            let mut width = leaves;
            while number >= first + width {
                (first, width) = (first + width, width / 2);
            }
            width + number - first
        };
        let mut place = vec![0; a.rows()];
        let mut at = 0;
        for (number, &size) in found.parts.iter().enumerate() {
            for &old in &found.order[at..at + size as usize] {
                place[old as usize] = heap(number);
            }
            at += size as usize;
        }
        assert_eq!((heap(0), heap(count - 1)), (leaves, 1));
        let above = |high: usize, low: usize| low >> (low.ilog2() - high.ilog2().min(low.ilog2())) == high;
        for (i, j, _) in a.iter() {
            let (i, j) = (place[i], place[j]);
            assert!(above(i.min(j), i.max(j)), "{i} {j}");
        }
        found
    }

    #[test]
    fn parts_of_any_order_need_only_what_stands_above_them() {
        let a = poisson2d(40, 30).unwrap();
        let dissected = dissection_order(&Adjacency::new(&a).unwrap()).unwrap();
        let found = checked(&a, dissected.new_to_old().to_vec(), 4);
        assert_eq!(found.parts.len(), 15);
        // Each side has a fair share of the unknowns, and the separators are a small part.
        let leaves: u32 = found.parts[..8].iter().sum();
        assert!(leaves > 700 && found.parts[14] < 120, "{:?}", found.parts);
        for seed in 0..5 {
            let mut order: Vec<u32> = (0..1200).collect();
            let mut random = Random::new(seed);
            (1..1200).rev().for_each(|k| order.swap(k, random.below(k as u64 + 1) as usize));
            checked(&a, order, 3);
        }
    }

    #[test]
    fn a_chain_in_its_own_order_has_no_parts_and_components_share_them() {
        let chain = poisson2d(500, 1).unwrap();
        assert!(checked(&chain, (0..500).collect(), 3).parts.is_empty());
        let many = crate::generate::along_the_diagonal(&poisson2d(3, 3).unwrap(), 50).unwrap();
        let found = checked(&many, (0..450).collect(), 3);
        assert_eq!((found.parts[4..].to_vec(), found.parts[..4].iter().sum::<u32>()), (vec![0; 3], 450));
    }
}
