//! Iterative refinement with residuals in twice the working precision and x as a sum of two numbers.
//!
//! Demmel, Hida, Kahan, Li, Mukherjee and Riedy, "Error bounds from extra-precise iterative refinement", ACM Trans.
//! Math. Softw. 32 (2006).

use super::factor::Factor;
use super::fgmres::fgmres;
use super::goal::{Goal, largest_of, norm};
use super::options::Kind;
use super::steps::{FEW, columns_of_transpose, times};
use crate::backend::host::residual as accurate;
use crate::backend::{CsrParts, Host, OffsetsRef};
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::{Real, Scalar};
use crate::work::is_asked;
use num_traits::Float;

/// The maximum number of refinement steps. Each step must at least halve the residual.
const STEPS: usize = 30;
/// Iterations of flexible GMRES between two accurate residuals, and how often they are repeated at most.
const ITERATIONS: usize = 60;
const ROUNDS: usize = 6;
/// A least-squares solution has ||A^H r|| / (||A|| ||r||) of at most this times the tolerance.
pub(super) const LEAST: f64 = 0.01;
/// r may grow by this factor, due to rounding, while A^H r falls.
const LEVEL: f64 = 1.0 + 1e-6;

/// The largest magnitude.
pub(super) fn largest<T: Scalar>(x: &[T]) -> f64 {
    largest_of(x, |_, x| x.abs().to_f64())
}

/// r = b - A (x + second) in twice the working precision.
pub(crate) fn residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], second: Option<&[T]>, r: &mut [T]) {
    let CsrParts { offsets, indices, values, .. } = a.parts();
    match offsets {
        OffsetsRef::Lower(offsets) => {
            accurate::residual((offsets, indices, values), T::one(), b, (x, second), r);
        }
        OffsetsRef::Wide(offsets) => {
            accurate::residual((offsets, indices, values), T::one(), b, (x, second), r);
        }
    }
}

/// The result of a refinement. Sizes are those of [`Goal::size_of`].
pub(super) struct Refined<T> {
    pub(super) x: Vec<T>,
    /// The part of x that is lost by rounding to one number.
    pub(super) second: Vec<T>,
    /// The size of b - A x for x alone, and for x + `second`.
    pub(super) residual: f64,
    pub(super) two_part: f64,
    /// ||b - A x|| for x alone, and its largest entry.
    pub(super) norm: f64,
    pub(super) largest: f64,
    /// ||A^H r|| / (||A|| ||r||) for x + `second`, if r stopped falling and the factor leads to least-squares
    /// solutions; and the same for x alone.
    pub(super) normal: Option<f64>,
    pub(super) normal_of_x: Option<f64>,
    /// The part of `normal` that may be due to rounding x and b.
    pub(super) normal_rounding: f64,
    /// Whether rounding limits the residual of x: one more step did not halve it, and x solves a system whose entries
    /// differ by rounding, or is the rounded solution.
    pub(super) limited: bool,
    pub(super) steps: usize,
    pub(super) iterations: usize,
}

impl<T: Scalar> Refined<T> {
    /// x = 0, for an A with `columns` columns.
    pub(super) fn zero(columns: usize, b: &[T], goal: &Goal<'_>) -> Self {
        let zeros = vec![T::default(); columns];
        let size = goal.size_of(b);
        Self {
            x: zeros.clone(),
            second: zeros,
            residual: size,
            two_part: size,
            norm: goal.norm_of(b),
            largest: largest(b),
            normal: None,
            normal_of_x: None,
            normal_rounding: 0.0,
            limited: false,
            steps: 0,
            iterations: 0,
        }
    }
}

/// A componentwise backward error of at most this many rounding units is due to rounding: rounding x costs half a unit,
/// and its residual another half.
pub(super) const AT_ROUNDING: f64 = 4.0;

/// The componentwise backward error of an x with residual r: the largest |r_i| / (|A| |x| + |b|)_i. Oettli and Prager,
/// Numer. Math. 6 (1964).
pub(super) fn componentwise_error<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], r: &[T]) -> f64 {
    let errors = (0..a.rows()).into_par_iter().map(|row| {
        let (size, sum) = (r[row].abs().to_f64(), magnitudes(a, row, x) + b[row].abs().to_f64());
        if size == 0.0 { 0.0 } else { size / sum }
    });
    errors.collect().into_iter().fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a })
}

/// (|A| |x|)_i.
pub(crate) fn magnitudes<T: Scalar>(a: &Csr<T>, row: usize, x: &[T]) -> f64 {
    let (indices, values) = a.row(row);
    let mut sum = 0.0;
    for (&column, value) in both(indices, values) {
        sum += value.abs().to_f64() * x[column as usize].abs().to_f64();
    }
    sum
}

/// If the componentwise backward error is at most this, x solves a nearby system, and refinement may improve it.
const NEARBY: f64 = 1e-8;

/// A row-wise bound on the rounding errors in a residual computed in twice the working precision.
fn doubt<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> Vec<T> {
    let unit = <T::Real as Float>::epsilon().to_f64() * if T::COMPLEX { 4.0 } else { 1.0 };
    let bound = |row: usize| {
        let of_sums = ((a.row(row).0.len() as f64 + 4.0) * unit).powi(2);
        T::from_f64(of_sums * (magnitudes(a, row, x) + b[row].abs().to_f64()))
    };
    let mut bounds = vec![T::default(); a.rows()];
    bounds.par_iter_mut().enumerate().with_min_len(FEW).for_each(|(row, place)| *place = bound(row));
    bounds
}

/// Returns whether the componentwise backward error is due to rounding.
pub(super) fn is_at_rounding<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], r: &[T]) -> bool {
    componentwise_error(a, b, x, r) <= AT_ROUNDING * <T::Real as Float>::epsilon().to_f64()
}

/// If the cosine of the angle between r and a column is above this, a step along that column would improve x.
const PARALLEL: f64 = 1e-4;

/// ||A^H r|| / (||A|| ||r||), with ||A|| estimated from below by the norm of its largest column. Small columns hardly
/// count in it, so the largest cosine between a column and r replaces it if that is not small.
pub(super) fn normal_residual<T: Scalar>(a: &Csr<T>, r: &[T]) -> f64 {
    let (mut product, mut columns) = (vec![T::default(); a.columns()], vec![0.0_f64; a.columns()]);
    let length = norm(r);
    for (row, &r) in r.iter().enumerate() {
        let (indices, values) = a.row(row);
        for (&column, &value) in both(indices, values) {
            product[column as usize] += value.conj() * times(r, 1.0 / length);
            // Squares would overflow if the entries of A are far from 1.
            columns[column as usize] = columns[column as usize].hypot(value.abs().to_f64());
        }
    }
    let size = columns.iter().copied().fold(0.0, f64::max);
    if !(size > 0.0 && length > 0.0) {
        return 0.0;
    }
    let cosine = |(product, column): (&T, &f64)| product.abs().to_f64() / column;
    let beside = product.iter().zip(&columns).filter(|(_, column)| **column > 0.0);
    let parallel = beside.map(cosine).fold(0.0, f64::max);
    if parallel > PARALLEL { parallel } else { norm(&product) / size }
}

/// If A^H r is at most this many rounding units of ||A|| (||A|| ||x|| + ||b||), rounding x and b alone may have made it
/// that large: no x of this precision is nearer to the least-squares solution.
const GRADIENT_UNITS: f64 = 16.0;

/// Rounding may excuse a ratio ||A^H r|| / (||A|| ||r||) of at most this power of the rounding unit: 1e-6 in double
/// precision.
const EXCUSED: f64 = 0.375;

/// Rows are even if the largest of their norms is at most this times the smallest. If they are not, rounding in large
/// rows may hide all that small ones tell.
pub(crate) const EVEN: f64 = 1e6;

/// The residual of a least-squares solution has a backward error of at least this many rounding units, and it is at
/// least this many times the tolerance if rows are not even: a smaller one may be due to rounding, so that another
/// kind may meet the tolerance.
pub(crate) const ALMOST: f64 = 1e3;

/// Only a residual below this fraction of ||b|| is so small that rounding counts. This, [`EVEN`], [`EXCUSED`] and
/// [`OF_RESIDUAL`] were set on small systems with known answers; `tests/verdicts` checks them there and on random ones.
const SMALL_PART: f64 = 1e-4;

/// The ratio ||A^H r|| / (||A|| ||r||) that rounding may cause if ||A|| ||x|| + ||b|| is `sums` and ||r|| is
/// `residual`.
pub(crate) fn excused<T: Scalar>((sums, b): (f64, f64), residual: f64) -> f64 {
    let unit = <T::Real as Float>::epsilon().to_f64();
    if residual > SMALL_PART * b {
        return 0.0;
    }
    (GRADIENT_UNITS * unit * sums / residual).min(unit.powf(EXCUSED))
}

/// The part of a residual that may be due to a solution that is not exact.
const OF_RESIDUAL: f64 = 1e-6;

/// Returns whether small changes make r = b - A x orthogonal to every column of A, as it is for the x with the
/// smallest residual. Each r_i may change by a part of itself (`OF_RESIDUAL`) and by a `part` of (|A| |x| + |b|)_i. In
/// this test, unlike in ||A^H r|| / (||A|| ||r||), a few large rows or columns cannot hide the others. Residuals of row
/// i are multiplied by `weights[i]`, if there are any, to become those of the caller's matrix.
pub(crate) fn is_orthogonal<T: Scalar>(
    (a, b, x): (&Csr<T>, &[T], &[T]),
    weights: Option<&[f64]>,
    part: f64,
) -> bool {
    let mut r = vec![T::default(); a.rows()];
    residual(a, b, x, None, &mut r);
    let (mut products, mut allowed) = (vec![T::default(); a.columns()], vec![0.0_f64; a.columns()]);
    // A itself is scaled in the same way as r, so a weight counts twice.
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row] * weights[row]);
    let most = largest_of(&r, |row, r| weight(row) * r.abs().to_f64());
    for (row, &r) in r.iter().enumerate() {
        let (indices, values) = a.row(row);
        // Relative to the largest, so that no product underflows.
        let weight = weight(row) / most;
        let r = times(r, weight);
        let sum = weight * (magnitudes(a, row, x) + b[row].abs().to_f64());
        let change = OF_RESIDUAL * r.abs().to_f64() + part * sum;
        for (&column, &value) in both(indices, values) {
            products[column as usize] += value.conj() * r;
            allowed[column as usize] += value.abs().to_f64() * change;
        }
    }
    products.iter().zip(&allowed).all(|(product, &allowed)| product.abs().to_f64() <= allowed)
}

/// The ratio of [`normal_residual`] that rounding x and b alone may cause.
fn normal_rounding<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], r: &[T]) -> f64 {
    let sum = |row: usize| magnitudes(a, row, x) + b[row].abs().to_f64();
    let sums: Vec<f64> = (0..a.rows()).into_par_iter().map(sum).collect();
    excused::<T>((norm(&sums), norm(b)), norm(r))
}

/// A^H r.
fn adjoint_product<T: Scalar>(a: &Csr<T>, r: &[T]) -> Vec<T> {
    let mut product = vec![T::default(); a.columns()];
    for (row, &r) in r.iter().enumerate() {
        let (indices, values) = a.row(row);
        both(indices, values).for_each(|(&j, &value)| product[j as usize] += value.conj() * r);
    }
    product
}

/// (x, second) += d, exact up to the rounding of `second`.
pub(super) fn add<T: Scalar>(x: &mut [T], second: &mut [T], d: &[T]) {
    x.par_iter_mut().zip(second).zip(d).with_min_len(FEW).for_each(|((x, second), &d)| {
        let (old, d) = (*x, d + *second);
        let sum = old + d;
        let moved = sum - old;
        *second = (old - (sum - moved)) + (d - moved);
        *x = sum;
    });
}

/// Solves A x = b with a factor until the size of b - A x is at most that of the goal, if that is possible. Without
/// `patient`, it ends at the limit of the precision; with it, GMRES goes on, because for a singular matrix it may find
/// a shorter x.
pub(super) fn refine<T: Factorable>(
    a: &Csr<T>,
    factor: &Factor<T>,
    b: &[T],
    goal: &Goal<'_>,
    patient: bool,
) -> Refined<T> {
    let (m, n) = (a.rows(), a.columns());
    let mut best = Refined::zero(n, b, goal);
    let least = matches!(factor.kind, Kind::ShiftedLdlt | Kind::Regularised | Kind::DenseQr);
    let least_goal = LEAST * goal.norm / best.norm;
    if !best.residual.is_finite() {
        return best;
    }
    let (mut r, mut plain) = (b.to_vec(), vec![T::default(); m]);
    let (mut rounds, mut stalled) = (0, false);
    while best.residual > goal.norm && best.steps < STEPS && rounds < ROUNDS && !is_asked() {
        let before = best.two_part;
        let d = if stalled {
            if m != n {
                break;
            }
            rounds += 1;
            let mut product = |x: &[T], y: &mut [T]| {
                // The sizes agree, so the product cannot fail; if it did, y would stay zero and end the iteration.
                let _ = a.product(&Host, T::from_f64(1.0), x, T::default(), y);
            };
            let mut precondition = |z: &mut Vec<T>| factor.apply(false, z);
            let aim = norm(&r) * (goal.norm / best.two_part) / 4.0;
            let (d, spent) = fgmres(&mut product, &mut precondition, &r, aim, ITERATIONS);
            best.iterations += spent;
            d
        } else if best.normal.is_some() && factor.has_normal() {
            // r no longer decreases, so a solve with r would have errors of that size. A^H r is small, and so are the
            // errors of a solve with it.
            let mut d = adjoint_product(a, &r);
            factor.apply_normal(&mut d);
            best.steps += 1;
            d
        } else {
            let mut d = r.clone();
            factor.apply(false, &mut d);
            best.steps += 1;
            d
        };
        let (mut x, mut second) = (best.x.clone(), best.second.clone());
        add(&mut x, &mut second, &d);
        // A first step that starts from zero leaves the second part zero.
        let beyond = second.iter().any(|&s| s != T::default()).then_some(&second[..]);
        residual(a, b, &x, beyond, &mut plain);
        let two_part = goal.size_of(&plain);
        let stands = two_part.is_nan() || two_part > before / 2.0;
        // If b is not in the range of A, A^H r continues to fall after r has stopped.
        let normal = (least && stands).then(|| normal_residual(a, &plain));
        let nearer = normal.is_some_and(|normal| {
            normal < best.normal.unwrap_or(f64::INFINITY) / 2.0 && two_part <= before * LEVEL
        });
        // The residual of the rounded solution may exceed b itself; the backward error shows that it is a solution.
        let is_solution =
            || best.steps == 1 && two_part.is_finite() && componentwise_error(a, b, &x, &plain) <= NEARBY;
        let taken = two_part > before && !patient && is_solution();
        let gained = two_part < before || nearer || taken;
        let old = best.residual;
        if gained {
            best.normal = normal;
            std::mem::swap(&mut r, &mut plain);
            if beyond.is_some() {
                residual(a, b, &x, None, &mut plain);
            } else {
                plain.copy_from_slice(&r);
            }
            (best.residual, best.norm, best.largest) =
                (goal.size_of(&plain), goal.norm_of(&plain), largest(&plain));
            if best.residual <= goal.norm {
                // Adds a bound on the rounding errors of the residual: if x is very large, b itself may be lost in the
                // sums.
                best.residual += goal.size_of(&doubt(a, b, &x));
            }
            best.normal_of_x = normal.map(|_| normal_residual(a, &plain));
            if normal.is_some() {
                best.normal_rounding = normal_rounding(a, b, &x, &plain);
            }
            (best.x, best.second, best.two_part) = (x, second, two_part);
            if two_part <= goal.norm / 64.0 && best.residual <= goal.norm {
                break;
            }
        }
        // One more accurate step did not halve the residual of the rounded x, so none will.
        let floor = best.steps > 1 && best.residual > old / 2.0 && !patient;
        if floor && best.normal.is_none() && best.residual > goal.norm {
            if !gained {
                residual(a, b, &best.x, None, &mut plain);
            }
            // Limited if x + `second` meets the goal, or if the backward error of x is at the rounding level.
            best.limited = best.two_part <= goal.norm / 64.0 || is_at_rounding(a, b, &best.x, &plain);
            if best.limited {
                break;
            }
        }
        if best.normal.is_some_and(|normal| normal <= least_goal.max(best.normal_rounding)) {
            break;
        }
        if stands && !nearer && !taken {
            if stalled {
                break;
            }
            stalled = true;
        }
    }
    best
}

/// ||A||_1, the largest column sum of magnitudes, and ||A||_inf, the largest row sum.
pub(super) fn norms<T: Scalar>(a: &Csr<T>) -> (f64, f64) {
    let Ok(rows) = columns_of_transpose(a) else { return (f64::NAN, f64::NAN) };
    let (mut columns, mut most) = (vec![0.0; a.columns()], 0.0_f64);
    let values = a.parts().values;
    for row in 0..a.rows() {
        let mut sum = 0.0;
        for k in rows.starts[row] as usize..rows.starts[row + 1] as usize {
            let size = values[k].abs().to_f64();
            sum += size;
            columns[rows.indices[k] as usize] += size;
        }
        most = most.max(sum);
    }
    (columns.into_iter().fold(0.0, f64::max), most)
}
