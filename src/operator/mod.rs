//! The operator of a solver: anything that applies y = A x.

use crate::backend::{
    Backend, ChebyshevStep, Communicator, KrylovSteps, Op, PartDirection, PartResidual, Persistent,
    PreconditionSteps, Space, VectorOps,
};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use std::sync::Arc;

mod function;
pub use function::FunctionOperator;

/// A linear map from vectors of [`columns`](LinearOperator::columns) entries to vectors of
/// [`rows`](LinearOperator::rows) entries. Stored matrices implement it, and so can a matrix-free stencil, an operator
/// on distributed vectors, a preconditioner or a solver.
pub trait LinearOperator<T: Scalar, B: Backend>: Send + Sync {
    /// Number of rows: the length of y.
    fn rows(&self) -> usize;

    /// Number of columns: the length of x.
    fn columns(&self) -> usize;

    /// y = A x. The operator may neither use nor keep the previous contents of y.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if the device fails.
    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()>;

    /// y = alpha op(A) x + beta y. If `beta` is zero, y is not read. The provided method only supports op(A) = A, and
    /// allocates a temporary vector if `beta` is not zero, so that it can't be recorded then.
    ///
    /// # Errors
    /// If a vector has the wrong length, if the operator does not support op(A), or if the device fails.
    fn product_op(
        &self,
        backend: &B,
        op: Op,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>
    where
        B: VectorOps,
    {
        if op.transposes() || (op.conjugates() && T::COMPLEX) {
            return Err(Error::Unsupported(
                "this operator has no product with its transpose: implement LinearOperator::product_op"
                    .into(),
            ));
        }
        if beta == T::zero() {
            self.apply(backend, x, y)?;
            return if alpha == T::one() { Ok(()) } else { backend.scale_in_place(alpha, y) };
        }
        let mut product = backend.buffer(B::len(y))?;
        self.apply(backend, x, &mut product)?;
        backend.axpby(alpha, &product, beta, y)
    }

    /// y = A x and `xy[0]` = x.y (conjugating x), in one pass if the operator can. If `xy` has k entries, 2 to 32, then
    /// x and y are k interleaved vectors (entry i of vector j is at i * k + j), provided that
    /// [`LinearOperator::block_bytes`] supports it.
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

    /// r = scale (b - A x), in more than working precision if the operator can; a solver restarts from it when rounding
    /// errors have accumulated in its own residual. Returns whether it was computed in twice the working precision and
    /// rounded once.
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
    ) -> Result<bool>
    where
        B: VectorOps,
    {
        plain_residual(backend, self, scale, b, x, r)?;
        Ok(false)
    }

    /// The operator's persistent iterations, if it has them: many iterations of a method in one call.
    fn persistent(&self) -> Option<&dyn PersistentOperator<T, B>>
    where
        B: KrylovSteps,
    {
        None
    }

    /// The steps of conjugate gradients on several ranks that are fused with sums and halo exchange, if the operator
    /// has them.
    fn fused_parts(&self) -> Option<&dyn FusedParts<T, B>>
    where
        B: KrylovSteps,
    {
        None
    }

    /// The product fused with a step of Chebyshev's iteration, if the operator has one.
    fn chebyshev_product(&self) -> Option<&dyn ChebyshevProduct<T, B>>
    where
        B: PreconditionSteps,
    {
        None
    }

    /// Returns whether an application waits for the backend, so that a solver can't record it.
    fn waits(&self) -> bool {
        false
    }

    /// Compulsory bytes of one application: the stored matrix once, x once, y once.
    fn bytes(&self) -> usize;

    /// Compulsory bytes of an application to several vectors at the same time, with the stored matrix once for all.
    /// `None` if the operator multiplies one vector at a time, as by default.
    fn block_bytes(&self, _vectors: usize) -> Option<usize>
    where
        B: VectorOps,
    {
        None
    }
}

/// r = scale (b - A x) in working precision.
pub(crate) fn plain_residual<T: Scalar, B: VectorOps>(
    backend: &B,
    a: &(impl LinearOperator<T, B> + ?Sized),
    scale: T,
    b: &B::Slice<T>,
    x: &B::Slice<T>,
    r: &mut B::Slice<T>,
) -> Result<()> {
    a.apply(backend, x, r)?;
    backend.axpby(scale, b, -scale, r)
}

/// An operator with which a backend can do many iterations of conjugate gradients or MINRES in one call.
pub trait PersistentOperator<T: Scalar, B: KrylovSteps>: LinearOperator<T, B> {
    /// Enqueues several iterations in one call ([`KrylovSteps::csr_persistent`]). Returns whether it did; an operator
    /// that does not support a method returns false at each call.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`], and if memory runs out.
    fn persistent_iterations(&self, backend: &B, work: Persistent<'_, T, B>) -> Result<bool>;
}

/// An operator on distributed vectors whose product sends its sum from the same launch, and receives a halo that was
/// already sent. The steps are called in this order, again and again.
pub trait FusedParts<T: Scalar, B: KrylovSteps>: LinearOperator<T, B> {
    /// Discards the halo that [`FusedParts::direction`] has sent last; called before the first direction of a
    /// recurrence.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn drop_exchange(&self, backend: &B) -> Result<()>;

    /// q = A p, where the last direction has sent p. p.q is sent to all ranks, and this rank's part is written to `pq`.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn product(&self, backend: &B, p: &B::Slice<T>, q: &mut B::Slice<T>, pq: &mut B::Slice<T>) -> Result<()>;

    /// See [`Communicator::cg_residual`].
    ///
    /// # Errors
    /// As [`Communicator::cg_residual`].
    fn residual(&self, backend: &B, step: PartResidual<'_, T, B>) -> Result<()>;

    /// See [`Communicator::cg_direction`].
    ///
    /// # Errors
    /// As [`Communicator::cg_direction`].
    fn direction(&self, backend: &B, step: PartDirection<'_, T, B>) -> Result<()>;
}

/// An operator whose product can be fused with a step of Chebyshev's iteration.
pub trait ChebyshevProduct<T: Scalar, B: PreconditionSteps>: LinearOperator<T, B> {
    /// A step of Chebyshev's iteration from z, fused with the product A z ([`PreconditionSteps::chebyshev_step`] is the
    /// same after a product). Returns whether it did; an operator that does not support it returns false at each call.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn chebyshev_step(&self, backend: &B, step: ChebyshevStep<'_, T, B>, z: &B::Slice<T>) -> Result<bool>;
}

/// A pointer to an operator is an operator too.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<T: Scalar, B: Backend, A: LinearOperator<T, B> + ?Sized> LinearOperator<T, B> for $pointer {
            fn rows(&self) -> usize {
                (**self).rows()
            }

            fn columns(&self) -> usize {
                (**self).columns()
            }

            fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
                (**self).apply(backend, x, y)
            }

            fn product_op(
                &self,
                backend: &B,
                op: Op,
                alpha: T,
                x: &B::Slice<T>,
                beta: T,
                y: &mut B::Slice<T>,
            ) -> Result<()>
            where
                B: VectorOps,
            {
                (**self).product_op(backend, op, alpha, x, beta, y)
            }

            fn apply_dot(
                &self,
                backend: &B,
                x: &B::Slice<T>,
                y: &mut B::Slice<T>,
                xy: &mut B::Slice<T>,
            ) -> Result<()>
            where
                B: VectorOps,
            {
                (**self).apply_dot(backend, x, y, xy)
            }

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
                (**self).accurate_residual(backend, scale, b, x, r)
            }

            fn persistent(&self) -> Option<&dyn PersistentOperator<T, B>>
            where
                B: KrylovSteps,
            {
                (**self).persistent()
            }

            fn fused_parts(&self) -> Option<&dyn FusedParts<T, B>>
            where
                B: KrylovSteps,
            {
                (**self).fused_parts()
            }

            fn chebyshev_product(&self) -> Option<&dyn ChebyshevProduct<T, B>>
            where
                B: PreconditionSteps,
            {
                (**self).chebyshev_product()
            }

            fn waits(&self) -> bool {
                (**self).waits()
            }

            fn bytes(&self) -> usize {
                (**self).bytes()
            }

            fn block_bytes(&self, vectors: usize) -> Option<usize>
            where
                B: VectorOps,
            {
                (**self).block_bytes(vectors)
            }
        }
    };
}
pointer!(&A);
pointer!(Box<A>);
pointer!(Arc<A>);

impl<B: VectorOps, C: Communicator<B>> Space<B, C> {
    /// [`LinearOperator::apply_dot`], with the inner product summed over all ranks.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`] and [`Space::dot`].
    pub fn apply_dot<T: Scalar>(
        &self,
        a: &(impl LinearOperator<T, B> + ?Sized),
        x: &B::Slice<T>,
        y: &mut B::Slice<T>,
        xy: &mut B::Slice<T>,
    ) -> Result<()> {
        a.apply_dot(self.backend(), x, y, xy)?;
        self.communicator().all_sum(self.backend(), xy)
    }
}
