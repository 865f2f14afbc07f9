//! Jacobi: the diagonal of A.

use super::Preconditioner;
use crate::backend::{Backend, Communicator, Inverse, RowFacts, Space, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Promote, Real, Scalar};
use num_traits::Zero;

/// M = diag(A), after C. G. J. Jacobi; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 10.2.
///
/// ```text
///     | 4 . 1 |            | 1/4         |
/// A = | . 2 . |     M^-1 = |     1/2     |
///     | 1 . 5 |            |         1/5 |
/// ```
///
/// The reciprocals are stored as reals, since the diagonal of a Hermitian matrix is real. If all of them are equal, as
/// for many stencils, M is a multiple of I. Conjugate gradients then take the same steps as without a preconditioner,
/// and are run without it, so that no diagonal is read. In double precision, if all reciprocals are normal numbers of
/// single precision, the fused steps of conjugate gradients read them rounded to single: M may be any positive
/// diagonal, this one has a relative error of at most 2^-24, and half as many bytes are read.
///
/// An application by itself moves a real per row, r and z; within the fused steps of an iteration, only the reals.
#[derive(Debug)]
pub struct Jacobi<T: Scalar, B: Backend> {
    inverse: B::Vec<T::Real>,
    /// The reciprocals in single precision; empty if that saves nothing.
    rounded: B::Vec<f32>,
    /// True if `rounded` holds normal numbers only.
    serves: bool,
    /// True if all reciprocals are equal.
    even: bool,
    found: B::Vec<u32>,
}

impl<T: Scalar, B: RowFacts> Jacobi<T, B> {
    /// The preconditioner of a stored matrix.
    ///
    /// # Errors
    /// [`Error::Diagonal`] with the first row whose diagonal entry is not a positive number: a positive definite matrix
    /// has none, since e_i.A e_i = a_ii. Also if the matrix is not square, and if memory runs out.
    pub fn new<V: Scalar + Promote<T>>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let halves = size_of::<T::Real>() > size_of::<f32>();
        let mut jacobi = Self {
            inverse: backend.zeros(a.rows())?,
            rounded: backend.zeros(if halves { a.rows() } else { 0 })?,
            serves: false,
            even: false,
            found: backend.zeros(3)?,
        };
        jacobi.update(backend, a)?;
        Ok(jacobi)
    }

    /// The reciprocals.
    pub(super) fn inverse(&self) -> &B::Slice<T::Real> {
        &self.inverse
    }

    /// Returns whether all of them are equal.
    pub(super) fn is_even(&self) -> bool {
        self.even
    }

    /// For a matrix distributed over several ranks, each with its part of the diagonal: makes all ranks agree that all
    /// reciprocals are equal only if they are on every rank.
    ///
    /// # Errors
    /// As [`Communicator::all_sum`].
    pub(crate) fn agree<C: Communicator<B>>(&mut self, space: &Space<B, C>) -> Result<()>
    where
        B: VectorOps,
    {
        if C::ALONE {
            return Ok(());
        }
        let (backend, parts) = (space.backend(), space.communicator().parts());
        let first = if self.even { backend.value(B::part(&self.inverse, 0..1))? } else { T::Real::zero() };
        let mut sum = backend.zeros::<T::Real>(1)?;
        backend.write(&[first], &mut sum)?;
        space.communicator().all_sum(backend, &mut sum)?;
        // The sum of the same number of equal terms, added in the same order.
        let expected = (1..parts).fold(first, |sum, _| sum + first);
        let same = self.even && backend.value(&sum)? == expected;
        self.even = space.count(!same)? == 0;
        Ok(())
    }

    /// Takes new values from a matrix of the same size; allocates nothing.
    ///
    /// # Errors
    /// As [`Jacobi::new`]. After an error the preconditioner must be updated again before it is used.
    pub fn update<V: Scalar + Promote<T>>(&mut self, backend: &B, a: &Csr<V, B>) -> Result<()> {
        Error::check_dimension("rows of the matrix", B::len(&*self.inverse), a.rows())?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let Self { inverse, rounded, found, .. } = self;
        backend.csr_inverse_diagonal::<V, T>(a.parts(), inverse, rounded, found)?;
        let mut found = [0; 3];
        backend.read(&self.found, &mut found)?;
        self.even = found[1] == u32::MAX;
        self.serves = B::len(&*self.rounded) > 0 && found[2] == u32::MAX;
        let row = found[0] as usize;
        if row >= a.rows() {
            return Ok(());
        }
        let entry = backend.value(B::part(&self.inverse, row..row + 1))?;
        Err(Error::Diagonal { row, value: entry.to_f64() })
    }
}

impl<T: Scalar, B: VectorOps + RowFacts> Preconditioner<T, B> for Jacobi<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(B::len(&*self.inverse))
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        backend.scale(&self.inverse, r, z)
    }

    fn fused(&self) -> Option<Inverse<'_, T, B>> {
        Some(match (self.even, self.serves) {
            (true, _) => Inverse::Identity,
            (_, true) => Inverse::Rounded(&*self.rounded),
            _ => Inverse::Diagonal(&*self.inverse),
        })
    }

    fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        Jacobi::update(self, backend, a)
    }

    fn bytes(&self) -> usize {
        B::len(&*self.inverse) * (size_of::<T::Real>() + 2 * size_of::<T>())
    }
}
