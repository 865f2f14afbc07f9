// Tools for blocks that process many levels in one launch: a barrier between them, and even distribution of edges to
// lanes.
#pragma once
#include "common.cuh"

#define MANY 4 // edges in flight per lane

// Sums over the lanes of a warp, by one instruction if the chip has it.
#if __CUDA_ARCH__ >= 800
DEVICE u32 sum_of_lanes(u32 v) { return __reduce_add_sync(ALL, v); }
#else
DEVICE u32 sum_of_lanes(u32 v) { return warp_sum(v); }
#endif

DEVICE u64 load_acquire(const u64* p) {
    u64 value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}
DEVICE void add_release(u64* p, u64 value) { asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory"); }

// Blocks that synchronise at meetings. All of them must be resident, so the launch is cooperative. A meeting's word
// has, from its lowest bit: 32 bits for the sum of the blocks' contributions, 16 for the number of blocks that have
// arrived, 16 for signals of the caller. Four words are used in turn: while a team meets at one, its first block clears
// the one after next, which no block reads any more.
struct Team {
    u64* words; // 4, zeroed
    u32 rank, blocks, turn;

    // A meeting: waits for all blocks, and returns to every thread the sum of the `add` of the blocks' first threads.
    // What was written before is visible afterwards, to loads that go to the L2 cache.
    DEVICE u64 meet(u64 add) {
        __shared__ u64 sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            u64* word = words + (turn & 3);
            if (rank == 0) __stcg(words + ((turn + 2) & 3), u64(0));
            add_release(word, add + (u64(1) << 32));
            u64 now;
            do now = load_acquire(word);
            while ((now >> 32 & 0xffff) != blocks);
            sum = now;
        }
        __syncthreads();
        turn++;
        return sum;
    }

    // A meeting at which the first thread of rank 0 sends N words to all. There are two places for them, used
    // alternately: when the next words are written, some threads may not have read the last ones.
    template <u32 N> DEVICE u64 tell(u64 (*places)[N], u64 add, u64 (&told)[N]) {
        u64* const here = places[turn & 1];
        if (rank == 0 && threadIdx.x == 0)
            for (u32 i = 0; i < N; i++) __stcg(here + i, told[i]);
        const u64 sum = meet(add);
        for (u32 i = 0; i < N; i++) told[i] = __ldcg(here + i);
        return sum;
    }
};

// Returns the lane that owns edge `e` of a warp's edges, given the inclusive sums of the lanes' numbers of edges.
template <typename I> DEVICE u32 owner_of(I e, I inclusive) {
    u32 low = 0;
#pragma unroll
    for (u32 step = 16; step; step /= 2) {
        const I sum = shuffle(inclusive, low + step - 1);
        if (sum <= e) low += step;
    }
    return low;
}

// Returns the number of entries of a frontier that each of `warps` warps takes at a time.
DEVICE u32 share(u32 entries, u32 warps) {
    const u32 each = (entries + warps - 1) / warps;
    return each < 1 ? 1 : each > 32 ? 32 : each;
}
