//! Runs of sources from all over memory, whose values come in tiles that are ordered by where they go.

use crate::backend::Backend;
use crate::error::{Error, Result};

/// Buckets at most.
pub(crate) const MOST_TILED: usize = 1 << 13;

/// Where values go, and where the sources of sums are then ([`RunSums::tile_runs`](super::RunSums::tile_runs)):
/// consecutive values are a tile, consecutive sums a bucket. In a tile, what it has for a bucket lies side by side,
/// buckets in order, each from a unit of 16 bytes on. What all tiles have for a bucket fits in fast memory, where sums
/// find it tile after tile.
///
/// ```text
/// sums  1 2 5 | 0 3 4    (a bucket each)    tiles of 3, units of 2    slots  2 0 1 | 2 3 0    ordered  1 2 0 . | 5 . 3
/// 4 places of their sources, where the bucket of each has come to fast memory        0 1 2 | 0 2 3
/// ```
///
/// Bytes: 2 a value for its slot, 4 a sum for the places of its sources, if there are more than two about 2 for each,
/// and 2 for each tile and bucket.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA makes them
pub struct TileRuns<B: Backend> {
    /// Bytes of the values that tiles and buckets were made for.
    pub(crate) bytes: usize,
    pub(crate) values: usize,
    /// Values of a tile.
    pub(crate) tile: usize,
    pub(crate) tiles: usize,
    pub(crate) buckets: usize,
    /// Units of the fullest tile and bucket.
    pub(crate) most: [usize; 2],
    pub(crate) slots: B::Vec<u16>,
    /// The unit of each tile in which it has what is for each bucket, and where the last of it ends: tiles side by
    /// side.
    pub(crate) starts: B::Vec<u16>,
    /// Units of a bucket before every 32nd tile.
    pub(crate) bases: B::Vec<u16>,
    /// Sums before each bucket, and all.
    pub(crate) first_run: B::Vec<u32>,
    /// Where the sources of each sum lie, if they are one or two, else where their list does (`order_bucket` of
    /// `tile_runs.cu`).
    pub(crate) pairs: B::Vec<u32>,
    /// The lists of sums of more than two sources, and the words of lists before each bucket's, where there are any.
    pub(crate) rest: Option<(B::Vec<u32>, B::Vec<u32>)>,
}

impl<B: Backend> TileRuns<B> {
    /// Values of a unit.
    pub(crate) fn unit(&self) -> usize {
        16 / self.bytes
    }

    /// Values from one tile to the next: whole lines.
    pub(crate) fn stride(&self) -> usize {
        self.most[0].next_multiple_of(8) * self.unit()
    }

    /// Values that the tiles have room for, whatever their type.
    pub fn room(&self) -> usize {
        self.tiles * self.stride()
    }

    #[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA sums by them
    pub(crate) fn check(&self, values: usize, room: usize, runs: usize) -> Result<()> {
        Error::check_dimension("number of values", self.values, values)?;
        Error::check_dimension("room for values in tiles", self.room(), room)?;
        Error::check_dimension("number of runs", B::len(&*self.pairs), runs)
    }
}
