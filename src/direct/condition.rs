//! Estimates of ||A^-1||_1 from solves with A and A^H: Higham, "FORTRAN codes for estimating the one-norm of a real or
//! complex matrix", ACM Trans. Math. Softw. 14 (1988), algorithm 674; after Hager, SIAM J. Sci. Stat. Comput. 5 (1984).

use super::factor::Factor;
use super::goal::{Weights, sum_of};
use super::refine::magnitudes;
use super::steps::FEW;
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::Real;
use num_traits::Float;

fn sum<T: Factorable>(x: &[T]) -> f64 {
    sum_of(x, |_, x| x.abs().to_f64())
}

/// The index of the first entry with the largest magnitude.
fn place_of_largest<T: Factorable>(x: &[T]) -> usize {
    let first = |part: &[T], from: usize| {
        (0..part.len()).fold((from, T::Real::default()), |best, k| {
            let size = part[k].abs();
            if size > best.1 { (from + k, size) } else { best }
        })
    };
    let places = x.par_chunks(FEW).enumerate().map(|(number, part)| first(part, number * FEW)).collect();
    let none = (0, T::Real::default());
    places.into_iter().fold(none, |best, other| if other.1 > best.1 { other } else { best }).0
}

/// Applies a factor to one or two vectors; for two vectors the factor is read only once.
fn apply<T: Factorable>(factor: &Factor<T>, transposed: bool, x: &mut Vec<T>, other: Option<&mut Vec<T>>) {
    match other {
        Some(other) => factor.apply_both(transposed, x, other),
        None => factor.apply(transposed, x),
    }
}

/// A lower bound of ||A^-1||_1, usually within a factor of 3, from at most eleven solves.
pub(super) fn inverse_norm<T: Factorable>(factor: &Factor<T>, n: usize) -> Option<f64> {
    if n == 0 || !factor.has_transpose() {
        return None;
    }
    estimate(n, &|x, y| apply(factor, false, x, y), &|x| factor.apply(true, x))
}

/// The condition number of A in the 1-norm, from a factor of R A C: A^-1 = C (R A C)^-1 R.
pub(super) fn scaled_condition<T: Factorable>(
    (a, factor): (&Csr<T>, &Factor<T>),
    weights: &Weights,
) -> Option<f64> {
    let (n, plain) = (a.rows(), weights.plain.as_ref()?);
    if n == 0 || !factor.has_transpose() {
        return None;
    }
    let column = |j: usize| weights.columns.as_ref().map_or(1.0, |columns| columns[j]);
    let mut sums = vec![0.0_f64; a.columns()];
    for (row, weight) in plain.iter().enumerate() {
        let (indices, values) = a.row(row);
        for (&j, value) in both(indices, values) {
            sums[j as usize] += weight * value.abs().to_f64() / column(j as usize);
        }
    }
    let rows =
        |x: &mut [T]| x.iter_mut().zip(plain).for_each(|(x, weight)| *x *= T::from_f64(weight.recip()));
    let columns = |x: &mut [T]| x.iter_mut().enumerate().for_each(|(j, x)| *x *= T::from_f64(column(j)));
    let inverse = estimate(
        n,
        &|x, mut other| {
            rows(x);
            other.iter_mut().for_each(|other| rows(other));
            apply(factor, false, x, other.as_deref_mut());
            columns(x);
            other.iter_mut().for_each(|other| columns(other));
        },
        &|x| {
            columns(x);
            factor.apply(true, x);
            rows(x);
        },
    );
    inverse.map(|inverse| inverse * sums.into_iter().fold(0.0, f64::max))
}

/// An estimate of the forward error in the maximum norm, relative to the largest entry of x, if the entries of A and b
/// are known up to rounding: || |A^-1| w || / ||x||, where w is the larger of |b - A x| and half a unit of rounding of
/// |A| |x| + |b|. This is the bound of LAPACK (xGERFS), estimated in the same way: || |A^-1| w ||_inf = || W A^-T ||_1
/// with W = diag(w). Row and column scaling does not change it.
pub(super) fn forward_error<T: Factorable>(
    (a, factor): (&Csr<T>, &Factor<T>),
    b: &[T],
    x: &[T],
    r: &[T],
) -> Option<f64> {
    let n = a.rows();
    if n == 0 || a.columns() != n || !factor.has_transpose() {
        return None;
    }
    // Each complex product has four rounding errors.
    let products = if T::COMPLEX { 4.0 } else { 1.0 };
    let half = 0.5 * products * <T::Real as Float>::epsilon().to_f64();
    let weight = |row: usize| {
        let rounding = half * (magnitudes(a, row, x) + b[row].abs().to_f64());
        T::from_f64(rounding.max(r[row].abs().to_f64()))
    };
    let mut weights = vec![T::default(); n];
    weights.par_iter_mut().enumerate().with_min_len(FEW).for_each(|(row, place)| *place = weight(row));
    let times_weights =
        |x: &mut [T]| x.par_iter_mut().zip(&weights).with_min_len(FEW).for_each(|(x, &w)| *x *= w);
    let forward = |x: &mut Vec<T>, mut other: Option<&mut Vec<T>>| {
        apply(factor, true, x, other.as_deref_mut());
        times_weights(x);
        other.iter_mut().for_each(|other| times_weights(other));
    };
    let back = |x: &mut Vec<T>| {
        times_weights(x);
        factor.apply(false, x);
    };
    let largest = x.iter().map(|x| x.abs().to_f64()).fold(0.0, f64::max);
    estimate(n, &forward, &back).map(|error| error / largest).filter(|error| error.is_finite())
}

/// Multiplies a matrix by a vector, and by a second one if it is given.
pub(super) type Forward<'a, T> = &'a dyn Fn(&mut Vec<T>, Option<&mut Vec<T>>);

/// A lower bound of the 1-norm of a matrix B of n columns, from products with B (`forward`) and B^T (`back`).
pub(super) fn estimate<T: Factorable>(
    n: usize,
    forward: Forward<'_, T>,
    back: &dyn Fn(&mut Vec<T>),
) -> Option<f64> {
    let mut x = vec![T::from_f64(1.0 / n as f64); n];
    // Higham's second starting vector, with alternating signs and growing entries, for matrices that mislead the
    // search.
    let slope = |i: usize| 1.0 + i as f64 / (n.max(2) - 1) as f64;
    let mut other: Vec<T> =
        (0..n).map(|i| T::from_f64(if i % 2 == 0 { slope(i) } else { -slope(i) })).collect();
    forward(&mut x, Some(&mut other));
    let mut estimate = sum(&x);
    let mut last = usize::MAX;
    for _ in 0..5 {
        // Multiplies the signs by B^H, as conj(B^T conj(s)); only magnitudes are needed, so the outer conj is left out.
        x.par_iter_mut().with_min_len(FEW).for_each(|x| {
            let size = x.abs().to_f64();
            *x = if size > 0.0 { (*x * T::from_f64(1.0 / size)).conj() } else { T::from_f64(1.0) };
        });
        back(&mut x);
        let largest = place_of_largest(&x);
        if largest == last {
            break;
        }
        last = largest;
        x.fill(T::default());
        x[largest] = T::from_f64(1.0);
        forward(&mut x, None);
        let next = sum(&x);
        if next.is_nan() || next <= estimate {
            break;
        }
        estimate = next;
    }
    let estimate = estimate.max(2.0 * sum(&other) / (3.0 * n as f64));
    estimate.is_finite().then_some(estimate)
}
