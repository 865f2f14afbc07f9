//! Grids with points in another order, and matrices that resemble grids: every backend must find or reject the same
//! ones.

use super::{graph, graphs, grid_edges, matrix, shuffled};
use crate::random::Random;
use residua::backend::{GraphSteps, UNREACHED};
use residua::graph::{Adjacency, Permutation, bfs, grid_order, grid_order_on, grid_sizes, permute_symmetric};
use residua::{Csr, Host};

/// The edges of a grid of points in space, x running fastest.
pub fn box_edges([x, y, z]: [usize; 3]) -> Vec<(usize, usize)> {
    let steps = move |v: usize| {
        let up = [(v % x + 1 < x, 1), (v / x % y + 1 < y, x), (v / x / y + 1 < z, x * y)];
        up.into_iter().filter(|&(inside, _)| inside).map(move |(_, step)| (v, v + step))
    };
    (0..x * y * z).flat_map(steps).collect()
}

/// A shuffled grid is found, on the backend as on the host, and is the original grid in the order found.
pub fn check_grid_order<B: GraphSteps>(b: &B, sizes: [usize; 3], seed: u64) {
    let n = sizes.iter().product();
    let shuffle = Permutation::random(n, seed).unwrap();
    let number = |v: usize| shuffle.old_to_new()[v] as usize;
    let edges = box_edges(sizes).into_iter().map(|(i, j)| (number(i), number(j)));
    let a =
        if seed.is_multiple_of(2) { graph(n, edges) } else { graph(n, edges.chain((0..n).map(|v| (v, v)))) };
    let mut sorted = sizes;
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let found = grid_order(&a).unwrap().unwrap_or_else(|| panic!("{sizes:?}, seed {seed}"));
    assert_eq!(found.sizes(), sorted);
    let again = permute_symmetric(&a, found.permutation()).unwrap();
    let pairs = |a: &Csr<f64>| {
        let rows = (0..n).flat_map(|i| a.row(i).0.iter().map(move |&j| (i, j as usize)));
        rows.filter(|(i, j)| i < j).collect::<Vec<_>>()
    };
    assert!(pairs(&again) == box_edges(sorted), "{sizes:?}, seed {seed}");

    let there = a.to_backend(b).unwrap();
    let graph = Adjacency::on(b, &there).unwrap();
    assert_eq!(grid_sizes(b, &graph).unwrap(), Some(sorted));
    for run in 0..2 {
        let order = grid_order_on(b, &graph, sorted).unwrap().unwrap().into_permutation();
        let order = order.to_host(b).unwrap();
        assert!(order == *found.permutation(), "{sizes:?}, seed {seed}, run {run}");
        assert!(order.old_to_new() == found.permutation().old_to_new(), "{sizes:?}, seed {seed}, run {run}");
    }
}

/// A graph that is not a grid but has the same degrees: two edges of a grid have exchanged their ends.
fn crossed(sizes: [usize; 3], seed: u64) -> Csr<f64> {
    let (mut edges, mut random) = (box_edges(sizes), Random(seed));
    loop {
        let (p, q) = (random.below(edges.len()), random.below(edges.len()));
        let ((a, b), (c, d)) = (edges[p], edges[q]);
        let beside = |i: usize, j: usize| edges.contains(&(i.min(j), i.max(j)));
        if [a, b].contains(&c) || [a, b].contains(&d) || beside(a, d) || beside(c, b) {
            continue;
        }
        (edges[p], edges[q]) = ((a, d), (c, b));
        return shuffled(sizes.iter().product(), edges.into_iter());
    }
}

/// Matrices that resemble a grid are not taken for one.
pub fn check_no_grid<B: GraphSteps>(b: &B, name: &str, a: &Csr<f64>) {
    assert!(grid_order(a).unwrap().is_none(), "{name}");
    let there = a.to_backend(b).unwrap();
    let graph = Adjacency::on(b, &there).unwrap();
    let sizes = grid_sizes(b, &graph).unwrap();
    assert_eq!(sizes, grid_sizes(&Host, &Adjacency::new(a).unwrap()).unwrap(), "{name}");
    if let Some(sizes) = sizes {
        assert!(grid_order_on(b, &graph, sizes).unwrap().is_none(), "{name}");
    }
}

/// Levels that no search returns: the verdict must still be right, and the same on every backend.
pub fn check_grid_numbers<B: GraphSteps>(b: &B) {
    let sizes = [5, 4, 3];
    let a = graph(60, box_edges(sizes));
    let (host, there) = (Adjacency::new(&a).unwrap(), a.to_backend(b).unwrap());
    let graph = Adjacency::on(b, &there).unwrap();
    let search = |vertex: u32| bfs(&host, vertex).unwrap().as_slice().to_vec();
    let right = [search(0), search(15), search(40)];
    let numbered = |levels: &[Vec<u32>; 3]| {
        let there = levels.each_ref().map(|levels| b.upload(levels.clone()).unwrap());
        let (mut new_to_old, mut old_to_new) = (b.zeros(60).unwrap(), b.zeros(60).unwrap());
        let levels = there.each_ref().map(|levels| &**levels);
        let fits = b.number_grid(graph.parts(), levels, sizes, &mut new_to_old, &mut old_to_new).unwrap();
        fits.then(|| (b.download(&*new_to_old).unwrap(), b.download(&*old_to_new).unwrap()))
    };
    let natural: Vec<u32> = (0..60).collect();
    assert_eq!(numbered(&right), Some((natural.clone(), natural)));
    for (which, vertex) in [(0, 0), (0, 59), (1, 7), (2, 30), (2, 59)] {
        for wrong in [0, 1, 2, 3, 4, 9, 10, 1000, UNREACHED - 1, UNREACHED] {
            let mut levels = right.clone();
            levels[which][vertex] = wrong;
            assert_eq!(numbered(&levels).is_some(), levels == right, "{which} {vertex} {wrong}");
        }
    }
    // Two points are exchanged, two have the same place, and the box has the right size but other sides.
    let mut levels = right.clone();
    levels.iter_mut().for_each(|levels| levels.swap(21, 22));
    assert_eq!(numbered(&levels), None);
    let mut levels = right.clone();
    levels.iter_mut().for_each(|levels| levels[21] = levels[22]);
    assert_eq!(numbered(&levels), None);
    assert_eq!(numbered(&[right[0].clone(), right[2].clone(), right[1].clone()]), None);
    let (mut new_to_old, mut old_to_new) = (b.zeros(60).unwrap(), b.zeros(59).unwrap());
    let levels = b.upload(right[0].clone()).unwrap();
    let all: [&B::Slice<u32>; 3] = [&levels; 3];
    assert!(b.number_grid(graph.parts(), all, sizes, &mut new_to_old, &mut old_to_new).is_err());
    let mut old_to_new = b.zeros(60).unwrap();
    assert!(b.number_grid(graph.parts(), all, [5, 4, 4], &mut new_to_old, &mut old_to_new).is_err());
}

pub fn grid_order_cases<B: GraphSteps>(b: &B) {
    check_grid_numbers(b);
    let sizes = [[2, 2, 1], [2, 2, 2], [3, 3, 1], [3, 3, 3], [2, 9, 1], [2, 3, 4], [300, 3, 3], [3, 1, 500]];
    let larger = [[40, 40, 40], [41, 7, 30], [64, 65, 1], [1, 130, 90], [11, 5, 7], [5, 3, 9], [33, 2, 31]];
    for (seed, sizes) in (0..).zip(sizes.into_iter().chain(larger)) {
        check_grid_order(b, sizes, seed);
        check_grid_order(b, sizes, seed + 100);
    }
    for seed in 0..20 {
        check_no_grid(b, "crossed in space", &crossed([7, 6, 5], seed));
        check_no_grid(b, "crossed in the plane", &crossed([9, 8, 1], seed));
        check_no_grid(b, "crossed, thin", &crossed([12, 2, 2], seed));
    }
    let edges = box_edges([12, 10, 8]);
    let n = 12 * 10 * 8;
    check_no_grid(b, "an edge less", &shuffled(n, edges.iter().copied().skip(1)));
    check_no_grid(b, "an edge less inside", &shuffled(n, edges.iter().copied().filter(|&e| e != (500, 501))));
    check_no_grid(b, "an edge more", &shuffled(n, edges.iter().copied().chain([(3, 700)])));
    let around = (0..80).map(|k| (12 * k, 12 * k + 11));
    check_no_grid(b, "periodic along x", &shuffled(n, edges.iter().copied().chain(around)));
    let corner = |v: usize| v % 20 >= 10 && v / 20 >= 8;
    let bent = grid_edges(20, 20).filter(|&(i, j)| !corner(i) && !corner(j));
    check_no_grid(b, "bent", &shuffled(400, bent));
    let diagonals = grid_edges(20, 20).chain((0..379).filter(|v| v % 20 != 19).map(|v| (v, v + 21)));
    check_no_grid(b, "triangles", &shuffled(400, diagonals));
    let two = grid_edges(9, 9).chain(grid_edges(9, 9).map(|(i, j)| (i + 81, j + 81)));
    check_no_grid(b, "two grids", &shuffled(162, two));
    for (name, a) in graphs() {
        if !["grid", "shuffled grid", "flat grid"].contains(&name) {
            check_no_grid(b, name, &a);
        }
    }
    // Half of the pattern is recognised like the whole.
    let half = matrix(60, box_edges([5, 4, 3]));
    assert_eq!(grid_order(&half).unwrap().unwrap().sizes(), [5, 4, 3]);
}
