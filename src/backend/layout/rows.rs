//! What is known of the rows of a CSR matrix: found out once, kept with it.

use crate::backend::Backend;
use crate::error::Result;
use std::sync::OnceLock;

/// Kinds of tiles that a backend may have.
pub(crate) const TILE_KINDS: usize = 4;

/// What a backend found out about the rows of a CSR matrix at its first product, kept with the matrix: later products
/// choose their way without looking. It follows from the pattern alone.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA chooses by it
pub struct RowShape<B: Backend> {
    extent: OnceLock<RowExtent>,
    scattered: OnceLock<bool>,
    starts: OnceLock<B::Vec<u32>>,
    tiles: [OnceLock<B::Vec<u64>>; TILE_KINDS],
    bins: OnceLock<Box<RowBins<B>>>,
}

/// Rows in bins of their lengths, as the backend deals them to threads.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA does
pub(crate) struct RowBins<B: Backend> {
    /// Parts of rows, two words each.
    pub(crate) parts: B::Vec<u64>,
    /// Where each kind of them ends.
    pub(crate) ends: [u32; 7],
}

/// How far rows of a matrix are from alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowExtent {
    /// Nonzeros of the longest row.
    pub longest: u64,
    /// The most nonzeros in 32 rows that follow one another, counted from a multiple of 32.
    pub fullest: u64,
}

impl<B: Backend> Default for RowShape<B> {
    fn default() -> Self {
        Self {
            extent: OnceLock::new(),
            scattered: OnceLock::new(),
            starts: OnceLock::new(),
            tiles: std::array::from_fn(|_| OnceLock::new()),
            bins: OnceLock::new(),
        }
    }
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA chooses by it
impl<B: Backend> RowShape<B> {
    /// The extent that is known, or that `find` finds out now.
    pub(crate) fn extent(&self, find: impl FnOnce() -> Result<RowExtent>) -> Result<RowExtent> {
        known(&self.extent, find).copied()
    }

    /// Whether a product reads x all over the vector, as known or as `find` finds it out now.
    pub(crate) fn scattered(&self, find: impl FnOnce() -> Result<bool>) -> Result<bool> {
        known(&self.scattered, find).copied()
    }

    /// The first row of each of the backend's tiles, as known or as `find` finds them out now.
    pub(crate) fn starts(&self, find: impl FnOnce() -> Result<B::Vec<u32>>) -> Result<&B::Slice<u32>> {
        known(&self.starts, find).map(|starts| &**starts)
    }

    /// Where each of the backend's tiles of a kind begins that may end behind their last row's share, as
    /// [`Self::starts`]. The kind depends on the type of the values, of which one pattern may have several.
    pub(crate) fn tiles(
        &self,
        kind: u32,
        find: impl FnOnce() -> Result<B::Vec<u64>>,
    ) -> Result<&B::Slice<u64>> {
        known(&self.tiles[kind as usize], find).map(|tiles| &**tiles)
    }

    /// The rows in bins, as [`Self::starts`].
    pub(crate) fn bins(&self, find: impl FnOnce() -> Result<RowBins<B>>) -> Result<&RowBins<B>> {
        known(&self.bins, || find().map(Box::new)).map(|bins| &**bins)
    }
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA chooses by it
fn known<T>(cell: &OnceLock<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let found = find()?;
    // Where two threads were at it, both found the same.
    Ok(cell.get_or_init(|| found))
}
