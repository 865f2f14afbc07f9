//! What the products of all formats have in common.

use crate::backend::Op;
use crate::error::{Error, Result};

/// Checks the vectors of a product with op(A).
pub(super) fn check_vectors(op: Op, (rows, columns): (usize, usize), (x, y): (usize, usize)) -> Result<()> {
    let (rows, columns) = if op.transposes() { (columns, rows) } else { (rows, columns) };
    Error::check_dimension("length of x", columns, x)?;
    Error::check_dimension("length of y", rows, y)
}

/// Defines `product_op` by the backend's method `$step`. The additional doc text ends its first paragraph; `$kept` is
/// the field with the transposed copy that a device needs, which is in CSR unless `by $copied` names its product.
macro_rules! product_op {
    ($step:ident; $kept:ident) => {
        $crate::matrix::product::product_op! {
            $step, " On a device the first product with the transpose makes a transposed copy in CSR, which is kept."; $kept
        }
    };
    ($step:ident, $more:literal; $kept:ident) => {
        $crate::matrix::product::product_op! { $step, $more; $kept by csr }
    };
    ($step:ident, $more:literal $(; $kept:ident by $copied:ident)?) => {
        #[doc = concat!("y = alpha op(A) x + beta y. Where `beta` is zero, y is not read.", $more)]
        ///
        /// # Errors
        /// If a vector has the wrong length, if the backend has no kernel, if memory runs out for a copy, or if the
        /// device fails.
        pub fn product_op<T: $crate::scalar::Scalar>(
            &self,
            backend: &B,
            op: $crate::backend::Op,
            alpha: T,
            x: &B::Slice<T>,
            beta: T,
            y: &mut B::Slice<T>,
        ) -> $crate::error::Result<()>
        where
            V: $crate::scalar::Promote<T>,
            B: $crate::backend::Products,
        {
            let shape = (self.rows(), self.columns());
            $crate::matrix::product::check_vectors(op, shape, (B::len(x), B::len(y)))?;
            $(if let Some(copy) = self.$kept.of(self, backend, op)? {
                let op = op.transposed();
                return backend.$copied(copy.parts(), $crate::backend::Gemv { op, alpha, x, beta, y });
            })?
            backend.$step(self.parts(), $crate::backend::Gemv { op, alpha, x, beta, y })
        }
    };
}

pub(super) use product_op;
