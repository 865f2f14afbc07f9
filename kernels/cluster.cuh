// A cluster of blocks that tell each other things through shared memory, without fences: a fence waits for all that a
// thread ever wrote to the device's memory, which here is an order that nobody reads yet.
//
// CLUSTER is a constant of the file that includes this one; with CLUSTER 1, and on chips without clusters, a block is
// alone in its own, and a meeting is a barrier of the block.
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
// Where what lies at `address` of this block's shared memory lies in that of another block.
DEVICE u32 address_in(u32 address, u32 block) {
    u32 mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(block));
    return mapped;
}
#endif

// Asks for a word's line to be brought into the first-level cache, without waiting for it: a copy to a place in shared
// memory where nobody looks.
DEVICE void ask_for(const u32* word, u32* place) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(in_shared(place)), "l"(word));
#endif
}
// Until all copies that the thread asked for have arrived.
DEVICE void finish_asking() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// All threads of the cluster meet, and see what was written before.
DEVICE void cluster_meet() {
#if CLUSTER > 1
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// All threads of the cluster meet. `seen` is what came back from the device's memory: that it came back means that the
// operation is done, so loads behind this that go to the L2 cache find its effect.
DEVICE void cluster_meet_after(u32 seen) {
#if CLUSTER > 1
    asm volatile("" ::"r"(__ballot_sync(ALL, seen)) : "memory"); // waits for it
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// Words that blocks put into each other's shared memory, and that a block waits for: each has a box (the hardware's
// barrier that counts bytes) for even and one for odd turns. Who sends in a turn has received all of the last, so that
// two boxes are enough.
struct Mail {
#if CLUSTER > 1
    u32 boxes; // in shared memory

    // The address is worked out once, by an instruction that the compiler does not look into: else it would do so again
    // at each use, which takes as long as a read of shared memory.
    DEVICE explicit Mail(u64 (&words)[2]) {
        asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(boxes) : "l"(words));
    }
    DEVICE u32 box(u32 turn) const { return boxes + 8 * (turn & 1); }
#else
    DEVICE explicit Mail(u64 (&)[2]) {}
#endif
    // By one thread; then the cluster meets.
    DEVICE void begin() {
#if CLUSTER > 1
        for (u32 turn = 0; turn < 2; turn++) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(box(turn)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    }
    // By one thread, in every turn that is then waited for: how many bytes will come.
    DEVICE void expect(u32 turn, u32 bytes) {
#if CLUSTER > 1
        asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(box(turn)), "r"(bytes) : "memory");
#endif
    }
    // A word of four or eight bytes, to where `place` lies in the shared memory of block `block`.
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
    // By all threads: until the bytes of this turn have come. Turns count from 0.
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
