//! Aggregates: groups of nodes, each of which becomes one node of the next level.

use super::independent::independent_at_distance_two;
use crate::backend::{Backend, GroupingSteps, NO_GROUP};
use crate::error::Result;
use crate::matrix::Csr;

/// The number of times that nodes without an aggregate try to join that of a neighbour.
const SWEEPS: usize = 3;

/// The first pass leaves some nodes without an aggregate. If they are at least this percentage of the nodes, and at
/// least half of the couplings are strong, they join neighbouring aggregates, and no second pass makes aggregates of
/// them. In three dimensions the first pass leaves 37 of 100 nodes, in two dimensions 30. Without a second pass the
/// levels of a three-dimensional grid have a fifth fewer entries, and conjugate gradients take at most one iteration
/// more. If fewer couplings are strong, the problem is anisotropic, and the small aggregates of a second pass follow
/// its directions better: without it, tetrahedra with coefficients over two decades take two fifths more iterations
/// (docs/internals/multigrid/decisions.md).
const MANY_LEFT: u64 = 36;

/// The aggregate of each node; [`NO_GROUP`] for nodes without strong couplings, whose error smoothing alone reduces.
#[derive(Debug)]
pub(super) struct Aggregates<B: Backend> {
    pub(super) of: B::Vec<u32>,
    pub(super) count: usize,
    /// The number of aggregates of one node that is not stiff but has only stiff neighbours.
    pub(super) alone: usize,
}

impl<B: GroupingSteps> Aggregates<B> {
    /// Each member of an independent set at distance two forms an aggregate with its neighbours. The same is done once
    /// more among the remaining nodes (which have a neighbour in an aggregate), for groups of at least three, unless so
    /// many remain that [`MANY_LEFT`] excludes it. The others join the aggregate to which they are coupled most
    /// strongly, the smaller one if two are equal; they avoid an aggregate that has twice the mean size already, if
    /// there is another.
    ///
    /// `graph` has the strong couplings in both directions, and `couplings` is the number of all couplings of the
    /// matrix; without it there is always a second pass. Only counts are used for decisions, so that all backends
    /// decide alike. Each of the `stiff` nodes, which have no neighbours in `graph`, becomes an aggregate by itself,
    /// numbered after the others. So does each of the `hubs`, but nodes that are in no other aggregate may join it.
    pub(super) fn new(
        backend: &B,
        graph: &Csr<f32, B>,
        couplings: Option<usize>,
        stiff: Option<&B::Slice<u32>>,
        hubs: Option<&B::Slice<u32>>,
    ) -> Result<Self> {
        let (n, pattern) = (graph.rows(), graph.parts().pattern());
        let mut of = backend.buffer::<u32>(n)?;
        backend.fill(NO_GROUP, &mut of)?;
        let mut flags = backend.buffer(n + 1)?;
        let mut places = backend.buffer(n + 1)?;
        let mut count = 0;
        let alone_in_one = |nodes: &B::Slice<u32>, of: &mut B::Vec<u32>, count: &mut u32| -> Result<()> {
            let mut own = backend.buffer::<u32>(B::len(nodes))?;
            backend.sequence::<u32>(&mut own)?;
            backend.add_constant(*count, &mut own)?;
            backend.scatter::<u32, u32>(&own, nodes, of)?;
            *count += B::len(nodes) as u32;
            Ok(())
        };
        // A node whose neighbours are all hubs must not be the root of a group.
        let mut least = 0;
        if let Some(hubs) = hubs {
            alone_in_one(hubs, &mut of, &mut count)?;
            least = 1;
        }
        let mostly_strong = couplings.is_some_and(|all| 2 * graph.nonzeros() >= all);
        for neighbours in [least, 2] {
            backend.ungrouped(pattern, &of, &mut flags)?;
            if neighbours > 1 && mostly_strong {
                backend.exclusive_scan(&flags, &mut places)?;
                let left = backend.value(B::part(&places, n..n + 1))?;
                if 100 * u64::from(left) >= MANY_LEFT * n as u64 {
                    break;
                }
            }
            let state = independent_at_distance_two(backend, pattern, B::part(&flags, 0..n))?;
            backend.group_roots(pattern, &of, &state, neighbours, &mut flags)?;
            backend.exclusive_scan(&flags, &mut places)?;
            backend.gather_groups(pattern, &flags, &places, count, &mut of)?;
            count += backend.value(B::part(&places, n..n + 1))?;
        }
        let mut sizes = backend.buffer(count as usize + 1)?;
        let mut before = backend.buffer(n)?;
        let mut left = 0;
        for _ in 0..SWEEPS {
            backend.group_sizes(&of, None, &mut sizes)?;
            backend.copy(&of, &mut before)?;
            backend.join_groups(graph.parts(), &before, &sizes, &mut of)?;
            backend.ungrouped(pattern, &of, &mut flags)?;
            backend.exclusive_scan(&flags, &mut places)?;
            left = backend.value(B::part(&places, n..n + 1))?;
            if left == 0 {
                break;
            }
        }
        backend.number_groups(&flags, &places, count, &mut of)?;
        count += left;
        let mut alone = 0;
        if let Some(stiff) = stiff {
            let (mut sizes, mut of_size) = (backend.buffer(count as usize + 1)?, backend.buffer(2)?);
            backend.group_sizes(&of, None, &mut sizes)?;
            backend.histogram(B::part(&sizes, 0..count as usize), &mut of_size)?;
            alone = backend.value(B::part(&of_size, 1..2))?;
            alone_in_one(stiff, &mut of, &mut count)?;
        }
        Ok(Self { of, count: count as usize, alone: alone as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::generate;
    use crate::multigrid::stiff::hubs;
    use crate::multigrid::strength::strong_couplings;

    #[test]
    fn hubs_are_by_themselves_and_those_with_no_other_neighbour_join_them() {
        // A path of 300 nodes, all of them neighbours of node 300, which has 200 further neighbours without other
        // neighbours.
        let mut entries = crate::matrix::Triplets::new(501, 501).unwrap();
        let mut couple = |i: usize, j: usize, size: f64| {
            for (row, column, value) in [(i, j, -size), (j, i, -size), (i, i, size), (j, j, size)] {
                entries.push(row, column, value).unwrap();
            }
        };
        (0..299).for_each(|i| couple(i, i + 1, 1.0));
        (0..300).for_each(|i| couple(i, 300, 0.9));
        (301..501).for_each(|i| couple(i, 300, 0.9));
        let a = crate::assemble::to_csr(&Host, entries).unwrap();
        let hubs = hubs(&Host, &a, 501).unwrap().unwrap();
        assert_eq!(hubs, [300]);
        let graph = strong_couplings(&Host, &a, None, 0.25, Some(&hubs)).unwrap();
        assert!(graph.row(300).0.is_empty() && graph.row(0).0 == [1, 300]);
        let Aggregates { of, count, .. } = Aggregates::new(&Host, &graph, None, None, Some(&hubs)).unwrap();
        assert!((301..501).all(|leaf| of[leaf] == of[300]));
        assert!((0..300).all(|node| of[node] != of[300] && (of[node] as usize) < count));
        assert!(hubs_of(&generate::poisson3d_27(12, 12, 12).unwrap()).is_none());
    }

    fn hubs_of(a: &Csr<f64>) -> Option<Vec<u32>> {
        hubs(&Host, a, (0..a.rows()).map(|row| a.row(row).0.len() as u32).max().unwrap()).unwrap()
    }

    #[test]
    fn many_who_are_left_join_others_where_most_couplings_are_strong() {
        for (a, joined, what) in [
            (generate::poisson3d(20, 20, 20), true, "7 points"),
            (generate::jumping([20, 20, 20], 1e6, 4, 1), true, "jumps"),
            (generate::poisson2d(60, 60), false, "few are left in the plane"),
            (generate::anisotropic3d(20, 20, 20, 1e-3), false, "few couplings are strong"),
        ] {
            let a = a.unwrap();
            let graph = strong_couplings(&Host, &a, None, 0.25, None).unwrap();
            let [always, counted] = [None, Some(a.nonzeros() - a.rows())]
                .map(|couplings| Aggregates::new(&Host, &graph, couplings, None, None).unwrap());
            assert!(counted.of.iter().all(|&group| group != NO_GROUP), "{what}");
            if joined {
                assert!(
                    4 * counted.count < 3 * always.count,
                    "{what}: {} of {}",
                    counted.count,
                    always.count
                );
            } else {
                assert_eq!(counted.of, always.of, "{what}");
            }
        }
    }
}
