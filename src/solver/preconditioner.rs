//! Preconditioners that are set up.

use super::names::PreconditionerChoice as Name;
use crate::backend::{PreconditionSteps, Products};
use crate::error::{Error, Result};
use crate::matrix::{self, Csr};
use crate::operator::LinearOperator;
use crate::precondition::{BlockJacobi, Chebyshev, Fsai, Identity, Jacobi, Narrowed, Preconditioner};
use crate::scalar::{Scalar, Widen};

/// Rows of a block where the matrix has no natural ones.
const BLOCK: usize = 4;

/// A preconditioner that is set up, or the proof that none is needed.
pub(super) enum Setup<T: Scalar, B: PreconditionSteps + Products> {
    Identity,
    Jacobi(Jacobi<T, B>),
    Blocks(BlockJacobi<T, B>),
    Fsai(Box<Fsai<T, B>>),
    Chebyshev(Jacobi<T, B>, usize),
    /// A polynomial in half the precision.
    Single(Box<Single<T, B>>),
    /// A diagonal entry that no positive definite matrix has.
    NotPositiveDefinite(f64),
}

impl<T: Scalar, B: PreconditionSteps + Products> Setup<T, B> {
    /// [`Name::ChebyshevSingle`] sets its diagonal up; [`Single`] is the rest, behind the matrix's own format.
    pub(super) fn new<V: Scalar + Widen<T>>(backend: &B, a: &Csr<V, B>, name: Name) -> Result<Self> {
        let made = match name {
            Name::None => Ok(Setup::Identity),
            Name::Jacobi | Name::Auto | Name::ChebyshevSingle(_) => {
                Jacobi::new(backend, a).map(Setup::Jacobi)
            }
            Name::Chebyshev(steps) => Jacobi::new(backend, a).map(|d| Setup::Chebyshev(d, steps)),
            Name::Fsai => Fsai::new(backend, a).map(|m| Setup::Fsai(Box::new(m))),
            Name::BlockJacobi(Some(rows)) => BlockJacobi::new(backend, a, rows).map(Setup::Blocks),
            Name::BlockJacobi(None) => {
                let sizes = BlockJacobi::<T, B>::natural_blocks(backend, a, BlockJacobi::<T, B>::LARGEST)?;
                if sizes.iter().any(|&size| size > 1) {
                    BlockJacobi::with_blocks(backend, a, &sizes).map(Setup::Blocks)
                } else {
                    BlockJacobi::new(backend, a, BLOCK).map(Setup::Blocks)
                }
            }
        };
        Self::or_proof(made)
    }

    /// A diagonal entry that is not positive is no error but a proof.
    fn or_proof(made: Result<Self>) -> Result<Self> {
        match made {
            Err(Error::Diagonal { value, .. }) if value <= 0.0 => Ok(Setup::NotPositiveDefinite(value)),
            made => made,
        }
    }

    /// Takes new values of the same pattern over, in the memory that is there.
    pub(super) fn update<V: Scalar + Widen<T>>(
        &mut self,
        backend: &B,
        a: &Csr<V, B>,
        name: Name,
    ) -> Result<()> {
        let done = match self {
            Setup::Identity => return Ok(()),
            Setup::Jacobi(m) | Setup::Chebyshev(m, _) => m.update(backend, a),
            Setup::Blocks(m) => m.update(backend, a),
            Setup::Fsai(_) | Setup::Single(_) | Setup::NotPositiveDefinite(_) => {
                *self = Self::new(backend, a, name)?;
                return Ok(());
            }
        };
        match done {
            Err(Error::Diagonal { value, .. }) if value <= 0.0 => *self = Setup::NotPositiveDefinite(value),
            done => return done,
        }
        Ok(())
    }

    /// Runs `solve` with the preconditioner for `a`.
    pub(super) fn with<R>(
        &self,
        backend: &B,
        a: &dyn LinearOperator<T, B>,
        solve: impl FnOnce(&dyn Preconditioner<T, B>) -> Result<R>,
    ) -> Result<R> {
        match self {
            Setup::Identity | Setup::NotPositiveDefinite(_) => solve(&Identity),
            Setup::Jacobi(m) => solve(m),
            Setup::Blocks(m) => solve(m),
            Setup::Fsai(m) => solve(&**m),
            Setup::Chebyshev(diagonal, steps) => solve(&Chebyshev::new(backend, a, diagonal, *steps)?),
            Setup::Single(single) => solve(&single.preconditioner(backend)?),
        }
    }

    /// Bytes that an iteration moves for it, beyond 8 vectors and the matrix, about.
    pub(super) fn bytes(&self, a: &dyn LinearOperator<T, B>) -> usize {
        let vector = a.rows() * size_of::<T>();
        let stored = |m: &dyn Preconditioner<T, B>| m.bytes() + 2 * vector;
        match self {
            Setup::Identity | Setup::NotPositiveDefinite(_) => 0,
            Setup::Jacobi(_) => 2 * a.rows() * size_of::<f32>(),
            Setup::Blocks(m) => stored(m),
            Setup::Fsai(m) => stored(&**m),
            Setup::Chebyshev(_, steps) => 4 * vector + (steps - 1) * (a.bytes() + 2 * vector),
            Setup::Single(single) => 5 * vector + (single.steps - 1) * (single.operator.bytes() + vector),
        }
    }
}

/// A polynomial preconditioner in half the precision: a matrix in half the precision, its diagonal, and the
/// polynomial's interval.
pub(super) struct Single<T: Scalar, B: PreconditionSteps + Products> {
    operator: Box<dyn LinearOperator<T::Narrow, B>>,
    diagonal: Jacobi<T::Narrow, B>,
    steps: usize,
    bounds: (f64, f64),
}

impl<T: Scalar, B: PreconditionSteps + Products> Single<T, B> {
    /// For the rounded matrix `a`, to be stored in `format`.
    pub(super) fn new<V: Scalar + Widen<T::Narrow>>(
        backend: &B,
        a: Csr<V, B>,
        format: &str,
        steps: usize,
    ) -> Result<Self> {
        let diagonal = Jacobi::new(backend, &a)?;
        let operator = matrix::convert::<T::Narrow, B, V>(backend, format, a)?;
        let bounds = Chebyshev::new(backend, &*operator, &diagonal, steps)?.bounds();
        Ok(Self { operator, diagonal, steps, bounds })
    }

    /// As a solver in full precision takes it.
    fn preconditioner(&self, backend: &B) -> Result<Narrowed<Chebyshev<'_, T::Narrow, B>>> {
        let Self { operator, diagonal, steps, bounds } = self;
        Narrowed::new::<T, B>(Chebyshev::with_bounds(backend, &**operator, diagonal, *steps, *bounds)?)
    }
}
