//! Time-harmonic waves.

use super::grid::{Star, check_positive, point, star_matrix};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use num_complex::Complex;
use std::f64::consts::TAU;

/// -Laplacian(u) - k^2 u on a box of points (a size of 1 omits that dimension), u = 0 on the boundary, differences of
/// second order times the spacing squared; `wavelength` is the number of points per wavelength, which determines k.
/// Symmetric, and indefinite as soon as half a wavelength fits into the box.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `wavelength` is positive.
pub fn helmholtz(size: [usize; 3], wavelength: f64) -> Result<Csr<f64>> {
    check_positive("wavelength", wavelength)?;
    star_matrix(size, |_| {
        let arm = |d: usize| if size[d] > 1 { [-1.0; 2] } else { [0.0; 2] };
        let arms: [[f64; 2]; 3] = std::array::from_fn(arm);
        let dimensions = arms.iter().filter(|arm| arm[0] != 0.0).count() as f64;
        Star { centre: 2.0 * dimensions - (TAU / wavelength).powi(2), arms }
    })
}

/// As [`helmholtz`], with a layer inside all walls that absorbs waves, one wavelength deep (at most a quarter of the
/// box): k^2 becomes k^2 (1 + i s), and s grows with the square of the depth from 0 to 2 (a sponge; Engquist and Majda,
/// "Absorbing boundary conditions for the numerical simulation of waves", Mathematics of Computation 31, 1977, describe
/// what it approximates). Complex symmetric, not Hermitian.
///
/// # Errors
/// As [`helmholtz`].
pub fn helmholtz_absorbing(size: [usize; 3], wavelength: f64) -> Result<Csr<Complex<f64>>> {
    let real = helmholtz(size, wavelength)?;
    let k2 = (TAU / wavelength).powi(2);
    let parts = real.parts();
    let starts = parts.offsets.download(&crate::Host)?;
    let depth = |at: usize, n: usize| {
        let layer = wavelength.min(n as f64 / 4.0);
        let wall = (at + 1).min(n - at) as f64;
        if n > 1 { ((layer + 1.0 - wall) / layer).max(0.0) } else { 0.0 }
    };
    let mut values: Vec<Complex<f64>> = parts.values.iter().map(|&value| value.into()).collect();
    for row in 0..real.rows() {
        let at = point(size, row);
        let deepest = (0..3).map(|d| depth(at[d], size[d])).fold(0.0, f64::max);
        let entries = starts[row]..starts[row + 1];
        let Ok(diagonal) = parts.indices[entries.clone()].binary_search(&(row as u32)) else {
            return Err(Error::InvalidMatrix(format!("row {row} has no diagonal entry")));
        };
        values[entries.start + diagonal] -= Complex::new(0.0, 2.0 * k2 * deepest * deepest);
    }
    Ok(real.with_values(values))
}
