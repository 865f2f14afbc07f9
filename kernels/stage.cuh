// Nonzeros from device memory to shared memory, sixteen bytes at a time and past the registers where the chip can (8.0
// and later), so that a block has its whole tile under way at once.
#pragma once
#include "product.cuh"

DEVICE void copy16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
#else
    *reinterpret_cast<uint4*>(to) = __ldcs(reinterpret_cast<const uint4*>(from));
#endif
}
DEVICE void copies_done() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Elements start .. stop of `from` to the front of `to` by all threads of the block. `start` is a multiple of 16 / sizeof(A)
// and places up to the next multiple behind `stop` are written too, as far as the array of `count` goes.
template <int BLOCK, typename A> DEVICE void stage(A* to, const A* from, u64 start, u64 stop, u64 count) {
    constexpr u32 PER = 16 / sizeof(A);
    const u32 pieces = u32((stop - start + PER - 1) / PER);
    if (aligned16(from)) {
        for (u32 i = threadIdx.x; i < pieces; i += BLOCK) {
            const u64 at = start + u64(i) * PER;
            if (at + PER <= count) copy16(to + i * PER, from + at);
            else
                for (u32 j = 0; at + j < count; j++) to[i * PER + j] = from[at + j];
        }
    } else {
        const u32 n = u32(stop - start);
        for (u32 i = threadIdx.x; i < n; i += BLOCK) to[i] = stream(from + start + i);
    }
}
