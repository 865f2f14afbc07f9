//! What a solver multiplies with: anything that applies y = A x.

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
/// [`rows`](LinearOperator::rows) entries. Stored matrices implement it, and so can a stencil that stores nothing, an
/// operator whose vectors are spread over several parts, a preconditioner or a solver.
pub trait LinearOperator<T: Scalar, B: Backend>: Send + Sync {
    /// Number of rows: the length of y.
    fn rows(&self) -> usize;

    /// Number of columns: the length of x.
    fn columns(&self) -> usize;

    /// y = A x. The operator may neither assume nor keep what `y` held.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if the device fails.
    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()>;

    /// y = alpha op(A) x + beta y. Where `beta` is zero, y is not read. The provided method knows op(A) = A alone, and
    /// takes a vector of temporary memory where `beta` is not zero, so that it can't be recorded then.
    ///
    /// # Errors
    /// If a vector has the wrong length, if the operator does not know op(A), or if the device fails.
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
                "this operator knows no product with its transpose: implement LinearOperator::product_op"
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
    /// rounding errors have spoilt its own residual. Whether it was in twice the working precision, rounded once.
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

    /// Many iterations of a method in one call, where the operator has a way that is faster than one after
    /// the other.
    fn persistent(&self) -> Option<&dyn PersistentOperator<T, B>>
    where
        B: KrylovSteps,
    {
        None
    }

    /// The iteration of conjugate gradients on several parts, where sums and halos travel with its steps.
    fn fused_parts(&self) -> Option<&dyn FusedParts<T, B>>
    where
        B: KrylovSteps,
    {
        None
    }

    /// A step of Chebyshev's iteration in one pass with its product, where the operator has a way.
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
    /// Enqueues several iterations at once ([`KrylovSteps::csr_persistent`]). Returns whether it did; an operator
    /// that declines a method does so at each call.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`], and if memory runs out.
    fn persistent_iterations(&self, backend: &B, work: Persistent<'_, T, B>) -> Result<bool>;
}

/// An operator on vectors that are spread over several parts, whose product sends its sum on with the launch that
/// computes it and finds its halo sent. The steps are called in this order, again and again.
pub trait FusedParts<T: Scalar, B: KrylovSteps>: LinearOperator<T, B> {
    /// Forgets what [`FusedParts::direction`] has sent last: before the first direction of a recurrence.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn drop_exchange(&self, backend: &B) -> Result<()>;

    /// q = A p, where the last direction has sent p. p.q goes to all parts, and this part's share to `pq`.
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

/// An operator whose product can end in a step of Chebyshev's iteration.
pub trait ChebyshevProduct<T: Scalar, B: PreconditionSteps>: LinearOperator<T, B> {
    /// A step of Chebyshev's iteration from z, in one pass with the product A z
    /// ([`PreconditionSteps::chebyshev_step`] is the same behind a product). Returns whether it did; an operator that
    /// declines does so at each call.
    ///
    /// # Errors
    /// As [`LinearOperator::apply`].
    fn chebyshev_step(&self, backend: &B, step: ChebyshevStep<'_, T, B>, z: &B::Slice<T>) -> Result<bool>;
}

/// Whatever points to an operator is that operator.
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
    /// [`LinearOperator::apply_dot`], the inner product over all parts.
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
