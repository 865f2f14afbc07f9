//! Sums over runs of sources, repeated at the same places with new values, as a stored map of triplets needs them.
//! There are several plans for different orders of sources in memory; all of them sum in the same order.

pub(crate) mod ascending;
pub(crate) mod staged;
pub(crate) mod tiled;

pub use ascending::AscendingRuns;
pub use staged::StagedRuns;
pub use tiled::TileRuns;

use super::Primitives;
use crate::error::{Error, Result};
use crate::scalar::{Element, Offset, Scalar, Symmetry};
use tiled::MOST_TILED;

/// Sources of a tile in which the starts of runs are counted ([`RunSums::mark_runs`]).
#[doc(hidden)]
pub const RUN_TILE: usize = 1024;

/// The mark of a source at which a run starts ([`RunSums::mark_runs`]): its highest bit.
pub(crate) const fn run_mark<S: Offset>() -> usize {
    1 << (8 * size_of::<S>() - 1)
}

/// Elements of a tile whose slots are planned together ([`RunSums::plan_buckets`]).
#[doc(hidden)]
pub const BUCKET_TILE: usize = 8192;
/// The most buckets.
#[doc(hidden)]
pub const MOST_BUCKETS: usize = 256;

/// The number of buckets of 2^bits elements, and of elements in the list of their runs ([`RunSums::plan_buckets`]).
///
/// # Errors
/// If there are more buckets than [`MOST_BUCKETS`], or more elements than 32 bits can count.
pub fn buckets_of(n: usize, bits: u32) -> Result<(usize, usize)> {
    let buckets = n.saturating_sub(1).checked_shr(bits).map_or(0, |last| last + 1);
    if bits >= u32::BITS || buckets > MOST_BUCKETS || n > 1 << 31 {
        return Err(Error::InvalidArgument(format!("{n} elements in buckets of 2^{bits} places")));
    }
    Ok((buckets, 2 * buckets * n.div_ceil(BUCKET_TILE)))
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

/// Bounds for [`RunSums::rank_places`]: the pairs of some of the marked sources, and their positions.
pub(crate) fn bounds_at<B: Primitives>(
    backend: &B,
    (high, low): (&B::Slice<u32>, &B::Slice<u32>),
    sources: &B::Slice<u32>,
    at: &B::Slice<u32>,
) -> Result<[B::Vec<u32>; 3]> {
    let numbers = backend.upload(sources_at(backend, sources, at)?)?;
    let (mut highs, mut lows) = (backend.buffer(B::len(at))?, backend.buffer(B::len(at))?);
    backend.gather(high, &numbers, &mut highs)?;
    backend.gather(low, &numbers, &mut lows)?;
    Ok([highs, lows, numbers])
}

/// Checks the lengths of the bounds for [`RunSums::rank_places`].
pub(crate) fn check_bounds(parts: [usize; 3], bits: u32) -> Result<()> {
    Error::check_dimension("number of the bounds' low parts", parts[0], parts[1])?;
    Error::check_dimension("number of the bounds' places", parts[0], parts[2])?;
    if parts[0] >= MOST_TILED || bits >= u32::BITS {
        return Err(Error::InvalidArgument(format!("{} bounds, and {bits} bits", parts[0])));
    }
    Ok(())
}

/// Runs of sources: marking, planning, summing.
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

    /// `sources[i]` = `next[sources[i]]`, and its mark ([`RunSums::mark_runs`]) stays.
    ///
    /// # Errors
    /// As [`Primitives::gather`].
    fn follow<S: Offset>(&self, next: &Self::Slice<S>, sources: &mut Self::Slice<S>) -> Result<()>;

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

    /// Returns whether this number of sources that are summed repeatedly should be fetched in the order of addresses
    /// ([`RunSums::ascend_runs`]) on this backend.
    fn ascends_runs(&self, sources: usize) -> bool {
        let _ = sources;
        false
    }

    /// Marked sources ([`RunSums::mark_runs`]) of the runs that start at `starts` (ascending, the first at 0), in a
    /// form that lets a backend load values in the order of their addresses, tile by tile. `None` if runs are long
    /// (more than 256 sources), if a tile's sources are too far apart, if a source is not below `values`, or if there
    /// is none.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    fn ascend_runs(
        &self,
        values: usize,
        starts: &Self::Slice<u32>,
        sources: &Self::Slice<u32>,
    ) -> Result<Option<AscendingRuns<Self>>> {
        let _ = (values, starts, sources);
        Ok(None)
    }

    /// `out[s]` = sum over run s of `x[source]`, from left to right, with the bits of [`RunSums::gather_sum`].
    /// Allocates nothing.
    ///
    /// # Errors
    /// If the number of values or runs differs from what was planned.
    fn sum_ascending<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        runs: &AscendingRuns<Self>,
        out: &mut Self::Slice<T>,
    ) -> Result<()> {
        let _ = (x, runs, out);
        Err(Error::Unsupported("sums of values in the order of memory on this device".into()))
    }

    /// For `n` values in random order that are summed repeatedly: the number of low bits of a place within a bucket, if
    /// it pays on this backend to move values close to their places first ([`RunSums::to_buckets`]).
    fn bucket_bits(&self, n: usize) -> Option<u32> {
        let _ = n;
        None
    }

    /// `out[i]` = 2^`bits` times the number of `bounds` up to (`high[i]`, `low[i]`, i). Bounds are triples, one slice
    /// for each part; they ascend, and there are fewer than 2^13. If the bounds are every 2^`bits`-th triple of a
    /// stable sort by pairs, the result is the bucket of each element's place in that order.
    ///
    /// # Errors
    /// If lengths do not match, or if there are too many bounds or bits.
    fn rank_places(
        &self,
        pairs: (&Self::Slice<u32>, &Self::Slice<u32>),
        bounds: [&Self::Slice<u32>; 3],
        bits: u32,
        out: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Plans how elements are moved to buckets: `places[i] >> bits` is the bucket of element i, of at most
    /// [`MOST_BUCKETS`]. `places[i]` is replaced by the element's place: buckets in order, and within each the tiles of
    /// [`BUCKET_TILE`] elements. The order within a tile and bucket is not specified. `slots` has an entry for each
    /// element, `runs` two for each tile and bucket.
    ///
    /// # Errors
    /// If lengths do not match, or if a place is not below their number.
    fn plan_buckets(
        &self,
        places: &mut Self::Slice<u32>,
        bits: u32,
        slots: &mut Self::Slice<u16>,
        runs: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `out[place of i]` = `x[i]`, as planned by [`RunSums::plan_buckets`]. Elements have 4, 8 or 16 bytes. Allocates
    /// nothing.
    ///
    /// # Errors
    /// If lengths are not those of the plan.
    fn to_buckets<T: Element>(
        &self,
        x: &Self::Slice<T>,
        slots: &Self::Slice<u16>,
        runs: &Self::Slice<u32>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// The numbers of values of a tile and of a bucket for `n` values of `bytes` bytes in random order that are summed
    /// repeatedly, if it pays on this backend to sort them within tiles first ([`RunSums::tile_runs`]).
    fn tile_sizes(&self, n: usize, bytes: usize) -> Option<(usize, usize)> {
        let _ = (n, bytes);
        None
    }

    /// Plans sums of values in random order: run s of the marked `sources` ([`RunSums::mark_runs`]) starts at
    /// `starts[s]`. Each value is the source of one run, and runs are sorted by the pairs (`high[i]`, `low[i]`) of
    /// their sources, which differ between runs. Values have `bytes` bytes, a tile has `sizes.0` of them, and a bucket
    /// the sources of `sizes.1` places. `None` if a tile or a bucket does not fit in fast memory, or if there is none.
    ///
    /// # Errors
    /// If lengths do not match.
    fn tile_runs(
        &self,
        bytes: usize,
        sizes: (usize, usize),
        pairs: (&Self::Slice<u32>, &Self::Slice<u32>),
        starts: &Self::Slice<u32>,
        sources: &Self::Slice<u32>,
    ) -> Result<Option<TileRuns<Self>>> {
        let _ = (bytes, sizes, pairs, starts, sources);
        Ok(None)
    }

    /// `out[s]` = sum over run s of `x[source]`, from left to right, with the bits of [`RunSums::gather_sum`]. `room`
    /// is a workspace. Allocates nothing; slower if values have another size than planned.
    ///
    /// # Errors
    /// If the number of values or runs differs from the plan, or the workspace does not have the length that
    /// [`TileRuns`] requires.
    fn sum_tiles<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        runs: &TileRuns<Self>,
        room: &mut Self::Slice<T>,
        out: &mut Self::Slice<T>,
    ) -> Result<()> {
        let _ = (x, runs, room, out);
        Err(Error::Unsupported("sums of values in tiles on this device".into()))
    }
}
