//! Levels, components, orderings and permutations against sequential twins that share no code with the library.

#[path = "../common/graph.rs"]
mod cases;
#[macro_use]
#[path = "../common/on_host.rs"]
mod on_host;
#[path = "../common/random.rs"]
mod random;
mod twins;

use proptest::prelude::*;
use residua::backend::{Communicator, GraphSteps, OrderingPrice, Parts, Roots, Space, UNREACHED};
use residua::generate::{RmatKind, poisson3d, rmat};
use residua::graph::{
    Adjacency, Permutation, SpreadGraph, bandwidth, bandwidth_permuted, bfs, bfs_from, connected_components,
    ordering, permute_symmetric, predicted_benefit, profile, profile_permuted, pseudo_peripheral,
    reverse_cuthill_mckee, spread_reverse_cuthill_mckee, vertex_parts,
};
use residua::spread::even_parts;
use residua::{Error, Host};
use std::collections::BTreeSet;
use twins::*;

/// Compares everything for one matrix.
fn check(n: usize, entries: &Entries) {
    let a = csr(n, entries);
    let adjacent = neighbours(n, entries);
    let graph = Adjacency::new(&a).unwrap();
    assert_eq!(graph.vertices(), n);
    assert_eq!(graph.edges(), adjacent.iter().map(BTreeSet::len).sum::<usize>() / 2);
    let symmetric = entries.keys().all(|&(i, j)| entries.contains_key(&(j, i)));
    assert_eq!(graph.is_borrowed(), symmetric, "symmetry of the pattern");
    if symmetric {
        let known = Adjacency::from_symmetric(&a).unwrap();
        assert!(
            known.is_borrowed() && known.parts().degrees == graph.parts().degrees,
            "known to be symmetric"
        );
    }
    for (v, set) in adjacent.iter().enumerate() {
        assert_eq!(graph.degree(v), set.len(), "degree of {v}");
        assert!(graph.neighbours(v).eq(set.iter().copied()), "neighbours of {v}");
    }

    let components = connected_components(&graph).unwrap();
    let labels = twin_component_labels(&adjacent);
    assert_eq!(components.labels(), labels);
    assert_eq!(components.sizes().iter().sum::<usize>(), n);
    for (c, &size) in components.sizes().iter().enumerate() {
        assert_eq!(size, labels.iter().filter(|&&l| l as usize == c).count());
    }

    for source in [0, n / 2, n.saturating_sub(1)].into_iter().filter(|&s| s < n) {
        check_levels(&graph, &adjacent, source);
        let found = pseudo_peripheral(&graph, source as u32).unwrap();
        let levels = twin_levels(&adjacent, &[found.vertex() as usize]);
        let reached = levels.iter().filter(|&&l| l != UNREACHED);
        assert_eq!(found.eccentricity(), *reached.max().unwrap() as usize);
        assert_eq!(levels[found.other_end() as usize] as usize, found.eccentricity());
        assert!(found.eccentricity() >= bfs(&graph, source as u32).unwrap().count() - 1);
        assert_eq!(found.width(), bfs(&graph, found.vertex()).unwrap().width());
    }
    if n > 0 {
        let both = bfs_from(&graph, &[0, n as u32 - 1, 0]).unwrap();
        assert_eq!(both.as_slice(), twin_levels(&adjacent, &[0, n - 1]));
    }

    let stored = 2 * graph.edges() + (0..n).filter(|&v| entries.contains_key(&(v, v))).count();
    let rcm = reverse_cuthill_mckee(&a).unwrap();
    assert_eq!(rcm.new_to_old(), twin_reverse_cuthill_mckee(stored, &adjacent));

    assert_eq!(bandwidth(&a), twin_bandwidth(entries));
    assert_eq!(profile(&a).unwrap(), twin_profile(&adjacent));
    let permuted = twin_permuted(entries, rcm.old_to_new());
    let b = permute_symmetric(&a, &rcm).unwrap();
    assert_eq!(entries_of(&b), permuted);
    assert_eq!(b.nonzeros(), a.nonzeros());
    assert_eq!(bandwidth_permuted(&a, &rcm).unwrap(), twin_bandwidth(&permuted));
    assert_eq!(profile_permuted(&a, &rcm).unwrap(), twin_profile(&neighbours(n, &permuted)));
    assert_eq!(entries_of(&permute_symmetric(&b, &rcm.clone().into_inverse()).unwrap()), *entries);

    let choice = ordering(&a).unwrap();
    let after = twin_permuted(entries, choice.permutation().old_to_new());
    assert_eq!(choice.bandwidth_before(), twin_bandwidth(entries));
    assert_eq!(choice.bandwidth_after(), twin_bandwidth(&after));
    assert_eq!(choice.profile_before(), twin_profile(&adjacent));
    assert_eq!(choice.profile_after(), twin_profile(&neighbours(n, &after)));
    assert_eq!(choice.bandwidth_rcm(), twin_bandwidth(&permuted));
    assert!(choice.bandwidth_after() <= choice.bandwidth_before());
    assert!(!choice.keeps_natural_order() || choice.permutation().is_identity());
}

fn check_levels(graph: &Adjacency<'_>, adjacent: &[BTreeSet<usize>], source: usize) {
    let levels = bfs(graph, source as u32).unwrap();
    let expected = twin_levels(adjacent, &[source]);
    assert_eq!(levels.as_slice(), expected);
    let parents = levels.parents(graph).unwrap();
    for v in 0..adjacent.len() {
        match levels.level_of(v) {
            None => {
                assert_eq!(parents[v], UNREACHED);
                assert!(adjacent[v].iter().all(|&w| levels.level_of(w).is_none()));
            }
            Some(0) => assert_eq!((v, parents[v] as usize), (source, source)),
            Some(level) => {
                let smallest = adjacent[v].iter().find(|&&w| expected[w] == level - 1).unwrap();
                assert_eq!(parents[v] as usize, *smallest, "parent of {v}");
                assert!(
                    adjacent[v].iter().all(|&w| expected[w].abs_diff(level) <= 1),
                    "an edge skips a level"
                );
            }
        }
    }
    let by_level: Vec<u32> = (0..levels.count()).flat_map(|k| levels.level(k).to_vec()).collect();
    assert_eq!(by_level.len(), levels.reached());
    for k in 0..levels.count() {
        assert!(!levels.level(k).is_empty() && levels.level(k).is_sorted());
        assert!(levels.level(k).iter().all(|&v| expected[v as usize] as usize == k));
    }
}

#[test]
fn no_vertex_and_one_vertex() {
    check(0, &Entries::new());
    check(1, &Entries::new());
    check(1, &Entries::from([((0, 0), 2.0)]));
}

#[test]
fn star_from_its_centre_and_as_an_arrow() {
    let (n, entries) = undirected(50, (1..50).map(|k| (0, k)));
    check(n, &entries);
    let (n, entries) = undirected(50, (0..50).map(|k| (k, 49)).chain((0..50).map(|k| (k, k))));
    check(n, &entries);
}

#[test]
fn two_cliques_and_a_bridge() {
    let clique = |first: usize| (first..first + 8).flat_map(move |i| (first..i).map(move |j| (i, j)));
    let (n, entries) = undirected(16, clique(0).chain(clique(8)).chain([(3, 12)]));
    check(n, &entries);
    let a = csr(n, &entries);
    let graph = Adjacency::new(&a).unwrap();
    assert_eq!(connected_components(&graph).unwrap().count(), 1);
    assert_eq!(pseudo_peripheral(&graph, 3).unwrap().eccentricity(), 3);
}

#[test]
fn self_loops_are_no_edges() {
    let (n, mut entries) = undirected(9, [(0, 4), (4, 8), (2, 3)]);
    check(n, &entries);
    let without = reverse_cuthill_mckee(&csr(n, &entries)).unwrap();
    entries.extend((0..9).map(|i| ((i, i), 1.0)));
    check(n, &entries);
    assert_eq!(reverse_cuthill_mckee(&csr(n, &entries)).unwrap(), without);
    // A diagonal in some rows only must not change the degrees.
    entries.retain(|&(i, j), _| i != j || i % 2 == 0);
    check(n, &entries);
    assert_eq!(reverse_cuthill_mckee(&csr(n, &entries)).unwrap(), without);
}

#[test]
fn disconnected_graphs_and_empty_rows() {
    let (n, entries) =
        undirected(40, (0..12).map(|k| (3 * k, 3 * k + 3)).chain((20..30).map(|k| (k, k + 10))));
    check(n, &entries);
    check(30, &Entries::new());
}

#[test]
fn unsymmetric_patterns_through_a_plus_a_transposed() {
    // A directed cycle, and an upper triangle.
    check(7, &(0..7).map(|i| ((i, (i + 3) % 7), 1.0)).collect());
    check(12, &(0..12).flat_map(|i| (i..12).step_by(3).map(move |j| ((i, j), 1.0))).collect());
    // The same number of entries on both sides of the diagonal, so that counting alone would not find the asymmetry.
    check(4, &Entries::from([((0, 1), 1.0), ((1, 2), 1.0), ((2, 3), 1.0), ((3, 0), 1.0)]));
}

#[test]
fn the_documented_example() {
    let (_, entries) = undirected(5, [(0, 3), (2, 3), (2, 4), (0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
    assert_eq!(reverse_cuthill_mckee(&csr(5, &entries)).unwrap().new_to_old(), [4, 2, 3, 0, 1]);
}

#[test]
fn long_path_shuffled_becomes_tridiagonal() {
    let n = 100_000;
    // 7919 is coprime to n: k -> 7919 k mod n visits every vertex.
    let name = |k: usize| k * 7919 % n;
    let (n, entries) = undirected(n, (0..n - 1).map(|k| (name(k), name(k + 1))));
    let a = csr(n, &entries);
    let p = reverse_cuthill_mckee(&a).unwrap();
    assert_eq!(bandwidth_permuted(&a, &p).unwrap(), 1);
    assert_eq!(profile_permuted(&a, &p).unwrap(), n as u64 - 1);
    let graph = Adjacency::new(&a).unwrap();
    let levels = bfs(&graph, name(0) as u32).unwrap();
    assert_eq!(levels.count(), n);
    assert!((0..n).all(|k| levels.level_of(name(k)) == Some(k as u32)));
    assert_eq!(pseudo_peripheral(&graph, name(n / 3) as u32).unwrap().eccentricity(), n - 1);
    assert_eq!(bandwidth(&permute_symmetric(&a, &p).unwrap()), 1);
}

fn grid(nx: usize, ny: usize) -> (usize, Entries) {
    let at = move |x: usize, y: usize| y * nx + x;
    undirected(
        nx * ny,
        (0..ny).flat_map(move |y| {
            (0..nx).flat_map(move |x| {
                let right = (x + 1 < nx).then(|| (at(x, y), at(x + 1, y)));
                let up = (y + 1 < ny).then(|| (at(x, y), at(x, y + 1)));
                [Some((at(x, y), at(x, y))), right, up].into_iter().flatten()
            })
        }),
    )
}

#[test]
fn a_grid_in_its_natural_order_may_keep_it() {
    let (n, entries) = grid(7, 31);
    check(n, &entries);
    let choice = ordering(&csr(n, &entries)).unwrap();
    assert_eq!(choice.bandwidth_before(), 7);
    assert!(choice.bandwidth_rcm() >= 7 && choice.bandwidth_after() <= 7);
}

#[test]
fn large_shuffled_graphs_agree_with_the_twins() {
    // Enough vertices for several other roots, and for threads; two components.
    let (n, entries) = grid(75, 140);
    let other = grid(31, 41).1;
    let total = n + 31 * 41;
    let name = |k: usize| k * 7919 % total;
    let both = entries.keys().copied().chain(other.keys().map(|&(i, j)| (i + n, j + n)));
    let (_, entries) = undirected(total, both.map(|(i, j)| (name(i), name(j))));
    check(total, &entries);
}

#[test]
fn the_same_bits_with_one_and_two_threads() {
    // Large enough for several chunks, unsymmetric, so that A + A^T is built in parallel too.
    let (n, mut entries) = grid(180, 170);
    let name = |k: usize| k * 7919 % n;
    entries = entries.iter().map(|(&(i, j), &v)| ((name(i), name(j)), v)).collect();
    entries.retain(|&(i, j), _| (i + 2 * j) % 11 != 0 || i == j);
    let a = csr(n, &entries);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let graph = Adjacency::new(&a).unwrap();
            let choice = ordering(&a).unwrap();
            let b = permute_symmetric(&a, choice.permutation()).unwrap();
            let levels = bfs(&graph, 5).unwrap();
            let parents = levels.parents(&graph).unwrap();
            let x: Vec<f64> = (0..n).map(|k| k as f64).collect();
            let moved = choice.permutation().apply(&x).unwrap();
            assert_eq!(choice.permutation().apply_inverse(&moved).unwrap(), x);
            (
                choice.into_permutation(),
                entries_of(&b),
                levels,
                parents,
                connected_components(&graph).unwrap(),
                moved,
            )
        })
    };
    let one = run(1);
    assert!(one == run(2), "two threads");
    assert!(one == run(5), "five threads");
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let rectangle = rectangular(2, 3, &Entries::from([((0, 2), 1.0)]));
    assert!(matches!(Adjacency::new(&rectangle), Err(Error::Dimension { expected: 2, got: 3, .. })));
    assert!(reverse_cuthill_mckee(&rectangle).is_err() && ordering(&rectangle).is_err());
    assert_eq!(bandwidth(&rectangle), 2);
    let a = csr(3, &Entries::from([((0, 2), 1.0)]));
    let short = Permutation::identity(2).unwrap();
    assert!(permute_symmetric(&a, &short).is_err() && permute_symmetric(&rectangle, &short).is_err());
    assert!(bandwidth_permuted(&a, &short).is_err() && profile_permuted(&a, &short).is_err());
    assert!(short.apply(&[1.0]).is_err() && short.then(&Permutation::identity(3).unwrap()).is_err());
    let graph = Adjacency::new(&a).unwrap();
    assert!(bfs(&graph, 3).is_err() && pseudo_peripheral(&graph, 3).is_err());
    let message = |p: Result<Permutation, Error>| p.unwrap_err().to_string();
    assert_eq!(
        message(Permutation::from_new_to_old(vec![0, 2, 2])),
        "invalid argument: permutation: entries 1 and 2 are both 2"
    );
    assert_eq!(
        message(Permutation::from_old_to_new(vec![0, 3, 2])),
        "invalid argument: permutation: entry 1 is 3, but there are 3 numbers from 0"
    );
}

cases::each_case!(on_host);

fn pattern(symmetric: bool) -> impl Strategy<Value = (usize, Entries)> {
    (1usize..60).prop_flat_map(move |n| {
        // Few edges leave many components, many edges one; the giant row is a hub.
        (Just(n), 0..3 * n, any::<bool>()).prop_flat_map(move |(n, edges, hub)| {
            prop::collection::vec((0..n, 0..n), edges).prop_map(move |pairs| {
                let hubs = (0..n).filter(|_| hub).map(|k| (n / 2, k));
                let pairs = pairs.into_iter().chain(hubs);
                if symmetric {
                    undirected(n, pairs)
                } else {
                    (n, pairs.map(|(i, j)| ((i, j), (i * n + j) as f64)).collect())
                }
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn symmetric_patterns_agree_with_the_twins((n, entries) in pattern(true)) {
        check(n, &entries);
    }

    #[test]
    fn unsymmetric_patterns_agree_with_the_twins((n, entries) in pattern(false)) {
        check(n, &entries);
    }

    #[test]
    fn grids_are_found_in_any_order(x in 2_usize..15, y in 2_usize..12, z in 1_usize..9, seed in any::<u32>()) {
        cases::check_grid_order(&Host, [x, y, z], seed.into());
        cases::check_grid_order(&Host, [z, x, y], seed.into());
    }

    #[test]
    fn permutations_compose_and_invert(keys in prop::collection::vec((any::<u32>(), any::<u32>()), 0..200)) {
        let n = keys.len();
        let sorted = |by: fn(&(u32, u32)) -> u32| {
            let mut order: Vec<u32> = (0..n as u32).collect();
            order.sort_by_key(|&k| by(&keys[k as usize]));
            Permutation::from_new_to_old(order).unwrap()
        };
        let (p, q) = (sorted(|k| k.0), sorted(|k| k.1));
        let x: Vec<u32> = (0..n as u32).collect();
        let px = p.apply(&x).unwrap();
        prop_assert_eq!(&px, p.new_to_old());
        prop_assert_eq!(p.apply_inverse(&px).unwrap(), x.clone());
        prop_assert_eq!(p.then(&q).unwrap().apply(&x).unwrap(), q.apply(&px).unwrap());
        prop_assert!(p.then(&p.clone().into_inverse()).unwrap().is_identity());
        prop_assert_eq!(Permutation::from_old_to_new(p.old_to_new().to_vec()).unwrap(), p);
    }
}

/// Loading kernels takes longer than one short solve can save.
#[test]
fn loading_kernels_for_one_short_solve_does_not_pay() {
    let a = poisson3d(24, 24, 24).unwrap();
    let shuffled = permute_symmetric(&a, &Permutation::random(a.rows(), 1).unwrap()).unwrap();
    let loaded = OrderingPrice::GPU;
    let mut to_be_loaded = loaded;
    to_be_loaded.start += 0.02;
    let pays = |a, price, products| {
        let benefit = predicted_benefit(a, price, products).unwrap();
        assert_eq!(benefit.pays(), benefit.gain() > benefit.price());
        benefit.pays()
    };
    assert!(!pays(&shuffled, loaded, 100));
    assert!(pays(&shuffled, loaded, 10_000) && !pays(&shuffled, to_be_loaded, 10_000));
    assert!(pays(&shuffled, to_be_loaded, 1_000_000));
    assert!(!pays(&a, loaded, 100_000), "in its natural order");
}

/// A 7-point mesh of k^3 takes about 2.3 k products: earlier, shuffled ones of 80^3 and 100^3 were not ordered, and
/// took twice the time.
#[test]
fn a_shuffled_mesh_pays_for_its_ordering_on_a_cpu_and_one_in_order_never() {
    for (k, expected) in [(20, false), (80, true)] {
        let a = poisson3d(k, k, k).unwrap();
        let shuffled = permute_symmetric(&a, &Permutation::random(a.rows(), 1).unwrap()).unwrap();
        let products = 23 * k / 10;
        let pays = |a, products| predicted_benefit(a, OrderingPrice::CPU, products).unwrap().pays();
        assert_eq!(pays(&shuffled, products), expected, "{k}^3");
        assert!(!pays(&a, 10 * products), "{k}^3 in its natural order");
    }
}

#[test]
fn two_roots_in_one_component_are_refused() {
    let a = csr(3, &undirected(3, [(0, 1), (1, 2)]).1);
    let (graph, mut order) = (Adjacency::new(&a).unwrap(), vec![0; 3]);
    let mut sweep = |roots, limits| {
        Host.cuthill_mckee(graph.parts(), Roots::Given { roots, limits }, &mut order)
            .map_err(|e| e.to_string())
    };
    assert_eq!(sweep(&[1], &[9]).unwrap()[0].vertices, 3);
    assert!(sweep(&[0, 2], &[9, 9]).unwrap_err().contains("root 2 lies in the component"));
    assert!(sweep(&[0, 2], &[9]).unwrap_err().contains("number of limits"));
}

#[test]
fn a_random_permutation_is_one_and_its_seed_tells_which() {
    for len in [0, 1, 2, 100] {
        let p = Permutation::random(len, 3).unwrap();
        let mut numbers = p.new_to_old().to_vec();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..len as u32) && p == Permutation::random(len, 3).unwrap());
    }
    assert!(Permutation::random(100, 3).unwrap() != Permutation::random(100, 4).unwrap());
    assert!(Permutation::random(1 << 32, 1).is_err());
}

/// Runs a function on several ranks, each on a thread of its own.
fn on_parts<R: Send>(parts: usize, work: impl Fn(Space<Host, Parts>) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let start = |part| scope.spawn(move || work(Space::spread(Host, part)));
        let threads: Vec<_> = Parts::new(parts).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_graph_on_several_parts_has_the_levels_of_the_whole() {
    let graphs = [
        poisson3d(17, 5, 9).unwrap(),
        rmat(3000, 8, RmatKind::Symmetric, 5).unwrap(),
        rmat(31, 1, RmatKind::Symmetric, 1).unwrap(),
        cases::graph(2000, (1..2000).map(|k| (k - 1, k))),
    ];
    for a in &graphs {
        let n = a.rows() as u32;
        let whole = Adjacency::new(a).unwrap();
        for sources in [vec![], vec![0], vec![n - 1, n / 3, n - 1]] {
            let expected = bfs_from(&whole, &sources).unwrap();
            for parts in [1, 2, 3, 7] {
                let rows = vertex_parts(a, parts).unwrap();
                assert_eq!(rows.len(), parts);
                let found = on_parts(parts, |space| {
                    let own = rows[space.communicator().part()].clone();
                    let graph = SpreadGraph::new(space, a, own).unwrap();
                    (graph.bfs(&[n]).is_err(), graph.bfs(&sources).unwrap())
                });
                let levels: Vec<u32> = found.iter().flat_map(|(_, found)| found.levels.clone()).collect();
                assert!(levels == expected.as_slice(), "{parts} parts");
                for (refused, found) in found {
                    assert!(refused, "a source that is no vertex");
                    assert_eq!((found.count, found.reached), (expected.count(), expected.reached()));
                }
            }
        }
    }
}

#[test]
fn the_order_of_a_graph_on_several_parts_is_that_of_the_whole() {
    let graphs = [
        poisson3d(17, 5, 9).unwrap(),
        rmat(3000, 8, RmatKind::Symmetric, 5).unwrap(),
        rmat(31, 1, RmatKind::Symmetric, 1).unwrap(),
        cases::graph(300, (1..300).map(|k| (k - 1, k))),
        cases::graph(500, (1..500).filter(|k| k % 50 != 0).map(|k| (k - 1, k))),
        cases::graph(200, (1..200).map(|k| (0, k))),
    ];
    for a in &graphs {
        let expected = reverse_cuthill_mckee(a).unwrap();
        for parts in [1, 2, 3, 7] {
            let rows = even_parts(a.rows(), parts);
            let found = on_parts(parts, |space| {
                let own = rows[space.communicator().part()].clone();
                spread_reverse_cuthill_mckee(&space, a, own).unwrap()
            });
            assert!(found.iter().all(|found| *found == expected), "{} vertices, {parts} parts", a.rows());
        }
        assert!(spread_reverse_cuthill_mckee(&Space::new(Host), a, 0..a.rows()).unwrap() == expected);
    }
}

#[test]
fn parts_of_a_graph_that_do_not_fit_are_refused_by_all() {
    let a = poisson3d(10, 10, 1).unwrap();
    for rows in [[0..40, 40..100], [0..32, 64..100], [0..64, 32..100], [0..64, 64..96], [0..64, 64..101]] {
        let refused = on_parts(2, |space| {
            let own = rows[space.communicator().part()].clone();
            let order = spread_reverse_cuthill_mckee(&space, &a, own.clone());
            order.is_err() == (own != (0..40) && own != (40..100))
                && SpreadGraph::new(space, &a, own).is_err()
        });
        assert_eq!(refused, [true, true], "{rows:?}");
    }
    let wide = residua::Csr::<f64>::from_parts(2, 3, vec![0, 0, 0], vec![], vec![]).unwrap();
    assert!(vertex_parts(&wide, 2).is_err() && vertex_parts(&a, 0).is_err());
    assert!(
        on_parts(2, |space| SpreadGraph::new(space, &wide, 0..2).is_err()).iter().all(|&refused| refused)
    );
}
