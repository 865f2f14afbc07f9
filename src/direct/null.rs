//! The proof that a matrix is singular: a vector whose product with it is zero, up to rounding, in every row.

use super::factor::Factor;
use super::goal::largest_of;
use super::refine::{add, largest, magnitudes, residual};
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::random::Random;
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// The maximum number of steps that remove from a vector its components outside of the null space, and how many of them
/// in a row may fail to reduce its [`null_ratio`]. The ratio falls slowly if pivots were perturbed.
const STEPS: usize = 40;
const IDLE: usize = 4;

/// |A v|_i is zero if it is at most this many rounding units of (|A| |v|)_i. Rounding the entries of A and of v costs
/// one unit; matrices that are assembled from sums with cancellation have some more. Componentwise Laplacians have 1 to
/// 2, free elastic bodies up to 10, and nonsingular matrices with a condition number of 1e13 have 1000 and more.
pub(crate) const NULL_UNITS: f64 = 16.0;

/// The largest |A v|_i / (|A| |v|)_i in rounding units, with A v in twice the working precision. Infinite if v is zero
/// or not finite.
pub(crate) fn null_ratio<T: Scalar>(a: &Csr<T>, v: &[T]) -> f64 {
    let zero = vec![T::default(); a.rows()];
    let mut product = zero.clone();
    residual(a, &zero, v, None, &mut product);
    let unit = <T::Real as Float>::epsilon().to_f64();
    let size = largest(v);
    if !(size > 0.0 && size.is_finite()) {
        return f64::INFINITY;
    }
    largest_of(&product, |row, product| {
        let (left, beside) = (product.abs().to_f64(), magnitudes(a, row, v));
        match () {
            () if left.is_nan() || !beside.is_finite() => f64::INFINITY,
            () if left > 0.0 => left / (unit * beside),
            () => 0.0,
        }
    })
}

/// Searches for a null vector by inverse iteration with the factor, and returns the smallest ratio (`null_ratio`) that
/// it finds. A ratio of at most [`NULL_UNITS`] proves that A is singular up to rounding of its entries.
pub(super) fn nearest_to_null<T: Factorable>(a: &Csr<T>, factor: &Factor<T>) -> f64 {
    let n = a.columns();
    let mut random = Random::new(0x6e75_6c6c);
    let mut v: Vec<T> = (0..n).map(|_| T::from_f64(random.between(0.5, 1.0))).collect();
    let mut best = f64::INFINITY;
    // A pseudo-inverse amplifies no null vector; instead, w - A^+ A w is the null space component of w.
    let inverts = !factor.is_least_squares();
    if inverts {
        // A^-1 maps a vector nearly onto the null vector v of A, and A^-H onto that of A^H, called u. If u^H v = 0,
        // A^-1 twice would lose v. A^-H and then A^-1 does not.
        for adjoint in [true, false] {
            let conjugated =
                |v: &mut Vec<T>| v.iter_mut().for_each(|v| *v = if adjoint { v.conj() } else { *v });
            conjugated(&mut v);
            factor.apply(adjoint, &mut v);
            conjugated(&mut v);
            if !to_unit(&mut v) {
                return best;
            }
        }
    }
    // Small entries of v need more digits than one number has, so v is kept as a sum of two and rounded at the end.
    let zero = vec![T::default(); n];
    let (mut second, mut d) = (zero.clone(), zero.clone());
    let (mut idle, mut least) = (0, f64::INFINITY);
    for step in 0..=STEPS {
        let ratio = null_ratio(a, &v);
        idle = if ratio < 0.9 * least { 0 } else { idle + 1 };
        least = least.min(ratio);
        best = best.min(least);
        if let Some(clean) = without_noise(&v) {
            best = best.min(null_ratio(a, &clean));
        }
        if best <= NULL_UNITS || step == STEPS || idle == IDLE {
            break;
        }
        // A v comes only from the component of v outside of the null space, so solving with the residual -A v removes
        // that component. Its part along v itself is left out, since it would cancel v.
        residual(a, &zero, &v, Some(&second), &mut d);
        factor.apply(false, &mut d);
        let dot = |x: &[T], y: &[T]| x.iter().zip(y).fold(T::default(), |sum, (x, &y)| sum + x.conj() * y);
        let along = dot(&v, &d) * T::from_f64(1.0 / dot(&v, &v).re().to_f64());
        if inverts {
            d.iter_mut().zip(&v).for_each(|(d, &v)| *d -= along * v);
        }
        if d.iter().any(|d| !d.is_finite()) {
            break;
        }
        add(&mut v, &mut second, &d);
        let size = largest(&v);
        if !to_unit(&mut v) {
            break;
        }
        let scale = T::from_f64(largest(&v) / size);
        second.iter_mut().for_each(|second| *second *= scale);
    }
    best
}

/// Entries below this fraction of the largest one may be rounding errors of zeros.
const NOISE: f64 = 1e-12;

/// The vector with zeros in the place of entries that may be rounding errors, if there are such entries. In a row of A
/// that meets no others, they need not cancel, and |A v| could be as large as |A| |v|.
fn without_noise<T: Factorable>(v: &[T]) -> Option<Vec<T>> {
    let least = NOISE * largest(v);
    let is_noise = |v: &T| *v != T::default() && v.abs().to_f64() <= least;
    let clean = |v: &T| if is_noise(v) { T::default() } else { *v };
    v.iter().any(is_noise).then(|| v.iter().map(clean).collect())
}

/// Scales by a power of two such that the largest entry is near one. Returns whether there is a nonzero, finite entry.
fn to_unit<T: Factorable>(v: &mut [T]) -> bool {
    let size = largest(v);
    if !(size > 0.0 && size.is_finite()) || v.iter().any(|v| !v.is_finite()) {
        return false;
    }
    let scale = T::from_f64(2.0_f64.powi(-(size.log2() as i32).clamp(-1000, 1000)));
    v.iter_mut().for_each(|v| *v *= scale);
    true
}
