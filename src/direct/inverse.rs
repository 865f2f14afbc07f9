//! Checks whether a factor with perturbed or rounding-level pivots still inverts A.

use super::factor::Factor;
use super::goal::largest_of;
use super::refine::{largest, residual};
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::random::Random;
use crate::scalar::Real;

/// If M, the factored matrix, is A up to rounding, then ||v - M^-1 A v|| is at most this fraction of ||v||.
const MISSED: f64 = 0.1;

/// Steps of the power iteration for the largest error of M^-1 A. A null vector of A has an error of 100 %, and after a
/// pivot was replaced by the root of a rounding unit other vectors have an error of about that root, so that a few
/// steps are enough.
const STEPS: usize = 8;

/// Returns whether a factor inverts A, tested on v, G v, G^2 v, ... with G = I - M^-1 A, where the entries of v are as
/// large as those of x.
///
/// After a pivot was perturbed, M^-1 may be much smaller than A^-1, and x may have a larger error than any solve with M
/// shows. The vector that reveals it may be small compared with x if columns have different units. Therefore all steps
/// except the first are measured in column units.
pub(super) fn is_inverse<T: Factorable>(a: &Csr<T>, factor: &Factor<T>, x: &[T]) -> bool {
    let mut random = Random::new(0x696e_7665);
    let mut part = || random.between(0.5, 1.0) * if random.below(2) == 0 { 1.0 } else { -1.0 };
    let mut v: Vec<T> = x.iter().map(|&x| x * T::from_f64(part())).collect();
    let zero = vec![T::default(); a.rows()];
    let units = column_units(a);
    let size = |v: &[T]| largest_of(v, |k, v| v.abs().to_f64() * units[k]);
    for step in 0..STEPS {
        let mut missed = zero.clone();
        residual(a, &zero, &v, None, &mut missed);
        factor.apply(false, &mut missed);
        missed.iter_mut().zip(&v).for_each(|(missed, &v)| *missed += v);
        let (part, whole) =
            if step == 0 { (largest(&missed), largest(&v)) } else { (size(&missed), size(&v)) };
        if missed.iter().any(|missed| !missed.is_finite()) || part > MISSED * whole {
            return false;
        }
        let length = size(&missed);
        if length == 0.0 {
            break;
        }
        // Scaling by a power of two is exact, and keeps numbers in the range of the type.
        let scale = T::from_f64(length.log2().round().exp2().recip());
        v = missed;
        v.iter_mut().for_each(|v| *v *= scale);
    }
    true
}

/// The largest entry of each column, after each row is divided by its largest entry.
pub(super) fn column_units<T: Factorable>(a: &Csr<T>) -> Vec<f64> {
    let mut units = vec![0.0_f64; a.columns()];
    for row in 0..a.rows() {
        let (indices, values) = a.row(row);
        let most = largest(values);
        for (&column, value) in indices.iter().zip(values).filter(|_| most > 0.0) {
            let unit = &mut units[column as usize];
            *unit = unit.max(value.abs().to_f64() / most);
        }
    }
    units
}
