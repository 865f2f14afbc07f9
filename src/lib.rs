//! residua solves sparse linear systems A x = b on NVIDIA GPUs, and on any CPU if there is none.
//!
//! ```text
//! .mtx file -> triplets -> sort by (row, column), sum duplicates -> CSR -> the format that suits the matrix
//!           -> operator y = alpha A x + beta y -> Krylov method -> x, with the true residual b - A x
//! CSR as a graph -> BFS levels -> reverse Cuthill-McKee -> permuted CSR -> (as above)
//! ```
//!
//! ```
//! use residua::assemble;
//! use residua::prelude::*;
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
//! let solution = Solver::builder().build(a)?.solve(&[1.0; 5])?;
//! assert!(solution.report.outcome.is_converged());
//! assert!((solution.x[2] - 4.5_f64).abs() < 1e-7);
//! # Ok::<(), residua::Error>(())
//! ```
//!
//! In a time loop the pattern stays and the values change. What depends only on the pattern is computed once; each step
//! writes the new values of the triplets, in their order, into the matrix, and the values of the matrix into the
//! solver. residua allocates nothing from the second step on.
//!
//! ```
//! use residua::assemble::Assembly;
//! use residua::prelude::*;
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
//! let mut solver = Solver::builder().tolerance(1e-10).updates(true).build(&a)?;
//! let mut u = vec![0.0; 100];
//! u[0] = 1.0;
//! for step in 0..10 {
//!     assembly.update(&Host, &values(1.0 + 0.1 * step as f64), &mut a)?;
//!     solver.update(a.parts().values)?;
//!     let old = u.clone(); // u is where the solve starts, and then its result
//!     let report = solver.solve_into(&old, &mut u)?;
//!     assert!(report.outcome.is_converged(), "step {step}: {}", report.outcome);
//! }
//! assert!((u.iter().sum::<f64>() - 1.0).abs() < 1e-8); // no heat leaves the rod
//! # Ok::<(), residua::Error>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`scalar`] | the element types of buffers and matrices |
//! | [`backend`] | the interface of devices: memory and kernels; [`Host`] is the CPU |
//! | [`matrix`] | storage formats, conversions, and the choice of format |
//! | [`market`] | Matrix Market files |
//! | [`files`] | files of all supported formats |
//! | [`assemble`] | triplets to CSR, and a map for new values on the same pattern |
//! | [`operator`] | the operator of a solver: a stored matrix, a closure |
//! | [`spread`] | distributed matrices |
//! | [`solver`] | [`Solver`]: chooses device, order, format, method and preconditioner, and says why |
//! | [`batch`] | thousands of small systems at once, each with a verdict |
//! | [`krylov`] | Krylov methods, their outcomes and reports |
//! | [`precondition`] | preconditioners |
//! | `ranks` | several processes of one machine or of many, and their communication |
//! | [`multigrid`] | algebraic multigrid |
//! | [`graph`] | levels, components, reverse Cuthill-McKee, symmetric permutation |
//! | [`prepare`] | scaling, maximum product matching, block triangular form |
//! | `prices` | the constants for the cost of steps, by which methods are chosen |
//! | [`direct`] | factorisations on the CPU: Cholesky, LDL^H, LU, dense QR |
//! | [`look`] | structural analysis of a matrix, and the methods that can solve with it |
//! | [`generate`] | model problems |
//! | [`report`] | tables and pictures |
//! | [`work`] | long work that can be stopped, and that reports its progress |
//!
//! `docs/internals/design.md` in the repository gives the reasons.

pub mod assemble;
pub mod backend;
pub mod batch;
mod cache;
#[cfg(feature = "cli")]
mod cli;
pub mod direct;
pub mod error;
pub mod files;
pub mod generate;
pub mod graph;
pub mod krylov;
mod lock;
pub mod look;
pub mod market;
pub mod matrix;
mod mixing;
pub mod multigrid;
pub mod operator;
pub mod output;
mod parallel;
pub mod precondition;
pub mod prepare;
mod prices;
mod random;
#[cfg(all(unix, feature = "ranks"))]
pub mod ranks;
pub mod report;
pub mod scalar;
mod settings;
pub mod solver;
pub mod spread;
mod units;
mod verdict;
pub mod work;

#[cfg(feature = "cuda")]
pub use backend::Cuda;
pub use backend::{Backend, Host};
pub use error::{CudaError, Error, Result};
pub use matrix::{Csr, Triplets};
pub use operator::LinearOperator;
pub use scalar::{Element, Real, Scalar};
pub use solver::{Solver, solve};

/// Runs the `residua` command with the arguments of the process, and returns its exit status. The command is compiled
/// with the library: a separate crate would compile the generic code that both use a second time.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub fn command() -> std::process::ExitCode {
    cli::main()
}

/// The items that most programs need: `use residua::prelude::*;`.
pub mod prelude {
    pub use crate::backend::Host;
    pub use crate::error::{Error, Result};
    pub use crate::krylov::Outcome;
    pub use crate::matrix::{Csr, Triplets};
    pub use crate::solver::{Method, Solver};
}

/// The examples of README.md and of the documents, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/internals/reordering.md")]
struct Documents;

/// The examples of the page for Rust, which also use other crates.
#[cfg(all(doctest, feature = "sprs", feature = "nalgebra"))]
#[doc = include_str!("../docs/rust.md")]
struct RustPage;
