//! An estimate of ||A^-1||_1 from solves with A and A^H: Higham, "FORTRAN codes for estimating the one-norm of a real
//! or complex matrix", ACM Trans. Math. Softw. 14 (1988), algorithm 674; after Hager, SIAM J. Sci. Stat. Comput. 5
//! (1984).

use super::factor::Factor;
use crate::direct::Factorable;
use crate::scalar::Real;

fn sum<T: Factorable>(x: &[T]) -> f64 {
    x.iter().map(|x| x.abs().to_f64()).sum()
}

/// A lower bound of ||A^-1||_1, mostly within a factor of 3; at most eleven solves.
pub(super) fn inverse_norm<T: Factorable>(factor: &Factor<T>, n: usize) -> Option<f64> {
    if n == 0 || !factor.has_transpose() {
        return None;
    }
    let mut x = vec![T::from_f64(1.0 / n as f64); n];
    factor.apply(false, &mut x);
    let mut estimate = sum(&x);
    let mut last = usize::MAX;
    for _ in 0..5 {
        // The solution's signs, back through A^H: conj(A^-T conj(s)).
        for x in &mut x {
            let size = x.abs().to_f64();
            *x = if size > 0.0 { (*x * T::from_f64(1.0 / size)).conj() } else { T::from_f64(1.0) };
        }
        factor.apply(true, &mut x);
        let largest = (0..n).fold(0, |best, i| if x[i].abs() > x[best].abs() { i } else { best });
        if largest == last {
            break;
        }
        last = largest;
        x.fill(T::default());
        x[largest] = T::from_f64(1.0);
        factor.apply(false, &mut x);
        let next = sum(&x);
        if next.is_nan() || next <= estimate {
            break;
        }
        estimate = next;
    }
    // A vector that alternates and grows catches what the search can miss.
    let slope = |i: usize| 1.0 + i as f64 / (n.max(2) - 1) as f64;
    for (i, x) in x.iter_mut().enumerate() {
        *x = T::from_f64(if i % 2 == 0 { slope(i) } else { -slope(i) });
    }
    factor.apply(false, &mut x);
    let estimate = estimate.max(2.0 * sum(&x) / (3.0 * n as f64));
    estimate.is_finite().then_some(estimate)
}
