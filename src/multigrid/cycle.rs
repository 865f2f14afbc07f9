//! The cycle through the levels, on any backend.

use super::smoother::{Smoother, residual};
use crate::backend::{PreconditionSteps, Products};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// A level that has a coarser one below it.
#[derive(Debug)]
pub(super) struct Level<T: Scalar, B: PreconditionSteps> {
    pub(super) a: Csr<T, B>,
    pub(super) smoother: Smoother<T, B>,
    /// From the next level to this one.
    pub(super) prolongation: Csr<T, B>,
    /// From this level to the next.
    pub(super) restriction: Csr<T, B>,
}

/// What the coarsest system is solved by.
#[derive(Debug)]
pub(super) enum Coarsest<T: Scalar, B: PreconditionSteps> {
    /// Its inverse, every entry of it.
    Inverse(Csr<T, B>),
    /// Smoothing alone: it is large, and could not be made smaller.
    Smoothed(Csr<T, B>, Smoother<T, B>),
}

impl<T: Scalar, B: PreconditionSteps> Coarsest<T, B> {
    fn rows(&self) -> usize {
        match self {
            Self::Inverse(inverse) => inverse.rows(),
            Self::Smoothed(a, _) => a.rows(),
        }
    }
}

/// One V-cycle from zero: smoothing, a correction from the next level, smoothing (Trottenberg, Oosterlee and Schueller,
/// Multigrid, 2.4). The smoothings before and after are the same polynomial in D^-1 A, and the restriction is the
/// prolongation's conjugate transpose, so that a cycle is a Hermitian operator.
#[derive(Debug)]
pub(super) struct Cycle<T: Scalar, B: PreconditionSteps> {
    pub(super) levels: Vec<Level<T, B>>,
    pub(super) coarsest: Coarsest<T, B>,
}

impl<T: Scalar, B: PreconditionSteps + Products> Cycle<T, B> {
    /// Unknowns of the finest level.
    pub(super) fn rows(&self) -> usize {
        self.levels.first().map_or_else(|| self.coarsest.rows(), |level| level.a.rows())
    }

    /// Scalars of memory that a cycle works in: two vectors a level, and right-hand side and solution below the finest.
    pub(super) fn work_len(&self) -> usize {
        let below = self.levels.iter().skip(1).map(|level| 4 * level.a.rows()).sum::<usize>();
        2 * self.rows() + below + 4 * self.coarsest.rows()
    }

    /// x = M^-1 b. `work` has [`Cycle::work_len`] scalars at least.
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
        let (other, work) = B::split_mut(work, n);
        let (t, work) = B::split_mut(work, n);
        let Some(level) = self.levels.get(number) else {
            return match &self.coarsest {
                Coarsest::Inverse(inverse) => inverse.product(backend, T::one(), b, T::zero(), x),
                Coarsest::Smoothed(a, smoother) => smoother.smooth_from_zero(backend, a, b, x, (other, t)),
            };
        };
        let Level { a, smoother, prolongation, restriction } = level;
        smoother.smooth_from_zero(backend, a, b, x, (&mut *other, &mut *t))?;
        residual(backend, a, b, x, t)?;
        let coarse = restriction.rows();
        let (below, work) = B::split_mut(work, coarse);
        let (correction, work) = B::split_mut(work, coarse);
        restriction.product(backend, T::one(), t, T::zero(), below)?;
        self.descend(backend, number + 1, below, correction, work)?;
        prolongation.product(backend, T::one(), correction, T::one(), x)?;
        smoother.smooth(backend, a, b, x, (other, t))
    }

    /// Bytes of all matrices.
    pub(super) fn storage_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| {
            level.a.storage_bytes()
                + level.smoother.storage_bytes()
                + level.prolongation.storage_bytes()
                + level.restriction.storage_bytes()
        });
        let coarsest = match &self.coarsest {
            Coarsest::Inverse(inverse) => inverse.storage_bytes(),
            Coarsest::Smoothed(a, smoother) => a.storage_bytes() + smoother.storage_bytes(),
        };
        levels.sum::<usize>() + coarsest
    }

    /// Compulsory bytes of a cycle: matrices as often as they are multiplied by, and the vectors of each step once.
    pub(super) fn bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| {
            let (vector, products) = (level.a.rows() * size_of::<T>(), level.smoother.products() + 1);
            products * (level.a.storage_bytes() + level.smoother.storage_bytes() + 5 * vector)
                + level.prolongation.storage_bytes()
                + level.restriction.storage_bytes()
                + 4 * vector
        });
        let coarsest = match &self.coarsest {
            Coarsest::Inverse(inverse) => inverse.storage_bytes(),
            Coarsest::Smoothed(a, smoother) => smoother.products() * a.storage_bytes(),
        };
        levels.sum::<usize>() + coarsest
    }
}
