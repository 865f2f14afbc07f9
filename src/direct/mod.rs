//! Factorisations on the CPU, for systems that iterations do not solve or that are small.
//!
//! ```text
//! A -> Hermitian?  Cholesky, LDL^H --------------------------> refinement -> flexible GMRES -> checked x, or the
//!   -> else        matching, scaling, order, LU               with residuals   around the       next factorisation,
//!   -> at last     L D L^H of a regular matrix near A,        in twice the     factor           or the reasons
//!                  dense QR with column pivoting              precision
//! ```
//!
//! Dense blocks are the work of the crate faer; what it says of success is not relied on. Each factor is tested for
//! numbers that are finite, panics are caught, and "solved" is said only after b - A x was computed anew.
//!
//! | file | what it holds |
//! |---|---|
//! | `solver` | [`Direct`], what a caller holds |
//! | `analysis` | forecasts, and which kinds are tried |
//! | `factor` | one factor of any kind |
//! | `lu` | sparse LU, column by column |
//! | `regular` | factors of a regular matrix near one that is singular |
//! | `foreign` | faer's factorisations, once for each type of entries |
//! | `refine`, `fgmres` | from a factor to a solution |
//! | `condition` | an estimate of the condition number |

mod analysis;
mod condition;
mod factor;
mod fgmres;
mod foreign;
mod lu;
mod options;
mod refine;
mod regular;
mod report;
mod solver;
#[cfg(test)]
mod tests;

pub use analysis::Analysis;
pub(crate) use foreign::Foreign;
pub use options::{DirectOptions, Kind, Prepared};
pub(crate) use refine::norm;
pub use report::{DirectReport, Reason};
pub use solver::Direct;
