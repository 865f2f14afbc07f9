//! Krylov solvers.
//!
//! [`Cg`] solves A x = b for Hermitian positive definite A, with any [`LinearOperator`](crate::LinearOperator) and any
//! [`Preconditioner`](crate::precondition::Preconditioner). [`Refinement`]
//! does so with matrix and vectors of half the precision in its loop, [`MultiCg`] for several right-hand sides at once.
//! [`Solver`](crate::Solver) chooses among all that by itself.
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

mod cg;
mod cycle;
mod driver;
mod multi;
mod options;
mod refine;
mod report;
mod units;
mod warm;

pub use cg::Cg;
pub use multi::MultiCg;
pub use options::SolveOptions;
pub use refine::Refinement;
pub use report::{Outcome, Report};
pub use warm::WarmCg;

use crate::error::{Error, Result};

/// How many systems of `n` unknowns have their right-hand sides one behind the other in `b` entries, and their
/// solutions in `x`.
fn count_systems(n: usize, b: usize, x: usize) -> Result<usize> {
    Error::check_dimension("length of x", b, x)?;
    Error::check_dimension("length of b beyond the last whole one", 0, b % n.max(1))?;
    Ok(b.checked_div(n).unwrap_or(0))
}

/// Checks that operator, preconditioner and vectors fit a solver of `n` unknowns.
fn check_sizes(
    n: usize,
    shape: (usize, usize),
    preconditioner: Option<usize>,
    b: usize,
    x: usize,
) -> Result<()> {
    Error::check_dimension("rows of the operator", n, shape.0)?;
    Error::check_dimension("columns of a square operator", n, shape.1)?;
    Error::check_dimension("rows of the preconditioner", n, preconditioner.unwrap_or(n))?;
    Error::check_dimension("length of b", n, b)?;
    Error::check_dimension("length of x", n, x)
}
