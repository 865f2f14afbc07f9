//! Incomplete LU factorisation without fill.

use super::triangular::Factors;
use super::{Preconditioner, Workspace};
use crate::backend::{Pivots, TriangularSteps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// What the diagonal is multiplied by, one after the other, until no pivot fails. T. A. Manteuffel, An incomplete
/// factorization technique for positive definite linear systems, Mathematics of Computation 34 (1980).
const SHIFTS: [f64; 5] = [1.0, 1.001, 1.01, 1.1, 2.0];

/// Pivots that are smaller than this part of the largest entry of their row fail: their inverses would only make
/// rounding errors large.
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
/// Unknowns are eliminated in the order in which A has them, and that order tells how good M is: bands, as from reverse
/// Cuthill-McKee, are good. Where pivots fail, the diagonal is made larger step by step; where that does not help, the
/// failing pivots are replaced, so that M is always regular.
///
/// An application is two triangular solves. It moves L and U with 4 bytes for each column, about 9 vectors and their
/// numbers, and has to take as many steps behind each other as there are levels of rows ([`Ilu::depth`]).
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
    /// Where A is not square, without memory, or when the device fails.
    pub fn new(backend: &B, a: &Csr<T, B>) -> Result<Self> {
        Self::with_pivots(backend, a, false, usize::MAX)
    }

    /// As [`Ilu::new`] or [`Ilu::positive`], with no more levels of rows than `most` in each factor.
    ///
    /// # Errors
    /// As these, and [`Error::Unsupported`] where there are more: they are known before anything is factorised.
    pub(crate) fn of_levels(backend: &B, a: &Csr<T, B>, positive: bool, most: usize) -> Result<Self> {
        Self::with_pivots(backend, a, positive, most)
    }

    /// IC(0) of a Hermitian matrix: as [`Ilu::new`], and every pivot is positive, so that M is positive definite.
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
                "factors without fill have {below} and {above} levels of rows for {} rows: they wait for each other",
                a.rows()
            )));
        }
        let (inverses, shift, failed) = (backend.buffer(a.rows())?, SHIFTS[0], 0);
        let mut made = Self { values, inverses, factors, positive, shift, failed };
        made.factorise(backend, a)?;
        Ok(made)
    }

    /// Factorises a matrix of the pattern at hand.
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

    /// Factorises with the diagonal multiplied by `shift`. Returns how many pivots failed.
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

    /// z = M^-1 r in [`Preconditioner::work_len`] scalars of memory.
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

    /// The longest chains of rows that need each other, of L and of U: steps that an application takes one behind the
    /// other.
    pub fn depth(&self) -> (usize, usize) {
        self.factors.depth()
    }

    /// What the diagonal of A was multiplied by, 1 where no pivot failed then; and pivots that were replaced.
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
