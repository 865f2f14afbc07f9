//! All tuning constants of the device's kernels, chosen by type, size class and chip. Kernel sources contain none:
//! constants are macros on the compiler's command line, and launches get their shapes here.

mod balanced;
mod batch;
mod binned;
mod compressed;
mod compressed_grid;
mod compressed_march;
mod convert;
mod csr;
mod fronts;
mod graph;
mod grid;
mod model;
mod peers;
mod primitives;
mod products;
mod recurrence;
mod resident;
mod sources;
mod sparse;
mod table;
mod triangular;

pub(super) use balanced::{
    CLUSTERED_TILES, SCATTERED_TILES, asks_spread, balanced_tiles, block_tiles, column_spread, scattered,
};
pub(super) use batch::{
    BATCH_KRYLOV_ROWS, BATCH_LANES, BATCH_ROWS, BATCH_SPARSE_PRICE, BATCH_SPARSE_ROWS, BLOCK_CLASSES,
    KRYLOV_CLASSES, LANES_CLASSES, SPARSE_CLASSES, batch_block, batch_krylov, batch_lanes, batch_sparse,
};
pub(super) use binned::{BINNED, BinnedShape, binned};
pub(super) use convert::*;
pub(super) use csr::*;
pub(super) use fronts::{
    FRONT_CLASSES, FRONT_GROUP, FRONT_SOLVES, front_entries, front_vectors, fronts_by_parts, fronts_large,
    fronts_small, small_fronts,
};
pub(super) use graph::{
    BFS_CHUNK, CLUSTERS, ORDER_COMPILING, ORDER_LOADING, PERMUTE_LONGEST, bfs, bfs_parents, bfs_part,
    cuthill_mckee, cuthill_mckee_tiles, per_row, per_vertex, permute, permute_long,
};
pub(super) use grid::row_shape;
pub(super) use model::PRODUCT_MODEL;
pub(super) use primitives::*;
pub(super) use products::*;
pub(super) use recurrence::{
    BasisProducts, FEW_ROWS, MOST_VECTORS, basis_products, basis_project, basis_update, hessenberg,
    linear_update, pair_products, pair_update, project_classes, scalars, triangular_solve,
};
pub(super) use resident::{
    RESIDENT, Resident, STREAMED, layout, likely_resident, likely_streamed, resident, resident_shared,
    streamed,
};

pub(super) use compressed::{
    FEW, LONG, STENCIL_ROWS, STENCILS, compressed_balanced, compressed_bases, compressed_blocks,
    compressed_fills, compressed_is_grid, compressed_kinds_stored, compressed_lines,
    compressed_measures_along, compressed_offsets, compressed_places, compressed_restores, compressed_rows,
    compressed_sections, compressed_sizes, compressed_stencil, compressed_survey, compressed_tiles,
};

pub(super) use compressed_grid::{
    CompressedGrid, GRID_HALVED, GRID_HOLES, GRID_MIRRORED, GridEnd, GridStencil, grid_classes, marks_pay,
};
pub(super) use compressed_march::{compressed_grid, march_classes};
pub(super) use peers::{PART_RANKS, PEERS_MOST, ROWS_BLOCKS, peers, peers_rows, peers_words};
pub(super) use sources::{gather_sum, per_run, stage_runs, stages_runs, sum_staged};
pub(super) use sparse::{
    CLASSICAL_UNITS, KNOWN_UNITS, LENGTH_UNITS, LENGTHS_OF_CLASSES, MANY_LONG, MERGED_LENGTH, MERGED_RUNS,
    MERGED_UNITS, ONE_CLASS, ROW_UNITS, SMOOTHED_UNITS, SORTED_CLASSES, TOO_FEW, block_lengths,
    block_of_rows, classical_lanes, classical_rows, group_blocks, group_rows, known_values, log_node_lanes,
    long_values, merged_rows, most_sorted, near_null_rows, node_lanes, product_lengths, product_rows,
    row_entries, row_threads, smoothed_rows, sorted_rows, strong_lanes,
};
pub(super) use triangular::{TRIANGULAR, rows_in_turn, triangular};

use super::chip::Chip;
use super::compile::Unit;
use super::shape::Shape;

/// Threads per block of elementwise kernels.
const ELEMENTWISE_THREADS: u32 = 256;
/// Elements in flight per thread of these kernels, in units of sixteen bytes.
const ELEMENTWISE_UNROLL: u32 = 4;
/// Maximum number of blocks of a reduction. There is memory for this number of partial results.
pub(super) const PARTIALS: usize = 4096;
/// Threads per block of a reduction.
const SUM_THREADS: u32 = 512;
/// Loads of sixteen bytes in flight per thread and operand of a reduction.
const SUM_UNROLL: u32 = 4;
/// Vectors of sixteen bytes in flight per thread and operand in the steps of a Krylov iteration. There are fewer
/// because these steps have more operands.
const KRYLOV_UNROLL: u32 = 2;

/// Warps per block if each warp has a small dense system in shared memory: for elements of up to 8 bytes, and for
/// larger ones.
const DENSE_WARPS: [u32; 2] = [4, 2];

/// Returns the constants with which a unit is compiled, as macros.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "memory.cu" | "post.cu" => vec![("THREADS", ELEMENTWISE_THREADS)],
        "vector_block.cu" => {
            vec![("THREADS", ELEMENTWISE_THREADS), ("SUM_THREADS", SUM_THREADS), ("SUM_UNROLL", SUM_UNROLL)]
        }
        "vector.cu" => vec![
            ("THREADS", ELEMENTWISE_THREADS),
            ("UNROLL", ELEMENTWISE_UNROLL),
            ("SUM_THREADS", SUM_THREADS),
            ("SUM_UNROLL", SUM_UNROLL),
            ("MAX_PARTIALS", PARTIALS as u32),
        ],
        "krylov.cu" | "krylov_block.cu" => krylov_constants(),
        // The first constant of `peers`, its number of threads, is omitted, because this kernel has another.
        "cg_part.cu" => [krylov_constants(), peers::constants()[1..].to_vec()].concat(),
        "chebyshev.cu" | "grid.cu" | "precision.cu" => {
            vec![("THREADS", ELEMENTWISE_THREADS)]
        }
        "grid_linear.cu" => vec![("THREADS", ELEMENTWISE_THREADS), ("ROWS", INTERPOLATED_ROWS)],
        "blocks.cu" | "sparse_inverse.cu" => {
            let wide = unit.type_of("SCALAR") == "c64";
            vec![("THREADS", ELEMENTWISE_THREADS), ("WARPS", DENSE_WARPS[usize::from(wide)])]
        }
        "batch_block.cu" | "batch_krylov.cu" | "batch_lanes.cu" | "batch_sparse.cu" => batch::constants(unit),
        "basis.cu" | "basis_project.cu" | "hessenberg.cu" | "linear_update.cu" | "pair_products.cu"
        | "pair_scalars.cu" | "pair_update.cu" | "scalars.cu" => recurrence::constants(unit),
        "aggregate.cu"
        | "classical.cu"
        | "coarsen.cu"
        | "group_inverses.cu"
        | "near_null.cu"
        | "smoothed_rows.cu"
        | "spadd.cu"
        | "spgemm.cu"
        | "spgemm_lengths.cu"
        | "spgemm_long.cu"
        | "spgemm_known.cu"
        | "spgemm_merged.cu"
        | "spgemm_merged_lengths.cu"
        | "spgemm_rows.cu"
        | "spgemm_sorted.cu"
        | "spgemm_sorted_lengths.cu"
        | "spgemm_values.cu" => sparse::constants(unit),
        "incomplete.cu" | "triangle.cu" | "triangular.cu" => triangular::constants(unit),
        "peers.cu" | "peers_rows.cu" => peers::constants(),
        file if file.starts_with("compressed") => compressed::constants(unit),
        "cg_layout.cu" => resident::layout_constants(),
        "cg_resident.cu" | "minres_resident.cu" => resident::constants(unit.size_class()),
        "cg_streamed.cu" => resident::streamed_constants(unit.size_class()),
        "convert_dia.cu"
        | "convert_rows.cu"
        | "convert_sizes.cu"
        | "convert_tails.cu"
        | "diagonals.cu"
        | "index.cu"
        | "length_order.cu"
        | "mirror.cu"
        | "stencil.cu"
        | "transpose.cu"
        | "transpose_sort.cu"
        | "transpose_windows.cu" => convert::constants(unit),
        "column_spread.cu" | "csr_balanced.cu" | "row_shape.cu" => balanced::constants(unit),
        "csr_binned.cu" => binned::constants(unit),
        "csr_block.cu" | "csr_block_tiles.cu" | "csr_krylov.cu" | "csr_stream.cu" | "csr_vector.cu" => {
            csr::constants(unit)
        }
        file if file.starts_with("fronts") => fronts::constants(unit),
        "gather_sum.cu" | "stage_runs.cu" | "staged_sum.cu" => sources::constants(unit),
        _ => products::constants(unit)
            .or_else(|| graph::constants(unit))
            .unwrap_or_else(|| primitives::constants(unit)),
    }
}

fn krylov_constants() -> Vec<(&'static str, u32)> {
    vec![
        ("THREADS", ELEMENTWISE_THREADS),
        ("UNROLL", KRYLOV_UNROLL),
        ("SUM_THREADS", SUM_THREADS),
        ("SUM_UNROLL", KRYLOV_UNROLL),
    ]
}

/// Returns whether the kernels of a unit wait for the previous launch themselves (`after_predecessors`), so that they
/// can be launched while it ends. These are products and the steps of recurrences, which take less time than a launch
/// for small systems.
pub(super) fn starts_early(unit: &Unit) -> bool {
    products::starts_early(unit.source()) || fronts::starts_early(unit.source())
}

/// Returns whether a chip of this capability can use a unit: chips before 9.0 have neither clusters nor copies in bulk.
pub(super) fn suits(unit: &Unit, capability: (u32, u32)) -> bool {
    let alone = match unit.source() {
        "cg_resident.cu" | "minres_resident.cu" => resident::cluster(unit.size_class()) <= 1,
        "bfs.cu" | "cuthill_mckee.cu" => unit.size_class() <= 1,
        "compressed_march.cu" | "scan_bulk.cu" => false,
        _ => true,
    };
    alone || capability >= (9, 0)
}

/// Returns whether the kernels of a unit depend on x in the first-level cache, so that shared memory should take only
/// as much of it as needed.
pub(super) fn wants_cache(unit: &Unit) -> bool {
    unit.source() == "csr_balanced.cu"
}

/// Returns a launch with a warp for each of `systems` small dense systems with elements of `element_bytes` bytes.
pub(super) fn dense(chip: Chip, systems: usize, element_bytes: usize) -> Shape {
    let warps = DENSE_WARPS[usize::from(element_bytes > 8)];
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / (32 * warps));
    let blocks = systems.div_ceil(warps as usize).min(4 * resident as usize);
    Shape::new(blocks as u32, 32 * warps)
}

/// Returns whether each product and sum is rounded separately, as on the host. In the steps of a solver, scaling by a
/// diagonal of powers of two then changes no bit. These kernels wait for memory, so this costs no time.
pub(super) fn rounds_as_written(unit: &Unit) -> bool {
    matches!(
        unit.source(),
        "krylov.cu"
            | "krylov_block.cu"
            | "cg_part.cu"
            | "cg_resident.cu"
            | "cg_streamed.cu"
            | "hessenberg.cu"
            | "linear_update.cu"
            | "minres_resident.cu"
            | "scalars.cu"
            | "aggregate.cu"
            | "classical.cu"
            | "coarsen.cu"
            | "group_inverses.cu"
            | "near_null.cu"
            | "smoothed_rows.cu"
            | "grid_linear.cu"
            | "spadd.cu"
            | "spgemm_known.cu"
            | "spgemm_merged.cu"
            | "spgemm_rows.cu"
            | "spgemm_sorted.cu"
            | "spgemm_values.cu"
    )
}

/// Rows per block in the products with an interpolating prolongation: the sums take 41 KB for the largest type.
const INTERPOLATED_ROWS: u32 = 32;

/// Returns a launch with three threads for each row, in whole blocks.
pub(super) fn three_a_row(rows: usize) -> Shape {
    Shape::new(rows.div_ceil(INTERPOLATED_ROWS as usize) as u32, 3 * INTERPOLATED_ROWS)
}

/// Returns a launch with enough blocks for every element once, but at most twice as many as the chip holds: kernels
/// loop with a grid stride.
pub(super) fn elementwise(chip: Chip, n: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / ELEMENTWISE_THREADS);
    let needed = n.div_ceil(ELEMENTWISE_THREADS as usize * ELEMENTWISE_UNROLL as usize);
    Shape::new(needed.min(2 * resident as usize) as u32, ELEMENTWISE_THREADS)
}

/// Returns the launch of a reduction: at least one block, which writes the zero of an empty input, and no more than
/// there is memory for partial results. It depends only on the size and the chip, so that a sum has the same bits every
/// time.
pub(super) fn sum(chip: Chip, n: usize, element_bytes: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / SUM_THREADS);
    let tile = SUM_THREADS as usize * SUM_UNROLL as usize * (16 / element_bytes).max(1);
    let blocks = n.div_ceil(tile).clamp(1, (resident as usize).min(PARTIALS));
    Shape::new(blocks as u32, SUM_THREADS)
}

/// Returns the launch of a reduction inside a Krylov step: as [`sum`], with fewer elements in flight per thread.
pub(super) fn krylov_sum(chip: Chip, n: usize, element_bytes: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / SUM_THREADS);
    let tile = SUM_THREADS as usize * KRYLOV_UNROLL as usize * (16 / element_bytes).max(1);
    Shape::new(n.div_ceil(tile).clamp(1, (resident as usize).min(PARTIALS)) as u32, SUM_THREADS)
}

/// Blocks per multiprocessor of the elementwise half of a Krylov step on one of several ranks.
const PART_BLOCKS: u32 = 4;

/// Returns the launch of the elementwise half of a Krylov step: a block per tile, which is 3 % faster than a grid
/// stride, but at least one block, which computes the scalars.
pub(super) fn krylov_map(n: usize, element_bytes: usize) -> Shape {
    let tile = ELEMENTWISE_THREADS as usize * KRYLOV_UNROLL as usize * (16 / element_bytes).max(1);
    Shape::new(n.div_ceil(tile).clamp(1, i32::MAX as usize) as u32, ELEMENTWISE_THREADS)
}

/// As [`krylov_map`] on one of several ranks, whose blocks read the sums of all ranks from their windows when they
/// start. That takes a wave of blocks 2.4 us longer on an H100, and 64 10^6 unknowns have 59 waves, so blocks loop with
/// a grid stride.
pub(super) fn krylov_part_map(chip: Chip, n: usize, element_bytes: usize) -> Shape {
    let shape = krylov_map(n, element_bytes);
    Shape::new(shape.blocks.min(PART_BLOCKS * chip.multiprocessors), shape.threads)
}

/// Returns the number of neighbouring elements that a block of [`krylov_part_map`] computes at a time.
pub(super) fn krylov_piece(element_bytes: usize) -> usize {
    ELEMENTWISE_THREADS as usize * (16 / element_bytes).max(1)
}

/// Returns the launch of a reduction of `k` interleaved vectors with `n` elements in all: as [`sum`], with k partial
/// results per block.
pub(super) fn block_sum(chip: Chip, k: usize, n: usize, element_bytes: usize) -> Shape {
    sums_of_rows(chip, k, n, element_bytes, SUM_UNROLL, PARTIALS / k)
}

/// Returns the launch of such a reduction inside a Krylov step, as [`krylov_sum`].
pub(super) fn krylov_block_sum(chip: Chip, k: usize, n: usize, element_bytes: usize) -> Shape {
    sums_of_rows(chip, k, n, element_bytes, KRYLOV_UNROLL, usize::MAX)
}

fn sums_of_rows(chip: Chip, k: usize, n: usize, element_bytes: usize, unroll: u32, most: usize) -> Shape {
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / SUM_THREADS)) as usize;
    let tile = whole_rows(SUM_THREADS, k) * unroll as usize * (16 / element_bytes).max(1);
    Shape::new(n.div_ceil(tile).clamp(1, resident.min(most)) as u32, SUM_THREADS)
}

/// Returns the launch of the elementwise half of a Krylov step of `k` systems, with a block per tile.
pub(super) fn krylov_block_map(k: usize, n: usize, element_bytes: usize) -> Shape {
    let tile = whole_rows(ELEMENTWISE_THREADS, k) * KRYLOV_UNROLL as usize * (16 / element_bytes).max(1);
    Shape::new(n.div_ceil(tile).clamp(1, i32::MAX as usize) as u32, ELEMENTWISE_THREADS)
}

/// Returns the number of threads per block that take part if each keeps its column: a multiple of k (`of_whole_rows` in
/// column_sums.cuh).
fn whole_rows(threads: u32, k: usize) -> usize {
    threads as usize / k * k
}

/// Returns a launch with a thread per row of a stored matrix, in the unit without a class.
pub(super) fn rows(chip: Chip, rows: usize) -> Shape {
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / grid::THREADS);
    let needed = rows.div_ceil(grid::THREADS as usize);
    Shape::new(needed.min(4 * resident as usize) as u32, grid::THREADS).class(2)
}

/// Returns the launch of a product with a CSR matrix. The lanes per row follow from the mean row length, rounded up to
/// a power of two.
pub(super) fn csr(chip: Chip, rows: usize, nonzeros: usize) -> Shape {
    let lanes = (nonzeros.div_ceil(rows.max(1)).next_power_of_two() / 2).clamp(2, 32) as u32;
    let resident = chip.multiprocessors * (chip.threads_per_multiprocessor / grid::THREADS);
    let needed = rows.div_ceil((grid::THREADS / lanes) as usize);
    Shape::new(needed.min(16 * resident as usize) as u32, grid::THREADS).class(lanes)
}

#[cfg(test)]
mod tests {
    use super::super::compile::catalogue;

    /// The constants of every unit of the catalogue can be computed from the types that the unit names.
    #[test]
    fn every_unit_has_its_constants() {
        for unit in catalogue() {
            super::constants(&unit);
        }
    }
}
