//! Fourth-order problems and images: stencils with more than one layer of neighbours.

use super::grid::{check_positive, point};
use super::rows::{by_entries, by_rows, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// The biharmonic operator on a clamped plate of nx x ny points, 13 points per row: u and its normal derivative are 0
/// at the boundary (G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 4.8). Positive definite, with
/// a condition number that grows with the fourth power of the side.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn plate(nx: usize, ny: usize) -> Result<Csr<f64>> {
    let n = unknowns(&[nx, ny])?;
    by_rows(n, n, |i, row| {
        let at = point([nx, ny, 1], i);
        for dy in -2_i64..=2 {
            for dx in -2_i64..=2 {
                let value = match (dx.abs(), dy.abs()) {
                    (0, 0) => {
                        // Values beyond the boundary mirror those before it.
                        let walls = [at[0] == 0, at[0] + 1 == nx, at[1] == 0, at[1] + 1 == ny];
                        20.0 + walls.into_iter().filter(|&wall| wall).count() as f64
                    }
                    (0, 1) | (1, 0) => -8.0,
                    (1, 1) => 2.0,
                    (0, 2) | (2, 0) => 1.0,
                    _ => continue,
                };
                let (x, y) = (at[0] as i64 + dx, at[1] as i64 + dy);
                if (0..nx as i64).contains(&x) && (0..ny as i64).contains(&y) {
                    row.push(y as usize * nx + x as usize, value);
                }
            }
        }
    })
}

/// Normal equations of deblurring an image of nx x ny pixels: B^T B + L, where B blurs over 3 x 3 pixels and L is a
/// Laplacian whose weights are small across edges of the image, random over `contrast` (C. R. Vogel and M. E. Oman,
/// "Iterative methods for total variation denoising", SIAM J. Sci. Comput. 17, 1996). Positive definite.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `contrast` is from 1 to 1e100.
pub fn image(nx: usize, ny: usize, contrast: f64, seed: u64) -> Result<Csr<f64>> {
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    check_positive("pixels", nx.min(ny) as f64)?;
    let n = unknowns(&[nx, ny])?;
    let mut entries = Vec::with_capacity(80 * n);
    let weight = |dx: i64, dy: i64| f64::from(4 >> dx.unsigned_abs().min(2) >> dy.unsigned_abs()) / 16.0;
    let near = |i: usize| {
        let [x, y, _] = point([nx, ny, 1], i);
        (-1_i64..=1).flat_map(move |dy| (-1_i64..=1).map(move |dx| (dx, dy))).filter_map(move |(dx, dy)| {
            let (x, y) = (x as i64 + dx, y as i64 + dy);
            let inside = (0..nx as i64).contains(&x) && (0..ny as i64).contains(&y);
            inside.then(|| (y as usize * nx + x as usize, weight(dx, dy)))
        })
    };
    for i in 0..n {
        for (j, left) in near(i) {
            for (k, right) in near(i) {
                entries.push(((j as u64) << 32 | k as u64, left * right));
            }
        }
        let mut random = Random::stream(seed, i as u64);
        let [x, y, _] = point([nx, ny, 1], i);
        for j in [(x + 1 < nx).then(|| i + 1), (y + 1 < ny).then(|| i + nx)].into_iter().flatten() {
            let w = 1e-3 * contrast.powf(-random.unit());
            for (row, column, value) in [(i, i, w), (j, j, w), (i, j, -w), (j, i, -w)] {
                entries.push(((row as u64) << 32 | column as u64, value));
            }
        }
    }
    by_entries(n, n, entries)
}

/// The curl of the curl in a box of unit cells, plus a mass: unknowns on edges, as in Yee's scheme and Nedelec's
/// elements of lowest order (K. S. Yee, IEEE Trans. Antennas Propag. 14, 1966). Faces have random coefficients over two
/// decades. Positive definite; the curl of a gradient is zero, so that only the mass remains, which is `1 / contrast`.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `contrast` is from 1 to 1e100.
pub fn maxwell(cells: [usize; 3], contrast: f64, seed: u64) -> Result<Csr<f64>> {
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    // Edges along d start at the points that have a neighbour in direction d.
    let sides = cells.map(|n| n + 1);
    let along: [[usize; 3]; 3] =
        std::array::from_fn(|d| std::array::from_fn(|e| sides[e] - usize::from(e == d)));
    let counts = along.map(|edges| edges.iter().product::<usize>());
    let starts = [0, counts[0], counts[0] + counts[1]];
    let n = unknowns(&[counts.iter().sum()])?;
    let edge = |d: usize, at: [usize; 3]| starts[d] + at[0] + along[d][0] * (at[1] + along[d][1] * at[2]);
    let mut entries = Vec::with_capacity(14 * n);
    for axis in 0..3 {
        // Faces across the axis have edges along the other two.
        let (d, e) = ((axis + 1) % 3, (axis + 2) % 3);
        let faces: [usize; 3] = std::array::from_fn(|k| if k == axis { sides[k] } else { cells[k] });
        for face in 0..faces.iter().product() {
            let at = point(faces, face);
            let mut random = Random::stream(seed, (face * 3 + axis) as u64);
            let coefficient = 100_f64.powf(random.unit() - 0.5);
            let beside = |k: usize| std::array::from_fn(|j| at[j] + usize::from(j == k));
            let around = [
                (edge(d, at), 1.0),
                (edge(e, beside(d)), 1.0),
                (edge(d, beside(e)), -1.0),
                (edge(e, at), -1.0),
            ];
            for (row, left) in around {
                for (column, right) in around {
                    entries.push(((row as u64) << 32 | column as u64, coefficient * left * right));
                }
            }
        }
    }
    entries.extend((0..n as u64).map(|i| (i << 32 | i, 1.0 / contrast)));
    by_entries(n, n, entries)
}
