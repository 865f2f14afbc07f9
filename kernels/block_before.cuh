// Exclusive prefix sums over the threads of a block.
#pragma once
#include "common.cuh"

// Returns the sum of the values of all earlier threads; `all` becomes the sum of all values.
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
