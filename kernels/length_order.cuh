// Orders the rows of a block by length, from longest to shortest and rows of equal length in their original order (see
// the drawing in length_order.cu): a radix sort by single bits, from the lowest in which lengths differ to the highest.
// Rows with the bit come before rows without it, both in their order, and votes count their places. Rows that are in
// order already stay in place.
#pragma once
#include "common.cuh"

// The shared memory of a block of at most MOST threads.
template <int MOST> struct LengthOrder {
    u32 length_at[MOST], row_at[MOST], marked[MOST / 32], differing;
};

// Replaces a thread's row and length by those of the row that is sorted to the thread's place; returns whether any row
// moved. Threads without a row (`mine` is false) come after all others. The whole block must call it.
template <int MOST> DEVICE bool order_by_length(LengthOrder<MOST>& at, bool mine, u32& length, u32& row) {
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    // Threads without a row have the smallest length and stay after all rows.
    if (!mine) length = 0;
    at.length_at[threadIdx.x] = length;
    if (threadIdx.x == 0) at.differing = 0;
    __syncthreads();
    const bool grows = mine && threadIdx.x > 0 && at.length_at[threadIdx.x - 1] < length;
    u32 differs = mine ? length ^ at.length_at[0] : 0;
    if (!__syncthreads_or(grows)) return false;
#pragma unroll
    for (u32 with = 16; with; with /= 2) differs |= __shfl_xor_sync(ALL, differs, with);
    if (lane == 0) atomicOr(&at.differing, differs);
    __syncthreads();
    for (u32 left = at.differing; left; left &= left - 1) {
        const bool has = length & left & (0u - left);
        const u32 vote = __ballot_sync(ALL, has);
        if (lane == 0) at.marked[warp] = __popc(vote);
        __syncthreads();
        u32 upto = lane < blockDim.x / 32 ? at.marked[lane] : 0;
#pragma unroll
        for (u32 by = 1; by < 32; by *= 2) {
            const u32 other = __shfl_up_sync(ALL, upto, by);
            if (lane >= by) upto += other;
        }
        const u32 all = __shfl_sync(ALL, upto, 31), up_to_warp = __shfl_sync(ALL, upto, warp);
        const u32 before = up_to_warp - __popc(vote) + __popc(vote & lanes_below());
        const u32 place = has ? before : all + threadIdx.x - before;
        at.length_at[place] = length;
        at.row_at[place] = row;
        __syncthreads();
        length = at.length_at[threadIdx.x];
        row = at.row_at[threadIdx.x];
        __syncthreads();
    }
    return true;
}

// `LengthOrder` for a warp that holds a whole window, the rows of places lane, 32 + lane and so on: no warp waits for
// another.
template <int ROWS> struct LengthOrderOfWarp {
    u32 length_of[32 * ROWS];
    u8 row_at[32 * ROWS];
};

// `length` becomes that of the rows that are sorted to the lane's places, and row_at says which these are. Places
// without a row have length zero.
template <int ROWS> DEVICE void order_by_length(LengthOrderOfWarp<ROWS>& at, u32 (&length)[ROWS]) {
    static_assert(32 * ROWS <= 256, "rows are numbered in a byte");
    u32 row[ROWS];
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < ROWS; i++) {
        row[i] = 32 * i + lane_id();
        at.length_of[row[i]] = length[i];
        at.row_at[row[i]] = u8(row[i]);
    }
    __syncwarp();
    u32 differs = 0;
    bool grows = false;
#pragma unroll
    for (u32 i = 0; i < ROWS; i++) {
        differs |= length[i] ^ at.length_of[0];
        grows |= row[i] > 0 && at.length_of[row[i] - 1] < length[i];
    }
    if (!__any_sync(ALL, grows)) return;
#pragma unroll
    for (u32 with = 16; with; with /= 2) differs |= __shfl_xor_sync(ALL, differs, with);
    for (; differs; differs &= differs - 1) {
        u32 vote[ROWS], all = 0, before = 0;
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            vote[i] = __ballot_sync(ALL, length[i] & differs & (0u - differs));
            all += __popc(vote[i]);
        }
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            const u32 marked = before + __popc(vote[i] & lanes_below());
            const u32 place = vote[i] >> lane_id() & 1 ? marked : all + 32 * i + lane_id() - marked;
            at.row_at[place] = u8(row[i]);
            before += __popc(vote[i]);
        }
        __syncwarp();
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            row[i] = at.row_at[32 * i + lane_id()];
            length[i] = at.length_of[row[i]];
        }
        __syncwarp();
    }
}
