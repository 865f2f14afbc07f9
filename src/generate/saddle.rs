//! Saddle points: quadratic programs and Stokes flow.

use super::grid::{check_positive, point};
use super::rows::{by_entries, by_rows, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// The system of an interior-point step for a random sparse convex quadratic program: minimise 1/2 x^T H x + c^T x
/// under A x = b, x >= 0 (Nocedal and Wright, "Numerical Optimization", 2nd ed., section 16.6).
///
/// ```text
/// | H + D  A^T |   H  sum of w (e_i - e_j)(e_i - e_j)^T over random pairs i, j: positive semidefinite
/// | A       .  |   D  the barrier's diagonal, over `contrast`: some variables free, some at their bound
/// ```
///
/// `constraints` rows of A have two to five entries each. The first entry of row k is in a column in which no later row
/// has one, so that the constraints are independent: the matrix is regular, symmetric and indefinite, and its number of
/// negative eigenvalues is that of the constraints.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d); if there are more constraints than variables, and unless `contrast` is from 1 to
/// 1e100.
pub fn quadratic_program(variables: usize, constraints: usize, contrast: f64, seed: u64) -> Result<Csr<f64>> {
    if constraints > variables {
        return Err(Error::InvalidArgument(format!(
            "{constraints} constraints on {variables} variables: there may not be more constraints than variables"
        )));
    }
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    let rows = unknowns(&[variables])? + constraints;
    unknowns(&[rows])?;
    let mut entries = Vec::with_capacity(6 * variables + 8 * constraints);
    let mut add = |i: usize, j: usize, value: f64| entries.push(((i as u64) << 32 | j as u64, value));
    for i in 0..variables {
        let mut random = Random::stream(seed, i as u64);
        add(i, i, contrast.powf(random.unit() - 0.5));
        let j = random.below(variables as u64) as usize;
        if j != i {
            let weight = random.unit();
            for (row, column, value) in [(i, i, weight), (j, j, weight), (i, j, -weight), (j, i, -weight)] {
                add(row, column, value);
            }
        }
    }
    for k in 0..constraints {
        let mut random = Random::stream(seed, (variables + k) as u64);
        let first = (k as u128 * variables as u128 / constraints as u128) as usize;
        let row = variables + k;
        let mut couple = |column: usize, value: f64| {
            add(row, column, value);
            add(column, row, value);
        };
        couple(first, 1.0 + random.unit());
        for _ in 0..1 + random.below(4) {
            let later = variables - first - 1;
            if later > 0 {
                couple(first + 1 + random.below(later as u64) as usize, 2.0 * random.unit() - 1.0);
            }
        }
    }
    by_entries(rows, rows, entries)
}

/// Stokes flow in a box (a size of 1 in z: in a rectangle) with u = 0 on all walls, velocities on the faces of cells
/// and pressures at their centres (Harlow and Welch, "Numerical calculation of time-dependent viscous incompressible
/// flow of fluid with free surface", Physics of Fluids 8, 1965), cells of edge 1:
///
/// ```text
/// | viscosity * (-Laplacian)  gradient |   unknowns: inner faces across x, across y, across z, then cells,
/// | -divergence               .        |   each x fastest; -divergence is the transpose of gradient
/// ```
///
/// Symmetric and indefinite. Constant pressures are mapped to zero; with `pinned`, the first cell has -1 on the
/// diagonal instead, and its pressure is 0 if the divergence is zero everywhere.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d); unless there are at least two cells in x and in y, and `viscosity` is positive.
pub fn stokes(cells: [usize; 3], viscosity: f64, pinned: bool) -> Result<Csr<f64>> {
    check_positive("viscosity", viscosity)?;
    if cells[0] < 2 || cells[1] < 2 {
        return Err(Error::InvalidArgument("Stokes flow needs two cells at least in x and in y".into()));
    }
    let strides = [1, cells[0], cells[0] * cells[1]];
    let pressures = unknowns(&cells)?;
    // A face across d separates two cells, so in that direction there is one face less than cells.
    let faces: [[usize; 3]; 3] =
        std::array::from_fn(|d| std::array::from_fn(|e| if e == d { cells[e] - 1 } else { cells[e] }));
    let counts = faces.map(|faces| faces.iter().product::<usize>());
    let starts = [0, counts[0], counts[0] + counts[1], counts.iter().sum::<usize>()];
    let rows = unknowns(&[starts[3] + pressures])?;
    by_rows(rows, rows, |i, row| {
        if i >= starts[3] {
            let cell = i - starts[3];
            let at = point(cells, cell);
            for d in 0..3 {
                let strides = [1, faces[d][0], faces[d][0] * faces[d][1]];
                let place = |at: [usize; 3]| starts[d] + (0..3).map(|e| at[e] * strides[e]).sum::<usize>();
                // In direction d, the number of the face below a cell is the cell's number minus one.
                if at[d] > 0 {
                    let mut below = at;
                    below[d] -= 1;
                    row.push(place(below), 1.0);
                }
                if at[d] + 1 < cells[d] {
                    row.push(place(at), -1.0);
                }
            }
            if pinned && cell == 0 {
                row.push(i, -1.0);
            }
            return;
        }
        let d = (0..3).rev().find(|&d| i >= starts[d]).unwrap_or(0);
        let at = point(faces[d], i - starts[d]);
        let steps = [1, faces[d][0], faces[d][0] * faces[d][1]];
        let mut centre = 0.0;
        for e in (0..3).rev().filter(|&e| cells[e] > 1) {
            centre += 2.0;
            if at[e] > 0 {
                row.push(i - steps[e], -viscosity);
            } else if e != d {
                // The wall is half a cell away: the velocity mirrored beyond it has the opposite sign.
                centre += 1.0;
            }
        }
        for e in (0..3).filter(|&e| e != d && cells[e] > 1) {
            centre += f64::from(u8::from(at[e] + 1 == faces[d][e]));
        }
        row.push(i, viscosity * centre);
        for e in 0..3 {
            if at[e] + 1 < faces[d][e] {
                row.push(i + steps[e], -viscosity);
            }
        }
        let cell = starts[3] + (0..3).map(|e| at[e] * strides[e]).sum::<usize>();
        row.push(cell, -1.0);
        row.push(cell + strides[d], 1.0);
    })
}
