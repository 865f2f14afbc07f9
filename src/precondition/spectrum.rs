//! An estimate of the largest eigenvalue of D^-1 A.

use crate::backend::{Backend, Communicator, Space, VectorOps};
use crate::error::{Error, Result};
use crate::mixing::mixed;
use crate::operator::LinearOperator;
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// Lanczos steps: on meshes the largest eigenvalue has settled to a few per cent by then.
const STEPS: usize = 16;

/// The pseudo-random residual repeats after this many entries; a prime, so that it doesn't repeat with the lines of a
/// grid.
const PERIOD: usize = 65_537;

/// The largest Ritz value of D^-1 A, a lower bound of the largest eigenvalue, after a few steps of conjugate gradients
/// with a pseudo-random residual; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 6.7.3. `d` is D^-1.
///
/// # Errors
/// [`Error::InvalidMatrix`] if a direction of negative curvature turns up, and if the device fails.
pub(super) fn largest_eigenvalue<T: Scalar, B: VectorOps, C: Communicator<B>>(
    space: &Space<B, C>,
    a: &(impl LinearOperator<T, B> + ?Sized),
    d: &B::Slice<T::Real>,
) -> Result<f64> {
    let (backend, n) = (space.backend(), a.rows());
    let mut scratch = backend.zeros::<T::Real>(1)?;
    let all = space.len_over_all(n, &mut scratch)?;
    let mut r = pseudo_random::<T, B>(backend, n)?;
    let (mut z, mut p, mut q) = (backend.zeros(n)?, backend.zeros(n)?, backend.zeros(n)?);
    let mut result = backend.zeros::<T>(1)?;
    let mut dot = |x: &B::Slice<T>, y: &B::Slice<T>| -> Result<f64> {
        space.dot(x, y, &mut result)?;
        Ok(backend.value(&result)?.re().to_f64())
    };
    let (mut diagonal, mut beside) = (Vec::with_capacity(STEPS), Vec::with_capacity(STEPS));
    let (mut rho, mut beta, mut alpha) = (0.0, 0.0, 1.0);
    let exhausted = <T::Real as Float>::epsilon().to_f64();
    for step in 0..STEPS.min(all) {
        backend.scale(d, &r, &mut z)?;
        let before = rho;
        rho = dot(&r, &z)?;
        // Only rounding errors are left: the Krylov space is exhausted. Further steps would soon underflow in single
        // precision.
        if step > 0 && (rho <= before * exhausted || !rho.is_finite()) {
            break;
        }
        if step > 0 {
            beta = rho / before;
            beside.push(beta.sqrt() / alpha);
        }
        backend.axpby(T::one(), &z, T::from_f64(beta), &mut p)?;
        a.apply(backend, &p, &mut q)?;
        let curvature = dot(&p, &q)?;
        if !(curvature > 0.0 && curvature.is_finite()) {
            return Err(Error::InvalidMatrix(format!(
                "p.Ap is {curvature:e} for some p: the matrix is not positive definite"
            )));
        }
        let last = alpha;
        alpha = rho / curvature;
        diagonal.push(1.0 / alpha + if step > 0 { beta / last } else { 0.0 });
        backend.axpby(T::from_f64(-alpha), &q, T::one(), &mut r)?;
    }
    Ok(largest_of_tridiagonal(&diagonal, &beside))
}

/// Entries of magnitude 1/2 to 1 with pseudo-random signs, the same on every machine. A large vector repeats them.
fn pseudo_random<T: Scalar, B: Backend>(backend: &B, n: usize) -> Result<B::Vec<T>> {
    let entries = (0..n.min(PERIOD) as u64)
        .map(|i| {
            let h = mixed(i.wrapping_add(0x9e37_79b9_7f4a_7c15));
            let magnitude = 0.5 + (h >> 12) as f64 / (1_u64 << 53) as f64;
            T::from_f64(if h & 1 == 0 { magnitude } else { -magnitude })
        })
        .collect::<Vec<_>>();
    let mut all = backend.buffer(n)?;
    let mut filled = entries.len();
    backend.write(&entries, B::part_mut(&mut all, 0..filled))?;
    while filled < n {
        let more = filled.min(n - filled);
        let (done, rest) = B::split_mut(&mut all, filled);
        backend.copy(B::part(done, 0..more), B::part_mut(rest, 0..more))?;
        filled += more;
    }
    Ok(all)
}

/// Largest eigenvalue of a symmetric tridiagonal matrix, by bisection with Sturm counts (Golub and Van Loan, 8.4.1).
fn largest_of_tridiagonal(diagonal: &[f64], beside: &[f64]) -> f64 {
    let side = |i: usize| beside.get(i).copied().unwrap_or(0.0).abs();
    let radius = |i: usize| side(i) + if i > 0 { side(i - 1) } else { 0.0 };
    let bounds = diagonal.iter().enumerate().map(|(i, d)| (d - radius(i), d + radius(i)));
    let (mut low, mut high) =
        bounds.fold((f64::INFINITY, 0.0_f64), |(low, high), (a, b)| (low.min(a), high.max(b)));
    if diagonal.is_empty() {
        return 1.0;
    }
    // All eigenvalues are below x if all pivots of T - x are negative.
    let all_below = |x: f64| {
        let mut pivot = -1.0;
        diagonal.iter().enumerate().all(|(i, d)| {
            let coupling = if i > 0 { side(i - 1).powi(2) / pivot } else { 0.0 };
            pivot = d - x - coupling;
            pivot < 0.0
        })
    };
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if all_below(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_eigenvalue_of_the_second_difference() {
        let n = 12;
        let exact = 2.0 + 2.0 * (std::f64::consts::PI / (n as f64 + 1.0)).cos();
        let got = largest_of_tridiagonal(&vec![2.0; n], &vec![-1.0; n - 1]);
        assert!((got - exact).abs() < 1e-12, "{got} {exact}");
        assert_eq!(largest_of_tridiagonal(&[3.0], &[]), 3.0);
    }
}
