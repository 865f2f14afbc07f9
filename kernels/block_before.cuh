// Sums over the threads of a block that come before one, and the last of their values.
#pragma once
#include "common.cuh"

// The sum of the values of all threads before this one, and of all.
template <int BLOCK, typename T> DEVICE T block_before(T value, T& all) {
    __shared__ T of_warp[BLOCK / 32];
    const T upto = warp_inclusive_sum(value);
    __syncthreads();
    if (lane_id() == 31) of_warp[threadIdx.x / 32] = upto;
    __syncthreads();
    const T sums = warp_inclusive_sum(lane_id() < BLOCK / 32 ? of_warp[lane_id()] : T());
    all = shuffle(sums, 31);
    const T before = shuffle(sums, (threadIdx.x / 32 + 31) & 31);
    return (threadIdx.x < 32 ? T() : before) + upto - value;
}

// The value of the last thread before this one that has any but ~0; ~0 where none has.
template <int BLOCK> DEVICE u32 last_before(u32 value) {
    __shared__ u32 of_warp[BLOCK / 32];
    const auto latest = [](u32 value, u32 lanes) {
        const u32 having = __ballot_sync(ALL, value != ~0u) & lanes;
        const u32 found = __shfl_sync(ALL, value, having ? 31 - __clz(having) : 0);
        return having ? found : ~0u;
    };
    const u32 of_this = latest(value, ALL);
    __syncthreads();
    if (lane_id() == 0) of_warp[threadIdx.x / 32] = of_this;
    __syncthreads();
    const u32 below = latest(value, lanes_below());
    const u32 ahead = latest(lane_id() < threadIdx.x / 32 ? of_warp[lane_id()] : ~0u, ALL);
    return below != ~0u ? below : ahead;
}
