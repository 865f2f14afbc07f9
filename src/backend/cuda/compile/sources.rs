//! The text of every kernel, inside the program.

macro_rules! embed {
    ($($file:literal),* $(,)?) => { &[$(($file, include_str!(concat!("../../../../kernels/", $file)))),*] };
}

/// Kernel files, by name.
pub const SOURCES: &[(&str, &str)] = embed![
    "blocks.cu",
    "cg_layout.cu",
    "cg_resident.cu",
    "cg_streamed.cu",
    "chebyshev.cu",
    "bfs.cu",
    "colour.cu",
    "compact.cu",
    "components.cu",
    "convert_dia.cu",
    "convert_rows.cu",
    "convert_sizes.cu",
    "convert_tails.cu",
    "coo.cu",
    "csr_balanced.cu",
    "csr_block.cu",
    "csr_block_tiles.cu",
    "csr_krylov.cu",
    "csr_stream.cu",
    "csr_vector.cu",
    "dia.cu",
    "diagonals.cu",
    "ell.cu",
    "cuthill_mckee.cu",
    "gather.cu",
    "gather_sum.cu",
    "histogram.cu",
    "index.cu",
    "jds.cu",
    "keys.cu",
    "krylov.cu",
    "memory.cu",
    "merge.cu",
    "number.cu",
    "pack.cu",
    "precision.cu",
    "pattern.cu",
    "permute.cu",
    "reduce.cu",
    "reduce_by_key.cu",
    "row_shape.cu",
    "scan.cu",
    "scan_any.cu",
    "scan_bulk.cu",
    "segmented.cu",
    "segmented_sort.cu",
    "sell.cu",
    "slim.cu",
    "slim_fill.cu",
    "slim_kinds.cu",
    "slim_long.cu",
    "slim_restore.cu",
    "slim_stencil.cu",
    "slim_survey.cu",
    "sort.cu",
    "sparse_inverse.cu",
    "stencil.cu",
    "transpose.cu",
    "vector.cu",
];

/// Headers that any of them may include, by name.
pub const HEADERS: &[(&str, &str)] = embed![
    "across.cuh",
    "block_sum.cuh",
    "bulk.cuh",
    "cg_meeting.cuh",
    "cg_recurrence.cuh",
    "cg_state.cuh",
    "chebyshev.cuh",
    "cluster.cuh",
    "combine.cuh",
    "common.cuh",
    "complex.cuh",
    "dense.cuh",
    "dia.cuh",
    "interleaved.cuh",
    "lookback.cuh",
    "narrow.cuh",
    "open_run.cuh",
    "product.cuh",
    "row.cuh",
    "slim.cuh",
    "stage.cuh",
    "tile_segments.cuh",
    "tile_start.cuh",
    "team.cuh"
];

/// Text of a kernel file.
pub(super) fn source(name: &str) -> &'static str {
    match SOURCES.iter().find(|(file, _)| *file == name) {
        Some((_, text)) => text,
        // Units are constants of this crate; `tests/kernels_compile.rs` compiles every one of them.
        None => unreachable!("kernel file {name} is not in the table of sources"),
    }
}
