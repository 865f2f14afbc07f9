//! Preconditioners: operators z = M^-1 r with M near A and cheap to invert.
//!
//! | type | M | set up by | bytes moved per iteration, in addition to plain CG |
//! |---|---|---|---|
//! | [`Identity`] | I | | none |
//! | [`Jacobi`] | diagonal of A | one pass over A | 2 n reals, none if all are equal: fused with the steps of CG, z is never stored |
//! | [`BlockJacobi`] | diagonal blocks of A | small dense inverses | the blocks, and 4 n scalars: r, z, and both for r.z |
//! | [`Fsai`] | (G^H G)^-1, G on the lower pattern of A | a dense system per row | both factors, and 7 n scalars |
//! | [`Ilu`] | L U on the pattern of A | row by row, each as soon as the rows that it needs are done | both factors, and 9 n scalars and indices |
//! | [`Ilut`] | L U with the largest entries of the fill | on one thread of the CPU, after a maximum product transversal | the same |
//! | [`Chebyshev`] | a polynomial of A in k terms | the largest eigenvalue | (k - 1) steps of the matrix and 4 n scalars (7 n if the product and the step are two passes), and 4 n scalars |
//! | [`Narrowed`] | any of these, in half the precision | the same | the same in half the width, and 5 n scalars |
//!
//! Which one to use: Jacobi nearly always. Block Jacobi if several unknowns belong to each point, as in elasticity.
//! Incomplete LU for matrices that are not symmetric, if they have few level sets. FSAI if iterations are many and the
//! matrix has few entries per row. Chebyshev if global sums are expensive, since it needs fewer of them (but not fewer
//! products); [`Narrowed`] Chebyshev if an iteration moves vectors more than the matrix.
//!
//! A preconditioner of your own implements [`Preconditioner::apply`]; for conjugate gradients it must be Hermitian
//! positive definite.

use crate::backend::{Backend, Inverse, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

mod blocks;
mod chebyshev;
mod fsai;
mod identity;
mod ilu;
mod ilut;
mod jacobi;
mod narrowed;
mod spectrum;
mod triangular;

pub use blocks::BlockJacobi;
pub use chebyshev::Chebyshev;
pub use fsai::Fsai;
pub use identity::Identity;
pub use ilu::Ilu;
pub use ilut::{Ilut, IlutOptions};
pub use jacobi::Jacobi;
pub use narrowed::Narrowed;

/// The workspace of an application. A solver keeps it, so that applications allocate nothing. Its contents need not be
/// kept.
pub struct Workspace<'a, T: Scalar, B: Backend> {
    /// [`Preconditioner::work_len`] scalars, or more.
    pub full: &'a mut B::Slice<T>,
    /// [`Preconditioner::narrow_work_len`] scalars in half the precision, or more.
    pub narrow: &'a mut B::Slice<T::Lower>,
}

impl<T: Scalar, B: Backend> std::fmt::Debug for Workspace<'_, T, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Workspace of {} and {} scalars", B::len(self.full), B::len(self.narrow))
    }
}

/// Applies z = M^-1 r.
pub trait Preconditioner<T: Scalar, B: Backend>: Send + Sync {
    /// Number of rows and columns; `None` if any size is possible.
    fn rows(&self) -> Option<usize>;

    /// z = M^-1 r. `z` is overwritten.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if the device fails.
    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()>;

    /// The number of scalars of workspace that [`Preconditioner::apply_in`] and [`Preconditioner::apply_dot_in`] need.
    /// A solver allocates them once.
    fn work_len(&self) -> usize {
        0
    }

    /// The number of scalars of workspace in half the precision.
    fn narrow_work_len(&self) -> usize {
        0
    }

    /// [`Preconditioner::apply`] with the caller's workspace, so that nothing is allocated.
    ///
    /// # Errors
    /// As [`Preconditioner::apply`].
    fn apply_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        let _ = work;
        self.apply(backend, r, z)
    }

    /// [`Preconditioner::apply_in`], and `rz[0]` = r.z (conjugating r), in one pass if M can.
    ///
    /// # Errors
    /// As [`Preconditioner::apply`].
    fn apply_dot_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
        rz: &mut B::Slice<T>,
    ) -> Result<()>
    where
        B: VectorOps,
    {
        self.apply_in(backend, work, r, z)?;
        backend.dot(r, z, rz)
    }

    /// The form of M that fused steps can apply, if it has one: [`Inverse::Identity`] (also for a multiple of I),
    /// [`Inverse::Diagonal`] or [`Inverse::Rounded`].
    fn fused(&self) -> Option<Inverse<'_, T, B>>
    where
        B: VectorOps,
    {
        None
    }

    /// Takes new values from a matrix with the pattern that M was built from. What depends on the pattern alone is
    /// kept.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if M can't take new values and must be rebuilt, as the provided method says; and the
    /// errors of setting M up. After an error M must be updated again before it is used.
    fn update(&mut self, _backend: &B, _a: &Csr<T, B>) -> Result<()> {
        Err(Error::Unsupported("new values for this preconditioner; make a new preconditioner".into()))
    }

    /// Returns whether an application waits for the backend, so that a solver can't record it.
    fn waits(&self) -> bool {
        false
    }

    /// The approximate number of steps that one application queues on the backend. With many steps an iteration keeps a
    /// GPU busy however few bytes it moves, and a solver queues few iterations ahead, because those queued after the
    /// last one are wasted.
    fn steps(&self) -> usize {
        1
    }

    /// Compulsory bytes of one application: the stored data of M, r once, z once.
    fn bytes(&self) -> usize;
}

/// A pointer to a preconditioner is a preconditioner too.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<T: Scalar, B: Backend, M: Preconditioner<T, B> + ?Sized> Preconditioner<T, B> for $pointer {
            fn rows(&self) -> Option<usize> {
                (**self).rows()
            }

            fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
                (**self).apply(backend, r, z)
            }

            fn work_len(&self) -> usize {
                (**self).work_len()
            }

            fn narrow_work_len(&self) -> usize {
                (**self).narrow_work_len()
            }

            fn apply_in(
                &self,
                backend: &B,
                work: Workspace<'_, T, B>,
                r: &B::Slice<T>,
                z: &mut B::Slice<T>,
            ) -> Result<()> {
                (**self).apply_in(backend, work, r, z)
            }

            fn apply_dot_in(
                &self,
                backend: &B,
                work: Workspace<'_, T, B>,
                r: &B::Slice<T>,
                z: &mut B::Slice<T>,
                rz: &mut B::Slice<T>,
            ) -> Result<()>
            where
                B: VectorOps,
            {
                (**self).apply_dot_in(backend, work, r, z, rz)
            }

            fn fused(&self) -> Option<Inverse<'_, T, B>>
            where
                B: VectorOps,
            {
                (**self).fused()
            }

            fn waits(&self) -> bool {
                (**self).waits()
            }

            fn steps(&self) -> usize {
                (**self).steps()
            }

            fn bytes(&self) -> usize {
                (**self).bytes()
            }
        }
    };
}
pointer!(&M);
pointer!(Box<M>);
pointer!(Arc<M>);
