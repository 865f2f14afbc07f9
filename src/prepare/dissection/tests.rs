//! Orders of named graphs, of random ones, and by several threads.

use super::*;
use crate::generate;
use crate::graph::permute_symmetric;
use crate::prepare::order_size;
use crate::random::Random;

fn matrix(n: usize, edges: &[(usize, usize)]) -> Csr<f64> {
    let mut rows = vec![Vec::new(); n];
    for &(i, j) in edges {
        rows[i].push(j as u32);
    }
    let mut starts = vec![0];
    let mut indices = Vec::new();
    for row in &mut rows {
        row.sort_unstable();
        row.dedup();
        indices.extend_from_slice(row);
        starts.push(indices.len());
    }
    let values = vec![1.0; indices.len()];
    Csr::from_parts(n, n, starts, indices, values).unwrap()
}

/// Returns the order. `Permutation` checks that it has each row once.
fn checked(name: &str, a: &Csr<f64>) -> Permutation {
    let order = nested_dissection(a).unwrap();
    assert_eq!(order.len(), a.rows(), "{name}");
    assert_eq!(minimum_degree(a).unwrap().len(), a.rows(), "{name}");
    order
}

#[test]
fn small_and_degenerate_graphs() {
    for n in [0, 1, 2, 3, 7, 200, 201, 1000, 5001] {
        checked("no edges", &matrix(n, &[]));
        let path: Vec<_> = (1..n).map(|k| (k - 1, k)).collect();
        let order = checked("path", &matrix(n, &path));
        let size = order_size(&matrix(n, &path), &order).unwrap();
        assert!(size.entries <= 3.0 * n as f64, "a path of {n} fills to {}", size.entries);
        let star: Vec<_> = (1..n).map(|k| (0, k)).collect();
        let order = checked("star", &matrix(n, &star));
        let size = order_size(&matrix(n, &star), &order).unwrap();
        assert_eq!(size.entries, (2 * n).saturating_sub(1) as f64, "a star of {n}");
    }
    for n in [2, 150, 300] {
        let clique: Vec<_> = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).collect();
        checked("clique", &matrix(n, &clique));
        let two: Vec<_> = clique.iter().flat_map(|&(i, j)| [(i, j), (i + n, j + n)]).collect();
        checked("two cliques", &matrix(2 * n, &two));
        let bipartite: Vec<_> = (0..n).flat_map(|i| (0..n).map(move |j| (i, n + j))).collect();
        checked("complete bipartite", &matrix(2 * n, &bipartite));
    }
}

#[test]
fn components_of_many_sizes() {
    let mut edges = Vec::new();
    let mut n = 0;
    for size in [1, 1, 2, 300, 1, 150, 199, 3, 2000, 201] {
        edges.extend((n + 1..n + size).map(|k| (k, n + (k - n) / 2)));
        n += size;
    }
    let a = matrix(n, &edges);
    let size = order_size(&a, &checked("forest", &a)).unwrap();
    // Trees have orders without fill.
    assert!(size.entries < 2.6 * n as f64, "{}", size.entries);
}

#[test]
fn hubs_come_last() {
    let n = 4000;
    let mut edges: Vec<_> = (1..n).map(|k| (k - 1, k)).collect();
    edges.extend((0..n).flat_map(|k| [(k, 77), (5, k)]));
    let order = checked("two hubs", &matrix(n, &edges));
    let mut last = order.new_to_old()[n - 2..].to_vec();
    last.sort_unstable();
    assert_eq!(last, [5, 77]);
}

#[test]
fn rings_and_helices() {
    // The last point of each line is coupled with the first of the next, and the first line with the last.
    let (n, line) = (1600, 40);
    let edges: Vec<_> = (0..n).flat_map(|k| [(k, (k + 1) % n), (k, (k + line) % n)]).collect();
    checked("ring", &matrix(n, &edges));
    let edges: Vec<_> = (0..n - line).flat_map(|k| [(k, k + 1), (k, k + line)]).collect();
    let a = matrix(n, &edges);
    let size = order_size(&a, &checked("helix", &a)).unwrap();
    assert!(size.entries < 40_000.0, "{}", size.entries);
}

#[test]
fn no_worse_than_minimum_degree_on_meshes() {
    let shuffled = |a: Csr<f64>| permute_symmetric(&a, &Permutation::random(a.rows(), 3).unwrap()).unwrap();
    for (name, a) in [
        ("5 points", shuffled(generate::poisson2d(80, 80).unwrap())),
        ("7 points", shuffled(generate::poisson3d(20, 20, 20).unwrap())),
        ("9 points", generate::poisson2d_9(70, 60).unwrap()),
        ("wathen", generate::wathen(25, 25, 1).unwrap()),
    ] {
        let [dissected, degree] = [checked(name, &a), minimum_degree(&a).unwrap()]
            .map(|order| order_size(&a, &order).unwrap().multiplications);
        assert!(dissected < 1.2 * degree, "{name}: {dissected:e} {degree:e}");
    }
}

#[test]
fn minimum_degree_ends_where_there_is_more_to_do_than_allowed() {
    let a = generate::poisson3d(20, 20, 20).unwrap();
    let graph = Adjacency::new(&a).unwrap();
    let order = minimum_degree_order(&graph).unwrap();
    let work = order_size(&a, &order).unwrap().multiplications;
    let within =
        |multiplications, steps| minimum_degree_within(&graph, Most { multiplications, steps }).unwrap();
    assert!(matches!(within(0.5 * work, f64::INFINITY), Err(Beyond::Multiplications(_))));
    assert!(matches!(within(f64::INFINITY, 1e4), Err(Beyond::Steps(_))));
    // Degrees are upper bounds, so the search needs a limit above the actual work.
    assert_eq!(within(2.0 * work, 1e7).unwrap().new_to_old(), order.new_to_old());
}

#[test]
fn random_ragged_patterns_give_permutations() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let n = 1 + random.below(3000) as usize;
        let entries = random.below(4 * n as u64) as usize;
        let reach = 1 + random.below(n as u64);
        let edges: Vec<_> = (0..entries)
            .map(|_| {
                let i = random.below(n as u64) as usize;
                (i, ((i as u64 + random.below(reach)) % n as u64) as usize)
            })
            .collect();
        checked(&format!("seed {seed}"), &matrix(n, &edges));
    }
}

#[test]
fn the_same_for_any_number_of_threads() {
    let a = generate::poisson3d(24, 25, 26).unwrap();
    let a = permute_symmetric(&a, &Permutation::random(a.rows(), 1).unwrap()).unwrap();
    let plane = generate::poisson2d(170, 170).unwrap();
    let orders = [1, 2, 3, 8, 16].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let InRegions::Found(regions) = in_regions(&plane) else { panic!("regions of a square") };
            [nested_dissection(&a).unwrap(), regions].map(|order| order.into_parts().0)
        })
    });
    assert!(orders.iter().all(|other| *other == orders[0]));
}

/// The result of ordering in regions, without limits.
fn in_regions(a: &Csr<f64>) -> InRegions {
    order_in_regions(&Adjacency::new(a).unwrap(), f64::INFINITY, f64::INFINITY).unwrap()
}

#[test]
fn regions_of_meshes_have_orders_as_good_as_minimum_degree() {
    let shuffled = |a: Csr<f64>| permute_symmetric(&a, &Permutation::random(a.rows(), 3).unwrap()).unwrap();
    for (name, most, a) in [
        ("5 points", 1.15, generate::poisson2d(180, 190).unwrap()),
        ("5 points in any order", 1.15, shuffled(generate::poisson2d(180, 190).unwrap())),
        ("9 points", 1.15, shuffled(generate::poisson2d_9(160, 150).unwrap())),
        ("wathen", 1.15, generate::wathen(90, 95, 1).unwrap()),
        ("7 points", 1.15, generate::poisson3d(32, 30, 28).unwrap()),
        // Minimum degree eliminates the strip from one end to the other; in a region it starts from both ends. Both
        // take little work.
        ("a strip", 2.2, shuffled(generate::poisson2d(3000, 8).unwrap())),
    ] {
        let InRegions::Found(order) = in_regions(&a) else { panic!("{name}") };
        let [found, degree] =
            [order, minimum_degree(&a).unwrap()].map(|order| order_size(&a, &order).unwrap().multiplications);
        assert!(found < most * degree, "{name}: {found:e} {degree:e}");
    }
}

#[test]
fn regions_of_graphs_with_holes_and_of_several_components_are_orders() {
    // `Permutation` checks that each vertex comes once, and minimum degree that no two regions are coupled.
    let mut found = 0;
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let (n, line) = (30_000, 100 + random.below(100) as usize);
        let mut edges = Vec::new();
        for k in 0..n {
            for other in [k + 1, k + line, k + line + 1] {
                if other < n && random.below(100) < 25 + 15 * seed {
                    edges.push((k, other));
                }
            }
        }
        for _ in 0..seed * 20 {
            edges.push((random.below(n as u64) as usize, random.below(n as u64) as usize));
        }
        if let InRegions::Found(order) = in_regions(&matrix(n, &edges)) {
            assert_eq!(order.len(), n);
            found += 1;
        }
    }
    assert!(found >= 4, "{found}");
}

#[test]
fn graphs_in_space_are_dissected_to_the_end_and_what_takes_too_long_is_told() {
    let a = generate::poisson3d(40, 40, 40).unwrap();
    let graph = Adjacency::new(&a).unwrap();
    let of = |few, most| order_in_regions(&graph, few, most).unwrap();
    let InRegions::Dissected(order) = of(1e7, f64::INFINITY) else { panic!("a graph in space") };
    let again = dissection_order(&graph).unwrap();
    assert_eq!(order.new_to_old(), again.new_to_old(), "coarser graphs of the cuts change nothing");
    let all = order_size(&a, &dissection_order(&graph).unwrap()).unwrap().multiplications;
    assert!(matches!(of(1e7, 1e7), InRegions::Takes(least) if least > 1e7 && least < all));
    // A graph without small separators.
    let mut random = Random::new(1);
    let mut any = || random.below(20_000) as usize;
    let edges: Vec<_> = (0..80_000).map(|_| (any(), any())).collect();
    let graph = matrix(20_000, &edges);
    let none = order_in_regions(&Adjacency::new(&graph).unwrap(), 1e9, f64::INFINITY).unwrap();
    assert!(matches!(none, InRegions::HasNone));
}
