// Rows ordered by length, from longest to shortest and rows of equal length in their order, within windows that a block holds.
//
//     lengths  2 1 2 2 | 3 3 1 1        order  0 2 3 1 | 4 5 6 7        sorted  2 2 2 1 | 3 3 1 1        moved  1
//
// A block takes a window, a thread a row. From the lowest bit in which lengths differ to the highest, rows that have the bit go before
// rows that do not, both in their order: a radix sort by single bits, whose places are counted by votes. A window that is in order
// already, as most of a grid are, is written as it is.
//
// Bytes a row: 4 read, 8 written.
//
// Constants: THREADS (the largest window).
#include "common.cuh"

#define WARPS (THREADS / 32)

// moved becomes 1 where a row is not in its place. Windows have at most as many rows as the launch's blocks have threads.
extern "C" __global__ void __launch_bounds__(THREADS) order_windows(const u32* lengths, u64 rows, u64 window, u32* order, u32* sorted, u64* moved) {
    __shared__ u32 length_at[THREADS], row_at[THREADS], marked[WARPS], differing;
    const u64 first = u64(blockIdx.x) * window;
    const u32 have = u32(min(window, rows - first)), lane = lane_id(), warp = threadIdx.x / 32;
    const bool mine = threadIdx.x < have;
    // Threads without a row have the smallest length and stay behind all rows.
    u32 length = mine ? lengths[first + threadIdx.x] : 0, row = threadIdx.x;
    length_at[threadIdx.x] = length;
    if (threadIdx.x == 0) differing = 0;
    __syncthreads();
    const bool grows = mine && threadIdx.x > 0 && length_at[threadIdx.x - 1] < length;
    u32 differs = mine ? length ^ length_at[0] : 0;
    if (__syncthreads_or(grows)) {
#pragma unroll
        for (u32 with = 16; with; with /= 2) differs |= __shfl_xor_sync(ALL, differs, with);
        if (lane == 0) atomicOr(&differing, differs);
        __syncthreads();
        for (u32 left = differing; left; left &= left - 1) {
            const bool has = length & left & (0u - left);
            const u32 vote = __ballot_sync(ALL, has);
            if (lane == 0) marked[warp] = __popc(vote);
            __syncthreads();
            u32 upto = lane < blockDim.x / 32 ? marked[lane] : 0;
#pragma unroll
            for (u32 by = 1; by < 32; by *= 2) {
                const u32 other = __shfl_up_sync(ALL, upto, by);
                if (lane >= by) upto += other;
            }
            const u32 all = __shfl_sync(ALL, upto, 31), up_to_warp = __shfl_sync(ALL, upto, warp);
            const u32 before = up_to_warp - __popc(vote) + __popc(vote & lanes_below());
            const u32 place = has ? before : all + threadIdx.x - before;
            length_at[place] = length;
            row_at[place] = row;
            __syncthreads();
            length = length_at[threadIdx.x];
            row = row_at[threadIdx.x];
            __syncthreads();
        }
        if (threadIdx.x == 0) atomicMax(moved, 1ull);
    }
    if (mine) {
        order[first + threadIdx.x] = u32(first) + row;
        sorted[first + threadIdx.x] = length;
    }
}
