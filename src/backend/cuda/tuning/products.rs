//! Constants and launch shapes of products with stored formats other than CSR and the compressed one.

use super::csr::{AHEAD, SMALL};
use super::grid::{THREADS, blocks};
use super::{Chip, Shape, Unit};
use crate::scalar::Element;

/// Entries in flight with one thread per row of a small matrix in ELL or SELL. The second number applies if rows have
/// more entries than the first, including padding.
const COLUMN_UNROLL: [u32; 2] = [8, 12];
/// Entries per row in flight in SELL, and the same for rows with many entries. A row with fewer entries has all of them
/// in flight.
const SELL_UNROLL: [u32; 2] = [7, 9];
/// Above this mean number of entries per row, slices bypass the first-level cache, with one thread per row: 2 to 4 %
/// faster with 81 entries, but 1 % slower with 27.
const SELL_WIDE: usize = 40;
/// Threads per block of SELL products with one row per thread, and with two.
const SELL_THREADS: [u32; 2] = [128, 64];
/// From this number of rows on, blocks have more threads: to start a block takes more than a nanosecond, but each
/// multiprocessor should have some.
const SELL_BROAD_ROWS: usize = 1 << 15;
/// Rows per block of products with diagonals, with one or two rows per thread, and the same for rows of many entries.
/// The chip starts 0.8 blocks per nanosecond, which with 128 rows per block is too slow for 5 and 7 diagonals in single
/// precision.
const DIA_ROWS: u32 = 256;
const DIA_WIDE_ROWS: u32 = 128;
/// Entries per row in flight, and the same if half of a matrix with many entries per row is stored.
const DIA_UNROLL: [u32; 2] = [7, 14];
/// If half of a matrix is stored: minimum number of blocks per multiprocessor, also with sums of 16 bytes; rows per
/// thread with x.y; and the number of bytes of all diagonals from which on this is worthwhile, more than the
/// second-level cache holds.
const HALF_BLOCKS: [u32; 2] = [5, 3];
const HALF_TILES: u32 = 4;
const HALF_BYTES: usize = 1 << 26;
/// Entries in flight in JDS. There are fewer because the starts of diagonals are read too.
const JDS_UNROLL: u32 = 4;
/// Nonzeros per thread of a tile of coordinates; must be odd.
const COO_ITEMS: u32 = 7;
/// Up to this number of blocks, the last block of a launch adds up the sums of all; with more, a separate launch does.
const FEW_BLOCKS: u32 = 1024;

/// The class of a unit is the height of a slice, if it is a usual one, with flags: two rows per thread, rows of many
/// entries, more entries in flight, more threads per block.
pub(in crate::backend::cuda) const PAIRS: u32 = 1 << 16;
pub(in crate::backend::cuda) const WIDE: u32 = 1 << 17;
/// Flag: half of a symmetric matrix is stored by diagonals.
pub(in crate::backend::cuda) const HALF: u32 = 1 << 20;
const MANY: u32 = 1 << 18;
const BROAD: u32 = 1 << 21;

/// Returns the constants of a unit of these kernels.
pub(super) fn constants(unit: &Unit) -> Option<Vec<(&'static str, u32)>> {
    let threads = ("THREADS", THREADS);
    Some(match unit.source() {
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
            ("BLOCKS", half_blocks(unit.size_class(), unit.type_of("SCALAR") == "c64")),
            ("TILES", dia_tiles(unit.size_class(), unit.type_of("SCALAR") == "c64")),
            ("ROWS", dia_block(unit.size_class()).1),
            ("WIDE", u32::from(unit.size_class() == WIDE)),
            ("HALF", u32::from(unit.size_class() & HALF != 0)),
            ("UNROLL", DIA_UNROLL[usize::from(unit.size_class() == HALF | WIDE)]),
        ],
        "ell.cu" => {
            let many = usize::from(unit.size_class() & MANY != 0);
            vec![threads, ("UNROLL", COLUMN_UNROLL[many]), ("EAGER", unit.size_class() & !MANY)]
        }
        "jds.cu" => vec![threads, ("UNROLL", JDS_UNROLL)],
        "coo.cu" => vec![threads, ("ITEMS", COO_ITEMS)],
        _ => return None,
    })
}

/// Returns whether all kernels of a file wait for the previous launch themselves: those of products in one launch. If a
/// second launch processes results of the first, both take 2 us longer when they start early.
pub(super) fn starts_early(source: &str) -> bool {
    matches!(
        source,
        "basis.cu"
            | "basis_project.cu"
            | "cg_part.cu"
            | "csr_balanced.cu"
            | "csr_binned.cu"
            | "csr_block.cu"
            | "csr_stream.cu"
            | "csr_vector.cu"
            | "dia.cu"
            | "ell.cu"
            | "hessenberg.cu"
            | "jds.cu"
            | "linear_update.cu"
            | "pair_products.cu"
            | "pair_scalars.cu"
            | "pair_update.cu"
            | "peers_rows.cu"
            | "post.cu"
            | "scalars.cu"
            | "sell.cu"
            | "compressed.cu"
            | "compressed_balanced.cu"
            | "compressed_grid.cu"
            | "compressed_kinds.cu"
            | "compressed_kinds_stored.cu"
            | "compressed_march.cu"
            | "compressed_stencil.cu"
    )
}

/// Returns a launch with a thread per row.
pub(in crate::backend::cuda) fn row_a_thread(rows: usize) -> Shape {
    Shape::new(blocks(rows.div_ceil(THREADS as usize)), THREADS)
}

/// Returns a launch with a thread per row. If all entries fit the second-level cache, threads load padding as well.
pub(in crate::backend::cuda) fn ell(rows: usize, width: usize) -> Shape {
    let eager = rows.saturating_mul(width) < SMALL;
    let many = if eager && width > COLUMN_UNROLL[0] as usize { MANY } else { 0 };
    row_a_thread(rows).class(u32::from(eager) | many)
}

/// Returns the launch for SELL. A thread processes two neighbouring rows of a slice if their entries are aligned for
/// one load, and sums, of type T, take few registers. It processes one if not, or if rows are long, or if there are few
/// entries and therefore few threads. Usual heights are constants of the kernel.
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
    let broad = if rows >= SELL_BROAD_ROWS { BROAD } else { 0 };
    let class = if entries < SMALL && padding_known { class | AHEAD | many | broad } else { class };
    let (threads, rows_a_thread) = sell_block(class);
    Shape::new(blocks(rows.div_ceil((threads * rows_a_thread) as usize)), threads).class(class)
}

/// Returns the launch for diagonals. A thread processes two neighbouring rows if elements take 4 bytes and values are
/// aligned for one load, otherwise one row: loads of x are then whole lines of the first-level cache, and x.y costs 3 %
/// of a product instead of 10.
pub(in crate::backend::cuda) fn dia<T: Element>(rows: usize, diagonals: usize, aligned: bool) -> Shape {
    let class = match rows.saturating_mul(diagonals) {
        places if places < SMALL => 0,
        _ if diagonals > SELL_WIDE => WIDE,
        _ if aligned && size_of::<T>() <= 4 => PAIRS,
        _ => 0,
    };
    dia_shape(rows, class)
}

/// Returns whether products with half of a symmetric matrix are faster than with all of it, for this number of places
/// and of bytes per value. The traffic of the second-level cache stays the same, so memory must be the limit; with
/// values of 4 bytes it no longer is.
pub(in crate::backend::cuda) fn half_pays(places: usize, value: usize) -> bool {
    value >= 8 && places.saturating_mul(value) >= HALF_BYTES
}

/// Returns a launch with a thread per row of a symmetric matrix of which half is stored.
pub(in crate::backend::cuda) fn half_dia(rows: usize, diagonals: usize) -> Shape {
    dia_shape(rows, if diagonals > SELL_WIDE { HALF | WIDE } else { HALF })
}

/// Returns the launch of [`half_dia`] for a product with x.y.
pub(in crate::backend::cuda) fn half_dia_dot<T: Element>(rows: usize, diagonals: usize) -> Shape {
    let (shape, broad) = (half_dia(rows, diagonals), size_of::<T>() > 8);
    let class = if diagonals > SELL_WIDE { HALF | WIDE } else { HALF };
    shape.blocks(shape.blocks.div_ceil(dia_tiles(class, broad)) as usize)
}

/// Returns the number of rows that a thread takes one after another in a product with x.y, so that the sum of a block
/// delays fewer rows. It is more than one if half of a matrix with short rows is stored, unless sums are `broad` (16
/// bytes).
fn dia_tiles(class: u32, broad: bool) -> u32 {
    if class == HALF && !broad { HALF_TILES } else { 1 }
}

/// Returns the minimum number of blocks per multiprocessor if half is stored: broad sums take more registers. 0 leaves
/// it to the compiler.
fn half_blocks(class: u32, broad: bool) -> u32 {
    if class & HALF != 0 { HALF_BLOCKS[usize::from(broad)] } else { 0 }
}

fn dia_shape(rows: usize, class: u32) -> Shape {
    let (threads, rows_a_thread) = dia_block(class);
    Shape::new(blocks(rows.div_ceil((threads * rows_a_thread) as usize)), threads).class(class)
}

/// Returns a launch with a thread per column of A^T, in the unit with one row per thread.
pub(in crate::backend::cuda) fn dia_transposed(columns: usize) -> Shape {
    let (threads, _) = dia_block(0);
    Shape::new(blocks(columns.div_ceil(threads as usize)), threads)
}

/// Returns the threads per block, and the rows per thread.
fn dia_block(class: u32) -> (u32, u32) {
    match class {
        PAIRS => (DIA_ROWS / 2, 2),
        _ if class & WIDE != 0 => (DIA_WIDE_ROWS, 1),
        _ => (DIA_ROWS, 1),
    }
}

/// Returns the threads per block, and the rows per thread.
fn sell_block(class: u32) -> (u32, u32) {
    match class {
        _ if class & PAIRS != 0 => (SELL_THREADS[1], 2),
        _ if class & BROAD != 0 => (THREADS, 1),
        _ => (SELL_THREADS[0], 1),
    }
}

/// Returns the entries per row in flight.
fn sell_unroll(class: u32) -> u32 {
    if class & AHEAD != 0 {
        COLUMN_UNROLL[usize::from(class & MANY != 0)]
    } else {
        SELL_UNROLL[usize::from(class & WIDE != 0)]
    }
}

/// Returns whether the last block of a launch of this shape adds up the sums of all blocks.
pub(in crate::backend::cuda) fn joins_sums(shape: Shape) -> bool {
    shape.blocks <= FEW_BLOCKS
}

/// Returns the launch for tiles of coordinates, and a launch with a warp per tile that joins rows that are divided
/// between tiles.
pub(in crate::backend::cuda) fn coo(nonzeros: usize) -> (Shape, Shape) {
    let tiles = nonzeros.div_ceil((THREADS * COO_ITEMS) as usize);
    (Shape::new(blocks(tiles), THREADS), Shape::new(blocks(tiles.div_ceil(THREADS as usize / 32)), THREADS))
}

/// Returns a launch with a thread per nonzero.
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
                // Code before the wait must not access global memory.
                let waits = body.trim_start_matches("const Part part = prepare_ring(grid);").trim_start();
                assert!(told || waits.starts_with("after_predecessors();"), "{name}: {kernel}");
            }
        }
    }
}
