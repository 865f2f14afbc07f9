// Row and column numbers as one key, and back.
//
// Constants: THREADS.
#include "common.cuh"

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

extern "C" __global__ void __launch_bounds__(THREADS) pack(const u32* high, const u32* low, u32 shift, u64* out, u64 n) {
    EACH(i, n) out[i] = u64(high[i]) << shift | low[i];
}

// Both mirror images; on the diagonal the second is a key above all others.
extern "C" __global__ void __launch_bounds__(THREADS) pack_mirrored(const u32* high, const u32* low, u32 shift, u64* out, u64 n) {
    const u64 above = shift == 32 ? ~u64(0) : u64(1) << (2 * shift);
    EACH(i, n) {
        const u64 h = high[i], l = low[i];
        out[2 * i] = h << shift | l;
        out[2 * i + 1] = h == l ? above : l << shift | h;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) unpack(const u64* packed, u32 shift, u32* high, u32* low, u64 n) {
    const u64 mask = (u64(1) << shift) - 1;
    EACH(i, n) {
        high[i] = u32(packed[i] >> shift);
        low[i] = u32(packed[i] & mask);
    }
}
