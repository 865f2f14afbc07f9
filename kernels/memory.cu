// Filling buffers.
//
// Constants: THREADS.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) fill8(u64 bits, u64* to, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) to[i] = bits;
}

// Elements of 16 bytes may be aligned to only 8, so they are written as two words.
extern "C" __global__ void __launch_bounds__(THREADS) fill16(u64 low, u64 high, u64* to, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < 2 * n; i += u64(gridDim.x) * THREADS) to[i] = i & 1 ? high : low;
}
