//! Constants and shapes of products with stored layouts other than CSR and the compressed one.

use super::csr::{AHEAD, SMALL};
use super::grid::{THREADS, blocks};
use super::{Chip, Shape, Unit};
use crate::scalar::Element;

/// Entries under way where a thread has a row of a small matrix in ELL or SELL, by whether rows have more entries than
/// the first, padding too.
const COLUMN_UNROLL: [u32; 2] = [8, 12];
/// Entries of each row under way in SELL, and of rows with many; of fewer, as many as there are.
const SELL_UNROLL: [u32; 2] = [7, 9];
/// Mean entries of a row above which sections pass by the first-level cache, a row a thread: 2 to 4 % with 81, but 1 %
/// the other way with 27.
const SELL_WIDE: usize = 40;
/// Threads of a block that multiplies sections, where a thread has a row and where it has two.
const SELL_THREADS: [u32; 2] = [128, 64];
/// Rows from which on blocks have more threads: to start one takes more than a nanosecond, but each multiprocessor
/// shall have some.
const SELL_BROAD_ROWS: usize = 1 << 15;
/// Rows of a block that multiplies diagonals, of which a thread has one or two, and rows where they are wide; entries
/// of a row under way. The chip starts 0.8 blocks a nanosecond: with 128 rows a block too few for 5 and 7 diagonals in
/// single precision.
const DIA_ROWS: u32 = 256;
const DIA_WIDE_ROWS: u32 = 128;
/// The latter, and where half of a matrix with wide rows is stored.
const DIA_UNROLL: [u32; 2] = [7, 14];
/// Blocks of a multiprocessor, at least, where half is stored, and with sums of 16 bytes; rows of a thread with x.y;
/// bytes of all diagonals from which on half of them is worth while: more than the second-level cache has.
const HALF_BLOCKS: [u32; 2] = [5, 3];
const HALF_TILES: u32 = 4;
const HALF_BYTES: usize = 1 << 26;
/// Entries under way in JDS, where diagonals' starts are read beside them.
const JDS_UNROLL: u32 = 4;
/// Nonzeros a thread of a tile of coordinates. Odd.
const COO_ITEMS: u32 = 7;
/// Up to so many blocks, the last of a launch joins their sums; more leave that to a launch of its own.
const FEW_BLOCKS: u32 = 1024;

/// The class of a unit is the height of a section, if it is a usual one, and beside it: two rows a thread, rows of many
/// entries, more entries under way, more threads a block.
pub(in crate::backend::cuda) const PAIRS: u32 = 1 << 16;
pub(in crate::backend::cuda) const WIDE: u32 = 1 << 17;
/// And half of a symmetric matrix by diagonals.
pub(in crate::backend::cuda) const HALF: u32 = 1 << 20;
const MANY: u32 = 1 << 18;
const BROAD: u32 = 1 << 21;

/// The constants of a unit of these kernels.
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

/// Files whose kernels all wait for the launch before them: products of one launch. Where a second launch joins what
/// the first left, both take 2 us longer when started early.
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
    let broad = if rows >= SELL_BROAD_ROWS { BROAD } else { 0 };
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
    dia_shape(rows, class)
}

/// Whether products with half of a symmetric matrix are faster than with all of so many places of so many bytes: what
/// the second-level cache gives out stays the same, so it is memory that must hold them up, and with values of 4 bytes
/// that is no longer so.
pub(in crate::backend::cuda) fn half_pays(places: usize, value: usize) -> bool {
    value >= 8 && places.saturating_mul(value) >= HALF_BYTES
}

/// A thread a row of a symmetric matrix, of which half is stored.
pub(in crate::backend::cuda) fn half_dia(rows: usize, diagonals: usize) -> Shape {
    dia_shape(rows, if diagonals > SELL_WIDE { HALF | WIDE } else { HALF })
}

/// With x.y, for products in the shape of [`half_dia`] of so many diagonals.
pub(in crate::backend::cuda) fn half_dia_dot<T: Element>(rows: usize, diagonals: usize) -> Shape {
    let (shape, broad) = (half_dia(rows, diagonals), size_of::<T>() > 8);
    let class = if diagonals > SELL_WIDE { HALF | WIDE } else { HALF };
    shape.blocks(shape.blocks.div_ceil(dia_tiles(class, broad)) as usize)
}

/// Rows that a thread takes one after the other where x.y is wanted too, so that a block's sum holds fewer rows up:
/// where half of short rows is stored, and not of `broad` sums of 16 bytes.
fn dia_tiles(class: u32, broad: bool) -> u32 {
    if class == HALF && !broad { HALF_TILES } else { 1 }
}

/// Blocks of a multiprocessor, at least, where half is stored: broad sums take more registers. 0 is the compiler's
/// affair.
fn half_blocks(class: u32, broad: bool) -> u32 {
    if class & HALF != 0 { HALF_BLOCKS[usize::from(broad)] } else { 0 }
}

fn dia_shape(rows: usize, class: u32) -> Shape {
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
        _ if class & WIDE != 0 => (DIA_WIDE_ROWS, 1),
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
