// The rows of a product of sparse matrices, C = A B, where rows of A have few entries (merged_products.cuh) and the
// lengths of C's rows are known.
//
// The rows of C of a warp are written to shared memory first, so that the warp can write them to memory contiguously.
// What does not fit is written by each thread directly.
//
// Bytes moved: B's rows once per product (mostly from the caches), A's and C's once.
//
// Constants: SCALAR, OFFSET (of A and B), TARGET (of C), RUNS (maximum number of rows of B that are merged), ROOM
// (entries of C per warp), THREADS.
#include "merged_products.cuh"

typedef SCALAR T;
typedef TARGET J;

// Columns of C are written unless they are known; then values alone are.
extern "C" __global__ void __launch_bounds__(THREADS)
    merged_rows(u64 rows, const I* a_offsets, const u32* a_columns, const T* a_values, const I* b_offsets,
                const u32* b_columns, const T* b_values, const J* offsets, u32 with_columns, u32* columns, T* values) {
    __shared__ u32 columns_of[THREADS / 32][ROOM];
    __shared__ T values_of[THREADS / 32][ROOM];
    u32* const near_columns = columns_of[threadIdx.x / 32];
    T* const near_values = values_of[threadIdx.x / 32];
    for (u64 first = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32 * 32; first < rows;
         first += u64(gridDim.x) * THREADS) {
        const u64 row = first + lane_id(), begin = offsets[first];
        if (row < rows) {
            const u32 place = u32(offsets[row] - begin), room = u32(offsets[row + 1] - begin) - place;
            const auto put = [&](u32 number, u32 column, T sum) {
                // If the given pattern is not that of the product, nothing is written beyond it.
                if (number >= room) return;
                const u32 at = place + number;
                if (at < ROOM) {
                    near_columns[at] = column;
                    near_values[at] = sum;
                } else {
                    if (with_columns) columns[begin + at] = column;
                    values[begin + at] = sum;
                }
            };
            u32 number = merge(runs_of(row, a_offsets, a_columns, a_values, b_offsets), b_columns, b_values, put);
            for (; number < room; number++) put(number, 0, T());
        }
        __syncwarp();
        const u64 entries = u64(offsets[min(first + 32, rows)]) - begin;
        for (u32 j = lane_id(); j < min(entries, u64(ROOM)); j += 32) {
            if (with_columns) columns[begin + j] = near_columns[j];
            values[begin + j] = near_values[j];
        }
        __syncwarp();
    }
}
