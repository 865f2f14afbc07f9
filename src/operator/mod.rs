//! What a solver multiplies with: anything that applies y = A x.

use crate::backend::{Backend, CgBurst, ChebyshevStep, KrylovSteps, PreconditionSteps, VectorOps};
use crate::error::Result;
use crate::scalar::Scalar;

mod function;
pub use function::FunctionOperator;

/// A linear map from vectors of [`columns`](LinearOperator::columns) entries to vectors of
/// [`rows`](LinearOperator::rows) entries. Stored matrices implement it, and so can a stencil that stores nothing, or
/// an operator whose vectors are spread over several machines.
pub trait LinearOperator<T: Scalar, B: Backend>: Send + Sync {
    /// Number of rows: the length of y.
    fn rows(&self) -> usize;

    /// Number of columns: the length of x.
    fn columns(&self) -> usize;

    /// y = A x. The operator may neither assume nor keep what `y` held.
    ///
    /// # Errors
    /// On vectors of the wrong length, or when the device fails.
    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()>;

    /// y = A x and `xy[0]` = x.y (conjugating x), in one pass where the operator can. Where `xy` has k entries, 2 to
    /// 32, the same for k vectors at once, interleaved (entry i of vector j at i * k + j), if
    /// [`LinearOperator::block_bytes`] says that the operator does so.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn apply_dot(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>, xy: &mut B::Slice<T>) -> Result<()>
    where
        B: VectorOps,
    {
        self.apply(backend, x, y)?;
        backend.dot(x, y, xy)
    }

    /// r = scale (b - A x), in more than working precision where the operator can; a solver starts again from it when
    /// rounding errors have spoilt its own residual.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn accurate_residual(
        &self,
        backend: &B,
        scale: T,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        r: &mut B::Slice<T>,
    ) -> Result<()>
    where
        B: KrylovSteps,
    {
        self.apply(backend, x, r)?;
        backend.axpby(scale, b, -scale, r)
    }

    /// Enqueues several iterations of conjugate gradients at once, where the backend has a way that is faster than one
    /// after the other ([`KrylovSteps::csr_cg_burst`]). Returns whether it did; an operator that declines does so at
    /// each call. The provided method declines.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`], and without memory.
    fn cg_burst(&self, _backend: &B, _burst: CgBurst<'_, T, B>) -> Result<bool>
    where
        B: KrylovSteps,
    {
        Ok(false)
    }

    /// A step of Chebyshev's iteration from z, in one pass with the product A z where the operator can
    /// ([`PreconditionSteps::chebyshev_step`] is the same behind a product). Returns whether it did; an operator that
    /// declines does so at each call. The provided method declines.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn chebyshev_step(&self, _backend: &B, _step: ChebyshevStep<'_, T, B>, _z: &B::Slice<T>) -> Result<bool>
    where
        B: PreconditionSteps,
    {
        Ok(false)
    }

    /// Compulsory bytes of one application: what it needs of the stored matrix once, x once, y once.
    fn bytes(&self) -> usize;

    /// The same of an application to so many vectors at once, the stored matrix once for all; none where the operator
    /// takes them one by one only, as the provided method says.
    fn block_bytes(&self, _vectors: usize) -> Option<usize>
    where
        B: VectorOps,
    {
        None
    }
}
