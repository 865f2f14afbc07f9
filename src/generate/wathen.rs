//! Wathen's matrix.

use super::rows::{by_rows, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// 45 times the mass matrix of the 8-node serendipity element.
const ELEMENT: [[f64; 8]; 8] = [
    [6., -6., 2., -8., 3., -8., 2., -6.],
    [-6., 32., -6., 20., -8., 16., -8., 20.],
    [2., -6., 6., -6., 2., -8., 3., -8.],
    [-8., 20., -6., 32., -6., 20., -8., 16.],
    [3., -8., 2., -6., 6., -6., 2., -8.],
    [-8., 16., -8., 20., -6., 32., -6., 20.],
    [2., -8., 3., -8., 2., -6., 6., -6.],
    [-6., 20., -8., 16., -8., 20., -6., 32.],
];

/// The mass matrix of nx x ny serendipity elements with random densities in [0, 100): 3 nx ny + 2 nx + 2 ny + 1
/// unknowns, positive definite, and well conditioned after scaling by its diagonal (Wathen, "Realistic eigenvalue
/// bounds for the Galerkin mass matrix", IMA J. Numer. Anal. 7, 1987). Numbered as in Higham's test matrix toolbox.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn wathen(nx: usize, ny: usize, seed: u64) -> Result<Csr<f64>> {
    if nx == 0 || ny == 0 {
        return Err(Error::InvalidArgument("a Wathen matrix needs at least 1 x 1 elements".into()));
    }
    unknowns(&[nx.saturating_add(1), ny.saturating_add(1), 3])?;
    let n = 3 * nx * ny + 2 * nx + 2 * ny + 1;
    // Nodes are numbered by levels: 2 nx + 1 on a horizontal line of edges, then nx + 1 on the edges above it.
    let level = 3 * nx + 2;
    // The nodes of element (i, j), counterclockwise from its upper right corner.
    let nodes = |i: usize, j: usize| {
        let (low, high) = (j * level + 2 * i, (j + 1) * level + 2 * i);
        let rising = j * level + 2 * nx + 1 + i;
        [high + 2, high + 1, high, rising, low, low + 1, low + 2, rising + 1]
    };
    by_rows(n, n, |r, row| {
        let (j, place) = (r / level, r % level);
        // The elements around the node, lowest row first.
        let (across, up) = if place > 2 * nx {
            let i = place - (2 * nx + 1);
            (i.saturating_sub(1)..(i + 1).min(nx), j..j + 1)
        } else {
            let i = place / 2;
            let across = if place % 2 == 1 { i..i + 1 } else { i.saturating_sub(1)..(i + 1).min(nx) };
            (across, j.saturating_sub(1)..(j + 1).min(ny))
        };
        for j in up {
            for i in across.clone() {
                let nodes = nodes(i, j);
                let density = 100.0 * Random::stream(seed, (j * nx + i) as u64).unit();
                for (_, line) in nodes.iter().zip(&ELEMENT).filter(|(node, _)| **node == r) {
                    for (node, e) in nodes.into_iter().zip(line) {
                        row.add(node, density * (e / 45.0));
                    }
                }
            }
        }
        row.sum_duplicates();
    })
}
