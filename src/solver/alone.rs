//! Preconditioners without a solver, for callers with their own iterative methods.

use super::SolverBackend;
use super::hierarchy::Known;
use super::names::{Method, PreconditionerChoice};
use super::preconditioner::AnyPreconditioner;
use super::symmetry;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::precondition::Preconditioner;
use crate::scalar::Scalar;
use std::fmt;
use std::sync::Arc;

/// A preconditioner named by a [`PreconditionerChoice`], as [`Solver`](super::Solver) sets it up: Hermitian positive
/// definite if A is.
///
/// ```
/// use residua::{Host, generate, precondition::Preconditioner, solver::PreconditionerChoice};
/// let a = generate::poisson2d(20, 20)?;
/// let m = PreconditionerChoice::Ilu.set_up(&Host, &a)?;
/// let (r, mut z) = (vec![1.0; 400], vec![0.0; 400]);
/// m.apply(&Host, &r, &mut z)?;
/// # Ok::<(), residua::Error>(())
/// ```
pub struct AlonePreconditioner<T: Scalar, B: SolverBackend> {
    setup: AnyPreconditioner<T, B>,
    rows: usize,
}

impl PreconditionerChoice {
    /// Sets up this preconditioner for a square matrix. [`PreconditionerChoice::Auto`] is the diagonal.
    ///
    /// # Errors
    /// If the matrix does not suit it; for [`PreconditionerChoice::ChebyshevSingle`], which only a solver can use; if
    /// memory runs out, or if the device fails.
    pub fn set_up<T: Scalar, B: SolverBackend>(
        self,
        backend: &B,
        a: &Csr<T, B>,
    ) -> Result<AlonePreconditioner<T, B>> {
        self.check()?;
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        if let PreconditionerChoice::ChebyshevSingle(_) = self {
            return Err(Error::Unsupported("chebyshev-single outside of a solver; use chebyshev".into()));
        }
        let found = symmetry::of(backend, a, None, Method::Auto)?;
        let method = if found.hermitian { Method::Cg } else { Method::Gmres };
        let mut setup = AnyPreconditioner::new(backend, a, (method, self), Known::default())?;
        if let AnyPreconditioner::NotPositiveDefinite(value) = setup {
            setup = match self {
                PreconditionerChoice::Jacobi | PreconditionerChoice::Auto => {
                    AnyPreconditioner::new(backend, a, (Method::Minres, self), Known::default())?
                }
                _ => {
                    let text = format!(
                        "{self} of a matrix that is not positive definite: it has {value} on its diagonal"
                    );
                    return Err(Error::Unsupported(text));
                }
            };
        }
        if let AnyPreconditioner::Waiting(..) = setup {
            let operator: Arc<dyn LinearOperator<T, B>> = Arc::new(a.copied(backend)?);
            setup = setup.on(backend, &operator)?;
        }
        Ok(AlonePreconditioner { setup, rows: a.rows() })
    }
}

impl<T: Scalar, B: SolverBackend> fmt::Debug for AlonePreconditioner<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlonePreconditioner of {} rows", self.rows)
    }
}

impl<T: Scalar, B: SolverBackend> Preconditioner<T, B> for AlonePreconditioner<T, B> {
    fn rows(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn apply(&self, backend: &B, r: &B::Slice<T>, z: &mut B::Slice<T>) -> Result<()> {
        Error::check_dimension("length of r", self.rows, B::len(r))?;
        Error::check_dimension("length of z", self.rows, B::len(z))?;
        self.setup.get().apply(backend, r, z)
    }

    fn waits(&self) -> bool {
        self.setup.get().waits()
    }

    fn steps(&self) -> usize {
        self.setup.get().steps()
    }

    fn bytes(&self) -> usize {
        self.setup.get().bytes()
    }
}
