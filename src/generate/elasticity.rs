//! Linear elasticity with bilinear (2D) or trilinear (3D) elements.

use super::grid::{check_positive, point};
use super::rows::{by_rows, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;

/// Young's modulus of [`elasticity2d`] and [`elasticity3d`].
const YOUNG: f64 = 1e5;

/// A plane-strain plate of nx x ny unit squares, Q1 elements, clamped at x = 0 (those unknowns are omitted, so the
/// matrix is positive definite): 2 nx (ny + 1) unknowns, two per node. Young's modulus 1e5. Element matrices are
/// computed by Gauss quadrature with 2 points per direction (Hughes, "The Finite Element Method", chapter 2).
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `poisson_ratio` is in (0, 0.5).
pub fn elasticity2d(nx: usize, ny: usize, poisson_ratio: f64) -> Result<Csr<f64>> {
    elasticity([nx, ny, 0], 2, poisson_ratio)
}

/// A beam of nx x ny x nz unit cubes, otherwise as [`elasticity2d`]: 3 nx (ny + 1) (nz + 1) unknowns.
///
/// # Errors
/// As [`elasticity2d`].
pub fn elasticity3d(nx: usize, ny: usize, nz: usize, poisson_ratio: f64) -> Result<Csr<f64>> {
    elasticity([nx, ny, nz], 3, poisson_ratio)
}

fn elasticity(elements: [usize; 3], dimensions: usize, poisson_ratio: f64) -> Result<Csr<f64>> {
    check_positive("Poisson's ratio", poisson_ratio)?;
    if poisson_ratio >= 0.5 {
        return Err(Error::InvalidArgument(format!(
            "Poisson's ratio must be below 0.5, not {poisson_ratio}"
        )));
    }
    let corners = 1 << dimensions;
    let stiffness = element_stiffness(dimensions, poisson_ratio);
    let edge = corners * dimensions;
    // Only the free nodes: those at x = 0 are clamped, so x counts from 1.
    let free = [elements[0], elements[1].saturating_add(1), elements[2].saturating_add(1)];
    let n = unknowns(&[free[0], free[1], free[2], dimensions])?;
    by_rows(n, n, |i, row| {
        let component = i % dimensions;
        let [x, y, z] = point(free, i / dimensions);
        let node = [x + 1, y, z];
        // In descending order of corners, the elements ascend. Both triangles then sum the same numbers in the same
        // order, and the matrix is exactly symmetric.
        for a in (0..corners).rev() {
            let corner = |c: usize, d: usize| (c >> d) & 1;
            let inside =
                (0..dimensions).all(|d| node[d] >= corner(a, d) && node[d] - corner(a, d) < elements[d]);
            if !inside {
                continue;
            }
            for b in 0..corners {
                let [x, y, z] =
                    [0, 1, 2].map(|d| if d < dimensions { node[d] - corner(a, d) + corner(b, d) } else { 0 });
                if x == 0 {
                    continue;
                }
                let column = ((z * free[1] + y) * free[0] + x - 1) * dimensions;
                for c in 0..dimensions {
                    row.add(column + c, stiffness[(a * dimensions + component) * edge + b * dimensions + c]);
                }
            }
        }
        row.sum_duplicates();
    })
}

/// The element matrix of the unit square or cube, row-major; the bits of `a` are the coordinates of corner `a`: K\[a i,
/// b j\] = integral of lambda d_i N_a d_j N_b + mu d_j N_a d_i N_b + mu (grad N_a . grad N_b) delta_ij.
fn element_stiffness(dimensions: usize, poisson_ratio: f64) -> Vec<f64> {
    let lambda = YOUNG * poisson_ratio / ((1.0 + poisson_ratio) * (1.0 - 2.0 * poisson_ratio));
    let mu = YOUNG / (2.0 * (1.0 + poisson_ratio));
    let corners = 1usize << dimensions;
    let edge = corners * dimensions;
    let gauss = [0.5 - 0.5 / 3f64.sqrt(), 0.5 + 0.5 / 3f64.sqrt()];
    let weight = 0.5f64.powi(dimensions as i32);
    let mut k = vec![0.0; edge * edge];
    for quadrature in 0..corners {
        let at = |d: usize| gauss[(quadrature >> d) & 1];
        let gradient = |a: usize, i: usize| -> f64 {
            (0..dimensions)
                .map(|d| match ((a >> d) & 1 == 1, d == i) {
                    (true, true) => 1.0,
                    (false, true) => -1.0,
                    (true, false) => at(d),
                    (false, false) => 1.0 - at(d),
                })
                .product()
        };
        for (a, i) in (0..edge).map(|r| (r / dimensions, r % dimensions)) {
            for (b, j) in (0..edge).map(|r| (r / dimensions, r % dimensions)) {
                let mut term =
                    lambda * gradient(a, i) * gradient(b, j) + mu * gradient(a, j) * gradient(b, i);
                if i == j {
                    term += mu * (0..dimensions).map(|d| gradient(a, d) * gradient(b, d)).sum::<f64>();
                }
                k[(a * dimensions + i) * edge + b * dimensions + j] += weight * term;
            }
        }
    }
    // The matrix is symmetric in exact arithmetic; the mean with its transpose is exactly symmetric.
    let transposed: Vec<f64> = (0..edge * edge).map(|e| k[e % edge * edge + e / edge]).collect();
    k.iter().zip(transposed).map(|(a, b)| 0.5 * (a + b)).collect()
}
