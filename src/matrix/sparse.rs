//! The interface of all stored matrices: [`SparseMatrix`], and how each is an operator.

use super::product::check_vectors;
use super::{Compressed, Coo, Csc, Csr, Dia, Ell, Hybrid, Jds, Sell};
use crate::backend::{
    Backend, ChebyshevStep, CompressedSteps, Conversions, KrylovSteps, Op, Persistent, PreconditionSteps,
    Products, VectorOps,
};
use crate::error::{Error, Result};
use crate::operator::{ChebyshevProduct, LinearOperator, PersistentOperator, plain_residual};
use crate::scalar::{Promote, Scalar};
use std::fmt::{self, Debug};

/// A stored matrix: values of type `V` in one of the formats, products in type `T`.
///
/// Padding is never multiplied with x: an infinite or NaN element of x reaches only the rows that refer to it.
pub trait SparseMatrix<T: Scalar, B: Products + Conversions, V: Scalar = T>:
    LinearOperator<T, B> + Debug
{
    /// The format's name, as [`formats`](super::formats) lists it.
    fn format(&self) -> &'static str;

    /// Number of stored entries, including explicit zeros, without padding.
    fn nonzeros(&self) -> usize;

    /// Bytes of all arrays.
    fn storage_bytes(&self) -> usize;

    /// Entries stored beyond the nonzeros.
    fn padding(&self) -> usize;

    /// y = alpha A x + beta y.
    ///
    /// # Errors
    /// As [`LinearOperator::product_op`].
    fn product(&self, backend: &B, alpha: T, x: &B::Slice<T>, beta: T, y: &mut B::Slice<T>) -> Result<()> {
        self.product_op(backend, Op::None, alpha, x, beta, y)
    }

    /// y = alpha A^T x + beta y.
    ///
    /// # Errors
    /// As [`LinearOperator::product_op`].
    fn transposed_product(
        &self,
        backend: &B,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()> {
        self.product_op(backend, Op::Transpose, alpha, x, beta, y)
    }

    /// The same matrix in CSR: the same entries, bit for bit, including explicit zeros.
    ///
    /// # Errors
    /// If memory runs out, if the backend has no kernel, or if the device fails.
    fn to_csr(&self, backend: &B) -> Result<Csr<V, B>>;
}

/// Implements [`SparseMatrix`] by a type's own methods of the same names.
macro_rules! stored {
    ($($name:ident),*) => {$(
        impl<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions> SparseMatrix<T, B, V> for $name<V, B> {
            fn format(&self) -> &'static str {
                Self::NAME
            }

            fn nonzeros(&self) -> usize {
                $name::nonzeros(self)
            }

            fn storage_bytes(&self) -> usize {
                $name::storage_bytes(self)
            }

            fn padding(&self) -> usize {
                $name::padding(self)
            }

            fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
                $name::to_csr(self, backend)
            }
        }
    )*};
}
stored!(Csr, Coo, Csc, Ell, Hybrid, Jds, Sell, Dia, Compressed);

/// `ell f64 4 x 4, 7 nonzeros, 1 padded`.
macro_rules! debug {
    ($($name:ident: $backend:ident),*) => {$(
        impl<V: Scalar, B: $backend> Debug for $name<V, B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (rows, columns, nonzeros) = (self.rows(), self.columns(), self.nonzeros());
                write!(f, "{} {} {rows} x {columns}, {nonzeros} nonzeros", Self::NAME, V::NAME)?;
                match self.padding() {
                    0 => Ok(()),
                    padding => write!(f, ", {padding} padded"),
                }
            }
        }
    )*};
}
debug!(Csr: Backend, Coo: Backend, Csc: Backend, Ell: Backend, Hybrid: Backend, Jds: Backend, Sell: Backend, Dia: Backend, Compressed: CompressedSteps);

/// Implements [`LinearOperator`] with a type's own methods. `stored`: the type is CSR already; `converted`: it has to
/// be converted. Optional arguments name its product fused with x.y (`fused`), its persistent iterations and the data
/// that they keep with the matrix (`persistent`), its fused product with several vectors (`block`), and its product
/// fused with a step of Chebyshev's iteration (`chebyshev`).
macro_rules! operator {
    (@csr stored $a:ident $backend:ident) => {
        $a
    };
    (@csr converted $a:ident $backend:ident) => {
        &$a.to_csr($backend)?
    };
    (@read Compressed $a:ident) => {
        $a.read_bytes()
    };
    (@read $format:ident $a:ident) => {
        $a.storage_bytes()
    };
    ($name:ident, $csr:ident $(, $fused:ident $(, $persistent:ident($($kept:ident)?) $(, $block:ident)?)?)? $(; $chebyshev:ident)?) => {
        impl<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions> LinearOperator<T, B> for $name<V, B> {
            fn rows(&self) -> usize {
                $name::rows(self)
            }

            fn columns(&self) -> usize {
                $name::columns(self)
            }

            fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
                $name::product_op(self, backend, Op::None, T::one(), x, T::zero(), y)
            }

            fn product_op(
                &self,
                backend: &B,
                op: Op,
                alpha: T,
                x: &B::Slice<T>,
                beta: T,
                y: &mut B::Slice<T>,
            ) -> Result<()> {
                $name::product_op(self, backend, op, alpha, x, beta, y)
            }

            $(fn apply_dot(
                &self,
                backend: &B,
                x: &B::Slice<T>,
                y: &mut B::Slice<T>,
                xy: &mut B::Slice<T>,
            ) -> Result<()>
            where
                B: VectorOps,
            {
                $($(if B::len(xy) > 1 {
                    Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                    Error::check_dimension("length of X", self.columns() * B::len(xy), B::len(x))?;
                    Error::check_dimension("length of Y", self.rows() * B::len(xy), B::len(y))?;
                    return backend.$block(self.parts(), x, y, xy);
                })?)?
                check_vectors(Op::None, (self.rows(), self.columns()), (B::len(x), B::len(y)))?;
                Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                backend.$fused(self.parts(), x, y, xy)
            }

            $(fn persistent(&self) -> Option<&dyn PersistentOperator<T, B>>
            where
                B: KrylovSteps,
            {
                // Does not compile if the backend's method has another name.
                let _ = B::$persistent::<V, T>;
                Some(self)
            })?)?

            $(fn chebyshev_product(&self) -> Option<&dyn ChebyshevProduct<T, B>>
            where
                B: PreconditionSteps,
            {
                let _ = B::$chebyshev::<V, T>;
                Some(self)
            })?

            fn accurate_residual(
                &self,
                backend: &B,
                scale: T,
                b: &B::Slice<T>,
                x: &B::Slice<T>,
                r: &mut B::Slice<T>,
            ) -> Result<bool>
            where
                B: VectorOps,
            {
                check_vectors(Op::None, (self.rows(), self.columns()), (B::len(x), B::len(r)))?;
                Error::check_dimension("length of b", self.rows(), B::len(b))?;
                let mut accurate = || {
                    let csr = operator!(@csr $csr self backend);
                    backend.csr_residual(csr.parts(), scale, b, x, r)
                };
                // Without memory for CSR, or a kernel for it, working precision is used.
                if accurate().is_ok() {
                    return Ok(true);
                }
                plain_residual(backend, self, scale, b, x, r)?;
                Ok(false)
            }

            fn bytes(&self) -> usize {
                operator!(@read $name self) + (self.rows() + self.columns()) * size_of::<T>()
            }

            $($($(fn block_bytes(&self, vectors: usize) -> Option<usize>
            where
                B: VectorOps,
            {
                // Does not compile if the backend's method has another name.
                let _ = B::$block::<V, T>;
                Some(self.storage_bytes() + vectors * (self.rows() + self.columns()) * size_of::<T>())
            })?)?)?
        }

        $($(impl<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions + KrylovSteps> PersistentOperator<T, B> for $name<V, B> {
            fn persistent_iterations(&self, backend: &B, work: Persistent<'_, T, B>) -> Result<bool> {
                Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                work.check(self.rows())?;
                backend.$persistent(self.parts(), $(self.$kept(),)? work)
            }
        })?)?

        $(impl<V: Scalar + Promote<T>, T: Scalar, B: Products + Conversions + PreconditionSteps> ChebyshevProduct<T, B> for $name<V, B> {
            fn chebyshev_step(
                &self,
                backend: &B,
                step: ChebyshevStep<'_, T, B>,
                z: &B::Slice<T>,
            ) -> Result<bool> {
                Error::check_dimension("columns of a square matrix", self.rows(), self.columns())?;
                Error::check_dimension("length of z", self.rows(), B::len(z))?;
                step.check(self.rows())?;
                backend.$chebyshev(self.parts(), step, z)
            }
        })?
    };
}
operator!(Csr, stored, csr_dot, csr_persistent(derived), csr_block_dot; csr_chebyshev);
operator!(Coo, converted);
operator!(Csc, converted);
operator!(Ell, converted);
operator!(Hybrid, converted);
operator!(Jds, converted);
operator!(Sell, converted, sell_dot, sell_persistent());
operator!(Dia, converted, dia_dot; dia_chebyshev);
operator!(Compressed, converted, compressed_dot; compressed_chebyshev);
