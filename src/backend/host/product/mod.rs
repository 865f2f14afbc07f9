//! Products on the CPU, one file a layout.

mod csr;

use super::Host;
use crate::backend::{CsrParts, Products, with_offsets};
use crate::error::Result;
use crate::scalar::{Scalar, Widen};

impl Products for Host {
    fn csr<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        alpha: T,
        x: &[T],
        beta: T,
        y: &mut [T],
    ) -> Result<()> {
        with_offsets!(a.offsets, offsets => csr::product(offsets, a.indices, a.values, x, y, |sum, y| {
            if beta == T::zero() { alpha * sum } else { alpha * sum + beta * y }
        }));
        Ok(())
    }

    fn csr_dot<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        x: &[T],
        y: &mut [T],
        xy: &mut [T],
    ) -> Result<()> {
        xy[0] = with_offsets!(a.offsets, offsets => csr::product_dot(offsets, a.indices, a.values, x, y));
        Ok(())
    }
}
