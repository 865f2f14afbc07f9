// Bulk copies between global and shared memory (compute capability 9.0): one instruction of one thread moves kilobytes,
// and a barrier in shared memory is completed when they have arrived. Addresses and sizes must be multiples of 16
// bytes. For earlier chips these functions compile to nothing; callers check BULK.
#pragma once
#include "common.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define BULK 1
#else
#define BULK 0
#endif

// Initialises a barrier that completes after this number of arrivals, and after all bytes that they announce.
DEVICE void barrier_init(u64* barrier, u32 arrivals) {
#if BULK
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(barrier)), "r"(arrivals) : "memory");
#endif
}
// Must be called by the thread that initialised barriers, before any bulk copy refers to one.
DEVICE void barrier_init_done() {
#if BULK
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
DEVICE void arrive(u64* barrier, u32 bytes) {
#if BULK
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(barrier)), "r"(bytes) : "memory");
#endif
}
DEVICE void arrive(u64* barrier) {
#if BULK
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(in_shared(barrier)) : "memory");
#endif
}
// Waits for the phase with this parity: 0 for a barrier's first use, then 1, 0 ...
DEVICE void wait(u64* barrier, u32 parity) {
#if BULK
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(in_shared(barrier)), "r"(parity)
                     : "memory");
#endif
}
DEVICE void bulk_load(void* to, const void* from, u32 bytes, u64* barrier) {
#if BULK
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(in_shared(to)), "l"(from), "r"(bytes), "r"(in_shared(barrier))
                 : "memory");
#endif
}
// Each thread must call this between its writes to shared memory and the block's barrier before a bulk store of them.
DEVICE void bulk_sees_writes() {
#if BULK
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
DEVICE void bulk_store(void* to, const void* from, u32 bytes) {
#if BULK
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\tcp.async.bulk.commit_group;" ::"l"(to), "r"(in_shared(from)), "r"(bytes) : "memory");
#endif
}
// Waits until this thread's bulk stores have read their shared memory.
DEVICE void bulk_stores_read() {
#if BULK
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}
// Copies sixteen bytes to shared memory if `wanted`, bypassing registers and the first-level cache if the chip can (8.0
// and later). The instruction itself tests the condition, so that addresses are computed without a branch.
DEVICE void copy16(u32 to, const void* from, bool wanted = true) {
#if __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(to), "l"(from), "r"(u32(wanted)) : "memory");
#else
    if (wanted) *static_cast<uint4*>(__cvta_shared_to_generic(to)) = __ldcs(static_cast<const uint4*>(from));
#endif
}
// Waits until the thread's copies of single elements or sixteen bytes have arrived (8.0 and later).
DEVICE void copies_done() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
