//! Krylov solvers.
//!
//! All solve A x = b with any [`LinearOperator`](crate::LinearOperator) and any
//! [`Preconditioner`](crate::precondition::Preconditioner), and share one driver, [`Krylov`]: a method of your own is a
//! [`Method`]. [`Refinement`] runs [`Cg`] with matrix and vectors of half the precision in its loop, [`MultiCg`] solves
//! for several right-hand sides at once. [`Solver`](crate::Solver) chooses among all of them.
//!
//! | file | what it holds |
//! |---|---|
//! | `method` | the interface between a method and its driver |
//! | `cg`, `minres`, `gmres`, `bicgstab`, `lsmr` | the methods, each as in its textbook |
//! | `driver` | the driver of every method: start, stopping criterion, restart, certificates (`driver/certificate`) |
//! | `progress` | how far a solve has come |
//! | `cycle` | a run of iterations, recorded and replayed, with their messages |
//! | `multi` | several right-hand sides at once, each with a recurrence of its own |
//! | `refine` | iterative refinement, with `cg` in half the precision inside |
//! | `judge` | decides whether an x whose residual is small enough is the solution |
//! | `units` | the power of two by which residuals are scaled |
//! | `fixed_pattern` | one pattern, many sets of values, many right-hand sides |
//! | `options`, `report` | options and outcome of a solve |
//!
//! | method | for A | bytes per iteration in addition to the matrix, n unknowns |
//! |---|---|---|
//! | [`Cg`] | Hermitian positive definite | 10 vectors |
//! | [`Minres`] | Hermitian, indefinite or singular too | 12 vectors |
//! | [`Gmres`] | any square one | 2 m + 12 vectors, with a restart after m iterations |
//! | [`BiCgStab`] | any square one, in little memory | the matrix twice, 22 vectors |
//! | [`Lsmr`] | any, rectangular and singular too: least squares | the matrix twice, 16 vectors |
//!
//! A solve that does not converge is not an error: [`Outcome`] says how a solve ended, and only [`Outcome::Converged`]
//! means that b - A x, recomputed from x, meets the tolerance.

mod bicgstab;
mod calls;
mod cg;
mod cycle;
mod driver;
mod fixed_pattern;
mod gmres;
mod gmres_pairs;
mod judge;
mod lsmr;
mod method;
mod minres;
mod multi;
mod options;
mod progress;
mod refine;
mod report;
pub(crate) mod units;

pub use bicgstab::{BiCgStab, BiConjugateGradients};
pub use cg::{Cg, ConjugateGradients};
pub use driver::Krylov;
pub use fixed_pattern::FixedPatternCg;
pub use gmres::{FlexibleMinimalResidual, Gmres};
pub(crate) use judge::{Certified, Judgement};
pub use lsmr::{LeastSquaresResidual, Lsmr};
pub use method::{Aim, Method, Room, System, Vectors};
pub use minres::{MinimalResidual, Minres};
pub use multi::MultiCg;
pub use options::SolveOptions;
pub use refine::Refinement;
pub use report::{Outcome, Report};

use crate::backend::VectorOps;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The number of systems of `n` unknowns whose right-hand sides are stored one after another in `b` entries, and their
/// solutions in `x`.
fn count_systems(n: usize, b: usize, x: usize) -> Result<usize> {
    Error::check_dimension("length of x", b, x)?;
    Error::check_dimension("entries of b after the last complete right-hand side", 0, b % n.max(1))?;
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
