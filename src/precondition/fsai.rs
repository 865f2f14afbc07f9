//! A sparse approximate inverse in factored form.

use super::blocks::check_definite;
use super::{Preconditioner, Workspace};
use crate::backend::{Conversions, DENSE_LIMIT, Offsets, Op, PreconditionSteps, Products, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Promote, Scalar};

/// M^-1 = G^H G with a sparse lower triangular G near the inverse of A's Cholesky factor: of all G on the pattern of
/// A's lower triangle, the one for which ||I - G L|| is smallest. L. Yu. Kolotilina and A. Yu. Yeremin, Factorized
/// sparse approximate inverse preconditionings, SIAM J. Matrix Anal. Appl. 14 (1993).
///
/// ```text
///     | 4 1 . |        | * . . |
/// A = | 1 5 2 |    G:  | * * . |   row i solves a dense system with A(J, J), J its columns
///     | . 2 6 |        | . * * |
/// ```
///
/// An application is two products, t = G r and z = G^H t, and r.z = t.t. If a row of A has more than 32 entries on and
/// left of the diagonal, only the 32 nearest to it are used. M is positive definite if every A(J, J) is.
///
/// An application moves G and G^H, each stored in CSR, and 5 vectors: r, t written, t read twice, and z.
#[derive(Debug)]
pub struct Fsai<T: Scalar, B: PreconditionSteps + Products + Conversions> {
    factor: Csr<T, B>,
    transposed: Csr<T, B>,
}

impl<T: Scalar, B: PreconditionSteps + Products + Conversions> Fsai<T, B> {
    /// The preconditioner of a stored Hermitian matrix.
    ///
    /// # Errors
    /// [`Error::Block`] with the first row whose system is not positive definite, which proves that A is not. Also if A
    /// is not square, if memory runs out, or if the backend can't transpose.
    pub fn new<V: Scalar + Promote<T>>(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let rows = a.rows();
        let mut lengths = backend.zeros(rows + 1)?;
        backend.lower_lengths::<V, T>(a.parts(), DENSE_LIMIT, &mut lengths)?;
        let mut offsets = Offsets::zeros(backend, rows + 1, a.nonzeros())?;
        let nonzeros = match &mut offsets {
            Offsets::Lower(o) => {
                backend.exclusive_scan(&lengths, o)?;
                backend.value(B::part(o, rows..rows + 1))? as usize
            }
            Offsets::Wide(o) => {
                backend.exclusive_scan(&lengths, o)?;
                backend.value(B::part(o, rows..rows + 1))? as usize
            }
        };
        drop(lengths);
        let mut columns = backend.zeros(nonzeros)?;
        let mut values = backend.zeros(nonzeros)?;
        let mut first_bad = backend.zeros(1)?;
        backend.sparse_factor::<V, T>(
            a.parts(),
            DENSE_LIMIT,
            offsets.as_ref(),
            &mut columns,
            &mut values,
            &mut first_bad,
        )?;
        check_definite(backend, &first_bad)?;
        let factor = Csr::from_parts_unchecked(rows, rows, offsets, columns, values);
        let transposed = factor.transpose(backend)?;
        Ok(Self { factor, transposed })
    }

    /// The factor G.
    pub fn factor(&self) -> &Csr<T, B> {
        &self.factor
    }

    /// t = G r, z = G^H t.
    fn run(&self, backend: &B, t: &mut B::Slice<T>, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        self.factor.product(backend, T::one(), r, T::zero(), t)?;
        self.transposed.product_op(backend, Op::Conjugate, T::one(), t, T::zero(), z)
    }
}

impl<T: Scalar, B: PreconditionSteps + Products + Conversions> Preconditioner<T, B> for Fsai<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(self.factor.rows())
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let mut t = backend.zeros(self.factor.rows())?;
        self.run(backend, &mut t, r, z)
    }

    fn work_len(&self) -> usize {
        self.factor.rows()
    }

    fn apply_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        self.run(backend, B::part_mut(work.full, 0..self.factor.rows()), r, z)
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
        let t = B::part_mut(work.full, 0..self.factor.rows());
        self.run(backend, t, r, z)?;
        backend.dot(t, t, rz) // r.z = r.G^H G r = t.t
    }

    fn bytes(&self) -> usize {
        self.factor.storage_bytes()
            + self.transposed.storage_bytes()
            + 5 * self.factor.rows() * size_of::<T>()
    }
}
