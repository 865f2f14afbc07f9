//! Products with stored matrices on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::{Cuda, policy};
use crate::backend::{CsrParts, Products, VectorOps, with_offsets};
use crate::error::Result;
use crate::matrix::ProductModel;
use crate::scalar::{Element, Offset, Scalar, Widen};

mod kernel {
    use super::*;
    kernels! {
        "csr_vector.cu", types(T: Scalar as SCALAR, V: Element as STORED, I: Offset as OFFSET);
        fn csr(
            rows: u64,
            offsets: &Slice<I>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            alpha: T,
            x: &Slice<T>,
            beta: T,
            y: &mut Slice<T>,
        );
    }
}

impl Products for Cuda {
    fn model(&self) -> ProductModel {
        policy::PRODUCT_MODEL
    }

    fn csr<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        alpha: T,
        x: &Slice<T>,
        beta: T,
        y: &mut Slice<T>,
    ) -> Result<()> {
        let shape = policy::csr(self.0.chip, a.rows, a.indices.len());
        let rows = a.rows as u64;
        with_offsets!(a.offsets, offsets => {
            kernel::csr(*self, shape, rows, offsets, a.indices, a.values, alpha, x, beta, y)
        })
    }

    fn csr_dot<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        x: &Slice<T>,
        y: &mut Slice<T>,
        xy: &mut Slice<T>,
    ) -> Result<()> {
        self.csr(a, T::one(), x, T::zero(), y)?;
        self.dot(x, y, xy)
    }
}
