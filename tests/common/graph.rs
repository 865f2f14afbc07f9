//! Cases of traversals for every backend: the results must equal the host's, which `tests/graph` compares with
//! sequential twins.

#[path = "collection.rs"]
pub mod collection;
#[path = "grid_order.rs"]
mod grid_order;
#[allow(unused_imports)] // not every test program runs these
pub use grid_order::{check_grid_numbers, check_grid_order, grid_order_cases};

use crate::random::Random;
use num_complex::Complex;
use residua::assemble::to_csr;
use residua::backend::{
    GraphParts, GraphRows, GraphSteps, OffsetsRef, Roots, Space, Sweep, UNREACHED, VectorOps,
};
use residua::graph::{
    Adjacency, Criterion, Permutation, SpreadGraph, bfs, bfs_on, colours, connected_components,
    connected_components_on, cuthill_mckee_order, independent_set, ordering, ordering_on, permute_symmetric,
    permute_symmetric_on, pseudo_peripheral_on, reverse_cuthill_mckee, reverse_cuthill_mckee_on,
    vertex_parts,
};
use residua::market::read_csr;
use residua::{Csr, Error, Host, Scalar, Triplets};
use std::path::PathBuf;

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            level_cases,
            spread_level_cases,
            order_cases,
            grid_order_cases,
            side_by_side_cases,
            permutation_cases,
            colour_cases,
            structure_cases,
            wide_offset_cases,
            real_cases,
            collection_cases,
            refusals
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// A square matrix with these entries, each once, with different values.
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

/// A matrix with both directions of each edge.
pub fn graph(n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Csr<f64> {
    matrix(n, edges.into_iter().flat_map(|(i, j)| [(i, j), (j, i)]))
}

pub fn random_edges(n: usize, count: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut random = Random(seed);
    random.vec(count, |r| (r.below(n), r.below(n)))
}

/// Few vertices with many edges (each bit of a number is more often 0 than 1).
fn skewed_edges(scale: u32, count: usize) -> Vec<(usize, usize)> {
    let vertex = |r: &mut Random| (0..scale).fold(0, |v, _| 2 * v + usize::from(r.below(100) > 70));
    Random(7).vec(count, |r| (vertex(r), vertex(r)))
}

pub fn grid_edges(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows * columns).flat_map(move |v| {
        let right = (v % columns + 1 < columns).then_some((v, v + 1));
        right.into_iter().chain((v + columns < rows * columns).then_some((v, v + columns)))
    })
}

/// A graph whose vertices are numbered at random.
fn shuffled(n: usize, edges: impl Iterator<Item = (usize, usize)>) -> Csr<f64> {
    let mut random = Random(11);
    let mut number: Vec<usize> = (0..n).collect();
    (1..n).rev().for_each(|k| number.swap(k, random.below(k + 1)));
    graph(n, edges.map(|(i, j)| (number[i], number[j])))
}

/// Pairs of vertices whose numbers differ by at most `reach`.
fn band(n: usize, reach: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |v| (v + 1..(v + reach + 1).min(n)).map(move |w| (v, w)))
}

pub fn clique(first: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    (first..first + size).flat_map(move |i| (first..i).map(move |j| (i, j)))
}

/// The point's coordinates in a grid of 200 x 3 x 3.
fn at(i: usize) -> [usize; 3] {
    [i % 200, i / 200 % 3, i / 600]
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
        // Up to sixteen entries per row, several roots are tried: with the diagonal there are more, without it fewer.
        ("unsymmetric, with a diagonal", {
            let beside = |i: usize, j: usize| (0..3).all(|d| at(i)[d].abs_diff(at(j)[d]) <= 1);
            let number = |i: usize| i * 1009 % 1800;
            let pairs = (0..1800).flat_map(|i| (i..1800).map(move |j| (i, j)));
            matrix(1800, pairs.filter(|&(i, j)| beside(i, j)).map(|(i, j)| (number(i), number(j))))
        }),
        ("duplicates", with_duplicates(300, random_edges(300, 500, 6))),
        // For a device: levels for one cluster and for all blocks, rows for a few lanes, for a warp, and for several
        // reads of a warp.
        ("flat grid", graph(5000 * 4, grid_edges(5000, 4))),
        ("wide levels", graph(30_000, random_edges(30_000, 45_000, 8))),
        ("rows of 41", graph(3000, band(3000, 20))),
        ("rows of 201", graph(2000, band(2000, 100))),
        ("rows of 401", graph(2000, band(2000, 200))),
        // More children than a warp can list, some levels after the first.
        ("broom", graph(260, (1..60).map(|k| (k - 1, k)).chain((60..260).map(|k| (59, k))))),
        ("grid with a hub", graph(120 * 120, grid_edges(120, 120).chain((0..700).map(|k| (7000, 20 * k))))),
    ]
}

/// A matrix from triplets, each of which occurs two or three times, and in both directions.
fn with_duplicates(n: usize, edges: Vec<(usize, usize)>) -> Csr<f64> {
    let mut triplets = Triplets::new(n, n).unwrap();
    for round in 0..3 {
        for (k, &(i, j)) in edges.iter().enumerate().filter(|(k, _)| round < 2 || k % 2 == 0) {
            triplets.push(i, j, k as f64 + 1.0).unwrap();
            triplets.push(j, i, 0.5).unwrap();
        }
    }
    to_csr(&Host, triplets).unwrap()
}

pub fn check_levels<B: GraphSteps>(b: &B, name: &str, a: &Csr<f64>, sources: &[u32]) {
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

/// Levels on several ranks, whose steps are executed here one rank after another: along edges, against them, and
/// alternately.
pub fn check_spread_levels<B: GraphSteps + VectorOps>(b: &B, name: &str, a: &Csr<f64>, sources: &[u32]) {
    let (host, there, n) = (Adjacency::new(a).unwrap(), a.to_backend(b).unwrap(), a.rows());
    if !host.is_borrowed() {
        return;
    }
    let mut expected = vec![0; n];
    let count = Host.bfs(host.parts(), sources, &mut expected).unwrap();
    let reached = expected.iter().filter(|&&level| level != UNREACHED).count();
    let alone = SpreadGraph::new(Space::new(b.clone()), &there, 0..n).unwrap().bfs(sources).unwrap();
    assert!(b.download(&*alone.levels).unwrap() == expected, "{name} on one part");
    assert_eq!((alone.count, alone.reached), (count, reached), "{name} on one part");

    let bounds = vertex_parts(a, 3).unwrap();
    assert!(bounds[0].start == 0 && bounds[2].end == n && bounds.windows(2).all(|w| w[0].end == w[1].start));
    let offsets = a.parts().offsets.download(&Host).unwrap();
    let rows_of = |own: &std::ops::Range<usize>| GraphRows {
        vertices: n,
        first: if own.is_empty() { 0 } else { own.start },
        rows: own.len(),
        neighbours: offsets[own.end] - offsets[own.start],
        offsets: match there.parts().offsets {
            OffsetsRef::Lower(offsets) => OffsetsRef::Lower(B::part(offsets, own.start..own.end + 1)),
            OffsetsRef::Wide(offsets) => OffsetsRef::Wide(B::part(offsets, own.start..own.end + 1)),
        },
        indices: there.parts().indices,
    };
    for turns in 0..3 {
        let mut all = vec![0_u32; n.div_ceil(32)];
        sources.iter().for_each(|&v| all[v as usize / 32] |= 1 << (v % 32));
        let mut parts: Vec<_> = bounds
            .iter()
            .map(|own| {
                let rows = rows_of(own);
                let (seen, mut levels) = (b.zeros(all.len()).unwrap(), b.zeros(own.len()).unwrap());
                b.fill(UNREACHED, &mut levels).unwrap();
                (rows, b.frontier(rows).unwrap(), seen, levels, b.zeros::<f64>(2).unwrap())
            })
            .collect();
        for level in 0.. {
            let (mut found, mut edges, mut next) = (0.0, 0.0, vec![0_u32; all.len()]);
            for (rows, frontier, seen, levels, figures) in &mut parts {
                let mut reached = b.upload(all.clone()).unwrap();
                b.bfs_settle(*rows, level, &mut reached, seen, levels, frontier, figures).unwrap();
                assert!(b.download(&*reached).unwrap().iter().all(|&word| word == 0), "{name}");
                let told = b.download(&**figures).unwrap();
                (found, edges) = (found + told[0], edges + told[1]);
                b.bfs_reach(*rows, (turns + level) % 3 > 0, frontier, seen, &mut reached).unwrap();
                let more = b.download(&*reached).unwrap();
                next.iter_mut().zip(more).for_each(|(word, bits)| *word |= bits);
            }
            let of_level = (0..n).filter(|&v| expected[v] == level);
            let neighbours = of_level.clone().map(|v| offsets[v + 1] - offsets[v]).sum::<usize>();
            assert_eq!((found, edges), (of_level.count() as f64, neighbours as f64), "{name}, level {level}");
            if found == 0.0 {
                break;
            }
            all = next;
        }
        let levels = parts.iter().flat_map(|(_, _, _, levels, _)| b.download(&**levels).unwrap());
        assert!(levels.eq(expected.iter().copied()), "{name}, turns {turns}");
    }
}

pub fn spread_level_cases<B: GraphSteps + VectorOps>(b: &B) {
    for (name, a) in graphs() {
        let n = a.rows() as u32;
        check_spread_levels(b, name, &a, &[]);
        if n > 0 {
            check_spread_levels(b, name, &a, &[n / 2]);
            check_spread_levels(b, name, &a, &(0..n).step_by(1000).collect::<Vec<_>>());
        }
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
        check_order(b, name, &a);
    }
}

pub fn check_order<V: Scalar, B: GraphSteps>(b: &B, name: &str, a: &Csr<V>) {
    let there = a.to_backend(b).unwrap();
    let graph = Adjacency::on(b, &there).unwrap();
    let host = Adjacency::new(a).unwrap();
    assert_eq!(graph.is_borrowed(), host.is_borrowed(), "symmetry of {name}");
    assert_eq!(b.download(graph.parts().degrees).unwrap(), host.parts().degrees, "degrees of {name}");
    let expected = reverse_cuthill_mckee(a).unwrap();
    for run in 0..2 {
        let rcm = reverse_cuthill_mckee_on(b, &graph).unwrap().to_host(b).unwrap();
        assert!(rcm == expected, "{name}, run {run}");
        assert!(rcm.old_to_new() == expected.old_to_new(), "inverse order of {name}, run {run}");
    }
    let (here, there) = (ordering(a).unwrap(), ordering_on(b, &there).unwrap());
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

/// More traversals at a time than a device has large clusters, each as if it were alone.
pub fn side_by_side_cases<B: GraphSteps>(b: &B) {
    let a = graph(40 * 30, grid_edges(40, 30));
    let n = a.rows();
    let (there, host) = (a.to_backend(b).unwrap(), Adjacency::new(&a).unwrap());
    let graph = Adjacency::on(b, &there).unwrap();
    for count in [3, 9, 20, 40] {
        let vertices: Vec<u32> = (0..count).map(|k| (k * n / count) as u32).collect();
        let roots: Vec<_> = vertices.iter().map(|&v| b.upload(vec![v]).unwrap()).collect();
        let mut orders: Vec<_> = vertices.iter().map(|_| b.zeros::<u32>(n).unwrap()).collect();
        let given = roots.iter().map(|root| Roots::Given { roots: &**root, limits: &[usize::MAX] });
        let calls = given.zip(orders.iter_mut().map(|order| &mut **order)).collect();
        let sweeps = b.cuthill_mckee_several(graph.parts(), calls).unwrap();
        for ((&root, order), sweep) in vertices.iter().zip(&orders).zip(sweeps) {
            let mut expected = vec![0; n];
            let alone = Roots::Given { roots: &[root][..], limits: &[usize::MAX] };
            let twin = Host.cuthill_mckee(host.parts(), alone, &mut expected).unwrap();
            let figures = |s: &Sweep| (s.complete, s.vertices, s.height, s.width, s.bandwidth, s.end);
            assert_eq!(figures(&sweep[0]), figures(&twin[0]), "{root}, one of {count}");
            assert!(b.download(&**order).unwrap() == expected, "order from {root}, one of {count}");
        }
    }
}

pub fn permutation_cases<B: GraphSteps>(b: &B) {
    permutations_of(b, graphs());
}

pub fn permutations_of<B: GraphSteps>(b: &B, graphs: Vec<(&str, Csr<f64>)>) {
    let mut random = Random(5);
    for (name, a) in graphs {
        let n = a.rows();
        let mut order: Vec<u32> = (0..n as u32).collect();
        (1..n).rev().for_each(|k| order.swap(k, random.below(k + 1)));
        let p = Permutation::from_new_to_old(order).unwrap();
        let expected = permute_symmetric(&a, &p).unwrap();
        let there = Permutation::from_host(b, &p).unwrap();
        let got = permute_symmetric_on(b, &a.to_backend(b).unwrap(), &there).unwrap().to_host(b).unwrap();
        let (got, expected) = (got.parts(), expected.parts());
        let (OffsetsRef::Lower(offsets), OffsetsRef::Lower(others)) = (got.offsets, expected.offsets) else {
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
    colours_of(b, graphs());
}

pub fn colours_of<B: GraphSteps>(b: &B, graphs: Vec<(&str, Csr<f64>)>) {
    for (name, a) in graphs {
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
        assert!(b.download(&*got.into_inner()).unwrap() == of, "colours of {name}, taken out");
        assert!(b.download(&*independent_set(b, &graph).unwrap()).unwrap() == set, "set of {name}");
    }
}

/// Level structures, components and peripheral vertices.
pub fn structure_cases<B: GraphSteps>(b: &B) {
    for (name, a) in graphs() {
        check_structure(b, name, &a);
    }
}

pub fn check_structure<B: GraphSteps>(b: &B, name: &str, a: &Csr<f64>) {
    let (host, there) = (Adjacency::new(a).unwrap(), a.to_backend(b).unwrap());
    let graph = Adjacency::on(b, &there).unwrap();
    let n = a.rows();
    let (expected, got) = (connected_components(&host).unwrap(), connected_components_on(b, &graph).unwrap());
    assert_eq!(got.sizes(), expected.sizes(), "components of {name}");
    assert!(b.download(got.labels()).unwrap() == expected.labels(), "components of {name}");
    assert_eq!(expected.sizes().iter().sum::<usize>(), n);
    if n == 0 {
        return;
    }
    for start in [0, n as u32 / 2, n as u32 - 1] {
        let (expected, got) = (bfs(&host, start).unwrap(), bfs_on(b, &graph, &[start]).unwrap());
        assert_eq!(
            (got.count(), got.reached(), got.width()),
            (expected.count(), expected.reached(), expected.width()),
            "{name}"
        );
        assert_eq!(got.reached(), residents(&host, start), "{name} from {start}");
        assert!(b.download(got.as_slice()).unwrap() == expected.as_slice(), "levels of {name}");
        for level in [0, expected.count() / 2, expected.count() - 1] {
            assert!(
                b.download(got.level(level)).unwrap() == expected.level(level),
                "level {level} of {name}"
            );
        }
        let parents = got.parents_on(b, &graph).unwrap();
        assert!(b.download(&*parents).unwrap() == expected.parents(&host).unwrap(), "parents of {name}");
        for criterion in [Criterion::Height, Criterion::HeightAndWidth] {
            let here = pseudo_peripheral_on(&Host, &host, start, criterion).unwrap();
            assert_eq!(
                pseudo_peripheral_on(b, &graph, start, criterion).unwrap(),
                here,
                "{name} from {start}"
            );
            assert!(here.eccentricity() + 1 >= expected.count(), "{name} from {start}");
        }
    }
}

/// The number of vertices in the component of `vertex`.
fn residents(graph: &Adjacency<'_>, vertex: u32) -> usize {
    let components = connected_components(graph).unwrap();
    components.sizes()[components.labels()[vertex as usize] as usize]
}

/// Offsets of 64 bits, as in graphs with 2^32 neighbours.
pub fn wide_offset_cases<B: GraphSteps>(b: &B) {
    wide_offsets_of(b, graphs());
}

pub fn wide_offsets_of<B: GraphSteps>(b: &B, graphs: Vec<(&str, Csr<f64>)>) {
    for (name, a) in graphs {
        let host = Adjacency::new(&a).unwrap();
        let (parts, n) = (host.parts(), a.rows());
        let offsets: Vec<u64> =
            parts.offsets.download(&Host).unwrap().into_iter().map(|o| o as u64).collect();
        let offsets = b.upload(offsets).unwrap();
        let indices = b.upload(parts.indices.to_vec()).unwrap();
        let mut degrees = b.zeros(n).unwrap();
        let symmetric = b.degrees(OffsetsRef::Wide(&*offsets), &indices, &mut degrees).unwrap();
        assert!(symmetric && b.download(&*degrees).unwrap() == parts.degrees, "degrees of {name}");
        let graph: GraphParts<'_, B> = GraphParts {
            vertices: n,
            offsets: OffsetsRef::Wide(&*offsets),
            indices: &indices,
            degrees: &degrees,
        };
        let vector = || b.zeros::<u32>(n).unwrap();
        let same = |got: &B::Slice<u32>, expected: &[u32], what: &str| {
            assert!(b.download(got).unwrap() == expected, "{what} of {name}");
        };
        let order = cuthill_mckee_order(b, graph).unwrap();
        same(&order, &cuthill_mckee_order(&Host, parts).unwrap(), "order");
        let sources: Vec<u32> = (0..n as u32).step_by(1000).collect();
        let (mut levels, mut tree, mut found) = (vector(), vector(), vector());
        let (mut expected, mut parents) = (vec![0; n], vec![0; n]);
        let count = b.bfs(graph, &b.upload(sources.clone()).unwrap(), &mut levels).unwrap();
        assert_eq!(count, Host.bfs(parts, &sources, &mut expected).unwrap(), "{name}");
        same(&levels, &expected, "levels");
        b.bfs_parents(graph, &levels, &mut tree).unwrap();
        Host.bfs_parents(parts, &expected, &mut parents).unwrap();
        same(&tree, &parents, "parents");
        b.components(graph, &mut found).unwrap();
        Host.components(parts, &mut expected).unwrap();
        same(&found, &expected, "components");
        b.colour(graph, &mut found).unwrap();
        Host.colour(parts, &mut expected).unwrap();
        same(&found, &expected, "colours");
        b.independent_set(graph, &mut found).unwrap();
        Host.independent_set(parts, &mut expected).unwrap();
        same(&found, &expected, "set");
        assert_eq!(
            b.envelope(graph, Some(&order)).unwrap(),
            Host.envelope(parts, Some(&b.download(&*order).unwrap())).unwrap(),
            "{name}"
        );
        let mut lengths = b.zeros::<u32>(n + 1).unwrap();
        b.permuted_lengths(graph.offsets, &order, &mut lengths).unwrap();
        let lengths = b.download(&*lengths).unwrap();
        let rows = parts.offsets.download(&Host).unwrap();
        let order = b.download(&*order).unwrap();
        assert!((0..n).all(|k| lengths[k] as usize == rows[order[k] as usize + 1] - rows[order[k] as usize]));
    }
}

/// Matrices of the collection, if it exists (`RESIDUA_MATRICES` names its folder).
const REAL: [&str; 14] = [
    "luxembourg.mtx.gz",
    "kkt_CONT-201.mtx.gz",
    "fem_helmholtz_indef.mtx.gz",
    "USPowerGrid.mtx.gz",
    "bcsstk33.mtx.gz",
    "commanche.mtx.gz",
    "4elt.mtx.gz",
    "cage8.mtx.gz",
    "memplus.mtx.gz",
    "Erdos971.mtx",
    "ca-GrQc.mtx.gz",
    "arrow_paru.mtx.gz",
    "bcspwr10.mtx.gz",
    "west0497.mtx",
];

/// The orders of all square matrices of the collection.
pub fn collection_cases<B: GraphSteps>(b: &B) {
    let Some(folder) = collection::folder() else { return };
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let is_matrix = |path: &PathBuf| path.to_string_lossy().trim_end_matches(".gz").ends_with(".mtx");
    let (mut ordered, mut rectangular, mut refused) = (0, 0, 0);
    for path in files.filter(is_matrix) {
        let a: Csr<Complex<f64>> = match read_csr(&path) {
            Ok(a) => a,
            Err(Error::Parse { .. }) => {
                refused += 1; // no matrix according to its own first line
                continue;
            }
            Err(error) => panic!("{}: {error}", path.display()),
        };
        if a.rows() == a.columns() {
            check_order(b, &path.to_string_lossy(), &a);
            ordered += 1;
        } else {
            rectangular += 1;
        }
    }
    println!("{ordered} matrices ordered, {rectangular} are rectangular, {refused} are refused");
    assert!(ordered > 10 * refused);
}

pub fn real_cases<B: GraphSteps>(b: &B) {
    let Some(folder) = collection::folder() else { return };
    for name in REAL {
        let a: Csr<f64> = read_csr(folder.join(name)).unwrap();
        check_levels(b, name, &a, &[a.rows() as u32 / 3]);
        check_order(b, name, &a);
        check_structure(b, name, &a);
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
    let roots = Roots::Given { roots: &*given, limits: &[9] };
    assert!(b.cuthill_mckee(graph, roots, &mut levels).is_err());
    let given = sources(&[1]);
    let roots = Roots::Given { roots: &*given, limits: &[9] };
    assert!(b.cuthill_mckee(graph, roots, &mut short).is_err(), "no room for the order");
    assert!(b.cuthill_mckee(graph, Roots::LowestDegree, &mut short).is_err());
    let p = Permutation::from_host(b, &Permutation::identity(2).unwrap()).unwrap();
    assert!(permute_symmetric_on(b, &there, &p).is_err());
    assert!(b.colour(graph, &mut short).is_err() && b.independent_set(graph, &mut short).is_err());
}
