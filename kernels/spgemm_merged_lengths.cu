// The lengths of the rows of a product of sparse matrices, C = A B, where rows of A have few entries
// (merged_products.cuh).
//
// Bytes moved: the columns of B's rows once per product (mostly from the caches), A's once.
//
// Constants: OFFSET (of A and B), RUNS (maximum number of rows of B that are merged), THREADS.
#include "merged_products.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    merged_lengths(u64 rows, const I* a_offsets, const u32* a_columns, const I* b_offsets, const u32* b_columns,
                   u32* lengths) {
    const Nothing* const none = nullptr;
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS)
        lengths[row] = merge(runs_of(row, a_offsets, a_columns, none, b_offsets), b_columns, none, [](u32, u32, Nothing) {});
}
