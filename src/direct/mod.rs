//! Factorisations on the CPU, and by a library on a device, for systems that are small or that iterations do not solve.
//!
//! ```text
//! A -> Hermitian?  Cholesky, LDL^H --------------------------> refinement -> flexible GMRES -> checked x, or the
//!   -> symmetric?  matching, scaling, ordering, L D L^T
//!   -> else        matching, scaling, ordering, LU            with residuals   preconditioned   next factorisation,
//!   -> finally     L D L^H of a nonsingular matrix near A,     in twice the     by the           or the reasons
//!                  dense QR with column pivoting              precision        factor
//! ```
//!
//! The crate faer does the work on dense blocks, but its reports of success are not trusted: each factor is checked to
//! be finite, panics are caught, and "solved" is reported only after b - A x was recomputed.
//!
//! | file | what it holds |
//! |---|---|
//! | `solver` | [`Direct`], which a caller holds |
//! | `analysis` | forecasts, and the kinds that are tried |
//! | `structures` | matchings, orderings and structures of a matrix, computed once each |
//! | `steps` | what all factorisations share |
//! | `factor` | one factorisation of any kind |
//! | `elimination` | a fill-reducing ordering for LU, and the factors in it |
//! | `blocks` | LU of the diagonal blocks of a block triangular form |
//! | `frontal` | LU and L D L^T with static pivoting, in dense fronts |
//! | `symmetric` | ordering and structure of L D L^T in fronts |
//! | `lu` | sparse LU, column by column |
//! | `regular` | factors of a nonsingular matrix near a singular one |
//! | `faer_wrapper` | calls to faer, once for each type of entries |
//! | `sides` | right-hand sides in the caller's memory, and in lanes |
//! | `triangular` | substitution, if A can be permuted to triangular form |
//! | `banded` | LU of a matrix with few diagonals, also alone: [`Banded`] |
//! | `refine`, `fgmres` | from a factor to a solution |
//! | `goal` | the target for a residual |
//! | `condition` | estimates of the condition number and of the forward error |
//! | `null` | the proof that A is singular |
//! | `inverse` | checks whether a factor with perturbed pivots still inverts A |
//! | `device` | [`OnDevice`]: factors in device memory, by a library that the backend has loaded |
//! | `determinant` | determinant and inertia from these factors |
//! | `vectors` | loops in wide registers |
//! | `ways`, `ordering` | the strategies that are tried on a device, and their fill-reducing ordering |

mod analysis;
mod banded;
mod blocks;
mod condition;
mod determinant;
mod device;
mod elimination;
mod factor;
mod faer_wrapper;
mod fgmres;
mod frontal;
mod fronts;
mod goal;
mod inverse;
mod lanes;
mod lu;
mod memory;
mod null;
mod options;
mod ordering;
mod refine;
mod regular;
mod report;
mod sides;
mod solver;
mod steps;
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
pub use banded::Banded;
pub(crate) use banded::seconds_in_narrow_band;
pub use device::{DirectBackend, OnDevice};
pub use faer_wrapper::Factorable;
pub(crate) use goal::{Weights, norm, weighted_norm};
pub(crate) use null::{NULL_UNITS, null_ratio};
pub use options::{DeviceOptions, DirectOptions, Kind, Prepared};
pub(crate) use refine::{ALMOST, EVEN, excused, is_orthogonal, magnitudes, residual};
pub use report::{DeviceReport, DeviceSeconds, DirectReport, Reason, Singularity, Unmatched};
pub use sides::RightHandSides;
pub use solver::Direct;

/// The matrix with its entries converted to double precision, for a factorisation.
pub(crate) fn in_doubles<T: Scalar>(a: Csr<T>) -> Csr<T::Double> {
    let values = a.parts().values.iter().map(|&value| value.to_double()).collect();
    a.with_values(values)
}
