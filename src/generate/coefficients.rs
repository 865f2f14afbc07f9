//! Diffusion whose coefficient jumps from block to block, and diffusion with convection.

use super::grid::{Star, check_positive, star_matrix};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// -div(k grad u) on a box of cells (a size of 1 omits that dimension), cell-centred finite volumes: the flux between
/// two cells uses the harmonic mean of their k, and u = 0 on the whole boundary, half a cell away (Wesseling,
/// "Principles of Computational Fluid Dynamics", section 3.3). k is constant on blocks of `block` cells in each
/// direction, with values that are log-uniform from 1 to `contrast`.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d); unless `contrast` is from 1e-150 to 1e150, so that products of two coefficients
/// are finite, and `block` at least 1.
pub fn jumping(size: [usize; 3], contrast: f64, block: usize, seed: u64) -> Result<Csr<f64>> {
    if !(1e-150..=1e150).contains(&contrast) {
        return Err(Error::InvalidArgument(format!(
            "contrast must be from 1e-150 to 1e150, not {contrast:e}"
        )));
    }
    if block == 0 {
        return Err(Error::InvalidArgument("block must be at least 1 cell".into()));
    }
    let blocks = size.map(|n| n.div_ceil(block) as u64);
    let conductivity = |at: [usize; 3]| {
        let [x, y, z] = at.map(|c| (c / block) as u64);
        contrast.powf(Random::stream(seed, (z * blocks[1] + y) * blocks[0] + x).unit())
    };
    star_matrix(size, |at| {
        let here = conductivity(at);
        let mut star = Star { centre: 0.0, arms: [[0.0; 2]; 3] };
        for d in 0..3 {
            if size[d] == 1 {
                continue;
            }
            for side in 0..2 {
                let outside = if side == 0 { at[d] == 0 } else { at[d] + 1 == size[d] };
                let flux = if outside {
                    2.0 * here
                } else {
                    let mut beyond = at;
                    beyond[d] = if side == 0 { at[d] - 1 } else { at[d] + 1 };
                    let there = conductivity(beyond);
                    2.0 * (here * there) / (here + there)
                };
                star.arms[d][side] = -flux;
                star.centre += flux;
            }
        }
        star
    })
}

/// -`diffusion` Laplacian(u) + v . grad u on the unit box (nz = 1: the unit square), first-order upwind differences, u
/// = 0 on the boundary: an unsymmetric M-matrix. v recirculates: (4x(1-x)(1-2y), -4y(1-y)(1-2x), 1/2). The flow is
/// that of Elman, Silvester and Wathen, "Finite Elements and Fast Iterative Solvers", example 6.1.4, moved to the unit
/// square.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `diffusion` is positive.
pub fn convection_diffusion(size: [usize; 3], diffusion: f64) -> Result<Csr<f64>> {
    check_positive("diffusion", diffusion)?;
    let spacing = size.map(|n| 1.0 / (n as f64 + 1.0));
    star_matrix(size, |at| {
        let [x, y, _] = [0, 1, 2].map(|d| (at[d] + 1) as f64 * spacing[d]);
        let velocity = [4.0 * x * (1.0 - x) * (1.0 - 2.0 * y), -4.0 * y * (1.0 - y) * (1.0 - 2.0 * x), 0.5];
        let mut star = Star { centre: 0.0, arms: [[0.0; 2]; 3] };
        for d in 0..3 {
            if d == 2 && size[2] == 1 {
                continue;
            }
            let h = spacing[d];
            let spread = diffusion / (h * h);
            star.arms[d] = [-spread - velocity[d].max(0.0) / h, -spread + velocity[d].min(0.0) / h];
            star.centre += 2.0 * spread + velocity[d].abs() / h;
        }
        star
    })
}
