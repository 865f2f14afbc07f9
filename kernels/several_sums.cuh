// Several sums of a launch at once, and work of its last block. As in block_sum.cuh the order of a sum depends on the
// shape of the launch alone.
#pragma once
#include "block_sum.cuh"

// Returns whether this is the last of `blocks` blocks to call it; that block sees what the others wrote before. All
// threads of the block call it; the counter is zero again when the launch ends.
DEVICE bool is_last(u32* finished, u32 blocks) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        last = blocks == 1;
        if (!last) {
            __threadfence();
            last = atomicAdd(finished, 1u) == blocks - 1;
            if (last) *finished = 0;
        }
    }
    __syncthreads();
    if (last) __threadfence();
    return last;
}

// Computes the sums of all threads' values, in shared memory for all threads. A barrier must come between two calls.
template <int BLOCK, int COUNT, typename S> DEVICE void block_sums(const S (&value)[COUNT], S* totals) {
    constexpr u32 WARPS = BLOCK / 32;
    __shared__ S of_warp[COUNT][WARPS];
    const u32 warp = threadIdx.x / 32, lane = lane_id();
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
        const S sum = warp_sum(value[c]);
        if (lane == 0) of_warp[c][warp] = sum;
    }
    __syncthreads();
    for (u32 c = warp; c < COUNT; c += WARPS) {
        const S sum = warp_sum(lane < WARPS ? of_warp[c][lane] : S());
        if (lane == 0) totals[c] = sum;
    }
    __syncthreads();
}

// Computes the sums of all threads' values over the launch, in shared memory of its last block. Returns whether this is
// that block, which calls `meanwhile` before it adds up the blocks' sums. All threads must call this, once. partials:
// COUNT per block.
template <int BLOCK, int COUNT, typename S, typename F>
DEVICE bool launch_sums(const S (&value)[COUNT], S* totals, S* partials, u32* finished, F meanwhile) {
    block_sums<BLOCK>(value, totals);
    if (gridDim.x > 1 && threadIdx.x < COUNT) {
        partials[threadIdx.x * gridDim.x + blockIdx.x] = totals[threadIdx.x];
        __threadfence();
    }
    if (!is_last(finished, gridDim.x)) return false;
    meanwhile();
    if (gridDim.x > 1) {
        S sum[COUNT] = {};
        for (u32 block = threadIdx.x; block < gridDim.x; block += BLOCK)
#pragma unroll
            for (int c = 0; c < COUNT; c++) sum[c] = sum[c] + load_shared_result(partials + c * gridDim.x + block);
        block_sums<BLOCK>(sum, totals);
    }
    return true;
}

// The index of lane l's sum in `warp_sums`.
template <int COUNT> DEVICE u32 sum_of_lane() {
    u32 index = 0;
#pragma unroll
    for (int half = COUNT / 2; half; half /= 2)
        if (lane_id() & (COUNT / 2 / half)) index += half;
    return index;
}

// The sums of COUNT values of each lane, COUNT a power of two up to 32: lane l gets the one with the number
// `sum_of_lane`. Each exchange between lanes halves the number of values to be summed, so that this takes COUNT - 1
// exchanges, and those of one sum over the remaining lanes.
template <int COUNT, int LEFT = COUNT, typename S> DEVICE S warp_sums(S (&value)[COUNT]) {
    if constexpr (LEFT > 1) {
        constexpr int HALF = LEFT / 2, WITH = COUNT / LEFT;
        const bool upper = lane_id() & WITH;
#pragma unroll
        for (int i = 0; i < HALF; i++) {
            const S kept = upper ? value[i + HALF] : value[i], given = upper ? value[i] : value[i + HALF];
            value[i] = kept + shuffle_xor(given, WITH);
        }
        return warp_sums<COUNT, HALF>(value);
    } else {
#pragma unroll
        for (int with = COUNT; with < 32; with *= 2) value[0] = value[0] + shuffle_xor(value[0], with);
        return value[0];
    }
}
