//! Transport problems: oil reservoirs, semiconductors, fluid flow.

use super::grid::{check_positive, point};
use super::rows::{by_entries, by_rows, unknowns};
use super::saddle::stokes;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// A step of a reservoir simulation in a box of cells with three unknowns each: a pressure, governed by Darcy's law
/// with lognormal permeabilities over `contrast`, and two saturations, transported with the flow by upwind differences
/// (K. Aziz and A. Settari, Petroleum Reservoir Simulation, 1979). Not symmetric.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `contrast` is from 1 to 1e100.
pub fn reservoir(cells: [usize; 3], contrast: f64, seed: u64) -> Result<Csr<f64>> {
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    let count = unknowns(&cells)?;
    let n = unknowns(&[count, 3])?;
    // A sum of twelve uniform numbers is nearly normal; six standard deviations cover the contrast.
    let permeability = |cell: usize| {
        let mut random = Random::stream(seed, cell as u64);
        let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        contrast.powf(normal / 6.0)
    };
    let steps = [1, cells[0], cells[0] * cells[1]];
    by_rows(n, n, |i, row| {
        let (cell, unknown) = (i / 3, i % 3);
        let (at, own) = (point(cells, cell), permeability(cell));
        let mut random = Random::stream(!seed, cell as u64);
        // Compressibility makes the pressure block regular, the time derivative makes the saturation blocks regular.
        let storage = if unknown == 0 { 1e-4 * (1.0 + random.unit()) } else { 1.0 };
        let mut centre = storage;
        for d in 0..3 {
            for ahead in [false, true] {
                let inside = if ahead { at[d] + 1 < cells[d] } else { at[d] > 0 };
                if !inside {
                    continue;
                }
                let other = if ahead { cell + steps[d] } else { cell - steps[d] };
                let theirs = permeability(other);
                let transmissibility = 2.0 * own * theirs / (own + theirs);
                if unknown == 0 {
                    centre += transmissibility;
                    row.add(3 * other, -transmissibility);
                    // The pressure equation depends on the mobility of the fluids upstream.
                    if !ahead {
                        row.add(3 * other + 1, -0.1 * transmissibility);
                        row.add(3 * cell + 1, 0.1 * transmissibility);
                    }
                } else {
                    // Oil and water flow towards cells with larger numbers, and the second saturation half as fast.
                    let flow = transmissibility * if unknown == 1 { 1.0 } else { 0.5 };
                    if ahead {
                        centre += flow;
                    } else {
                        row.add(3 * other + unknown, -flow);
                    }
                    row.add(3 * other, -0.3 * flow);
                    row.add(3 * cell, 0.3 * flow);
                }
            }
        }
        row.add(i, centre);
        row.sum_duplicates();
    })
}

/// Electrons in a rectangular semiconductor by the exponential fitting of D. L. Scharfetter and H. K. Gummel (IEEE
/// Trans. Electron Devices 16, 1969): diffusion, and drift in a potential whose exponential spans `contrast`. The
/// contact is at x = 0. An M-matrix, which is not symmetric.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `contrast` is from 1 to 1e100.
pub fn drift_diffusion(nx: usize, ny: usize, contrast: f64) -> Result<Csr<f64>> {
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    let n = unknowns(&[nx, ny])?;
    let potential = |x: i64, y: i64| {
        let [x, y] = [x as f64 / nx as f64, y as f64 / ny as f64].map(|t| std::f64::consts::TAU * t);
        0.25 * contrast.ln() * (x.sin() * y.cos() + (2.0 * x + y).cos())
    };
    // Bernoulli's function t / (e^t - 1).
    let bernoulli = |t: f64| if t.abs() < 1e-9 { 1.0 - t / 2.0 } else { t / t.exp_m1() };
    by_rows(n, n, |i, row| {
        let [x, y, _] = point([nx, ny, 1], i).map(|at| at as i64);
        let here = potential(x, y);
        for (dx, dy) in [(0, -1), (-1, 0), (1, 0), (0, 1)] {
            let (other_x, other_y) = (x + dx, y + dy);
            let is_contact = other_x < 0;
            if !is_contact && (other_x >= nx as i64 || other_y < 0 || other_y >= ny as i64) {
                continue;
            }
            let rise = potential(other_x, other_y) - here;
            row.add(i, bernoulli(rise));
            if !is_contact {
                row.add((other_y * nx as i64 + other_x) as usize, -bernoulli(-rise));
            }
        }
        row.sum_duplicates();
    })
}

/// Flow around the centre of a rectangle, linearised around a rotating velocity field: [`stokes`] with upwind
/// convection. A saddle point problem that is not symmetric (H. C. Elman, D. J. Silvester and A. J. Wathen, Finite
/// Elements and Fast Iterative Solvers, 2nd ed., chapter 8).
///
/// # Errors
/// As [`stokes`].
pub fn oseen(nx: usize, ny: usize, viscosity: f64) -> Result<Csr<f64>> {
    check_positive("viscosity", viscosity)?;
    let slow = stokes([nx, ny, 1], viscosity, true)?;
    let across_x = (nx - 1) * ny;
    let velocities = across_x + nx * (ny - 1);
    let position = |i: usize| {
        let width = if i < across_x { nx - 1 } else { nx };
        let i = if i < across_x { i } else { i - across_x };
        [(i % width) as f64 + if width == nx { 0.5 } else { 1.0 }, (i / width) as f64]
    };
    let mut entries = Vec::with_capacity(slow.nonzeros() + 4 * velocities);
    for i in 0..slow.rows() {
        let (columns, values) = slow.row(i);
        for (&column, &value) in columns.iter().zip(values) {
            let j = column as usize;
            entries.push(((i as u64) << 32 | j as u64, value));
            if i == j || i >= velocities || j >= velocities {
                continue;
            }
            let (here, there) = (position(i), position(j));
            let wind = [here[1] / ny as f64 - 0.5, 0.5 - here[0] / nx as f64];
            let towards: f64 = (0..2).map(|d| wind[d] * (here[d] - there[d])).sum();
            if towards > 0.0 {
                entries.push(((i as u64) << 32 | i as u64, towards));
                entries.push(((i as u64) << 32 | j as u64, -towards));
            }
        }
    }
    by_entries(slow.rows(), slow.rows(), entries)
}
