//! The parallel primitives that assembly, conversion and traversal are written with.
//!
//! Buffers in, buffers out, and no closures, so that a device can have a kernel for each. All of them are
//! deterministic: the same input gives the same bits on the same backend, whatever the load and the number of
//! threads. Integer results and everything that only moves data are the same on every backend; floating-point sums
//! over more than one element may be bracketed differently from backend to backend, except where an order is stated.
//!
//! "Temporary memory" is what a call allocates and frees again; where nothing is said it is small (a few thousandths
//! of the input).

use super::tiled::MOST_TILED;
use super::{AscendingRuns, Backend, StagedRuns, TileRuns};
use crate::error::{Error, Result};
use crate::scalar::{Combine, Element, Key, Number, Offset, Scalar, Symmetry};
use std::ops::Range;

/// Which elements a scan has combined at position i.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// Those up to and with i.
    Inclusive,
    /// Those before i; the identity at the first.
    Exclusive,
}

/// Direction of a sort or merge. Equal keys keep their order in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// Sources of a tile for which runs are counted ([`Primitives::mark_runs`]).
pub const RUN_TILE: usize = 1024;

/// The mark of a source with which a run starts ([`Primitives::mark_runs`]): its highest bit.
pub(crate) const fn run_mark<S: Offset>() -> usize {
    1 << (8 * size_of::<S>() - 1)
}

/// Elements of a tile whose slots are planned together ([`Primitives::plan_buckets`]).
pub const BUCKET_TILE: usize = 8192;
/// Buckets at most.
pub const MOST_BUCKETS: usize = 256;

/// Buckets of so many elements, and elements of the list of their runs ([`Primitives::plan_buckets`]).
///
/// # Errors
/// On more buckets than [`MOST_BUCKETS`], or more elements than 32 bits count.
pub fn buckets_of(n: usize, bits: u32) -> Result<(usize, usize)> {
    let buckets = n.saturating_sub(1).checked_shr(bits).map_or(0, |last| last + 1);
    if bits >= u32::BITS || buckets > MOST_BUCKETS || n > 1 << 31 {
        return Err(Error::InvalidArgument(format!("{n} elements in buckets of 2^{bits} places")));
    }
    Ok((buckets, 2 * buckets * n.div_ceil(BUCKET_TILE)))
}

/// Some of the marked sources, without their marks ([`Primitives::mark_runs`]).
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

/// Bounds for [`Primitives::rank_places`]: the pair of some of the marked sources, and which they are.
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

/// Checks the parts of [`Primitives::rank_places`]' bounds.
pub(crate) fn check_bounds(parts: [usize; 3], bits: u32) -> Result<()> {
    Error::check_dimension("number of the bounds' low parts", parts[0], parts[1])?;
    Error::check_dimension("number of the bounds' places", parts[0], parts[2])?;
    if parts[0] >= MOST_TILED || bits >= u32::BITS {
        return Err(Error::InvalidArgument(format!("{} bounds, and {bits} bits", parts[0])));
    }
    Ok(())
}

/// Scans, sorts, merges and reductions over whole buffers.
///
/// Every method fails when the device fails, when temporary memory can't be had, and with
/// [`Error::Dimension`](crate::Error::Dimension) where lengths don't fit together.
#[allow(clippy::missing_errors_doc)]
pub trait Primitives: Backend {
    // ---- reduce and scan ----

    /// `out[0]` = all of `x` combined; the identity for an empty `x`. `out` has one element.
    fn reduce<T: Element, O: Combine<T>>(
        &self,
        op: O,
        x: &Self::Slice<T>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `out[s]` = the elements `offsets[s]..offsets[s + 1]` of `x` combined; the identity for an empty segment.
    /// `offsets` ascend and have one element more than `out`.
    fn segmented_reduce<T: Element, I: Offset, O: Combine<T>>(
        &self,
        op: O,
        x: &Self::Slice<T>,
        offsets: &Self::Slice<I>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Combines runs of equal neighbouring keys: the r-th run's key in `keys_out[r]`, its values in `out[r]`. Outputs
    /// are as long as the input; behind the runs they hold nothing of use. Returns the number of runs.
    fn reduce_by_key<K: Key, T: Element, O: Combine<T>>(
        &self,
        op: O,
        keys: &Self::Slice<K>,
        values: &Self::Slice<T>,
        keys_out: &mut Self::Slice<K>,
        out: &mut Self::Slice<T>,
    ) -> Result<usize>;

    /// From counts to offsets: `out[i]` = sum of `x[..i]`. `out` is as long as `x`, or one longer: then the total
    /// comes last. The caller makes sure that the total fits in `I`.
    fn exclusive_scan<I: Offset>(&self, x: &Self::Slice<u32>, out: &mut Self::Slice<I>) -> Result<()>;

    /// `out[i]` = the elements of `x` before i (or up to i) combined. Same lengths.
    fn scan<T: Element, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Self::Slice<T>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// As [`Primitives::scan`], starting anew at each i where `heads[i]` is not zero
    /// ([`Primitives::head_flags`] makes them from offsets). The first element starts a segment in any case.
    fn segmented_scan<T: Element, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Self::Slice<T>,
        heads: &Self::Slice<u8>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// As [`Primitives::segmented_scan`], with the segments' offsets in place of heads: `offsets[s]..offsets[s + 1]` is
    /// segment s.
    fn scan_segments<T: Element, I: Offset, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Self::Slice<T>,
        offsets: &Self::Slice<I>,
        out: &mut Self::Slice<T>,
    ) -> Result<()> {
        let mut heads = self.zeros::<u8>(Self::len(x))?;
        self.head_flags(offsets, &mut heads)?;
        self.segmented_scan(scan, op, x, &heads, out)
    }

    // ---- histogram and offsets ----

    /// `counts[k]` = number of keys that equal k. Keys at or above `counts`' length are not counted.
    ///
    /// # Errors
    /// On 2^32 keys or more.
    fn histogram(&self, keys: &Self::Slice<u32>, counts: &mut Self::Slice<u32>) -> Result<()>;

    /// Offsets of the segments of ascending segment numbers: `offsets[s]` = number of elements below s. `offsets` has
    /// one element more than there are segments. Row numbers of sorted triplets become the row offsets of CSR.
    fn offsets_of_sorted<I: Offset>(
        &self,
        segments: &Self::Slice<u32>,
        offsets: &mut Self::Slice<I>,
    ) -> Result<()>;

    /// The inverse: `segments[i]` = the segment to which element i belongs. As long as the last offset.
    fn expand_offsets<I: Offset>(
        &self,
        offsets: &Self::Slice<I>,
        segments: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `heads[i]` = 1 where a segment starts at i, else 0. Empty segments leave no mark. As long as the last offset.
    fn head_flags<I: Offset>(&self, offsets: &Self::Slice<I>, heads: &mut Self::Slice<u8>) -> Result<()>;

    /// Start of each run of equal neighbouring keys; then, if there is room, the number of keys. `starts` has room for
    /// every run (one more than there are keys always suffices). Returns the number of runs.
    fn run_starts<K: Key, I: Offset>(
        &self,
        keys: &Self::Slice<K>,
        starts: &mut Self::Slice<I>,
    ) -> Result<usize>;

    /// Start of each run of equal neighbouring pairs (`high[i]`, `low[i]`), and behind them the number of pairs.
    fn pair_starts<I: Offset>(&self, high: &Self::Slice<u32>, low: &Self::Slice<u32>)
    -> Result<Self::Vec<I>>;

    // ---- select ----

    /// The elements whose flag is not zero, in order, at the front of `out`; returns their number. `out` is as long as
    /// `x`; what is behind them is left alone.
    fn compact<T: Element>(
        &self,
        x: &Self::Slice<T>,
        flags: &Self::Slice<u8>,
        out: &mut Self::Slice<T>,
    ) -> Result<usize>;

    /// The elements whose flag is not zero, then the others, each in order; returns the number of the first kind.
    fn partition<T: Element>(
        &self,
        x: &Self::Slice<T>,
        flags: &Self::Slice<u8>,
        out: &mut Self::Slice<T>,
    ) -> Result<usize>;

    /// The first of each run of equal neighbouring keys (equal bits), at the front of `out`; returns their number.
    fn unique<K: Key>(&self, x: &Self::Slice<K>, out: &mut Self::Slice<K>) -> Result<usize>;

    // ---- sort and merge ----

    /// Whether the keys ascend, or, with `strictly`, ascend without equal neighbours.
    fn is_sorted<K: Key>(&self, keys: &Self::Slice<K>, strictly: bool) -> Result<bool>;

    /// Sorts by bits `bits.start..bits.end` of the ordered form ([`Key::to_ordered`]), stably (radix sort). Digits that
    /// are the same in all keys cost nothing. Temporary memory: a second buffer of the keys.
    fn sort<K: Key>(&self, keys: &mut Self::Vec<K>, bits: Range<u32>) -> Result<()>;

    /// As [`Primitives::sort`], and carries `values` along. Temporary memory: second buffers of both.
    fn sort_pairs<K: Key, V: Element>(
        &self,
        keys: &mut Self::Vec<K>,
        values: &mut Self::Vec<V>,
        bits: Range<u32>,
    ) -> Result<()>;

    /// Sorts each segment of keys by itself, ascending, stably, and carries `values` along. Offsets ascend from 0 to the
    /// number of keys; others are an error.
    fn segmented_sort_pairs<K: Key, V: Element, I: Offset>(
        &self,
        offsets: &Self::Slice<I>,
        keys: &mut Self::Vec<K>,
        values: &mut Self::Vec<V>,
    ) -> Result<()>;

    /// Sorts by comparisons, stably (merge sort): for keys of many bits of which few elements differ from sorted order.
    /// Temporary memory: a second buffer of the keys.
    fn merge_sort<K: Key>(&self, order: Order, keys: &mut Self::Vec<K>) -> Result<()>;

    /// As [`Primitives::merge_sort`], and carries `values` along. Temporary memory: second buffers of both.
    fn merge_sort_pairs<K: Key, V: Element>(
        &self,
        order: Order,
        keys: &mut Self::Vec<K>,
        values: &mut Self::Vec<V>,
    ) -> Result<()>;

    /// Merges two sorted sequences into `out`, as long as both together. Of equal keys, those of `a` come first.
    fn merge<K: Key>(
        &self,
        order: Order,
        a: &Self::Slice<K>,
        b: &Self::Slice<K>,
        out: &mut Self::Slice<K>,
    ) -> Result<()>;

    /// As [`Primitives::merge`], each key with its value.
    fn merge_pairs<K: Key, V: Element>(
        &self,
        order: Order,
        a: (&Self::Slice<K>, &Self::Slice<V>),
        b: (&Self::Slice<K>, &Self::Slice<V>),
        out: (&mut Self::Slice<K>, &mut Self::Slice<V>),
    ) -> Result<()>;

    // ---- maps ----

    /// `out[i]` = `x[indices[i]]`.
    ///
    /// # Errors
    /// Where an index lies outside of `x` (a device tells it at the next [`Backend::synchronize`]).
    fn gather<T: Element, I: Offset>(
        &self,
        x: &Self::Slice<T>,
        indices: &Self::Slice<I>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `out[indices[i]]` = `x[i]`. The indices are distinct; other elements of `out` are left alone.
    ///
    /// # Errors
    /// As [`Primitives::gather`], for `out`.
    fn scatter<T: Element, I: Offset>(
        &self,
        x: &Self::Slice<T>,
        indices: &Self::Slice<I>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Marks runs of `sources`, which start at `starts` (ascending, the first at 0): in the highest bit of its first
    /// source that a run starts there, and in `before[t]` how many runs start before source t [`RUN_TILE`]. `before` has
    /// an element for each tile of so many sources. Marked sources are what [`Primitives::gather_sum`] takes.
    fn mark_runs<S: Offset>(
        &self,
        starts: &Self::Slice<S>,
        sources: &mut Self::Slice<S>,
        before: &mut Self::Slice<S>,
    ) -> Result<()>;

    /// `sources[i]` = `next[sources[i]]`, and its mark ([`Primitives::mark_runs`]) stays.
    ///
    /// # Errors
    /// As [`Primitives::gather`].
    fn follow<S: Offset>(&self, next: &Self::Slice<S>, sources: &mut Self::Slice<S>) -> Result<()>;

    /// `out[s]` = sum over run s of marked sources ([`Primitives::mark_runs`]) of `x[source]`, from left to right (this
    /// order on every backend). Where `symmetry` is not general, a source is 2 i + m: the value is `x[i]`, mirrored
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

    /// Whether so many sources that are summed again and again should be staged ([`Primitives::stage_runs`]) on this backend.
    fn stages_runs(&self, sources: usize) -> bool {
        let _ = sources;
        false
    }

    /// Marked sources ([`Primitives::mark_runs`]) of the runs that start at `starts` (ascending, the first at 0), in a form that takes half the memory and lets a
    /// backend fetch values by whole pieces. `None` where runs are long (more than 64 sources) or neighbouring ones lie in too many
    /// pieces, or a source is not below `values`.
    fn stage_runs(
        &self,
        values: usize,
        starts: &Self::Slice<u32>,
        sources: &Self::Slice<u32>,
    ) -> Result<Option<StagedRuns<Self>>>;

    /// `out[s]` = sum over run s of `x[source]`, from left to right: the bits of [`Primitives::gather_sum`]. Allocates nothing.
    ///
    /// # Errors
    /// On other numbers of values or runs than were staged.
    fn sum_staged<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        runs: &StagedRuns<Self>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Whether so many sources that are summed again and again should be fetched in the order of memory ([`Primitives::ascend_runs`]) on this backend.
    fn ascends_runs(&self, sources: usize) -> bool {
        let _ = sources;
        false
    }

    /// Marked sources ([`Primitives::mark_runs`]) of the runs that start at `starts` (ascending, the first at 0), in a form that lets a backend fetch
    /// values in the order in which they lie in memory, tile by tile. `None` where runs are long (more than 256 sources) or a tile's sources lie too far apart, or a source
    /// is not below `values`, and where there is none.
    ///
    /// # Errors
    /// Without memory, or when the device fails.
    fn ascend_runs(
        &self,
        values: usize,
        starts: &Self::Slice<u32>,
        sources: &Self::Slice<u32>,
    ) -> Result<Option<AscendingRuns<Self>>> {
        let _ = (values, starts, sources);
        Ok(None)
    }

    /// `out[s]` = sum over run s of `x[source]`, from left to right: the bits of [`Primitives::gather_sum`]. Allocates nothing.
    ///
    /// # Errors
    /// On other numbers of values or runs than were planned.
    fn sum_ascending<T: Scalar>(
        &self,
        x: &Self::Slice<T>,
        runs: &AscendingRuns<Self>,
        out: &mut Self::Slice<T>,
    ) -> Result<()> {
        let _ = (x, runs, out);
        Err(Error::Unsupported("sums of values in the order of memory on this device".into()))
    }

    /// Bits of the places of a bucket for `n` values that are summed from all over memory again and again, where it pays on this backend
    /// to bring them near their places first ([`Primitives::to_buckets`]).
    fn bucket_bits(&self, n: usize) -> Option<u32> {
        let _ = n;
        None
    }

    /// `out[i]` = 2^`bits` times the number of `bounds` up to (`high[i]`, `low[i]`, i). Bounds are triples, one slice for each part; they ascend,
    /// and are fewer than 2^13. With every 2^`bits`-th triple of a sort by pairs, stable, as bounds, it is the bucket of each element's place there.
    ///
    /// # Errors
    /// On lengths that do not fit, too many bounds or bits.
    fn rank_places(
        &self,
        pairs: (&Self::Slice<u32>, &Self::Slice<u32>),
        bounds: [&Self::Slice<u32>; 3],
        bits: u32,
        out: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// Plans how elements come to buckets: `places[i] >> bits` is the bucket of element i, of at most [`MOST_BUCKETS`], and becomes the place
    /// that the element gets, buckets in order, and in each the tiles of [`BUCKET_TILE`] elements. In which order those of one tile
    /// and bucket are is left open. `slots` has an element for each, `runs` two for each tile and bucket.
    ///
    /// # Errors
    /// On lengths that do not fit, and where a place is not below their number.
    fn plan_buckets(
        &self,
        places: &mut Self::Slice<u32>,
        bits: u32,
        slots: &mut Self::Slice<u16>,
        runs: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `out[place of i]` = `x[i]`, as planned by [`Primitives::plan_buckets`]. Elements have 4, 8 or 16 bytes. Allocates nothing.
    fn to_buckets<T: Element>(
        &self,
        x: &Self::Slice<T>,
        slots: &Self::Slice<u16>,
        runs: &Self::Slice<u32>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Values of a tile and of a bucket for `n` values of so many bytes that are summed from all over memory again and again, where it pays on this backend
    /// to order them by tiles first ([`Primitives::tile_runs`]).
    fn tile_sizes(&self, n: usize, bytes: usize) -> Option<(usize, usize)> {
        let _ = (n, bytes);
        None
    }

    /// Plans sums of values from all over memory: run s of the marked `sources` ([`Primitives::mark_runs`]), which starts at `starts[s]`. Each value is the source of one run, and
    /// runs ascend by the pairs (`high[i]`, `low[i]`) of their sources, which differ from run to run. Values have `bytes` bytes, a tile
    /// has `sizes.0` of them, and sources from so many places as `sizes.1` make a bucket. `None` where a tile or a bucket does not fit in fast memory, and
    /// where there is none.
    ///
    /// # Errors
    /// On lengths that do not fit.
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

    /// `out[s]` = sum over run s of `x[source]`, from left to right: the bits of [`Primitives::gather_sum`]. What is in `room` means nothing, before or
    /// after. Allocates nothing; slower with values of another size than planned.
    ///
    /// # Errors
    /// On other numbers of values or runs than were planned, or another room than [`TileRuns`] asks for.
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

    /// `out[i]` = i.
    fn sequence<I: Offset>(&self, out: &mut Self::Slice<I>) -> Result<()>;

    /// `x[i]` = `x[i] + value`.
    fn add_constant<T: Number>(&self, value: T, x: &mut Self::Slice<T>) -> Result<()>;

    /// `out[i]` = `high[i] << shift | low[i]`; `low` has at most `shift` significant bits, `shift` at most 32.
    fn pack(
        &self,
        high: &Self::Slice<u32>,
        low: &Self::Slice<u32>,
        shift: u32,
        out: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// Both mirror images of each place, for stored halves: `out` has (`high[i]`, `low[i]`) at 2 i, and behind it (`low[i]`, `high[i]`), or,
    /// on the diagonal, (`beyond`, 0). Both of `out` are twice as long.
    fn mirror(
        &self,
        high: &Self::Slice<u32>,
        low: &Self::Slice<u32>,
        beyond: u32,
        out: (&mut Self::Slice<u32>, &mut Self::Slice<u32>),
    ) -> Result<()>;

    /// `high[i]` = `packed[i] >> shift`, `low[i]` = the bits below. The inverse of [`Primitives::pack`].
    fn unpack(
        &self,
        packed: &Self::Slice<u64>,
        shift: u32,
        high: &mut Self::Slice<u32>,
        low: &mut Self::Slice<u32>,
    ) -> Result<()>;
}
