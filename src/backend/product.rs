//! The products of a backend, one for each storage layout: y = alpha op(A) x + beta y.

use super::{
    Backend, ChebyshevStep, CompressedParts, CompressedSteps, Conversions, CooParts, CsrParts, DiaParts,
    EllParts, JdsParts, ProductModel, SellParts, VectorOps,
};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};

/// op(A) in a product.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Op {
    /// A.
    #[default]
    None,
    /// A^T.
    Transpose,
    /// A with conjugated values (A if the type is real).
    Conjugate,
    /// A^H, conjugated and transposed (A^T if the type is real).
    ConjugateTranspose,
}

impl Op {
    /// Returns whether A is transposed.
    pub fn transposes(self) -> bool {
        matches!(self, Op::Transpose | Op::ConjugateTranspose)
    }

    /// Returns whether values are conjugated.
    pub fn conjugates(self) -> bool {
        matches!(self, Op::Conjugate | Op::ConjugateTranspose)
    }

    /// Returns the operation that gives the same result for a matrix that is stored transposed.
    #[must_use]
    pub fn transposed(self) -> Op {
        match self {
            Op::None => Op::Transpose,
            Op::Transpose => Op::None,
            Op::Conjugate => Op::ConjugateTranspose,
            Op::ConjugateTranspose => Op::Conjugate,
        }
    }
}

/// The operands of a product with A: y = alpha op(A) x + beta y, as in `gemv` of the BLAS. If `beta` is zero, `y` is
/// not read and may contain NaN.
#[derive(Debug)]
pub struct Gemv<'a, T: Scalar, B: Backend> {
    /// The form of A.
    pub op: Op,
    /// The factor of the product.
    pub alpha: T,
    /// As many elements as op(A) has columns.
    pub x: &'a B::Slice<T>,
    /// The factor of the previous y.
    pub beta: T,
    /// As many elements as op(A) has rows.
    pub y: &'a mut B::Slice<T>,
}

impl<'a, T: Scalar, B: Backend> Gemv<'a, T, B> {
    /// y = A x.
    pub fn plain(x: &'a B::Slice<T>, y: &'a mut B::Slice<T>) -> Self {
        Gemv { op: Op::None, alpha: T::one(), x, beta: T::zero(), y }
    }
}

/// Products with stored matrices. Padding is never multiplied. The callers in `matrix` check sizes.
///
/// Every backend has CSR. The provided methods return an error, for backends without a kernel for the layout.
pub trait Products: VectorOps + CompressedSteps {
    /// r = scale (b - A x), each element as if computed in twice the precision of `T` and rounded once. A restart needs
    /// this: because of cancellation in b - A x, working precision leaves too few digits to improve x. The caller
    /// checks sizes.
    ///
    /// # Errors
    /// If the backend has no kernel, as in the provided method, or if the device fails.
    #[allow(unused_variables)]
    fn csr_residual<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scale: T,
        b: &Self::Slice<T>,
        x: &Self::Slice<T>,
        r: &mut Self::Slice<T>,
    ) -> Result<()> {
        Err(Error::Unsupported(format!(
            "{} cannot compute residuals in twice the precision",
            self.description()
        )))
    }

    /// The product with A in CSR. Every backend supports `Op::None`.
    ///
    /// # Errors
    /// If the backend has no kernel for the form of A, or if the device fails.
    fn csr<V: Promote<T>, T: Scalar>(&self, a: CsrParts<'_, V, Self>, gemv: Gemv<'_, T, Self>) -> Result<()>;

    /// y = A x and `xy` = x.y (conjugating x) in one pass over A, for a square A in CSR.
    ///
    /// # Errors
    /// If the device fails.
    fn csr_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Y = alpha A X + beta Y for `vectors` vectors in one pass, with A in CSR. The vectors are interleaved: element i
    /// of vector j is at i * vectors + j, so that a nonzero is multiplied with neighbouring elements.
    ///
    /// # Errors
    /// If the backend has no kernel, or if the device fails.
    fn csr_block<V: Promote<T>, T: Scalar>(
        &self,
        _a: CsrParts<'_, V, Self>,
        _vectors: usize,
        _gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.no_kernel("the product of csr with several vectors")
    }

    /// Y = A X and `xy[j]` = x_j.y_j (conjugating x_j) for interleaved vectors and a square A in CSR, in one pass if
    /// the backend can. The length of `xy` is the number of vectors, 2 to 32.
    ///
    /// # Errors
    /// As [`Products::csr_block`].
    fn csr_block_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>
    where
        Self: VectorOps,
    {
        self.csr_block(a, Self::len(xy), Gemv::plain(x, y))?;
        self.dot(x, y, xy)
    }

    /// Returns the transpose of A on a backend that needs it for products with op(A) = A^T, else `None`. A matrix keeps
    /// the copy after the first such product.
    fn transposed_copy<M: Transposable<Self>>(&self, _a: &M) -> Option<Result<M::Copy>> {
        None
    }

    /// The product with A in coordinates.
    ///
    /// # Errors
    /// If the backend has no kernel, or if the device fails.
    fn coo<V: Promote<T>, T: Scalar>(
        &self,
        _a: CooParts<'_, V, Self>,
        _gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.no_kernel("format coo")
    }

    /// The product with A in ELL.
    ///
    /// # Errors
    /// If the backend has no kernel, or if the device fails.
    fn ell<V: Promote<T>, T: Scalar>(
        &self,
        _a: EllParts<'_, V, Self>,
        _gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.no_kernel("format ell")
    }

    /// The product with A in jagged diagonals.
    ///
    /// # Errors
    /// If the backend has no kernel, or if the device fails.
    fn jds<V: Promote<T>, T: Scalar>(
        &self,
        _a: JdsParts<'_, V, Self>,
        _gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.no_kernel("format jds")
    }

    /// The product with A in SELL-C-sigma.
    ///
    /// # Errors
    /// If the backend has no kernel, or if the device fails.
    fn sell<V: Promote<T>, T: Scalar>(
        &self,
        _a: SellParts<'_, V, Self>,
        _gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.no_kernel("format sell")
    }

    /// y = A x and `xy` = x.y (conjugating x) for a square A in SELL-C-sigma, in one pass if the backend can.
    ///
    /// # Errors
    /// As [`Products::sell`].
    fn sell_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: SellParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>
    where
        Self: VectorOps,
    {
        self.sell(a, Gemv::plain(x, y))?;
        self.dot(x, y, xy)
    }

    /// The product with A stored by diagonals.
    ///
    /// # Errors
    /// If the backend has no kernel, or if the device fails.
    fn dia<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        _a: DiaParts<'_, V, Self>,
        _gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.no_kernel("format dia")
    }

    /// y = A x and `xy` = x.y (conjugating x) for a square A stored by diagonals, in one pass if the backend can.
    ///
    /// # Errors
    /// As [`Products::dia`].
    fn dia_dot<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: DiaParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>
    where
        Self: VectorOps,
    {
        self.dia(a, Gemv::plain(x, y))?;
        self.dot(x, y, xy)
    }

    /// The product with A in the compressed format.
    ///
    /// # Errors
    /// If the backend has no kernel, or if the device fails.
    fn compressed<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        _a: CompressedParts<'_, V, Self>,
        _gemv: Gemv<'_, T, Self>,
    ) -> Result<()> {
        self.no_kernel("format compressed")
    }

    /// y = A x and `xy` = x.y (conjugating x) for a square A in the compressed format, in one pass if the backend can.
    ///
    /// # Errors
    /// As [`Products::compressed`].
    fn compressed_dot<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>
    where
        Self: VectorOps,
    {
        self.compressed(a, Gemv::plain(x, y))?;
        self.dot(x, y, xy)
    }

    /// A step of Chebyshev's iteration fused with the product A z, for a square A in the compressed format. Returns
    /// whether it was done: a backend declines variants of the format for which it has no kernel, and then at every
    /// call. The provided method always declines.
    ///
    /// # Errors
    /// If the device fails. The caller checks sizes.
    fn compressed_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        _a: CompressedParts<'_, V, Self>,
        _step: ChebyshevStep<'_, T, Self>,
        _z: &Self::Slice<T>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// As [`Products::compressed_chebyshev`], for A in CSR.
    ///
    /// # Errors
    /// As [`Products::compressed_chebyshev`].
    fn csr_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        _a: CsrParts<'_, V, Self>,
        _step: ChebyshevStep<'_, T, Self>,
        _z: &Self::Slice<T>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// As [`Products::compressed_chebyshev`], for A stored by diagonals.
    ///
    /// # Errors
    /// As [`Products::compressed_chebyshev`].
    fn dia_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        _a: DiaParts<'_, V, Self>,
        _step: ChebyshevStep<'_, T, Self>,
        _z: &Self::Slice<T>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// The performance model of these products, which [`choose`](crate::matrix::choose) uses.
    fn model(&self) -> ProductModel {
        ProductModel::new(0.0, 0.0, 0.0, &[("csr", 1.0)])
    }

    /// The error of the provided methods.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    #[doc(hidden)]
    fn no_kernel(&self, what: &str) -> Result<()> {
        Err(Error::Unsupported(format!("{what} on {}; use format csr, or the cpu", self.description())))
    }
}

/// A matrix that can be transposed, for backends that need a copy for products with A^T
/// ([`Products::transposed_copy`]).
pub trait Transposable<B: Backend> {
    /// The format of the copy.
    type Copy;

    /// The transpose.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    fn transposed(&self, backend: &B) -> Result<Self::Copy>
    where
        B: Conversions;
}
