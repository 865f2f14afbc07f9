// Measures once per matrix how far the elements of x that a CSR matrix reads are scattered, to decide whether the
// first-level cache serves x.
//
//     | 1 . 7 . |     columns  0 2 | 2 | 1 2 | 0 3          windows of 4 nonzeros, lines of 2 columns: 0 2 2 1 has lines 0 1, 2 0 3 has 1 0
//     | . . 8 . |
//     | . 4 3 . |     *lines is 4 afterwards: two windows of two lines each
//     | 2 . . 1 |
//
// A block takes a window of WINDOW consecutive nonzeros; windows are spread evenly over the matrix, which has at least
// WINDOW nonzeros. The block marks the lines of LINE columns in a bitmap, by a hash, and counts the marks. Bytes: 4 per
// nonzero of a window, whatever the matrix.
//
// Constants: THREADS, WINDOW, LINE.
#include "common.cuh"

constexpr u32 BITS = 1 << 16;

// Adds to *lines, which is initially zero, the number of lines of each window.
extern "C" __global__ void __launch_bounds__(THREADS) column_spread(u64 count, const u32* columns, u64* lines) {
    __shared__ u32 marks[BITS / 32];
    for (u32 i = threadIdx.x; i < BITS / 32; i += THREADS) marks[i] = 0;
    __syncthreads();
    const u64 first = gridDim.x > 1 ? (count - WINDOW) / (gridDim.x - 1) * blockIdx.x : 0;
    for (u32 i = threadIdx.x; i < WINDOW; i += THREADS) {
        const u32 mark = (columns[first + i] / LINE * 0x9e3779b1u) >> 16;
        atomicOr(&marks[mark / 32], 1u << mark % 32);
    }
    __syncthreads();
    u32 marked = 0;
    for (u32 i = threadIdx.x; i < BITS / 32; i += THREADS) marked += __popc(marks[i]);
    marked = warp_sum(marked);
    if (lane_id() == 0) atomicAdd(lines, u64(marked));
}
