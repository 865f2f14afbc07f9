//! What a backend multiplies: one product a storage layout, always y = alpha op(A) x + beta y.

use super::{Backend, CooParts, CsrParts, EllParts, JdsParts, SellParts, SlimParts, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::{Csr, ProductModel, Slim};
use crate::scalar::{Scalar, Widen};

/// Which form of A a product applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Op {
    /// A.
    #[default]
    None,
    /// A^T.
    Transpose,
    /// A with its values conjugated (A where the type is real).
    Conjugate,
    /// A^H, conjugated and transposed (A^T where the type is real).
    ConjugateTranspose,
}

impl Op {
    /// Whether rows and columns change places.
    pub fn transposes(self) -> bool {
        matches!(self, Op::Transpose | Op::ConjugateTranspose)
    }

    /// Whether values are conjugated.
    pub fn conjugates(self) -> bool {
        matches!(self, Op::Conjugate | Op::ConjugateTranspose)
    }

    /// The same form of A^T: what a matrix that is stored transposed has to do.
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

/// Products y = alpha op(A) x + beta y with stored matrices. Where `beta` is zero, `y` is not read: it may hold NaN.
/// Padding is never multiplied. Sizes are checked by the callers in `matrix`.
///
/// Every backend has CSR. The provided methods say that the backend has no kernel for a layout yet.
pub trait Products: Backend {
    /// y = alpha A x + beta y, A in CSR.
    ///
    /// # Errors
    /// When the device fails.
    fn csr<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        alpha: T,
        x: &Self::Slice<T>,
        beta: T,
        y: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// y = A x and `xy` = x.y (conjugating x) in one pass over A, for a square A in CSR.
    ///
    /// # Errors
    /// When the device fails.
    fn csr_dot<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// y = alpha op(A) x + beta y, A in CSR.
    ///
    /// # Errors
    /// Where the backend has no kernel for `op`, or when the device fails.
    fn csr_op<V: Widen<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        op: Op,
        alpha: T,
        x: &Self::Slice<T>,
        beta: T,
        y: &mut Self::Slice<T>,
    ) -> Result<()> {
        match op {
            Op::None => self.csr(a, alpha, x, beta, y),
            Op::Conjugate if !T::COMPLEX => self.csr(a, alpha, x, beta, y),
            _ => self.no_kernel("the transposed product of csr"),
        }
    }

    /// Y = alpha A X + beta Y for `vectors` vectors at once, A in CSR. The vectors lie interleaved: element i of vector j is at
    /// i * vectors + j, so that a nonzero meets all of them in one place.
    ///
    /// # Errors
    /// Where the backend has no kernel, or when the device fails.
    fn csr_block<V: Widen<T>, T: Scalar>(
        &self,
        _a: CsrParts<'_, V, Self>,
        _vectors: usize,
        _alpha: T,
        _x: &Self::Slice<T>,
        _beta: T,
        _y: &mut Self::Slice<T>,
    ) -> Result<()> {
        self.no_kernel("the product of csr with several vectors")
    }

    /// The transpose of A, on a backend whose products with op(A) = A^T go through it; `None` where they need no copy. [`Csr`] and
    /// [`Csc`](crate::matrix::Csc) keep it beside the matrix from the first such product on.
    fn transposed_copy<V: Scalar>(&self, _a: &Csr<V, Self>) -> Option<Result<Csr<V, Self>>> {
        None
    }

    /// The same of the compressed format, which keeps the copy as [`Csr`] does.
    fn transposed_slim<V: Scalar>(&self, _a: &Slim<V, Self>) -> Option<Result<Slim<V, Self>>> {
        None
    }

    /// y = alpha op(A) x + beta y, A in coordinates.
    ///
    /// # Errors
    /// Where the backend has no kernel, or when the device fails.
    fn coo<V: Widen<T>, T: Scalar>(
        &self,
        _a: CooParts<'_, V, Self>,
        _op: Op,
        _alpha: T,
        _x: &Self::Slice<T>,
        _beta: T,
        _y: &mut Self::Slice<T>,
    ) -> Result<()> {
        self.no_kernel("format coo")
    }

    /// y = alpha op(A) x + beta y, A in ELL.
    ///
    /// # Errors
    /// Where the backend has no kernel, or when the device fails.
    fn ell<V: Widen<T>, T: Scalar>(
        &self,
        _a: EllParts<'_, V, Self>,
        _op: Op,
        _alpha: T,
        _x: &Self::Slice<T>,
        _beta: T,
        _y: &mut Self::Slice<T>,
    ) -> Result<()> {
        self.no_kernel("format ell")
    }

    /// y = alpha op(A) x + beta y, A in jagged diagonals.
    ///
    /// # Errors
    /// Where the backend has no kernel, or when the device fails.
    fn jds<V: Widen<T>, T: Scalar>(
        &self,
        _a: JdsParts<'_, V, Self>,
        _op: Op,
        _alpha: T,
        _x: &Self::Slice<T>,
        _beta: T,
        _y: &mut Self::Slice<T>,
    ) -> Result<()> {
        self.no_kernel("format jds")
    }

    /// y = alpha op(A) x + beta y, A in SELL-C-sigma.
    ///
    /// # Errors
    /// Where the backend has no kernel, or when the device fails.
    fn sell<V: Widen<T>, T: Scalar>(
        &self,
        _a: SellParts<'_, V, Self>,
        _op: Op,
        _alpha: T,
        _x: &Self::Slice<T>,
        _beta: T,
        _y: &mut Self::Slice<T>,
    ) -> Result<()> {
        self.no_kernel("format sell")
    }

    /// y = A x and `xy` = x.y (conjugating x) for a square A in SELL-C-sigma, in one pass where the backend can.
    ///
    /// # Errors
    /// As [`Products::sell`].
    fn sell_dot<V: Widen<T>, T: Scalar>(
        &self,
        a: SellParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>
    where
        Self: VectorOps,
    {
        self.sell(a, Op::None, T::one(), x, T::zero(), y)?;
        self.dot(x, y, xy)
    }

    /// What is known of these products' speed: the model behind [`choose`](crate::matrix::choose) goes by it.
    fn model(&self) -> ProductModel {
        ProductModel::new(0.0, 0.0, 0.0, &[("csr", 1.0)])
    }

    /// y = alpha op(A) x + beta y, A in the compressed format.
    ///
    /// # Errors
    /// Where the backend has no kernel, or when the device fails.
    fn slim<V: Scalar + Widen<T>, T: Scalar>(
        &self,
        _a: SlimParts<'_, V, Self>,
        _op: Op,
        _alpha: T,
        _x: &Self::Slice<T>,
        _beta: T,
        _y: &mut Self::Slice<T>,
    ) -> Result<()> {
        self.no_kernel("format slim")
    }

    /// y = A x and `xy` = x.y (conjugating x) for a square A in the compressed format, in one pass where the backend can.
    ///
    /// # Errors
    /// As [`Products::slim`].
    fn slim_dot<V: Scalar + Widen<T>, T: Scalar>(
        &self,
        a: SlimParts<'_, V, Self>,
        x: &Self::Slice<T>,
        y: &mut Self::Slice<T>,
        xy: &mut Self::Slice<T>,
    ) -> Result<()>
    where
        Self: VectorOps,
    {
        self.slim(a, Op::None, T::one(), x, T::zero(), y)?;
        self.dot(x, y, xy)
    }

    /// The refusal of the provided methods.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    #[doc(hidden)]
    fn no_kernel(&self, what: &str) -> Result<()> {
        Err(Error::Unsupported(format!("{what} on {}; use format csr, or the cpu", self.description())))
    }
}
