//! Traversals, orders, components, colours.

use crate::graph::{
    check_levels, check_order, check_structure, clique, colours_of, graph, grid_edges, matrix,
    permutations_of, random_edges, wide_offsets_of,
};
use residua::{Csr, Cuda};

fn graphs() -> Vec<(&'static str, Csr<f64>)> {
    vec![
        ("no vertex", matrix(0, [])),
        ("one vertex with a loop", matrix(1, [(0, 0)])),
        ("no edges", matrix(70, [])),
        ("path", graph(300, (1..300).map(|k| (k - 1, k)))),
        ("grid", graph(600, grid_edges(30, 20))),
        ("two cliques and a bridge", graph(80, clique(0, 40).chain(clique(40, 40)).chain([(3, 50)]))),
        ("many components", graph(600, random_edges(600, 400, 1))),
        // A row for a block, and children that no warp sorts by itself.
        ("star", graph(5000, (1..5000).map(|k| (0, k)))),
    ]
}

/// Levels for all blocks.
fn wide() -> (&'static str, Csr<f64>) {
    ("wide levels", graph(6000, random_edges(6000, 12_000, 8)))
}

pub fn levels(b: &Cuda) {
    for (name, a) in graphs().into_iter().chain([wide()]) {
        check_levels(b, name, &a, &[]);
        if a.rows() > 0 {
            check_levels(b, name, &a, &[a.rows() as u32 / 2, 0]);
        }
    }
}

pub fn orders(b: &Cuda) {
    for (name, a) in graphs().into_iter().chain([wide()]) {
        check_order(b, name, &a);
    }
    permutations_of(b, graphs());
}

pub fn structures(b: &Cuda) {
    let some = ["one vertex with a loop", "many components", "two cliques and a bridge"];
    for (name, a) in graphs().into_iter().filter(|(name, _)| some.contains(name)) {
        check_structure(b, name, &a);
    }
}

pub fn colours(b: &Cuda) {
    colours_of(b, graphs());
}

pub fn wide_offsets(b: &Cuda) {
    let some = ["grid", "many components"];
    wide_offsets_of(b, graphs().into_iter().filter(|(name, _)| some.contains(name)).collect());
}
