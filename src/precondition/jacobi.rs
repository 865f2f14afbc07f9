//! The diagonal of A.

use super::Preconditioner;
use crate::backend::{Backend, Communicator, Inverse, RowFacts, Space, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar, Widen};
use num_traits::Zero;

/// M = diag(A), after C. G. J. Jacobi; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 10.2.
///
/// ```text
///     | 4 . 1 |            | 1/4         |
/// A = | . 2 . |     M^-1 = |     1/2     |
///     | 1 . 5 |            |         1/5 |
/// ```
///
/// The reciprocals are stored as reals, since the diagonal of a Hermitian matrix is real. Where all of them are equal,
/// as for many stencils, M is a multiple of I: conjugate gradients take the same steps with it as without, and then do,
/// so that such an iteration reads no diagonal. Where double precision is computed in and all reciprocals are normal
/// numbers of single precision, the fused steps of conjugate gradients read them rounded to that: M may be any positive
/// diagonal, this one differs by at most 2^-24 of itself, and half of the bytes are read.
///
/// An application by itself moves a real a row, r and z; within the fused steps of an iteration, the reals alone.
#[derive(Debug)]
pub struct Jacobi<T: Scalar, B: Backend> {
    inverse: B::Vec<T::Real>,
    /// The same in single precision; empty where that saves nothing.
    rounded: B::Vec<f32>,
    /// Whether `rounded` holds normal numbers only.
    serves: bool,
    /// Whether all reciprocals are equal.
    even: bool,
    found: B::Vec<u32>,
}

impl<T: Scalar, B: RowFacts> Jacobi<T, B> {
    /// From the diagonal of a stored matrix.
    ///
    /// # Errors
    /// [`Error::Diagonal`] with the first row whose diagonal entry is not a positive number: a positive definite
    /// matrix has none, since e_i.A e_i = a_ii. Also where the matrix is not square, and without memory.
    pub fn new<V: Scalar + Widen<T>>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
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

    /// Whether all of them are equal.
    pub(super) fn is_even(&self) -> bool {
        self.even
    }

    /// Where this is a part's share of the diagonal of a matrix that is spread over several: all reciprocals are equal
    /// only where those of all parts are.
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
        // As many equal numbers, added up in the same order.
        let expected = (1..parts).fold(first, |sum, _| sum + first);
        let same = self.even && backend.value(&sum)? == expected;
        self.even = space.count(!same)? == 0;
        Ok(())
    }

    /// Takes new values of a matrix of the same size over; nothing is allocated.
    ///
    /// # Errors
    /// As [`Jacobi::new`]. After an error the preconditioner must be updated again before it is used.
    pub fn update<V: Scalar + Widen<T>>(&mut self, backend: &B, a: &Csr<V, B>) -> Result<()> {
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
