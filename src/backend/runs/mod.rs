//! Sums over runs of sources, repeated at the same places with new values, as a stored map of triplets needs them.
//! There are several plans for different orders of sources in memory; all of them sum in the same order.

pub(crate) mod staged;

pub use staged::StagedRuns;

use super::Primitives;
use crate::error::Result;
use crate::scalar::{Offset, Scalar, Symmetry};

/// Sources of a tile in which the starts of runs are counted ([`RunSums::mark_runs`]).
#[doc(hidden)]
pub const RUN_TILE: usize = 1024;

/// The mark of a source at which a run starts ([`RunSums::mark_runs`]): its highest bit.
pub(crate) const fn run_mark<S: Offset>() -> usize {
    1 << (8 * size_of::<S>() - 1)
}

/// Some of the marked sources, without their marks ([`RunSums::mark_runs`]).
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

/// Runs of sources: marked, planned, summed.
pub trait RunSums: Primitives {
    /// Marks runs of `sources`, which start at `starts` (ascending, the first at 0): sets the highest bit of the first
    /// source of each run, and writes to `before[t]` the number of runs that start before source t [`RUN_TILE`].
    /// `before` has an element for each tile of that many sources. [`RunSums::gather_sum`] takes marked sources.
    ///
    /// # Errors
    /// If the number of tiles is wrong, and, as [`Primitives::gather`], if a run starts after the sources.
    fn mark_runs<S: Offset>(
        &self,
        starts: &Self::Slice<S>,
        sources: &mut Self::Slice<S>,
        before: &mut Self::Slice<S>,
    ) -> Result<()>;

    /// `out[s]` = sum over run s of marked sources ([`RunSums::mark_runs`]) of `x[source]`, from left to right (this
    /// order on every backend). If `symmetry` is not general, a source is 2 i + m: the value is `x[i]`, mirrored
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

    /// Returns whether this number of sources that are summed repeatedly should be staged ([`RunSums::stage_runs`]) on
    /// this backend.
    fn stages_runs(&self, sources: usize) -> bool {
        let _ = sources;
        false
    }

    /// Marked sources ([`RunSums::mark_runs`]) of the runs that start at `starts` (ascending, the first at 0), in a
    /// form that takes half the memory and lets a backend load values in whole pieces. `None` if runs are long (more
    /// than 64 sources), if neighbouring runs refer to too many pieces, or if a source is not below `values`.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    fn stage_runs(
        &self,
        values: usize,
        starts: &Self::Slice<u32>,
        sources: &Self::Slice<u32>,
    ) -> Result<Option<StagedRuns<Self>>>;

    /// `out[s]` = sum over run s of `x[source]`, from left to right, with the bits of [`RunSums::gather_sum`].
    /// Allocates nothing.
    ///
    /// # Errors
    /// If the number of values or runs differs from what was staged.
    fn sum_staged<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        runs: &StagedRuns<Self>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;
}
