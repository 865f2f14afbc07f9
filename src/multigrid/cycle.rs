//! The cycle through the levels, on any backend.

use super::MultigridBackend;
use super::smoother::{LevelMatrix, Smoother, residual};
use crate::backend::{CsrPattern, Grid, GridStencil, Op};
use crate::error::Result;
use crate::matrix::{Csr, Dia};
use crate::operator::LinearOperator;
use crate::scalar::Scalar;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The iteration that solves a level whose prolongation is not smoothed is Chebyshev's with two steps, for a
/// preconditioned matrix with eigenvalues between this and 1. The number of iterations was the same for values from 0.1
/// to 0.3, on grids of two and three dimensions with constant and lognormal coefficients and with jumps of 10^6: 9 to
/// 13, as many as with two steps of conjugate gradients (a K-cycle), which would need inner products and make the
/// preconditioner nonlinear.
const LOWEST: f64 = 0.2;

/// The matrix as it is stored.
pub(super) enum Stored<T: Scalar, B: MultigridBackend> {
    /// CSR, whose values can be updated.
    Rows(Csr<T, B>),
    /// The diagonals of a matrix on a grid.
    Diagonals(Dia<T, B>),
    /// A stencil: the rows of a grid are equal except at the boundary.
    Stencil(GridStencil<T>),
    /// This rank's rows of a distributed matrix.
    Spread(Box<LevelMatrix<T, B>>),
    /// A matrix that is shared with the solver.
    Shared(Arc<LevelMatrix<T, B>>),
}

impl<T: Scalar, B: MultigridBackend> Stored<T, B> {
    /// Bytes of memory allocated for the matrix.
    pub(super) fn storage_bytes(&self) -> usize {
        match self {
            Self::Shared(_) => 0,
            // The caller has the pattern too, and only the values are a rounded copy.
            Self::Rows(a) => a.own_bytes(),
            _ => self.product_bytes(),
        }
    }

    /// Bytes of the matrix that a product reads.
    fn product_bytes(&self) -> usize {
        match self {
            Self::Rows(a) => a.storage_bytes(),
            Self::Diagonals(a) => a.storage_bytes(),
            Self::Stencil(a) => a.storage_bytes(),
            Self::Spread(a) => a.bytes(),
            Self::Shared(a) => a.bytes(),
        }
    }
}

impl<T: Scalar, B: MultigridBackend> fmt::Debug for Stored<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(a) => a.fmt(f),
            Self::Diagonals(a) => a.fmt(f),
            Self::Stencil(a) => a.fmt(f),
            Self::Spread(a) => write!(f, "{} spread rows", a.rows()),
            Self::Shared(a) => write!(f, "{} shared rows", a.rows()),
        }
    }
}

impl<T: Scalar, B: MultigridBackend> Deref for Stored<T, B> {
    type Target = LevelMatrix<T, B>;

    fn deref(&self) -> &LevelMatrix<T, B> {
        match self {
            Self::Rows(a) => a,
            Self::Diagonals(a) => a,
            Self::Stencil(a) => a,
            Self::Spread(a) => &**a,
            Self::Shared(a) => &**a,
        }
    }
}

/// A level that is not the coarsest.
#[derive(Debug)]
pub(super) struct Level<T: Scalar, B: MultigridBackend> {
    pub(super) a: Stored<T, B>,
    pub(super) smoother: Smoother<T, B>,
    pub(super) transfer: Transfer<T, B>,
    /// True if the next level is solved by two cycles, combined as two steps of Chebyshev's iteration.
    pub(super) twice: bool,
}

/// The transfer operators between a level and the next.
pub(super) enum Transfer<T: Scalar, B: MultigridBackend> {
    /// P and its conjugate transpose in half the precision. An error e of P contributes as sqrt(condition) e, so that
    /// single precision is still good enough for P when it no longer is for the cycle.
    Matrices { prolongation: Csr<T::Lower, B>, restriction: Csr<T::Lower, B> },
    /// P and its conjugate transpose, distributed over several ranks.
    Spread { prolongation: Box<LevelMatrix<T, B>>, restriction: Box<LevelMatrix<T, B>> },
    /// Each box of 2 x 2 x 2 points of this grid becomes a point of the next.
    Boxes(Grid),
    /// Every other point of this grid is a point of the next, and the points between interpolate with these weights.
    Between { grid: Grid, weights: B::Vec<T> },
}

impl<T: Scalar, B: MultigridBackend> fmt::Debug for Transfer<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transfer to {} unknowns", self.coarse_rows())
    }
}

impl<T: Scalar, B: MultigridBackend> Transfer<T, B> {
    /// The number of unknowns of the next level.
    fn coarse_rows(&self) -> usize {
        match self {
            Self::Matrices { restriction, .. } => restriction.rows(),
            Self::Spread { restriction, .. } => restriction.rows(),
            Self::Boxes(grid) | Self::Between { grid, .. } => grid.coarser().points(),
        }
    }

    /// `coarse` = P^H `fine`.
    fn restrict(&self, backend: &B, fine: &B::Slice<T>, coarse: &mut B::Slice<T>) -> Result<()> {
        match self {
            Self::Matrices { restriction, .. } => {
                restriction.product(backend, T::one(), fine, T::zero(), coarse)
            }
            Self::Spread { restriction, .. } => restriction.apply(backend, fine, coarse),
            Self::Boxes(grid) => backend.grid_restrict(*grid, fine, coarse),
            Self::Between { grid, weights } => backend.grid_restrict_weighted(*grid, weights, fine, coarse),
        }
    }

    /// `fine` += P `coarse`.
    fn prolong(&self, backend: &B, coarse: &B::Slice<T>, fine: &mut B::Slice<T>) -> Result<()> {
        match self {
            Self::Matrices { prolongation, .. } => {
                prolongation.product(backend, T::one(), coarse, T::one(), fine)
            }
            Self::Spread { prolongation, .. } => {
                prolongation.product_op(backend, Op::None, T::one(), coarse, T::one(), fine)
            }
            Self::Boxes(grid) => backend.grid_prolong(*grid, coarse, fine),
            Self::Between { grid, weights } => backend.grid_prolong_weighted(*grid, weights, coarse, fine),
        }
    }

    fn storage_bytes(&self) -> usize {
        match self {
            Self::Matrices { prolongation, restriction } => {
                prolongation.storage_bytes() + restriction.storage_bytes()
            }
            Self::Spread { prolongation, restriction } => prolongation.bytes() + restriction.bytes(),
            Self::Boxes(_) => 0,
            Self::Between { weights, .. } => B::len(weights) * size_of::<T>(),
        }
    }
}

/// How the coarsest system is solved.
#[derive(Debug)]
pub(super) enum Coarsest<T: Scalar, B: MultigridBackend> {
    /// The coarsest level is solved with the inverse, stored as a full matrix.
    Inverse(Csr<T, B>),
    /// By smoothing alone, because it is large and could not be coarsened further.
    Smoothed(Stored<T, B>, Smoother<T, B>),
    /// The coarsest level is gathered on every rank and solved there by a cycle.
    Gathered(Box<Gathered<T, B>>),
}

/// The coarsest level whose vectors are distributed. Every rank has all levels below it as a whole, because their
/// little work takes less time on one rank than the communication would.
#[derive(Debug)]
pub(super) struct Gathered<T: Scalar, B: MultigridBackend> {
    /// Gathers the whole vector from the parts of all ranks.
    pub(super) whole: Stored<T, B>,
    pub(super) cycle: Cycle<T, B>,
    /// The unknowns of this rank.
    pub(super) own: Range<usize>,
    /// True if the level is solved by two cycles.
    pub(super) twice: bool,
}

impl<T: Scalar, B: MultigridBackend> Gathered<T, B> {
    /// The number of scalars in its workspace.
    fn work_len(&self) -> usize {
        (2 + 2 * usize::from(self.twice)) * self.cycle.rows() + self.cycle.work_len()
    }

    fn solve(&self, backend: &B, b: &B::Slice<T>, x: &mut B::Slice<T>, work: &mut B::Slice<T>) -> Result<()> {
        let n = self.cycle.rows();
        let (all_b, work) = B::split_mut(work, n);
        let (all_x, work) = B::split_mut(work, n);
        self.whole.apply(backend, b, all_b)?;
        match self.cycle.levels.first().filter(|_| self.twice) {
            None => self.cycle.apply(backend, all_b, all_x, work)?,
            Some(first) => self.cycle.descend_twice(backend, (0, &*first.a), all_b, all_x, work)?,
        }
        backend.copy(B::part(all_x, self.own.clone()), x)
    }
}

impl<T: Scalar, B: MultigridBackend> Coarsest<T, B> {
    fn rows(&self) -> usize {
        match self {
            Self::Inverse(inverse) => inverse.rows(),
            Self::Smoothed(a, _) => a.rows(),
            Self::Gathered(gathered) => gathered.own.len(),
        }
    }

    /// The number of scalars in its workspace, in addition to its vectors.
    fn work_len(&self) -> usize {
        match self {
            Self::Gathered(gathered) => gathered.work_len(),
            _ => self.smoothing_len(),
        }
    }

    /// The part of `work_len` that smoothing needs.
    fn smoothing_len(&self) -> usize {
        match self {
            Self::Smoothed(_, smoother) => smoother.work_len(),
            _ => 0,
        }
    }
}

/// One V-cycle from zero: smoothing, a correction from the next level, smoothing (Trottenberg, Oosterlee and Schueller,
/// Multigrid, 2.4). Both smoothings are the same polynomial in D^-1 A, and the restriction is the conjugate transpose
/// of the prolongation, so a cycle is a Hermitian operator.
#[derive(Debug)]
pub(super) struct Cycle<T: Scalar, B: MultigridBackend> {
    pub(super) levels: Vec<Level<T, B>>,
    pub(super) coarsest: Coarsest<T, B>,
    /// True if the two cycles of a level are combined as in Chebyshev's iteration; else both have weight one.
    pub(super) chebyshev: bool,
}

impl<T: Scalar, B: MultigridBackend> Cycle<T, B> {
    /// The number of unknowns of the finest level.
    pub(super) fn rows(&self) -> usize {
        self.levels.first().map_or_else(|| self.coarsest.rows(), |level| level.a.rows())
    }

    /// The pattern of the finest matrix, if it is in CSR.
    pub(super) fn pattern(&self) -> Option<CsrPattern<'_, B>> {
        match &self.levels.first()?.a {
            Stored::Rows(a) => Some(a.parts().pattern()),
            _ => None,
        }
    }

    /// The number of scalars in the workspace of a cycle: right-hand side and solution for each level below the finest,
    /// and two more vectors for a level that is solved by two cycles.
    pub(super) fn work_len(&self) -> usize {
        let below = self.levels.iter().skip(1).map(|level| 4 * level.a.rows()).sum::<usize>();
        let twice = self.levels.iter().filter(|level| level.twice);
        let twice = twice.map(|level| 2 * level.transfer.coarse_rows()).sum::<usize>();
        let smoothing = self.levels.iter().map(|level| level.smoother.work_len()).sum::<usize>();
        2 * self.rows() + below + twice + smoothing + 4 * self.coarsest.rows() + self.coarsest.work_len()
    }

    /// x = M^-1 b. `work` has at least [`Cycle::work_len`] scalars.
    pub(super) fn apply(
        &self,
        backend: &B,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        work: &mut B::Slice<T>,
    ) -> Result<()> {
        self.descend(backend, 0, b, x, work)
    }

    fn descend(
        &self,
        backend: &B,
        number: usize,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        work: &mut B::Slice<T>,
    ) -> Result<()> {
        let n = B::len(x);
        let level = self.levels.get(number);
        let more = level.map_or_else(|| self.coarsest.smoothing_len(), |level| level.smoother.work_len());
        let (other, work) = B::split_mut(work, n + more);
        let (t, work) = B::split_mut(work, n);
        let Some(level) = level else {
            return match &self.coarsest {
                Coarsest::Inverse(inverse) => inverse.product(backend, T::one(), b, T::zero(), x),
                Coarsest::Smoothed(a, smoother) => smoother.smooth_from_zero(backend, &**a, b, x, (other, t)),
                Coarsest::Gathered(gathered) => gathered.solve(backend, b, x, work),
            };
        };
        let Level { a, smoother, transfer, twice } = level;
        smoother.smooth_from_zero(backend, &**a, b, x, (&mut *other, &mut *t))?;
        residual(backend, &**a, b, x, t)?;
        let coarse = transfer.coarse_rows();
        let (below, work) = B::split_mut(work, coarse);
        let (correction, work) = B::split_mut(work, coarse);
        transfer.restrict(backend, t, below)?;
        match self.levels.get(number + 1).filter(|_| *twice) {
            None => self.descend(backend, number + 1, below, correction, work)?,
            Some(next) => self.descend_twice(backend, (number + 1, &*next.a), below, correction, work)?,
        }
        transfer.prolong(backend, correction, x)?;
        smoother.smooth(backend, &**a, b, x, (other, t))
    }

    /// Two steps of Chebyshev's iteration (Saad, Iterative Methods for Sparse Linear Systems, algorithm 12.1), or two
    /// plain steps of weight one, for M A x = M b from zero, where M is the cycle from this level on.
    fn descend_twice(
        &self,
        backend: &B,
        (number, a): (usize, &LevelMatrix<T, B>),
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        work: &mut B::Slice<T>,
    ) -> Result<()> {
        let (r, work) = B::split_mut(work, B::len(x));
        let (correction, work) = B::split_mut(work, B::len(x));
        let (middle, half) = ((1.0 + LOWEST) / 2.0, (1.0 - LOWEST) / 2.0);
        let ratio = half / middle;
        let next = 1.0 / (2.0 / ratio - ratio);
        let real = |value: f64| T::from_real(T::Real::from_f64(value));
        self.descend(backend, number, b, x, work)?;
        if self.chebyshev {
            backend.scale_in_place(real(1.0 / middle), x)?;
        }
        residual(backend, a, b, x, r)?;
        self.descend(backend, number, r, correction, work)?;
        if !self.chebyshev {
            return backend.axpby(T::one(), correction, T::one(), x);
        }
        backend.axpby(real(2.0 * next / half), correction, real(1.0 + next * ratio), x)
    }

    /// Bytes of all matrices.
    pub(super) fn storage_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| {
            level.a.storage_bytes() + level.smoother.storage_bytes() + level.transfer.storage_bytes()
        });
        let coarsest = match &self.coarsest {
            Coarsest::Inverse(inverse) => inverse.storage_bytes(),
            Coarsest::Smoothed(a, smoother) => a.storage_bytes() + smoother.storage_bytes(),
            Coarsest::Gathered(gathered) => gathered.whole.storage_bytes() + gathered.cycle.storage_bytes(),
        };
        levels.sum::<usize>() + coarsest
    }

    /// The approximate number of operations that a cycle queues.
    pub(super) fn steps(&self) -> usize {
        let (mut times, mut sum) = (1, 0);
        for level in &self.levels {
            sum += times * (2 * level.smoother.products() + 4);
            times *= 1 + usize::from(level.twice);
        }
        sum + times
            * match &self.coarsest {
                Coarsest::Gathered(gathered) => {
                    2 + (1 + usize::from(gathered.twice)) * gathered.cycle.steps()
                }
                _ => 1,
            }
    }

    /// Compulsory bytes of a cycle: each matrix counted once for every product with it, and the vectors of each step
    /// once.
    pub(super) fn bytes(&self) -> usize {
        let (mut times, mut sum) = (1, 0);
        for level in &self.levels {
            let (vector, products) = (level.a.rows() * size_of::<T>(), level.smoother.products() + 1);
            let smoothing = level.a.product_bytes() + level.smoother.storage_bytes() + 5 * vector;
            sum += times * (products * smoothing + level.transfer.storage_bytes() + 4 * vector);
            times *= 1 + usize::from(level.twice);
        }
        sum + times
            * match &self.coarsest {
                Coarsest::Inverse(inverse) => inverse.storage_bytes(),
                Coarsest::Smoothed(a, smoother) => smoother.products() * a.storage_bytes(),
                Coarsest::Gathered(gathered) => (1 + usize::from(gathered.twice)) * gathered.cycle.bytes(),
            }
    }
}
