// P A P^T of a CSR matrix: rows gathered in their new order, columns renumbered and ascending again.
//
// LANES threads per row: new columns are written to shared memory, and the place of an entry is the number of smaller
// columns. Rows with more than 8 * LANES entries are listed and get a block each; rows that are too long for that too
// are left unsorted, for the caller to sort.
//
// Constants: OFFSET, ITEM_BYTES (of a value), THREADS, LANES (a power of two), LONGEST (entries that a block can sort).
#include "common.cuh"

typedef OFFSET I;
typedef unsigned_of<ITEM_BYTES>::type V;
#define ROWS (THREADS / LANES)
#define STAGE (8 * LANES)

// lengths[i] = number of entries of the row that becomes row i; the last of rows + 1 is 0.
extern "C" __global__ void __launch_bounds__(THREADS) lengths(u64 rows, const I* offsets, const u32* new_to_old, u32* lengths) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i <= rows; i += u64(gridDim.x) * THREADS) {
        const u32 old = i < rows ? new_to_old[i] : 0;
        lengths[i] = i < rows ? u32(offsets[old + u64(1)] - offsets[old]) : 0;
    }
}

// long_rows: their number (initially zero), then the rows.
extern "C" __global__ void __launch_bounds__(THREADS)
    permute_rows(u64 rows, const I* offsets, const u32* indices, const V* values, const u32* new_to_old, const u32* old_to_new,
                 const I* new_offsets, u32* new_indices, V* new_values, u32* long_rows) {
    __shared__ u32 columns[ROWS][STAGE];
    const u32 lane = threadIdx.x % LANES;
    u32* const mine = columns[threadIdx.x / LANES];
    for (u64 base = u64(blockIdx.x) * ROWS; base < rows; base += u64(gridDim.x) * ROWS) {
        const u64 row = base + threadIdx.x / LANES;
        u64 from = 0, to = 0;
        u32 length = 0;
        if (row < rows) {
            const u32 old = new_to_old[row];
            from = offsets[old];
            length = u32(offsets[old + u64(1)] - from);
            to = new_offsets[row];
        }
        if (length > STAGE) {
            if (lane == 0) long_rows[1 + atomicAdd(long_rows, 1)] = u32(row);
            length = 0;
        }
        for (u32 k = lane; k < length; k += LANES) mine[k] = old_to_new[__ldg(indices + from + k)];
        __syncwarp();
        for (u32 k = lane; k < length; k += LANES) {
            const u32 column = mine[k];
            u32 place = 0;
            for (u32 i = 0; i < length; i++) place += mine[i] < column;
            new_indices[to + place] = column;
            new_values[to + place] = values[from + k];
        }
        __syncwarp();
    }
}

// One block per listed row.
extern "C" __global__ void __launch_bounds__(THREADS)
    permute_long_rows(const u32* long_rows, const I* offsets, const u32* indices, const V* values, const u32* new_to_old,
                      const u32* old_to_new, const I* new_offsets, u32* new_indices, V* new_values) {
    __shared__ u32 columns[LONGEST];
    for (u32 r = blockIdx.x; r < long_rows[0]; r += gridDim.x) {
        const u32 row = long_rows[1 + r], old = new_to_old[row];
        const u64 from = offsets[old], to = new_offsets[row];
        const u64 length = offsets[old + u64(1)] - from;
        __syncthreads();
        for (u64 k = threadIdx.x; k < length; k += THREADS) {
            const u32 column = old_to_new[indices[from + k]];
            if (length <= LONGEST) columns[k] = column;
            else {
                new_indices[to + k] = column;
                new_values[to + k] = values[from + k];
            }
        }
        __syncthreads();
        if (length > LONGEST) continue;
        for (u32 k = threadIdx.x; k < length; k += THREADS) {
            const u32 column = columns[k];
            u32 place = 0;
            for (u32 i = 0; i < length; i++) place += columns[i] < column;
            new_indices[to + place] = column;
            new_values[to + place] = values[from + k];
        }
    }
}
