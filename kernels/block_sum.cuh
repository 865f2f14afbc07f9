// Sums over a block and over a whole launch, in an order that depends on the shape of the launch alone, so that two
// runs give the same bits.
//
// The blocks of a launch write partial sums; the block that finishes last adds them up, each thread in the order of the
// blocks. Which block is last differs from run to run, but not what it computes. The counter of finished blocks is zero
// again when the launch ends, so that nothing has to be cleared between launches.
#pragma once
#include "complex.cuh"

// Loads past the first-level cache, which does not see what other multiprocessors wrote.
template <typename S> DEVICE S load_shared_result(const S* p) {
    S value;
    if constexpr (sizeof(S) == 4) {
        u32 raw = __ldcg(reinterpret_cast<const u32*>(p));
        memcpy(&value, &raw, 4);
    } else if constexpr (sizeof(S) == 8) {
        u64 raw = __ldcg(reinterpret_cast<const u64*>(p));
        memcpy(&value, &raw, 8);
    } else {
        static_assert(sizeof(S) == 16, "sums have 4, 8 or 16 bytes");
        uint4 raw = __ldcg(reinterpret_cast<const uint4*>(p));
        memcpy(&value, &raw, 16);
    }
    return value;
}

// Returns the sum of all threads' values in thread 0. A barrier must come between two calls.
template <int BLOCK, typename S> DEVICE S block_sum(S value) {
    __shared__ S of_warp[BLOCK / 32];
    value = warp_sum(value);
    if (lane_id() == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < BLOCK / 32 ? of_warp[threadIdx.x] : S();
        value = warp_sum(value);
    }
    return value;
}

// Sums the values of all threads of the launch. One thread passes the sum to `finish`, after all other work of the
// launch. Every thread must call this once.
template <int BLOCK, typename S, typename F> DEVICE void launch_sum(S value, S* partials, u32* finished, F finish) {
    __shared__ bool last;
    value = block_sum<BLOCK>(value);
    if (threadIdx.x == 0) {
        last = false;
        if (gridDim.x == 1) {
            finish(value);
        } else {
            partials[blockIdx.x] = value;
            __threadfence();
            last = atomicAdd(finished, 1u) == gridDim.x - 1;
        }
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    S sum = S();
    for (u32 block = threadIdx.x; block < gridDim.x; block += BLOCK) sum = sum + load_shared_result(partials + block);
    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0) {
        finish(sum);
        *finished = 0;
    }
}

// Sums as above, and writes the result to *out.
template <int BLOCK, typename S> DEVICE void launch_sum_to(S* out, S value, S* partials, u32* finished) {
    launch_sum<BLOCK>(value, partials, finished, [=](S all) { *out = all; });
}

// Like launch_sum_to, for launches of many blocks. With `finished` the last block adds up; without it, a separate
// launch of sum_partials does, because waiting for a counter would delay every block.
template <int BLOCK, typename S> DEVICE void leave_sum(S* out, S value, S* partials, u32* finished) {
    if (finished) {
        launch_sum_to<BLOCK>(out, value, partials, finished);
    } else {
        value = block_sum<BLOCK>(value);
        if (threadIdx.x == 0) partials[blockIdx.x] = value;
    }
}
