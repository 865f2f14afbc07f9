//! What every backend's traversals must do: the same as the host's, which `tests/graph.rs` holds against sequential
//! twins.

use residua::backend::{GraphParts, GraphSteps, OffsetsRef, UNREACHED};
use residua::graph::{
    Adjacency, Permutation, colours, independent_set, ordering, ordering_on, permute_symmetric,
    permute_symmetric_on, reverse_cuthill_mckee, reverse_cuthill_mckee_on,
};
use residua::{Csr, Host};

/// A square matrix with these entries, each once, and values that tell them apart.
pub fn matrix(n: usize, entries: impl IntoIterator<Item = (usize, usize)>) -> Csr<f64> {
    let mut entries: Vec<(usize, usize)> = entries.into_iter().collect();
    entries.sort_unstable();
    entries.dedup();
    let mut offsets = vec![0; n + 1];
    entries.iter().for_each(|&(i, _)| offsets[i + 1] += 1);
    (0..n).for_each(|i| offsets[i + 1] += offsets[i]);
    let values = (0..entries.len()).map(|k| k as f64 + 0.5).collect();
    Csr::from_parts(n, n, offsets, entries.iter().map(|&(_, j)| j as u32).collect(), values).unwrap()
}

/// Both directions of each edge.
pub fn graph(n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Csr<f64> {
    matrix(n, edges.into_iter().flat_map(|(i, j)| [(i, j), (j, i)]))
}

/// A reproducible sequence (splitmix64).
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |limit| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

fn random_edges(n: usize, count: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut below = random(seed);
    (0..count).map(|_| (below(n), below(n))).collect()
}

/// Few vertices with many edges (each bit of a number is more often 0 than 1).
fn skewed_edges(scale: u32, count: usize) -> Vec<(usize, usize)> {
    let mut below = random(7);
    let mut vertex = || (0..scale).fold(0, |v, _| 2 * v + usize::from(below(100) > 70));
    (0..count).map(|_| (vertex(), vertex())).collect()
}

fn grid_edges(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows * columns).flat_map(move |v| {
        let right = (v % columns + 1 < columns).then_some((v, v + 1));
        right.into_iter().chain((v + columns < rows * columns).then_some((v, v + columns)))
    })
}

/// The numbers of a grid's vertices, shuffled.
fn shuffled(n: usize, edges: impl Iterator<Item = (usize, usize)>) -> Csr<f64> {
    let mut below = random(11);
    let mut number: Vec<usize> = (0..n).collect();
    (1..n).rev().for_each(|k| number.swap(k, below(k + 1)));
    graph(n, edges.map(|(i, j)| (number[i], number[j])))
}

fn clique(first: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    (first..first + size).flat_map(move |i| (first..i).map(move |j| (i, j)))
}

fn graphs() -> Vec<(&'static str, Csr<f64>)> {
    vec![
        ("no vertex", matrix(0, [])),
        ("one vertex", matrix(1, [])),
        ("one vertex with a loop", matrix(1, [(0, 0)])),
        ("no edges", matrix(1000, [])),
        ("path", graph(3000, (1..3000).map(|k| (k - 1, k)))),
        ("star", graph(5000, (1..5000).map(|k| (0, k)))),
        ("arrow", graph(9000, (0..9000).flat_map(|k| [(k, 8999), (k, k)]))),
        ("two cliques and a bridge", graph(200, clique(0, 100).chain(clique(100, 100)).chain([(3, 120)]))),
        ("loops", graph(2000, (0..2000).map(|k| (k, k / 3)).chain((0..700).map(|k| (k, k))))),
        ("grid", graph(130 * 90, grid_edges(130, 90))),
        ("shuffled grid", shuffled(150 * 150, grid_edges(150, 150))),
        ("sparse, many components", graph(5000, random_edges(5000, 3500, 1))),
        ("random", graph(4000, random_edges(4000, 40_000, 2))),
        ("dense", graph(700, random_edges(700, 60_000, 3))),
        ("skewed", graph(1 << 12, skewed_edges(12, 60_000))),
        (
            "two grids",
            graph(5000, grid_edges(50, 50).chain(grid_edges(50, 50).map(|(i, j)| (i + 2500, j + 2500)))),
        ),
        ("unsymmetric", matrix(3000, random_edges(3000, 12_000, 4))),
    ]
}

fn check_levels<B: GraphSteps>(b: &B, name: &str, a: &Csr<f64>, sources: &[u32]) {
    let (host, there) = (Adjacency::new(a).unwrap(), a.to_backend(b).unwrap());
    let graph = Adjacency::on(b, &there).unwrap();
    let n = a.rows();
    let (mut expected, mut parents) = (vec![0; n], vec![0; n]);
    let count = Host.bfs(host.parts(), sources, &mut expected).unwrap();
    Host.bfs_parents(host.parts(), &expected, &mut parents).unwrap();
    let sources = b.upload(sources.to_vec()).unwrap();
    let (mut levels, mut tree) = (b.zeros(n).unwrap(), b.zeros(n).unwrap());
    for run in 0..2 {
        assert_eq!(b.bfs(graph.parts(), &sources, &mut levels).unwrap(), count, "{name}, run {run}");
        assert!(b.download(&*levels).unwrap() == expected, "levels of {name}, run {run}");
        b.bfs_parents(graph.parts(), &levels, &mut tree).unwrap();
        assert!(b.download(&*tree).unwrap() == parents, "parents of {name}, run {run}");
    }
}

pub fn level_cases<B: GraphSteps>(b: &B) {
    for (name, a) in graphs() {
        let n = a.rows() as u32;
        check_levels(b, name, &a, &[]);
        if n > 0 {
            for sources in [vec![0], vec![n - 1], vec![n / 2, 0, n - 1, n / 2], (0..n).step_by(3).collect()] {
                check_levels(b, name, &a, &sources);
            }
        }
    }
    let n = 1_000_000;
    check_levels(b, "path of 10^6", &graph(n, (1..n).map(|k| (k - 1, k))), &[1000]);
    check_levels(b, "star of 10^6", &graph(n, (1..n).map(|k| (0, k))), &[5]);
}

pub fn order_cases<B: GraphSteps>(b: &B) {
    for (name, a) in graphs() {
        let there = a.to_backend(b).unwrap();
        let graph = Adjacency::on(b, &there).unwrap();
        let host = Adjacency::new(&a).unwrap();
        assert_eq!(graph.is_borrowed(), host.is_borrowed(), "symmetry of {name}");
        assert_eq!(b.download(graph.parts().degrees).unwrap(), host.parts().degrees, "degrees of {name}");
        let expected = reverse_cuthill_mckee(&a).unwrap();
        for run in 0..2 {
            let rcm = reverse_cuthill_mckee_on(b, &graph).unwrap().to_host(b).unwrap();
            assert!(rcm == expected, "{name}, run {run}");
            assert!(rcm.old_to_new() == expected.old_to_new(), "inverse order of {name}, run {run}");
        }
        let (here, there) = (ordering(&a).unwrap(), ordering_on(b, &there).unwrap());
        let figures = |o: [usize; 3], p: [u64; 3], natural: bool| (o, p, natural);
        assert_eq!(
            figures(
                [there.bandwidth_before(), there.bandwidth_after(), there.bandwidth_rcm()],
                [there.profile_before(), there.profile_after(), there.profile_rcm()],
                there.keeps_natural_order()
            ),
            figures(
                [here.bandwidth_before(), here.bandwidth_after(), here.bandwidth_rcm()],
                [here.profile_before(), here.profile_after(), here.profile_rcm()],
                here.keeps_natural_order()
            ),
            "{name}"
        );
        assert!(there.permutation().to_host(b).unwrap() == *here.permutation(), "{name}");
    }
}

pub fn permutation_cases<B: GraphSteps>(b: &B) {
    let mut below = random(5);
    for (name, a) in graphs() {
        let n = a.rows();
        let mut order: Vec<u32> = (0..n as u32).collect();
        (1..n).rev().for_each(|k| order.swap(k, below(k + 1)));
        let p = Permutation::from_new_to_old(order).unwrap();
        let expected = permute_symmetric(&a, &p).unwrap();
        let there = Permutation::from_host(b, &p).unwrap();
        let got = permute_symmetric_on(b, &a.to_backend(b).unwrap(), &there).unwrap().to_host(b).unwrap();
        let (got, expected) = (got.parts(), expected.parts());
        let (OffsetsRef::Narrow(offsets), OffsetsRef::Narrow(others)) = (got.offsets, expected.offsets)
        else {
            panic!("{name}: wide offsets");
        };
        assert!(offsets == others, "offsets of {name}");
        assert!(got.indices == expected.indices, "columns of {name}");
        assert!(got.values == expected.values, "values of {name}");

        let x: Vec<f64> = (0..n).map(|k| k as f64).collect();
        let on_backend = b.upload(x.clone()).unwrap();
        let (mut moved, mut back) = (b.zeros(n).unwrap(), b.zeros(n).unwrap());
        there.apply_on(b, &on_backend, &mut moved).unwrap();
        assert_eq!(b.download(&*moved).unwrap(), p.apply(&x).unwrap());
        there.apply_inverse_on(b, &moved, &mut back).unwrap();
        assert_eq!(b.download(&*back).unwrap(), x);
    }
}

pub fn colour_cases<B: GraphSteps>(b: &B) {
    for (name, a) in graphs() {
        let (host, there) = (Adjacency::new(&a).unwrap(), a.to_backend(b).unwrap());
        let graph = Adjacency::on(b, &there).unwrap();
        let expected = colours(&Host, &host).unwrap();
        let got = colours(b, &graph).unwrap();
        let (of, set) = (expected.as_slice(), independent_set(&Host, &host).unwrap());
        let most = (0..a.rows()).map(|v| host.degree(v)).max().unwrap_or(0);
        assert!(expected.count() <= most + 1, "{name} has {} colours", expected.count());
        assert_eq!(of.iter().max().map_or(0, |&c| c as usize + 1), expected.count());
        for v in 0..a.rows() {
            assert!(host.neighbours(v).all(|w| of[w] != of[v]), "{name}: neighbours of {v} alike");
            let beside = host.neighbours(v).filter(|&w| set[w] == 1).count();
            assert!((set[v] == 1) == (beside == 0), "{name}: set at {v}");
        }
        assert_eq!(got.count(), expected.count(), "{name}");
        assert!(b.download(got.as_slice()).unwrap() == of, "colours of {name}");
        assert!(b.download(&*independent_set(b, &graph).unwrap()).unwrap() == set, "set of {name}");
    }
}

pub fn refusals<B: GraphSteps>(b: &B) {
    let there = graph(3, [(0, 1), (1, 2)]).to_backend(b).unwrap();
    let adjacency = Adjacency::on(b, &there).unwrap();
    let graph: GraphParts<'_, B> = adjacency.parts();
    let (mut levels, mut short) = (b.zeros(3).unwrap(), b.zeros(2).unwrap());
    let sources = |list: &[u32]| b.upload(list.to_vec()).unwrap();
    assert!(b.bfs(graph, &sources(&[0]), &mut short).is_err());
    assert!(b.bfs(graph, &sources(&[0, 3]), &mut levels).is_err());
    assert!(b.bfs(graph, &sources(&[UNREACHED]), &mut levels).is_err());
    assert!(b.bfs_parents(graph, &short, &mut levels).is_err());
    let given = sources(&[3]);
    let roots = residua::backend::Roots::Given { roots: &*given, limits: &[9] };
    assert!(b.cuthill_mckee(graph, roots, &mut levels).is_err());
    let given = sources(&[1]);
    let roots = residua::backend::Roots::Given { roots: &*given, limits: &[9] };
    assert!(b.cuthill_mckee(graph, roots, &mut short).is_err(), "no room for the order");
    assert!(b.cuthill_mckee(graph, residua::backend::Roots::LowestDegree, &mut short).is_err());
    let p = Permutation::from_host(b, &Permutation::identity(2).unwrap()).unwrap();
    assert!(permute_symmetric_on(b, &there, &p).is_err());
    assert!(b.colour(graph, &mut short).is_err() && b.independent_set(graph, &mut short).is_err());
}
