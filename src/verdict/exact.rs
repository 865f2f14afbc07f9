//! The verdict on the host, entry by entry, used if bounds by norms of A do not decide whether a residual meets the
//! tolerance. For matrices whose columns have very different units, || |A| || ||x|| is far above || |A| |x| ||.

use super::{BESIDE, NORM_UNITS, Verdict};
use crate::direct::{Weights, magnitudes, residual, weighted_norm};
use crate::krylov::SolveOptions;
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// Decides an undecided verdict, with a residual in twice the working precision and an error bound for each row.
pub(crate) fn decided<T: Scalar>(
    told: Verdict,
    a: &Csr<T>,
    (b, x): (&[T], &[T]),
    weights: &Weights,
    options: &SolveOptions,
) -> Verdict {
    let mut r = vec![T::default(); a.rows()];
    residual(a, b, x, None, &mut r);
    let epsilon = <T::Real as Float>::epsilon().to_f64();
    let each = if T::COMPLEX { 4.0 } else { 1.0 };
    let errors: Vec<T> = (0..a.rows())
        .map(|row| {
            let of_sums = ((a.row(row).0.len() as f64 + BESIDE) * each * epsilon).powi(2);
            let size = magnitudes(a, row, x) + b[row].abs().to_f64();
            T::from_f64(of_sums * size + epsilon * r[row].abs().to_f64())
        })
        .collect();
    let threshold = options.threshold::<T>(told.b);
    let part = if told.b > 0.0 { threshold / told.b } else { 0.0 };
    let is_met = |weights: Option<&[f64]>, threshold: f64| {
        let norm = weighted_norm(weights, &r);
        let error = weighted_norm(weights, &errors) + NORM_UNITS * epsilon * (norm + threshold);
        (norm, norm + error <= threshold)
    };
    let (norm, by_norm) = is_met(weights.plain.as_deref(), threshold);
    let (rows, by_rows) = match &weights.rows {
        Some(rows) => is_met(Some(rows), part * told.b_rows),
        None => (norm, by_norm),
    };
    Verdict { residual: norm, rows, met: by_norm && by_rows, undecided: false, ..told }
}
