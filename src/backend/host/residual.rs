//! b - A x in twice the working precision, on the CPU.
//!
//! The rounding errors of products and sums are kept: the compensated dot product of T. Ogita, S. M. Rump and S. Oishi,
//! Accurate sum and dot product, SIAM J. Sci. Comput. 26 (2005), algorithm 5.3.

use super::memory::PARALLEL_FROM;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::parallel::vectorised;
use crate::scalar::{Offset, Promote, Real, Scalar};
use num_traits::Float;

/// A sum and its accumulated rounding errors.
#[derive(Clone, Copy)]
pub(super) struct Compensated<R> {
    sum: R,
    error: R,
}

impl<R: Real> Compensated<R> {
    #[inline(always)]
    pub(super) fn new(sum: R) -> Self {
        Self { sum, error: R::zero() }
    }

    /// Adds the product `a * b`.
    #[inline(always)]
    pub(super) fn add_product(&mut self, a: R, b: R) {
        let product = a * b;
        let product_error = Float::mul_add(a, b, -product);
        let sum = self.sum + product;
        let moved = sum - self.sum;
        let sum_error = (self.sum - (sum - moved)) + (product - moved);
        self.sum = sum;
        self.error += product_error + sum_error;
    }

    #[inline(always)]
    pub(super) fn value(self) -> R {
        self.sum + self.error
    }
}

/// The number of rows in a task.
const TASK: usize = 1 << 10;

/// r = scale (b - A (x + second)). `second` is the low-order part of x, if x has more digits than the working
/// precision.
pub(crate) fn residual<V: Promote<T>, T: Scalar, O: Offset>(
    (offsets, indices, values): (&[O], &[u32], &[V]),
    scale: T,
    b: &[T],
    (x, second): (&[T], Option<&[T]>),
    r: &mut [T],
) {
    // A single task is used if there is little to do.
    let task = if values.len() < PARALLEL_FROM { b.len().max(1) } else { TASK };
    r.par_chunks_mut(task).enumerate().for_each(|(number, r)| {
        // A fused multiply-add is one instruction inside of `vectorised`, but a function call elsewhere.
        vectorised(|| {
            for (row, r) in (number * task..).zip(r) {
                let mut re = Compensated::new(b[row].re());
                let mut im = Compensated::new(b[row].im());
                let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
                for (&column, value) in both(&indices[range.clone()], &values[range]) {
                    let a = value.widen();
                    let mut subtract = |x: T| {
                        re.add_product(-a.re(), x.re());
                        if T::COMPLEX {
                            re.add_product(a.im(), x.im());
                            im.add_product(-a.re(), x.im());
                            im.add_product(-a.im(), x.re());
                        }
                    };
                    subtract(x[column as usize]);
                    if let Some(second) = second {
                        subtract(second[column as usize]);
                    }
                }
                let value = T::from_parts(re.value().to_f64(), im.value().to_f64());
                *r = scale * value.unwrap_or_default();
            }
        });
    });
}
