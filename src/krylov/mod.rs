//! Krylov solvers.
//!
//! [`Cg`] solves A x = b for Hermitian positive definite A, with any [`LinearOperator`](crate::LinearOperator) and any
//! [`Preconditioner`](crate::precondition::Preconditioner). [`Refinement`]
//! does so with matrix and vectors of half the precision in its loop, [`MultiCg`] for several right-hand sides at once.
//! [`solve`] is the short way for a matrix on the host.
//!
//! | file | what it holds |
//! |---|---|
//! | `cg` | the recurrence, as in the textbook |
//! | `driver` | from b and x to a report: start, stopping, certificate, restart |
//! | `cycle` | a run of iterations, one by one or in bursts, and what is heard of it |
//! | `multi` | several right-hand sides at once, each with a recurrence of its own |
//! | `refine` | iterative refinement, with `cg` in half the precision inside |
//! | `units` | the power of two in which residuals are held |
//! | `warm` | one pattern, many sets of values, many right-hand sides |
//! | `options`, `report` | what a caller says, and what it learns |
//!
//! Not converging is no error: [`Outcome`] tells how a solve ended, and only [`Outcome::Converged`] means that
//! b - A x, computed anew from x, meets the tolerance.

mod bicgstab;
mod cg;
mod cycle;
mod driver;
mod gmres;
mod lsmr;
mod method;
mod minres;
mod multi;
mod options;
mod refine;
mod report;
mod units;
mod warm;

pub use bicgstab::{BiCgStab, BiConjugateGradients};
pub use cg::{Cg, ConjugateGradients};
pub use driver::Krylov;
pub use gmres::{FlexibleMinimalResidual, Gmres};
pub use lsmr::{LeastSquaresResidual, Lsmr};
pub use method::{Aim, Method, Room, System, Vectors};
pub use minres::{MinimalResidual, Minres};
pub use multi::MultiCg;
pub use options::SolveOptions;
pub use refine::Refinement;
pub use report::{Outcome, Report, Solution};
pub use warm::WarmCg;

use crate::backend::{Host, VectorOps};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::precondition::Jacobi;
use crate::scalar::Scalar;
use std::ops::ControlFlow;

/// Solves A x = b by conjugate gradients with the Jacobi preconditioner and default [`SolveOptions`], from x = 0.
///
/// A must be Hermitian, which is not looked at ([`Facts`](crate::report::Facts) tells). Whether it is positive
/// definite, the iteration finds out: not solving the system is no error but an [`Outcome`] in the report. A diagonal
/// entry that is not positive ends in [`Outcome::NotPositiveDefinite`]. For many solves, keep a [`Cg`].
///
/// ```
/// use residua::{Csr, krylov};
/// // | 2 -1  . |
/// // |-1  2 -1 | x = b
/// // | . -1  2 |
/// let a = Csr::from_parts(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2],
///     vec![2.0, -1.0, -1.0, 2.0, -1.0, -1.0, 2.0])?;
/// let solution = krylov::solve(&a, &[1.0, 0.0, 1.0])?;
/// assert!(solution.report.outcome.is_converged());
/// assert!(solution.x.iter().all(|x: &f64| (x - 1.0).abs() < 1e-12));
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// Where A is not square, b has another length, or memory is short.
pub fn solve<T: Scalar>(a: &Csr<T, Host>, b: &[T]) -> Result<Solution<T>> {
    Error::check_dimension("length of b", a.rows(), b.len())?;
    let mut x = vec![T::zero(); b.len()];
    match Jacobi::new(&Host, a) {
        Ok(jacobi) => {
            let mut cg = Cg::new(&Host, b.len(), SolveOptions::default())?;
            let report = cg.solve(a, &jacobi, b, &mut x, |_, _| ControlFlow::Continue(()))?;
            Ok(Solution { x, report, history: cg.into_history() })
        }
        Err(Error::Diagonal { value, .. }) if value <= 0.0 => {
            let report =
                Report::not_started(Outcome::NotPositiveDefinite { iteration: 0, curvature: value }, b);
            Ok(Solution { x, report, history: Vec::new() })
        }
        Err(error) => Err(error),
    }
}

/// How many systems of `n` unknowns have their right-hand sides one behind the other in `b` entries, and their
/// solutions in `x`.
fn count_systems(n: usize, b: usize, x: usize) -> Result<usize> {
    Error::check_dimension("length of x", b, x)?;
    Error::check_dimension("length of b beyond the last whole one", 0, b % n.max(1))?;
    Ok(b.checked_div(n).unwrap_or(0))
}

/// Checks that operator, preconditioner and vectors fit a method for operators of this shape.
fn check_sizes<T: Scalar, B: VectorOps>(
    (rows, columns): (usize, usize),
    square: bool,
    System { a, m }: System<'_, T, B>,
    b: usize,
    x: usize,
) -> Result<()> {
    Error::check_dimension("rows of the operator", rows, a.rows())?;
    let what = if square { "columns of a square operator" } else { "columns of the operator" };
    Error::check_dimension(what, columns, a.columns())?;
    Error::check_dimension("rows of the preconditioner", columns, m.rows().unwrap_or(columns))?;
    Error::check_dimension("length of b", rows, b)?;
    Error::check_dimension("length of x", columns, x)
}
