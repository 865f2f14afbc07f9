//! Matrices used by several cases.

use crate::random::Random;
use residua::graph::{self, Permutation};
use residua::{Csr, Scalar};

/// The same matrix with its rows and columns in random order.
pub fn shuffled(a: &Csr<f64>) -> Csr<f64> {
    graph::permute_symmetric(a, &Permutation::random(a.rows(), 5).unwrap()).unwrap()
}

pub fn sorted(n: usize, mut triplets: Vec<(usize, usize, f64)>) -> Csr<f64> {
    triplets.sort_by_key(|&(i, j, _)| (i, j));
    let offsets = (0..=n).map(|row| triplets.partition_point(|&(i, _, _)| i < row)).collect();
    let columns = triplets.iter().map(|&(_, j, _)| j as u32).collect();
    Csr::from_parts(n, n, offsets, columns, triplets.into_iter().map(|(_, _, value)| value).collect())
        .unwrap()
}

/// Linear elements on triangles, some of them flat: the corners of a grid's cells, each moved by up to 0.49 of their
/// distance, with each cell cut along either diagonal, coefficients over two decades, and fixed values along one side.
pub fn triangles(n: usize) -> Csr<f64> {
    triangles_in_wind(n, 0.0)
}

/// The same with a wind that rotates about the middle, whose speed is `wind` times the distance from it in units of the
/// side: Galerkin's discretisation, without any upwinding.
pub fn triangles_in_wind(n: usize, wind: f64) -> Csr<f64> {
    let mut random = Random(11);
    let points: Vec<[f64; 2]> = (0..n * n)
        .map(|i| [(i % n) as f64, (i / n) as f64].map(|place| place + 0.49 * random.signed()))
        .collect();
    let mut sums = std::collections::BTreeMap::new();
    for cell in (0..(n - 1) * (n - 1)).map(|cell| cell % (n - 1) + cell / (n - 1) * n) {
        let [a, b, c, d] = [cell, cell + 1, cell + n + 1, cell + n];
        let cut = if random.below(2) == 0 { [[a, b, c], [a, c, d]] } else { [[a, b, d], [b, c, d]] };
        for corners in cut {
            let k = 10.0_f64.powf(random.signed());
            let edge = |from: usize, to: usize| {
                let (from, to) = (points[corners[from % 3]], points[corners[to % 3]]);
                [to[0] - from[0], to[1] - from[1]]
            };
            let (u, v) = (edge(0, 1), edge(0, 2));
            let twice_the_area = (u[0] * v[1] - u[1] * v[0]).abs().max(1e-3);
            for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                // For each corner, the opposite edge.
                let (of_i, of_j) = (edge(i + 1, i + 2), edge(j + 1, j + 2));
                let diffusion = k * (of_i[0] * of_j[0] + of_i[1] * of_j[1]) / (2.0 * twice_the_area);
                let at = points[corners[0]].map(|place| (place / n as f64 - 0.5) * wind);
                let value = diffusion - (at[1] * of_j[1] + at[0] * of_j[0]) / 6.0;
                *sums.entry((corners[i], corners[j])).or_insert(0.0) += value;
            }
        }
    }
    (0..n).for_each(|i| *sums.entry((i, i)).or_insert(0.0) += 1.0);
    sorted(n * n, sums.into_iter().map(|((i, j), value)| (i, j, value)).collect())
}

/// L A R with diagonal matrices.
pub fn times<T: Scalar>(a: &Csr<T>, left: impl Fn(usize) -> T, right: impl Fn(usize) -> T) -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.rows() {
        let (columns, entries) = a.row(i);
        indices.extend_from_slice(columns);
        values.extend(columns.iter().zip(entries).map(|(&j, &value)| value * (left(i) * right(j as usize))));
        offsets.push(indices.len());
    }
    Csr::from_parts(a.rows(), a.columns(), offsets, indices, values).unwrap()
}
