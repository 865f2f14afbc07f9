//! Properties of the rows of a CSR matrix, which are determined once and kept with it.

use crate::backend::Backend;
use crate::error::Result;
use std::sync::OnceLock;

/// The number of kinds of tiles.
pub(crate) const TILE_KINDS: usize = 4;

/// Properties of the rows of a CSR matrix. A backend determines them at the first product, and keeps them with the
/// matrix for later ones. They depend only on the pattern.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA uses it
pub struct RowShape<B: Backend> {
    extent: OnceLock<RowExtent>,
    scattered: OnceLock<bool>,
    starts: OnceLock<B::Vec<u32>>,
    tiles: [OnceLock<B::Vec<u64>>; TILE_KINDS],
    bins: OnceLock<Box<RowBins<B>>>,
}

/// Rows grouped into bins by their lengths, as the backend assigns them to threads.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA uses it
pub(crate) struct RowBins<B: Backend> {
    /// Rows, or pieces of long rows, two words each.
    pub(crate) parts: B::Vec<u64>,
    /// The end of each bin in `parts`.
    pub(crate) ends: [u32; 7],
}

/// How much the lengths of rows differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowExtent {
    /// Nonzeros of the longest row.
    pub longest: u64,
    /// The maximum number of nonzeros in 32 consecutive rows that start at a multiple of 32.
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

#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA uses it
impl<B: Backend> RowShape<B> {
    /// Returns the extent; `find` determines it if it is not known yet.
    pub(crate) fn extent(&self, find: impl FnOnce() -> Result<RowExtent>) -> Result<RowExtent> {
        known(&self.extent, find).copied()
    }

    /// Returns whether a product reads x in scattered places; `find` determines it if it is not known yet.
    pub(crate) fn scattered(&self, find: impl FnOnce() -> Result<bool>) -> Result<bool> {
        known(&self.scattered, find).copied()
    }

    /// Returns the first row of each of the backend's tiles; `find` determines them if they are not known yet.
    pub(crate) fn starts(&self, find: impl FnOnce() -> Result<B::Vec<u32>>) -> Result<&B::Slice<u32>> {
        known(&self.starts, find).map(|starts| &**starts)
    }

    /// As [`Self::starts`], for a kind of tiles that may end within a row. The kind depends on the type of the values,
    /// and one pattern may have values of different types.
    pub(crate) fn tiles(
        &self,
        kind: u32,
        find: impl FnOnce() -> Result<B::Vec<u64>>,
    ) -> Result<&B::Slice<u64>> {
        known(&self.tiles[kind as usize], find).map(|tiles| &**tiles)
    }

    /// Returns the bins of rows; `find` determines them if they are not known yet.
    pub(crate) fn bins(&self, find: impl FnOnce() -> Result<RowBins<B>>) -> Result<&RowBins<B>> {
        known(&self.bins, || find().map(Box::new)).map(|bins| &**bins)
    }
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA uses it
fn known<T>(cell: &OnceLock<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let found = find()?;
    // If two threads have computed it, both results are the same.
    Ok(cell.get_or_init(|| found))
}
