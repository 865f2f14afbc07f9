//! The target for a residual: for its norm, and for its norm with each row relative to the norm of that row of A.

use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::{Real, Scalar};

/// A sum of squares in this range has neither overflowed nor lost small numbers to underflow.
const SAFE: std::ops::Range<f64> = 1e-200..1e200;

/// The maximum number of partial sums, and the minimum number of terms in each. They depend on the length alone, so
/// that results do not depend on the number of threads.
const SUMS: usize = 64;
const LEAST: usize = 1 << 13;

/// Sums a function of each entry.
pub(super) fn sum_of<T: Sync>(x: &[T], term: impl Fn(usize, &T) -> f64 + Sync) -> f64 {
    let chunk = x.len().div_ceil(SUMS).max(LEAST);
    x.par_chunks(chunk).enumerate().sum::<SUMS, f64>(|(number, part)| {
        part.iter().zip(number * chunk..).map(|(x, k)| term(k, x)).sum::<f64>()
    })
}

/// The maximum over all entries of a function, at least zero; NaN is ignored.
pub(super) fn largest_of<T: Sync>(x: &[T], size: impl Fn(usize, &T) -> f64 + Sync) -> f64 {
    let sizes = x.par_chunks(LEAST).enumerate().map(|(number, part)| {
        part.iter().zip(number * LEAST..).fold(0.0, |most: f64, (x, k)| most.max(size(k, x)))
    });
    sizes.reduce(|| 0.0, f64::max)
}

/// The 2-norm, without overflow.
pub(crate) fn norm<T: Scalar>(x: &[T]) -> f64 {
    let square = sum_of(x, |_, x| x.abs2().to_f64());
    if SAFE.contains(&square) {
        return square.sqrt();
    }
    scaled_norm(x.iter().map(|x| x.abs().to_f64()))
}

/// The 2-norm of W x with a diagonal W, without overflow.
pub(crate) fn weighted_norm<T: Scalar>(weights: Option<&[f64]>, x: &[T]) -> f64 {
    let Some(weights) = weights else { return norm(x) };
    let square = sum_of(x, |k, x| (weights[k] * x.abs().to_f64()).powi(2));
    if SAFE.contains(&square) {
        return square.sqrt();
    }
    scaled_norm(weights.iter().zip(x).map(|(w, x)| w * x.abs().to_f64()))
}

/// The 2-norm, computed from magnitudes divided by the largest.
fn scaled_norm(sizes: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = sizes.clone().fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    sizes.map(|size| (size / largest).powi(2)).sum::<f64>().sqrt() * largest
}

/// Diagonal weights that multiply residuals before norms are taken; `None` means the identity.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weights {
    /// Factors that turn a residual of the scaled matrix into one of the caller's matrix.
    pub(crate) plain: Option<Vec<f64>>,
    /// The factors in `plain`, divided by the norm of each row of the caller's matrix; `None` if rows are not weighted.
    pub(crate) rows: Option<Vec<f64>>,
    /// Factors that turn a solution of the scaled system into one of the caller's system.
    pub(crate) columns: Option<Vec<f64>>,
}

impl Weights {
    /// Weights for an unscaled matrix, which divide each row by its norm. All are multiplied by the geometric mean of
    /// the largest and smallest norm, so that no weight overflows.
    pub(crate) fn of<T: Scalar>(a: &Csr<T>) -> Self {
        let norms: Vec<f64> = (0..a.rows()).into_par_iter().map(|row| norm(a.row(row).1)).collect();
        Self { plain: None, rows: Some(inverses(&norms)), columns: None }
    }

    /// Whether no row is larger than another one by more than the factor `most`.
    pub(super) fn are_even(&self, most: f64) -> bool {
        let extend = |(least, largest): (f64, f64), &weight: &f64| (least.min(weight), largest.max(weight));
        [&self.plain, &self.rows].into_iter().flatten().all(|weights| {
            let weights = weights.iter().filter(|weight| **weight > 0.0);
            let (least, largest) = weights.fold((f64::INFINITY, 0.0), extend);
            largest <= most * least
        })
    }
}

/// Returns the reciprocals of norms, multiplied by the geometric mean of the largest and the smallest norm; 0 for a
/// norm of zero.
pub(super) fn inverses(norms: &[f64]) -> Vec<f64> {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    norms
        .iter()
        .filter(|norm| **norm > 0.0)
        .for_each(|&norm| (least, most) = (least.min(norm), most.max(norm)));
    let middle = if most > 0.0 { least.sqrt() * most.sqrt() } else { 1.0 };
    norms.iter().map(|&norm| if norm > 0.0 { middle / norm } else { 0.0 }).collect()
}

/// Targets for ||r|| and for its norm with weighted rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal<'a> {
    pub(super) weights: &'a Weights,
    /// The target for ||r||.
    pub(super) norm: f64,
    /// Multiplies the norm with weighted rows, which then has the same target.
    rows: f64,
}

impl<'a> Goal<'a> {
    /// Targets of `tolerance` times the norm of b, with and without weighted rows.
    pub(super) fn new<T: Scalar>(weights: &'a Weights, b: &[T], tolerance: f64) -> Self {
        let size = weighted_norm(weights.plain.as_deref(), b);
        let rows = match &weights.rows {
            Some(rows) => size / weighted_norm(Some(rows), b),
            None => 0.0,
        };
        Self { weights, norm: tolerance * size, rows: if rows.is_finite() { rows } else { 0.0 } }
    }

    /// ||r|| for the caller's matrix.
    pub(super) fn norm_of<T: Scalar>(&self, r: &[T]) -> f64 {
        weighted_norm(self.weights.plain.as_deref(), r)
    }

    /// The larger of both norms of r: it is at most `norm` if r meets both targets.
    pub(super) fn size_of<T: Scalar>(&self, r: &[T]) -> f64 {
        let plain = self.norm_of(r);
        match &self.weights.rows {
            Some(rows) if self.rows > 0.0 => larger(plain, self.rows * weighted_norm(Some(rows), r)),
            _ => plain,
        }
    }
}

/// The larger of two numbers, or NaN if one of them is.
fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_in_a_row_of_small_entries_counts_as_much_as_in_one_of_large() {
        let a = Csr::from_parts(2, 2, vec![0, 1, 2], vec![0, 1], vec![1e20, 1e-20]).unwrap();
        let weights = Weights::of(&a);
        let goal = Goal::new(&weights, &[1e20, 1e-20], 1e-8);
        assert!((goal.norm - 1e12).abs() < 1.0);
        assert!(goal.size_of(&[1e11, 0.0]) <= goal.norm && goal.size_of(&[0.0, 1e-29]) <= goal.norm);
        assert!(goal.size_of(&[0.0, 1e-20]) > goal.norm && goal.norm_of(&[0.0, 1e-20]) <= goal.norm);
        assert!(goal.size_of(&[f64::NAN, 0.0]).is_nan());
    }

    #[test]
    fn norms_do_not_overflow_and_rows_of_zeros_have_no_weight() {
        for size in [1e-200, 1e200] {
            assert!((norm(&[3.0 * size, 4.0 * size]) / (5.0 * size) - 1.0).abs() < 1e-15);
        }
        let inverse = inverses(&[1e-300, 0.0, 1e300]);
        assert!(
            inverse[1] == 0.0
                && (inverse[0] / 1e300 - 1.0).abs() < 1e-15
                && (inverse[2] * 1e300 - 1.0).abs() < 1e-15
        );
        assert_eq!(weighted_norm(Some(&[1e-200, 1.0]), &[3e200, 4.0]), 5.0);
    }
}
