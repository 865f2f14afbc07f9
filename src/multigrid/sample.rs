//! A sample of the rows of a matrix, on the host. It shows properties of most rows with few transfers from a device.

use super::MultigridBackend;
use super::setup::longest_row;
use crate::error::Result;
use crate::graph::HUB;
use crate::matrix::Csr;
use crate::mixing::mixed;
use crate::parallel::both;
use crate::scalar::{Real, Scalar};

/// The number of windows, and of rows in each.
const WINDOWS: usize = 16;
const WINDOW: usize = 64;

/// The number of windows if the sought property varies over many rows.
const MANY_WINDOWS: usize = 64;

/// A row jumps if its largest coupling is at least `JUMP` times its smallest. If at least the fraction `OFTEN` of all
/// rows jump, isolated parts of a grid are coupled to the rest a million times more weakly than within. Levels on grids
/// do not suit such matrices, because isolated parts share points with others there: a grid of 128^3 points with such
/// blocks of 8^3 took 92 iterations, 12 with classical levels. With blocks whose coefficients are spread evenly over
/// six decades 2 to 4 % of the rows jump, with lognormal coefficients of sigma 3 it is 3 %; levels on grids suit both.
const JUMP: f64 = 1e4;
const OFTEN: f64 = 0.07;

/// A coupling below this fraction of the row's largest is the rounding error of a zero, as in meshes with right angles.
const NO_COUPLING: f64 = 1e-10;

/// A matrix still counts as an M-matrix if couplings with the sign of the diagonal are at most this fraction of all
/// magnitudes: linear elements on meshes with obtuse angles have few.
const OTHER_SIGN: f64 = 0.1;

/// Windows of neighbouring rows, each with the index of its first row.
fn windows<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    most: usize,
) -> Result<Vec<(usize, Csr<T>)>> {
    // One window in each part of the rows, at a fixed, pseudo-random position: equal distances might hit every grid
    // line at its end.
    let (rows, step) = (a.rows(), a.rows().div_ceil(most).max(WINDOW));
    let within = |start: usize| start + mixed(start as u64) as usize % (step - WINDOW + 1);
    let starts: Vec<usize> = (0..rows).step_by(step).map(|start| within(start).min(rows)).collect();
    let windows: Vec<_> = starts.iter().map(|&start| start..(start + WINDOW).min(rows)).collect();
    Ok(starts.into_iter().zip(a.windows(backend, &windows)?).collect())
}

/// The median of |sum of row i| / (sum of magnitudes of row i), which rows at a boundary hardly change. A row that is
/// empty or has a NaN counts as large.
pub(super) fn relative_sums<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<f64> {
    let mut sums = Vec::with_capacity(WINDOWS * WINDOW);
    for (_, window) in windows(backend, a, WINDOWS)? {
        sums.extend((0..window.rows()).map(|i| {
            let values = window.row(i).1;
            let sum = values.iter().fold(T::zero(), |sum, &value| sum + value);
            let magnitudes: f64 = values.iter().map(|value| value.abs().to_f64()).sum();
            sum.abs().to_f64() / magnitudes
        }));
    }
    sums.sort_by(f64::total_cmp);
    Ok(sums.get(sums.len() / 2).map_or(0.0, |sum| sum.abs()))
}

/// The sign of a row's diagonal entry, or 0 if there is none.
fn sign_of_diagonal<T: Scalar>((columns, values): (&[u32], &[T]), row: usize) -> f64 {
    let place = columns.iter().position(|&j| j as usize == row);
    place.map_or(0.0, |place| values[place].re().to_f64().signum())
}

/// Returns whether some row has `HUB` times the mean number of entries or more. Coarser levels are then dense, and one
/// thread's row delays all others (circuits: 29 ms per iteration for 15 000 unknowns, H200, 2026-11-28).
pub(crate) fn has_hubs<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<bool> {
    Ok(longest_row(backend, a)? as usize * a.rows() > HUB * a.nonzeros())
}

/// True if nearly all couplings have the opposite sign to the diagonal, as in an M-matrix.
pub(crate) fn is_like_an_m_matrix<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
) -> Result<bool> {
    let (mut of_it, mut all) = (0.0, 0.0);
    for (first, window) in windows(backend, a, WINDOWS)? {
        for i in 0..window.rows() {
            let (columns, values) = window.row(i);
            let sign = sign_of_diagonal((columns, values), first + i);
            for (_, value) in both(columns, values).filter(|&(&j, _)| j as usize != first + i) {
                let size = value.abs().to_f64();
                all += size;
                // The imaginary part has no sign, so half of it counts for each.
                of_it += (size + sign * value.re().to_f64()) / 2.0;
            }
        }
    }
    Ok(all > 0.0 && of_it <= OTHER_SIGN * all)
}

/// True if couplings jump in so many rows that levels on a grid do not suit the matrix.
pub(super) fn has_jumps<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<bool> {
    let (mut of_it, mut all) = (0, 0);
    for (first, window) in windows(backend, a, MANY_WINDOWS)? {
        for i in 0..window.rows() {
            let (columns, values) = window.row(i);
            let beside = both(columns, values).filter(|&(&j, _)| j as usize != first + i);
            let sizes: Vec<f64> = beside.map(|(_, value)| value.abs().to_f64()).collect();
            let most = sizes.iter().fold(0.0, |most: f64, &size| most.max(size));
            let couplings = sizes.iter().filter(|&&size| size > NO_COUPLING * most);
            let least = couplings.fold(f64::INFINITY, |least, &size| least.min(size));
            of_it += usize::from(most >= JUMP * least);
            all += 1;
        }
    }
    Ok(of_it as f64 > OFTEN * all as f64)
}

/// A matrix counts as shifted if at least this fraction of its row sums have the opposite sign to the diagonal; and the
/// size below which a row sum is rounding error, relative to the magnitudes of its row.
const SHIFTED: f64 = 0.75;
const ROUNDED: f64 = 1e-10;

/// Returns whether nearly all row sums have the opposite sign to the diagonal entry, as for Helmholtz problems, for
/// which this multigrid is not suited. Convection gives sums of both signs.
pub(crate) fn is_shifted<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<bool> {
    let (mut of_it, mut all) = (0.0, 0.0);
    for (first, window) in windows(backend, a, WINDOWS)? {
        for i in 0..window.rows() {
            let (columns, values) = window.row(i);
            let sign = sign_of_diagonal((columns, values), first + i);
            let sum: f64 = values.iter().map(|value| value.re().to_f64()).sum();
            let magnitudes: f64 = values.iter().map(|value| value.abs().to_f64()).sum();
            of_it += f64::from(u8::from(sign * sum < -ROUNDED * magnitudes));
            all += 1.0;
        }
    }
    Ok(of_it > SHIFTED * all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, generate};

    #[test]
    fn signs_of_couplings_tell_what_is_like_an_m_matrix() {
        let is_like = |a: &Csr<f64>| is_like_an_m_matrix(&Host, a).unwrap();
        let wind = generate::convection_diffusion([20, 20, 20], 1e-2).unwrap();
        assert!(is_like(&wind) && is_like(&wind.map(|value| -value)));
        // All entries as magnitudes: all couplings have the sign of the diagonal.
        assert!(!is_like(&wind.map(f64::abs)));
        assert!(!is_like(&generate::elasticity3d(6, 6, 6, 0.3).unwrap()));
        let complex = wind.map(|value| num_complex::Complex::new(value, value));
        assert!(!is_like_an_m_matrix(&Host, &complex).unwrap());
    }

    #[test]
    fn jumps_between_blocks_are_seen_where_levels_of_grids_would_not_follow() {
        let jumps = |a: &Csr<f64>| has_jumps(&Host, a).unwrap();
        let sides = [40, 40, 40];
        assert!(!jumps(&generate::poisson3d(40, 40, 40).unwrap()));
        assert!(!jumps(&generate::jumping(sides, 1e6, 8, 1).unwrap()));
        assert!(!jumps(&generate::anisotropic3d(40, 40, 40, 1e-3).unwrap()));
        // Three in ten blocks of 8^3 points have a million times the coefficient of the others.
        let is_high = |i: usize| {
            let block = (i % 40) / 8 + 5 * (i / 40 % 40 / 8) + 25 * (i / 1600 / 8);
            mixed(block as u64) % 10 < 3
        };
        let mut entries = crate::matrix::Triplets::new(64_000, 64_000).unwrap();
        generate::poisson3d(40, 40, 40).unwrap().iter().for_each(|(i, j, value)| {
            let size = if is_high(i) && is_high(j) { 1e6 } else { 1.0 };
            entries.push(i, j, size * value).unwrap();
        });
        assert!(jumps(&crate::assemble::to_csr(&Host, entries).unwrap()));
    }

    #[test]
    fn a_shift_beyond_the_smallest_eigenvalues_is_seen() {
        let grid = generate::poisson2d(60, 60).unwrap();
        let shifted = |by: f64| {
            is_shifted(&Host, &grid.map(|value| if value > 0.0 { value - by } else { value })).unwrap()
        };
        assert!(!shifted(0.0) && shifted(1e-3));
        let wind = generate::convection_diffusion([20, 20, 20], 1e-2).unwrap();
        assert!(!is_shifted(&Host, &wind).unwrap() && !is_shifted(&Host, &wind.map(|value| -value)).unwrap());
    }

    #[test]
    fn boundaries_do_not_decide_about_sums() {
        for sides in [[30, 30, 30], [64, 20, 16], [12, 12, 12]] {
            let a = generate::poisson3d(sides[0], sides[1], sides[2]).unwrap();
            assert!(relative_sums(&Host, &a).unwrap() < 1e-12, "{sides:?}");
        }
        let mass = generate::poisson2d(40, 40).unwrap().map(f64::abs);
        assert!(relative_sums(&Host, &mass).unwrap() > 0.9);
    }
}
