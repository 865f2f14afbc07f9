//! Constants and launch shapes of products with CSR matrices, and the choice between the kernels.

use super::grid::{THREADS, blocks};
use super::{Shape, Unit, balanced, binned};
use crate::backend::RowExtent;
use crate::error::Result;
use crate::scalar::{Element, Scalar};

/// Entries in flight with one thread per row, and with several lanes per row.
const UNROLL: u32 = 8;
const FEW_UNROLL: u32 = 4;
/// Entries in flight with one thread per row of a small matrix. The smallest of these numbers that covers the longest
/// row is used: another access to memory takes half a microsecond, and registers for entries that no row has reduce the
/// number of resident blocks.
const ROW_UNROLL: [u32; 4] = [6, 8, 12, 16];
/// Above this mean number of nonzeros per lane, a streamed row gets twice as many lanes.
const STREAM_LANE: usize = 14;
/// The same if values take 4 bytes and the length of the longest row is odd. Neighbouring rows then start in different
/// banks of shared memory.
const STREAM_ODD_LANE: usize = 28;
/// Nonzeros of such rows in flight. One thread starts their copies: tiles have fewer bytes, so the time to start copies
/// matters more.
const STREAM_ODD_UNROLL: u32 = 9;
/// From this mean row length on, a thread that has a row to itself keeps few nonzeros in flight, if values take 4 bytes
/// and the length of the longest row is even.
const STREAM_FEW: usize = 7;
/// Up to this mean row length blocks are smaller: with any type, but if values take 4 bytes, only if the length of the
/// longest row is even.
const STREAM_SHORT: usize = 4;
/// Matrices with fewer nonzeros fit the second-level cache. Rows are read directly from there, and the number of
/// dependent steps matters: ...
pub(super) const SMALL: usize = 1 << 20;
/// ... one lane reads a short row; for other rows there are 4 lanes for each 7 nonzeros of a row of mean length (the
/// first and the second number), so that a lane has two or three, ...
const SMALL_LANES: [usize; 2] = [4, 7];
/// ... but no more lanes than read a line of values of 8 bytes, unless rows are longer than these lanes have in flight.
/// ...
const LINE_LANES: usize = 16;
/// ... The nonzeros in flight per lane are the smallest of these numbers that covers the longest row, if at most
/// `SMALL_THREADS` threads are needed, and the smallest of all otherwise.
const LANE_UNROLL: [u32; 3] = [3, 6, 8];
const SMALL_THREADS: usize = 1 << 17;
/// Threads per block with one row per thread. From the second number of rows on, blocks are as large as in other
/// kernels: to start a block takes more than a nanosecond, but each multiprocessor should have some.
const SCALAR_THREADS: u32 = 128;
const BROAD_ROWS: usize = 1 << 16;
/// Rows with more nonzeros than this on average are balanced, ...
const STREAM_MEAN: usize = 32;
/// ... but in small matrices only those with more than this. Shorter rows are read by several lanes there, because
/// there would be too few tiles to fill the chip.
const VECTOR_MEAN: usize = 512;
/// Minimum number of nonzeros per lane if all rows are read by the same number of lanes.
const VECTOR_LANE: usize = 8;
/// Row lengths are similar if the longest is at most this multiple of the mean, plus a few: the threads of a warp wait
/// for the longest.
const STREAM_LONGEST: u64 = 3;
/// Threads per block in products with several vectors. The tiles of long rows then leave shared memory for those of
/// other blocks (elasticity with 8 vectors: 304 us, and 680 us with twice as many threads; a tenth less time with 27
/// entries per row).
const BLOCK_THREADS: u32 = 128;
/// In products with several vectors, rows are divided if they have more nonzeros than this and than four times the
/// mean, because the other rows of a tile would wait for them.
const BLOCK_LONG: usize = 128;
/// Maximum shared memory of a streamed tile.
const STREAM_BYTES: usize = 47 << 10;

/// The class of a unit is its number of lanes, with flags. Flags for tiles: fewer entries in flight, odd row length,
/// short rows. Flags for lanes that read memory directly: the number of entries in flight, from bit `UNDER_WAY` on, and
/// more threads per block.
const FEW: u32 = 1 << 16;
const ODD: u32 = 1 << 17;
const BRIEF: u32 = 1 << 20;
const UNDER_WAY: u32 = 8;
const BROAD: u32 = 1 << 21;
/// Flag: the first entries are loaded before the previous launch has ended.
pub(in crate::backend::cuda) const AHEAD: u32 = 1 << 19;

/// Returns the constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = unit.size_class();
    let threads = ("THREADS", THREADS);
    let lanes = ("LANES", (class & !(FEW | ODD | BRIEF)).clamp(1, 32));
    match unit.source() {
        "csr_krylov.cu" => vec![threads, lanes],
        "csr_vector.cu" => {
            let (lanes, unroll) = vector_constants(class);
            let ahead = u32::from(class & AHEAD != 0);
            let threads = ("THREADS", vector_threads(class));
            vec![threads, ("LANES", lanes), ("UNROLL", unroll), ("AHEAD", ahead)]
        }
        "csr_block.cu" => vec![("THREADS", BLOCK_THREADS), lanes, ("UNROLL", FEW_UNROLL)],
        "csr_block_tiles.cu" => vec![threads, lanes, ("UNROLL", FEW_UNROLL)],
        _ => {
            let odd = class & ODD != 0;
            let unroll = if odd {
                STREAM_ODD_UNROLL
            } else if class & FEW != 0 {
                FEW_UNROLL
            } else {
                UNROLL
            };
            let threads = stream_threads(unit.type_of("STORED"), class & BRIEF != 0);
            vec![("THREADS", threads), lanes, ("UNROLL", unroll), ("IN_BULK", u32::from(odd))]
        }
    }
}

/// Returns the threads per block that streams rows: half as many for values of 4 bytes, so that tiles have the same
/// number of bytes, and for short rows.
fn stream_threads(value: &str, short: bool) -> u32 {
    if short || value == "f32" { THREADS / 2 } else { THREADS }
}

/// The kernel for a product with a CSR matrix.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) enum CsrWay {
    /// Several lanes per row, which read memory directly.
    Vector { shape: Shape },
    /// Tiles of rows in shared memory, with space for `capacity` nonzeros.
    Streamed { shape: Shape, capacity: u32 },
    /// Tiles of equal work, of this class.
    Balanced { shape: Shape, class: u32 },
    /// Rows in bins by length.
    Binned,
}

/// Chooses the kernel for a product. Rows of similar length are streamed or, in small matrices, read by several lanes.
/// Otherwise small matrices are binned, and large ones balanced. V is the type of values; `scattered` returns whether x
/// is read in places that are scattered at random ([`asks_spread`](super::asks_spread)).
pub(in crate::backend::cuda) fn csr_way<V: Element>(
    extent: RowExtent,
    rows: usize,
    nonzeros: usize,
    scattered: impl FnOnce() -> Result<Option<bool>>,
) -> Result<CsrWay> {
    let mean = nonzeros.div_ceil(rows.max(1));
    let typical = (32 * mean) as u64;
    if nonzeros < SMALL {
        return csr_small::<V>(extent, rows, nonzeros, scattered);
    }
    let alike = extent.fullest <= 2 * typical + 256 && extent.longest <= STREAM_LONGEST * mean as u64 + 8;
    if alike && mean <= STREAM_MEAN {
        return Ok(csr_streamed::<V>(extent, rows, nonzeros));
    }
    csr_unlike::<V>(extent, rows, nonzeros, scattered)
}

/// As [`csr_way`] for a product that is followed by x.y. Small matrices are streamed, which also computes x.y, if that
/// gives the same bits: a thread adds up a row in both kernels, and a product and sum of real numbers is rounded once.
pub(in crate::backend::cuda) fn csr_way_dot<V: Element, T: Scalar>(
    extent: RowExtent,
    rows: usize,
    nonzeros: usize,
    scattered: impl FnOnce() -> Result<Option<bool>>,
) -> Result<CsrWay> {
    let mean = nonzeros.div_ceil(rows.max(1));
    if nonzeros < SMALL && alike(extent, mean) && mean <= STREAM_LANE && !T::COMPLEX {
        return Ok(csr_streamed::<V>(extent, rows, nonzeros));
    }
    csr_way::<V>(extent, rows, nonzeros, scattered)
}

/// Returns whether row lengths are similar enough for one thread per row, in a matrix that is read from the
/// second-level cache.
fn alike(extent: RowExtent, mean: usize) -> bool {
    extent.longest <= 2 * mean as u64 + 8
}

/// Returns whether row lengths are similar enough for several lanes per row. They may differ more, provided that blocks
/// still end at about the same time.
fn alike_in_groups(extent: RowExtent, mean: usize) -> bool {
    extent.longest <= 4 * mean as u64 && extent.fullest <= 48 * mean as u64
}

/// Chooses the kernel for a small matrix: several lanes per row if lengths are similar.
fn csr_small<V: Element>(
    extent: RowExtent,
    rows: usize,
    nonzeros: usize,
    scattered: impl FnOnce() -> Result<Option<bool>>,
) -> Result<CsrWay> {
    let mean = nonzeros.div_ceil(rows.max(1));
    // One thread sums a shorter row, as it also does if x.y is computed.
    let short = mean <= STREAM_LANE;
    let suits = alike(extent, mean) || !short && alike_in_groups(extent, mean);
    if !suits || mean > VECTOR_MEAN {
        return csr_unlike::<V>(extent, rows, nonzeros, scattered);
    }
    if short {
        let broad = if rows >= BROAD_ROWS { BROAD } else { 0 };
        return Ok(csr_by_lanes(rows, 1 | holding(ROW_UNROLL, extent.longest) << UNDER_WAY | broad | AHEAD));
    }
    let [some, of] = SMALL_LANES;
    let most = if mean > LINE_LANES * LANE_UNROLL[1] as usize { 2 * LINE_LANES } else { LINE_LANES };
    let lanes = 1 << (some * mean / of).min(most).ilog2();
    let at_once = rows * lanes as usize <= SMALL_THREADS;
    let each = if at_once { extent.longest.div_ceil(u64::from(lanes)) } else { 0 };
    Ok(csr_by_lanes(rows, lanes | holding(LANE_UNROLL, each) << UNDER_WAY | AHEAD))
}

/// Returns the smallest count that covers this number, or the largest count.
fn holding<const N: usize>(counts: [u32; N], many: u64) -> u32 {
    counts.into_iter().find(|&count| many <= u64::from(count)).unwrap_or(counts[N - 1])
}

/// Chooses between bins and tiles of equal work.
fn csr_unlike<V: Element>(
    extent: RowExtent,
    rows: usize,
    nonzeros: usize,
    scattered: impl FnOnce() -> Result<Option<bool>>,
) -> Result<CsrWay> {
    if binned::suits(extent, nonzeros, false) {
        return Ok(CsrWay::Binned);
    }
    let scattered = scattered()?;
    if scattered == Some(true) && binned::suits(extent, nonzeros, true) {
        return Ok(CsrWay::Binned);
    }
    Ok(csr_balanced::<V>(rows, nonzeros, scattered))
}

/// Returns a launch with several lanes per row, for a mean of `mean` nonzeros.
pub(in crate::backend::cuda) fn csr_vector(rows: usize, mean: usize) -> CsrWay {
    let lanes = (mean / VECTOR_LANE).max(1).next_power_of_two().min(32) as u32;
    let unroll = if lanes == 1 { UNROLL } else { FEW_UNROLL };
    csr_by_lanes(rows, lanes | unroll << UNDER_WAY)
}

/// Returns the launch for a class, which is the number of lanes and their entries in flight.
fn csr_by_lanes(rows: usize, class: u32) -> CsrWay {
    let (threads, (lanes, _)) = (vector_threads(class), vector_constants(class));
    let shape = Shape::new(blocks(rows.div_ceil((threads / lanes) as usize)), threads);
    CsrWay::Vector { shape: shape.class(class) }
}

/// Returns the number of lanes of a class, and the nonzeros that each has in flight.
fn vector_constants(class: u32) -> (u32, u32) {
    let under_way = match class >> UNDER_WAY & 0xff {
        0 => FEW_UNROLL,
        some => some,
    };
    ((class & ((1 << UNDER_WAY) - 1)).max(1), under_way)
}

fn vector_threads(class: u32) -> u32 {
    if vector_constants(class).0 > 1 || class & BROAD != 0 { THREADS } else { SCALAR_THREADS }
}

/// Returns the launch for streamed tiles. If the tile with the most nonzeros does not fit shared memory, it is
/// processed in chunks.
pub(in crate::backend::cuda) fn csr_streamed<V: Element>(
    extent: RowExtent,
    rows: usize,
    nonzeros: usize,
) -> CsrWay {
    let mean = nonzeros.div_ceil(rows.max(1));
    let odd = size_of::<V>() == 4 && extent.longest % 2 == 1;
    let lane = if odd { STREAM_ODD_LANE } else { STREAM_LANE };
    let lanes = (mean.div_ceil(lane).next_power_of_two() as u32).clamp(1, 32);
    let short = !odd && mean <= STREAM_SHORT;
    let threads = stream_threads(V::NAME, short);
    let tile = (threads / lanes) as usize;
    // The number of groups of 32 rows that a tile has. Copies start up to three places before a tile.
    let fullest = usize::try_from(extent.fullest).unwrap_or(usize::MAX).saturating_mul(tile.div_ceil(32));
    let entry = 4 + size_of::<V>();
    let capacity = fullest.saturating_add(3).min(STREAM_BYTES / entry - 31).next_multiple_of(32);
    let few = size_of::<V>() == 4 && lanes == 1 && mean >= STREAM_FEW;
    let kind = if short { FEW | BRIEF } else { [0, FEW, ODD][usize::from(few).max(2 * usize::from(odd))] };
    let shape = Shape::new(blocks(rows.div_ceil(tile)), threads).class(lanes | kind).shared(capacity * entry);
    CsrWay::Streamed { shape, capacity: capacity as u32 }
}

/// Returns the launch for tiles of equal work, for rows of any length.
pub(in crate::backend::cuda) fn csr_balanced<V: Element>(
    rows: usize,
    nonzeros: usize,
    scattered: Option<bool>,
) -> CsrWay {
    let class = balanced::balanced_class::<V>(scattered);
    CsrWay::Balanced { shape: balanced::balanced(class, rows, nonzeros), class }
}

/// The kernel for a product of CSR with several vectors.
pub(in crate::backend::cuda) enum CsrBlock {
    /// Tiles of rows, with space for `capacity` nonzeros in shared memory.
    Rows { shape: Shape, capacity: u32 },
    /// Tiles of equal work, and a second launch with a warp per tile that joins the rows that are divided between
    /// tiles.
    Tiles { tiles: usize, shape: Shape, joins: Shape },
}

/// Chooses the kernel for several vectors. Lanes take the vectors of a row, 16 bytes each if `aligned` addresses allow
/// it.
pub(in crate::backend::cuda) fn csr_block<T: Element, V: Element>(
    extent: RowExtent,
    (rows, nonzeros): (usize, usize),
    vectors: usize,
    aligned: bool,
) -> CsrBlock {
    let fit = 16 / size_of::<T>();
    let width = if aligned && vectors.is_multiple_of(fit) { fit } else { 1 };
    let lanes = vectors.div_ceil(width).next_power_of_two().min(32) as u32;
    let width = ["1", "2", "4"][width / 2];
    let shape = |blocks| Shape::new(blocks, THREADS).class(lanes).variant("WIDTH", width);
    let entry = 4 + size_of::<V>();
    let mean = nonzeros.div_ceil(rows.max(1));
    if extent.longest > BLOCK_LONG.max(4 * mean) as u64 {
        let (tiles, steps, name) = balanced::tiles_of_block(rows, nonzeros);
        let joins = if tiles > 1 { tiles.div_ceil(THREADS as usize / 32) } else { 0 };
        let shape = |blocks| shape(blocks).variant("STEPS", name);
        return CsrBlock::Tiles {
            tiles,
            shape: shape(blocks(tiles)).shared((steps as usize + 4) * entry),
            joins: shape(blocks(joins)),
        };
    }
    let tile = (BLOCK_THREADS / lanes) as usize;
    let fullest = usize::try_from(extent.fullest).unwrap_or(usize::MAX).saturating_mul(tile.div_ceil(32));
    // Space for twice a mean tile. If row lengths vary, a fuller tile is processed in chunks.
    let room = fullest.saturating_add(3).min(2 * mean * tile + 64).min(STREAM_BYTES / entry - 31);
    let capacity = room.next_multiple_of(32);
    // Warps also store a sum for each of their lanes there.
    let sums = (BLOCK_THREADS / 32 * lanes) as usize * fit * size_of::<T>();
    CsrBlock::Rows {
        shape: shape(blocks(rows.div_ceil(tile))).threads(BLOCK_THREADS).shared((capacity * entry).max(sums)),
        capacity: capacity as u32,
    }
}
