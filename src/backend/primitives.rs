//! The parallel primitives that assembly, conversion and traversal are written with.

use super::Backend;
use crate::error::Result;
use crate::scalar::{Key, Offset, Scalar};
use std::ops::Range;

/// Scans, sorts, merges and reductions over whole buffers. All of them are deterministic and stable.
pub trait Primitives: Backend {
    /// `out[i]` = sum of `x[..i]`; `x` and `out` have the same length. Returns nothing: the total is
    /// `out[n - 1] + x[n - 1]`, or give `x` one element more.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn exclusive_scan<I: Offset>(&self, x: &Self::Slice<u32>, out: &mut Self::Slice<I>) -> Result<()>;

    /// Sorts `keys` by bits `bits.start..bits.end` of their ordered form ([`Key::to_ordered`]), stably, and carries
    /// `values` along.
    ///
    /// # Errors
    /// On different lengths, without memory for the double buffer, or when the device fails.
    fn sort_pairs<K: Key, V: crate::scalar::Element>(
        &self,
        keys: &mut Self::Vec<K>,
        values: &mut Self::Vec<V>,
        bits: Range<u32>,
    ) -> Result<()>;

    /// Sums runs of equal neighbouring keys, each in order: one key and one sum a run, in `keys_out` and `sums_out`
    /// (as long as the input). Returns the number of runs.
    ///
    /// # Errors
    /// On different lengths, or when the device fails.
    fn reduce_by_key<K: Key, T: Scalar>(
        &self,
        keys: &Self::Slice<K>,
        values: &Self::Slice<T>,
        keys_out: &mut Self::Slice<K>,
        sums_out: &mut Self::Slice<T>,
    ) -> Result<usize>;
}
