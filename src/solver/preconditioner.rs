//! Preconditioners as the solver sets them up.

use super::SolverBackend;
use super::diagonal::Diagonal;
use super::hierarchy::{Known, Levels};
use super::incomplete::{Bounds, Incomplete};
use super::names::{IlutChoice, Method, PreconditionerChoice as Name};
use crate::error::{Error, Result};
use crate::matrix::{self, Csr};
use crate::operator::LinearOperator;
use crate::precondition::{BlockJacobi, Chebyshev, Fsai, Identity, Jacobi, Narrowed, Preconditioner};
use crate::scalar::{Promote, Scalar};
use std::sync::Arc;

/// Rows of a block if the matrix has no natural ones.
const BLOCK: usize = 4;

/// A preconditioner that is set up, or a proof that A is not positive definite.
pub(super) enum AnyPreconditioner<T: Scalar, B: SolverBackend> {
    Identity,
    Jacobi(Jacobi<T, B>),
    /// The diagonal for methods other than conjugate gradients.
    Diagonal(Diagonal<T, B>),
    Blocks(BlockJacobi<T, B>),
    Fsai(Box<Fsai<T, B>>),
    /// The diagonal of a polynomial that does not have its operator yet.
    Waiting(Jacobi<T, B>, usize),
    Chebyshev(Box<Chebyshev<T, B>>),
    /// A polynomial in half the precision.
    Single(Box<Narrowed<Chebyshev<T::Lower, B>>>),
    /// Multigrid.
    Levels(Levels<T, B>),
    Incomplete(Incomplete<T, B>),
    /// The value of a diagonal entry that proves that A is not positive definite.
    NotPositiveDefinite(f64),
}

impl<T: Scalar, B: SolverBackend> AnyPreconditioner<T, B> {
    /// Sets up a preconditioner for a method. For polynomials this is only the diagonal: [`single`] does the rest for
    /// [`Name::ChebyshevSingle`], after the matrix has its format, and [`AnyPreconditioner::on`] for
    /// [`Name::Chebyshev`].
    pub(super) fn new<V>(
        backend: &B,
        a: &Csr<V, B>,
        (method, name): (Method, Name),
        known: Known<'_>,
    ) -> Result<Self>
    where
        V: Scalar + Promote<T>,
    {
        let made = match name {
            Name::None => Ok(AnyPreconditioner::Identity),
            Name::Jacobi | Name::Auto if method != Method::Cg => {
                Diagonal::new(backend, a, method).map(AnyPreconditioner::Diagonal)
            }
            Name::Jacobi | Name::Auto | Name::ChebyshevSingle(_) => {
                Jacobi::new(backend, a).map(AnyPreconditioner::Jacobi)
            }
            Name::Chebyshev(steps) => Jacobi::new(backend, a).map(|d| AnyPreconditioner::Waiting(d, steps)),
            Name::Multigrid(choice) => {
                Levels::new(backend, a, (choice, method), known).map(AnyPreconditioner::Levels)
            }
            Name::Ilu => {
                Incomplete::new(backend, a, None, (method, Bounds::NONE)).map(AnyPreconditioner::Incomplete)
            }
            Name::Ilut(choice) => Incomplete::new(backend, a, Some(choice), (method, Bounds::NONE))
                .map(AnyPreconditioner::Incomplete),
            Name::Fsai => Fsai::new(backend, a).map(|m| AnyPreconditioner::Fsai(Box::new(m))),
            Name::BlockJacobi(Some(rows)) => {
                BlockJacobi::new(backend, a, rows).map(AnyPreconditioner::Blocks)
            }
            Name::BlockJacobi(None) => {
                let sizes = BlockJacobi::<T, B>::natural_blocks(backend, a, BlockJacobi::<T, B>::LARGEST)?;
                if sizes.iter().any(|&size| size > 1) {
                    BlockJacobi::with_blocks(backend, a, &sizes).map(AnyPreconditioner::Blocks)
                } else {
                    BlockJacobi::new(backend, a, BLOCK).map(AnyPreconditioner::Blocks)
                }
            }
        };
        match made {
            Err(Error::Diagonal { value, .. }) if value <= 0.0 && method == Method::Cg => {
                Ok(AnyPreconditioner::NotPositiveDefinite(value))
            }
            made => made,
        }
    }

    /// An incomplete factorisation without fill, chosen by the solver; refused if it has too many level sets.
    pub(super) fn without_fill<V>(
        backend: &B,
        a: &Csr<V, B>,
        (method, bounds): (Method, Bounds),
    ) -> Result<Self>
    where
        V: Scalar + Promote<T>,
    {
        let bounds = Bounds { levels: most_levels(a.rows(), B::IS_DEVICE).min(bounds.levels), ..bounds };
        Incomplete::new(backend, a, None, (method, bounds)).map(AnyPreconditioner::Incomplete)
    }

    /// An incomplete factorisation with fill, chosen by the solver; refused if its rows take too much work.
    pub(super) fn with_fill<V>(
        backend: &B,
        a: &Csr<V, B>,
        choice: IlutChoice,
        bounds: (Method, Bounds),
    ) -> Result<Self>
    where
        V: Scalar + Promote<T>,
    {
        Incomplete::new(backend, a, Some(choice), bounds).map(AnyPreconditioner::Incomplete)
    }

    /// Gives a polynomial its operator, and multigrid the finest matrix.
    pub(super) fn on(self, backend: &B, a: &Arc<dyn LinearOperator<T, B>>) -> Result<Self> {
        match self {
            AnyPreconditioner::Waiting(diagonal, steps) => {
                let made = Chebyshev::new(backend, Arc::clone(a), Arc::new(diagonal), steps)?;
                Ok(AnyPreconditioner::Chebyshev(Box::new(made)))
            }
            AnyPreconditioner::Levels(mut levels) => {
                levels.share(a)?;
                Ok(AnyPreconditioner::Levels(levels))
            }
            other => Ok(other),
        }
    }

    /// Takes new values of the same pattern, in the existing memory if possible.
    pub(super) fn update(&mut self, backend: &B, a: &Csr<T, B>, method: Method, name: Name) -> Result<()> {
        let done = match self {
            AnyPreconditioner::Identity => return Ok(()),
            AnyPreconditioner::Jacobi(m) => m.update(backend, a),
            AnyPreconditioner::Blocks(m) => m.update(backend, a),
            AnyPreconditioner::Levels(m) => m.update(backend, a),
            AnyPreconditioner::Incomplete(m) => m.update(backend, a),
            _ => Err(Error::Unsupported("new values".into())),
        };
        match done {
            // A preconditioner made from values of half the width is set up again in full width, since the new values
            // may not fit.
            Err(Error::Unsupported(_)) => {
                let near_null = match self {
                    AnyPreconditioner::Levels(levels) => levels.near_null.take(),
                    _ => None,
                };
                let known = Known { near_null: near_null.as_ref(), units: None };
                *self = Self::new(backend, a, (method, name), known)?;
            }
            Err(Error::Diagonal { value, .. }) if value <= 0.0 => {
                *self = AnyPreconditioner::NotPositiveDefinite(value)
            }
            done => return done,
        }
        Ok(())
    }

    /// The preconditioner.
    pub(super) fn get(&self) -> &dyn Preconditioner<T, B> {
        match self {
            AnyPreconditioner::Identity | AnyPreconditioner::NotPositiveDefinite(_) => &Identity,
            AnyPreconditioner::Jacobi(m) | AnyPreconditioner::Waiting(m, _) => m,
            AnyPreconditioner::Diagonal(m) => m,
            AnyPreconditioner::Blocks(m) => m,
            AnyPreconditioner::Fsai(m) => &**m,
            AnyPreconditioner::Chebyshev(m) => &**m,
            AnyPreconditioner::Single(m) => &**m,
            AnyPreconditioner::Levels(m) => m.get(),
            AnyPreconditioner::Incomplete(m) => m.get(),
        }
    }
}

/// The maximum number of level sets in incomplete factors that the solver chooses. On a device a level takes 0.6 us,
/// however few rows it has, so that 10^6 rows in a chain take a second for each application; therefore levels must have
/// `ROWS` rows on average there. On a CPU narrow levels are computed by one thread, which does not wait.
pub(super) fn most_levels(rows: usize, on_device: bool) -> usize {
    const ROWS: usize = 16;
    const ALWAYS: usize = 1000;
    if on_device { (rows / ROWS).max(ALWAYS) } else { usize::MAX }
}

/// The polynomial of `steps` steps in half the precision for the rounded matrix `a`, which is stored in `format`.
pub(super) fn single<T: Scalar, V: Scalar + Promote<T::Lower>, B: SolverBackend>(
    backend: &B,
    a: Csr<V, B>,
    format: &str,
    steps: usize,
) -> Result<AnyPreconditioner<T, B>> {
    let diagonal = Arc::new(Jacobi::new(backend, &a)?);
    let operator: Box<dyn LinearOperator<T::Lower, B>> =
        matrix::convert::<T::Lower, B, V>(backend, format, a)?;
    let polynomial = Chebyshev::new(backend, operator.into(), diagonal, steps)?;
    Ok(AnyPreconditioner::Single(Box::new(Narrowed::new::<T, B>(polynomial)?)))
}

#[cfg(test)]
mod tests {
    use super::most_levels;
    use crate::backend::Host;
    use crate::generate;
    use crate::precondition::Ilu;

    #[test]
    fn rows_that_wait_for_each_other_are_no_preconditioner_of_our_choice_on_a_device() {
        let chain = generate::tridiagonal(20_000).unwrap();
        let most = most_levels(chain.rows(), true);
        let refused = Ilu::of_levels(&Host, &chain, false, most).unwrap_err().to_string();
        assert!(refused.contains("20000 and 20000 level sets"), "{refused}");
        assert!(Ilu::of_levels(&Host, &chain, false, most_levels(chain.rows(), false)).is_ok());
        let grid = generate::poisson2d(200, 100).unwrap();
        assert_eq!(Ilu::of_levels(&Host, &grid, false, most).unwrap().depth(), (299, 299));
    }
}
