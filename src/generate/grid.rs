//! Stencils on boxes of grid points.
//!
//! Points are numbered x fastest, then y, then z. Neighbours beyond the boundary are omitted: a zero Dirichlet
//! condition one spacing outside.

use super::rows::{by_rows, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;

/// A star-shaped stencil at one point: its own coefficient, and those of its neighbours below and above in x, y and z.
pub(super) struct Star {
    pub(super) centre: f64,
    pub(super) arms: [[f64; 2]; 3],
}

impl Star {
    /// -sum of w_d (second difference in d): 2 w on the diagonal, -w off it.
    fn laplacian(weights: [f64; 3]) -> Self {
        Self { centre: 2.0 * weights.iter().sum::<f64>(), arms: weights.map(|w| [-w, -w]) }
    }
}

/// Coordinates of point `index` in a box.
pub(super) fn point(size: [usize; 3], index: usize) -> [usize; 3] {
    let [nx, ny, _] = size;
    [index % nx, index / nx % ny, index / nx / ny]
}

/// The matrix with the stencil `star(point)` in each row (up to 7 entries).
pub(super) fn star_matrix(size: [usize; 3], star: impl Fn([usize; 3]) -> Star + Sync) -> Result<Csr<f64>> {
    let n = unknowns(&size)?;
    let strides = [1, size[0], size[0] * size[1]];
    by_rows(n, n, |i, row| {
        let at = point(size, i);
        let star = star(at);
        for d in [2, 1, 0] {
            if at[d] > 0 {
                row.push(i - strides[d], star.arms[d][0]);
            }
        }
        row.push(i, star.centre);
        for d in [0, 1, 2] {
            if at[d] + 1 < size[d] {
                row.push(i + strides[d], star.arms[d][1]);
            }
        }
    })
}

/// The matrix with `centre` on the diagonal and -1 for each of the up to 26 neighbours.
fn box_matrix(size: [usize; 3], centre: f64) -> Result<Csr<f64>> {
    let n = unknowns(&size)?;
    let around = |d: usize, at: usize| at.saturating_sub(1)..(at + 2).min(size[d]);
    by_rows(n, n, |i, row| {
        let [x, y, z] = point(size, i);
        for zz in around(2, z) {
            for yy in around(1, y) {
                for xx in around(0, x) {
                    let j = (zz * size[1] + yy) * size[0] + xx;
                    row.push(j, if j == i { centre } else { -1.0 });
                }
            }
        }
    })
}

/// -Laplacian on nx x ny points, 5 points: 4 on the diagonal, -1 to the left, right, below and above.
///
/// # Errors
/// If the grid has more than 2^32 points, or memory runs out; the same for all functions here.
pub fn poisson2d(nx: usize, ny: usize) -> Result<Csr<f64>> {
    star_matrix([nx, ny, 1], |_| Star::laplacian([1.0, 1.0, 0.0]))
}

/// -Laplacian on nx x ny points, 9 points: 8 on the diagonal, -1 to all points around (the collection's `gr_30_30`).
///
/// # Errors
/// As [`poisson2d`].
pub fn poisson2d_9(nx: usize, ny: usize) -> Result<Csr<f64>> {
    box_matrix([nx, ny, 1], 8.0)
}

/// -Laplacian on nx x ny x nz points, 7 points: 6 on the diagonal, -1 to the six neighbours.
///
/// # Errors
/// As [`poisson2d`].
pub fn poisson3d(nx: usize, ny: usize, nz: usize) -> Result<Csr<f64>> {
    star_matrix([nx, ny, nz], |_| Star::laplacian([1.0; 3]))
}

/// The 27-point matrix: 26 on the diagonal, -1 to all points around, as in the HPCG benchmark (Dongarra, Heroux and
/// Luszczek, "A new metric for ranking high-performance computing systems", 2016).
///
/// # Errors
/// As [`poisson2d`].
pub fn poisson3d_27(nx: usize, ny: usize, nz: usize) -> Result<Csr<f64>> {
    box_matrix([nx, ny, nz], 26.0)
}

/// -(u_xx + `anisotropy` u_yy), 5 points: strong coupling in x if `anisotropy` is small.
///
/// # Errors
/// As [`poisson2d`], and unless `anisotropy` is positive.
pub fn anisotropic2d(nx: usize, ny: usize, anisotropy: f64) -> Result<Csr<f64>> {
    check_positive("anisotropy", anisotropy)?;
    star_matrix([nx, ny, 1], |_| Star::laplacian([1.0, anisotropy, 0.0]))
}

/// -(u_xx + u_yy + `anisotropy` u_zz), 7 points: layers that are weakly coupled if `anisotropy` is small.
///
/// # Errors
/// As [`anisotropic2d`].
pub fn anisotropic3d(nx: usize, ny: usize, nz: usize, anisotropy: f64) -> Result<Csr<f64>> {
    check_positive("anisotropy", anisotropy)?;
    star_matrix([nx, ny, nz], |_| Star::laplacian([1.0, 1.0, anisotropy]))
}

pub(super) fn check_positive(what: &str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::InvalidArgument(format!("{what} must be a positive number, not {value}")))
    }
}
