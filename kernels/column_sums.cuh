// Sums of columns over a block and over a launch, for interleaved vectors: element e belongs to column e % k. As in
// block_sum.cuh the order depends on the shape of the launch alone.
//
//     a block, k = 3, two places per thread:   t0: 0 1   t1: 2 0   t2: 1 2   | idle: threads beyond a multiple of k
#pragma once
#include "block_sum.cuh"

// Maximum number of columns.
#define COLUMNS 32

// Number of threads of a block that take part, so that each keeps its columns from step to step.
template <int BLOCK> DEVICE u32 of_whole_rows(u32 k) { return BLOCK / k * k; }

// Adds up `rows` rows of k places each, into the first row. All threads call it; on entry and on return `of` is visible
// to all threads.
template <int BLOCK, typename S> DEVICE void fold_rows(S* of, u32 rows, u32 k) {
    __syncthreads();
    while (rows > 1) {
        const u32 half = (rows + 1) / 2;
        for (u32 e = threadIdx.x; e < (rows - half) * k; e += BLOCK) of[e] = of[e] + of[e + half * k];
        rows = half;
        __syncthreads();
    }
}

// Place threadIdx.x * EACH + v of a block has value[v]. finish(column, sum) is called once per column, in k different
// threads, after all other work of the launch; all threads of all blocks call this, once. partials: k per block.
template <int BLOCK, int EACH, typename S, typename F>
DEVICE void launch_column_sums(const S (&value)[EACH], u32 k, S* partials, u32* finished, F finish) {
    __shared__ alignas(16) unsigned char bytes[BLOCK * EACH * sizeof(S)];
    __shared__ bool last;
    S* const of = reinterpret_cast<S*>(bytes);
    const u32 active = of_whole_rows<BLOCK>(k), t = threadIdx.x;
    if (t < active) {
#pragma unroll
        for (int v = 0; v < EACH; v++) of[t * EACH + v] = value[v];
    }
    fold_rows<BLOCK>(of, active / k * EACH, k);
    if (gridDim.x == 1) {
        if (t < k) finish(t, of[t]);
        return;
    }
    if (t < k) {
        partials[blockIdx.x * k + t] = of[t];
        __threadfence();
    }
    __syncthreads();
    if (t == 0) last = atomicAdd(finished, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (t < active) {
        S sum = S();
        for (u32 i = t; i < gridDim.x * k; i += active) sum = sum + load_shared_result(partials + i);
        of[t] = sum;
    }
    fold_rows<BLOCK>(of, active / k, k);
    if (t < k) finish(t, of[t]);
    if (t == 0) *finished = 0;
}
