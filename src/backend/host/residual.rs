//! b - A x in twice the working precision, on the CPU.
//!
//! Each product and each sum keeps its rounding error: the compensated dot product of T. Ogita, S. M. Rump and S.
//! Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005), algorithm 5.3.

use super::memory::PARALLEL_FROM;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Real, Scalar, Widen};
use num_traits::Float;

/// A sum and the errors made in it.
#[derive(Clone, Copy)]
struct Compensated<R> {
    sum: R,
    error: R,
}

impl<R: Real> Compensated<R> {
    fn new(sum: R) -> Self {
        Self { sum, error: R::zero() }
    }

    /// Adds a b.
    fn add_product(&mut self, a: R, b: R) {
        let product = a * b;
        let product_error = Float::mul_add(a, b, -product);
        let sum = self.sum + product;
        let moved = sum - self.sum;
        let sum_error = (self.sum - (sum - moved)) + (product - moved);
        self.sum = sum;
        self.error += product_error + sum_error;
    }

    fn value(self) -> R {
        self.sum + self.error
    }
}

/// r = scale (b - A x).
pub(super) fn residual<V: Widen<T>, T: Scalar, O: Offset>(
    (offsets, indices, values): (&[O], &[u32], &[V]),
    scale: T,
    b: &[T],
    x: &[T],
    r: &mut [T],
) {
    let least = if values.len() < PARALLEL_FROM { usize::MAX } else { 1 << 10 };
    r.par_iter_mut().enumerate().with_min_len(least).for_each(|(row, r)| {
        let mut re = Compensated::new(b[row].re());
        let mut im = Compensated::new(b[row].im());
        let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
        for (&column, value) in indices[range.clone()].iter().zip(&values[range]) {
            let (a, x) = (value.widen(), x[column as usize]);
            re.add_product(-a.re(), x.re());
            if T::COMPLEX {
                re.add_product(a.im(), x.im());
                im.add_product(-a.re(), x.im());
                im.add_product(-a.im(), x.re());
            }
        }
        let value = T::from_parts(re.value().to_f64(), im.value().to_f64());
        *r = scale * value.unwrap_or_default();
    });
}
