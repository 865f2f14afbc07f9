//! Traversals, orders, components, colours.

use crate::graph::{
    check_grid_numbers, check_grid_order, check_levels, check_order, check_spread_levels, check_structure,
    clique, colours_of, graph, grid_edges, matrix, permutations_of, random_edges, wide_offsets_of,
};
use residua::graph::{Adjacency, cuthill_mckee_order};
use residua::{Backend, Csr, Cuda, Host};

type Named = (&'static str, Csr<f64>);

fn single() -> Vec<Named> {
    vec![
        ("no vertex", matrix(0, [])),
        ("one vertex with a loop", matrix(1, [(0, 0)])),
        ("path", graph(40, (1..40).map(|k| (k - 1, k)))),
        ("grid", graph(240, grid_edges(20, 12))),
        ("two cliques and a bridge", graph(80, clique(0, 40).chain(clique(40, 40)).chain([(3, 50)]))),
    ]
}

fn several() -> Vec<Named> {
    vec![
        ("no edges", matrix(70, [])),
        ("many components", graph(300, random_edges(300, 200, 1))),
        ("two grids", graph(72, grid_edges(6, 6).chain(grid_edges(6, 6).map(|(i, j)| (i + 36, j + 36))))),
    ]
}

/// A row so long that a whole block reads it, and more children than a warp sorts by itself.
fn star() -> Named {
    ("star", graph(5000, (1..5000).map(|k| (0, k))))
}

/// A graph with levels wide enough for all blocks.
fn wide() -> Named {
    ("wide levels", graph(6000, random_edges(6000, 12_000, 8)))
}

/// Prints the name, so that the log shows where time ran out under a sanitizer.
fn each(graphs: impl IntoIterator<Item = Named>, body: impl Fn(&str, &Csr<f64>)) {
    for (name, a) in graphs {
        println!("{name}");
        body(name, &a);
    }
}

/// Covers every way to process a narrow level, but little more, for a tool with which clusters of blocks take a second
/// per launch. The star's leaves are distributed, the grid's vertices stay where they are found.
pub fn narrow(b: &Cuda) {
    let star = ("small star", graph(100, (1..100).map(|k| (0, k))));
    let grid = ("small grid", graph(48, grid_edges(8, 6)));
    each([star, grid], |name, a| {
        check_levels(b, name, a, &[0]);
        let order = cuthill_mckee_order(&Host, Adjacency::new(a).unwrap().parts()).unwrap();
        let there = a.to_backend(b).unwrap();
        let found = cuthill_mckee_order(b, Adjacency::on(b, &there).unwrap().parts()).unwrap();
        assert!(b.download(&*found).unwrap() == *order, "{name}");
    });
}

pub fn levels(b: &Cuda) {
    each(single().into_iter().chain(several()), |name, a| {
        let n = a.rows() as u32;
        check_levels(b, name, a, if n > 0 { &[0] } else { &[] });
    });
    check_levels(b, "grid", &single()[3].1, &[]);
    check_levels(b, "grid", &single()[3].1, &[100, 7, 100]);
}

pub fn wide_levels(b: &Cuda) {
    each([star(), wide()], |name, a| check_levels(b, name, a, &[7]));
}

/// One level at a time, on three ranks.
pub fn levels_of_parts(b: &Cuda) {
    each(single().into_iter().chain(several()).chain([star(), wide()]), |name, a| {
        check_spread_levels(b, name, a, if a.rows() > 0 { &[0] } else { &[] });
    });
}

pub fn orders(b: &Cuda) {
    each(single(), |name, a| check_order(b, name, a));
}

pub fn orders_of_components(b: &Cuda) {
    each(several(), |name, a| check_order(b, name, a));
}

pub fn wide_orders(b: &Cuda) {
    each([star(), wide()], |name, a| check_order(b, name, a));
}

pub fn orders_of_grids(b: &Cuda) {
    check_grid_numbers(b);
    for (seed, sizes) in (0..).zip([[5, 4, 3], [9, 7, 1], [2, 3, 2]]) {
        check_grid_order(b, sizes, seed);
    }
}

pub fn permutations(b: &Cuda) {
    permutations_of(b, single().into_iter().chain([star()]).collect());
}

pub fn structures(b: &Cuda) {
    let some = ["one vertex with a loop", "two grids"];
    let some = single().into_iter().chain(several()).filter(|(name, _)| some.contains(name));
    each(some, |name, a| check_structure(b, name, a));
}

pub fn colours(b: &Cuda) {
    colours_of(b, single().into_iter().chain(several()).collect());
}

pub fn wide_offsets(b: &Cuda) {
    wide_offsets_of(b, vec![("two grids", several().remove(2).1)]);
}
