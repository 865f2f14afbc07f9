//! residua solves sparse linear systems A x = b on NVIDIA GPUs, and on any CPU where there is none.
//!
//! ```text
//! .mtx file -> triplets -> sort by (row, column), sum duplicates -> CSR -> the format that suits the matrix
//!           -> operator y = alpha A x + beta y -> Krylov solver -> x, with the true residual b - A x
//! CSR as a graph -> BFS levels -> reverse Cuthill-McKee -> permuted CSR -> (as above)
//! ```
//!
//! ```
//! use residua::{Host, Triplets, assemble};
//! // -u'' = 1 on five points, zero at both ends: triplets in any order, duplicates add up.
//! let mut triplets = Triplets::new(5, 5)?;
//! for i in 0..5 {
//!     triplets.push(i, i, 2.0)?;
//!     if i > 0 {
//!         triplets.push(i, i - 1, -1.0)?;
//!         triplets.push(i - 1, i, -1.0)?;
//!     }
//! }
//! let a = assemble::to_csr(&Host, triplets)?;
//! let solution = residua::solve(&a, &[1.0; 5])?;
//! assert!(solution.report.outcome.is_converged());
//! assert!((solution.x[2] - 4.5_f64).abs() < 1e-7);
//! # Ok::<(), residua::Error>(())
//! ```
//!
//! In a time loop the pattern stays and values change: what depends on the pattern alone is made once, and each step
//! writes the new values of the triplets, in their order, into the matrix. residua allocates nothing from the second
//! step on.
//!
//! ```
//! use residua::{Host, Triplets, assemble::Assembly, krylov::{Cg, SolveOptions}, precondition::Jacobi};
//! use std::ops::ControlFlow;
//! // Heat in a rod of 100 cells: (1 + dt L) u' = u, four triplets for each pair of neighbours, one for each cell.
//! let values = |conductivity: f64| -> Vec<f64> {
//!     let pair = [conductivity, conductivity, -conductivity, -conductivity];
//!     (0..99).flat_map(|_| pair).chain([1.0; 100]).collect()
//! };
//! let mut triplets = Triplets::new(100, 100)?;
//! let pairs = (0..99).flat_map(|i| [(i, i), (i + 1, i + 1), (i, i + 1), (i + 1, i)]);
//! for ((i, j), value) in pairs.chain((0..100).map(|i| (i, i))).zip(values(1.0)) {
//!     triplets.push(i, j, value)?;
//! }
//! let (mut a, assembly) = Assembly::new(&Host, &triplets)?;
//! let mut jacobi = Jacobi::new(&Host, &a)?;
//! let mut cg = Cg::new(&Host, 100, SolveOptions::default().tolerance(1e-10))?;
//! let mut u = vec![0.0; 100];
//! u[0] = 1.0;
//! for step in 0..10 {
//!     assembly.update(&Host, &values(1.0 + 0.1 * step as f64), &mut a)?;
//!     jacobi.update(&Host, &a)?;
//!     let old = u.clone(); // u is where the solve starts, and then its result
//!     let report = cg.solve(&a, &jacobi, &old, &mut u, |_, _| ControlFlow::Continue(()))?;
//!     assert!(report.outcome.is_converged(), "step {step}: {}", report.outcome);
//! }
//! assert!((u.iter().sum::<f64>() - 1.0).abs() < 1e-8); // no heat leaves the rod
//! # Ok::<(), residua::Error>(())
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`scalar`] | the types that buffers and matrices hold |
//! | [`backend`] | the seam: where data lives and where kernels run; [`Host`] is the CPU |
//! | [`matrix`] | storage formats, conversion between them, choice of format |
//! | [`market`] | Matrix Market files |
//! | [`assemble`] | triplets to CSR, and the kept map for new values on the same pattern |
//! | [`operator`] | what a solver multiplies with: a stored matrix, a closure |
//! | [`krylov`] | solvers, their outcomes and reports |
//! | [`precondition`] | cheap approximations of the inverse |
//! | [`multigrid`] | algebraic multigrid: a preconditioner with which iterations hardly grow |
//! | [`graph`] | levels, components, reverse Cuthill-McKee, symmetric permutation |
//! | [`prepare`] | scaling, matching of rows with columns, block triangular form |
//! | [`generate`] | model problems |
//! | [`report`] | tables and pictures |
//!
//! `docs/design.md` in the repository gives the reasons.

pub mod assemble;
pub mod backend;
mod cache;
pub mod error;
pub mod generate;
pub mod graph;
pub mod krylov;
mod lock;
pub mod market;
pub mod matrix;
mod mixing;
pub mod multigrid;
pub mod operator;
pub mod output;
mod parallel;
pub mod precondition;
pub mod prepare;
pub mod report;
pub mod scalar;

#[cfg(feature = "cuda")]
pub use backend::Cuda;
pub use backend::{Backend, Host};
pub use error::{CudaError, Error, Result};
pub use krylov::solve;
pub use matrix::{Csr, Triplets};
pub use operator::LinearOperator;
pub use scalar::{Element, Real, Scalar};

/// The examples of README.md and of the documents are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/reordering.md")]
struct Documents;
