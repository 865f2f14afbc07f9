//! Whether a factor whose pivots were replaced, or are rounding errors, is one of A.

use super::factor::Factor;
use super::goal::largest_of;
use super::refine::{largest, residual};
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::random::Random;
use crate::scalar::Real;

/// Part of a vector up to which M^-1 A v may miss v if M, the factored matrix, is A up to rounding.
const MISSED: f64 = 0.1;

/// Steps of the power iteration that looks for a vector which is missed. A null vector of A is missed wholly, and others
/// by the root of a unit of rounding where a pivot was replaced by that, so that few steps bring it forth.
const STEPS: usize = 8;

/// Whether a factor inverts A, on a vector whose entries are as large as those of x and on what is missed of it: on
/// v, G v, G G v, ... with G = I - M^-1 A.
///
/// Where a pivot was replaced, M^-1 is much smaller than A^-1, and x may be far more in doubt than any solve with M
/// tells. The vector that shows it may be small beside x, since units of columns differ: all steps but the first are
/// measured in these.
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
        // A power of two, so that no number leaves the range of the type.
        let scale = T::from_f64(length.log2().round().exp2().recip());
        v = missed;
        v.iter_mut().for_each(|v| *v *= scale);
    }
    true
}

/// The largest entry of each column, rows divided by their largest.
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
