//! What steps cost on a CPU and on a GPU: the constants that the choice is made by, each once and with its origin.
//!
//! | file | what it holds |
//! |---|---|
//! | `budgets` | how much each candidate may take before the next one's turn |
//! | `factors` | factorisations on a CPU |
//! | `iterations` | iterations, incomplete factors, polynomials |
//! | `order` | orders of elimination on a CPU, and what is expected of them |
//! | `multigrid` | multigrid beside plain conjugate gradients |
//!
//! They were measured on two cores and on an H200; bandwidth alone is measured on each device. The same table gives the
//! same way, whatever the machine: no clock is read in a solve.

pub(crate) mod budgets;
pub(crate) mod factors;
pub(crate) mod iterations;
pub(crate) mod multigrid;
pub(crate) mod order;
#[cfg(feature = "cli")]
mod table;

#[cfg(feature = "cli")]
pub(crate) use table::table;
