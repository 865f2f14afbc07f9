// Filling buffers, and posting messages to the host.
//
// Constants: THREADS.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) fill8(u64 bits, u64* to, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) to[i] = bits;
}

// Elements of 16 bytes are aligned to 8 at least.
extern "C" __global__ void __launch_bounds__(THREADS) fill16(u64 low, u64 high, u64* to, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < 2 * n; i += u64(gridDim.x) * THREADS) to[i] = i & 1 ? high : low;
}

// One warp copies a message into the next slot of a ring in host memory: number to zero, payload, number. The fences
// reach the host, so it sees the number only when the payload is there, and never a number with another's payload.
extern "C" __global__ void post(u8* ring, u32 slot_bytes, u32 slots, const u8* message, u32 words, u32 bytes, u64* counter) {
    const u64 number = *counter + 1;
    u8* slot = ring + (number - 1) % slots * slot_bytes;
    volatile u64* sequence = reinterpret_cast<volatile u64*>(slot);
    if (threadIdx.x == 0) *sequence = 0;
    __threadfence_system();
    __syncwarp();
    volatile u32* to = reinterpret_cast<volatile u32*>(slot + 8);
    for (u32 i = threadIdx.x; i < words; i += 32) to[i] = reinterpret_cast<const u32*>(message)[i];
    for (u32 i = threadIdx.x; i < bytes; i += 32) reinterpret_cast<volatile u8*>(to + words)[i] = message[4 * words + i];
    __threadfence_system();
    __syncwarp();
    if (threadIdx.x == 0) {
        *sequence = number;
        *counter = number;
    }
}
