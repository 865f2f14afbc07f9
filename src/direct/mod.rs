//! Factorisations, on the CPU and by a library on a device, for systems that iterations do not solve or that are small.
//!
//! ```text
//! A -> Hermitian?  Cholesky, LDL^H --------------------------> refinement -> flexible GMRES -> checked x, or the
//!   -> symmetric?  pairs, scaling, order, L D L^T
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
//! | `structures` | what is known of a matrix before it is factorised: matched rows, orders, structures |
//! | `factor` | one factor of any kind |
//! | `elimination` | an order of elimination for LU, and the factors that it leads to |
//! | `blocks` | LU of the diagonal blocks of a block triangular form |
//! | `frontal` | LU and L D L^T with static pivoting, in dense fronts |
//! | `symmetric` | order and structure of the latter |
//! | `lu` | sparse LU, column by column |
//! | `regular` | factors of a regular matrix near one that is singular |
//! | `foreign` | faer's factorisations, once for each type of entries |
//! | `triangular` | substitution, where A is triangular in some order |
//! | `refine`, `fgmres` | from a factor to a solution |
//! | `goal` | what a residual has to come down to |
//! | `condition` | estimates of the condition number and of the error of x |
//! | `null` | the proof that A is singular |
//! | `inverse` | whether a factor is one of A where pivots were replaced |
//! | `device` | [`OnDevice`]: factors where the matrix lies, by a library that the backend has found, or in its own fronts |
//! | `fronts` | the structure of these |
//! | `vectors` | loops in wide registers |
//! | `ways`, `ordering` | which of them are tried there, and in which order of elimination |

mod analysis;
mod blocks;
mod condition;
mod device;
mod elimination;
mod factor;
mod fgmres;
mod foreign;
mod frontal;
mod fronts;
mod goal;
mod inverse;
mod lu;
mod memory;
mod null;
mod options;
mod ordering;
mod refine;
mod regular;
mod report;
mod solver;
mod structures;
mod symmetric;
#[cfg(test)]
mod tests;
mod triangular;
mod ways;

use crate::matrix::Csr;
use crate::scalar::Scalar;

pub use analysis::Analysis;
pub(crate) use analysis::least_seconds;
pub use device::{DirectBackend, OnDevice};
pub use foreign::Factorable;
pub(crate) use goal::{Weights, norm, weighted_norm};
pub(crate) use null::{NULL_UNITS, null_ratio};
pub use options::{DeviceOptions, DirectOptions, Kind, Prepared};
pub(crate) use refine::{magnitudes, residual};
pub use report::{DeviceReport, DeviceSeconds, DirectReport, Reason, Singularity, Unmatched};
pub use solver::Direct;

/// The matrix with its entries as doubles, to be factorised.
pub(crate) fn in_doubles<T: Scalar>(a: Csr<T>) -> Csr<T::Double> {
    let values = a.parts().values.iter().map(|&value| value.to_double()).collect();
    a.with_values(values)
}
