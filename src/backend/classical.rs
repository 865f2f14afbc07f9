//! Classical coarsening: the choice of coarse unknowns, and the interpolation from them.

use super::{CoarseningSteps, Conversions, CsrArrays, CsrParts, CsrPattern, Offsets};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The steps of classical coarsening of one level. Results have the same bits as those of the host, which computes them
/// if a backend has no kernels.
///
/// Every method fails if the device fails, and without memory.
#[allow(clippy::missing_errors_doc)]
pub trait ClassicalSteps: CoarseningSteps + Conversions {
    /// The most weights of a row that the steps have room for; 0 without kernels.
    const MOST_WEIGHTS: usize = 0;

    /// The columns on which each row depends strongly: those with -a_ij at least `strength` times the largest, in rows
    /// scaled to a positive diagonal.
    fn strong_columns<T: Scalar>(
        &self,
        _a: CsrParts<'_, T, Self>,
        _strength: f64,
    ) -> Result<(Offsets<Self>, Self::Vec<u32>)> {
        Err(no_kernels())
    }

    /// The prolongation from the unknowns that parallel modified independent sets (PMIS) choose, by extended+i
    /// interpolation with at most `weights` entries a row, and the number of these unknowns, which may be 0. The
    /// pattern after A is that of strong dependences. None if some row has more unknowns around it than the kernels have
    /// room for.
    fn extended_interpolation<T: Scalar>(
        &self,
        _a: CsrParts<'_, T, Self>,
        _dependences: CsrPattern<'_, Self>,
        _weights: usize,
    ) -> Result<Option<(CsrArrays<T, Self>, usize)>> {
        Err(no_kernels())
    }

    /// The same prolongation with fewer weights a row: the largest, scaled so that their sum stays the same.
    fn with_fewer_weights<T: Scalar>(
        &self,
        _p: CsrParts<'_, T, Self>,
        _weights: usize,
    ) -> Result<CsrArrays<T, Self>> {
        Err(no_kernels())
    }
}

fn no_kernels() -> Error {
    Error::Unsupported("classical coarsening on this backend".into())
}
