//! Classical coarsening: the choice of coarse unknowns, and the interpolation from them.

use super::{CoarseningSteps, Conversions};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// Classical coarsening of one level. Results have the same bits on every backend.
///
/// Every method fails if the device fails, and without memory.
#[allow(clippy::missing_errors_doc)]
pub trait ClassicalSteps: CoarseningSteps + Conversions {
    /// The prolongation from the unknowns that parallel modified independent sets (PMIS) choose, by extended+i
    /// interpolation with at most `weights` entries a row. Row i depends strongly on the columns with -a_ij at least
    /// `strength` times the largest, in rows scaled to a positive diagonal. There are as many columns as coarse
    /// unknowns, which may be none.
    fn classical_prolongation<T: Scalar>(
        &self,
        a: &Csr<T, Self>,
        strength: f64,
        weights: usize,
    ) -> Result<Csr<T, Self>>;

    /// The same prolongation with fewer weights a row: the largest, scaled so that their sum stays the same.
    fn with_fewer_weights<T: Scalar>(&self, p: &Csr<T, Self>, weights: usize) -> Result<Csr<T, Self>>;
}
