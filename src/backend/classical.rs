//! Classical coarsening for algebraic multigrid: the choice of coarse unknowns, and the interpolation from them.

use super::{CoarseningSteps, Conversions};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// Classical coarsening of one level. Every backend gives the same bits.
///
/// Every method fails if the device fails or memory runs out.
#[allow(clippy::missing_errors_doc)]
pub trait ClassicalSteps: CoarseningSteps + Conversions {
    /// Returns the prolongation of A: parallel modified independent sets (PMIS) choose the coarse unknowns, and
    /// extended+i interpolation gives the weights, at most `weights` in a row. Row i depends strongly on column j if
    /// -a_ij is at least `strength` times the largest -a_ik, with rows scaled to a positive diagonal. The result has a
    /// column for each coarse unknown, and no columns if there are none.
    fn classical_prolongation<T: Scalar>(
        &self,
        a: &Csr<T, Self>,
        strength: f64,
        weights: usize,
    ) -> Result<Csr<T, Self>>;

    /// Returns the same prolongation with fewer weights in a row: the largest, scaled so that their sum stays the same.
    fn with_fewer_weights<T: Scalar>(&self, p: &Csr<T, Self>, weights: usize) -> Result<Csr<T, Self>>;
}
