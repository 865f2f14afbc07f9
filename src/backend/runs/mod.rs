//! Sums over runs of sources that are repeated with new values: a stored map of triplets needs them to assemble a
//! matrix again. There are several plans, for different orders of the sources in memory. All of them add in the same
//! order.

pub(crate) mod staged;

pub use staged::StagedRuns;

use super::Primitives;
use crate::error::Result;
use crate::scalar::{Offset, Scalar, Symmetry};

/// The number of sources in a tile; each tile knows how many runs start before it ([`RunSums::mark_runs`]).
#[doc(hidden)]
pub const RUN_TILE: usize = 1024;

/// The highest bit, which marks a source at which a run starts ([`RunSums::mark_runs`]).
pub(crate) const fn run_mark<S: Offset>() -> usize {
    1 << (8 * size_of::<S>() - 1)
}

/// Returns the sources at these positions without their marks ([`RunSums::mark_runs`]).
pub(crate) fn sources_at<B: Primitives>(
    backend: &B,
    sources: &B::Slice<u32>,
    at: &B::Slice<u32>,
) -> Result<Vec<u32>> {
    let mark = run_mark::<u32>() as u32;
    let mut found = backend.buffer::<u32>(B::len(at))?;
    backend.gather(sources, at, &mut found)?;
    Ok(backend.download(&*found)?.into_iter().map(|source| source & !mark).collect())
}

/// Marks, plans and sums runs of sources. A source is the index of a value.
pub trait RunSums: Primitives {
    /// Marks the runs of `sources` that start at `starts` (ascending, the first at 0): sets the highest bit of the
    /// first source of each run, and writes to `before[t]` the number of runs that start before source t [`RUN_TILE`].
    /// `before` has an element for each tile of that many sources. [`RunSums::gather_sum`] takes marked sources.
    ///
    /// # Errors
    /// If the number of tiles is wrong, and, as [`Primitives::gather`], if a run starts beyond the last source.
    fn mark_runs<S: Offset>(
        &self,
        starts: &Self::Slice<S>,
        sources: &mut Self::Slice<S>,
        before: &mut Self::Slice<S>,
    ) -> Result<()>;

    /// `out[s]` = the sum of `x[source]` over run s of marked sources ([`RunSums::mark_runs`]), added from left to
    /// right on every backend. If `symmetry` is not general, a source is 2 i + m: the value is `x[i]`, mirrored
    /// ([`Symmetry::mirror`]) if m is 1. Allocates nothing.
    ///
    /// # Errors
    /// As [`Primitives::gather`].
    fn gather_sum<T: Scalar, S: Offset>(
        &self,
        symmetry: Symmetry,
        x: &Self::Slice<T>,
        sources: &Self::Slice<S>,
        before: &Self::Slice<S>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Returns whether this backend should stage runs with this number of sources ([`RunSums::stage_runs`]) if they are
    /// summed repeatedly.
    fn stages_runs(&self, sources: usize) -> bool {
        let _ = sources;
        false
    }

    /// Converts the runs that start at `starts` (ascending, the first at 0) to a form that takes half the memory of
    /// marked sources, and from which a backend can load values in whole pieces. `None` if runs are long (more than 64
    /// sources), if neighbouring runs refer to too many pieces, or if a source is not below `values`.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    fn stage_runs(
        &self,
        values: usize,
        starts: &Self::Slice<u32>,
        sources: &Self::Slice<u32>,
    ) -> Result<Option<StagedRuns<Self>>>;

    /// `out[s]` = the sum of `x[source]` over run s, from left to right, with the same bits as [`RunSums::gather_sum`].
    /// Allocates nothing.
    ///
    /// # Errors
    /// If the number of values or runs is not that of the staged runs.
    fn sum_staged<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        runs: &StagedRuns<Self>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;
}
