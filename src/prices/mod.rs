//! Prices: the constants for the cost of steps on a CPU and on a GPU by which methods are chosen, each with its origin.
//!
//! | file | what it holds |
//! |---|---|
//! | `budgets` | how much each candidate may take before the next one is tried |
//! | `factors` | factorisations on a CPU |
//! | `iterations` | iterations, incomplete factors, polynomials |
//! | `order` | expected costs of fill-reducing orderings on a CPU |
//! | `multigrid` | multigrid compared to plain conjugate gradients |
//! | `machine` | the speeds to which they are scaled |
//!
//! They were measured on two cores and on an H200, and only the bandwidth of a GPU is measured when it is opened.
//! `residua devices --measure-prices` measures the speeds of a machine, to which they are scaled if the environment
//! says so. The same table leads to the same choice on every machine, since no clock is read in a solve.

pub(crate) mod budgets;
pub(crate) mod factors;
pub(crate) mod iterations;
pub(crate) mod machine;
pub(crate) mod multigrid;
pub(crate) mod order;
#[cfg(feature = "cli")]
mod table;

#[cfg(feature = "cli")]
pub(crate) use table::table;
