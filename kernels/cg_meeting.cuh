// The synchronisation of blocks ("meeting") in conjugate gradient kernels with many iterations per launch, which also
// computes sums over all blocks.
//
// CLUSTER > 1: the blocks are one cluster, and their shared memory is one address space; blocks write their sums into
// each other's, followed by the hardware's barrier. CLUSTER = 1: there is one block. CLUSTER = 0: any number of blocks
// in a cooperative launch, all resident; a block writes its sum to its slot in global memory, tagged with the number of
// the meeting, and reads the slots of all blocks until the tags have arrived, so the sum is the barrier as well. Slots
// alternate, because a block may be one meeting ahead of another, but never two.
//
// Every block adds in the same order, so all blocks have the same bits, in every run.
//
// Constants: CLUSTER, THREADS.
#pragma once

// The host never requests a cluster on chips without clusters.
#if __CUDA_ARCH__ < 900 && CLUSTER > 1
#undef CLUSTER
#define CLUSTER 0
#endif

#include "block_sum.cuh"
#include "cluster.cuh"

#define WARPS (THREADS / 32)
#define MAX_BLOCKS 1024

// ---- the meeting of blocks: sums of N values over all threads of all blocks ----------------------------------------

#if CLUSTER > 1
DEVICE void put_in(u32 mapped, f64 value) {
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(mapped), "d"(value) : "memory");
}
template <typename A> DEVICE A get_from(u32 mapped) {
    A value;
    if constexpr (sizeof(A) == 4) {
        u32 a;
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(a) : "r"(mapped) : "memory");
        memcpy(&value, &a, 4);
    } else if constexpr (sizeof(A) == 8) {
        u64 a;
        asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(a) : "r"(mapped) : "memory");
        memcpy(&value, &a, 8);
    } else {
        u64 a[2];
        asm volatile("ld.shared::cluster.v2.u64 {%0, %1}, [%2];" : "=l"(a[0]), "=l"(a[1]) : "r"(mapped) : "memory");
        memcpy(&value, a, 16);
    }
    return value;
}
#endif

#if CLUSTER == 0
// A number in two words, each with the meeting's number: words of eight bytes are read and written as a whole.
struct alignas(16) Slot {
    u64 low, high;
};
DEVICE void put(Slot* slot, f64 value, u32 meeting) {
    const u64 raw = bits<u64>(value), tag = u64(meeting) << 32;
    const u64 low = tag | u32(raw), high = tag | raw >> 32;
#if __CUDA_ARCH__ >= 700
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(low), "l"(high) : "memory");
#endif
}
template <bool ACQUIRE> DEVICE f64 wait_for(const Slot* slot, u32 meeting) {
    u64 low, high;
    do {
        if (ACQUIRE)
            asm volatile("ld.acquire.gpu.global.u64 %0, [%2]; ld.acquire.gpu.global.u64 %1, [%2 + 8];" : "=l"(low), "=l"(high) : "l"(slot) : "memory");
        else
            asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(slot) : "memory");
    } while (low >> 32 != meeting || high >> 32 != meeting);
    return bits<f64>(high << 32 | u32(low));
}
#endif

// Sums `value` over all threads of all blocks. With PUBLISH, all blocks see afterwards what any thread wrote before.
template <bool PUBLISH, int N> DEVICE void sum_over_all(f64 (&value)[N], void* slots, u32 meeting) {
    const u32 warp = threadIdx.x / 32, lane = lane_id();
    __shared__ f64 of_warp[2][2][WARPS];
    f64(*const mine)[WARPS] = of_warp[meeting & 1];
#pragma unroll
    for (int i = 0; i < N; i++) {
        value[i] = warp_sum(value[i]);
        if (lane == 0) mine[i][warp] = value[i];
    }
    __syncthreads();
#if CLUSTER == 1
#pragma unroll
    for (int i = 0; i < N; i++) value[i] = warp_sum(lane < WARPS ? mine[i][lane] : 0);
#elif CLUSTER > 1
    __shared__ f64 of_block[2][2][CLUSTER];
    if (warp < N) {
        const f64 sum = warp_sum(lane < WARPS ? mine[warp][lane] : 0);
        if (lane < CLUSTER) put_in(address_in(in_shared(&of_block[meeting & 1][warp][blockIdx.x]), lane), sum);
    }
    cluster_meet();
#pragma unroll
    for (int i = 0; i < N; i++) {
        f64 four[4] = {};
#pragma unroll
        for (int k = 0; k < CLUSTER; k++) four[k & 3] += of_block[meeting & 1][i][k];
        value[i] = (four[0] + four[1]) + (four[2] + four[3]);
    }
#else
    __shared__ f64 of_grid[2][MAX_BLOCKS / 32];
    Slot* const now = static_cast<Slot*>(slots) + (meeting & 1) * 2 * MAX_BLOCKS;
    if (warp < N) {
        const f64 sum = warp_sum(lane < WARPS ? mine[warp][lane] : 0);
        if (lane == 0) {
            if (PUBLISH) __threadfence();
            put(now + warp * MAX_BLOCKS + blockIdx.x, sum, meeting);
        }
    }
    const u32 groups = (gridDim.x + 31) / 32;
    for (u32 w = warp; w < N * groups; w += WARPS) {
        const u32 which = w / groups, group = w % groups, block = group * 32 + lane;
        f64 sum = 0;
        if (block < gridDim.x) sum = wait_for<PUBLISH>(now + which * MAX_BLOCKS + block, meeting);
        __syncwarp();
        sum = warp_sum(sum);
        if (lane == 0) of_grid[which][group] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++) {
        value[i] = 0;
        for (u32 g = 0; g < groups; g++) value[i] += of_grid[i][g];
    }
#endif
}
