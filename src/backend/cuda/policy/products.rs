//! Constants and shapes of products with stored matrices, and the choice between the ways through a CSR matrix.

use super::grid::{THREADS, blocks};
use super::{Chip, Shape, Unit, balanced, binned};
use crate::backend::RowExtent;
use crate::error::Result;
use crate::scalar::{Element, Scalar};

/// Entries under way where a thread has a row, and where lanes share a row or diagonals' starts are read beside the
/// entries.
const UNROLL: u32 = 8;
const FEW_UNROLL: u32 = 4;
/// And where a thread has a row of a small matrix: in CSR the fewest of these that the longest row has, for one more
/// trip to memory takes half a microsecond, and registers for entries that no row has leave room for fewer blocks.
const ROW_UNROLL: [u32; 4] = [6, 8, 12, 16];
/// And in ELL and SELL, by whether rows have more entries than the first, padding too.
const COLUMN_UNROLL: [u32; 2] = [8, 12];
/// Entries of each row under way in SELL, and of rows with many; of fewer, as many as there are.
const SELL_UNROLL: [u32; 2] = [7, 9];
/// Mean entries of a row above which sections pass by the first-level cache, a row a thread: 2 to 4 % with 81, but 1 %
/// the other way with 27.
const SELL_WIDE: usize = 40;
/// Threads of a block that multiplies sections, where a thread has a row and where it has two.
const SELL_THREADS: [u32; 2] = [128, 64];
/// Rows of a block that multiplies diagonals, of which a thread has one or two, and rows where they are wide; entries
/// of a row under way. The chip starts 0.8 blocks a nanosecond: with 128 rows a block too few for 5 and 7 diagonals in
/// single precision.
const DIA_ROWS: u32 = 256;
const DIA_WIDE_ROWS: u32 = 128;
const DIA_UNROLL: u32 = 7;
/// Nonzeros a thread of a tile of coordinates. Odd.
const COO_ITEMS: u32 = 7;
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
const SMALL: usize = 1 << 20;
/// ... by one lane where rows are short, else by so many for as many nonzeros of a row of the mean length (then each
/// has two or three), ...
const SMALL_LANES: [usize; 2] = [4, 7];
/// ... but no more than read a line of values of 8 bytes, unless rows are longer than these have under way, ...
const LINE_LANES: usize = 16;
/// ... which is the fewest of these that hold the longest row, if so many threads at most find room at once, else as
/// few as there are.
const LANE_UNROLL: [u32; 3] = [3, 6, 8];
const SMALL_THREADS: usize = 1 << 17;
/// Threads of a block where each has a row, and rows from which on they are as many as in other blocks, in CSR and in
/// SELL: to start a block takes more than a nanosecond, but each multiprocessor shall have some.
const SCALAR_THREADS: u32 = 128;
const BROAD_ROWS: [usize; 2] = [1 << 16, 1 << 15];
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
/// Up to so many blocks, the last of a launch joins their sums; more leave that to a launch of its own.
const FEW_BLOCKS: u32 = 1024;

/// The constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Option<Vec<(&'static str, u32)>> {
    let threads = ("THREADS", THREADS);
    let lanes = ("LANES", (unit.size_class() & !(FEW | ODD | BRIEF)).clamp(1, 32));
    Some(match unit.source() {
        "csr_krylov.cu" => vec![threads, lanes],
        "csr_vector.cu" => {
            let (lanes, unroll) = vector_constants(unit.size_class());
            let ahead = u32::from(unit.size_class() & AHEAD != 0);
            let threads = ("THREADS", vector_threads(unit.size_class()));
            vec![threads, ("LANES", lanes), ("UNROLL", unroll), ("AHEAD", ahead)]
        }
        "csr_block.cu" => vec![("THREADS", BLOCK_THREADS), lanes, ("UNROLL", FEW_UNROLL)],
        "csr_block_tiles.cu" => {
            vec![threads, lanes, ("UNROLL", FEW_UNROLL)]
        }
        "csr_stream.cu" => {
            let odd = unit.size_class() & ODD != 0;
            let unroll = if odd {
                STREAM_ODD_UNROLL
            } else if unit.size_class() & FEW != 0 {
                FEW_UNROLL
            } else {
                UNROLL
            };
            let threads = stream_threads(unit.type_of("STORED"), unit.size_class() & BRIEF != 0);
            vec![("THREADS", threads), lanes, ("UNROLL", unroll), ("IN_BULK", u32::from(odd))]
        }
        "sell.cu" => vec![
            ("THREADS", sell_block(unit.size_class()).0),
            ("HEIGHT", unit.size_class() & !(PAIRS | WIDE | AHEAD | MANY | BROAD)),
            ("WIDE", u32::from(unit.size_class() & WIDE != 0)),
            ("AHEAD", u32::from(unit.size_class() & AHEAD != 0)),
            ("ROWS", sell_block(unit.size_class()).1),
            ("UNROLL", sell_unroll(unit.size_class())),
        ],
        "dia.cu" => vec![
            ("THREADS", dia_block(unit.size_class()).0),
            ("ROWS", dia_block(unit.size_class()).1),
            ("WIDE", u32::from(unit.size_class() & WIDE != 0)),
            ("UNROLL", DIA_UNROLL),
        ],
        "ell.cu" => {
            let many = usize::from(unit.size_class() & MANY != 0);
            vec![threads, ("UNROLL", COLUMN_UNROLL[many]), ("EAGER", unit.size_class() & !MANY)]
        }
        "jds.cu" => vec![threads, ("UNROLL", FEW_UNROLL)],
        "coo.cu" => vec![threads, ("ITEMS", COO_ITEMS)],
        _ => return None,
    })
}

/// Files whose kernels all wait for the launch before them: products of one launch. Where a second launch joins what
/// the first left, both take 2 us longer when started early.
pub(super) fn starts_early(source: &str) -> bool {
    matches!(
        source,
        "csr_balanced.cu"
            | "csr_binned.cu"
            | "csr_block.cu"
            | "csr_stream.cu"
            | "csr_vector.cu"
            | "dia.cu"
            | "ell.cu"
            | "jds.cu"
            | "sell.cu"
            | "slim.cu"
            | "slim_grid.cu"
            | "slim_kinds.cu"
            | "slim_kinds_stored.cu"
            | "slim_march.cu"
            | "slim_stencil.cu"
            | "swept.cu"
    )
}

/// Beside the lanes in a unit's class: fewer entries under way, rows of odd length, short rows; or how many entries are
/// under way, from this bit on.
const FEW: u32 = 1 << 16;
const ODD: u32 = 1 << 17;
const BRIEF: u32 = 1 << 20;
const UNDER_WAY: u32 = 8;
/// Beside a height: more entries under way. Beside that or lanes: more threads a block.
const MANY: u32 = 1 << 18;
const BROAD: u32 = 1 << 21;
/// Beside either: the first entries are asked for before the launch ahead has ended.
pub(in crate::backend::cuda) const AHEAD: u32 = 1 << 19;
/// Beside the height in a unit's class: two rows a thread.
pub(in crate::backend::cuda) const PAIRS: u32 = 1 << 16;
/// And rows of many entries.
pub(in crate::backend::cuda) const WIDE: u32 = 1 << 17;

/// Threads of a block that streams rows: half of them for values of 4 bytes, so that tiles take as many bytes, and of
/// short rows.
fn stream_threads(value: Option<&str>, short: bool) -> u32 {
    if short || value == Some("f32") { THREADS / 2 } else { THREADS }
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
        let broad = if rows >= BROAD_ROWS[0] { BROAD } else { 0 };
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
    let threads = stream_threads(Some(V::NAME), short);
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

/// A thread a row.
pub(in crate::backend::cuda) fn row_a_thread(rows: usize) -> Shape {
    Shape::new(blocks(rows.div_ceil(THREADS as usize)), THREADS)
}

/// A thread a row; where all entries lie in the second-level cache, one that asks for padding too.
pub(in crate::backend::cuda) fn ell(rows: usize, width: usize) -> Shape {
    let eager = rows.saturating_mul(width) < SMALL;
    let many = if eager && width > COLUMN_UNROLL[0] as usize { MANY } else { 0 };
    row_a_thread(rows).class(u32::from(eager) | many)
}

/// A thread for two neighbouring rows of a SELL section, where their entries are aligned for one load and their sums,
/// of type T, take few registers; else, and where entries are few and threads with them or rows have many, for a row.
/// Usual heights are constants of the kernel.
pub(in crate::backend::cuda) fn sell<T: Element>(
    rows: usize,
    entries: usize,
    height: usize,
    aligned: bool,
    padding_known: bool,
) -> Shape {
    let wide = if entries >= SMALL && entries / rows.max(1) > SELL_WIDE { WIDE } else { 0 };
    let class = match height {
        16 | 32 if wide > 0 => height as u32 | wide,
        16 | 32 if aligned && size_of::<T>() <= 8 && entries >= SMALL => height as u32 | PAIRS,
        16 | 32 => height as u32,
        _ => 0,
    };
    let many = if entries > COLUMN_UNROLL[0] as usize * rows { MANY } else { 0 };
    let broad = if rows >= BROAD_ROWS[1] { BROAD } else { 0 };
    let class = if entries < SMALL && padding_known { class | AHEAD | many | broad } else { class };
    let (threads, rows_a_thread) = sell_block(class);
    Shape::new(blocks(rows.div_ceil((threads * rows_a_thread) as usize)), threads).class(class)
}

/// A thread for two neighbouring rows where elements take 4 bytes and values are aligned for one load, else for one: so
/// loads of x are whole lines of the first-level cache, and x.y costs 3 % of a product and not 10.
pub(in crate::backend::cuda) fn dia<T: Element>(rows: usize, diagonals: usize, aligned: bool) -> Shape {
    let class = match rows.saturating_mul(diagonals) {
        places if places < SMALL => 0,
        _ if diagonals > SELL_WIDE => WIDE,
        _ if aligned && size_of::<T>() <= 4 => PAIRS,
        _ => 0,
    };
    let (threads, rows_a_thread) = dia_block(class);
    Shape::new(blocks(rows.div_ceil((threads * rows_a_thread) as usize)), threads).class(class)
}

/// A thread a column of A^T, in the unit of a row a thread.
pub(in crate::backend::cuda) fn dia_transposed(columns: usize) -> Shape {
    let (threads, _) = dia_block(0);
    Shape::new(blocks(columns.div_ceil(threads as usize)), threads)
}

/// Threads of a block, and rows of a thread.
fn dia_block(class: u32) -> (u32, u32) {
    match class {
        PAIRS => (DIA_ROWS / 2, 2),
        WIDE => (DIA_WIDE_ROWS, 1),
        _ => (DIA_ROWS, 1),
    }
}

/// Threads of a block, and rows of a thread.
fn sell_block(class: u32) -> (u32, u32) {
    match class {
        _ if class & PAIRS != 0 => (SELL_THREADS[1], 2),
        _ if class & BROAD != 0 => (THREADS, 1),
        _ => (SELL_THREADS[0], 1),
    }
}

/// Entries of each row under way.
fn sell_unroll(class: u32) -> u32 {
    if class & AHEAD != 0 {
        COLUMN_UNROLL[usize::from(class & MANY != 0)]
    } else {
        SELL_UNROLL[usize::from(class & WIDE != 0)]
    }
}

/// Whether the last block of a launch of this shape joins the sums of all.
pub(in crate::backend::cuda) fn joins_sums(shape: Shape) -> bool {
    shape.blocks <= FEW_BLOCKS
}

/// Tiles of coordinates, and a warp a tile to join them.
pub(in crate::backend::cuda) fn coo(nonzeros: usize) -> (Shape, Shape) {
    let tiles = nonzeros.div_ceil((THREADS * COO_ITEMS) as usize);
    (Shape::new(blocks(tiles), THREADS), Shape::new(blocks(tiles.div_ceil(THREADS as usize / 32)), THREADS))
}

/// A thread a nonzero.
pub(in crate::backend::cuda) fn coo_atomic(chip: Chip, nonzeros: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS);
    Shape::new(blocks(nonzeros.div_ceil(THREADS as usize)).min(16 * resident), THREADS)
}

#[cfg(test)]
mod tests {
    use super::starts_early;
    use crate::backend::cuda::compile::SOURCES;

    #[test]
    fn every_kernel_that_starts_early_waits_first() {
        for (name, text) in SOURCES.iter().filter(|(name, _)| starts_early(name)) {
            let kernels: Vec<&str> = text.split("__global__").skip(1).collect();
            assert!(!kernels.is_empty(), "{name}");
            for kernel in kernels {
                let body = kernel.split_once('{').unwrap().1.trim_start();
                let told = ["AHEAD && settled", "EAGER && settled", "settled"].iter().any(|ahead| {
                    body.starts_with(&format!("before_matrix({ahead});"))
                        && (body.contains(&format!("before_vectors({ahead});")) || body.contains("sum_ahead"))
                });
                // Before it, at most what touches no global memory.
                let waits = body.trim_start_matches("const Part part = prepare_ring(grid);").trim_start();
                assert!(told || waits.starts_with("after_predecessors();"), "{name}: {kernel}");
            }
        }
    }
}
