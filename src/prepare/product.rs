//! The matching with the largest product of magnitudes (maximum product transversal, as MC64's job 5).
//!
//! With costs c_ij = max_k log|a_ik| - log|a_ij| this is the assignment of smallest total cost. Dual variables u_i and
//! v_j with u_i + v_j <= c_ij for all entries, and equality for matched ones, prove optimality, and are the logarithms
//! of the scale factors. Rows get their columns one after the other, each along a shortest augmenting path (Dijkstra);
//! the lengths c_ij - u_i - v_j are never negative. The method is the fifth variant of Duff and Koster, "On algorithms
//! for permuting large entries to the diagonal of a sparse matrix", SIAM J. Matrix Anal. Appl. 22 (2001).
//!
//! Costs are integers, logarithms in units of 2^-32. Therefore sums are exact, entries of equal magnitude have exactly
//! the same cost, and the inequalities hold to the last bit.

use super::assignment::assigned;
use super::equilibrate::equilibrate;
use super::matching::{Matching, maximum_matching};
use super::pattern::Pattern;
use super::scaling::Scaling;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// [`product_matching_within_reason`] gives up after this many steps for each row and entry, plus a number for any
/// matrix. A step is an entry that is read, or a column that is taken from the heap. Of 209 real matrices none with
/// more than 1000 rows takes more than 12 for each (`bayer10`), and small dense ones take 53. Random matrices of 10^5
/// rows take 70 to 140, and those with ten times as many rows three times that (2026-11-27).
const MOST_STEPS: u64 = 16;
const MOST_ANYWHERE: u64 = 10_000_000;

/// A matching of largest product, and the scaling that proves it.
#[derive(Debug, Clone)]
pub struct ProductMatching {
    matching: Matching,
    scaling: Scaling,
}

impl ProductMatching {
    /// The matched rows and columns.
    pub fn matching(&self) -> &Matching {
        &self.matching
    }

    /// The scaling that gives matched entries magnitude 1 (up to rounding) and all others at most 1 (up to a relative
    /// 1e-9).
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// Takes the matching and the scaling out.
    pub fn into_parts(self) -> (Matching, Scaling) {
        (self.matching, self.scaling)
    }
}

/// Matches rows with columns so that the product of the magnitudes of matched entries is largest, and computes the
/// scaling that makes them 1 and all others at most 1. Zeros do not count, whether stored or not.
///
/// If A is structurally singular or rectangular, there are as many pairs as possible; the product is largest for the
/// rows and columns that were matched, the scaling holds for all entries, and the largest entry of an unmatched row or
/// column gets magnitude 1. Factors are between 2^-1000 and 2^1000. If a matrix needs others, the largest entry of each
/// row still becomes 1, but matched entries may be smaller.
///
/// ```
/// use residua::{Csr, prepare::maximum_product_matching};
///
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 4.0, 8.0, 2.0])?;
/// let best = maximum_product_matching(&a)?; // 4 * 8 is more than 1 * 2
/// assert_eq!(best.matching().column_of(), [1, 0]);
/// let scaled = best.scaling().apply(&a)?;
/// assert!((scaled.parts().values[1] - 1.0_f64).abs() < 1e-14 && scaled.parts().values[0] < 1.0);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If an entry is infinite or not a number, if there are 2^32 - 1 rows or columns or more, or if memory runs out.
pub fn maximum_product_matching<T: Scalar>(a: &Csr<T>) -> Result<ProductMatching> {
    let best = within(a, u64::MAX)?;
    Ok(best.expect("a search without a limit ends with a matching"))
}

/// [`maximum_product_matching`] if it takes a reasonable number of steps; whether it does depends on the matrix alone.
/// Otherwise it returns a maximum matching that ignores magnitudes, and a scaling by the largest magnitudes of rows and
/// columns. In large random matrices each search may visit much of the matrix.
///
/// # Errors
/// As [`maximum_product_matching`].
pub(crate) fn product_matching_within_reason<T: Scalar>(a: &Csr<T>) -> Result<ProductMatching> {
    matching_or_norms(a, MOST_ANYWHERE + MOST_STEPS * (a.nonzeros() + a.rows()) as u64)
}

pub(super) fn matching_or_norms<T: Scalar>(a: &Csr<T>, most: u64) -> Result<ProductMatching> {
    match within(a, most)? {
        Some(best) => Ok(best),
        None => Ok(ProductMatching {
            matching: maximum_matching(&Pattern::nonzero(a)?)?,
            scaling: equilibrate(a)?,
        }),
    }
}

/// Returns the matching of largest product, or none if its searches take too many steps.
fn within<T: Scalar>(a: &Csr<T>, most: u64) -> Result<Option<ProductMatching>> {
    Ok(assigned(a, most)?.map(|(matching, scaling)| ProductMatching { matching, scaling }))
}
