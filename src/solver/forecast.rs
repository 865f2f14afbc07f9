//! Forecasts of the cost of a solve.

use crate::backend::PreconditionSteps;
use crate::operator::LinearOperator;
use crate::prices::iterations::{
    CACHE, CACHED, MORE_PRODUCTS, POLYNOMIAL_SHARE, POLYNOMIAL_WORTH, START, UNCACHED, WITH_INCOMPLETE,
    WITHOUT_FILL,
};
use crate::prices::machine::{self, Factors};
use crate::scalar::Scalar;

/// The expected number of products with A for `n` unknowns and all right-hand sides.
///
/// Conjugate gradients need about 2.3 n^(1/3) iterations for Poisson's equation in three dimensions (296 for 128^3
/// points, 581 for 256^3, to 1e-8), and more for almost every harder problem. An easier one is solved before a better
/// format could pay, so this number is on the safe side.
pub(super) fn expected_products(n: usize, right_hand_sides: usize, max_iterations: Option<usize>) -> usize {
    let iterations = 2.3 * (n as f64).cbrt();
    max_iterations.unwrap_or(usize::MAX).min(iterations as usize).saturating_mul(right_hand_sides)
}

/// Returns the seconds that it takes to set up incomplete factors without fill on a CPU, and the seconds of an
/// iteration with them. An iteration without them moves `bytes`.
pub(super) fn of_factors<T: Scalar, B: PreconditionSteps>(
    (rows, nonzeros): (usize, usize),
    bytes: f64,
) -> (f64, f64) {
    let [each_row, each_entry] = WITHOUT_FILL;
    let setup = machine::cpu().bytes * (each_row * rows as f64 + each_entry * nonzeros as f64);
    let more = nonzeros * (size_of::<T>() + size_of::<u32>()) + 9 * rows * size_of::<T>();
    (setup, of_iteration::<B>(bytes + more as f64, f64::INFINITY, WITH_INCOMPLETE))
}

/// Returns the seconds of an iteration that moves `bytes`. On a CPU, `beside` is the time that a preconditioner adds,
/// and the factor by which it multiplies the time of the bytes.
pub(super) fn of_iteration<B: PreconditionSteps>(bytes: f64, bandwidth: f64, beside: (f64, f64)) -> f64 {
    if B::IS_DEVICE {
        return bytes / bandwidth;
    }
    let Factors { launch, bytes: longer, .. } = machine::cpu();
    launch * (START + beside.0) + longer * beside.1 * bytes / CACHED * (1.0 + bytes / CACHE).min(UNCACHED)
}

/// Returns whether the system is large enough for [`polynomial_pays`] to return true. Only then is a copy of the matrix
/// in half the precision kept.
pub(super) fn polynomial_may_pay<T: Scalar>(n: usize, products: usize) -> bool {
    (1.0 - POLYNOMIAL_SHARE) * plain_bytes::<T>(n, 0) * products as f64 > POLYNOMIAL_WORTH / 4.0
}

/// Returns whether conjugate gradients with a polynomial of `steps` steps in half the precision move significantly
/// fewer bytes than `products` plain iterations.
pub(super) fn polynomial_pays<T: Scalar, B: PreconditionSteps>(
    a: &dyn LinearOperator<T, B>,
    products: usize,
    steps: usize,
) -> bool {
    let n = a.rows();
    // An upper bound: in half the precision the matrix takes no more bytes than in full.
    let matrix = a.bytes() - 2 * n * size_of::<T>();
    let plain = plain_bytes::<T>(n, matrix);
    let share = MORE_PRODUCTS * polynomial_bytes::<T>(n, matrix, steps) / (steps as f64 * plain);
    share < POLYNOMIAL_SHARE && (1.0 - share) * plain * products as f64 > POLYNOMIAL_WORTH
}

/// The bytes that an iteration of conjugate gradients with Jacobi moves, of which the matrix takes `matrix`.
pub(super) fn plain_bytes<T: Scalar>(n: usize, matrix: usize) -> f64 {
    (matrix + 10 * n * size_of::<T>()) as f64
}

/// Bytes of an iteration of conjugate gradients with a polynomial of `steps` steps in half the precision.
pub(super) fn polynomial_bytes<T: Scalar>(n: usize, matrix: usize, steps: usize) -> f64 {
    let (vector, narrow) = ((n * size_of::<T>()) as f64, (n * size_of::<T::Lower>()) as f64);
    // A step that is fused with its product moves seven vectors in half the precision. Rounding r, promoting z and the
    // product r.z add five vectors in full and four in half the precision to an iteration.
    let step = matrix as f64 + 7.0 * narrow;
    plain_bytes::<T>(n, matrix) + 5.0 * vector + 4.0 * narrow + (steps - 1) as f64 * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, Host};
    use crate::error::Result;

    /// A square operator with a given size and number of bytes, and nothing else.
    struct Sized(usize, usize);

    impl LinearOperator<f64, Host> for Sized {
        fn rows(&self) -> usize {
            self.0
        }
        fn columns(&self) -> usize {
            self.0
        }
        fn apply(&self, backend: &Host, x: &[f64], y: &mut [f64]) -> Result<()> {
            backend.copy(x, y)
        }
        fn bytes(&self) -> usize {
            self.1 + 16 * self.0
        }
    }

    #[test]
    fn a_polynomial_pays_where_vectors_are_most_of_what_is_moved_and_there_is_much_of_it() {
        let pays = |n: usize, matrix: usize, products: usize| {
            let pays = polynomial_pays(&Sized(n, n * matrix), products, 14);
            assert!(!pays || polynomial_may_pay::<f64>(n, products), "{n} {matrix} {products}");
            pays
        };
        let n = 250 * 250 * 250;
        let products = expected_products(n, 1, None);
        // One byte per row, as for a stencil; 7 entries of 8 or of 12 bytes.
        assert!(pays(n, 1, products));
        assert!(!pays(n, 84, products));
        // With few unknowns or iterations, the solve ends before the setup would have paid.
        assert!(!pays(1_000_000, 1, expected_products(1_000_000, 1, None)));
        assert!(!pays(n, 1, 20));
        // Many right-hand sides share the setup.
        assert!(pays(1_000_000, 1, expected_products(1_000_000, 100, None)));
    }
}
