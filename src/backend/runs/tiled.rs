//! Sums of runs of sources in random order, with values sorted within tiles by their destination.

use crate::backend::Backend;
use crate::error::{Error, Result};

/// The most buckets.
pub(crate) const MOST_TILED: usize = 1 << 13;

/// The positions of values and of the sources of sums ([`RunSums::tile_runs`](super::RunSums::tile_runs)): a tile is a
/// range of values, a bucket a range of sums. Within a tile, the values for the same bucket are contiguous, in the
/// order of buckets, each starting at a unit of 16 bytes. The values of all tiles for one bucket fit in fast memory,
/// where the sums read them.
///
/// ```text
/// sums  1 2 5 | 0 3 4    (a bucket each)    tiles of 3, units of 2    slots  2 0 1 | 2 3 0    ordered  1 2 0 . | 5 . 3
/// 4 places of their sources, where the bucket of each has come to fast memory        0 1 2 | 0 2 3
/// ```
///
/// It takes 2 bytes per value for its slot, 4 per sum for the places of its sources, about 2 for each source of sums
/// with more than two, and 2 for each tile and bucket.
#[derive(Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))] // only CUDA makes them
pub struct TileRuns<B: Backend> {
    /// Bytes of the values for which tiles and buckets were made.
    pub(crate) bytes: usize,
    pub(crate) values: usize,
    /// Values of a tile.
    pub(crate) tile: usize,
    pub(crate) tiles: usize,
    pub(crate) buckets: usize,
    /// Units of the largest tile and bucket.
    pub(crate) most: [usize; 2],
    pub(crate) slots: B::Vec<u16>,
    /// The first unit for each bucket in each tile, and the end; tiles are interleaved.
    pub(crate) starts: B::Vec<u16>,
    /// Units of a bucket before every 32nd tile.
    pub(crate) bases: B::Vec<u16>,
    /// The number of sums before each bucket, and of all.
    pub(crate) first_run: B::Vec<u32>,
    /// The positions of the sources of each sum if there are one or two, else the position of their list
    /// (`order_bucket` of `tile_runs.cu`).
    pub(crate) pairs: B::Vec<u32>,
    /// The lists for sums of more than two sources, and the start of each bucket's lists, if there are any.
    pub(crate) rest: Option<(B::Vec<u32>, B::Vec<u32>)>,
}

impl<B: Backend> TileRuns<B> {
    /// Values of a unit.
    pub(crate) fn unit(&self) -> usize {
        16 / self.bytes
    }

    /// The distance between tiles in values, in whole cache lines.
    pub(crate) fn stride(&self) -> usize {
        self.most[0].next_multiple_of(8) * self.unit()
    }

    /// The length of the workspace of [`RunSums::sum_tiles`](super::RunSums::sum_tiles) in values, for any type.
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
