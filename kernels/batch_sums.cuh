// Sums and maxima over all threads of a block, with the same bits in each thread. The caller lends shared memory for
// each warp.
//
// Constants: THREADS, and those of batch.cuh.
#pragma once
#include "batch.cuh"

#define WARPS (THREADS / 32)

DEVICE u32 warp_id() { return threadIdx.x / 32; }

// Of K numbers each, 6 at most. All threads have met since they read the shared memory last.
template <int K> DEVICE void block_sums_behind(f64 (*sums)[6], f64 (&v)[K]) {
#pragma unroll
    for (int k = 0; k < K; k++) v[k] = warp_sum(v[k]);
    if (lane_id() == 0)
#pragma unroll
        for (int k = 0; k < K; k++) sums[warp_id()][k] = v[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++) {
        v[k] = 0;
        for (int w = 0; w < WARPS; w++) v[k] += sums[w][k];
    }
}

template <int K> DEVICE void block_sums(f64 (*sums)[6], f64 (&v)[K]) {
    __syncthreads();
    block_sums_behind(sums, v);
}

// The largest; NaN is none.
DEVICE f64 block_max(f64 (*sums)[6], f64 v) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) v = fmax(v, shuffle_xor(v, with));
    __syncthreads();
    if (lane_id() == 0) sums[warp_id()][0] = v;
    __syncthreads();
    v = sums[0][0];
    for (int w = 1; w < WARPS; w++) v = fmax(v, sums[w][0]);
    return v;
}
