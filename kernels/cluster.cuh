// A cluster of blocks that communicate through shared memory, without fences: a fence waits for everything that a
// thread has written to device memory, and here that is an ordering, which no block reads yet.
//
// CLUSTER is a constant of the including file. With CLUSTER 1, and on chips without clusters, each block is a cluster
// of its own, and a meeting is a barrier of the block.
#pragma once
#include "common.cuh"

#if CLUSTER > 1 && (__CUDA_ARCH__ < 900)
#undef CLUSTER
#define CLUSTER 1
#endif
#if CLUSTER > 1
#define OF_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define OF_CLUSTERS
#endif

#if CLUSTER > 1
// The address in another block's shared memory that corresponds to `address` in this block's.
DEVICE u32 address_in(u32 address, u32 block) {
    u32 mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(block));
    return mapped;
}
#endif

// Prefetches the line of a word to the first-level cache without waiting, by a copy to a place in shared memory that is
// never read.
DEVICE void ask_for(const u32* word, u32* place) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(in_shared(place)), "l"(word));
#endif
}
// Waits until all copies that the thread requested have arrived.
DEVICE void finish_asking() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// A barrier of all threads of the cluster, after which they see what was written before.
DEVICE void cluster_meet() {
#if CLUSTER > 1
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// A barrier of all threads of the cluster. `seen` is a result from device memory: once it has arrived, the operation is
// done, so later loads that go to the L2 cache see its effect.
DEVICE void cluster_meet_after(u32 seen) {
#if CLUSTER > 1
    asm volatile("" ::"r"(__ballot_sync(ALL, seen)) : "memory"); // waits until `seen` has arrived
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// Words that blocks write to each other's shared memory and wait for. A block has two boxes (hardware barriers that
// count bytes), one for even turns and one for odd turns. A block that sends in a turn has received everything of the
// previous turn, so two boxes are enough.
struct Mail {
#if CLUSTER > 1
    u32 boxes; // in shared memory

    // The address is computed once, by an instruction that the compiler does not analyse; otherwise it would recompute
    // it at each use, which takes as long as a read of shared memory.
    DEVICE explicit Mail(u64 (&words)[2]) {
        asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(boxes) : "l"(words));
    }
    DEVICE u32 box(u32 turn) const { return boxes + 8 * (turn & 1); }
#else
    DEVICE explicit Mail(u64 (&)[2]) {}
#endif
    // Called by one thread, before a barrier of the cluster.
    DEVICE void begin() {
#if CLUSTER > 1
        for (u32 turn = 0; turn < 2; turn++) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(box(turn)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    }
    // Announces the number of bytes to expect in this turn. Called by one thread, in every turn that is waited for.
    DEVICE void expect(u32 turn, u32 bytes) {
#if CLUSTER > 1
        asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(box(turn)), "r"(bytes) : "memory");
#endif
    }
    // Writes a word of four or eight bytes to the address of `place` in the shared memory of block `block`.
    template <typename W> DEVICE void send(u32 turn, W* place, u32 block, typename unsigned_of<sizeof(W)>::type value) {
#if CLUSTER > 1
        const u32 to = address_in(in_shared(place), block), to_box = address_in(box(turn), block);
        if constexpr (sizeof(W) == 4)
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to), "r"(value), "r"(to_box) : "memory");
        else
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(to), "l"(value), "r"(to_box) : "memory");
#else
        *place = value;
#endif
    }
    // Called by all threads: waits until the bytes of this turn have arrived. Turns count from 0.
    DEVICE void wait(u32 turn) {
#if CLUSTER > 1
        const u32 parity = turn >> 1 & 1;
        u32 done;
        do asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(box(turn)), "r"(parity) : "memory");
        while (!done);
#else
        __syncthreads();
#endif
    }
};
