//! The parallel primitives from which assembly, conversion and traversal are built.
//!
//! They take and return buffers, not closures, so that a device can have a kernel for each. All are deterministic: on
//! one backend the same input gives the same bits, whatever the load and the number of threads. Results that are
//! integers or moved data are the same on every backend. Floating-point sums over several elements may be added in a
//! different order on each backend, unless an order is stated.
//!
//! "Temporary memory" is memory that a call allocates and frees again. Unless stated it is small: a few thousandths of
//! the input.

use super::Backend;
use crate::error::Result;
use crate::scalar::{Combine, Element, Key, Number, Offset};
use std::ops::Range;

/// Which elements a scan combines for its result at position i.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// The elements up to and including `x[i]`.
    Inclusive,
    /// The elements before `x[i]`; the first result is the identity.
    Exclusive,
}

/// The direction of a sort or merge. Equal keys keep their order in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first.
    Descending,
}

/// Scans, sorts, merges and reductions over whole buffers.
///
/// Every method fails if the device fails or if temporary memory can't be allocated, and with
/// [`Error::Dimension`](crate::Error::Dimension) if lengths don't match.
#[allow(clippy::missing_errors_doc)]
pub trait Primitives: Backend {
    // ---- reduce and scan ----

    /// `out[0]` = the combination of all elements of `x`, or the identity if there are none. `out` has one element.
    fn reduce<T: Element, O: Combine<T>>(
        &self,
        op: O,
        x: &Self::Slice<T>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `out[s]` = the combination of the elements `offsets[s]..offsets[s + 1]` of `x`, or the identity for an empty
    /// segment. `offsets` ascend and have one more element than `out`.
    fn segmented_reduce<T: Element, I: Offset, O: Combine<T>>(
        &self,
        op: O,
        x: &Self::Slice<T>,
        offsets: &Self::Slice<I>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// Combines the values of each run of equal neighbouring keys: `keys_out[r]` is the key of run r, and `out[r]` the
    /// combination of its values. The outputs are as long as the input; elements after the last run are undefined.
    /// Returns the number of runs.
    fn reduce_by_key<K: Key, T: Element, O: Combine<T>>(
        &self,
        op: O,
        keys: &Self::Slice<K>,
        values: &Self::Slice<T>,
        keys_out: &mut Self::Slice<K>,
        out: &mut Self::Slice<T>,
    ) -> Result<usize>;

    /// Converts counts to offsets: `out[i]` = the sum of `x[..i]`. `out` is as long as `x`, or has one more element for
    /// the total. The caller ensures that the total fits `I`.
    fn exclusive_scan<I: Offset>(&self, x: &Self::Slice<u32>, out: &mut Self::Slice<I>) -> Result<()>;

    /// `out[i]` = the combination of the elements of `x` before i or up to i ([`Scan`]). The lengths are equal.
    fn scan<T: Element, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Self::Slice<T>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// As [`Primitives::scan`], starting again at each i for which `heads[i]` is not zero ([`Primitives::head_flags`]
    /// computes `heads` from offsets). The first element always starts a segment.
    fn segmented_scan<T: Element, O: Combine<T>>(
        &self,
        scan: Scan,
        op: O,
        x: &Self::Slice<T>,
        heads: &Self::Slice<u8>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// As [`Primitives::segmented_scan`], with offsets instead of heads: segment s is `offsets[s]..offsets[s + 1]`.
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

    /// `counts[k]` = the number of keys equal to k. Keys that are too large for `counts` are ignored.
    ///
    /// # Errors
    /// If there are 2^32 keys or more.
    fn histogram(&self, keys: &Self::Slice<u32>, counts: &mut Self::Slice<u32>) -> Result<()>;

    /// Computes the offsets of segments from ascending segment numbers: `offsets[s]` = the number of elements below s.
    /// `offsets` has one more element than there are segments. For sorted triplets this converts row indices to the row
    /// offsets of CSR.
    fn offsets_of_sorted<I: Offset>(
        &self,
        segments: &Self::Slice<u32>,
        offsets: &mut Self::Slice<I>,
    ) -> Result<()>;

    /// The inverse of [`Primitives::offsets_of_sorted`]: `segments[i]` = the segment of element i. As long as the last
    /// offset.
    fn expand_offsets<I: Offset>(
        &self,
        offsets: &Self::Slice<I>,
        segments: &mut Self::Slice<u32>,
    ) -> Result<()>;

    /// `heads[i]` = 1 if a nonempty segment starts at i, else 0. As long as the last offset.
    fn head_flags<I: Offset>(&self, offsets: &Self::Slice<I>, heads: &mut Self::Slice<u8>) -> Result<()>;

    /// Writes the start of each run of equal neighbouring keys, then the number of keys if there is space. `starts`
    /// must have space for every run (one more element than keys always suffices). Returns the number of runs.
    fn run_starts<K: Key, I: Offset>(
        &self,
        keys: &Self::Slice<K>,
        starts: &mut Self::Slice<I>,
    ) -> Result<usize>;

    /// Returns the start of each run of equal neighbouring pairs (`high[i]`, `low[i]`), followed by the number of
    /// pairs.
    fn pair_starts<I: Offset>(&self, high: &Self::Slice<u32>, low: &Self::Slice<u32>)
    -> Result<Self::Vec<I>>;

    // ---- select ----

    /// Copies the elements whose flag is not zero, in order, to the beginning of `out`, and returns their number. `out`
    /// is as long as `x`; its other elements do not change.
    fn compact<T: Element>(
        &self,
        x: &Self::Slice<T>,
        flags: &Self::Slice<u8>,
        out: &mut Self::Slice<T>,
    ) -> Result<usize>;

    /// Copies the elements whose flag is not zero, then the others, both in order. Returns the number of the former.
    fn partition<T: Element>(
        &self,
        x: &Self::Slice<T>,
        flags: &Self::Slice<u8>,
        out: &mut Self::Slice<T>,
    ) -> Result<usize>;

    /// Copies the first key of each run of equal neighbouring keys (equal bits) to the beginning of `out`, and returns
    /// the number of runs.
    fn unique<K: Key>(&self, x: &Self::Slice<K>, out: &mut Self::Slice<K>) -> Result<usize>;

    // ---- sort and merge ----

    /// Returns whether the keys ascend; with `strictly`, whether they also have no equal neighbours.
    fn is_sorted<K: Key>(&self, keys: &Self::Slice<K>, strictly: bool) -> Result<bool>;

    /// Sorts by bits `bits.start..bits.end` of the ordered form ([`Key::to_ordered`]), stably (radix sort). Digits that
    /// are equal in all keys are skipped. Temporary memory: a second buffer of the keys.
    fn sort<K: Key>(&self, keys: &mut Self::Vec<K>, bits: Range<u32>) -> Result<()>;

    /// As [`Primitives::sort`], and permutes `values` in the same way. Temporary memory: second buffers of both.
    fn sort_pairs<K: Key, V: Element>(
        &self,
        keys: &mut Self::Vec<K>,
        values: &mut Self::Vec<V>,
        bits: Range<u32>,
    ) -> Result<()>;

    /// Sorts the keys of each segment, ascending and stably, and permutes `values` in the same way. Offsets must ascend
    /// from 0 to the number of keys.
    fn segmented_sort_pairs<K: Key, V: Element, I: Offset>(
        &self,
        offsets: &Self::Slice<I>,
        keys: &mut Self::Vec<K>,
        values: &mut Self::Vec<V>,
    ) -> Result<()>;

    /// Sorts by comparisons, stably (merge sort). Faster than a radix sort for keys of many bits that are nearly
    /// sorted. Temporary memory: a second buffer of the keys.
    fn merge_sort<K: Key>(&self, order: Order, keys: &mut Self::Vec<K>) -> Result<()>;

    /// As [`Primitives::merge_sort`], and permutes `values` in the same way. Temporary memory: second buffers of both.
    fn merge_sort_pairs<K: Key, V: Element>(
        &self,
        order: Order,
        keys: &mut Self::Vec<K>,
        values: &mut Self::Vec<V>,
    ) -> Result<()>;

    /// Merges two sorted sequences into `out`, which is as long as both together. Among equal keys, those of `a` come
    /// first.
    fn merge<K: Key>(
        &self,
        order: Order,
        a: &Self::Slice<K>,
        b: &Self::Slice<K>,
        out: &mut Self::Slice<K>,
    ) -> Result<()>;

    /// As [`Primitives::merge`], for keys with values.
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
    /// If an index is not below the length of `x` (a device reports it at the next [`Backend::synchronize`]).
    fn gather<T: Element, I: Offset>(
        &self,
        x: &Self::Slice<T>,
        indices: &Self::Slice<I>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `out[indices[i]]` = `x[i]`. The indices are distinct; other elements of `out` are unchanged.
    ///
    /// # Errors
    /// As [`Primitives::gather`], for `out`.
    fn scatter<T: Element, I: Offset>(
        &self,
        x: &Self::Slice<T>,
        indices: &Self::Slice<I>,
        out: &mut Self::Slice<T>,
    ) -> Result<()>;

    /// `out[i]` = i.
    fn sequence<I: Offset>(&self, out: &mut Self::Slice<I>) -> Result<()>;

    /// `x[i]` = `x[i] + value`.
    fn add_constant<T: Number>(&self, value: T, x: &mut Self::Slice<T>) -> Result<()>;

    /// `out[i]` = `high[i] << shift | low[i]`. `low[i]` must be below 2^shift, and `shift` at most 32.
    fn pack(
        &self,
        high: &Self::Slice<u32>,
        low: &Self::Slice<u32>,
        shift: u32,
        out: &mut Self::Slice<u64>,
    ) -> Result<()>;

    /// Expands the indices of one stored triangle to both triangles: `out` has (`high[i]`, `low[i]`) at 2 i and
    /// (`low[i]`, `high[i]`) at 2 i + 1, or (`beyond`, 0) there for a diagonal entry. Both arrays of `out` are twice as
    /// long.
    fn mirror(
        &self,
        high: &Self::Slice<u32>,
        low: &Self::Slice<u32>,
        beyond: u32,
        out: (&mut Self::Slice<u32>, &mut Self::Slice<u32>),
    ) -> Result<()>;

    /// The inverse of [`Primitives::pack`]: `high[i]` = `packed[i] >> shift`, `low[i]` = the bits below.
    fn unpack(
        &self,
        packed: &Self::Slice<u64>,
        shift: u32,
        high: &mut Self::Slice<u32>,
        low: &mut Self::Slice<u32>,
    ) -> Result<()>;
}
