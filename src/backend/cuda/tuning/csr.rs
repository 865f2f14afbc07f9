//! Constants and shapes of products with CSR, and the choice between the ways through it.

use super::grid::{THREADS, blocks};
use super::{Shape, Unit, balanced, binned};
use crate::backend::RowExtent;
use crate::error::Result;
use crate::scalar::{Element, Scalar};

/// Entries under way where a thread has a row, and where lanes share a row.
const UNROLL: u32 = 8;
const FEW_UNROLL: u32 = 4;
/// And where a thread has a row of a small matrix: the fewest of these that the longest row has, for one more trip to
/// memory takes half a microsecond, and registers for entries that no row has leave room for fewer blocks.
const ROW_UNROLL: [u32; 4] = [6, 8, 12, 16];
/// Mean nonzeros a lane, above which a streamed row gets twice as many lanes.
const STREAM_LANE: usize = 14;
/// The same where values take 4 bytes and the longest row is odd: neighbouring rows then start in different banks of
/// shared memory.
const STREAM_ODD_LANE: usize = 28;
/// Nonzeros of such rows under way. Their copies are started by one thread: tiles take fewer bytes, so to start copies
/// counts for more.
const STREAM_ODD_UNROLL: u32 = 9;
/// Mean nonzeros a row from which a thread of its own has few of them under way, where values take 4 bytes and rows are
/// even; and up to which in all types, in smaller blocks.
const STREAM_FEW: usize = 7;
const STREAM_SHORT: usize = 4;
/// Matrices of fewer nonzeros lie in the second-level cache, and what counts is the number of steps that wait for one
/// another: rows are read straight from there, ...
pub(super) const SMALL: usize = 1 << 20;
/// ... by one lane where rows are short, else by so many for as many nonzeros of a row of the mean length (then each
/// has two or three), ...
const SMALL_LANES: [usize; 2] = [4, 7];
/// ... but no more than read a line of values of 8 bytes, unless rows are longer than these have under way, ...
const LINE_LANES: usize = 16;
/// ... which is the fewest of these that hold the longest row, if so many threads at most find room at once, else as
/// few as there are.
const LANE_UNROLL: [u32; 3] = [3, 6, 8];
const SMALL_THREADS: usize = 1 << 17;
/// Threads of a block where each has a row, and rows from which on they are as many as in other blocks: to start a
/// block takes more than a nanosecond, but each multiprocessor shall have some.
const SCALAR_THREADS: u32 = 128;
const BROAD_ROWS: usize = 1 << 16;
/// Rows of more nonzeros than this on average are balanced, ...
const STREAM_MEAN: usize = 32;
/// ... in small matrices of more than this, where others are read by lanes: too few rows would fill the chip.
const VECTOR_MEAN: usize = 512;
/// Nonzeros a lane, at least, where all rows are read by as many.
const VECTOR_LANE: usize = 8;
/// Rows are alike where the longest has no more nonzeros than so many times the mean, and a few more: the threads of a
/// warp wait for it.
const STREAM_LONGEST: u64 = 3;
/// Threads of a block where several vectors are multiplied at once: tiles of long rows then leave room for other
/// blocks' (elasticity with 8 vectors, 304 us for 680 with twice as many; with 27 entries a row a tenth).
const BLOCK_THREADS: u32 = 128;
/// Where several vectors are multiplied at once and a row has more nonzeros than this, and than four times the mean,
/// rows are cut: the other rows of a tile would wait for it.
const BLOCK_LONG: usize = 128;
/// The most shared memory that a streamed tile may ask for.
const STREAM_BYTES: usize = 47 << 10;

/// The class of a unit is its lanes, and beside them, for tiles: fewer entries under way, rows of odd length, short
/// rows; for lanes straight from memory: how many entries are under way, from this bit on, more threads a block.
const FEW: u32 = 1 << 16;
const ODD: u32 = 1 << 17;
const BRIEF: u32 = 1 << 20;
const UNDER_WAY: u32 = 8;
const BROAD: u32 = 1 << 21;
/// The first entries are asked for before the launch ahead has ended.
pub(in crate::backend::cuda) const AHEAD: u32 = 1 << 19;

/// The constants of a unit of these kernels.
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

/// Threads of a block that streams rows: half of them for values of 4 bytes, so that tiles take as many bytes, and of
/// short rows.
fn stream_threads(value: &str, short: bool) -> u32 {
    if short || value == "f32" { THREADS / 2 } else { THREADS }
}

/// How a product goes through a CSR matrix.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) enum CsrWay {
    /// Lanes a row, straight from memory.
    Vector { shape: Shape },
    /// Tiles of rows through shared memory, which has room for `capacity` nonzeros.
    Streamed { shape: Shape, capacity: u32 },
    /// Tiles of equal work, of this class.
    Balanced { shape: Shape, class: u32 },
    /// Bins of rows by their lengths.
    Binned,
}

/// Rows of like length are streamed, in small matrices read by lanes; of all else small matrices go in bins, others are
/// balanced. V: values; `scattered`: whether x is read all over the vector ([`asks_spread`](super::asks_spread)).
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

/// The same for a product that is followed by x.y: small matrices are streamed, which joins the sums too, where that
/// gives the same bits, because a thread adds up a row either way and a product and a sum of real numbers are one
/// rounding.
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

/// Whether a thread a row suits rows that are read from the second-level cache.
fn alike(extent: RowExtent, mean: usize) -> bool {
    extent.longest <= 2 * mean as u64 + 8
}

/// Whether lanes a row suit such rows: then they may differ more, if blocks are still done at about the same time.
fn alike_in_groups(extent: RowExtent, mean: usize) -> bool {
    extent.longest <= 4 * mean as u64 && extent.fullest <= 48 * mean as u64
}

/// Lanes by the mean length of rows where they are alike.
fn csr_small<V: Element>(
    extent: RowExtent,
    rows: usize,
    nonzeros: usize,
    scattered: impl FnOnce() -> Result<Option<bool>>,
) -> Result<CsrWay> {
    let mean = nonzeros.div_ceil(rows.max(1));
    // Up to there a thread adds up a row, as it does where x.y follows.
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

/// The fewest that hold so many, or the most.
fn holding<const N: usize>(counts: [u32; N], many: u64) -> u32 {
    counts.into_iter().find(|&count| many <= u64::from(count)).unwrap_or(counts[N - 1])
}

/// In bins or in tiles of equal work.
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

/// By `mean` nonzeros a row.
pub(in crate::backend::cuda) fn csr_vector(rows: usize, mean: usize) -> CsrWay {
    let lanes = (mean / VECTOR_LANE).max(1).next_power_of_two().min(32) as u32;
    let unroll = if lanes == 1 { UNROLL } else { FEW_UNROLL };
    csr_by_lanes(rows, lanes | unroll << UNDER_WAY)
}

/// The class is the lanes and what they have under way.
fn csr_by_lanes(rows: usize, class: u32) -> CsrWay {
    let (threads, (lanes, _)) = (vector_threads(class), vector_constants(class));
    let shape = Shape::new(blocks(rows.div_ceil((threads / lanes) as usize)), threads);
    CsrWay::Vector { shape: shape.class(class) }
}

/// Lanes, and nonzeros of each under way.
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

/// In chunks where the fullest tile does not fit.
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
    // Rows of a tile lie in so many groups of 32. Copies start up to three places before a tile.
    let fullest = usize::try_from(extent.fullest).unwrap_or(usize::MAX).saturating_mul(tile.div_ceil(32));
    let entry = 4 + size_of::<V>();
    let capacity = fullest.saturating_add(3).min(STREAM_BYTES / entry - 31).next_multiple_of(32);
    let few = size_of::<V>() == 4 && lanes == 1 && mean >= STREAM_FEW;
    let kind = if short { FEW | BRIEF } else { [0, FEW, ODD][usize::from(few).max(2 * usize::from(odd))] };
    let shape = Shape::new(blocks(rows.div_ceil(tile)), threads).class(lanes | kind).shared(capacity * entry);
    CsrWay::Streamed { shape, capacity: capacity as u32 }
}

/// Whatever the rows are.
pub(in crate::backend::cuda) fn csr_balanced<V: Element>(
    rows: usize,
    nonzeros: usize,
    scattered: Option<bool>,
) -> CsrWay {
    let class = balanced::balanced_class::<V>(scattered);
    CsrWay::Balanced { shape: balanced::balanced(class, rows, nonzeros), class }
}

/// How CSR is multiplied with several vectors.
pub(in crate::backend::cuda) enum CsrBlock {
    /// Tiles of rows, with room in shared memory for `capacity` nonzeros.
    Rows { shape: Shape, capacity: u32 },
    /// So many tiles of equal work, and a warp a tile to join the rows that are cut.
    Tiles { tiles: usize, shape: Shape, joins: Shape },
}

/// Lanes for the vectors of a row, 16 bytes' worth each where `aligned` addresses allow it.
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
    // Twice the usual tile: where rows vary, a full one is worked off in chunks.
    let room = fullest.saturating_add(3).min(2 * mean * tile + 64).min(STREAM_BYTES / entry - 31);
    let capacity = room.next_multiple_of(32);
    // Warps leave a sum for each of their lanes there.
    let sums = (BLOCK_THREADS / 32 * lanes) as usize * fit * size_of::<T>();
    CsrBlock::Rows {
        shape: shape(blocks(rows.div_ceil(tile))).threads(BLOCK_THREADS).shared((capacity * entry).max(sums)),
        capacity: capacity as u32,
    }
}
