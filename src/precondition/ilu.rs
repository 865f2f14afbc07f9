//! Incomplete LU factorisation without fill.

use super::triangular::Factors;
use super::{Preconditioner, Workspace};
use crate::backend::{Pivots, TriangularSteps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// The diagonal is multiplied by each of these in turn, until no pivot fails. T. A. Manteuffel, An incomplete
/// factorization technique for positive definite linear systems, Mathematics of Computation 34 (1980).
const SHIFTS: [f64; 5] = [1.0, 1.001, 1.01, 1.1, 2.0];

/// A pivot fails if it is smaller than this times the largest entry of its row: its inverse would only amplify rounding
/// errors.
const SMALLEST: f64 = 1e-8;

/// M = L U with L and U on the pattern of A, so that (L U)_ij = a_ij there: ILU(0). Saad, Iterative Methods for Sparse
/// Linear Systems, 2nd ed., algorithm 10.4. For a Hermitian A it is the incomplete Cholesky factorisation IC(0), L D
/// L^H with D the diagonal of U.
///
/// ```text
///     | 4 1 . |          | 1       |        | * * . |
/// A = | 1 5 2 |   ~  L = | * 1     |   U =  |   * * |
///     | . 2 6 |          | . * 1   |        |     * |
/// ```
///
/// Unknowns are eliminated in the order of A, and the quality of M depends on that order: banded ones, as from reverse
/// Cuthill-McKee, are good. If pivots fail, the diagonal is increased step by step; if that does not help, the failing
/// pivots are replaced, so that M is always nonsingular.
///
/// An application is two triangular solves. It moves L and U with 4 bytes for each column, about 9 vectors and their
/// indices, and takes as many sequential steps as there are level sets of rows ([`Ilu::depth`]).
#[derive(Debug)]
pub struct Ilu<T: Scalar, B: TriangularSteps> {
    /// L and U on the pattern of A.
    values: Csr<T, B>,
    inverses: B::Vec<T>,
    factors: Factors<T, B>,
    positive: bool,
    shift: f64,
    failed: usize,
}

impl<T: Scalar, B: TriangularSteps> Ilu<T, B> {
    /// ILU(0) of a square matrix.
    ///
    /// # Errors
    /// If A is not square, if memory runs out, or if the device fails.
    pub fn new(backend: &B, a: &Csr<T, B>) -> Result<Self> {
        Self::with_pivots(backend, a, false, usize::MAX)
    }

    /// [`Ilu::new`] or [`Ilu::positive`], limited to factors with at most `most` level sets each.
    ///
    /// # Errors
    /// As [`Ilu::new`], and [`Error::Unsupported`] if there are more level sets, which is found before the
    /// factorisation.
    pub(crate) fn of_levels(backend: &B, a: &Csr<T, B>, positive: bool, most: usize) -> Result<Self> {
        Self::with_pivots(backend, a, positive, most)
    }

    /// IC(0) of a Hermitian matrix. As [`Ilu::new`], but with positive pivots only, so that M is positive definite.
    ///
    /// # Errors
    /// As [`Ilu::new`].
    pub fn positive(backend: &B, a: &Csr<T, B>) -> Result<Self> {
        Self::with_pivots(backend, a, true, usize::MAX)
    }

    fn with_pivots(backend: &B, a: &Csr<T, B>, positive: bool, most: usize) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let (pattern, values) = (a.parts().pattern(), a.copied(backend)?);
        let factors = Factors::new(backend, pattern, pattern, None)?;
        let (below, above) = factors.depth();
        if below.max(above) > most {
            return Err(Error::Unsupported(format!(
                "incomplete factors without fill have {below} and {above} level sets for {} rows, too many to solve \
                 in parallel",
                a.rows()
            )));
        }
        let (inverses, shift, failed) = (backend.buffer(a.rows())?, SHIFTS[0], 0);
        let mut made = Self { values, inverses, factors, positive, shift, failed };
        made.factorise(backend, a)?;
        Ok(made)
    }

    /// Factorises a matrix that has the current pattern.
    fn factorise(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        let mut failed = backend.zeros::<u32>(1)?;
        (self.shift, self.failed) = (SHIFTS[0], usize::MAX);
        let mut last = SHIFTS[0];
        for shift in SHIFTS {
            last = shift;
            let count = self.with_shift(backend, a, shift, &mut failed)?;
            if count < self.failed {
                (self.shift, self.failed) = (shift, count);
            }
            if count == 0 {
                break;
            }
        }
        if self.shift != last {
            self.with_shift(backend, a, self.shift, &mut failed)?;
        }
        let both = self.values.parts();
        self.factors.refill(backend, both, both, &self.inverses)
    }

    /// Factorises with the diagonal multiplied by `shift`. Returns the number of pivots that failed.
    fn with_shift(
        &mut self,
        backend: &B,
        a: &Csr<T, B>,
        shift: f64,
        failed: &mut B::Slice<u32>,
    ) -> Result<usize> {
        let pivots = Pivots { diagonal: shift, smallest: SMALLEST, positive: self.positive };
        let (pattern, values) = self.values.pattern_and_values();
        backend.copy(a.parts().values, values)?;
        backend.incomplete_lu(pattern, self.factors.order(), pivots, values, &mut self.inverses, failed)?;
        Ok(backend.value(failed)? as usize)
    }

    /// z = M^-1 r, in a workspace of [`Preconditioner::work_len`] scalars.
    pub(crate) fn solve(
        &self,
        backend: &B,
        work: &mut B::Slice<T>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        self.factors.solve(backend, work, r, z)
    }

    /// Bytes of all arrays.
    pub(crate) fn storage_bytes(&self) -> usize {
        self.values.storage_bytes() + self.factors.bytes() + B::len(&self.inverses) * size_of::<T>()
    }

    /// The numbers of level sets of L and of U, which are the sequential steps of an application.
    pub fn depth(&self) -> (usize, usize) {
        self.factors.depth()
    }

    /// The factor of A's diagonal with which no pivot failed (1 if none was needed), and the number of replaced pivots.
    pub fn repairs(&self) -> (f64, usize) {
        (self.shift, self.failed)
    }
}

impl<T: Scalar, B: TriangularSteps> Preconditioner<T, B> for Ilu<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(self.values.rows())
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        let mut work = backend.buffer(self.factors.work_len())?;
        self.solve(backend, &mut work, r, z)
    }

    fn work_len(&self) -> usize {
        self.factors.work_len()
    }

    fn apply_in(
        &self,
        backend: &B,
        work: Workspace<'_, T, B>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        self.solve(backend, work.full, r, z)
    }

    fn update(&mut self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        Error::check_dimension("rows of the new matrix", self.values.rows(), a.rows())?;
        Error::check_dimension("entries of the new matrix", self.values.nonzeros(), a.nonzeros())?;
        self.factorise(backend, a)
    }

    fn steps(&self) -> usize {
        5
    }

    fn bytes(&self) -> usize {
        self.factors.bytes()
    }
}
